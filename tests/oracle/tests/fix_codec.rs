//! The FIX codec compared with `fefix`: over generated and mutated messages, `fefix` accepts
//! whatever we accept, with the same fields; what only `fefix` accepts is wrong in one of the ways
//! that it does not check. And `fefix` reads what we write.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fefix::Dictionary;
use fefix::tagvalue::{Config, Decoder};
use pitlane_engine::id::Uuid;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::fix::encode::Encoder;
use pitlane_protocols::fix::fields::{Fields, read};
use pitlane_protocols::fix::frame::{self, FixFrameError};
use pitlane_protocols::fix::version::FixVersion;
use pitlane_tests::dice::Dice;
use pitlane_tests::fix::sealed;

const BODY_BYTES_MAX: usize = 65_536;

/// Tags and values that one codec reads from bytes that should be one frame; `None` if it rejects
/// them.
type CodecReading = Option<Vec<(u32, Vec<u8>)>>;

fn ours(bytes: &[u8]) -> (CodecReading, bool) {
    match frame::decode(bytes, BODY_BYTES_MAX) {
        Ok(Decoded::Message { message, consumed }) if consumed == bytes.len() => {
            let mut fields = Fields::default();
            let message = read(message, &mut fields);
            let head = [(8, message.frame.begin_string.to_vec()), (35, message.msg_type.to_vec())];
            let rest = message.iter().map(|(tag, value)| (tag, value.to_vec()));
            (Some(head.into_iter().chain(rest).collect()), message.fault.is_none())
        }
        Ok(_) | Err(FixFrameError::Garbled { .. } | FixFrameError::TooLong) => (None, true),
    }
}

/// Reads with `fefix`, which panics on some bytes; then it has no opinion.
fn theirs(decoder: &mut Decoder<Config>, bytes: &[u8]) -> Option<CodecReading> {
    let decode = AssertUnwindSafe(|| {
        let message = decoder.decode(bytes).ok()?;
        Some(message.fields().map(|(tag, value)| (tag.get() as u32, value.to_vec())).collect())
    });
    catch_unwind(decode).ok()
}

/// Checks what `fefix` does not check: the tags of begin, length and checksum, signs in the length,
/// and what follows the length.
fn is_framed(bytes: &[u8]) -> bool {
    let text = bytes.iter().map(|&byte| byte as char).collect::<String>();
    let mut parts = text.splitn(3, '\x01');
    let (begin, length, rest) =
        (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let Some(digits) = length.strip_prefix("9=") else { return false };
    let begin = begin.strip_prefix("8=FIX").is_some_and(|begin| begin.chars().count() <= 13);
    let body = rest.chars().count().checked_sub(7);
    let exact = body.is_some_and(|body| digits.parse() == Ok(body) && body >= 5);
    let digits = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let tail: Vec<char> = rest.chars().rev().take(8).collect();
    let tail = matches!(tail[..], ['\x01', c, b, a, '=', '0', '1', '\x01']
        if [a, b, c].iter().all(char::is_ascii_digit));
    begin && digits && exact && tail && rest.starts_with("35=")
}

const TYPES: [&str; 8] = ["0", "1", "2", "5", "A", "D", "F", "G"];
const TAGS: [u32; 24] =
    [34, 49, 52, 56, 43, 122, 1, 11, 21, 38, 40, 41, 44, 54, 55, 58, 59, 60, 99, 112, 167, 207, 7001, 7003];
const VALUES: [&str; 12] = [
    "1",
    "A",
    "20261116-08:00:00.123",
    "187.25",
    "-1",
    "a=b",
    " ",
    "CLIENT1",
    "Y",
    "0",
    "longer than a word or two",
    "é",
];

fn message(dice: &mut Dice) -> Vec<u8> {
    let mut body = format!("35={}|", dice.pick(&TYPES));
    for _ in 0..dice.below(20) {
        body += &format!("{}={}|", dice.pick(&TAGS), dice.pick(&VALUES));
    }
    if dice.percent(10) {
        body += "95=5|96=a|b|c|";
    }
    sealed("FIX.4.4", &body)
}

/// Changes, removes or doubles a few bytes; at times corrects length and checksum, to reach deeper
/// code.
fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>) {
    for _ in 0..=dice.below(3) {
        let at = dice.below(bytes.len() as u64) as usize;
        match dice.below(4) {
            0 => bytes[at] = dice.pick(&[1, b'=', b'0', b'9', b'-', 0, 255, b'8']),
            1 => bytes[at] ^= 1 << dice.below(8),
            2 => _ = bytes.remove(at),
            _ => bytes.insert(at, bytes[at]),
        }
        if bytes.len() < 2 {
            return;
        }
    }
    if dice.percent(60) {
        let text: String = bytes.iter().map(|&byte| byte as char).collect();
        if let Some(body) = text.find("35=").and_then(|begin| text.get(begin..text.len().saturating_sub(7)))
            && body.is_ascii()
        {
            *bytes = sealed("FIX.4.4", body);
        }
    }
}

