//! Messages written into a buffer that is used again. What is the same in every message of a session is made once; the length
//! and the sum are put in at the end.
//!
//! ```text
//! 8=FIX.4.4|9=000|35=?|49=PITLANE|56=CLIENT1|34=   ← the head: made once, the type and the length patched
//! 217|52=20261116-08:00:00.123|                     ← number and time
//! 37=…|…|10=123|
//! ```

use pitlane_engine::id::Uuid;
use pitlane_engine::text::{DECIMAL_BYTES_MAX, write_scaled, write_u64};
use pitlane_engine::time::Timestamp;

use super::frame::{SOH, check_sum};
use super::stamp::{STAMP_BYTES, Stamp};

/// `8=FIX.4.4|9=`
const LENGTH_AT: usize = 12;
/// Digits kept free for the length: right for nearly every message, the others are moved by a byte or two.
const LENGTH_DIGITS: usize = 3;
/// Where the body begins, with a length of so many digits.
const BODY_AT: usize = LENGTH_AT + LENGTH_DIGITS + 1;
/// Where the type stands.
const TYPE_AT: usize = BODY_AT + 3;

#[derive(Clone, Debug)]
pub struct Encoder {
    head: Vec<u8>,
    stamp: Stamp,
    /// For times in the body, which may lie on another day than now.
    other_stamp: Stamp,
}

impl Encoder {
    pub fn new(sender_comp_id: &str, target_comp_id: &str) -> Encoder {
        let head = format!("8=FIX.4.4\x019=000\x0135=?\x0149={sender_comp_id}\x0156={target_comp_id}\x0134=");
        Encoder { head: head.into_bytes(), stamp: Stamp::default(), other_stamp: Stamp::default() }
    }

    /// Begins a message at the end of `out`.
    pub fn begin<'a>(
        &'a mut self,
        out: &'a mut Vec<u8>,
        msg_type: u8,
        number: u64,
        now: Timestamp,
    ) -> Draft<'a> {
        let start = out.len();
        out.extend_from_slice(&self.head);
        out[start + TYPE_AT] = msg_type;
        let mut draft = Draft { out, start, stamp: &mut self.other_stamp };
        draft.digits(number);
        draft.out.push(SOH);
        draft.text(b"52=", self.stamp.text(now));
        draft
    }

    /// Begins a message that was sent before under this number.
    pub fn begin_again<'a>(
        &'a mut self,
        out: &'a mut Vec<u8>,
        msg_type: u8,
        number: u64,
        now: Timestamp,
        orig_sending_time: Option<&[u8]>,
    ) -> Draft<'a> {
        let start = out.len();
        out.extend_from_slice(&self.head);
        out[start + TYPE_AT] = msg_type;
        let stamp = self.stamp.text(now);
        let mut draft = Draft { out, start, stamp: &mut self.other_stamp };
        draft.digits(number);
        draft.out.push(SOH);
        draft.text(b"43=", b"Y");
        draft.text(b"52=", stamp);
        draft.text(b"122=", orig_sending_time.unwrap_or(stamp));
        draft
    }

    /// Writes a message of ours once more: as it was, but marked, with the time now and the time then. Answers whether it was
    /// one of ours.
    pub fn again(&mut self, out: &mut Vec<u8>, kept: &[u8], number: u64, now: Timestamp) -> bool {
        let Some(kept) = Kept::read(kept) else { return false };
        let draft = self.begin_again(out, kept.msg_type, number, now, Some(kept.sending_time));
        draft.out.extend_from_slice(kept.body);
        draft.finish();
        true
    }
}

/// A message of ours as it was kept.
struct Kept<'a> {
    msg_type: u8,
    sending_time: &'a [u8],
    /// Behind the header, before the sum.
    body: &'a [u8],
}

impl<'a> Kept<'a> {
    fn read(bytes: &'a [u8]) -> Option<Kept<'a>> {
        let type_at = memchr::memmem::find(bytes, b"\x0135=")? + 4;
        let time_at = memchr::memmem::find(bytes, b"\x0152=")? + 4;
        let sending_time = bytes.get(time_at..time_at + STAMP_BYTES)?;
        let body = bytes.get(time_at + STAMP_BYTES + 1..bytes.len().checked_sub(7)?)?;
        Some(Kept { msg_type: *bytes.get(type_at)?, sending_time, body })
    }
}

/// A message that is being written. It is none before [`Draft::finish`].
#[derive(Debug)]
pub struct Draft<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    stamp: &'a mut Stamp,
}

