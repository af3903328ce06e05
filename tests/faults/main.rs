//! Faults of the disk: loss of power, kill, failed syncs, a full disk, damage. After each of them
//! nothing acknowledged is lost, nothing is duplicated, the state is the replay of what was written
//! up to that point, and its accounts add up. A short form runs with every test; `make faults` runs
//! everything.
//!
//! The tests in `io/server/tests/server` kill real processes, at every so many of their writes.

mod rig;
mod crash;
mod damage;
mod disk;

/// Returns whether all points are tested (`PITLANE_FAULTS=full`) or only one in so many.
fn is_full() -> bool {
    std::env::var("PITLANE_FAULTS").is_ok_and(|size| size == "full")
}
