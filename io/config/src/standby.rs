//! A pair of servers, one of which serves and one follows: `[standby]`.

use super::section::Section;
use super::words::Secret;

/// Longest lease: ten minutes.
const LEASE_MS_MAX: u32 = 600_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandbyConfig {
    /// Common name of the servers of a pair; None: there is only one server.
    pub group: Option<String>,
    pub lease_ms: u32,
    /// Copies of the stream within a cluster of the broker.
    pub replicas: usize,
    /// Whether the operator confirms that the broker syncs before it acknowledges.
    pub broker_syncs: bool,
    /// Secret that only the servers of the group know; it proves that a message of the stream is
    /// theirs.
    pub secret: Option<Secret>,
}

impl StandbyConfig {
    pub(super) fn read(section: &mut Section<'_>) -> StandbyConfig {
        StandbyConfig {
            group: section.optional_name("group", 32),
            lease_ms: section.number("lease_ms", 300..=LEASE_MS_MAX),
            replicas: section.number("replicas", 1..=5),
            broker_syncs: section.flag("broker_syncs"),
            secret: section.secret("secret"),
        }
    }
}
