//! Ticks, books and bars.

use pitlane_engine::command::TradingSession;
use pitlane_engine::event::{Depth, MarketTrade, Tick};
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::{EventStamp, begin};
use crate::codes::WireName;
use crate::json::{Object, push_decimal, push_number, push_text, push_time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarPayload<'a> {
    pub security: SecurityId,
    /// `1s`, `1m`, …
    pub size: &'a str,
    pub open: Price,
    pub high: Price,
    pub low: Price,
    pub close: Price,
    pub volume: Qty,
    /// Start of the bar.
    pub at: Timestamp,
}

/// Writes the members that are equal in every tick and book of a security.
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

/// Writes a tick. It is the most frequent payload, so its members are written directly. A side
/// without size and a missing price are left out.
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

/// Writes a book: bids and asks, each best first. The venue is simulated by us, so its time is that
/// of the event.
pub fn book(out: &mut Vec<u8>, seq: u64, at: Timestamp, fixed: &[u8], sides: &[Depth; 2]) {
    out.extend_from_slice(b"{\"type\":\"BOOK\",\"seq\":");
    push_number(out, seq);
    out.extend_from_slice(b",\"ts\":");
    push_number(out, at.0);
    out.extend_from_slice(fixed);
    for (name, side) in [(",\"bids\":[", &sides[0]), (",\"asks\":[", &sides[1])] {
        out.extend_from_slice(name.as_bytes());
        for (number, level) in side.levels().iter().enumerate() {
            out.extend_from_slice(if number > 0 { b",{\"price\":" } else { b"{\"price\":" });
            push_decimal(out, level.price.raw());
            out.extend_from_slice(b",\"size\":");
            push_decimal(out, level.qty.raw());
            out.push(b'}');
        }
        out.push(b']');
    }
    out.extend_from_slice(b",\"dateTime\":\"");
    push_time(out, at);
    out.extend_from_slice(b"\"}");
}

/// Writes a trade. A size that the feed does not say is left out.
pub fn trade(out: &mut Vec<u8>, stamp: EventStamp, trade: &MarketTrade, reference: &RefData) {
    let mut object = begin(out, "TRADE", stamp);
    object.number("tradeId", trade.number.0);
    security(&mut object, trade.security, reference);
    object.decimal("price", trade.price.raw());
    if !trade.qty.is_zero() {
        object.decimal("size", trade.qty.raw());
    }
    if let Some(side) = trade.aggressor {
        object.text("aggressor", side.wire_name());
    }
    object.time("dateTime", stamp.at);
    object.end();
}

/// Trading status of a security.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecurityStatusPayload {
    pub security: SecurityId,
    /// Absent before the first session change that the thread has seen.
    pub session: Option<TradingSession>,
    pub is_halted: bool,
}

pub fn security_status(
    out: &mut Vec<u8>,
    stamp: EventStamp,
    status: &SecurityStatusPayload,
    reference: &RefData,
) {
    let mut object = begin(out, "SECURITY_STATUS", stamp);
    security(&mut object, status.security, reference);
    if let Some(session) = status.session {
        object.text("session", session.wire_name());
    }
    object.flag("halted", status.is_halted);
    object.time("dateTime", stamp.at);
    object.end();
}

pub fn bar(out: &mut Vec<u8>, seq: u64, at: Timestamp, bar: &BarPayload<'_>, reference: &RefData) {
    let mut object = begin(out, "BAR", EventStamp { seq, at });
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
