//! A leader beside a real broker, cycle by cycle.

use std::fs;

use async_nats::jetstream::stream::{Config as StreamConfig, DiscardPolicy, StorageType};
use pitlane_config::Config;
use pitlane_engine::index::index_usize;
use pitlane_journal::WriteMode;
use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::patience::PATIENCE;
use pitlane_testkit::temp_folder::TestFolder;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::super::message::BYTES_MAX;
use super::reserve::RESERVE_MAX;
use super::*;
use crate::nats::link;

const NAME: &str = "PAIR";
const PREFIX: &str = "pitlane.pair.";
const SHARD: &str = "journal/shard-00";
/// Longer than any test: no heartbeat is due.
const LEASE: Duration = Duration::from_secs(3_600);

/// More ticks than a leader needs to send what a test puts into its folder.
const TICKS_TO_SHIP: u64 = 20;
/// More ticks than pass until a leader tries to store the reserve again, and has stored it.
const TICKS_TO_RECOVER: u64 = 100;

/// A leader whose cycles the test runs.
struct TestLeader {
    place: TestFolder,
    context: async_nats::jetstream::Context,
    shipper: Shipper,
    _broker: NatsBroker,
}

impl TestLeader {
    /// Starts a broker whose stream has this maximum size, and a leader of the new group. The
    /// stream contains these snapshots of an earlier lead.
    async fn start(name: &str, max_bytes: i64, snapshots_sent: &[&str]) -> TestLeader {
        let place = TestFolder::new("cluster", name);
        for folder in [SHARD, "notes", "standby"] {
            fs::create_dir_all(place.join(folder)).unwrap();
        }
        let broker = NatsBroker::start(&place);
        let mut settings = Config::default().nats;
        settings.url = broker.url();
        let (client, broker_health) = link::open(&settings, name, "_INBOX".to_string()).await.unwrap();
        let context = async_nats::jetstream::new(client.clone());
        context.create_stream(stream_config(max_bytes)).await.unwrap();
        let stream =
            GroupStream::open(&client, (NAME.to_string(), PREFIX.to_string()), 1, PATIENCE, None).await;
        let mut manifest = Manifest::default();
        for snapshot in snapshots_sent {
            manifest.note(&ReplicationKind::Whole(piece(snapshot))).unwrap();
        }
        let at = Instant::now();
        let start = LeadStart { node: 1, epoch: 1, seq: 0, id: String::new(), at, manifest };
        let mut shipper = Shipper::new(start, stream.unwrap(), &place, LEASE, broker_health);
        shipper.changes = Some(FolderChanges::new(&place, vec![Arc::default()]));
        let kind = ReplicationKind::Lead { node: 1 };
        let message = ReplicationMessage { epoch: 1, kind };
        let (bytes, seq) = (message.encode(), 1);
        let id = shipper.stream.id(&message, &bytes, 1, seq);
        let expected = ExpectedPosition { seq, id: id.clone(), after: None };
        shipper.stream.send(&message, bytes, expected).await.unwrap().await.unwrap();
        (shipper.seq, shipper.acked.seq, shipper.acked.lead) = (1, 1, 1);
        (shipper.last_id, shipper.acked_id) = (id.clone(), id);
        TestLeader { place, context, shipper, _broker: broker }
    }

    /// Runs one cycle with a tick, and handles all answers to it.
    async fn tick(&mut self) {
        if !self.begin_tick().await {
            self.shipper.resolve().await.unwrap();
        }
        self.settle().await;
    }

    /// Runs one cycle with a tick, and handles the answers up to the first refusal. Returns whether
    /// there was none.
    async fn begin_tick(&mut self) -> bool {
        self.changes().tick = Instant::now();
        self.shipper.cycle().await.unwrap();
        while let Some(is_stored) = self.settle_next().await {
            if !is_stored {
                return false;
            }
        }
        true
    }

    /// Handles all answers; what is refused is sent again until it is stored.
    async fn settle(&mut self) {
        while let Some(is_stored) = self.settle_next().await {
            if !is_stored {
                self.shipper.resolve().await.unwrap();
            }
        }
    }

    /// Handles the answer to the oldest message: whether it is stored. `None` if there is none.
    async fn settle_next(&mut self) -> Option<bool> {
        let answer = self.shipper.window.sent.front_mut()?.pending_ack.as_mut().unwrap().await;
        let is_stored = self.shipper.is_stored(&answer);
        Some(self.shipper.settle(is_stored))
    }

