//! The orders of a book: a snapshot and its updates.

use pitlane_engine::book_orders::BookOrders;
use pitlane_engine::event::{BookOrder, OrderAction, OrderChange};
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use super::depth::{begin_snapshot, begin_update, end, push_side};
use crate::json::{push_decimal, push_number};

/// Writes the whole picture: bids and asks as lists of number, price and size, each in the sequence
/// in which they trade.
pub fn snapshot(
    out: &mut Vec<u8>,
    seq: u64,
    at: Timestamp,
    fixed: &[u8],
    book: &BookOrders,
    checksum: Option<u32>,
) {
    begin_snapshot(out, seq, at, fixed);
    for (name, side) in [(",\"bids\":[", Side::Buy), (",\"asks\":[", Side::Sell)] {
        out.extend_from_slice(name.as_bytes());
        for (number, order) in book.orders(side).iter().enumerate() {
            out.extend_from_slice(if number > 0 { b",[" } else { b"[" });
            push_number(out, order.number.0);
            push_price_and_size(out, order);
        }
        out.push(b']');
    }
    end(out, at, checksum);
}

/// Writes the changes between these sequence numbers, in the order in which they are applied.
pub fn update(
    out: &mut Vec<u8>,
    seqs: [u64; 2],
    at: Timestamp,
    fixed: &[u8],
    changes: &[OrderChange],
    checksum: Option<u32>,
) {
    begin_update(out, seqs, at, fixed);
    for (number, change) in changes.iter().enumerate() {
        out.extend_from_slice(if number > 0 { b",[\"" } else { b"[\"" });
        out.extend_from_slice(action_name(change.action).as_bytes());
        out.extend_from_slice(b"\",");
        push_number(out, change.order.number.0);
        out.push(b',');
        push_side(out, change.side);
        push_price_and_size(out, &change.order);
    }
    out.push(b']');
    end(out, at, checksum);
}

fn action_name(action: OrderAction) -> &'static str {
    match action {
        OrderAction::Add => "ADD",
        OrderAction::Change => "CHANGE",
        OrderAction::Remove => "REMOVE",
        OrderAction::Trade => "TRADE",
    }
}

fn push_price_and_size(out: &mut Vec<u8>, order: &BookOrder) {
    out.push(b',');
    push_decimal(out, order.price.raw());
    out.push(b',');
    push_decimal(out, order.qty.raw());
    out.push(b']');
}
