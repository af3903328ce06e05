//! Clusters of servers: `[cluster]`, and `[[member]]` for each server.

use pitlane_engine::id::ShardId;
use pitlane_protocols::remote::cluster::MEMBERS_MAX;

use super::section::Section;

/// Longest time without a message from a member: a minute.
const LEASE_MS_MAX: u32 = 60_000;
/// Largest buffer for members that missed messages: 4 GiB.
const WINDOW_MB_MAX: usize = 4_096;

/// This server's part in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Name of the cluster; empty: this server is alone.
    pub name: String,
    /// Name of this server among the members.
    pub member: String,
    pub beat_ms: u32,
    pub lease_ms: u32,
    pub join_wait_ms: u32,
    /// Bytes of sent messages kept for members that missed them.
    pub window_bytes: usize,
    /// Events about orders of each member, kept across a restart.
    pub events_kept: usize,
}

impl ClusterConfig {
    pub(super) fn read(section: &mut Section<'_>) -> ClusterConfig {
        let cluster = ClusterConfig {
            name: section.text("name"),
            member: section.text("member"),
            beat_ms: section.number("beat_ms", 10..=LEASE_MS_MAX),
            lease_ms: section.number("lease_ms", 50..=LEASE_MS_MAX),
            join_wait_ms: section.number("join_wait_ms", 0..=LEASE_MS_MAX),
            window_bytes: section.number("window_mb", 1..=WINDOW_MB_MAX) << 20,
            events_kept: section.number("events_kept", 1_024..=10_000_000),
        };
        if cluster.lease_ms < 2 * cluster.beat_ms {
            section.fault("lease_ms", "it must be twice cluster.beat_ms at least");
        }
        if cluster.name.len() > 32 || !cluster.name.bytes().all(is_plain) {
            section.fault("name", "it must be 1 to 32 letters, digits, `-` or `_`, or empty");
        }
        cluster
    }

    pub fn is_on(&self) -> bool {
        !self.name.is_empty()
    }
}

fn is_plain(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_')
}

/// One server of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    pub name: String,
    /// Shards that this member owns.
    pub shards: Vec<u8>,
}

impl MemberConfig {
    pub(super) fn read(section: &mut Section<'_>) -> MemberConfig {
        MemberConfig { name: section.name("name", 32), shards: section.numbers("shards", 0..=ShardId::MAX) }
    }
}

/// Describes what is wrong with a list of members; None if nothing is.
pub(super) fn find_fault(cluster: &ClusterConfig, members: &[MemberConfig], shards: u8) -> Option<String> {
    if !(2..=MEMBERS_MAX).contains(&members.len()) {
        return Some(format!("a cluster has 2 to {MEMBERS_MAX} tables [[member]]"));
    }
    if members.iter().filter(|member| member.name == cluster.member).count() != 1 {
        return Some(format!("cluster.member must name one of them, not {:?}", cluster.member));
    }
    for shard in 0..shards {
        let owners = members.iter().flat_map(|member| &member.shards).filter(|own| **own == shard).count();
        if owners != 1 {
            return Some(format!("shard {shard} must have one owner, it has {owners}"));
        }
    }
    if members.iter().flat_map(|member| &member.shards).any(|shard| *shard >= shards) {
        return Some("there is no such shard: topology.shards counts those of all members".to_string());
    }
    (members.iter().any(|member| member.shards.is_empty())).then(|| "each member owns a shard".to_string())
}