#[test]
fn both_codecs_read_the_same_frames_and_fields() {
    std::panic::set_hook(Box::new(|_| {}));
    let (mut taken, mut refused, mut silent) = (0, 0, 0);
    let mut failures = Vec::new();
    for seed in 0..60 {
        let mut dice = Dice::new(seed ^ 0xf1c5);
        let mut decoder = Decoder::<Config>::new(Dictionary::fix44());
        for _ in 0..200 {
            let mut bytes = message(&mut dice);
            if dice.percent(70) {
                mutate(&mut dice, &mut bytes);
            }
            let (ours, faultless) = ours(&bytes);
            let Some(theirs) = theirs(&mut decoder, &bytes) else {
                silent += 1;
                decoder = Decoder::<Config>::new(Dictionary::fix44());
                continue;
            };
            let text = String::from_utf8_lossy(&bytes).replace('\x01', "|");
            // `fefix` takes MaxMessageSize for the length of raw data, and tags modulo 2^16.
            let misread = |field: &(u32, Vec<u8>)| field.0 == 383 || field.0 > u16::MAX as u32;
            match (&ours, &theirs) {
                (Some(ours), Some(_)) if ours.iter().any(misread) => {}
                (Some(ours), Some(theirs)) if faultless => {
                    taken += 1;
                    if ours != theirs {
                        failures.push(format!("{text}\n  ours {ours:?}\n  theirs {theirs:?}"));
                    }
                }
                (None, Some(_)) if is_framed(&bytes) => failures.push(format!("only theirs: {text}")),
                (Some(_), None) => failures.push(format!("only ours: {text}")),
                _ => refused += 1,
            }
        }
    }
    let _ = std::panic::take_hook();
    assert!(
        failures.is_empty(),
        "{} differ\n{}",
        failures.len(),
        failures[..failures.len().min(10)].join("\n")
    );
    assert!(
        taken > 1_000 && refused > 1_000,
        "{taken} taken, {refused} refused, {silent} without an opinion"
    );
}

#[test]
fn another_codec_reads_what_we_write() {
    let mut decoder = Decoder::<Config>::new(Dictionary::fix44());
    let mut encoder = Encoder::new(FixVersion::Fix44, "PITLANE", "CLIENT1");
    let mut out = Vec::new();
    for seed in 0..2_000 {
        let mut dice = Dice::new(seed ^ 0xe2c0);
        out.clear();
        let mut draft = encoder.begin(&mut out, b'8', dice.below(1 << 40), Timestamp(dice.below(1 << 60)));
        draft.text(b"58=", &vec![b'x'; 1 + dice.below(3_000) as usize]);
        draft.scaled(b"44=", dice.roll() as i64);
        draft.uuid(b"17=", Uuid(dice.roll() as u128));
        draft.finish();
        let theirs = theirs(&mut decoder, &out).expect("it does not panic");
        let (ours, faultless) = ours(&out);
        assert!(theirs.is_some() && theirs == ours && faultless, "{}", String::from_utf8_lossy(&out));
    }
}
