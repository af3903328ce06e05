//! Decodes market data over FIX: frames from a stream of bytes, and the entries of each Snapshot
//! (W) and Incremental Refresh (X) to typed values.

use std::hint::black_box;

use pitlane_engine::number::{Price, Qty};
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::fix::fields::{Fields, FixMessage, read};
use pitlane_protocols::fix::frame::{self, FixFrame};
use pitlane_protocols::fix::timestamp::{TIMESTAMP_BYTES, parse_timestamp};
use pitlane_protocols::fix::{msg_type, tag};

use super::{PendingMessage, SeenTick};

/// Largest body of a message.
const BODY_BYTES_MAX: usize = 65_536;
/// Units of a quantity.
const UNITS: f64 = 1e8;
/// MDEntryType (269) of a trade.
const TRADE: &[u8] = b"2";

/// Reads the market data of one FIX session.
#[derive(Default)]
pub struct FixTickReader {
    pending: PendingMessage,
    fields: Box<Fields>,
    /// MsgSeqNum (34) of the next message; `None` before the first.
    next_msg_seq_num: Option<u64>,
}

/// One entry of a message.
#[derive(Clone, Copy, Debug, Default)]
struct Entry<'a> {
    action: &'a [u8],
    kind: &'a [u8],
    price: Price,
    size: Qty,
}

impl FixTickReader {
    /// Decodes the messages that end in these bytes, calls `observe` with the content of each, and
    /// returns their number.
    ///
    /// # Panics
    ///
    /// If a message is no market data, cannot be read, or has a number that is out of order.
    pub fn read(&mut self, bytes: &mut [u8], mut observe: impl FnMut(SeenTick)) -> u64 {
        let FixTickReader { pending, fields, next_msg_seq_num } = self;
        pending.read(bytes, |bytes| {
            let (mut messages, mut consumed) = (0, 0);
            while let Some((frame, length)) = next_frame(&bytes[consumed..]) {
                let message = read(frame, fields);
                check_number(&message, next_msg_seq_num);
                observe(market_data(&message));
                messages += 1;
                consumed += length;
            }
            (messages, consumed)
        })
    }
}

/// Returns the first frame and its length; `None` if it is incomplete.
pub(crate) fn next_frame(bytes: &[u8]) -> Option<(FixFrame<'_>, usize)> {
    match frame::decode(bytes, BODY_BYTES_MAX).expect("the server sends frames") {
        Decoded::Message { message, consumed } => Some((message, consumed)),
        Decoded::Incomplete => None,
    }
}

/// Checks that no message is missing before this one.
fn check_number(message: &FixMessage, next: &mut Option<u64>) {
    let number = message.header.msg_seq_num.and_then(|number| parse_u64(number).ok());
    let number = number.expect("a message has its number");
    assert!(next.is_none_or(|next| next == number), "message {number} comes instead of {next:?}");
    *next = Some(number + 1);
}

fn market_data(message: &FixMessage) -> SeenTick {
    let is_market_data = matches!(
        message.type_code(),
        msg_type::MARKET_DATA_SNAPSHOT | msg_type::MARKET_DATA_INCREMENTAL_REFRESH
    );
    assert!(is_market_data && message.fault.is_none(), "{}", message.frame.bytes.escape_ascii());
    let (mut seen, mut entries, mut counted) = (SeenTick::default(), 0, 0);
    let (mut entry, mut time) = (Entry::default(), [b'-'; TIMESTAMP_BYTES]);
    for (tag, value) in message.iter() {
        match tag {
            tag::NO_MD_ENTRIES => counted = parse_u64(value).expect("a count"),
            tag::SECURITY_ID => {
                let id = parse_u64(value).ok().and_then(|id| u32::try_from(id).ok());
                seen.security = id.expect("the number of a security");
            }
            tag::MD_UPDATE_ACTION => entry.action = value,
            tag::MD_ENTRY_TYPE => (entry.kind, entries) = (value, entries + 1),
            tag::MD_ENTRY_PX => entry.price = Price::parse(value).expect("a price"),
            tag::MD_ENTRY_SIZE => {
                entry.size = Qty::parse(value).expect("a size");
                if entry.kind == TRADE {
                    seen.last_size = entry.size.raw() as f64 / UNITS;
                }
                // Price and type come before the size.
                black_box(entry);
            }
            tag::MD_ENTRY_DATE => time[..value.len()].copy_from_slice(value),
            tag::MD_ENTRY_TIME => time[TIMESTAMP_BYTES - value.len()..].copy_from_slice(value),
            _ => {}
        }
    }
    assert_eq!(counted, entries, "{}", message.frame.bytes.escape_ascii());
    seen.ts = parse_timestamp(&time).map_or(0, |Timestamp(ns)| ns);
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fix::append_message;

    fn messages() -> Vec<u8> {
        let head = |number: u32, kind: &str| {
            format!("35={kind}|34={number}|49=PITLANE|52=20261116-10:00:00.000|56=BENCH1|262=prices|")
        };
        let mut out = Vec::new();
        let snapshot = head(3, "W")
            + "55=S1|48=2|22=8|268=2|269=0|270=187.25|271=100|272=20261116|273=10:00:00.000|290=1|\
               269=2|270=187.3|271=7|272=20261116|273=10:00:00.000|";
        let refresh = head(4, "X")
            + "268=2|279=1|269=1|55=S1|48=2|22=8|270=187.4|271=100|272=20261116|273=10:00:00.250|\
               279=0|269=2|55=S1|48=2|22=8|270=187.3|271=8|272=20261116|273=10:00:00.250|";
        for body in [snapshot, refresh] {
            append_message(&body.replace('|', "\x01"), &mut out);
        }
        out
    }

    #[test]
    fn snapshots_and_refreshes_are_read_however_the_stream_is_cut() {
        let stream = messages();
        for step in [1, 7, 64, stream.len()] {
            let (mut reader, mut seen) = (FixTickReader::default(), Vec::new());
            let counted: u64 =
                stream.chunks(step).map(|part| reader.read(&mut part.to_vec(), |tick| seen.push(tick))).sum();
            assert_eq!(counted, 2);
            let trades: Vec<_> = seen.iter().map(|tick| (tick.security, tick.last_size)).collect();
            assert_eq!(trades, [(2, 7.0), (2, 8.0)], "in parts of {step}");
            assert_eq!(seen[1].ts - seen[0].ts, 250_000_000);
        }
    }

    #[test]
    #[should_panic(expected = "message 3 comes instead of")]
    fn a_message_that_comes_twice_is_noticed() {
        let mut reader = FixTickReader::default();
        reader.read(&mut messages(), |_| {});
        reader.read(&mut messages(), |_| {});
    }
}
