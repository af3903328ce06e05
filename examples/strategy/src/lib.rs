//! A strategy in a crate of its own: [`mean_reversion`] is the strategy, [`market`] a shard with a
//! simulated venue to try it on.

pub mod market;
pub mod mean_reversion;
