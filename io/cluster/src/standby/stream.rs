//! The stream of a group at the broker: replication messages in one total order, readable by all
//! servers.
//!
//! Every message is sent under the condition that nothing was stored since the sender last looked
//! (`Nats-Expected-Last-Sequence`). So the stream has one writer at a time: a server that takes the
//! lead has stored a message, and the previous leader is refused from then on.
//!
//! The sequence number alone is a sufficient condition only if the message with that number is
//! known to be the sender's. With several messages under way it is not: a new leader may have
//! received the number of the first lost message, and the second one would fit behind that.
//! Therefore each message has an id too, and a message sent behind an unacknowledged one names the
//! id of that one (`Nats-Expected-Last-Msg-Id`).
//!
//! Other clients that may publish on these subjects, and the broker itself, can store messages in
//! between: [`super::origin`] identifies them.
//!
//! ```text
//! PREFIX.lead                 who leads, and orderly releases            the last ones are kept
//! PREFIX.beat  .complete      heartbeat; the folder is complete          the last one is kept
//! PREFIX.reserve.NUMBER       space reserved for cancels                 removed if space runs out
//! PREFIX.file.PATH            a file, in pieces                          all pieces; then the removal
//! PREFIX.page.PATH.OFFSET     a page of a file that changes in place     the last one is kept
//! ```

use std::collections::VecDeque;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::{Config as StreamConfig, DiscardPolicy, State, StorageType};
use async_nats::jetstream::{self, Context};
use base64ct::{Base64, Encoding};
use bytes::Bytes;
use futures_util::future::join_all;
use pitlane_config::Secret;
use serde::{Deserialize, Serialize};

use super::broker::{AccountUse, BrokerFacts};
use super::message::{ReplicationKind, ReplicationMessage};
use super::origin::{LABEL, StreamMessage, VerifiedMessage, Verifier};
use crate::nats::subjects::segment;

/// Leaders that the stream remembers: far more than any late follower needs.
const LEADS_MAX: usize = 1_000;
const ROLLUP: &str = "Nats-Rollup";
const MESSAGE_ID: &str = "Nats-Msg-Id";
/// Error code of the broker for a message that does not exist.
const NO_MESSAGE_FOUND: u64 = 10_037;
/// Any subject: a message that the broker routes into the stream keeps its original subject.
const ANY: &str = ">";
const OTHER_SECRET: &str = "the stream was made by servers with another standby.secret, or with none. To change the secret: stop both \
                            servers, remove the stream, set the same standby.secret on both, and start the one that led last first";
/// Time for which the broker remembers message ids: much longer than a message is under way.
const IDS_KEPT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(super) struct GroupStream {
    context: Context,
    stream: jetstream::stream::Stream,
    name: String,
    prefix: String,
    verifier: Verifier,
}

/// The end of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamEnd {
    pub seq: u64,
    pub is_empty: bool,
    /// Last message; `None` if it was removed since.
    pub last: Option<StreamMessage>,
}

/// The current leader according to the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leader {
    pub epoch: u64,
    pub node: u128,
    /// Sequence number of the lead message.
    pub seq: u64,
}

/// The last lead or release message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastLeadMessage {
    pub epoch: u64,
    pub node: u128,
    pub seq: u64,
    /// Whether the leader has released the lead in an orderly shutdown.
    pub is_released: bool,
}

/// The only position at which a message may be stored.
#[derive(Clone, Debug)]
pub(super) struct ExpectedPosition {
    /// Sequence number that the message must get.
    pub seq: u64,
    pub id: String,
    /// Id of the preceding message, if that is the sender's own, of the same epoch, and not
    /// acknowledged yet; `None` if it is known to be stored.
    pub after: Option<String>,
}

/// The pending acknowledgement of a sent message.
pub(super) type PendingAck = Pin<Box<dyn Future<Output = Result<PublishAck, PublishError>> + Send>>;

impl GroupStream {
    /// Opens the stream, and creates it if necessary. The broker must answer within
    /// `answer_timeout`.
    pub(super) async fn open(
        client: &Client,
        (name, prefix): (String, String),
        replicas: usize,
        answer_timeout: Duration,
        secret: Option<&Secret>,
    ) -> Result<GroupStream, String> {
        let verifier = Verifier::new(&prefix, secret);
        let mut context = jetstream::new(client.clone());
        context.set_timeout(answer_timeout);
        let config = StreamConfig {
            name,
            subjects: vec![format!("{prefix}>")],
            storage: StorageType::File,
            num_replicas: replicas,
            // The stream never discards messages: the leader removes what a snapshot has made
            // unnecessary.
            discard: DiscardPolicy::New,
            allow_rollup: true,
            duplicate_window: IDS_KEPT,
            description: verifier.label(),
            ..StreamConfig::default()
        };
        let stream = context.get_or_create_stream(config).await.map_err(|error| error.to_string())?;
        // Servers that consider each other's messages foreign would lead side by side.
        let label = stream.cached_info().config.description.clone().filter(|label| label.starts_with(LABEL));
        if label != verifier.label() {
            return Err(OTHER_SECRET.to_string());
        }
        Ok(GroupStream::of(context, stream, prefix, verifier))
    }

