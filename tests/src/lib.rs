//! The test kit: a naive twin of the engine, whole platforms driven by a seed, and the invariants
//! that must always hold.

pub mod checks;
pub mod decode;
pub mod dice;
#[cfg(feature = "io")]
pub mod files_fuzz;
pub mod fix;
pub mod fix_fuzz;
pub mod flow;
#[cfg(feature = "io")]
pub mod hours;
#[cfg(feature = "io")]
pub mod journal_fuzz;
pub mod replay;
pub mod remote_protocol_fuzz;
pub mod shard_run;
pub mod external_venue;
pub mod shard_and_twin;
pub mod platform;
pub mod rest_fuzz;
pub mod seeds;
pub mod shard_harness;
pub mod stomp;
pub mod twin;
pub mod binance;
pub mod venue;
pub mod venue_shard;
pub mod websocket_fuzz;
pub mod workload;
pub mod test_market;
