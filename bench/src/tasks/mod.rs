//! The options of each subcommand and the printing of its results, one file each.

pub(crate) mod builds;
pub(crate) mod endurance;
pub(crate) mod engines;
pub(crate) mod everything;
pub(crate) mod fix;
pub(crate) mod http;
pub(crate) mod isolation;
pub(crate) mod levels;
pub(crate) mod market_data;
pub(crate) mod resources;
pub(crate) mod peers;
pub(crate) mod remote;
pub(crate) mod results;
pub(crate) mod stomp;
pub(crate) mod threads;

use pitlane_bench::conditions::{Conditions, Pinning};
use pitlane_bench::noise::Noise;

/// Printed where two threads would have to spin against each other.
const NO_SECOND_CORE: &str = "skipped: two spinning threads need two cores, and this machine has one";

/// The machine as it was when the run began.
pub(crate) struct RunEnvironment {
    pub pinning: Pinning,
    pub conditions: Conditions,
    pub noise: Noise,
}
