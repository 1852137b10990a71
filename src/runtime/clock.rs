//! The time of events and records: milliseconds since the epoch, read once from the wall clock and then carried on by
//! the monotonic one, so that it never runs backwards within a process.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use once_cell::sync::Lazy;

static START: Lazy<(u64, Instant)> = Lazy::new(|| {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (
        u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
        Instant::now(),
    )
});

/// Now, in milliseconds since the epoch.
#[must_use]
pub fn now_ms() -> u64 {
    let (epoch_ms, start) = *START;
    epoch_ms.saturating_add(millis(start))
}

/// The milliseconds since `start`.
#[must_use]
pub fn millis(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}
