//! Public order-book crates, driven by the same flow. Each adapter describes what its crate lacks
//! and how the adapter replaces it.

pub mod lobster;
pub mod matchcore;
pub mod orderbook_rs;
