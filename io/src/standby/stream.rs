//! The stream of a group at the broker: parcels in one order, for all who ask.
//!
//! Everything is sent under the condition that nothing was stored since the sender last looked (`Nats-Expected-Last-Sequence`). So the order
//! has one writer at a time: whoever takes the lead has stored something, and whoever led before is refused from then on.
//!
//! A number alone says so only if the message with that number is known to be the sender's. Of several that are under way it is not: whoever
//! takes the lead may have got the number of the first that was lost, and the second would fit behind that. So each has an id too, and what is
//! sent behind something that is not acknowledged yet names the id of that (`Nats-Expected-Last-Msg-Id`).
//!
//! ```text
//! PREFIX.lead                 who leads, and that he ended               the last ones are kept
//! PREFIX.beat  .complete      that he lives; that all is there           the last one is kept
//! PREFIX.reserve.NUMBER       room for cancels                           removed when there is no other
//! PREFIX.file.PATH            a file, piece by piece                     all of it, until it is removed: then that
//! PREFIX.page.PATH.OFFSET     a page of a file that changes in place     the last one is kept
//! ```

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::LastRawMessageErrorKind::NoMessageFound;
use async_nats::jetstream::stream::{Config as StreamConfig, DiscardPolicy, State, StorageType};
use async_nats::jetstream::{self, Context};
use bytes::Bytes;
use futures_util::future::join_all;

use super::broker::{AccountUse, Facts};
use super::parcel::{Parcel, What};
use crate::nats::subjects::segment;

/// Leaders that the stream remembers: far more than anybody follows late.
const LEADS_MAX: u64 = 1_000;
const ROLLUP: &str = "Nats-Rollup";
const MESSAGE_ID: &str = "Nats-Msg-Id";
/// For so long the broker knows the ids of messages: much longer than one is under way.
const IDS_KEPT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Stream {
    context: Context,
    stream: jetstream::stream::Stream,
    prefix: String,
}

/// What is stored at the end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub seq: u64,
    /// Of whoever stored it; none: the stream is empty.
    pub epoch: Option<u64>,
    /// The server that stored it, where its id says so. After a roll-back two servers may have had the same epoch.
    pub node: Option<u128>,
}

/// Who leads, by the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    pub epoch: u64,
    pub node: u128,
    /// The message by which it took the lead.
    pub seq: u64,
}

/// What was last said about who leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastLead {
    pub epoch: u64,
    pub node: u128,
    pub seq: u64,
    /// Whether it has ended in good order.
    pub is_released: bool,
}

/// Where something is to be stored, and nowhere else.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Of the sender.
    pub node: u128,
    /// Its number.
    pub seq: u64,
    pub behind: Behind,
}

/// What is known of the message before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// It is stored.
    Stored,
    /// It is the sender's own, of the same epoch, and not acknowledged yet.
    Sent,
}

/// What became of something that was sent.
pub type Kept = Pin<Box<dyn Future<Output = Result<PublishAck, PublishError>> + Send>>;

impl Stream {
    /// The stream, made if need be. `patience` is how long an answer of the broker may take.
    pub async fn open(
        client: &Client,
        (name, prefix): (String, String),
        replicas: usize,
        patience: Duration,
    ) -> Result<Stream, String> {
        let mut context = jetstream::new(client.clone());
        context.set_timeout(patience);
        let config = StreamConfig {
            name,
            subjects: vec![format!("{prefix}>")],
            storage: StorageType::File,
            num_replicas: replicas,
            // It never forgets by itself: whoever leads removes what a snapshot has made needless.
            discard: DiscardPolicy::New,
            allow_rollup: true,
            duplicate_window: IDS_KEPT,
            ..StreamConfig::default()
        };
        let stream = context.get_or_create_stream(config).await.map_err(|error| error.to_string())?;
        Ok(Stream { context, stream, prefix })
    }

