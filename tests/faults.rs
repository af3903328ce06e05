//! What the disk may do to us: loss of power, kill, failed syncs, a full disk, damage. After each of them: nothing that was
//! told is lost, nothing is there twice, the state is the replay of what was written up to there, and its books
//! add up. A short form runs with every test; `make faults` runs all of it.
//!
//! The process that is killed for good, at every so many of its writes, is `tests/server.rs`'s affair.

#[path = "faults/rig.rs"]
mod rig;
#[path = "faults/crash.rs"]
mod crash;
#[path = "faults/damage.rs"]
mod damage;
#[path = "faults/disk.rs"]
mod disk;

/// How much of it: one in so many points, by `PITLANE_FAULTS=full` all of them.
fn is_full() -> bool {
    std::env::var("PITLANE_FAULTS").is_ok_and(|size| size == "full")
}
