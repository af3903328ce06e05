//! How fast, and beside whom.

pub mod workload;

pub mod chance;
pub mod scenario;

pub mod floor;
pub mod naive;
#[cfg(feature = "peers")]
pub mod peers;

pub mod conditions;
pub mod measure;
