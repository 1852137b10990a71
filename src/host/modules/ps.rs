//! `std.ps` and `socket`: as much of processes, pipes and waiting as the sidecar's client needs, so that both ways to the
//! core work in this host too.
//!
//! One thing differs from the first generation's shell: `launch` with a function does not run it in a fork. A fork of a
//! process with threads can do little safely, and what the function does, becoming the named program in a session of
//! its own, is done here by starting that program.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use mlua::{Function, Lua, Table, Value, Variadic};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};

use super::failed;
use crate::host::surroundings::Surroundings;
use crate::host::typed::Typed;

/// What one read takes at most where Lua does not say.
const READ_BYTES: usize = 64 * 1024;

/// The number of standard input.
const STDIN: i32 = 0;

type Slot = Rc<RefCell<Option<OwnedFd>>>;

/// The open pipe ends by their numbers, which is how Lua passes them on, and the children by theirs.
#[derive(Clone, Default)]
pub(super) struct Handles(Rc<RefCell<Inner>>);

#[derive(Default)]
struct Inner {
    ends: HashMap<i32, Slot>,
    children: HashMap<i32, Child>,
}

impl Handles {
    fn keep(&self, end: OwnedFd) -> (i32, Slot) {
        let number = end.as_raw_fd();
        let slot = Rc::new(RefCell::new(Some(end)));
        self.0.borrow_mut().ends.insert(number, Rc::clone(&slot));
        (number, slot)
    }

    fn end(&self, number: i32) -> Option<OwnedFd> {
        let slot = self.0.borrow().ends.get(&number).cloned()?;
        let end = slot.borrow();
        end.as_ref()?.try_clone().ok()
    }

    fn stdio(&self, number: Option<i32>) -> Stdio {
        match number.and_then(|number| self.end(number)) {
            Some(end) => Stdio::from(end),
            None => Stdio::inherit(),
        }
    }
}

pub(super) fn module(lua: &Lua, handles: &Handles, surroundings: &Surroundings) -> mlua::Result<Table> {
    let ps = lua.create_table()?;
    ps.set("getpid", lua.create_function(|_, ()| Ok(std::process::id()))?)?;
    let known = handles.clone();
    ps.set(
        "pipe",
        lua.create_function(move |lua, ()| match pipe_with(PipeFlags::CLOEXEC) {
            Ok((out, inn)) => Ok((Value::Table(pipe(lua, &known, out, inn)?), Value::Nil)),
            Err(error) => failed(lua, error),
        })?,
    )?;
    let (known, place) = (handles.clone(), surroundings.clone());
    type Launch = (Value, Option<i32>, Option<i32>, Option<i32>, Variadic<String>);
    ps.set(
        "launch",
        lua.create_function(move |lua, (program, stdin, stdout, stderr, args): Launch| {
            let name: String = match &program {
                Value::Table(described) => described.get("name")?,
                other => other.to_string()?,
            };
            let mut command = Command::new(name);
            command
                .args(args.iter())
                .current_dir(place.cwd())
                .env_clear()
                .envs(place.env());
            // A group of its own: Ctrl-C is for the shell alone.
            command
                .stdin(known.stdio(stdin))
                .stdout(known.stdio(stdout))
                .stderr(known.stdio(stderr))
                .process_group(0);
            match command.spawn() {
                Ok(child) => {
                    let pid = i32::try_from(child.id()).unwrap_or_default();
                    known.0.borrow_mut().children.insert(pid, child);
                    Ok((Value::Integer(pid.into()), Value::Nil))
                }
                Err(error) => failed(lua, error),
            }
        })?,
    )?;
    let known = handles.clone();
    ps.set(
        "waitpid",
        lua.create_function(move |_, pid: i32| {
            let children = &mut known.0.borrow_mut().children;
            match children.get_mut(&pid).map(Child::try_wait) {
                Some(Ok(None)) => Ok((0, None)),
                Some(Ok(Some(status))) => {
                    children.remove(&pid);
                    Ok((
                        pid,
                        status.code().or_else(|| status.signal().map(|signal| 128 + signal)),
                    ))
                }
                _ => Ok((-1, None)),
            }
        })?,
    )?;
    ps.set(
        "kill",
        lua.create_function(|lua, (pid, signal): (i32, i32)| {
            let signal = Signal::from_named_raw(signal);
            match Pid::from_raw(pid)
                .zip(signal)
                .map(|(pid, signal)| kill_process(pid, signal))
            {
                Some(Ok(())) => Ok((Value::Boolean(true), Value::Nil)),
                Some(Err(error)) => failed(lua, error),
                None => failed(lua, "no such process or signal"),
            }
        })?,
    )?;
    Ok(ps)
}

