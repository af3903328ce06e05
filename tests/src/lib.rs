//! How we know: a naive twin of the engine, whole platforms stepped by a seed, and what must always hold.

pub mod checks;
pub mod decode;
pub mod dice;
pub mod files_fuzz;
pub mod fix;
pub mod fix_fuzz;
pub mod flow;
pub mod hours;
pub mod journal_fuzz;
pub mod keep;
pub mod letters_fuzz;
pub mod life;
pub mod outside;
pub mod pair;
pub mod platform;
pub mod rest_fuzz;
pub mod seeds;
pub mod stage;
pub mod stomp;
pub mod twin;
pub mod venue;
pub mod websocket_fuzz;
pub mod workload;
pub mod world;
