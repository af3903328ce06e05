//! Bodies of messages: JSON objects equal to the value objects of REST. Every body begins with
//! `type`, `seq` and `ts`.
//!
//! Choice: the value objects of orders and transactions have a `type` of their own, which is named
//! `orderType` and `transactionType` here; see protocols/README.md.
//!
//! Rules: docs/stomp.md#messages.

pub mod book_orders;
pub mod depth;
pub mod market_data;
pub mod orders;
pub mod ledger;
pub mod system;

use pitlane_engine::time::Timestamp;

use crate::json::Object;

/// Sequence number and time of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventStamp {
    pub seq: u64,
    pub at: Timestamp,
}

fn begin<'a>(out: &'a mut Vec<u8>, kind: &str, stamp: EventStamp) -> Object<'a> {
    let mut object = Object::new(out);
    object.text("type", kind);
    object.number("seq", stamp.seq);
    object.number("ts", stamp.at.0);
    object
}
