//! What the http thread needs to run the cluster.

use std::sync::Arc;

use pitlane_cluster::nats::subjects::Subjects;
use pitlane_config::{ClusterConfig, Config, MemberConfig, NatsConfig};
use pitlane_engine::index::index_u8;
use pitlane_engine::refdata::RefData;
use pitlane_gateway::RemoteShards;
use pitlane_journal::PastEvents;
use pitlane_protocols::remote::cluster::MemberId;
use pitlane_runtime::wakeups::Wakeups;
use xxhash_rust::xxh3::xxh3_64;

pub struct ClusterParts {
    pub nats: NatsConfig,
    pub subjects: Subjects,
    pub settings: ClusterConfig,
    pub members: Vec<MemberConfig>,
    pub far: RemoteShards,
    pub wakeups: Arc<Wakeups>,
    /// The number of this start, see [`super::incarnations`].
    pub incarnation: u64,
    /// Hash of the settings that all members must share.
    pub map: u64,
    /// Maximum number of orders of each shard.
    pub orders_max: u32,
    /// By shard: events of other servers' orders, read from the journal.
    pub past: Vec<PastEvents>,
    /// By shard of other servers: the last event that all our FIX sessions have reported; `None` if
    /// there are no sessions.
    pub reported: Option<Vec<u64>>,
}

impl ClusterParts {
    /// Collects the parts from the configuration; `None` if there is no cluster.
    pub fn of(
        config: &Config,
        reference: &RefData,
        far: Option<RemoteShards>,
        wakeups: &Arc<Wakeups>,
    ) -> Option<ClusterParts> {
        let far = far.filter(|_| config.cluster.is_on())?;
        Some(ClusterParts {
            nats: config.nats.between_servers(),
            subjects: Subjects::of(&config.nats, &config.service),
            settings: config.cluster.clone(),
            members: config.members.clone(),
            far,
            wakeups: wakeups.clone(),
            incarnation: 0,
            map: shared_hash(config, reference),
            orders_max: config.shard.orders_max,
            past: Vec::new(),
            reported: None,
        })
    }

    /// Returns the number of this server among the members.
    pub(super) fn own(&self) -> MemberId {
        let at = self.members.iter().position(|member| member.name == self.settings.member);
        index_u8(at.expect("the settings were checked"))
    }

    /// Returns the first character of the ids that this server makes. Each server has its own, so
    /// that an id is unique.
    pub fn id_prefix(&self) -> u8 {
        b'A' + self.own()
    }
}

/// Hashes the settings that members must share into one number.
fn shared_hash(config: &Config, reference: &RefData) -> u64 {
    let members: Vec<_> = config.members.iter().map(|member| (&member.name, &member.shards)).collect();
    let (shards, instance, orders) =
        (config.topology.shards, config.service.instance, config.shard.orders_max);
    let text =
        format!("{shards} {instance} {orders} {:016x} {members:?}", pitlane_journal::name_of(reference));
    xxh3_64(text.as_bytes())
}