fn pipe(lua: &Lua, handles: &Handles, out: OwnedFd, inn: OwnedFd) -> mlua::Result<Table> {
    let pipe = lua.create_table()?;
    let (out_number, out) = handles.keep(out);
    let (inn_number, inn) = handles.keep(inn);
    pipe.set("out", out_number)?;
    pipe.set("inn", inn_number)?;
    let closer = |slot: &Slot, number: i32| {
        let (slot, known) = (Rc::clone(slot), handles.clone());
        lua.create_function(move |_, _this: Table| {
            if slot.borrow_mut().take().is_some() {
                known.0.borrow_mut().ends.remove(&number);
            }
            Ok(())
        })
    };
    pipe.set("close_out", closer(&out, out_number)?)?;
    pipe.set("close_inn", closer(&inn, inn_number)?)?;
    pipe.set(
        "read",
        lua.create_function(move |lua, (_this, count): (Table, Option<usize>)| {
            let mut bytes = vec![0; count.unwrap_or(READ_BYTES).min(READ_BYTES)];
            let end = out.borrow();
            let Some(end) = end.as_ref() else {
                return failed(lua, "the pipe is closed");
            };
            match rustix::io::retry_on_intr(|| rustix::io::read(end, &mut bytes)) {
                Ok(count) => Ok((Value::String(lua.create_string(&bytes[..count])?), Value::Nil)),
                Err(error) => failed(lua, error),
            }
        })?,
    )?;
    pipe.set(
        "write",
        lua.create_function(
            move |lua, (_this, data, count): (Table, mlua::LuaString, Option<usize>)| {
                let data = data.as_bytes();
                let count = count.unwrap_or(data.len()).min(data.len());
                let end = inn.borrow();
                let Some(end) = end.as_ref() else {
                    return failed(lua, "the pipe is closed");
                };
                match rustix::io::retry_on_intr(|| rustix::io::write(end, &data[..count])) {
                    Ok(count) => Ok((Value::Integer(i64::try_from(count).unwrap_or_default()), Value::Nil)),
                    Err(error) => failed(lua, error),
                }
            },
        )?,
    )?;
    Ok(pipe)
}

pub(super) fn socket(lua: &Lua, handles: &Handles, input: &Typed) -> mlua::Result<Table> {
    let socket = lua.create_table()?;
    let start = Instant::now();
    // Only differences of this clock mean anything.
    socket.set(
        "gettime",
        lua.create_function(move |_, ()| Ok(start.elapsed().as_secs_f64()))?,
    )?;
    let (known, input) = (handles.clone(), input.clone());
    type Select = (Option<Vec<Table>>, Option<Vec<Table>>, Option<f64>);
    socket.set(
        "select",
        lua.create_function(move |lua, (readers, writers, seconds): Select| {
            let (readers, writers) = (readers.unwrap_or_default(), writers.unwrap_or_default());
            let ready = select(&known, &input, &readers, &writers, seconds)?;
            let timed_out = ready.iter().all(|ready| !ready);
            let (reading, writing) = ready.split_at(readers.len());
            let of = |all: &[Table], ready: &[bool]| {
                lua.create_sequence_from(
                    all.iter()
                        .zip(ready)
                        .filter(|(_, ready)| **ready)
                        .map(|(item, _)| item.clone()),
                )
            };
            Ok((
                of(&readers, reading)?,
                of(&writers, writing)?,
                timed_out.then_some("timeout"),
            ))
        })?,
    )?;
    Ok(socket)
}

