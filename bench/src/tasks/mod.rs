//! The options of each subcommand and the printing of its results, one file each.

pub mod builds;
pub mod endurance;
pub mod engines;
pub mod everything;
pub mod fix;
pub mod http;
pub mod isolation;
pub mod resources;
pub mod peers;
pub mod results;
pub mod stomp;
pub mod threads;

use pitlane_bench::conditions::{Conditions, Pinning};
use pitlane_bench::noise::Noise;

/// Printed where two threads would have to spin against each other.
const NO_SECOND_CORE: &str = "skipped: two spinning threads need two cores, and this machine has one";

/// The machine as it was when the run began.
pub struct RunEnvironment {
    pub pinning: Pinning,
    pub conditions: Conditions,
    pub noise: Noise,
}
