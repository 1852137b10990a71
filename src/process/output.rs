//! What a child wrote: its head and its tail in memory, and all of it in a file once it is long.
//!
//! A short output never touches the disk. A long one costs the two buffers and nothing more, however long it gets;
//! the file is capped and says where it stops.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How much of an output is kept where.
#[derive(Clone, Debug)]
pub struct OutputLimits {
    /// Bytes of its beginning kept in memory.
    pub head: usize,
    /// Bytes of its end kept in memory.
    pub tail: usize,
    /// Bytes of it kept in the file.
    pub file: u64,
    /// Where the file goes; made, for this user only, when it is needed.
    pub directory: PathBuf,
    /// The file's name; a number is added where it is taken.
    pub name: String,
}

/// An output as it comes in.
#[derive(Debug)]
pub struct OutputLog {
    limits: OutputLimits,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    lines: u64,
    last: Option<u8>,
    file: Spill,
}

#[derive(Debug)]
enum Spill {
    /// Everything is still in memory.
    NotNeeded,
    Open {
        file: File,
        path: PathBuf,
        written: u64,
    },
    Failed(String),
}

/// A place in an output: all that came before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Bytes.
    pub bytes: u64,
    /// Finished lines.
    pub lines: u64,
}

/// An output as it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Its beginning: all of it where nothing was left out.
    pub head: Vec<u8>,
    /// Its end, where something was left out: whole lines as far as there are any.
    pub tail: Vec<u8>,
    /// All bytes written.
    pub bytes: u64,
    /// All lines written; an unfinished last one counts.
    pub lines: u64,
    /// Bytes that are in neither part.
    pub left_out: u64,
    /// The number of the first line that is not whole in `head`, from 1; where nothing was left out, 0.
    pub left_out_from_line: u64,
    /// The file that holds all of it, or its first part where the file was capped.
    pub path: Option<PathBuf>,
    /// Bytes in that file.
    pub path_bytes: u64,
    /// Why there is no file although the output is long, or why it ends early.
    pub path_error: Option<String>,
}

impl OutputLog {
    /// An empty one.
    #[must_use]
    pub fn new(limits: OutputLimits) -> Self {
        Self {
            limits,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            lines: 0,
            last: None,
            file: Spill::NotNeeded,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.total += bytes.len() as u64;
        self.lines += memchr_count(b'\n', bytes);
        self.last = Some(*last);
        if matches!(self.file, Spill::NotNeeded) && self.total > (self.limits.head + self.limits.tail) as u64 {
            self.spill();
        }
        self.write_file(bytes);
        let to_head = bytes.len().min(self.limits.head - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        let rest = &bytes[to_head..];
        // Of a piece longer than the tail only its own end can stay.
        let rest = &rest[rest.len().saturating_sub(self.limits.tail)..];
        let overflow = (self.tail.len() + rest.len()).saturating_sub(self.limits.tail);
        self.tail.drain(..overflow);
        self.tail.extend(rest);
    }

    /// All bytes so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.total
    }

    /// Writes what is in memory, which is still everything, to a new file.
    fn spill(&mut self) {
        self.file = match create_file(&self.limits.directory, &self.limits.name) {
            Ok((file, path)) => Spill::Open { file, path, written: 0 },
            Err(error) => Spill::Failed(format!("cannot write to {}: {error}", self.limits.directory.display())),
        };
        let so_far: Vec<u8> = self.head.iter().chain(&self.tail).copied().collect();
        self.write_file(&so_far);
    }

    fn write_file(&mut self, bytes: &[u8]) {
        let Spill::Open { file, written, path } = &mut self.file else {
            return;
        };
        let room = self.limits.file.saturating_sub(*written);
        let taken = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        match file.write_all(&bytes[..taken]) {
            Ok(()) => *written += taken as u64,
            Err(error) => self.file = Spill::Failed(format!("cannot write to {}: {error}", path.display())),
        }
    }

    /// What there is so far.
    #[must_use]
    pub fn captured(&self) -> Captured {
        self.since(Mark::default())
    }

    /// Where the output is now, for [`OutputLog::since`].
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark {
            bytes: self.total,
            lines: self.lines,
        }
    }

