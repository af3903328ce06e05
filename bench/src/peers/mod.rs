//! Public order-book crates, driven by the same flow. Each adapter says what its crate lacks and how that was made up for.

pub mod lobster;
pub mod matchcore;
pub mod orderbook_rs;