/// Which of the ends are ready, those to read first.
fn select(
    handles: &Handles,
    input: &Typed,
    readers: &[Table],
    writers: &[Table],
    seconds: Option<f64>,
) -> mlua::Result<Vec<bool>> {
    let numbers = readers
        .iter()
        .chain(writers)
        .map(|item| item.get::<Function>("getfd")?.call::<i32>(item));
    let numbers: Vec<i32> = numbers.collect::<mlua::Result<_>>()?;
    let stdin = io::stdin();
    let line_waits = numbers.contains(&STDIN) && input.is_ready();
    let ends: Vec<Option<OwnedFd>> = numbers.iter().map(|&number| handles.end(number)).collect();
    let mut places = Vec::new();
    let mut polled = Vec::new();
    for (place, end) in ends.iter().enumerate() {
        let fd: BorrowedFd<'_> = match end {
            Some(end) => end.as_fd(),
            None if numbers[place] == STDIN && io::IsTerminal::is_terminal(&stdin) => stdin.as_fd(),
            None => continue,
        };
        let flags = if place < readers.len() {
            PollFlags::IN
        } else {
            PollFlags::OUT
        };
        places.push(place);
        polled.push(PollFd::from_borrowed_fd(fd, flags));
    }
    let seconds = if line_waits { Some(0.0) } else { seconds };
    let wait = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
    let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
    // An interrupted wait is over: the caller looks for Ctrl-C between two waits.
    if poll(&mut polled, timeout.as_ref()).is_err() {
        return Ok(vec![false; ends.len()]);
    }
    let mut ready = vec![false; ends.len()];
    for (place, polled) in places.into_iter().zip(&polled) {
        ready[place] = !polled.revents().is_empty();
    }
    for (place, number) in numbers.into_iter().enumerate() {
        // Ready is a whole line, not a part of one.
        if number == STDIN {
            ready[place] = input.is_ready();
        }
    }
    Ok(ready)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> Lua {
        let lua = Lua::new();
        let handles = Handles::default();
        let place = Surroundings::new("/".into(), std::env::vars_os());
        lua.globals()
            .set("ps", module(&lua, &handles, &place).unwrap())
            .unwrap();
        lua.globals()
            .set("socket", socket(&lua, &handles, &Typed::new()).unwrap())
            .unwrap();
        lua
    }

    #[test]
    fn a_child_is_talked_to_over_pipes_and_collected() {
        state()
            .load(
                r#"
                local to, from = ps.pipe(), ps.pipe()
                local ends = function(fd) return { getfd = function() return fd end, dirty = function() return false end } end
                local pid = ps.launch({ name = "cat" }, to.out, from.inn, nil)
                from:close_inn()
                assert(ps.waitpid(pid) == 0)
                local _, room = socket.select({}, { ends(to.inn) }, 1)
                assert(#room == 1)
                assert(to:write("hello\0there", 11) == 11)
                local ready = socket.select({ ends(from.out) }, nil, 10)
                assert(#ready == 1 and from:read(100) == "hello\0there")
                local none, _, why = socket.select({ ends(from.out) }, nil, 0)
                assert(#none == 0 and why == "timeout")
                to:close_inn()
                to:close_out()
                assert(from:read(100) == "")
                local gone, status
                repeat gone, status = ps.waitpid(pid) until gone ~= 0
                assert(gone == pid and status == 0)
                assert(ps.waitpid(pid) == -1)
                local nothing, reason = to:write("x", 1)
                assert(nothing == nil and reason)
                "#,
            )
            .exec()
            .unwrap();
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_and_a_killed_one_has_a_status() {
        state()
            .load(
                r#"
                local pid, reason = ps.launch("no such program", nil, nil, nil)
                assert(pid == nil and type(reason) == "string")
                pid = ps.launch("sleep", nil, nil, nil, "60")
                assert(ps.kill(pid, 9) == true)
                local gone, status
                repeat gone, status = ps.waitpid(pid) until gone ~= 0
                assert(gone == pid and status == 137)
                "#,
            )
            .exec()
            .unwrap();
    }
}
