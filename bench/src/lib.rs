//! How fast, and beside whom.

pub mod workload;

pub mod chance;
pub mod scenario;

pub mod floor;
pub mod naive;
