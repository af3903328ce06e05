//! The whole path of a FIX order except sockets, files and threads: bytes into a session, its
//! command through desk, lane, worker and shard, and both reports as bytes. Everything runs in one
//! thread, so that the cost can be counted.

use std::sync::Arc;

use pitlane_config::pages::LARGE_PAGES;
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock};
use pitlane_engine::id::{AccountId, Origin, PortId, Source};
use pitlane_engine::index::{index_u32, index_usize};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::sender::SenderId;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_engine::worker::Worker;
use pitlane_protocols::fix::session::{FixSession, FixSessionSettings};
use pitlane_protocols::fix::store::MemoryStore;
use pitlane_protocols::fix::timestamp::TimestampText;

use crate::fix::append_message;
use crate::measure::spent;
use crate::platform::{self, START};
use crate::workload::Workload;

const SOURCE: Source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };
/// Orders that arrive in one read.
const BATCH: usize = 64;
/// Virtual nanoseconds between two reads.
const STEP_NS: u64 = 10 * NS_PER_MS;
/// Most orders that one session knows at once. All of them stay open.
pub const ORDERS_MAX: usize = 100_000;

/// Returns the nanoseconds per order, for at most [`ORDERS_MAX`] orders.
pub fn path_ns(orders: usize) -> f64 {
    assert!(orders <= ORDERS_MAX, "all orders stay open, and a session knows no more");
    let mut path = FixPath::new();
    let batches: Vec<Vec<u8>> = (0..orders)
        .step_by(BATCH)
        .map(|first| (first..orders.min(first + BATCH)).flat_map(order).collect())
        .collect();
    let (ns, reports) =
        spent(|| batches.iter().enumerate().map(|(nth, batch)| path.handle_bytes(nth, batch)).sum());
    let reports: usize = reports;
    assert_eq!(reports, 2 * orders, "every order is pending, then new");
    ns / orders.max(1) as f64
}

struct FixPath {
    session: FixSession,
    desk: Desk,
    port: PortEnd,
    worker: Worker,
}

impl FixPath {
    fn new() -> FixPath {
        let (shard, outbox) = platform::shard_for(&Workload::empty());
        let (mut ports, mut ends) = mesh(&[PortClass::Client], 1, Depths::default());
        let settings = DeskSettings {
            port: SOURCE.port,
            shards: 1,
            orders_max: index_u32(ORDERS_MAX),
            ids_max: index_u32(2 * ORDERS_MAX),
            finished_max: 1_024,
            prefix: b'f',
            seed: 1,
            pages: LARGE_PAGES,
        };
        let mut session = FixSessionSettings::new("PITLANE", "CLIENT1", SOURCE);
        session.account = Some(AccountId(1));
        let store = Box::new(MemoryStore::with_max(START, 1_024));
        let mut path = FixPath {
            session: FixSession::new(session, store, Arc::new(platform::reference(1))),
            desk: Desk::new(settings, IdBlock { next: 1, end: 1_000_000 }),
            port: ports.remove(0),
            worker: Worker::restored(shard, ends.remove(0), outbox.seq(), START),
        };
        path.session.set_ready(true);
        assert!(path.session.connect(START), "it is the first connection");
        path.handle_bytes(0, &framed("A", 1, START, "98=0\x01108=0\x01141=Y\x01"));
        path
    }

    /// Processes bytes that arrived in one read, and returns how many messages were sent.
    fn handle_bytes(&mut self, nth: usize, bytes: &[u8]) -> usize {
        let now = at(nth);
        let sent_before = self.session.counts().messages_out;
        let mut rest = bytes;
        loop {
            let consumed = self.session.handle_bytes(now, rest);
            rest = &rest[consumed..];
            let mut commands = 0;
            while let Some(request) = self.session.poll_command(now, &self.desk) {
                request.send(&mut self.desk, &mut self.port, SenderId::NONE).expect("the lane holds a batch");
                commands += 1;
            }
            self.worker.poll(now);
            let FixPath { session, desk, port, .. } = self;
            while port
                .poll_event_with(|shard, event| {
                    desk.handle_event(shard, event);
                    session.handle_event(now, shard, event, desk);
                })
                .is_some()
            {}
            let written = session.poll_transmit().len();
            session.handle_transmitted(now, written);
            if consumed + commands + written == 0 {
                break;
            }
        }
        index_usize(self.session.counts().messages_out - sent_before)
    }
}

fn at(batch: usize) -> Timestamp {
    START.plus(batch as u64 * STEP_NS)
}

/// Builds an order that rests; its sequence number follows that of the Logon.
fn order(nth: usize) -> Vec<u8> {
    let at = at(nth / BATCH);
    let time = String::from_utf8_lossy(TimestampText::default().text(at)).into_owned();
    let body = format!(
        "11=order-{nth:06}\x0155=S0\x0154=1\x0138={}\x0140=2\x0144=0.01\x0159=1\x0160={time}\x01",
        1 + nth % 900
    );
    framed("D", nth as u64 + 2, at, &body)
}

fn framed(msg_type: &str, number: u64, at: Timestamp, body: &str) -> Vec<u8> {
    let time = String::from_utf8_lossy(TimestampText::default().text(at)).into_owned();
    let body = format!("35={msg_type}\x0134={number}\x0149=CLIENT1\x0156=PITLANE\x0152={time}\x01{body}");
    let mut bytes = Vec::new();
    append_message(&body, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_reported() {
        assert!(path_ns(3 * BATCH + 1) > 0.0);
    }
}
