//! A disk whose power fails: writes reach the platter at a sync, and at a cut a random part of what was not synced.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// A small deterministic generator (SplitMix64): the same seed is the same run everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

#[derive(Debug, Default)]
struct State {
    /// What survives any cut.
    platter: Vec<u8>,
    /// What the machine sees while it runs.
    memory: Vec<u8>,
    /// What was done since the last sync, oldest first.
    unsynced: Vec<Change>,
    /// Operations left until this process stops; `None` for no end.
    left: Option<u64>,
    /// Writes, syncs and changes of length since the process began.
    operations: u64,
    ignore_syncs: bool,
}

/// The disk; clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

impl Disk {
    /// A disk that says it synced and did not.
    pub fn that_ignores_syncs() -> Self {
        let disk = Self::default();
        disk.state().ignore_syncs = true;
        disk
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Lets a process run for `operations` writes, syncs and changes of length, after which everything fails for it.
    pub fn run_for(&self, operations: Option<u64>) {
        let mut state = self.state();
        state.left = operations;
        state.operations = 0;
    }

    /// Whether the process was stopped.
    pub fn is_stopped(&self) -> bool {
        self.state().left == Some(0)
    }

    /// The power fails: of what was not synced, a random part is on the platter, sector by sector.
    pub fn cut_power(&self, random: &mut Random) {
        let mut state = self.state();
        let state = &mut *state;
        // All of it, none of it, or some: each happens with real disks.
        let odds = [0, 0, 10, 50, 90, 100][usize::try_from(random.below(6)).unwrap()];
        for change in std::mem::take(&mut state.unsynced) {
            match change {
                Change::SetLen(len) => {
                    if random.below(100) < odds {
                        state.platter.resize(usize::try_from(len).unwrap(), 0);
                    }
                }
                Change::Write(offset, data) => {
                    let offset = usize::try_from(offset).unwrap();
                    for (n, sector) in data.chunks(SECTOR).enumerate() {
                        let at = offset + n * SECTOR;
                        if random.below(100) < odds {
                            // A write past the end that reached the platter made the file longer.
                            if state.platter.len() < at + sector.len() {
                                state.platter.resize(at + sector.len(), 0);
                            }
                            state.platter[at..at + sector.len()].copy_from_slice(sector);
                        }
                    }
                }
            }
        }
        state.memory = state.platter.clone();
        state.left = None;
    }
}

impl State {
    fn operation(&mut self) -> io::Result<()> {
        self.alive()?;
        self.operations += 1;
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                return Err(io::Error::other("the process stopped here"));
            }
        }
        Ok(())
    }

    fn alive(&self) -> io::Result<()> {
        if self.left == Some(0) {
            Err(io::Error::other("the process has stopped"))
        } else {
            Ok(())
        }
    }
}

fn end(offset: u64, len: usize) -> usize {
    usize::try_from(offset).unwrap() + len
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        let state = self.state();
        state.alive()?;
        Ok(state.memory.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        state.alive()?;
        let end = end(offset, out.len());
        let bytes = state.memory.get(end - out.len()..end);
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        state.memory.resize(usize::try_from(len).unwrap(), 0);
        state.unsynced.push(Change::SetLen(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        if state.ignore_syncs {
            return Ok(());
        }
        let state = &mut *state;
        for change in std::mem::take(&mut state.unsynced) {
            match change {
                Change::SetLen(len) => state.platter.resize(usize::try_from(len).unwrap(), 0),
                Change::Write(offset, data) => {
                    let end = end(offset, data.len());
                    if state.platter.len() < end {
                        state.platter.resize(end, 0);
                    }
                    state.platter[end - data.len()..end].copy_from_slice(&data);
                }
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        let end = end(offset, data.len());
        if state.memory.len() < end {
            state.memory.resize(end, 0);
        }
        state.memory[end - data.len()..end].copy_from_slice(data);
        state.unsynced.push(Change::Write(offset, data.to_vec()));
        Ok(())
    }
}
