//! The FIX codec alone: a New Order Single from bytes to fourteen typed fields, and an Execution
//! Report into a reused buffer; compared with another codec where one is given (`tests/oracle`
//! provides `fefix`).

use std::hint::black_box;

use pitlane_engine::event::ExecType;
use pitlane_engine::id::{IntId, Uuid};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::{OrderKind, Status, Terms};
use pitlane_engine::time::{Day, NS_PER_MS};
use pitlane_protocols::codes::FixProfile;
use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::fix::dictionary::{self, DictionarySettings};
use pitlane_protocols::fix::encode::Encoder;
use pitlane_protocols::fix::fields::{Fields, read};
use pitlane_protocols::fix::frame::{self, check_sum};
use pitlane_protocols::fix::order::OrderFields;
use pitlane_protocols::fix::report::{self, ExecutionReport};
use pitlane_protocols::fix::timestamp::TimestampText;
use pitlane_protocols::fix::version::FixVersion;

use crate::measure::{median, spent};

/// Number of different messages, so that the branch predictor does not learn one by heart.
const MESSAGES: usize = 1_024;
const BODY_BYTES_MAX: usize = 65_536;

/// Nanoseconds per message: medians over all rounds.
pub struct FixCodec {
    pub decode_ns: f64,
    /// The same with the checks of the dictionary (`ValidateIncomingMessage`).
    pub validated_ns: f64,
    pub encode_ns: f64,
    pub bytes_in: usize,
    pub bytes_out: usize,
    /// Time of the other codec, over the same messages, in alternating rounds.
    pub peer_decode_ns: Option<f64>,
    /// Checksum of everything read and written, so that no work can be optimized away.
    pub hash: u64,
    /// Whether both codecs read the same values.
    pub agree: bool,
}

/// Another codec: reads `ops` messages, cycling through `messages`, and returns the same checksum
/// as ours.
pub type PeerCodec = fn(messages: &[Vec<u8>], ops: usize) -> u64;

/// Measures in alternating rounds, so that a busy moment affects all codecs alike.
pub fn codec(reference: &RefData, ops: usize, rounds: usize, peer: Option<PeerCodec>) -> FixCodec {
    let messages = new_orders();
    let (mut decode_ns, mut validated_ns) = (Vec::new(), Vec::new());
    let (mut encode_ns, mut peer_ns) = (Vec::new(), Vec::new());
    let (mut hash, mut agree) = (0u64, true);
    let mut bytes_out = 0;
    for _ in 0..rounds.max(1) {
        let (ns, read) = timed(ops, || decode(&messages, ops, None));
        decode_ns.push(ns);
        let dictionary = DictionarySettings::default();
        let (ns, validated) = timed(ops, || decode(&messages, ops, Some(&dictionary)));
        validated_ns.push(ns);
        agree &= validated == read;
        let (ns, (written, sum)) = timed(ops, || encode(reference, ops));
        encode_ns.push(ns);
        bytes_out = written / ops.max(1);
        hash = read.rotate_left(7) ^ sum;
        if let Some(peer) = peer {
            let (ns, theirs) = timed(ops, || peer(&messages, ops));
            peer_ns.push(ns);
            agree &= theirs == read;
        }
    }
    agree &= hash != 0;
    FixCodec {
        decode_ns: median(&decode_ns),
        validated_ns: median(&validated_ns),
        encode_ns: median(&encode_ns),
        bytes_in: messages[0].len(),
        bytes_out,
        peer_decode_ns: peer.map(|_| median(&peer_ns)),
        hash,
        agree,
    }
}

/// Returns the nanoseconds for reading one message, from a single round.
pub fn decode_ns(ops: usize) -> f64 {
    let messages = new_orders();
    timed(ops, || decode(&messages, ops, None)).0
}

/// Returns the nanoseconds for reading and validating one message, from a single round.
pub fn validated_ns(ops: usize) -> f64 {
    let (messages, dictionary) = (new_orders(), DictionarySettings::default());
    timed(ops, || decode(&messages, ops, Some(&dictionary))).0
}

/// Returns the nanoseconds for writing one message, from a single round.
pub fn encode_ns(reference: &RefData, ops: usize) -> f64 {
    timed(ops, || encode(reference, ops)).0
}