    /// What came after `mark`.
    #[must_use]
    pub fn since(&self, mark: Mark) -> Captured {
        let unfinished = self.last.is_some_and(|byte| byte != b'\n');
        let mut captured = Captured {
            bytes: self.total - mark.bytes.min(self.total),
            lines: self.lines.saturating_sub(mark.lines) + u64::from(unfinished),
            ..Captured::default()
        };
        match &self.file {
            Spill::NotNeeded => {}
            Spill::Open { path, written, .. } => {
                captured.path = Some(path.clone());
                captured.path_bytes = *written;
                if *written < self.total {
                    captured.path_error = Some(format!("the file holds its first {written} bytes only"));
                }
            }
            Spill::Failed(why) => captured.path_error = Some(why.clone()),
        }
        let from = usize::try_from(mark.bytes).unwrap_or(usize::MAX);
        let head = self.head.get(from..).unwrap_or_default();
        let before_tail = self.total - self.tail.len() as u64;
        let skip = usize::try_from(mark.bytes.saturating_sub(before_tail)).unwrap_or(usize::MAX);
        let mut tail: Vec<u8> = self.tail.iter().skip(skip).copied().collect();
        if (head.len() + tail.len()) as u64 == captured.bytes {
            captured.head = [head, &tail].concat();
            return captured;
        }
        // Whole lines on both sides of the gap, where there are any within reach.
        let head_end = head
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(head.len(), |at| at + 1);
        captured.head = head[..head_end].to_vec();
        if let Some(at) = tail
            .iter()
            .position(|byte| *byte == b'\n')
            .filter(|at| at + 1 < tail.len())
        {
            tail.drain(..=at);
        }
        captured.left_out = captured.bytes - (captured.head.len() + tail.len()) as u64;
        captured.left_out_from_line = mark.lines + 1 + memchr_count(b'\n', &captured.head);
        captured.tail = tail;
        captured
    }
}

fn memchr_count(needle: u8, bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte == needle)).sum()
}

