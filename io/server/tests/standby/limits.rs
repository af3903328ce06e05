//! Bounds of a stream: removed files and old leaders are forgotten; and a folder that does not fit
//! into one window is sent nevertheless.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType, Stream};
use async_nats::jetstream::{self, Context};
use futures_util::TryStreamExt;
use pitlane_engine::index::{index_u8, index_u16};
use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::patience::{PATIENCE, until};
use pitlane_testkit::service::folder;
use tokio::runtime::{Builder, Runtime};

use super::pair::StandbyPair;

const STREAM: &str = "PITLANE_PITLANE_STANDBY_pair";
const PREFIX: &str = "pitlane.pitlane.standby.pair.";
/// As in `io/cluster/src/standby`.
const REMOVED_MAX: usize = 1_000;
const LEADS_MAX: usize = 1_000;

/// A client of the broker beside the servers.
pub(crate) struct BrokerClient {
    runtime: Runtime,
    context: Context,
}

impl BrokerClient {
    pub(crate) fn new(broker: &NatsBroker) -> BrokerClient {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        // By default the client waits five seconds, and the broker may be busy for longer.
        let options = ConnectOptions::new().connection_timeout(PATIENCE);
        let connected = async { jetstream::new(options.connect(broker.url()).await.unwrap()) };
        let mut context = runtime.block_on(connected);
        context.set_timeout(PATIENCE);
        BrokerClient { context, runtime }
    }

    fn stream(&self) -> Stream {
        self.runtime.block_on(self.context.get_stream(STREAM)).unwrap()
    }

    /// Returns the number of the last message.
    pub(crate) fn last(&self) -> u64 {
        self.stream().cached_info().state.last_sequence
    }

    /// Creates the stream as a server would, with a limit.
    pub(crate) fn make(&self, max_bytes: i64) {
        let made = self.context.create_stream(Config {
            name: STREAM.to_string(),
            subjects: vec![format!("{PREFIX}>")],
            storage: StorageType::File,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            duplicate_window: Duration::from_secs(10),
            max_bytes,
            ..Config::default()
        });
        self.runtime.block_on(made).unwrap();
    }

    /// Removes the stream.
    pub(crate) fn remove(&self) {
        self.runtime.block_on(self.context.delete_stream(STREAM)).unwrap();
    }

    /// Returns the number of messages by subject with this prefix.
    fn subjects(&self, beginning: &str) -> Vec<(String, usize)> {
        let stream = self.stream();
        let found = async {
            let info = stream.info_with_subjects(format!("{PREFIX}>")).await.unwrap();
            info.try_collect::<Vec<_>>().await.unwrap()
        };
        let beginning = format!("{PREFIX}{beginning}");
        let mut found = self.runtime.block_on(found);
        found.retain(|(subject, _)| subject.starts_with(&beginning));
        found
    }

    /// Stores a message, as a leader of this epoch would.
    fn store(&self, subject: &str, epoch: u64, kind: u8, path: &str, rest: &[u8]) {
        let mut bytes = vec![1, kind];
        bytes.extend_from_slice(&epoch.to_le_bytes());
        bytes.extend_from_slice(&index_u16(path.len()).to_le_bytes());
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(rest);
        // The node of each leader is its epoch.
        let id = format!("{epoch:x}.{epoch}.{}", self.last() + 1);
        let message = PublishMessage::build().payload(bytes.into()).message_id(id);
        let stored = async {
            let sent = self.context.send_publish(format!("{PREFIX}{subject}"), message).await;
            sent.unwrap().await.unwrap()
        };
        self.runtime.block_on(stored);
    }
}

#[test]
fn a_folder_larger_than_a_window_is_sent_whole_and_of_removed_files_the_first_are_forgotten() {
    const COUNT: usize = REMOVED_MAX + 5;
    let place = folder("standby-limits-files");
    let broker = NatsBroker::start(&place);
    let broker_client = BrokerClient::new(&broker);
    let mut pair = StandbyPair::at(&place, &broker.url());
    // The disk and the broker are busy for so long that a shorter lease could end.
    pair.settings.push("standby.lease_ms=10000".into());
    // Far more messages, and more bytes, than are in flight at once.
    let data = |at: usize| place.join(format!("server-{at}"));
    let name = |n: usize| format!("notes/filler-{n:04}");
    let text = |n: usize| vec![index_u8(n & 0xff); if n < 300 { 64 << 10 } else { 16 }];
    let notes: PathBuf = data(0).join("notes");
    fs::create_dir_all(&notes).unwrap();
    (0..COUNT).for_each(|n| fs::write(data(0).join(name(n)), text(n)).unwrap());
    pair.begin();
    for n in 0..COUNT {
        assert_eq!(fs::read(data(1).join(name(n))).ok(), Some(text(n)), "{n}");
    }
    (0..COUNT).for_each(|n| fs::remove_file(data(0).join(name(n))).unwrap());
    let mut subjects_left = Vec::new();
    until("all but the last are forgotten", || {
        subjects_left = broker_client.subjects("file.notes%2Ffiller-");
        subjects_left.len() <= REMOVED_MAX
    });
    assert!(subjects_left.iter().all(|(_, messages)| *messages == 1), "that they were removed");
    let subjects: Vec<&str> = subjects_left.iter().map(|(subject, _)| subject.as_str()).collect();
    let last = format!("{PREFIX}file.notes%2Ffiller-{:04}", COUNT - 1);
    assert!(subjects.len() == REMOVED_MAX && subjects.contains(&last.as_str()), "{}", subjects.len());
    until("they are gone there too", || !data(1).join(name(COUNT - 1)).exists());
    assert!((0..COUNT).all(|n| !data(1).join(name(n)).exists()));
    // A follower has everything it needs.
    pair.kill(0);
    pair.lead(1);
}

#[test]
fn of_many_leaders_the_first_are_forgotten_and_what_they_sent_is_read() {
    let place = folder("standby-limits-leaders");
    let broker = NatsBroker::start(&place);
    let broker_client = BrokerClient::new(&broker);
    broker_client.make(-1);
    let last = LEADS_MAX as u64 + 5;
    for epoch in 1..=last {
        let node = [&[0; 16][..], &u128::from(epoch).to_le_bytes()].concat();
        broker_client.store("lead", epoch, 1, "", &node);
        // Some have left data, which stay.
        if epoch < 4 {
            let path = format!("notes/old-{epoch}");
            broker_client.store(&format!("file.notes%2Fold-{epoch}"), epoch, 8, &path, &[]);
        }
        if epoch == last {
            broker_client.store("complete", epoch, 4, "", &[]);
            broker_client.store("lead", epoch, 2, "", &node);
        }
    }
    let leads = || broker_client.subjects("lead").first().map(|(_, messages)| *messages);
    assert!(leads() > Some(LEADS_MAX));
    let mut pair = StandbyPair::at(&place, &broker.url());
    pair.launch(0);
    pair.lead(0);
    until("the first are forgotten", || leads() == Some(LEADS_MAX));
    assert_eq!(broker_client.subjects("file.notes%2Fold-").len(), 3);
    pair.launch(1);
    pair.follow(1);
    pair.kill(0);
    pair.lead(1);
}
