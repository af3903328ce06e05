//! Strategies to copy from.

pub mod market_maker;
pub mod moving_average;
