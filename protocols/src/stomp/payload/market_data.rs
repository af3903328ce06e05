//! Ticks, books and bars.

use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::{Stamp, begin};
use crate::json::{Object, push_decimal, push_number, push_text, push_time};

/// Levels of each side that are shown.
pub const LEVELS_MAX: usize = 10;

/// The depth of a security, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Book<'a> {
    pub security: SecurityId,
    pub bids: &'a [Level],
    pub asks: &'a [Level],
    /// Source time.
    pub at: Timestamp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    pub price: Price,
    pub size: Qty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar<'a> {
    pub security: SecurityId,
    /// `1s`, `1m`, …
    pub size: &'a str,
    pub open: Price,
    pub high: Price,
    pub low: Price,
    pub close: Price,
    pub volume: Qty,
    /// When it began.
    pub at: Timestamp,
}

/// What is the same in every tick of a security.
pub fn fixed_members(out: &mut Vec<u8>, security: SecurityId, reference: &RefData) {
    out.extend_from_slice(b",\"securityId\":");
    push_number(out, security.0.into());
    if let Some(row) = reference.security(security) {
        out.extend_from_slice(b",\"symbol\":");
        push_text(out, &row.symbol);
        out.extend_from_slice(b",\"feed\":");
        push_text(out, &reference.exchange_of(row).adapter_type);
    }
}

/// A tick: the hottest of all, so its members are written as they stand. A side without size and a price that never was are
/// left out.
pub fn tick(out: &mut Vec<u8>, seq: u64, at: Timestamp, fixed: &[u8], tick: &Tick) {
    out.extend_from_slice(b"{\"type\":\"TICK\",\"seq\":");
    push_number(out, seq);
    out.extend_from_slice(b",\"ts\":");
    push_number(out, at.0);
    out.extend_from_slice(fixed);
    if !tick.bid_size.is_zero() {
        out.extend_from_slice(b",\"bid\":");
        push_decimal(out, tick.bid.raw());
        out.extend_from_slice(b",\"bidSize\":");
        push_decimal(out, tick.bid_size.raw());
    }
    if !tick.ask_size.is_zero() {
        out.extend_from_slice(b",\"ask\":");
        push_decimal(out, tick.ask.raw());
        out.extend_from_slice(b",\"askSize\":");
        push_decimal(out, tick.ask_size.raw());
    }
    if tick.traded {
        out.extend_from_slice(b",\"last\":");
        push_decimal(out, tick.last.raw());
        out.extend_from_slice(b",\"lastSize\":");
        push_decimal(out, tick.last_size.raw());
    }
    out.extend_from_slice(b",\"volume\":");
    push_decimal(out, tick.volume.raw());
    out.extend_from_slice(b",\"dateTime\":\"");
    push_time(out, tick.at);
    out.extend_from_slice(b"\"}");
}

pub fn book(out: &mut Vec<u8>, seq: u64, at: Timestamp, book: &Book<'_>, reference: &RefData) {
    let mut object = begin(out, "BOOK", Stamp { seq, at });
    security(&mut object, book.security, reference);
    for (name, levels) in [("bids", book.bids), ("asks", book.asks)] {
        let out = object.value(name);
        out.push(b'[');
        for (number, level) in levels.iter().take(LEVELS_MAX).enumerate() {
            if number > 0 {
                out.push(b',');
            }
            let mut entry = Object::new(out);
            entry.decimal("price", level.price.raw());
            entry.decimal("size", level.size.raw());
            entry.end();
        }
        out.push(b']');
    }
    object.time("dateTime", book.at);
    object.end();
}

pub fn bar(out: &mut Vec<u8>, seq: u64, at: Timestamp, bar: &Bar<'_>, reference: &RefData) {
    let mut object = begin(out, "BAR", Stamp { seq, at });
    security(&mut object, bar.security, reference);
    object.text("size", bar.size);
    for (name, price) in [("open", bar.open), ("high", bar.high), ("low", bar.low), ("close", bar.close)] {
        object.decimal(name, price.raw());
    }
    object.decimal("volume", bar.volume.raw());
    object.time("dateTime", bar.at);
    object.end();
}

fn security(object: &mut Object<'_>, security: SecurityId, reference: &RefData) {
    object.number("securityId", security.0.into());
    if let Some(row) = reference.security(security) {
        object.text("symbol", &row.symbol);
    }
}
