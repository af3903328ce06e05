//! What a subcommand asks for and how it is told, one file each.

pub mod builds;
pub mod endurance;
pub mod engines;
pub mod everything;
pub mod fix;
pub mod http;
pub mod keeping;
pub mod peers;
pub mod stomp;
pub mod threads;

/// Where somebody has to spin against somebody else.
const NO_SECOND_CORE: &str = "skipped: two spinning threads need two cores, and here is one";
