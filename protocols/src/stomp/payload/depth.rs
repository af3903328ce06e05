//! Price levels: a snapshot and its updates.

use pitlane_engine::event::LevelChange;
use pitlane_engine::level_book::LevelBook;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use crate::json::{push_decimal, push_number, push_time};

/// Writes the whole picture: bids and asks as pairs of price and size, each best first.
pub fn snapshot(out: &mut Vec<u8>, at: Timestamp, fixed: &[u8], book: &LevelBook, checksum: u32) {
    begin_snapshot(out, book.seq(), at, fixed);
    for (name, side) in [(",\"bids\":[", Side::Buy), (",\"asks\":[", Side::Sell)] {
        out.extend_from_slice(name.as_bytes());
        for (number, level) in book.levels(side).iter().enumerate() {
            out.extend_from_slice(if number > 0 { b",[" } else { b"[" });
            push_decimal(out, level.price.raw());
            out.push(b',');
            push_decimal(out, level.qty.raw());
            out.push(b']');
        }
        out.push(b']');
    }
    end(out, at, Some(checksum));
}

/// Writes what changes a book at the first of these sequence numbers to that at the second.
pub fn update(
    out: &mut Vec<u8>,
    seqs: [u64; 2],
    at: Timestamp,
    fixed: &[u8],
    changes: impl Iterator<Item = LevelChange>,
    checksum: Option<u32>,
) {
    begin_update(out, seqs, at, fixed);
    for (number, change) in changes.enumerate() {
        out.extend_from_slice(if number > 0 { b",[" } else { b"[" });
        push_side(out, change.side);
        out.push(b',');
        push_decimal(out, change.price.raw());
        out.push(b',');
        push_decimal(out, change.qty.raw());
        out.push(b']');
    }
    out.push(b']');
    end(out, at, checksum);
}

/// Writes the members of a snapshot before its lists.
pub(super) fn begin_snapshot(out: &mut Vec<u8>, seq: u64, at: Timestamp, fixed: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"SNAPSHOT\",\"seq\":");
    push_number(out, seq);
    out.extend_from_slice(b",\"ts\":");
    push_number(out, at.0);
    out.extend_from_slice(fixed);
}

/// Writes the members of an update, and the beginning of its list of changes.
pub(super) fn begin_update(out: &mut Vec<u8>, [prev_seq, seq]: [u64; 2], at: Timestamp, fixed: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"UPDATE\",\"prevSeq\":");
    push_number(out, prev_seq);
    out.extend_from_slice(b",\"seq\":");
    push_number(out, seq);
    out.extend_from_slice(b",\"ts\":");
    push_number(out, at.0);
    out.extend_from_slice(fixed);
    out.extend_from_slice(b",\"changes\":[");
}

pub(super) fn push_side(out: &mut Vec<u8>, side: Side) {
    out.extend_from_slice(match side {
        Side::Buy => b"\"B\"",
        Side::Sell => b"\"A\"",
    });
}

/// Writes the last members.
pub(super) fn end(out: &mut Vec<u8>, at: Timestamp, checksum: Option<u32>) {
    if let Some(checksum) = checksum {
        out.extend_from_slice(b",\"checksum\":");
        push_number(out, checksum.into());
    }
    out.extend_from_slice(b",\"dateTime\":\"");
    push_time(out, at);
    out.extend_from_slice(b"\"}");
}
