//! The part of the STOMP broker without I/O: frames decoded, ticks rendered, messages queued for
//! consumers that read everything at once. There is no socket, so the kernel's work is not in these
//! numbers.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::index::index_usize;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::sbe;
use pitlane_protocols::stomp::broker::{SessionId, StompBroker};
use pitlane_protocols::stomp::decode::Decoder;
use pitlane_protocols::stomp::frame::StompVersion;
use pitlane_protocols::stomp::payload::market_data;
use pitlane_protocols::stomp::session::Transport;
use pitlane_protocols::stomp::settings::BrokerSettings;

use crate::measure::spent;
use crate::tick_reader::{BodyReader, Framing, TickReader};

const START: Timestamp = Timestamp(1_794_816_000_000_000_000);
const FRAME: &[u8] = b"SUBSCRIBE\nid:sub-17\ndestination:/topic/tick.42\nack:client\nreceipt:rcpt-17\n\n\0";
/// Different frames that a consumer decodes, in one read.
const FRAMES: u64 = 256;
/// Ticks before the consumers are written to, as in one cycle of a gateway under load.
const TICKS_PER_POLL: u64 = 16;

/// Returns the nanoseconds per decoded frame, including the lookup of two of its headers.
pub fn decode(frames: usize) -> f64 {
    let stream = FRAME.repeat(64);
    let mut decoder = Decoder::default();
    decoder.set_version(StompVersion::V12);
    let mut count = 0;
    let (ns, ()) = spent(|| {
        while count < frames {
            let mut rest = black_box(stream.as_slice());
            while let Ok(Decoded::Message { message, consumed }) = decoder.decode(rest) {
                black_box((message.header("id"), message.header("destination")));
                rest = &rest[consumed..];
                count += 1;
            }
        }
    });
    ns / count as f64
}

/// Returns the nanoseconds for the body of each tick, and its bytes.
pub fn render(ticks: usize, reference: &RefData) -> (f64, usize) {
    let security = reference.securities()[0].id;
    let mut fixed = Vec::new();
    market_data::fixed_members(&mut fixed, security, reference);
    let mut out = Vec::new();
    let (ns, ()) = spent(|| {
        for number in 0..ticks as u64 {
            out.clear();
            let tick = black_box(tick(security, number));
            market_data::tick(&mut out, number, START.plus(number), &fixed, &tick);
            black_box(&out);
        }
    });
    (ns / ticks as f64, out.len())
}

/// Returns the body of a tick as our broker renders it, for brokers that have no market data.
pub fn json_tick(reference: &RefData) -> Vec<u8> {
    let security = reference.securities()[0].id;
    let (mut fixed, mut out) = (Vec::new(), Vec::new());
    market_data::fixed_members(&mut fixed, security, reference);
    market_data::tick(&mut out, 1, START, &fixed, &tick(security, 1));
    out
}

/// Returns the nanoseconds for decoding each tick with its frame, from bytes to typed values.
pub fn read(reader: BodyReader, ticks: usize, reference: &RefData) -> f64 {
    let shared = if reader == BodyReader::SharedSbe { TICKS_PER_POLL } else { 1 };
    let numbers = (0..FRAMES).map(|frame| frame * shared..(frame + 1) * shared);
    let frames: Vec<u8> = numbers.flat_map(|numbers| message(reader, numbers, reference)).collect();
    let mut copy = frames.clone();
    let mut consumer = TickReader::new(Framing::Stomp, reader);
    let (ns, count) = spent(|| {
        let mut count = 0;
        while count < ticks as u64 {
            // simd-json writes into what it reads.
            copy.copy_from_slice(&frames);
            count += consumer.read(black_box(&mut copy), |tick| _ = black_box(tick));
        }
        count
    });
    ns / count as f64
}

/// Returns a frame with the ticks of these numbers.
fn message(reader: BodyReader, numbers: Range<u64>, reference: &RefData) -> Vec<u8> {
    let securities = reference.securities();
    let (first, mut body) = (numbers.start, Vec::new());
    for number in numbers {
        let security = securities[index_usize(number) % securities.len()].id;
        let (tick, at) = (tick(security, number), START.plus(number));
        if reader.is_binary() {
            sbe::tick(&mut body, number, at, &tick);
        } else {
            let mut fixed = Vec::new();
            market_data::fixed_members(&mut fixed, security, reference);
            market_data::tick(&mut body, number, at, &fixed, &tick);
        }
    }
    let head = format!("MESSAGE\nsubscription:1\nmessage-id:{first}\ncontent-length:{}\n\n", body.len());
    [head.as_bytes(), &body, b"\0"].concat()
}

/// Returns the nanoseconds for each delivery to this many consumers, and the bytes of one.
pub fn fan_out(consumers: usize, ticks: usize, reference: Arc<RefData>) -> (f64, usize) {
    let securities: Vec<SecurityId> = reference.securities().iter().map(|row| row.id).collect();
    let mut broker = StompBroker::new(BrokerSettings::default(), reference);
    for _ in 0..consumers {
        let id = broker.open(START, Transport::Tcp).expect("there is room");
        let connect_frames =
            b"CONNECT\naccept-version:1.2\n\n\0SUBSCRIBE\nid:1\ndestination:/topic/tick.*\n\n\0";
        broker.handle_bytes(START, id, connect_frames);
        take(&mut broker, id);
    }
    let mut octets = 0;
    let (ns, ()) = spent(|| {
        for number in 0..ticks as u64 {
            let now = START.plus(number * 1_000);
            let security = securities[index_usize(number) % securities.len()];
            broker.publish_tick(now, number, now, black_box(&tick(security, number)));
            if number % TICKS_PER_POLL == TICKS_PER_POLL - 1 {
                while let Some(id) = broker.poll_active() {
                    octets += take(&mut broker, id);
                }
            }
        }
    });
    let deliveries = ticks / index_usize(TICKS_PER_POLL) * index_usize(TICKS_PER_POLL) * consumers;
    (ns / deliveries.max(1) as f64, octets / deliveries.max(1))
}

fn take(broker: &mut StompBroker, id: SessionId) -> usize {
    let len = broker.transmit(id).map_or(0, |transmit| black_box(transmit.bytes).len());
    broker.handle_transmitted(START, id, len);
    len
}

pub fn tick(security: SecurityId, number: u64) -> Tick {
    let price = |raw: u64| Price::from_raw(18_725_000_000 + raw as i64 % 1_000 * 1_000_000);
    let size = Qty::from_raw((1 + number as i64 % 50) * 10_000_000_000);
    Tick {
        security,
        bid: price(number),
        bid_size: size,
        ask: price(number + 1),
        ask_size: size,
        last: price(number),
        last_size: size,
        traded: true,
        volume: Qty::from_raw(number as i64 * 100_000_000),
        at: START.plus(number * 1_001),
    }
}
