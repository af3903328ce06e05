//! Strategies to copy from.

pub mod market_maker;
pub mod moving_average;

pub use self::market_maker::MarketMaker;
pub use self::moving_average::MovingAverage;