    /// Sends a parcel. What comes back tells whether it was stored.
    pub async fn send(&self, parcel: &Parcel, bytes: Bytes, place: Place) -> Result<Kept, PublishError> {
        let (subject, replaces) = self.subject(&parcel.what);
        let Place { node, seq, behind } = place;
        // Two who ask for the same lead must not have the same id: the second would be told that it is stored.
        let id = |seq: u64| format!("{node:x}.{}.{seq}", parcel.epoch);
        let mut message = PublishMessage::build().payload(bytes).message_id(id(seq));
        if replaces {
            message = message.header(ROLLUP, "sub");
        }
        if behind == Behind::Sent {
            message = message.expected_last_message_id(id(seq - 1));
        }
        let sent = self.context.send_publish(subject, message.expected_last_sequence(seq - 1)).await?;
        Ok(sent.into_future())
    }

    /// The subject, and whether only the last message of it counts.
    fn subject(&self, what: &What) -> (String, bool) {
        let prefix = &self.prefix;
        match what {
            What::Lead { .. } | What::Release { .. } => (format!("{prefix}lead"), false),
            What::Beat => (format!("{prefix}beat"), true),
            What::Reserve { number } => (format!("{prefix}reserve.{number}"), false),
            What::Complete => (format!("{prefix}complete"), true),
            // It takes the place of all that was sent of the file.
            What::Removed(path) => (self.file(path), true),
            What::Append(piece) | What::Whole(piece) => (self.file(&piece.path), piece.offset == 0),
            What::Page(piece) => (format!("{prefix}page.{}.{}", segment(&piece.path), piece.offset), true),
        }
    }

    fn file(&self, path: &str) -> String {
        format!("{}file.{}", self.prefix, segment(path))
    }

    /// Forgets that a file was removed, long after. If it fails only a little room is lost.
    pub async fn forget(&self, path: &str) {
        if let Err(error) = self.stream.purge().filter(self.file(path)).await {
            tracing::debug!(path, %error, "the broker keeps a file that is gone");
        }
    }

    /// Gives back the room that is kept for cancels. Message by message: nats-server 2.9.10 was seen to count what was purged by subject
    /// until it is started again.
    pub async fn release_reserve(&self) {
        let reserve = format!("{}reserve.*", self.prefix);
        let Ok(last) = self.last().await else { return };
        let mut seq = 0;
        while seq < last {
            let Ok(message) = self.stream.get_first_raw_message_by_subject(&reserve, seq + 1).await else {
                return;
            };
            seq = message.sequence;
            if let Err(error) = self.stream.delete_message(seq).await {
                return tracing::debug!(%error, "the broker keeps the reserve");
            }
        }
    }

    /// What the broker tells of how it keeps the stream.
    pub async fn facts(&self) -> Result<Facts, String> {
        let info = self.stream.get_info().await.map_err(|error| error.to_string())?;
        Ok(Facts::of(Some(&info), AccountUse::of(&self.context).await?))
    }

    /// Forgets who led long ago.
    pub async fn forget_leaders(&self) {
        if let Err(error) = self.stream.purge().filter(self.lead()).keep(LEADS_MAX).await {
            tracing::debug!(%error, "the broker keeps old leaders");
        }
    }

    /// The number of the last message, whether it is still there or not.
    pub async fn last(&self) -> Result<u64, String> {
        Ok(self.state().await?.last_sequence)
    }

    async fn state(&self) -> Result<State, String> {
        Ok(self.stream.get_info().await.map_err(|error| error.to_string())?.state)
    }

    /// What was stored last.
    pub async fn end(&self) -> Result<End, String> {
        let State { last_sequence: seq, messages, .. } = self.state().await?;
        if messages == 0 {
            return Ok(End { seq, epoch: None, node: None });
        }
        let last = self.stream.get_raw_message(seq).await.map_err(|error| error.to_string())?;
        let parcel = Parcel::decode(&last.payload).ok_or_else(strange)?;
        let id = last.headers.get(MESSAGE_ID).map(ToString::to_string);
        Ok(End { seq, epoch: Some(parcel.epoch), node: id.as_deref().and_then(node_of) })
    }

