//! Reference data after a reload, on their way to every thread that uses them.
//!
//! ```text
//! main: files read, checked, stored under their name ─► mailbox ─► each shard: staged
//!   └─► http: the command that makes them effective, to all shards ─► done ─► its own copy, and mailbox ─► each gateway
//! ```
//!
//! So no thread uses a new security before all shards know it, and the journal has the command that
//! introduced it.

use std::sync::Arc;

use pitlane_engine::refdata::RefData;

use super::control::ControlSettings;

/// Maximum number of sets in transit to a thread: one, and one more before it was taken.
pub const RELOADS_MAX: usize = 2;

#[derive(Clone, Debug)]
pub struct ReloadedRefData {
    /// Name under which the journal stores them.
    pub name: u64,
    pub reference: Arc<RefData>,
    /// The settings that the shards need for them.
    pub control_settings: Arc<ControlSettings>,
}
