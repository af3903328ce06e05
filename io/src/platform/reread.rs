//! Reference data that were read again, on their way to every thread that goes by them.
//!
//! ```text
//! main: files read, checked, kept under their name ─► lanes ─► each shard: staged
//!   └─► http: the command that puts them into force, to all shards ─► done ─► its own copy, and lanes ─► each gateway
//! ```
//!
//! So nobody speaks of a new security before all shards know it, and the journal has the command that made it known.

use std::sync::Arc;

use pitlane_engine::refdata::RefData;

use super::control::Briefing;

/// Sets on their way to a thread: one, and one more before it was taken.
pub const REREADS_MAX: usize = 2;

#[derive(Clone, Debug)]
pub struct Reread {
    /// By which the journal keeps them.
    pub name: u64,
    pub reference: Arc<RefData>,
    /// What shards are to know of it.
    pub briefing: Arc<Briefing>,
}
