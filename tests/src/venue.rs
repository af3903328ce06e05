//! A FIX venue for tests: a session that connects to it and the shard behind it, on one thread
//! under a virtual clock. Bytes of the venue go in as they are cut; the session's output comes out
//! as readable messages.

use std::collections::BTreeSet;

use pitlane_dialogue::fix_fields;
use pitlane_engine::event::VenueRequest;
use pitlane_engine::id::{OrderHandle, ShardId};
use pitlane_engine::terms::{Changes, Side, SpecialTerms};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::session::{DisconnectReason, FixSession, FixSessionSettings, FixSessionState};
use pitlane_protocols::fix::venue::InitiatorSettings;

use crate::fix::{SharedStore, sent_on};
use crate::test_market;
use crate::venue_shard::{ReportedState, VenueShard, source};

/// Most cycles until everything sent must have been received.
const ROUNDS_MAX: usize = 10_000;

#[derive(Debug)]
pub struct VenueHarness {
    pub now: Timestamp,
    pub session: FixSession,
    pub store: SharedStore,
    pub settings: FixSessionSettings,
    pub venue: InitiatorSettings,
    pub shard: VenueShard,
    /// Bytes sent to the venue and not checked yet.
    wire: Vec<u8>,
    pub closed: Option<DisconnectReason>,
    /// Whether the venue reads.
    pub reads: bool,
    /// Whether instructions reach the session: if not, the process ends before it has stored a
    /// message of them.
    pub instructed: bool,
    never_sent: BTreeSet<OrderHandle>,
}

pub fn settings() -> FixSessionSettings {
    FixSessionSettings { reset_on_logon: false, ..FixSessionSettings::new("PITLANE", "VENUE", source()) }
}

impl VenueHarness {
    pub fn new(settings: FixSessionSettings, venue: InitiatorSettings) -> VenueHarness {
        let store = SharedStore::new(test_market::start(), 10_000);
        VenueHarness {
            now: test_market::start(),
            session: open(&settings, &venue, &store, BTreeSet::new()),
            store,
            settings,
            venue,
            shard: VenueShard::new(),
            wire: Vec::new(),
            closed: None,
            reads: true,
            instructed: true,
            never_sent: BTreeSet::new(),
        }
    }

    /// Kills the process and starts it again: the shard was recovered, the session has its store.
    pub fn restart(&mut self) {
        self.session.disconnect(self.now);
        // Read from the journal at each start, until a later message is stored.
        let never_sent = self.never_sent.clone();
        self.session = open(&self.settings, &self.venue, &self.store, never_sent);
        self.session.reject_never_sent();
        self.instructed = true;
        self.wire.clear();
        self.shard.restart();
        self.settle();
    }

    pub fn connect(&mut self) -> bool {
        self.closed = None;
        self.wire.clear();
        let connected = self.session.wants_connection(self.now) && self.session.connect(self.now);
        self.settle();
        connected
    }

    pub fn disconnect(&mut self) {
        self.session.disconnect(self.now);
        self.settle();
    }

    pub fn is_connected(&self) -> bool {
        self.session.state() != FixSessionState::Disconnected
    }

    /// Delivers bytes of the venue, cut as they are given.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let taken = self.session.handle_bytes(self.now, &bytes[at..]);
            self.settle();
            if taken == 0 {
                return;
            }
            at += taken;
        }
    }

    pub fn submit(&mut self, id: &str, side: Side, qty: &str, limit: &str) {
        self.shard.submit(id, side, qty, limit);
        self.settle();
    }

    /// Submits an order with special terms.
    pub fn submit_special(&mut self, id: &str, qty: &str, limit: &str, special: SpecialTerms) {
        self.shard.submit_special(id, qty, limit, special);
        self.settle();
    }

    /// Modifies an order, which has these special terms afterwards.
    pub fn replace_special(&mut self, id: &str, order: &str, qty: &str, special: SpecialTerms) {
        let changes = Changes::default().with_qty(test_market::qty(qty));
        match special.is_empty() {
            true => self.shard.replace(id, order, changes.with_special(false)),
            false => self.shard.replace_special(id, order, changes, special),
        }
        self.settle();
    }

    /// Submits a stop order, good for `until_ns` nanoseconds or until it is cancelled.
    pub fn submit_stop(&mut self, id: &str, side: Side, qty: &str, stop: &str, until_ns: Option<u64>) {
        self.shard.submit_stop(id, side, qty, stop, until_ns.map(|ns| self.now.plus(ns)));
        self.settle();
    }

    /// Lets the market of the security trade at this price.
    pub fn trade(&mut self, price: &str) {
        self.shard.trade(price, self.now);
        self.settle();
    }

    pub fn cancel(&mut self, id: &str, order: &str) {
        self.shard.cancel(id, order);
        self.settle();
    }

    /// Closes the whole position that the orders of this test make.
    pub fn close(&mut self, id: &str) {
        self.shard.close(id);
        self.settle();
    }

    pub fn replace(&mut self, id: &str, order: &str, qty: &str) {
        self.shard.replace(id, order, Changes::default().with_qty(test_market::qty(qty)));
        self.settle();
    }

    /// Returns what the client knows of the order with this first id.
    pub fn order(&self, id: &str) -> Option<&ReportedState> {
        self.shard.order(id)
    }

    /// Advances the time, and fires every timer at its time.
    pub fn wait(&mut self, ns: u64) {
        let until = self.now.plus(ns);
        while let Some(at) = self.session.poll_timeout().filter(|&at| at <= until) {
            if self.session.state() == FixSessionState::Disconnected {
                break;
            }
            self.now = self.now.max(at);
            self.session.handle_timeout(self.now);
            self.settle();
        }
        self.now = until;
        self.settle();
    }

    /// Runs all parts until none of them has work.
    pub fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut work = self.shard.poll(self.now);
            work += self.drain_instructions();
            work += self.shard.report(self.now, &mut self.session);
            work += self.transmit();
            if work == 0 {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn drain_instructions(&mut self) -> usize {
        let mut work = 0;
        while let Some((seq, instruction, special)) = self.shard.poll_instruction() {
            work += 1;
            if self.instructed {
                self.session.handle_instruction(self.now, ShardId(0), seq, &instruction, special.as_ref());
            } else if instruction.request == VenueRequest::New {
                self.never_sent.insert(instruction.order);
            }
        }
        work
    }

    fn transmit(&mut self) -> usize {
        let bytes = self.session.poll_transmit().to_vec();
        if !bytes.is_empty() && self.reads {
            self.session.handle_transmitted(self.now, bytes.len());
            self.wire.extend_from_slice(&bytes);
            return bytes.len();
        }
        if let Some(ending) = self.session.poll_close() {
            self.closed = Some(ending);
            self.session.disconnect(self.now);
            return 1;
        }
        0
    }

    /// Returns the messages sent to the venue since the last call, with `|` for SOH. Each must be
    /// well formed.
    pub fn sent(&mut self) -> Vec<String> {
        sent_on(&mut self.wire)
    }
}

fn open(
    settings: &FixSessionSettings,
    venue: &InitiatorSettings,
    store: &SharedStore,
    never_sent: BTreeSet<OrderHandle>,
) -> FixSession {
    FixSession::initiator(
        settings.clone(),
        venue.clone(),
        Box::new(store.clone()),
        test_market::reference(),
        never_sent,
    )
}

/// Returns a frame of the venue.
pub fn frame_of(text: &str, number: u64, now: Timestamp) -> Vec<u8> {
    fix_fields::frame_of(text, "VENUE", number, now)
}
