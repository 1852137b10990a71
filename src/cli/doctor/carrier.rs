//! How a host reaches the core: the shared object it may load, and the executable it may start. Both are tried.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Check;
use super::place::on_path;
use crate::bridge::probe;
use crate::protocol::PROTOCOL_VERSION;

/// Names the shared object, for hosts that load one by its path.
const LIBRARY: &str = "AGENT_SMITH_CORE";
/// Names the executable, where it is not called so on the `PATH`.
const EXECUTABLE: &str = "AGENT_SMITH_BIN";
const NATIVE: &str = "native carrier";
const SIDECAR: &str = "sidecar carrier";
/// How long a sidecar may take to answer; it takes some ten milliseconds.
const WAIT: Duration = Duration::from_secs(5);

pub(super) fn carriers() -> [Check; 2] {
    [native(), sidecar()]
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(Into::into)
}

fn native() -> Check {
    let named = variable(LIBRARY);
    let found = named.clone().or_else(beside_the_executable);
    let Some(library) = found else {
        return Check::ok(
            NATIVE,
            "built into this executable; no shared object is beside it, so other hosts use the sidecar",
        );
    };
    let place = library.display();
    match probe::load_library(&library) {
        Ok(version) if version == env!("CARGO_PKG_VERSION") => Check::ok(NATIVE, format!("{place} loads")),
        Ok(version) => Check::warn(NATIVE, format!("{place} loads, and is version {version}"))
            .next("install the shared object and the executable of the same version"),
        Err(why) => Check::warn(NATIVE, format!("{place} does not load: {why}; hosts use the sidecar")).next(
            if named.is_some() {
                format!("let {LIBRARY} name libagent_smith_core.so of this version, or unset it")
            } else {
                "install the shared object of this version again".to_owned()
            },
        ),
    }
}

/// Where an installation has the shared object.
fn beside_the_executable() -> Option<PathBuf> {
    let name = format!(
        "{}agent_smith_core{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    let own = std::env::current_exe().ok()?;
    let directory = own.parent()?;
    let prefix = directory.parent().unwrap_or(directory);
    [
        directory.join(&name),
        prefix.join("lib").join(&name),
        prefix.join("lib/agent_smith").join(&name),
    ]
    .into_iter()
    .find(|file| file.is_file())
}

fn sidecar() -> Check {
    let found = variable(EXECUTABLE).or_else(|| on_path("agent-smith"));
    let on_path = found.is_some();
    let own = || std::env::current_exe().unwrap_or_else(|_| "agent-smith".into());
    let executable = found.unwrap_or_else(own);
    let begun = Instant::now();
    let place = executable.display();
    match welcome(&executable) {
        Ok(version) if version != env!("CARGO_PKG_VERSION") => {
            Check::warn(SIDECAR, format!("{place} starts, and is version {version}"))
                .next("install one version only, or let AGENT_SMITH_BIN name the right one")
        }
        Ok(_) if !on_path => Check::warn(
            SIDECAR,
            format!("{place} starts, but hosts do not find it: no `agent-smith` is on the PATH"),
        )
        .next(format!("put it on the PATH, or let {EXECUTABLE} name it")),
        Ok(_) => Check::ok(SIDECAR, format!("{place} starts in {} ms", begun.elapsed().as_millis())),
        Err(why) => Check::fail(SIDECAR, format!("{place} does not start: {why}")).next(format!(
            "put a working agent-smith on the PATH, or let {EXECUTABLE} name one"
        )),
    }
}

/// Starts a sidecar in a home of its own, so that it neither reads nor leaves anything of the user's; the version it says
/// it has.
fn welcome(executable: &Path) -> Result<String, String> {
    let home = std::env::temp_dir().join(format!("agent-smith-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&home).map_err(|error| format!("{} cannot be made: {error}", home.display()))?;
    let started = Command::new(executable)
        .arg("serve")
        .current_dir(&home)
        .env("HOME", &home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_CACHE_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string());
    let said = started.and_then(|mut child| {
        let said = say_hello(&mut child, &home);
        // Its stdin is closed by now: it ends by itself, and is not waited for if it does not.
        if said.is_err() {
            let _ = child.kill();
        }
        let _ = child.wait();
        said
    });
    let _ = std::fs::remove_dir_all(&home);
    said
}

fn say_hello(child: &mut Child, home: &Path) -> Result<String, String> {
    let (Some(mut input), Some(output), Some(mut errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("it has no pipes".to_owned());
    };
    let hello = json!({
        "id": 1, "op": "hello", "protocol": PROTOCOL_VERSION, "client": "doctor",
        "cwd": home.to_string_lossy(), "pid": std::process::id(),
    });
    // Where it is gone already, what it said tells why.
    let _ = writeln!(input, "{hello}");
    let (sender, answer) = channel();
    std::thread::spawn(move || {
        let found = BufReader::new(output.take(1 << 20))
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let line: Value = serde_json::from_str(&line).ok()?;
                (line.get("event").is_none()).then_some(line)
            });
        let _ = sender.send(found);
    });
    let answer = answer
        .recv_timeout(WAIT)
        .map_err(|_| format!("it says nothing for {} s", WAIT.as_secs()))?;
    drop(input);
    let Some(answer) = answer else {
        let mut text = String::new();
        let _ = (&mut errors).take(1 << 16).read_to_string(&mut text);
        let why = text.lines().next().unwrap_or("it ends without a word");
        return Err(why.to_owned());
    };
    match (answer["ok"]["version"].as_str(), answer["err"]["message"].as_str()) {
        (Some(version), _) => Ok(version.to_owned()),
        (None, Some(why)) => Err(why.to_owned()),
        (None, None) => Err("it answers as something else".to_owned()),
    }
}
