//! Bodies of STOMP messages in Simple Binary Encoding 1.0, little endian. The schema is
//! `docs/sbe/pitlane.xml`; the decoders in `clients/sbe` and in the Python client are generated
//! from it, and `tests/sbe.rs` compares them with what is written here.
//!
//! ```text
//! header: blockLength, templateId, schemaId, version │ block │ groups │ texts
//! ```

use pitlane_engine::book_orders::BookOrders;
use pitlane_engine::event::{
    BookOrder, Depth, DepthLevel, LevelChange, MarketTrade, OrderChange, OrderReport, Tick,
};
use pitlane_engine::id::{IntId, SecurityId};
use pitlane_engine::index::index_u16;
use pitlane_engine::level_book::LevelBook;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use crate::stomp::payload::EventStamp;
use crate::stomp::payload::market_data::{BarPayload, SecurityStatusPayload};

/// Media type of these bodies.
pub const CONTENT_TYPE: &str = "application/x-pitlane-sbe";

const SCHEMA_ID: u16 = 1;
const SCHEMA_VERSION: u16 = 0;

/// Template and length of the block of each message.
const TICK: (u16, u16) = (1, 84);
const BOOK: (u16, u16) = (2, 20);
const DEPTH_SNAPSHOT: (u16, u16) = (3, 24);
const DEPTH_UPDATE: (u16, u16) = (4, 33);
const ORDER_STATUS: (u16, u16) = (5, 74);
const TRADE: (u16, u16) = (6, 45);
const ORDERS_SNAPSHOT: (u16, u16) = (7, 24);
const ORDERS_UPDATE: (u16, u16) = (8, 33);
const SECURITY_STATUS: (u16, u16) = (9, 22);
const BAR: (u16, u16) = (10, 68);

/// Length of a level, and of a change of one, in a group.
const LEVEL_BYTES: u16 = 16;
const CHANGE_BYTES: u16 = 17;
/// The same for orders.
const ORDER_BYTES: u16 = 24;
const ORDER_CHANGE_BYTES: u16 = 26;
/// Code of an absent value of an enumeration: a trade without an aggressor, an unknown session.
const NO_CODE: u8 = u8::MAX;

/// Mantissa of an absent decimal.
const NULL: i64 = i64::MIN;

/// Flag of an update with a checksum, and of an order whose state is in doubt.
const CHECKED: u8 = 1;
const UNKNOWN: u8 = 1;
/// Flag of a halted security.
const HALTED: u8 = 1;

/// Writes a tick. A side without size and a missing price are absent.
pub fn tick(out: &mut Vec<u8>, seq: u64, at: Timestamp, tick: &Tick) {
    begin(out, TICK);
    put_u64(out, seq);
    put_u64(out, at.0);
    put_u64(out, tick.at.0);
    put_pair(out, !tick.bid_size.is_zero(), tick.bid, tick.bid_size);
    put_pair(out, !tick.ask_size.is_zero(), tick.ask, tick.ask_size);
    put_pair(out, tick.traded, tick.last, tick.last_size);
    put_i64(out, tick.volume.raw());
    put_u32(out, tick.security.0);
}

/// Writes a book: bids and asks, each best first.
pub fn book(out: &mut Vec<u8>, seq: u64, at: Timestamp, sides: &[Depth; 2]) {
    begin(out, BOOK);
    put_u64(out, seq);
    put_u64(out, at.0);
    put_u32(out, sides[0].security.0);
    sides.iter().for_each(|side| put_levels(out, side.levels()));
}

/// Writes the whole picture of a book.
pub fn depth_snapshot(
    out: &mut Vec<u8>,
    at: Timestamp,
    security: SecurityId,
    book: &LevelBook,
    checksum: u32,
) {
    begin(out, DEPTH_SNAPSHOT);
    put_u64(out, book.seq());
    put_u64(out, at.0);
    put_u32(out, security.0);
    put_u32(out, checksum);
    Side::BOTH.into_iter().for_each(|side| put_levels(out, book.levels(side)));
}

/// Writes what changes a book at the first of these sequence numbers to that at the second.
pub fn depth_update(
    out: &mut Vec<u8>,
    seqs: [u64; 2],
    at: Timestamp,
    security: SecurityId,
    changes: impl Iterator<Item = LevelChange>,
    checksum: Option<u32>,
) {
    begin_update(out, DEPTH_UPDATE, seqs, at, security, checksum);
    put_u16(out, CHANGE_BYTES);
    let count_at = out.len();
    put_u16(out, 0);
    let mut count = 0;
    for change in changes {
        put_i64(out, change.price.raw());
        put_i64(out, change.qty.raw());
        out.push(change.side as u8);
        count += 1;
    }
    out[count_at..count_at + 2].copy_from_slice(&index_u16(count).to_le_bytes());
}

/// Writes a trade. A size that the feed does not say is absent.
pub fn trade(out: &mut Vec<u8>, stamp: EventStamp, trade: &MarketTrade) {
    begin(out, TRADE);
    put_u64(out, stamp.seq);
    put_u64(out, stamp.at.0);
    put_u64(out, trade.number.0);
    put_i64(out, trade.price.raw());
    put_i64(out, if trade.qty.is_zero() { NULL } else { trade.qty.raw() });
    put_u32(out, trade.security.0);
    out.push(trade.aggressor.map_or(NO_CODE, |side| side as u8));
}

