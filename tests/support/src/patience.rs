//! How long tests wait for what must happen. All wait equally long: a shorter limit of one of them
//! is the one that ends on a machine where other tests use the cores.

use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a wait; a later result never comes. Only a failing test waits this long.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Time between two looks at what is waited for, so that the servers have the cores.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until this holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    until_ok(what, || if holds() { Ok(()) } else { Err(String::new()) });
}

/// Waits until this returns no error; the last one is part of the failure.
#[track_caller]
pub fn until_ok(what: &str, mut look: impl FnMut() -> Result<(), String>) {
    let end = Instant::now() + PATIENCE;
    while let Err(found) = look() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what} {found}");
        thread::sleep(PAUSE);
    }
}
