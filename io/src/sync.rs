//! What threads share, named in one place: `tests/wake.rs` puts the parts of a model checker here instead.

pub use std::sync::Arc;
pub use std::sync::atomic::{AtomicBool, Ordering, fence};
