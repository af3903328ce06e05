//! Synchronisation types that threads share, named in one place: `tests/wake.rs` substitutes those
//! of a model checker.

pub use std::sync::Arc;
pub use std::sync::atomic::{AtomicBool, Ordering, fence};
