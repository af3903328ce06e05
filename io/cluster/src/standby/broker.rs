//! What a client can see of the broker, and whether that is enough for level `replicated`: for the
//! start and for `pitlane doctor`.
//!
//! A client sees the replicas, the storage and the limits of the stream, and the limits of its
//! account. It does not see `sync_interval`, the space that `max_file_store` leaves, or the free
//! space of the disk. Therefore the start warns of the first unless the operator confirms it
//! (`standby.broker_syncs`), and of the others only when the broker refuses to store something.

use std::time::Duration;

use async_nats::jetstream::stream::{DiscardPolicy, Info, StorageType};
use async_nats::jetstream::{self, Context};
use pitlane_config::{Config, Durability};
use serde::Deserialize;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::origin::Verifier;
use super::stream::GroupStream;
use crate::nats::subjects::Subjects;
use crate::nats::{Warning, link};

/// Longest time that the doctor waits for the broker.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// Number of messages at the end of the stream that the doctor examines.
const EXAMINED: u64 = 64;
/// Space for two snapshots of a shard and the journal between them, in multiples of the snapshot
/// interval.
const SNAPSHOTS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerFacts {
    /// Number of replicas; `None` if there is no stream yet.
    pub replicas: Option<usize>,
    pub is_in_memory: bool,
    /// Whether the stream removes messages by itself, by age or number.
    pub forgets: bool,
    /// Bytes that may still be stored under the limits that a client sees; `None` without a limit.
    pub free_bytes: Option<u64>,
    /// Number of messages at the end of the stream that no server of the group sent.
    pub foreign: usize,
}

/// The broker's report about our account. Further fields differ between its versions.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct AccountUse {
    storage: u64,
    limits: AccountLimits,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct AccountLimits {
    /// Storage limit in bytes; negative if there is none.
    max_storage: i64,
}

impl AccountUse {
    pub async fn of(context: &Context) -> Result<AccountUse, String> {
        let answer: serde_json::Value =
            context.request("INFO", b"").await.map_err(|error| error.to_string())?;
        serde_json::from_value(answer)
            .map_err(|_| "it has no JetStream, or does not report its limits".to_string())
    }
}

impl BrokerFacts {
    pub fn of(stream: Option<&Info>, account: AccountUse) -> BrokerFacts {
        let left = |limit: i64, used: u64| {
            u64::try_from(limit).ok().filter(|limit| *limit > 0).map(|limit| limit.saturating_sub(used))
        };
        let by_account = left(account.limits.max_storage, account.storage);
        let by_stream = stream.and_then(|info| left(info.config.max_bytes, info.state.bytes));
        let config = stream.map(|info| &info.config);
        BrokerFacts {
            replicas: config.map(|config| config.num_replicas.max(1)),
            is_in_memory: config.is_some_and(|config| config.storage == StorageType::Memory),
            forgets: config.is_some_and(|config| {
                config.discard == DiscardPolicy::Old && config.max_bytes > 0
                    || !config.max_age.is_zero()
                    || config.max_messages > 0
                    || config.max_messages_per_subject > 0
            }),
            free_bytes: [by_account, by_stream].into_iter().flatten().min(),
            foreign: 0,
        }
    }

    /// Returns warnings for the requirements of these settings that the broker does not meet.
    pub fn warnings(&self, config: &Config) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut warn =
            |found: String, remedy: &str| warnings.push(Warning { found, remedy: remedy.to_string() });
        let replicas = self.replicas.unwrap_or(config.standby.replicas);
        if self.is_in_memory {
            warn(
                "the broker keeps the stream of the standby in memory".to_string(),
                "stop both servers, remove the stream, and start them: they create it again, in files",
            );
        }
        if self.forgets {
            warn(
                "the stream of the standby has a limit by age or number: it forgets what a follower needs"
                    .to_string(),
                "remove max_age, max_msgs and max_msgs_per_subject from the stream",
            );
        }
        if replicas < config.standby.replicas {
            let found = format!(
                "the stream of the standby has {replicas} replicas, and standby.replicas asks for {}",
                config.standby.replicas
            );
            warn(found, "nats stream edit --replicas, with as many brokers in a cluster");
        }
        if config.durability() == Durability::Replicated && replicas == 1 && !config.standby.broker_syncs {
            let found = "level replicated, one broker, and no client can see when it syncs: by default every two minutes. If broker and leader lose \
                         their power together, acknowledged orders are only where the follower has read them".to_string();
            warn(
                found,
                "set `sync_interval: always` in the jetstream section of nats-server.conf (2.10 or later) and standby.broker_syncs = true; or three \
                         brokers and standby.replicas = 3",
            );
        }
        if self.foreign > 0 {
            let found = format!(
                "{} of the last {EXAMINED} messages in the stream of the standby are from no server of the group: they are skipped",
                self.foreign
            );
            warn(
                found,
                "check who may publish there: config/nats/pitlane.conf has the rights, and standby.secret makes forging impossible",
            );
        }
        let needed = needed(config);
        if let Some(free) = self.free_bytes.filter(|free| *free < needed) {
            let found = format!(
                "the broker has room for {} MiB, and the journal may need {} MiB",
                free >> 20,
                needed >> 20
            );
            warn(
                found,
                "raise the storage limit of the account or max_bytes of the stream; or lower journal.snapshot_every_bytes",
            );
        }
        warnings
    }
}