    /// Wraps an existing stream.
    pub(super) fn of(
        context: Context,
        stream: jetstream::stream::Stream,
        prefix: String,
        verifier: Verifier,
    ) -> GroupStream {
        let name = stream.cached_info().config.name.clone();
        GroupStream { context, stream, name, prefix, verifier }
    }

    /// Returns how many of the last `count` messages no server of the group sent.
    pub(super) async fn foreign_of_last(&self, count: u64) -> Result<usize, String> {
        let last = self.last().await?;
        let (mut at, mut foreign) = (last.saturating_sub(count), 0);
        while at < last
            && let Some(found) = self.next(at).await?
        {
            at = found.seq;
            foreign += usize::from(found.content.is_err());
        }
        Ok(foreign)
    }

    /// Returns the id of a message at its position.
    pub(super) fn id(&self, message: &ReplicationMessage, bytes: &[u8], node: u128, seq: u64) -> String {
        self.verifier.id(message, bytes, node, seq)
    }

    /// Sends a message. The returned future resolves to whether it was stored.
    pub(super) async fn send(
        &self,
        message: &ReplicationMessage,
        bytes: Bytes,
        expected: ExpectedPosition,
    ) -> Result<PendingAck, PublishError> {
        let (subject, replaces) = subject_of(&self.prefix, &message.kind);
        // Two servers that ask for the same lead use different ids: otherwise the broker would
        // report the second one as stored.
        let ExpectedPosition { seq, id, after } = expected;
        let mut publish = PublishMessage::build().payload(bytes).message_id(id);
        if replaces {
            publish = publish.header(ROLLUP, "sub");
        }
        if let Some(after) = after {
            publish = publish.expected_last_message_id(after);
        }
        let sent = self.context.send_publish(subject, publish.expected_last_sequence(seq - 1)).await?;
        Ok(sent.into_future())
    }

    fn file_subject(&self, path: &str) -> String {
        file_of(&self.prefix, path)
    }

    /// Purges the removal message of a file, long after. If it fails, only a little space is lost.
    pub(super) async fn forget(&self, path: &str) {
        if let Err(error) = self.stream.purge().filter(self.file_subject(path)).await {
            tracing::debug!(path, %error, "the broker keeps a file that is gone");
        }
    }

    /// Releases the space that is reserved for cancels, message by message: nats-server 2.9.10 was
    /// seen to count messages purged by subject until it is restarted.
    pub(super) async fn release_reserve(&self) {
        let reserve = format!("{}reserve.*", self.prefix);
        let Ok(last) = self.last().await else { return };
        let mut seq = 0;
        while seq < last {
            let Ok(Some(found)) = self.first(&reserve, seq + 1).await else { return };
            seq = found.seq;
            if let Err(error) = self.stream.delete_message(seq).await {
                return tracing::debug!(%error, "the broker keeps the reserve");
            }
        }
    }

    /// Returns what the broker reports about the stream.
    pub(super) async fn facts(&self) -> Result<BrokerFacts, String> {
        let info = self.stream.get_info().await.map_err(|error| error.to_string())?;
        Ok(BrokerFacts::of(Some(&info), AccountUse::of(&self.context).await?))
    }

    /// Purges old leaders. Foreign messages on the same subject do not count: otherwise they would
    /// displace the remembered leaders.
    pub(super) async fn forget_leaders(&self) {
        let mut kept = VecDeque::new();
        let mut seq = 0;
        loop {
            match self.lead_from(seq + 1).await {
                Ok(Some(lead)) => seq = lead.seq,
                Ok(None) => break,
                Err(error) => return tracing::debug!(%error, "the broker keeps old leaders"),
            }
            kept.push_back(seq);
            if kept.len() > LEADS_MAX {
                kept.pop_front();
            }
        }
        let Some(first) = kept.front().filter(|_| kept.len() == LEADS_MAX) else { return };
        if let Err(error) = self.stream.purge().filter(self.lead_subject()).sequence(*first).await {
            tracing::debug!(%error, "the broker keeps old leaders");
        }
    }