impl Draft<'_> {
    /// A field as it stands; `tag` with its `=`.
    #[inline]
    pub fn text(&mut self, tag: &[u8], value: &[u8]) {
        self.out.extend_from_slice(tag);
        self.out.extend_from_slice(value);
        self.out.push(SOH);
    }

    #[inline]
    pub fn code(&mut self, tag: &[u8], code: u8) {
        self.out.extend_from_slice(tag);
        self.out.extend_from_slice(&[code, SOH]);
    }

    #[inline]
    pub fn number(&mut self, tag: &[u8], value: u64) {
        self.out.extend_from_slice(tag);
        self.digits(value);
        self.out.push(SOH);
    }

    /// Units of 10⁻⁸ as a decimal.
    #[inline]
    pub fn scaled(&mut self, tag: &[u8], raw: i64) {
        let mut text = [0; DECIMAL_BYTES_MAX];
        let len = write_scaled(raw, &mut text);
        self.text(tag, &text[..len]);
    }

    #[inline]
    pub fn time(&mut self, tag: &[u8], at: Timestamp) {
        self.out.extend_from_slice(tag);
        self.out.extend_from_slice(self.stamp.text(at));
        self.out.push(SOH);
    }

    #[inline]
    pub fn uuid(&mut self, tag: &[u8], uuid: Uuid) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = *b"00000000-0000-0000-0000-000000000000";
        let mut at = 0;
        for (nth, byte) in uuid.0.to_be_bytes().into_iter().enumerate() {
            text[at] = HEX[byte as usize >> 4];
            text[at + 1] = HEX[byte as usize & 15];
            at += if matches!(nth, 3 | 5 | 7 | 9) { 3 } else { 2 };
        }
        self.text(tag, &text);
    }

    /// A field of several pieces.
    pub fn pieces(&mut self, tag: &[u8], pieces: &[&[u8]]) {
        self.out.extend_from_slice(tag);
        pieces.iter().for_each(|piece| self.out.extend_from_slice(piece));
        self.out.push(SOH);
    }

    fn digits(&mut self, value: u64) {
        let mut text = [0; 20];
        let len = write_u64(value, &mut text);
        self.out.extend_from_slice(&text[..len]);
    }

    /// Puts in length and sum. Answers where the message begins in its buffer.
    pub fn finish(self) -> usize {
        let Draft { out, start, .. } = self;
        let length = out.len() - start - BODY_AT;
        let mut text = [0; 20];
        let digits = write_u64(length as u64, &mut text);
        let length_at = start + LENGTH_AT;
        if digits == LENGTH_DIGITS {
            out[length_at..length_at + digits].copy_from_slice(&text[..digits]);
        } else {
            out.splice(length_at..length_at + LENGTH_DIGITS, text[..digits].iter().copied());
        }
        let sum = check_sum(&out[start..]);
        out.extend_from_slice(&[
            b'1',
            b'0',
            b'=',
            b'0' + sum / 100,
            b'0' + sum / 10 % 10,
            b'0' + sum % 10,
            SOH,
        ]);
        start
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::number::Price;

    use super::*;
    use crate::decoded::Decoded;
    use crate::fix::fields::{Fields, read};
    use crate::fix::frame::decode;

    const NOW: Timestamp = Timestamp(1_795_161_600_123_456_789);

    fn readable(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace('\x01', "|")
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut encoder = Encoder::new("PITLANE", "CLIENT1");
        let mut out = b"before".to_vec();
        // Lengths of two, three, four and five digits.
        for len in [0, 30, 31, 500, 930, 931, 932, 2_000, 9_999, 60_000] {
            let mut draft = encoder.begin(&mut out, b'8', len as u64, NOW);
            draft.number(b"38=", 5);
            draft.text(b"58=", &vec![b'x'; len]);
            let start = draft.finish();
            let Ok(Decoded::Message { message, consumed }) = decode(&out[start..], 100_000) else {
                panic!("{}", readable(&out[start..]))
            };
            assert_eq!(consumed, out.len() - start);
            let mut fields = Fields::default();
            let message = read(message, &mut fields);
            assert_eq!((message.msg_type, message.get(58).map(<[u8]>::len)), (&b"8"[..], Some(len)));
            assert_eq!(message.header.msg_seq_num, Some(len.to_string().as_bytes()));
        }
    }

    #[test]
    fn values_are_written_as_fix_writes_them() {
        let mut encoder = Encoder::new("S", "T");
        let mut out = Vec::new();
        let mut draft = encoder.begin(&mut out, b'8', 217, NOW);
        draft.scaled(b"44=", Price::parse(b"-1.25").unwrap().raw());
        draft.time(b"60=", NOW);
        draft.uuid(b"17=", Uuid(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef));
        draft.code(b"39=", b'A');
        draft.pieces(b"58=", &[b"a", b": ", b"b"]);
        draft.finish();
        assert_eq!(
            readable(&out),
            "8=FIX.4.4|9=134|35=8|49=S|56=T|34=217|52=20261120-08:00:00.123|44=-1.25|60=20261120-08:00:00.123|\
             17=01234567-89ab-cdef-0123-456789abcdef|39=A|58=a: b|10=049|"
        );
        assert!(matches!(decode(&out, 1_000), Ok(Decoded::Message { .. })));
    }

    #[test]
    fn a_message_sent_again_is_the_same_but_for_its_marks() {
        let mut encoder = Encoder::new("S", "T");
        let mut kept = Vec::new();
        let mut draft = encoder.begin(&mut kept, b'8', 5, NOW);
        draft.text(b"37=", b"o1");
        draft.finish();
        let mut out = Vec::new();
        assert!(encoder.again(&mut out, &kept, 5, Timestamp(NOW.0 + 1_000_000_000)));
        assert_eq!(
            readable(&out).split_once("35=").unwrap().1.rsplit_once("10=").unwrap().0,
            "8|49=S|56=T|34=5|43=Y|52=20261120-08:00:01.123|122=20261120-08:00:00.123|37=o1|"
        );
        assert!(matches!(decode(&out, 1_000), Ok(Decoded::Message { .. })));
        assert!(!encoder.again(&mut out, b"rubbish", 5, NOW));
    }
}
