//! How we know: a naive twin of the engine, whole platforms stepped by a seed, and what must always hold.

pub mod dice;
pub mod twin;
pub mod world;
