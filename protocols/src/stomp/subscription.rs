//! One subscription of a session: its request, its unacknowledged messages, and the messages that
//! wait for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::body_format::BodyFormat;
use super::conflation::Conflation;
use super::encode;
use super::escape;
use super::frame::{Escaping, StompVersion};
use super::market::MarketDataTail;
use super::outbox::StompOutbox;
use super::pattern::{self, Pattern};
use super::rendered::Variant;
use super::slots::Slots;
use crate::json::push_number;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckMode {
    #[default]
    Auto,
    /// An acknowledgement covers all messages up to it.
    Client,
    ClientIndividual,
}

impl AckMode {
    pub fn from_wire_name(name: &str) -> Option<AckMode> {
        match name {
            "auto" => Some(AckMode::Auto),
            "client" => Some(AckMode::Client),
            "client-individual" => Some(AckMode::ClientIndividual),
            _ => None,
        }
    }
}

/// Headers of a SUBSCRIBE.
#[derive(Clone, Debug)]
pub struct SubscriptionRequest {
    /// Id; it may be absent in 1.0.
    pub id: Option<String>,
    pub destination: String,
    pub pattern: Pattern,
    pub ack: AckMode,
    /// Unacknowledged messages that are permitted, at most the limit.
    pub window: u32,
    /// Sequence number of the client's book, for a destination with one book.
    pub resume: Option<u64>,
    /// Nanoseconds within which market data is merged.
    pub conflate_ns: Option<u64>,
    pub format: BodyFormat,
    /// Whether messages of market data may share a frame; their format is binary then.
    pub is_batched: bool,
}

#[derive(Debug)]
pub struct Subscription {
    pub request: SubscriptionRequest,
    pub variant: Variant,
    place: u16,
    /// Head of a message up to its number.
    head: Vec<u8>,
    /// Text between the number and its repetition; empty without an `ack` header.
    ack_head: Vec<u8>,
    /// Rising numbers of unacknowledged messages.
    unacked: VecDeque<u64>,
    /// Messages that must not be lost, in order.
    pub backlog: VecDeque<QueuedMessage>,
    /// Waiting market data.
    pub slots: Slots,
    /// Market data that waits for the end of the window that the client requested.
    pub conflation: Option<Box<Conflation>>,
    /// Whether the destination has no wildcard.
    pub is_named: bool,
    /// Sequence number of the client's book, by topic.
    book_seqs: BTreeMap<u32, u64>,
    /// Turn of this subscription in the session's queues, see [`super::session`].
    pub backlog_turn: Option<u64>,
    pub slots_turn: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct QueuedMessage {
    pub turn: u64,
    pub tail: Arc<[u8]>,
}

impl Subscription {
    pub fn new(place: u16, version: StompVersion, request: SubscriptionRequest) -> Subscription {
        let escaping = Escaping::of(Some(version));
        let mut head = b"MESSAGE\n".to_vec();
        if let Some(id) = &request.id {
            head.extend_from_slice(b"subscription:");
            escape::push(&mut head, id.as_bytes(), escaping);
            head.push(b'\n');
        }
        head.extend_from_slice(b"message-id:");
        push_number(&mut head, place.into());
        head.push(b'-');
        let mut ack_head = Vec::new();
        if version == StompVersion::V12 && request.ack != AckMode::Auto {
            ack_head.extend_from_slice(b"\nack:");
            push_number(&mut ack_head, place.into());
            ack_head.push(b'-');
        }
        Subscription {
            variant: Variant { alias: request.pattern.alias(), escaping, format: request.format },
            conflation: request.conflate_ns.map(Conflation::new).map(Box::new),
            is_named: request.pattern.is_exact(),
            request,
            place,
            head,
            ack_head,
            unacked: VecDeque::new(),
            backlog: VecDeque::new(),
            slots: Slots::default(),
            book_seqs: BTreeMap::new(),
            backlog_turn: None,
            slots_turn: None,
        }
    }

    /// Returns whether the window permits one more unacknowledged message.
    pub fn has_room(&self) -> bool {
        self.request.ack == AckMode::Auto || self.unacked.len() < self.request.window as usize
    }

    /// Returns whether a topic waits for its turn or for the end of the window.
    pub fn is_waiting(&self, topic: u32) -> bool {
        self.slots.contains(topic) || self.conflation.as_ref().is_some_and(|held| held.contains(topic))
    }

    /// Returns the number of waiting topics.
    pub fn waiting_topics(&self) -> usize {
        self.slots.len() + self.conflation.as_ref().map_or(0, |held| held.len())
    }

    /// Returns the sequence number of the client's book, if it has one.
    pub fn book_seq(&self, topic: u32) -> Option<u64> {
        self.book_seqs.get(&topic).copied().or(self.request.resume)
    }

    pub fn set_book_seq(&mut self, topic: u32, seq: u64) {
        self.book_seqs.insert(topic, seq);
    }

    /// Appends a message under its number.
    pub fn encode(&mut self, outbox: &mut StompOutbox, number: u64, tail: &[u8]) {
        outbox.frame(|out| {
            out.reserve(self.head.len() + self.ack_head.len() + 40 + tail.len());
            self.push_head(out, number);
            out.extend_from_slice(tail);
        });
        self.note_unacked(number);
    }

