//! Finds one frame of the stream and checks its BeginString, BodyLength and CheckSum.
//!
//! ```text
//! 8=FIX.4.4|9=147|35=D|… body …|10=203|
//! │               └──── 147 bytes ─────┘│
//! └── sum of these bytes modulo 256 ───┘
//! ```
//!
//! The content of a frame is left to [`super::fields`].

use memchr::memmem;

use super::tag::prefix;
use crate::decoded::Decoded;

pub const SOH: u8 = 1;

/// The BeginString of nearly all frames, which is recognised fastest.
const BEGIN_STRING: &[u8] = b"FIX.4.4";

/// Beginning of a frame with it.
const HEAD: &[u8] = b"8=FIX.4.4\x019=";

/// Text that is searched for to find the next frame after garbage.
const BEGIN: &[u8] = b"8=FIX";

/// Longest BeginString that is read completely. The longest that exists is `FIXT.1.1`.
const BEGIN_STRING_BYTES_MAX: usize = 16;

/// Digits of a BodyLength that are read. A longer number is above every limit.
const LENGTH_DIGITS_MAX: usize = 9;

/// `10=123|`
const TRAILER_BYTES: usize = 7;

/// Beginning of the trailer, after the end of the last field.
const TRAILER: &[u8] = b"\x0110=";

/// `35=0|`
const BODY_BYTES_MIN: usize = 5;

/// Bytes of a frame around its body: the longest head and the trailer.
pub const FRAME_BYTES_AROUND: usize =
    2 + BEGIN_STRING_BYTES_MAX + 1 + 2 + LENGTH_DIGITS_MAX + 1 + TRAILER_BYTES;

/// A frame with correct length and check sum, whose third field is MsgType.
///
/// Invariant: the byte before `end` is SOH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixFrame<'a> {
    /// Bytes from `8=` to the SOH after the check sum.
    pub bytes: &'a [u8],
    pub begin_string: &'a [u8],
    /// Offset of `35=`.
    pub body: usize,
    /// Offset of `10=`.
    pub end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixFrameError {
    /// Not a frame, or a broken one: the caller skips this many bytes. It consumes no sequence
    /// number.
    Garbled { skip: usize },
    /// BodyLength is above the limit, so that no reader waits for so many bytes. The connection
    /// ends.
    TooLong,
}

/// Decodes the frame at the beginning of `bytes`. A body has at most `body_bytes_max` bytes.
#[inline]
pub fn decode(bytes: &[u8], body_bytes_max: usize) -> Result<Decoded<FixFrame<'_>>, FixFrameError> {
    match decode_aligned(bytes, body_bytes_max) {
        Ok(decoded) => Ok(decoded),
        Err(FrameFault::Garbled { skip }) => Err(FixFrameError::Garbled { skip }),
        Err(FrameFault::TooLong) => Err(FixFrameError::TooLong),
        Err(FrameFault::Misaligned { body, end }) => skip_misaligned(bytes, body, end, body_bytes_max),
    }
}

/// Why bytes are no frame.
enum FrameFault {
    Garbled {
        skip: usize,
    },
    TooLong,
    /// The frame does not end where its BodyLength says.
    Misaligned {
        body: usize,
        end: usize,
    },
}

#[inline(always)]
fn decode_aligned(bytes: &[u8], body_bytes_max: usize) -> Result<Decoded<FixFrame<'_>>, FrameFault> {
    let (begin_string, length_at) = match bytes.strip_prefix(HEAD) {
        Some(_) => (BEGIN_STRING, HEAD.len()),
        None => match other_head(bytes) {
            FrameHead::Begin(begin_string, at) => (begin_string, at),
            FrameHead::Incomplete => return Ok(Decoded::Incomplete),
            FrameHead::Garbled => return Err(FrameFault::Garbled { skip: next_begin(bytes) }),
        },
    };
    let mut length = 0usize;
    let mut body = length_at;
    loop {
        let Some(&byte) = bytes.get(body) else { return Ok(Decoded::Incomplete) };
        body += 1;
        match byte {
            b'0'..=b'9' if body - length_at > LENGTH_DIGITS_MAX => return Err(FrameFault::TooLong),
            b'0'..=b'9' => length = length * 10 + (byte - b'0') as usize,
            // A length without digits is zero, and no body is so short.
            SOH => break,
            _ => return Err(FrameFault::Garbled { skip: next_begin(bytes) }),
        }
    }
    if length > body_bytes_max {
        return Err(FrameFault::TooLong);
    }
    if length < BODY_BYTES_MIN || !begins_as(&bytes[body..], prefix::MSG_TYPE) {
        return Err(FrameFault::Garbled { skip: next_begin(bytes) });
    }
    let end = body + length;
    let Some(frame) = bytes.get(..end + TRAILER_BYTES) else {
        // A check sum of fewer digits is complete, too.
        let is_complete = bytes.get(end - 1..).and_then(|rest| rest.strip_prefix(TRAILER));
        return match is_complete.is_some_and(|sum| sum.contains(&SOH)) {
            true => Err(FrameFault::Misaligned { body, end }),
            false => Ok(Decoded::Incomplete),
        };
    };
    let [SOH, b'1', b'0', b'=', a, b, c, SOH] = frame[end - 1..] else {
        return Err(FrameFault::Misaligned { body, end });
    };
    if ![a, b, c].iter().all(u8::is_ascii_digit) {
        return Err(FrameFault::Misaligned { body, end });
    }
    let sum = (a - b'0') as u32 * 100 + (b - b'0') as u32 * 10 + (c - b'0') as u32;
    if sum != check_sum(&frame[..end]) as u32 {
        // The length was correct, so the next frame begins after this one.
        return Err(FrameFault::Garbled { skip: frame.len() });
    }
    Ok(Decoded::Message {
        message: FixFrame { bytes: frame, begin_string, body, end },
        consumed: frame.len(),
    })
}