    /// Returns the number of the last message, whether it still exists or not.
    pub(super) async fn last(&self) -> Result<u64, String> {
        Ok(self.state().await?.last_sequence)
    }

    async fn state(&self) -> Result<State, String> {
        Ok(self.stream.get_info().await.map_err(|error| error.to_string())?.state)
    }

    /// Returns the end of the stream.
    pub(super) async fn end(&self) -> Result<StreamEnd, String> {
        let State { last_sequence: seq, messages, .. } = self.state().await?;
        let is_empty = messages == 0;
        let last = if is_empty { None } else { self.at(seq).await? };
        Ok(StreamEnd { seq, is_empty, last })
    }

    /// Returns the message at this position; `None` if there is none, or it was removed.
    pub(super) async fn at(&self, seq: u64) -> Result<Option<StreamMessage>, String> {
        self.get(&MessageRequest { seq: Some(seq), ..MessageRequest::default() }).await
    }

    /// Returns the last leader; `None` if there never was one.
    pub(super) async fn leader(&self) -> Result<Option<LastLeadMessage>, String> {
        let request =
            MessageRequest { last_by_subj: Some(&self.lead_subject()), ..MessageRequest::default() };
        let Some(last) = self.get(&request).await? else { return Ok(None) };
        match decode_lead(&last) {
            Some(lead) => Ok(Some(lead)),
            None => self.last_verified_lead().await,
        }
    }

    /// Returns the last valid lead before foreign messages on its subject.
    async fn last_verified_lead(&self) -> Result<Option<LastLeadMessage>, String> {
        let mut last: Option<LastLeadMessage> = None;
        while let Some(next) = self.lead_from(last.map_or(0, |last| last.seq) + 1).await? {
            last = Some(next);
        }
        Ok(last)
    }

    /// Returns the epoch of the first leader that is remembered, or zero.
    pub(super) async fn first_epoch(&self) -> Result<u64, String> {
        Ok(self.lead_from(1).await?.map_or(0, |first| first.epoch))
    }

    /// Returns whether the stream is still the one that was read up to message `reach` under this
    /// leader: the leader took the lead at the same position, no other did before `reach`, and
    /// nothing was lost. This detects a broker that comes back with older data, even if others have
    /// stored messages since.
    pub(super) async fn has_history(&self, leader: Leader, reach: u64) -> Result<bool, String> {
        if self.last().await? < reach.max(leader.seq) {
            return Ok(false);
        }
        let Some(mut lead) = self.lead_from(leader.seq).await? else { return Ok(false) };
        let is_same = |lead: LastLeadMessage| (lead.epoch, lead.node) == (leader.epoch, leader.node);
        if lead.seq != leader.seq || lead.is_released || !is_same(lead) {
            return Ok(false);
        }
        while let Some(next) = self.lead_from(lead.seq + 1).await? {
            if !next.is_released {
                return Ok(next.seq > reach);
            }
            if !is_same(next) {
                return Ok(false);
            }
            lead = next;
        }
        Ok(true)
    }

    /// Returns the first lead or release message from this position on. Foreign messages are
    /// skipped.
    async fn lead_from(&self, mut seq: u64) -> Result<Option<LastLeadMessage>, String> {
        let last = self.last().await?;
        while seq <= last {
            let Some(found) = self.first(&self.lead_subject(), seq).await? else { return Ok(None) };
            match decode_lead(&found) {
                Some(lead) => return Ok(Some(lead)),
                None => seq = found.seq + 1,
            }
        }
        Ok(None)
    }

    fn lead_subject(&self) -> String {
        format!("{}lead", self.prefix)
    }

    /// Returns the next existing message after this one.
    ///
    /// Messages are read one after the other, by number: a consumer of the broker silently skips
    /// messages that it has not delivered yet when others are purged (seen with nats-server
    /// 2.9.10).
    pub(super) async fn next(&self, after: u64) -> Result<Option<StreamMessage>, String> {
        self.first(ANY, after + 1).await
    }

    /// Returns these messages in order, up to the first that does not exist.
    pub(super) async fn fetch_range(&self, from: u64, count: u64) -> Vec<StreamMessage> {
        let requested = (from..from + count).map(|seq| self.at(seq));
        join_all(requested).await.into_iter().map_while(|found| found.ok().flatten()).collect()
    }