/// Runs `work` and returns the time on the core per operation.
fn timed<T>(ops: usize, work: impl FnOnce() -> T) -> (f64, T) {
    let (ns, result) = spent(work);
    (ns / ops.max(1) as f64, result)
}

fn new_orders() -> Vec<Vec<u8>> {
    (0..MESSAGES).map(new_order).collect()
}

/// Builds a New Order Single with number, time, id, account, symbol, exchange, side, quantity,
/// type, price, time in force, transaction time, strategy id and strategy name.
fn new_order(nth: usize) -> Vec<u8> {
    let at = Day(20_773).start().plus(nth as u64 * 7 * NS_PER_MS);
    let fix_timestamp = String::from_utf8_lossy(TimestampText::default().text(at)).into_owned();
    let (qty, price) = (1 + nth % 900, 100 + nth % 90);
    let body = format!(
        "35=D|49=CLIENT1|56=PITLANE|34={nth}|52={fix_timestamp}|11=order-{nth:06}|1=A1|55=AAPL|207=XNAS|54={}|38={qty}|40=2|\
         44={price}.25|59=0|60={fix_timestamp}|7001=1|7002=SERVER|",
        1 + nth % 2
    )
    .replace('|', "\x01");
    let mut bytes = Vec::new();
    append_message(&body, &mut bytes);
    bytes
}

/// Appends a message to `out`: `body` from MsgType on, framed by header and checksum.
pub fn append_message(body: &str, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(format!("8=FIX.4.4\x019={}\x01{body}", body.len()).as_bytes());
    let sum = check_sum(&out[begin..]);
    out.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
}

/// Reads messages, and validates them where a dictionary is given.
fn decode(messages: &[Vec<u8>], ops: usize, dictionary: Option<&DictionarySettings>) -> u64 {
    let mut fields = Fields::default();
    let mut hash = 0u64;
    for nth in 0..ops {
        let bytes = black_box(&messages[nth % messages.len()]);
        let Ok(Decoded::Message { message, .. }) = frame::decode(bytes, BODY_BYTES_MAX) else { return 0 };
        let message = read(message, &mut fields);
        if dictionary
            .is_some_and(|settings| dictionary::check(&message, FixVersion::Fix44, settings).is_some())
        {
            return 0;
        }
        let Ok(order) = OrderFields::read(&message) else { return 0 };
        let (Some(Ok(qty)), Some(Ok(price)), Some(at)) = (order.order_qty, order.price, order.transact_time)
        else {
            return 0;
        };
        hash = hash
            .wrapping_mul(31)
            .wrapping_add((qty.raw() ^ price.raw()) as u64 ^ at.0 ^ message.len() as u64);
        black_box(&order);
    }
    hash
}

fn encode(reference: &RefData, ops: usize) -> (usize, u64) {
    let mut encoder = Encoder::new(FixVersion::Fix44, "PITLANE", "CLIENT1");
    let mut out = Vec::with_capacity(65_536);
    let (mut written, mut hash) = (0, 0u64);
    let start = Day(20_773).start();
    let terms = Terms {
        security: reference.securities()[0].id,
        qty: Qty::whole(100).unwrap_or_default(),
        limit: Price::whole(187).unwrap_or_default(),
        kind: OrderKind::Limit,
        ..Terms::default()
    };
    let root = IntId::numbered(b'o', 1);
    for nth in 0..ops as u64 {
        let now = start.plus(nth * NS_PER_MS);
        let cl_ord_id = IntId::numbered(b'o', nth);
        let report = ExecutionReport {
            exec_id: Uuid::derived(1, 0, nth),
            at: now,
            what: ExecType::Filled,
            status: Status::PartiallyFilled,
            reason: Reason::None,
            cl_ord_id,
            orig_cl_ord_id: IntId::NONE,
            cum_qty: Qty::from_raw(nth as i64 % 100),
            avg_price: terms.limit,
            last: Some((terms.qty, terms.limit)),
        };
        let mut draft = encoder.begin(&mut out, b'8', nth, now);
        report::execution(&mut draft, FixProfile::Spec, reference, &root, &terms, black_box(&report));
        let begin = draft.finish();
        hash = hash.wrapping_mul(31).wrapping_add(out[out.len() - 2] as u64);
        written += out.len() - begin;
        if out.len() > 60_000 {
            out.clear();
        }
    }
    (written, hash)
}