    /// Appends a message of market data: to the frame before it if both may share one, else in a
    /// frame under this number. Returns whether it took the number.
    pub fn encode_market_data(
        &mut self,
        outbox: &mut StompOutbox,
        number: u64,
        tail: &MarketDataTail,
    ) -> bool {
        if !self.request.is_batched {
            self.encode(outbox, number, tail.bytes());
            return true;
        }
        let body = tail.body();
        if outbox.join(self.place, body) {
            return false;
        }
        outbox.shared_frame(self.place, body.len(), |out| {
            self.push_head(out, number);
            // Topics of the messages differ, so their frame has the name of the subscription.
            let name = pattern::topic_of(&self.request.destination).unwrap_or_default();
            let name = [name.as_bytes(), b"".as_slice()];
            let Variant { format, escaping, .. } = self.variant;
            encode::message_tail(out, name, tail.at(), (format, body), escaping);
        });
        self.note_unacked(number);
        true
    }

    fn push_head(&self, out: &mut Vec<u8>, number: u64) {
        out.extend_from_slice(&self.head);
        push_number(out, number);
        if !self.ack_head.is_empty() {
            out.extend_from_slice(&self.ack_head);
            push_number(out, number);
        }
    }

    fn note_unacked(&mut self, number: u64) {
        if self.request.ack != AckMode::Auto {
            self.unacked.push_back(number);
        }
    }

    pub fn is_unacked(&self, number: u64) -> bool {
        self.unacked.binary_search(&number).is_ok()
    }

    /// Handles ACK or NACK. They have the same effect, because nothing is resent.
    pub fn acknowledge(&mut self, number: u64) {
        let Ok(at) = self.unacked.binary_search(&number) else { return };
        if self.request.ack == AckMode::Client {
            self.unacked.drain(..=at);
        } else {
            self.unacked.remove(at);
        }
    }
}

/// Id of a message in the headers `message-id` and `ack`: place of the subscription and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageId {
    pub place: u16,
    pub number: u64,
}

impl MessageId {
    pub fn parse(text: &str) -> Option<MessageId> {
        let (place, number) = text.split_once('-')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(place) || !is_number(number) {
            return None;
        }
        Some(MessageId { place: place.parse().ok()?, number: number.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::Timestamp;

    use super::*;
    use crate::stomp::topic::Naming;

    fn subscription(version: StompVersion, ack: AckMode) -> Subscription {
        let destination = "/topic/tick.*".to_string();
        let pattern = Pattern::parse(&destination, &Naming::default()).unwrap();
        let id = Some("a:1".to_string());
        let request = SubscriptionRequest {
            id,
            destination,
            pattern,
            ack,
            window: 2,
            resume: None,
            conflate_ns: None,
            format: BodyFormat::Json,
            is_batched: false,
        };
        Subscription::new(3, version, request)
    }

    #[test]
    fn a_message_is_a_head_a_number_and_a_tail() {
        let mut tail = Vec::new();
        let body = (BodyFormat::Json, b"{}".as_slice());
        encode::message_tail(&mut tail, [b"tick", b".1"], Timestamp::ZERO, body, Escaping::None);
        let rest = "\ndestination:/topic/tick.1\ncontent-type:application/json\ntimestamp:0\ncontent-length:2\n\n{}\0";
        for (version, ack, head) in [
            (StompVersion::V10, AckMode::Auto, "MESSAGE\nsubscription:a:1\nmessage-id:3-7"),
            (StompVersion::V11, AckMode::Client, "MESSAGE\nsubscription:a\\c1\nmessage-id:3-7"),
            (StompVersion::V12, AckMode::Client, "MESSAGE\nsubscription:a\\c1\nmessage-id:3-7\nack:3-7"),
        ] {
            let mut outbox = StompOutbox::default();
            subscription(version, ack).encode(&mut outbox, 7, &tail);
            let bytes = outbox.transmit(usize::MAX, 9).bytes.to_vec();
            assert_eq!(String::from_utf8(bytes).unwrap(), format!("{head}{rest}"));
        }
    }

    #[test]
    fn an_acknowledgement_covers_one_or_all_earlier_messages() {
        for (ack, left) in [(AckMode::Client, vec![]), (AckMode::ClientIndividual, vec![1])] {
            let mut subscription = subscription(StompVersion::V12, ack);
            let mut outbox = StompOutbox::default();
            subscription.encode(&mut outbox, 1, b"");
            assert!(subscription.has_room());
            subscription.encode(&mut outbox, 2, b"");
            assert!(!subscription.has_room() && subscription.is_unacked(2) && !subscription.is_unacked(3));
            subscription.acknowledge(9);
            assert!(!subscription.has_room());
            subscription.acknowledge(2);
            assert!(subscription.has_room());
            assert_eq!(subscription.unacked, left);
        }
    }

    #[test]
    fn a_message_id_is_two_numbers() {
        assert_eq!(MessageId::parse("3-17"), Some(MessageId { place: 3, number: 17 }));
        for bad in ["", "3", "-", "3-", "-1", "3-+1", "70000-1", "3-1-1", "a-1"] {
            assert_eq!(MessageId::parse(bad), None, "{bad}");
        }
    }
}
