//! Keeps a panic of the database engine from ending the process.
//!
//! On a damaged file the engine may panic. That is caught and told; but a value of the engine that is dropped while the
//! panic unwinds finds the engine's locks poisoned, panics again, and a second panic ends the process: somebody's shell.
//! So while a panic unwinds, such values are forgotten. What they hold outside of memory, the file and its lock, is
//! released by [`super::open::Opened`].

use std::ops::{Deref, DerefMut};

/// A value that is dropped as usual, but forgotten while a panic unwinds.
pub(crate) struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// The value itself, for calls that take it.
    pub(crate) fn into_inner(mut self) -> T {
        match self.0.take() {
            Some(value) => value,
            None => unreachable!("taken only here and in drop, and both end the container"),
        }
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(self.0.take());
        }
    }
}

impl<T> Deref for Contained<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => unreachable!("taken only when the container ends"),
        }
    }
}

impl<T> DerefMut for Contained<T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.0 {
            Some(value) => value,
            None => unreachable!("taken only when the container ends"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    struct Bomb(Rc<Cell<bool>>);

    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.set(true);
            assert!(!std::thread::panicking(), "a second panic would end the process");
        }
    }

    #[test]
    fn a_value_is_dropped_but_not_while_a_panic_unwinds() {
        let dropped = Rc::new(Cell::new(false));
        drop(Contained::new(Bomb(Rc::clone(&dropped))));
        assert!(dropped.replace(false));
        drop(Contained::new(Bomb(Rc::clone(&dropped))).into_inner());
        assert!(dropped.replace(false));
        let bomb = Bomb(Rc::clone(&dropped));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _held = Contained::new(bomb);
            panic!("the engine found something it does not expect");
        }));
        assert!(caught.is_err());
        assert!(!dropped.get());
    }
}
