//! Named gates: a place where a helper waits until the test lets it go on, and of which the test knows when it is
//! reached. They replace sleeping.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a test waits for something that must happen before it fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A condition that becomes true once.
#[derive(Clone, Default)]
pub struct Flag {
    inner: Arc<(Mutex<bool>, Condvar)>,
}

impl Flag {
    /// Makes it true.
    pub fn raise(&self) {
        *self.inner.0.lock().unwrap() = true;
        self.inner.1.notify_all();
    }

    /// Whether it is true.
    pub fn is_raised(&self) -> bool {
        *self.inner.0.lock().unwrap()
    }

    /// Waits at most `limit`; whether it is true then.
    pub fn wait_for(&self, limit: Duration) -> bool {
        let guard = self.inner.0.lock().unwrap();
        *self
            .inner
            .1
            .wait_timeout_while(guard, limit, |raised| !*raised)
            .unwrap()
            .0
    }

    /// Waits until it is true; fails the test with `what` if it does not become so.
    #[track_caller]
    pub fn wait(&self, what: &str) {
        assert!(self.wait_for(PATIENCE), "waited {PATIENCE:?} in vain: {what}");
    }
}

/// A gate: closed until the test opens it.
#[derive(Clone, Default)]
pub struct Gate {
    name: String,
    reached: Flag,
    open: Flag,
}

impl Gate {
    /// Lets everything through, now and later.
    pub fn open(&self) {
        self.open.raise();
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.open.is_raised()
    }

    /// Whether somebody stands, or stood, before the gate.
    pub fn is_reached(&self) -> bool {
        self.reached.is_raised()
    }

    /// Blocks the test until somebody stands before the gate.
    #[track_caller]
    pub fn wait_reached(&self) {
        self.reached.wait(&format!("nobody came to the gate {:?}", self.name));
    }

    /// The same for asynchronous tests.
    pub async fn reached(&self) {
        let gate = self.clone();
        tokio::task::spawn_blocking(move || gate.wait_reached()).await.unwrap();
    }

    /// Waits at the gate until it is open, asking `give_up` now and then; whether it opened.
    pub fn pass(&self, mut give_up: impl FnMut() -> bool) -> bool {
        self.reached.raise();
        loop {
            if self.open.wait_for(Duration::from_millis(2)) {
                return true;
            }
            if give_up() {
                return false;
            }
        }
    }
}

/// The gates of one helper by name; a gate is made when it is first named.
#[derive(Default)]
pub struct Gates(Mutex<HashMap<String, Gate>>);

impl Gates {
    /// The gate called `name`.
    pub fn get(&self, name: &str) -> Gate {
        let mut gates = self.0.lock().unwrap();
        let gate = gates.entry(name.to_owned()).or_insert_with(|| Gate {
            name: name.to_owned(),
            ..Gate::default()
        });
        gate.clone()
    }

    /// Opens all of them.
    pub fn open_all(&self) {
        for gate in self.0.lock().unwrap().values() {
            gate.open();
        }
    }
}

/// Waits until `condition` holds; fails the test with `what` if it does not come to.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
