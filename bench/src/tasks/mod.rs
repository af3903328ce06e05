//! What a subcommand asks for and how it is told, one file each.

pub mod builds;
pub mod endurance;
pub mod peers;
