//! A disk that is written to in memory only: how a question sees the file with more on top, and how a check can let the
//! engine repair what it likes without changing anything.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::{BackendError, StorageBackend};

/// The unit in which changes are kept: a page of the engine.
const BLOCK: usize = 4096;

/// A view of a file, or of nothing, that is written to in memory only.
#[derive(Debug)]
pub(crate) struct CowDisk {
    base: Option<Box<dyn StorageBackend>>,
    state: Mutex<Cow>,
}

#[derive(Debug, Default)]
struct Cow {
    /// The length of the view.
    len: u64,
    /// How much of the base still shows: what was cut off once must read as zeros when the view grows again.
    base_len: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl CowDisk {
    pub(crate) fn new(base: Option<Box<dyn StorageBackend>>) -> io::Result<Self> {
        let len = base.as_ref().map_or(Ok(0), |base| base.len())?;
        Ok(Self {
            base,
            state: Mutex::new(Cow {
                len,
                base_len: len,
                blocks: BTreeMap::new(),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, Cow> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from the base, zeros where it does not reach.
    fn read_base(&self, base_len: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = base_len.saturating_sub(offset).min(out.len() as u64);
        let (have, beyond) = out.split_at_mut(usize::try_from(there).unwrap_or(0));
        beyond.fill(0);
        match &self.base {
            Some(base) if !have.is_empty() => base.read(offset, have),
            _ => Ok(()),
        }
    }
}

/// The blocks that `len` bytes at `offset` touch: number of the block, start within it, and how many bytes.
fn spans(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let start = usize::try_from(at % BLOCK as u64).unwrap_or(0);
        let take = (BLOCK - start).min(len - done);
        done += take;
        Some((at / BLOCK as u64, start, take))
    })
}

impl StorageBackend for CowDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > state.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if state.blocks.is_empty() {
            return self.read_base(state.base_len, offset, out);
        }
        let mut rest = out;
        let mut at = offset;
        for (block, start, take) in spans(offset, rest.len()) {
            let (part, after) = rest.split_at_mut(take);
            match state.blocks.get(&block) {
                Some(bytes) => part.copy_from_slice(&bytes[start..start + take]),
                None => self.read_base(state.base_len, at, part)?,
            }
            rest = after;
            at += take as u64;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        if len < state.len {
            state.base_len = state.base_len.min(len);
            let first_cut = len.div_ceil(BLOCK as u64);
            let _cut = state.blocks.split_off(&first_cut);
            let keep = usize::try_from(len % BLOCK as u64).unwrap_or(0);
            if keep > 0
                && let Some(block) = state.blocks.get_mut(&(len / BLOCK as u64))
            {
                block[keep..].fill(0);
            }
        }
        state.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let end = offset.checked_add(data.len() as u64);
        if end.is_none_or(|end| end > state.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = data;
        for (block, start, take) in spans(offset, data.len()) {
            let (part, after) = rest.split_at(take);
            if !state.blocks.contains_key(&block) {
                let mut bytes = vec![0; BLOCK].into_boxed_slice();
                if take < BLOCK {
                    self.read_base(state.base_len, block * BLOCK as u64, &mut bytes)?;
                }
                state.blocks.insert(block, bytes);
            }
            if let Some(bytes) = state.blocks.get_mut(&block) {
                bytes[start..start + take].copy_from_slice(part);
            }
            rest = after;
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        match &self.base {
            Some(base) => base.close(),
            None => Ok(()),
        }
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        match &self.base {
            Some(base) => base.try_lock_range(start, end),
            None => Err(BackendError::Unsupported),
        }
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        match &self.base {
            Some(base) => base.unlock_range(start, end),
            None => Err(BackendError::Unsupported),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Action {
        Write(u64, Vec<u8>),
        SetLen(u64),
        Read(u64, usize),
    }

    fn actions() -> impl Strategy<Value = Vec<Action>> {
        let action = prop_oneof![
            (0..20_000_u64, prop::collection::vec(any::<u8>(), 1..9000)).prop_map(|(at, data)| Action::Write(at, data)),
            (0..30_000_u64).prop_map(Action::SetLen),
            (0..30_000_u64, 1..9000_usize).prop_map(|(at, len)| Action::Read(at, len)),
        ];
        prop::collection::vec(action, 1..40)
    }

    proptest! {
        #[test]
        fn the_view_behaves_like_a_file_and_leaves_its_base_alone(
            base in prop::collection::vec(any::<u8>(), 0..20_000),
            actions in actions(),
        ) {
            let disk = redb::backends::InMemoryBackend::new();
            disk.set_len(base.len() as u64).unwrap();
            if !base.is_empty() {
                disk.write(0, &base).unwrap();
            }
            let cow = CowDisk::new(Some(Box::new(disk))).unwrap();
            let mut model = base.clone();
            for action in actions {
                match action {
                    Action::Write(at, data) => {
                        let end = at as usize + data.len();
                        let fits = end <= model.len();
                        prop_assert_eq!(cow.write(at, &data).is_ok(), fits);
                        if fits {
                            model[at as usize..end].copy_from_slice(&data);
                        }
                    }
                    Action::SetLen(len) => {
                        cow.set_len(len).unwrap();
                        model.resize(len as usize, 0);
                    }
                    Action::Read(at, len) => {
                        let mut out = vec![7; len];
                        let expected = model.get(at as usize..at as usize + len);
                        match cow.read(at, &mut out) {
                            Ok(()) => prop_assert_eq!(Some(out.as_slice()), expected),
                            Err(_) => prop_assert!(expected.is_none()),
                        }
                    }
                }
                prop_assert_eq!(cow.len().unwrap(), model.len() as u64);
            }
            let mut out = vec![0; base.len()];
            cow.base.as_ref().unwrap().read(0, &mut out).unwrap();
            prop_assert_eq!(out, base);
        }
    }
}