    /// Returns the first message of a subject from this position on.
    async fn first(&self, subject: &str, from: u64) -> Result<Option<StreamMessage>, String> {
        self.get(&MessageRequest {
            seq: Some(from),
            next_by_subj: Some(subject),
            ..MessageRequest::default()
        })
        .await
    }

    /// Requests a message as the broker stores it. The client library's own call fails on headers
    /// that it cannot parse, and no reader would get past such a message.
    async fn get(&self, request: &MessageRequest<'_>) -> Result<Option<StreamMessage>, String> {
        let requested = self.context.request(format!("STREAM.MSG.GET.{}", self.name), request);
        let reply: MessageReply = requested.await.map_err(|error| error.to_string())?;
        match reply {
            MessageReply { message: Some(raw), .. } => {
                let stored = raw.decode().ok_or("the broker's answer cannot be read")?;
                Ok(Some(self.verifier.check(stored)))
            }
            MessageReply { error: Some(error), .. } if error.err_code == NO_MESSAGE_FOUND => Ok(None),
            MessageReply { error: Some(error), .. } => Err(error.description),
            MessageReply { .. } => Err("the broker's answer holds no message".to_string()),
        }
    }

    /// Subscribes to notifications of messages from this position on, with their numbers but
    /// without contents.
    pub(super) async fn subscribe(&self, from: u64) -> Result<Ordered, String> {
        let deliver_policy = DeliverPolicy::ByStartSequence { start_sequence: from.max(1) };
        let config = OrderedConfig { deliver_policy, headers_only: true, ..OrderedConfig::default() };
        let consumer = self.stream.create_consumer(config).await.map_err(|error| error.to_string())?;
        consumer.messages().await.map_err(|error| error.to_string())
    }
}

/// A message as the broker stores it.
#[derive(Clone, Debug)]
pub(super) struct FetchedMessage {
    pub subject: String,
    pub seq: u64,
    /// Message id; empty if there is none.
    pub id: String,
    pub payload: Bytes,
}

/// A request for one message.
#[derive(Debug, Default, Serialize)]
struct MessageRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_by_subj: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_by_subj: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
struct MessageReply {
    message: Option<RawMessage>,
    error: Option<RawError>,
}

#[derive(Debug, Deserialize)]
struct RawError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

/// A message whose headers and content are in base 64.
#[derive(Debug, Deserialize)]
struct RawMessage {
    subject: String,
    seq: u64,
    #[serde(default)]
    hdrs: String,
    #[serde(default)]
    data: String,
}

impl RawMessage {
    fn decode(self) -> Option<FetchedMessage> {
        let payload = Base64::decode_vec(&self.data).ok()?;
        let headers = Base64::decode_vec(&self.hdrs).ok()?;
        let id = String::from_utf8_lossy(&headers)
            .split("\r\n")
            .find_map(|line| Some(line.strip_prefix(MESSAGE_ID)?.strip_prefix(':')?.trim().to_string()))
            .unwrap_or_default();
        Some(FetchedMessage { subject: self.subject, seq: self.seq, id, payload: payload.into() })
    }
}

/// Returns the lead or release that a message contains; `None` for any other message.
fn decode_lead(found: &StreamMessage) -> Option<LastLeadMessage> {
    let Ok(VerifiedMessage { node, message: ReplicationMessage { epoch, kind } }) = &found.content else {
        return None;
    };
    kind.leader_node()?;
    let is_released = matches!(kind, ReplicationKind::Release { .. });
    Some(LastLeadMessage { epoch: *epoch, node: *node, seq: found.seq, is_released })
}

/// Returns the subject of a message, and whether only its last message counts.
pub(super) fn subject_of(prefix: &str, kind: &ReplicationKind) -> (String, bool) {
    match kind {
        ReplicationKind::Lead { .. } | ReplicationKind::Release { .. } => (format!("{prefix}lead"), false),
        ReplicationKind::Beat => (format!("{prefix}beat"), true),
        ReplicationKind::Reserve { number } => (format!("{prefix}reserve.{number}"), false),
        ReplicationKind::Complete => (format!("{prefix}complete"), true),
        // The removal replaces everything that was sent of the file.
        ReplicationKind::Removed(path) => (file_of(prefix, path), true),
        ReplicationKind::Append(piece) | ReplicationKind::Whole(piece) => {
            (file_of(prefix, &piece.path), piece.offset == 0)
        }
        ReplicationKind::Page(piece) => {
            (format!("{prefix}page.{}.{}", segment(&piece.path), piece.offset), true)
        }
    }
}

fn file_of(prefix: &str, path: &str) -> String {
    format!("{prefix}file.{}", segment(path))
}