    fn changes(&mut self) -> &mut FolderChanges {
        self.shipper.changes.as_mut().unwrap()
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        fs::write(self.place.join(path), bytes).unwrap();
    }

    fn write_mode(&mut self) -> WriteMode {
        self.changes().healths[0].write_mode()
    }

    fn is_shipped(&self) -> bool {
        self.shipper.shipped.is_none()
    }

    fn begin_shipping(&mut self) {
        self.shipper.shipped = Some(Box::new(|| {}));
    }
}

fn stream_config(max_bytes: i64) -> StreamConfig {
    StreamConfig {
        name: NAME.to_string(),
        subjects: vec![format!("{PREFIX}>")],
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        max_bytes,
        ..StreamConfig::default()
    }
}

fn piece(name: &str) -> FilePiece {
    FilePiece { path: format!("{SHARD}/{name}"), offset: 0, total: 1, bytes: vec![1].into() }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { timeout(PATIENCE, test).await.expect("it ends") };
    runtime.block_on(limited);
}

#[test]
fn the_reserve_for_cancels_is_stored_although_something_is_sent_at_every_tick() {
    run(async {
        let mut leader = TestLeader::start("reserve-under-load", -1, &[]).await;
        // More ticks than messages of the reserve: each of these is answered before another.
        for tick in 0..3 * u64::from(RESERVE_MAX) {
            // Another length is another version, however coarse the clock of the files is.
            leader.put("notes/load.note", &vec![7; index_usize(tick)]);
            leader.tick().await;
        }
        assert_eq!(leader.shipper.reserved, RESERVE_MAX);
        // Then the load is sent at every tick again.
        let before = leader.shipper.seq;
        leader.put("notes/load.note", b"later");
        leader.tick().await;
        assert_eq!(leader.shipper.seq, before + 1);
    });
}

#[test]
fn a_leader_whose_snapshot_found_no_space_at_its_start_becomes_ready_when_there_is_space() {
    run(async {
        let mut leader = TestLeader::start("full-at-start", 1 << 20, &[]).await;
        leader.begin_shipping();
        // The segments before the snapshot were removed, so no copy is usable without it.
        leader.put(&format!("{SHARD}/000000000007.seg"), &[]);
        leader.put(&format!("{SHARD}/000000000007.snap"), &vec![7; 4 * BYTES_MAX]);
        while leader.write_mode() != WriteMode::BrokerFull {
            leader.begin_tick().await;
        }
        leader.context.update_stream(stream_config(-1)).await.unwrap();
        leader.shipper.resolve().await.unwrap();
        leader.settle().await;
        for _ in 0..TICKS_TO_SHIP {
            leader.tick().await;
        }
        assert!(leader.is_shipped());
        // Orders are accepted when the reserve is complete.
        for _ in 0..TICKS_TO_RECOVER {
            leader.tick().await;
        }
        assert_eq!(leader.write_mode(), WriteMode::Open);
    });
}

#[test]
fn a_snapshot_that_no_copy_needs_leaves_the_space_for_cancels_of_a_new_leader() {
    run(async {
        // Less than the reserve: the previous leader has used the rest of it for cancels.
        let mut leader = TestLeader::start("full-restart", 1 << 20, &["000000000007.snap"]).await;
        leader.begin_shipping();
        leader.put(&format!("{SHARD}/000000000007.seg"), &[]);
        leader.put(&format!("{SHARD}/000000000007.snap"), &[1]);
        leader.put(&format!("{SHARD}/000000000009.snap"), &vec![7; 4 * BYTES_MAX]);
        for _ in 0..TICKS_TO_SHIP {
            leader.tick().await;
        }
        assert!(leader.is_shipped(), "it accepts cancels");
        for _ in 0..TICKS_TO_RECOVER {
            leader.tick().await;
        }
        assert_eq!(leader.write_mode(), WriteMode::BrokerFull);
        leader.put("notes/a-cancel.note", &[7; 1_000]);
        for _ in 0..TICKS_TO_SHIP {
            leader.tick().await;
        }
        assert!(leader.shipper.manifest.has("notes/a-cancel.note"), "what a cancel needs is stored");
    });
}
