//! Sessions with a counterparty whose messages are written as text.
#![expect(clippy::disallowed_types, reason = "a session's store can be sent to a thread, a shared one too")]

mod client;
mod client_parts;
mod client_reports;
mod venue;
mod venue_orders;
mod venue_prices;

use std::sync::{Arc, Mutex};

use pitlane_engine::id::{Origin, PortId, ShardId, Source};
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::*;
use crate::fix::frame::{SOH, check_sum};
use crate::fix::store::{MemoryStore, ReportedEvent, StoreFailed};
use crate::fix::timestamp::TimestampText;

/// 15 January 2027, 08:00.
pub(super) const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);

/// A store that several sessions have one after another, as the file of a session is opened again
/// after a restart.
#[derive(Clone, Debug)]
pub(super) struct SharedStore(Arc<Mutex<MemoryStore>>);

impl SharedStore {
    pub(super) fn new(now: Timestamp) -> SharedStore {
        SharedStore(Arc::new(Mutex::new(MemoryStore::new(now))))
    }
}

impl MessageStore for SharedStore {
    fn sequence_numbers(&self) -> SequenceNumbers {
        self.0.lock().unwrap().sequence_numbers()
    }

    fn set_sequence_numbers(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed> {
        self.0.lock().unwrap().set_sequence_numbers(numbers)
    }

    fn save(&mut self, number: u64, message: &[u8], cause: Option<ReportedEvent>) -> Result<(), StoreFailed> {
        self.0.lock().unwrap().save(number, message, cause)
    }

    fn last_reported_event(&self, shard: ShardId) -> u64 {
        self.0.lock().unwrap().last_reported_event(shard)
    }

    fn next_message(&self, from: u64, to: u64, into: &mut Vec<u8>) -> Option<u64> {
        self.0.lock().unwrap().next_message(from, to, into)
    }

    fn reset(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed> {
        self.0.lock().unwrap().reset(numbers)
    }

    fn refresh(&mut self) -> Result<(), StoreFailed> {
        self.0.lock().unwrap().refresh()
    }
}

/// Returns messages without the fields that are the same in all of them, and without times.
pub(super) fn messages_of(bytes: Vec<u8>) -> Vec<String> {
    let text = String::from_utf8(bytes).unwrap().replace(SOH as char, "|");
    let left_out = ["8=", "9=", "49=", "56=", "52=", "10=", "60=", "122="];
    let messages = text.split("8=FIX.4.4|").skip(1).map(|message| {
        let fields = message.split('|').filter(|field| !field.is_empty());
        let kept = fields.filter(|field| !left_out.iter().any(|tag| field.starts_with(tag)));
        kept.collect::<Vec<_>>().join("|")
    });
    messages.collect()
}

/// A session and the time.
struct Peer {
    session: FixSession,
    now: Timestamp,
    /// CompID and BeginString of the counterparty.
    name: &'static str,
    begin_string: &'static str,
}

impl Peer {
    /// Gives the session a message of the counterparty: its type, its number, and the rest. A text
    /// of its own after `52=` is its time.
    fn give(&mut self, kind: &str, number: u64, rest: &str) {
        let mut stamp = TimestampText::default();
        let sent = String::from_utf8(stamp.text(self.now).to_vec()).unwrap();
        let time = if rest.contains("52=") { String::new() } else { format!("52={sent}|") };
        let body = format!("35={kind}|49={}|56=PITLANE|34={number}|{time}{rest}", self.name);
        self.give_body(&body);
    }

    /// Gives the session a message with this body.
    fn give_body(&mut self, body: &str) {
        let body = body.replace('|', "\x01");
        let mut bytes = format!("8={}\x019={}\x01{body}", self.begin_string, body.len()).into_bytes();
        let sum = check_sum(&bytes);
        bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        assert_eq!(self.session.handle_bytes(self.now, &bytes), bytes.len());
    }

    /// Returns what the session has written and the counterparty takes: messages without the fields
    /// that are the same in all of them, and without times.
    fn output(&mut self) -> Vec<String> {
        let bytes = self.session.poll_transmit().to_vec();
        assert_eq!(self.session.unsent_bytes(), bytes.len());
        self.session.handle_transmitted(self.now, bytes.len());
        messages_of(bytes)
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now.plus(seconds * NS_PER_S);
    }
}