/// Returns the bytes that the stream may contain at once.
fn needed(config: &Config) -> u64 {
    let journal = &config.journal;
    (journal.segment_bytes as u64 + SNAPSHOTS * journal.snapshot_every_bytes) * config.topology.shards as u64
}

/// Queries the broker, for the doctor. It creates nothing there.
pub fn probe(config: &Config) -> Result<BrokerFacts, String> {
    let group = config.standby.group.clone().unwrap_or_default();
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let subjects = Subjects::of(&config.nats, &config.service);
    let queried = async {
        let nats = config.nats.between_servers();
        let opened = link::open(&nats, "pitlane doctor", subjects.server_inbox()).await;
        let (client, _) = opened.map_err(|error| error.to_string())?;
        let mut context = jetstream::new(client);
        context.set_timeout(ANSWER_MAX);
        let account = AccountUse::of(&context).await?;
        let (name, prefix) = subjects.standby(&group);
        let stream = context.get_stream(name).await.ok();
        let mut facts = BrokerFacts::of(stream.as_ref().map(|stream| stream.cached_info()), account);
        if let Some(stream) = stream {
            let verifier = Verifier::new(&prefix, config.standby.secret.as_ref());
            let stream = GroupStream::of(context, stream, prefix, verifier);
            facts.foreign = stream.foreign_of_last(EXAMINED).await?;
        }
        Ok(facts)
    };
    runtime.block_on(async {
        timeout(ANSWER_MAX, queried).await.unwrap_or_else(|_| Err("it does not answer".to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(replicas: usize, broker_syncs: bool) -> Config {
        let mut config = Config::default();
        config.standby.group = Some("pair".to_string());
        config.standby.replicas = replicas;
        config.standby.broker_syncs = broker_syncs;
        config
    }

    fn texts(facts: BrokerFacts, config: &Config) -> Vec<String> {
        facts.warnings(config).into_iter().map(|warning| warning.found).collect()
    }

    #[test]
    fn account_information_of_any_broker_version_is_read() {
        for (text, room) in [
            (
                r#"{"memory":0,"storage":5,"limits":{"max_memory":-1,"max_storage":-1},"api":{"total":1}}"#,
                None,
            ),
            (r#"{"storage":5,"reserved_storage":1,"limits":{"max_storage":12}}"#, Some(7)),
            (r#"{"storage":15,"limits":{"max_storage":12}}"#, Some(0)),
        ] {
            let account: AccountUse = serde_json::from_str(text).unwrap();
            assert_eq!(BrokerFacts::of(None, account).free_bytes, room);
        }
    }

    #[test]
    fn a_broker_that_cannot_keep_the_guarantee_is_warned_of() {
        let sound = BrokerFacts {
            replicas: Some(3),
            is_in_memory: false,
            forgets: false,
            free_bytes: None,
            foreign: 0,
        };
        assert_eq!(texts(sound, &config(3, false)), Vec::<String>::new());
        let alone = BrokerFacts { replicas: Some(1), ..sound };
        assert!(texts(alone, &config(1, false))[0].contains("no client can see when it syncs"));
        assert_eq!(texts(alone, &config(1, true)), Vec::<String>::new(), "the operator has confirmed it");
        assert_eq!(texts(alone, &config(3, true)).len(), 1, "fewer replicas than configured");
        assert_eq!(
            texts(BrokerFacts { replicas: None, ..sound }, &config(1, false)).len(),
            1,
            "a stream of one replica will be created"
        );
        for bad in [BrokerFacts { is_in_memory: true, ..sound }, BrokerFacts { forgets: true, ..sound }] {
            assert_eq!(texts(bad, &config(3, false)).len(), 1);
        }
        let needed = needed(&config(3, false));
        assert_eq!(
            texts(BrokerFacts { free_bytes: Some(needed), ..sound }, &config(3, false)),
            Vec::<String>::new()
        );
        assert!(
            texts(BrokerFacts { free_bytes: Some(needed - 1), ..sound }, &config(3, false))[0]
                .contains("has room for")
        );
        assert!(
            texts(BrokerFacts { foreign: 3, ..sound }, &config(3, false))[0]
                .contains("no server of the group")
        );
        let mut os = config(1, false);
        os.journal.level = Some(Durability::Os);
        assert_eq!(texts(alone, &os), Vec::<String>::new(), "this level does not promise it");
    }
}