impl<'a> FixFrame<'a> {
    /// Returns MsgType, which selects frames before anything else is read.
    pub fn msg_type(&self) -> &'a [u8] {
        let value = &self.bytes[self.body + 3..self.end];
        let end = memchr::memchr(SOH, value).unwrap_or(value.len());
        &value[..end]
    }
}

/// Returns the sum of all bytes modulo 256.
pub fn check_sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, &byte| sum.wrapping_add(byte))
}

enum FrameHead<'a> {
    /// BeginString, and the offset of the length's digits.
    Begin(&'a [u8], usize),
    Incomplete,
    Garbled,
}

/// Reads a head that is not the usual one or not complete.
fn other_head(bytes: &[u8]) -> FrameHead<'_> {
    if !begins_as(bytes, BEGIN) {
        return FrameHead::Garbled;
    }
    let window = &bytes[..bytes.len().min(2 + BEGIN_STRING_BYTES_MAX + 1)];
    let Some(end) = memchr::memchr(SOH, window) else {
        let whole = window.len() == 2 + BEGIN_STRING_BYTES_MAX + 1;
        return if whole { FrameHead::Garbled } else { FrameHead::Incomplete };
    };
    if !begins_as(&bytes[end + 1..], prefix::BODY_LENGTH) {
        return FrameHead::Garbled;
    }
    // Of `9=` and the digits after it a part may have arrived.
    FrameHead::Begin(&bytes[2..end], end + 3)
}

/// Returns whether `bytes`, as far as they have arrived, begin with `prefix`.
fn begins_as(bytes: &[u8], prefix: &[u8]) -> bool {
    let common = bytes.len().min(prefix.len());
    bytes[..common] == prefix[..common]
}

/// Skips a frame that does not end where its BodyLength says. If a whole frame lies inside of the
/// body, the length was too large and reading goes on with that frame. Otherwise the frame is
/// skipped up to the next CheckSum after the place that BodyLength names, as QuickFIX counts: a
/// length that is slightly too large so takes the frame after it along. Its sender gets a Resend
/// Request for both, and answers in order; if the second frame counted, the sender that repeats
/// both without PossDupFlag would be logged out.
#[cold]
fn skip_misaligned(
    bytes: &[u8],
    body: usize,
    end: usize,
    body_bytes_max: usize,
) -> Result<Decoded<FixFrame<'_>>, FixFrameError> {
    if let Some(skip) = inner_frame(bytes, body, end, body_bytes_max) {
        return Err(FixFrameError::Garbled { skip });
    }
    let rest = &bytes[end - 1..];
    let found = memmem::find(rest, TRAILER).and_then(|at| {
        let value = at + TRAILER.len();
        Some(value + memchr::memchr(SOH, &rest[value..])? + 1)
    });
    match found {
        Some(len) => Err(FixFrameError::Garbled { skip: end - 1 + len }),
        // The result must not depend on how the bytes are cut, so the check sum is waited for.
        None if rest.len() <= body_bytes_max => Ok(Decoded::Incomplete),
        None => Err(FixFrameError::Garbled { skip: next_begin(bytes) }),
    }
}

/// Returns the offset of the frame that follows the first CheckSum in a body, if it is whole and
/// ends inside of the body. No other place is tried, so that the time is bounded by the length.
fn inner_frame(bytes: &[u8], body: usize, end: usize, body_bytes_max: usize) -> Option<usize> {
    let inside = bytes.get(body..end)?;
    let value = memmem::find(inside, TRAILER)? + TRAILER.len();
    let start = value + memchr::memchr(SOH, &inside[value..])? + 1;
    match decode_aligned(&inside[start..], body_bytes_max) {
        Ok(Decoded::Message { .. }) => Some(body + start),
        Ok(Decoded::Incomplete) | Err(_) => None,
    }
}