/// A new file in `directory`, which is made if need be and must be this user's alone.
fn create_file(directory: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    if let Some(parent) = directory.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // In a directory everyone can write to, somebody else may have made it first.
    let metadata = std::fs::symlink_metadata(directory)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is not a directory of this user",
        ));
    }
    remove_old(directory);
    for attempt in 0..1000 {
        let path = match attempt {
            0 => directory.join(format!("{name}.log")),
            n => directory.join(format!("{name}-{n}.log")),
        };
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes outputs nobody has written to for a week. Only files named as ours are, in a directory of this user's alone.
fn remove_old(directory: &Path) {
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7 * 24 * 3600);
    for entry in std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
    {
        let ours = entry.path().extension().is_some_and(|extension| extension == "log");
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        if ours && modified.is_ok_and(|modified| modified < old) {
            // Another session may have been faster.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(directory: &Path, head: usize, tail: usize, file: u64) -> OutputLimits {
        OutputLimits {
            head,
            tail,
            file,
            directory: directory.join("out"),
            name: "call".to_owned(),
        }
    }

    #[test]
    fn a_short_output_stays_whole_and_off_the_disk() {
        let home = tempfile::tempdir().unwrap();
        let mut log = OutputLog::new(limits(home.path(), 8, 8, 1000));
        log.push(b"one\ntwo\nthree\nx");
        let captured = log.captured();
        assert_eq!(captured.head, b"one\ntwo\nthree\nx");
        assert_eq!((captured.lines, captured.left_out, captured.path), (4, 0, None));
        assert!(!home.path().join("out").exists());
    }

    #[test]
    fn a_long_output_keeps_whole_lines_of_both_ends_and_all_in_the_file() {
        let home = tempfile::tempdir().unwrap();
        let mut log = OutputLog::new(limits(home.path(), 10, 10, 1000));
        let text: String = (1..=9).map(|n| format!("line {n}\n")).collect();
        for piece in text.as_bytes().chunks(5) {
            log.push(piece);
        }
        let captured = log.captured();
        assert_eq!(captured.head, b"line 1\n");
        assert_eq!(captured.tail, b"line 9\n");
        assert_eq!((captured.left_out, captured.left_out_from_line), (49, 2));
        assert_eq!(std::fs::read_to_string(captured.path.unwrap()).unwrap(), text);
    }

    #[test]
    fn the_file_is_capped_and_says_so() {
        let home = tempfile::tempdir().unwrap();
        let mut log = OutputLog::new(limits(home.path(), 4, 4, 20));
        log.push(&[b'a'; 50]);
        let captured = log.captured();
        assert_eq!((captured.bytes, captured.path_bytes, captured.tail.len()), (50, 20, 4));
        assert!(captured.path_error.unwrap().contains("first 20 bytes"));
        assert_eq!(std::fs::read(captured.path.unwrap()).unwrap().len(), 20);
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number_and_a_missing_place_is_told() {
        let home = tempfile::tempdir().unwrap();
        for expected in ["call.log", "call-1.log"] {
            let mut log = OutputLog::new(limits(home.path(), 1, 1, 100));
            log.push(b"long enough");
            assert!(log.captured().path.unwrap().ends_with(expected));
        }
        std::fs::write(home.path().join("file"), "").unwrap();
        let mut log = OutputLog::new(limits(&home.path().join("file"), 1, 1, 100));
        log.push(b"long enough");
        let captured = log.captured();
        assert!(captured.path.is_none() && captured.path_error.unwrap().contains("cannot write"));
        assert_eq!((captured.head, captured.tail), (b"l".to_vec(), b"h".to_vec()));
    }

    #[test]
    fn what_came_since_a_mark_is_told_alone() {
        let home = tempfile::tempdir().unwrap();
        let mut log = OutputLog::new(limits(home.path(), 8, 8, 1000));
        log.push(b"one\ntw");
        let mark = log.mark();
        assert_eq!(mark, Mark { bytes: 6, lines: 1 });
        log.push(b"o\nthree\n");
        assert_eq!(log.since(mark).head, b"o\nthree\n");
        log.push(b"four\nfive\nsix\n");
        let since = log.since(mark);
        assert_eq!((since.head, since.tail), (b"o\n".to_vec(), b"six\n".to_vec()));
        assert_eq!((since.bytes, since.left_out, since.left_out_from_line), (22, 16, 3));
        assert_eq!(log.since(log.mark()).bytes, 0);
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_was_written(
            pieces in prop::collection::vec(prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..40), 0..20),
            head in 0_usize..30,
            tail in 0_usize..30,
        ) {
            let home = tempfile::tempdir().unwrap();
            let mut log = OutputLog::new(limits(home.path(), head, tail, 1 << 20));
            for piece in &pieces {
                log.push(piece);
            }
            let all = pieces.concat();
            let captured = log.captured();
            prop_assert_eq!(captured.bytes, all.len() as u64);
            prop_assert_eq!(captured.lines, String::from_utf8_lossy(&all).split_inclusive('\n').count() as u64);
            prop_assert!(all.starts_with(&captured.head) && all.ends_with(&captured.tail));
            prop_assert_eq!(captured.head.len() + captured.tail.len() + usize::try_from(captured.left_out).unwrap(), all.len());
            prop_assert_eq!(captured.path.is_some(), all.len() > head + tail);
            if let Some(path) = captured.path {
                prop_assert_eq!(std::fs::read(path).unwrap(), all);
            }
        }
    }
}