    /// Who led last; none: nobody ever did.
    pub async fn leader(&self) -> Result<Option<LastLead>, String> {
        match self.stream.get_last_raw_message_by_subject(&self.lead()).await {
            Ok(message) => Ok(Some(decode_lead(message.sequence, &message.payload)?)),
            Err(error) if error.kind() == NoMessageFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether the stream still is the one that was read up to message `reach` under this leader: it took the lead at the same place, no
    /// other did before `reach`, and nothing was lost. A broker that comes back with older data shows here, even if others have
    /// stored something since.
    pub async fn has_history(&self, leader: Leader, reach: u64) -> Result<bool, String> {
        if self.last().await? < reach.max(leader.seq) {
            return Ok(false);
        }
        let Some(mut lead) = self.lead_from(leader.seq).await? else { return Ok(false) };
        let is_same = |lead: LastLead| (lead.epoch, lead.node) == (leader.epoch, leader.node);
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

    /// What was first said about who leads, from this message on.
    async fn lead_from(&self, seq: u64) -> Result<Option<LastLead>, String> {
        if seq > self.last().await? {
            return Ok(None);
        }
        match self.stream.get_first_raw_message_by_subject(self.lead(), seq).await {
            Ok(message) => Ok(Some(decode_lead(message.sequence, &message.payload)?)),
            Err(error) if error.kind() == NoMessageFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn lead(&self) -> String {
        format!("{}lead", self.prefix)
    }

    /// The next message behind this one that is still there.
    ///
    /// One after the other, by number: a consumer of the broker passes over messages that it has not told yet when others are purged (seen with
    /// nats-server 2.9.10), and nothing would tell.
    pub async fn next(&self, after: u64) -> Result<Option<(u64, Bytes)>, String> {
        let all = format!("{}>", self.prefix);
        match self.stream.get_first_raw_message_by_subject(all, after + 1).await {
            Ok(message) => Ok(Some((message.sequence, message.payload))),
            Err(error) if error.kind() == NoMessageFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// These messages, as far as they are there: in their order, up to the first that is not.
    pub async fn some(&self, from: u64, count: u64) -> Vec<(u64, Bytes)> {
        let asked = (from..from + count).map(|seq| self.stream.get_raw_message(seq));
        let answers = join_all(asked).await.into_iter();
        answers.map_while(|found| found.ok().map(|message| (message.sequence, message.payload))).collect()
    }

    /// Rings for messages from this one on, with the number of each but without what is in it.
    pub async fn bell(&self, from: u64) -> Result<Ordered, String> {
        let deliver_policy = DeliverPolicy::ByStartSequence { start_sequence: from.max(1) };
        let config = OrderedConfig { deliver_policy, headers_only: true, ..OrderedConfig::default() };
        let consumer = self.stream.create_consumer(config).await.map_err(|error| error.to_string())?;
        consumer.messages().await.map_err(|error| error.to_string())
    }
}

fn decode_lead(seq: u64, payload: &Bytes) -> Result<LastLead, String> {
    match Parcel::decode(payload) {
        Some(Parcel { epoch, what: What::Lead { node } }) => {
            Ok(LastLead { epoch, node, seq, is_released: false })
        }
        Some(Parcel { epoch, what: What::Release { node } }) => {
            Ok(LastLead { epoch, node, seq, is_released: true })
        }
        Some(_) | None => Err(strange()),
    }
}

/// The sender, by the id of a message.
fn node_of(id: &str) -> Option<u128> {
    u128::from_str_radix(id.split_once('.')?.0, 16).ok()
}

fn strange() -> String {
    "a message of the stream is none of ours, or of another version".to_string()
}