/// Returns how many bytes to skip to the next possible frame. The buffer may end with its first
/// bytes.
#[cold]
fn next_begin(bytes: &[u8]) -> usize {
    let rest = &bytes[1..];
    let skip = memmem::find(rest, BEGIN).unwrap_or_else(|| {
        let tail = (1..BEGIN.len()).rev().find(|&len| rest.ends_with(&BEGIN[..len]));
        rest.len() - tail.unwrap_or(0)
    });
    skip + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1_000;

    /// Returns a frame from readable text with `|` for SOH, with correct length and sum.
    fn frame(body: &str) -> Vec<u8> {
        summed(&format!("8=FIX.4.4|9={}|{body}", body.len()))
    }

    /// Returns these bytes with a correct sum.
    fn summed(text: &str) -> Vec<u8> {
        let mut bytes = soh(text);
        let sum = check_sum(&bytes);
        bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        bytes
    }

    fn soh(text: &str) -> Vec<u8> {
        text.replace('|', "\x01").into_bytes()
    }

    #[test]
    fn a_frame_is_incomplete_up_to_its_last_byte() {
        let bytes = frame("35=0|34=2|");
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut], MAX), Ok(Decoded::Incomplete), "{cut}");
        }
        let Ok(Decoded::Message { message, consumed }) = decode(&bytes, MAX) else { panic!("a good frame") };
        assert_eq!((message.msg_type(), consumed), (&b"0"[..], bytes.len()));
        assert_eq!(&message.bytes[message.body..message.end], soh("35=0|34=2|"));
    }

    #[test]
    fn a_wrong_begin_string_length_or_sum_is_garbled() {
        // Only one thing is wrong, so the sum of each is correct but for those that end with it.
        let right_sums = [
            "x8=FIX.4.4|9=5|35=0|",
            "9=5|8=FIX.4.4|35=0|",
            "8=FIX.4.4|35=0|9=5|",
            "8=FIX.4.4|9=|35=0|",
            "8=FIX.4.4|9=-5|35=0|",
            "8=FIX.4.4|9=1e1|35=0|",
            "8=FIX.4.4|9=0|",
            "8=FIX.4.4|9=0|35=0|",
            "8=FIX.4.4|9=3|35=|",
            "8=FIX.4.4|9=4|35=0",
            "8=FIX.4.4|9=4|35=0|",
            "8=FIX.4.4|9=5|34=0|",
            "8=FIX.4.4|9=6|35=0|34=2|",
            "8=FIX.4.4ANDMUCHMORE|9=5|35=0|",
        ];
        let others = [
            "8=FIX.4.4|9=5|35=0|10=162|",
            "8=FIX.4.4|9=5|35=0|10=1a3|",
            "8=FIX.4.4|9=5|35=0|10=1|",
            "GET / HTTP/1.1 and so on",
        ];
        for bad in right_sums.map(summed).into_iter().chain(others.map(soh)) {
            let text = String::from_utf8(bad.clone()).unwrap();
            // The frame after the garbage is found.
            let good = frame("35=0|34=2|");
            let bytes = [&bad[..], &good].concat();
            let Err(FixFrameError::Garbled { skip }) = decode(&bytes, MAX) else { panic!("{text}") };
            assert!(skip > 0 && skip <= text.len(), "{text} {skip}");
            let mut rest = &bytes[skip..];
            while let Err(FixFrameError::Garbled { skip }) = decode(rest, MAX) {
                rest = &rest[skip..];
            }
            assert!(matches!(decode(rest, MAX), Ok(Decoded::Message { .. })), "{text}");
            assert_eq!(rest, good, "{text}");
        }
    }

    #[test]
    fn a_frame_that_does_not_end_takes_the_next_one_along() {
        let good = frame("35=0|34=2|");
        for text in
            ["8=FIX.4.4|9=6|35=0|10=161|", "8=FIX.4.4|9=30|35=0|10=161|", "8=FIX.4.4|9=5|35=0|11=161|"]
        {
            let both = [soh(text), good.clone()].concat();
            for cut in soh(text).len()..both.len() {
                assert_eq!(decode(&both[..cut], MAX), Ok(Decoded::Incomplete), "{text} {cut}");
            }
            let skip = both.len();
            let all = [both, good.clone()].concat();
            assert_eq!(decode(&all, MAX), Err(FixFrameError::Garbled { skip }), "{text}");
            assert!(matches!(decode(&all[skip..], MAX), Ok(Decoded::Message { .. })), "{text}");
        }
    }

    /// A length that is much too large covers whole frames, which are read; how the bytes are cut
    /// makes no difference.
    #[test]
    fn frames_inside_of_a_length_that_is_too_large_are_not_lost() {
        let good = frame("35=0|34=2|");
        // The rest of the bad frame has twelve bytes.
        let (shorter, exact, longer) = (good.len() - 2, good.len() + 12, 3 * good.len() + 17);
        for (length, is_inside) in [(shorter, false), (exact, true), (longer, true)] {
            let bad = soh(&format!("8=FIX.4.4|9={length}|35=0|10=161|"));
            let stream = [&bad[..], &good.repeat(6)].concat();
            let skip = bad.len() + if is_inside { 0 } else { good.len() };
            assert_eq!(decode(&stream, MAX), Err(FixFrameError::Garbled { skip }), "length {length}");
            for step in [1, 7, stream.len()] {
                let (mut rest, mut arrived, mut read) = (0, 0, Vec::new());
                while arrived < stream.len() {
                    arrived = stream.len().min(arrived + step);
                    loop {
                        match decode(&stream[rest..arrived], MAX) {
                            Ok(Decoded::Message { consumed, .. }) => {
                                read.push(rest);
                                rest += consumed;
                            }
                            Err(FixFrameError::Garbled { skip }) => rest += skip,
                            other => break assert_eq!(other, Ok(Decoded::Incomplete)),
                        }
                    }
                }
                let expected: Vec<usize> = (skip..stream.len()).step_by(good.len()).collect();
                assert_eq!(read, expected, "length {length} in pieces of {step}");
            }
        }
    }

    /// Raw data of a good frame may contain a frame.
    #[test]
    fn a_frame_inside_of_a_good_one_is_data() {
        let inner = [soh("x|10=000|"), frame("35=0|34=9|")].concat();
        let inner = String::from_utf8(inner).unwrap().replace('\x01', "|");
        let bytes = frame(&format!("35=0|95={}|96={inner}|", inner.len()));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut], MAX), Ok(Decoded::Incomplete), "{cut}");
        }
        let Ok(Decoded::Message { consumed, .. }) = decode(&bytes, MAX) else { panic!("a good frame") };
        assert_eq!(consumed, bytes.len());
    }

    #[test]
    fn a_frame_without_a_check_sum_is_waited_for_in_bounded_memory() {
        let head = soh("8=FIX.4.4|9=5|35=0|11=161|");
        let endless = [head.clone(), vec![b'x'; MAX]].concat();
        assert_eq!(decode(&endless[..MAX], MAX), Ok(Decoded::Incomplete));
        assert_eq!(decode(&endless, MAX), Err(FixFrameError::Garbled { skip: endless.len() }));
    }

    #[test]
    fn an_excessive_length_is_refused_at_once() {
        for length in ["1001", "999999999", "0000000010", "4294967300", "18446744073709551620"] {
            let bytes = soh(&format!("8=FIX.4.4|9={length}|35=0|"));
            assert_eq!(decode(&bytes, MAX), Err(FixFrameError::TooLong), "{length}");
        }
    }

    #[test]
    fn a_length_may_be_the_limit_and_have_nine_digits() {
        for length in ["10", "0010", "000000010"] {
            let bytes = summed(&format!("8=FIX.4.4|9={length}|35=0|34=2|"));
            let Ok(Decoded::Message { consumed, .. }) = decode(&bytes, 10) else { panic!("{length}") };
            assert_eq!(consumed, bytes.len(), "{length}");
            assert_eq!(decode(&bytes, 9), Err(FixFrameError::TooLong), "{length}");
        }
    }

    #[test]
    fn a_sum_of_fewer_digits_ends_its_frame() {
        for text in ["8=FIX.4.4|9=5|35=0|10=1|", "8=FIX.4.4|9=5|35=0|10=|"] {
            let bytes = soh(text);
            let (skip, cut) = (bytes.len(), bytes.len() - 1);
            assert_eq!(decode(&bytes[..cut], MAX), Ok(Decoded::Incomplete), "{text}");
            assert_eq!(decode(&bytes, MAX), Err(FixFrameError::Garbled { skip }), "{text}");
        }
    }

    #[test]
    fn a_frame_may_have_another_begin_string() {
        let bytes = summed("8=FIX.4.2|9=5|35=0|");
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut], MAX), Ok(Decoded::Incomplete), "{cut}");
        }
        let Ok(Decoded::Message { message, .. }) = decode(&bytes, MAX) else { panic!("a frame") };
        assert_eq!(message.begin_string, b"FIX.4.2");
    }

    #[test]
    fn the_beginning_of_a_frame_is_kept_after_garbage() {
        for (text, skip) in [("rubbish8=FI", 7), ("rubbish8", 7), ("rubbish", 7), ("88=FIX", 1)] {
            assert_eq!(decode(text.as_bytes(), MAX), Err(FixFrameError::Garbled { skip }), "{text}");
        }
    }
}