pub fn security_status(out: &mut Vec<u8>, stamp: EventStamp, status: &SecurityStatusPayload) {
    begin(out, SECURITY_STATUS);
    put_u64(out, stamp.seq);
    put_u64(out, stamp.at.0);
    put_u32(out, status.security.0);
    out.push(status.session.map_or(NO_CODE, |session| session as u8));
    out.push(if status.is_halted { HALTED } else { 0 });
}

pub fn bar(out: &mut Vec<u8>, seq: u64, at: Timestamp, bar: &BarPayload<'_>) {
    begin(out, BAR);
    put_u64(out, seq);
    put_u64(out, at.0);
    put_u64(out, bar.at.0);
    for price in [bar.open, bar.high, bar.low, bar.close] {
        put_i64(out, price.raw());
    }
    put_i64(out, bar.volume.raw());
    put_u32(out, bar.security.0);
    put_text(out, bar.size);
}

/// Writes the whole picture of the orders in a book.
pub fn orders_snapshot(
    out: &mut Vec<u8>,
    seq: u64,
    at: Timestamp,
    security: SecurityId,
    book: &BookOrders,
    checksum: Option<u32>,
) {
    begin(out, ORDERS_SNAPSHOT);
    put_u64(out, seq);
    put_u64(out, at.0);
    put_u32(out, security.0);
    put_u32(out, checksum.unwrap_or_default());
    for side in Side::BOTH {
        let orders = book.orders(side);
        put_u16(out, ORDER_BYTES);
        put_u16(out, index_u16(orders.len()));
        orders.iter().for_each(|order| put_order(out, order));
    }
}

/// Writes the changes between these sequence numbers, in the order in which they are applied.
pub fn orders_update(
    out: &mut Vec<u8>,
    seqs: [u64; 2],
    at: Timestamp,
    security: SecurityId,
    changes: &[OrderChange],
    checksum: Option<u32>,
) {
    begin_update(out, ORDERS_UPDATE, seqs, at, security, checksum);
    put_u16(out, ORDER_CHANGE_BYTES);
    put_u16(out, index_u16(changes.len()));
    for change in changes {
        put_order(out, &change.order);
        out.push(change.side as u8);
        out.push(change.action as u8);
    }
}

fn put_order(out: &mut Vec<u8>, order: &BookOrder) {
    put_u64(out, order.number.0);
    put_i64(out, order.price.raw());
    put_i64(out, order.qty.raw());
}

/// Writes the block of an update.
fn begin_update(
    out: &mut Vec<u8>,
    template: (u16, u16),
    [prev_seq, seq]: [u64; 2],
    at: Timestamp,
    security: SecurityId,
    checksum: Option<u32>,
) {
    begin(out, template);
    put_u64(out, prev_seq);
    put_u64(out, seq);
    put_u64(out, at.0);
    put_u32(out, security.0);
    put_u32(out, checksum.unwrap_or_default());
    out.push(if checksum.is_some() { CHECKED } else { 0 });
}

/// Writes an order's status under the order's own id, as [`crate::stomp::payload::orders::status`].
pub fn order_status(
    out: &mut Vec<u8>,
    stamp: EventStamp,
    (id, orig_id): (&IntId, &IntId),
    report: &OrderReport,
    reference: &RefData,
) {
    begin(out, ORDER_STATUS);
    put_u64(out, stamp.seq);
    put_u64(out, stamp.at.0);
    put_i64(out, report.qty.raw());
    put_i64(out, report.cum_qty.raw());
    put_i64(out, report.leaves_qty().raw());
    put_i64(out, if report.cum_qty.is_zero() { NULL } else { report.avg_price.raw() });
    let has_fill = !report.last_qty.is_zero();
    put_i64(out, if has_fill { report.last_qty.raw() } else { NULL });
    put_i64(out, if has_fill { report.last_price.raw() } else { NULL });
    put_u32(out, report.security.0);
    put_u16(out, report.account.0);
    out.push(report.status as u8);
    out.push(report.what as u8);
    out.push(report.side as u8);
    out.push(if report.in_doubt { UNKNOWN } else { 0 });
    put_text(out, id.as_str());
    put_text(out, orig_id.as_str());
    put_text(out, reference.strategy(report.strategy).map_or("", |row| row.name.as_str()));
    put_text(out, if report.reason == Reason::None { "" } else { report.reason.code() });
}

fn begin(out: &mut Vec<u8>, (template, block_length): (u16, u16)) {
    for value in [block_length, template, SCHEMA_ID, SCHEMA_VERSION] {
        put_u16(out, value);
    }
}

fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a price and its size, which are absent together.
fn put_pair(out: &mut Vec<u8>, is_there: bool, price: Price, qty: Qty) {
    put_i64(out, if is_there { price.raw() } else { NULL });
    put_i64(out, if is_there { qty.raw() } else { NULL });
}

fn put_levels(out: &mut Vec<u8>, levels: &[DepthLevel]) {
    put_u16(out, LEVEL_BYTES);
    put_u16(out, index_u16(levels.len()));
    for level in levels {
        put_i64(out, level.price.raw());
        put_i64(out, level.qty.raw());
    }
}

/// Writes a text of at most 2¹⁶ octets: ids, names and codes are short.
fn put_text(out: &mut Vec<u8>, text: &str) {
    put_u16(out, index_u16(text.len()));
    out.extend_from_slice(text.as_bytes());
}
