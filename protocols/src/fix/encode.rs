//! Writes messages into a reused buffer. The part that is equal in every message of a session is
//! written once; BodyLength and CheckSum are filled in at the end.
//!
//! ```text
//! 8=FIX.4.4|9=000|35=?|49=PITLANE|56=CLIENT1|34=   ← head: written once; type and length are patched
//! 217|52=20261116-08:00:00.123|                     ← number and time
//! 37=…|…|10=123|
//! ```

use std::ops::Range;

use pitlane_engine::id::{IntId, Uuid};
use pitlane_engine::index::index_u16;
use pitlane_engine::text::{DECIMAL_BYTES_MAX, U64_BYTES_MAX, write_scaled, write_u64};
use pitlane_engine::time::Timestamp;

use super::frame::{SOH, check_sum};
use super::msg_type::SentMsgType;
use super::tag::prefix;
use super::timestamp::{TIMESTAMP_BYTES, TimestampText};
use super::version::FixVersion;

/// Digits reserved for the length. They suffice for nearly every message; others are moved by a
/// byte or two.
const LENGTH_DIGITS: usize = 3;
/// From the length to the body, with a length of so many digits.
const BODY_AFTER: usize = LENGTH_DIGITS + 1;
/// From the length to the type.
const TYPE_AFTER: usize = BODY_AFTER + 3;

#[derive(Clone, Debug)]
pub struct Encoder {
    /// Buffer that always begins with the head.
    page: [u8; PAGE_BYTES],
    head_bytes: usize,
    /// Offset of the length, which depends on the BeginString.
    length_at: usize,
    stamp: TimestampText,
    /// Text of times in the body, which may be on another day than now.
    other_stamp: TimestampText,
}

/// Bytes that are written before they are appended to the buffer at once; most messages are
/// shorter. Each field then has a place in an array of known size, and writing it copies a few
/// words.
const PAGE_BYTES: usize = 768;

/// Bytes of the page for the head, more than the names of a session may have.
const HEAD_BYTES_MAX: usize = PAGE_BYTES / 2;

/// Room for a field whose value is always short: an id, a number, a time.
const FIELD_BYTES: usize = 64;

impl Encoder {
    pub fn new(version: FixVersion, sender_comp_id: &str, target_comp_id: &str) -> Encoder {
        let begin = format!("8={}\x019=", version.begin_string());
        let head = format!("{begin}000\x0135=?\x0149={sender_comp_id}\x0156={target_comp_id}\x0134=");
        assert!(head.len() <= HEAD_BYTES_MAX, "names of sessions are short");
        let mut page = [0; PAGE_BYTES];
        page[..head.len()].copy_from_slice(head.as_bytes());
        Encoder {
            page,
            head_bytes: head.len(),
            length_at: begin.len(),
            stamp: TimestampText::default(),
            other_stamp: TimestampText::default(),
        }
    }

    /// Begins a message at the end of `out`.
    pub fn begin<'a>(
        &'a mut self,
        out: &'a mut Vec<u8>,
        msg_type: impl Into<SentMsgType>,
        number: u64,
        now: Timestamp,
    ) -> Draft<'a> {
        let (mut draft, stamp) = self.head(out, msg_type.into(), number, now);
        draft.short(prefix::SENDING_TIME, stamp, TIMESTAMP_BYTES);
        draft
    }

    /// Begins a message that was sent before under this number.
    pub fn begin_resend<'a>(
        &'a mut self,
        out: &'a mut Vec<u8>,
        msg_type: impl Into<SentMsgType>,
        number: u64,
        now: Timestamp,
        orig_sending_time: Option<&[u8]>,
    ) -> Draft<'a> {
        let (mut draft, stamp) = self.head(out, msg_type.into(), number, now);
        draft.code(prefix::POSS_DUP_FLAG, b'Y');
        draft.short(prefix::SENDING_TIME, stamp, TIMESTAMP_BYTES);
        draft.text(prefix::ORIG_SENDING_TIME, orig_sending_time.unwrap_or(stamp));
        draft
    }

    /// Writes everything before the time, and returns the text of the time.
    fn head<'a>(
        &'a mut self,
        out: &'a mut Vec<u8>,
        msg_type: SentMsgType,
        number: u64,
        now: Timestamp,
    ) -> (Draft<'a>, &'a [u8; TIMESTAMP_BYTES]) {
        let (start, head_bytes, length_at) = (out.len(), self.head_bytes, self.length_at);
        let SentMsgType { first, second } = msg_type;
        self.page[length_at + TYPE_AFTER] = first;
        let (page, stamp) = (&mut self.page, &mut self.other_stamp);
        let written = 0..head_bytes;
        let mut draft = Draft { out, start, length_at, second, page, head_bytes, written, stamp };
        draft.number(b"", number);
        (draft, self.stamp.text(now))
    }

    /// Writes a stored message again: unchanged but for PossDupFlag, the current time and the
    /// original time. Returns whether it was one of our messages.
    pub fn resend(&mut self, out: &mut Vec<u8>, kept: &[u8], number: u64, now: Timestamp) -> bool {
        let Some(kept) = StoredMessage::read(kept) else { return false };
        let mut draft = self.begin_resend(out, kept.msg_type, number, now, Some(kept.sending_time));
        draft.flush().extend_from_slice(kept.body);
        draft.finish();
        true
    }
}

/// A message of ours as it was stored.
struct StoredMessage<'a> {
    msg_type: SentMsgType,
    sending_time: &'a [u8],
    /// Bytes after the header and before the check sum.
    body: &'a [u8],
}

impl<'a> StoredMessage<'a> {
    fn read(bytes: &'a [u8]) -> Option<StoredMessage<'a>> {
        let type_at = memchr::memmem::find(bytes, b"\x0135=")? + 4;
        let time_at = memchr::memmem::find(bytes, b"\x0152=")? + 4;
        let sending_time = bytes.get(time_at..time_at + TIMESTAMP_BYTES)?;
        let body = bytes.get(time_at + TIMESTAMP_BYTES + 1..bytes.len().checked_sub(7)?)?;
        let (first, second) = (*bytes.get(type_at)?, *bytes.get(type_at + 1)?);
        let second = (second != SOH).then_some(second);
        Some(StoredMessage { msg_type: SentMsgType { first, second }, sending_time, body })
    }
}

/// A message that is being written. It is complete after [`Draft::finish`].
#[derive(Debug)]
pub struct Draft<'a> {
    /// Buffer for the complete message.
    out: &'a mut Vec<u8>,
    /// Offset of the message in `out`.
    start: usize,
    /// Offset of the length in the message.
    length_at: usize,
    /// Second character of the type, where there is one. The head has room for the first.
    second: Option<u8>,
    /// Next bytes. The head stays for the next message.
    page: &'a mut [u8; PAGE_BYTES],
    head_bytes: usize,
    /// Part of the page that is written and not yet appended to `out`.
    written: Range<usize>,
    stamp: &'a mut TimestampText,
}

impl Draft<'_> {
    /// Writes a field with a text value; `tag` includes its `=`.
    #[inline]
    pub fn text<const N: usize>(&mut self, tag: &[u8; N], value: &[u8]) {
        self.put(tag);
        self.put_slice(value);
        self.put(&[SOH]);
    }

    #[inline]
    pub fn code<const N: usize>(&mut self, tag: &[u8; N], code: u8) {
        self.short(tag, &[code], 1);
    }

    #[inline]
    pub fn id<const N: usize>(&mut self, tag: &[u8; N], id: &IntId) {
        self.short(tag, id.padded(), id.text_len());
    }

    #[inline]
    pub fn number<const N: usize>(&mut self, tag: &[u8; N], value: u64) {
        self.field(tag, |place: &mut [u8; U64_BYTES_MAX]| write_u64(value, place));
    }

    /// Writes units of 10⁻⁸ as a decimal.
    #[inline]
    pub fn scaled<const N: usize>(&mut self, tag: &[u8; N], raw: i64) {
        self.field(tag, |place: &mut [u8; DECIMAL_BYTES_MAX]| write_scaled(raw, place));
    }

    #[inline]
    pub fn time<const N: usize>(&mut self, tag: &[u8; N], at: Timestamp) {
        let text = *self.stamp.text(at);
        self.short(tag, &text, TIMESTAMP_BYTES);
    }

    #[inline]
    pub fn uuid<const N: usize>(&mut self, tag: &[u8; N], uuid: Uuid) {
        let text = uuid.text();
        self.short(tag, &text, text.len());
    }

    /// Writes a field of several pieces.
    pub fn pieces<const N: usize>(&mut self, tag: &[u8; N], pieces: &[&[u8]]) {
        self.put(tag);
        pieces.iter().for_each(|piece| self.put_slice(piece));
        self.put(&[SOH]);
    }

    /// Writes complete fields as they were written before.
    #[inline]
    pub(super) fn fields(&mut self, fields: &[u8]) {
        self.put_slice(fields);
    }

    /// Writes fields by `write`, and returns their bytes if the page holds all of them.
    #[inline]
    pub(super) fn written_by(&mut self, write: impl FnOnce(&mut Self)) -> Option<&[u8]> {
        let (begin, flushed) = (self.written.end, self.out.len());
        write(self);
        if self.out.len() == flushed { self.page.get(begin..self.written.end) } else { None }
    }

    /// Writes a field whose value is the beginning of an array. Copying all of the array takes less
    /// time than copying a part.
    #[inline]
    fn short<const N: usize, const M: usize>(&mut self, tag: &[u8; N], value: &[u8; M], len: usize) {
        self.field(tag, |place: &mut [u8; M]| {
            *place = *value;
            len
        });
    }

    /// Writes a field whose value is written in place, where there is room for `M` bytes; `write`
    /// returns its length.
    #[inline]
    fn field<const N: usize, const M: usize>(
        &mut self,
        tag: &[u8; N],
        write: impl FnOnce(&mut [u8; M]) -> usize,
    ) {
        const { assert!(N + M < FIELD_BYTES, "tag, value and delimiter have room") };
        let field = self.next_field();
        let (name, rest) = field.split_first_chunk_mut().expect("a field has room for a tag");
        *name = *tag;
        let len = write(rest.first_chunk_mut().expect("and for its value"));
        rest[len] = SOH;
        self.written.end += N + len + 1;
    }

    /// Returns the place of the next field.
    #[inline]
    fn next_field(&mut self) -> &mut [u8; FIELD_BYTES] {
        if self.written.end > PAGE_BYTES - FIELD_BYTES {
            self.flush();
        }
        self.page[self.written.end..].first_chunk_mut().expect("a page that is handed over is empty")
    }

    /// Writes a few bytes that are not a short value.
    #[inline]
    fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        const { assert!(N <= FIELD_BYTES, "it has room") };
        *self.next_field().first_chunk_mut().expect("a field has room for it") = *bytes;
        self.written.end += N;
    }

    /// Writes bytes of any length.
    #[inline]
    fn put_slice(&mut self, bytes: &[u8]) {
        let end = self.written.end;
        if end + bytes.len() > PAGE_BYTES {
            return self.flush().extend_from_slice(bytes);
        }
        self.page[end..end + bytes.len()].copy_from_slice(bytes);
        self.written.end += bytes.len();
    }

    /// Appends the written bytes to `out`.
    #[cold]
    fn flush(&mut self) -> &mut Vec<u8> {
        self.out.extend_from_slice(&self.page[self.written.clone()]);
        self.written = self.head_bytes..self.head_bytes;
        self.out
    }

    /// Fills in length and check sum, and returns the offset of the message in its buffer.
    pub fn finish(self) -> usize {
        let Draft { out, start, length_at, second, page, written, .. } = self;
        let length_at = start + length_at;
        out.extend_from_slice(&page[written]);
        if let Some(second) = second {
            out.insert(length_at + TYPE_AFTER + 1, second);
        }
        let length = out.len() - length_at - BODY_AFTER;
        match out[length_at..].first_chunk_mut() {
            Some(place) if (100..1_000).contains(&length) => *place = three_digits(index_u16(length)),
            _ => write_length(out, length_at, length),
        }
        let [a, b, c] = three_digits(check_sum(&out[start..]) as u16);
        out.extend_from_slice(&[b'1', b'0', b'=', a, b, c, SOH]);
        start
    }
}

/// Returns a number below 1,000 in decimal.
#[inline]
fn three_digits(number: u16) -> [u8; LENGTH_DIGITS] {
    [number / 100, number / 10 % 10, number % 10].map(|digit| b'0' + (digit & 0xf) as u8)
}

/// Writes a length that has not the usual number of digits.
#[cold]
fn write_length(out: &mut Vec<u8>, length_at: usize, length: usize) {
    let mut text = [0; U64_BYTES_MAX];
    let digits = write_u64(length as u64, &mut text);
    out.splice(length_at..length_at + LENGTH_DIGITS, text[..digits].iter().copied());
}

#[cfg(test)]
mod tests {
    use pitlane_engine::number::Price;

    use super::*;
    use crate::decoded::Decoded;
    use crate::fix::fields::{Fields, read};
    use crate::fix::frame::decode;
    use crate::fix::msg_type::POSITION_REPORT;

    const NOW: Timestamp = Timestamp(1_795_161_600_123_456_789);

    fn readable(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace('\x01', "|")
    }

    #[test]
    fn written_messages_are_read_back() {
        FixVersion::ALL.into_iter().for_each(written_message_is_read_back);
    }

    fn written_message_is_read_back(version: FixVersion) {
        let mut encoder = Encoder::new(version, "PITLANE", "CLIENT1");
        let mut out = b"before".to_vec();
        // Lengths of two, three, four and five digits; texts that end before, at and after the end
        // of a page.
        let around = PAGE_BYTES - 60..PAGE_BYTES + 4;
        for len in [0, 30, 31, 500, 930, 931, 932, 2_000, 9_999, 60_000].into_iter().chain(around) {
            let mut draft = encoder.begin(&mut out, b'8', len as u64, NOW);
            draft.number(b"38=", 5);
            draft.text(b"58=", &vec![b'x'; len]);
            let start = draft.finish();
            let Ok(Decoded::Message { message, consumed }) = decode(&out[start..], 100_000) else {
                panic!("{}", readable(&out[start..]))
            };
            assert_eq!(
                (consumed, message.begin_string),
                (out.len() - start, version.begin_string().as_bytes())
            );
            let mut fields = Fields::default();
            let message = read(message, &mut fields);
            assert_eq!((message.msg_type, message.get(58).map(<[u8]>::len)), (&b"8"[..], Some(len)));
            assert_eq!(message.header.msg_seq_num, Some(len.to_string().as_bytes()));
        }
    }

    #[test]
    fn values_are_written_as_fix_writes_them() {
        let mut encoder = Encoder::new(FixVersion::Fix44, "S", "T");
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
    fn written_fields_are_returned_if_the_page_has_room_for_them() {
        let mut encoder = Encoder::new(FixVersion::Fix44, "S", "T");
        let mut written = |room: usize, write: &dyn Fn(&mut Draft)| {
            let mut out = Vec::new();
            let mut draft = encoder.begin(&mut out, b'8', 1, NOW);
            draft.fields(&vec![b'x'; PAGE_BYTES - draft.written.end - room]);
            draft.written_by(write).map(readable)
        };
        let text = |draft: &mut Draft| draft.fields(&[b'y'; 100]);
        assert_eq!(written(100, &text), Some("y".repeat(100)));
        assert_eq!(written(99, &text), None);
        let number = |draft: &mut Draft| draft.number(b"38=", 5);
        assert_eq!(written(FIELD_BYTES, &number), Some("38=5|".to_string()));
        assert_eq!(written(FIELD_BYTES - 1, &number), None);
    }

    #[test]
    fn a_type_of_two_characters_is_written_and_resent() {
        let mut encoder = Encoder::new(FixVersion::Fix44, "S", "T");
        let mut kept = Vec::new();
        let mut draft = encoder.begin(&mut kept, POSITION_REPORT, 5, NOW);
        draft.text(b"710=", b"p");
        draft.finish();
        assert_eq!(
            readable(&kept).rsplit_once("10=").unwrap().0,
            "8=FIX.4.4|9=52|35=AP|49=S|56=T|34=5|52=20261120-08:00:00.123|710=p|"
        );
        assert!(matches!(decode(&kept, 1_000), Ok(Decoded::Message { .. })));
        let mut out = Vec::new();
        assert!(encoder.resend(&mut out, &kept, 5, NOW));
        assert!(readable(&out).contains("|35=AP|49=S|56=T|34=5|43=Y|"), "{}", readable(&out));
        assert!(matches!(decode(&out, 1_000), Ok(Decoded::Message { .. })));
        out.clear();
        encoder.begin(&mut out, b'8', 6, NOW).finish();
        assert!(readable(&out).contains("|35=8|49=S|"), "the next type is one character again");
    }

    #[test]
    fn a_resent_message_differs_only_in_poss_dup_and_times() {
        let mut encoder = Encoder::new(FixVersion::Fix44, "S", "T");
        let mut kept = Vec::new();
        let mut draft = encoder.begin(&mut kept, b'8', 5, NOW);
        draft.text(b"37=", b"o1");
        draft.finish();
        let mut out = Vec::new();
        assert!(encoder.resend(&mut out, &kept, 5, Timestamp(NOW.0 + 1_000_000_000)));
        assert_eq!(
            readable(&out).split_once("35=").unwrap().1.rsplit_once("10=").unwrap().0,
            "8|49=S|56=T|34=5|43=Y|52=20261120-08:00:01.123|122=20261120-08:00:00.123|37=o1|"
        );
        assert!(matches!(decode(&out, 1_000), Ok(Decoded::Message { .. })));
        assert!(!encoder.resend(&mut out, b"rubbish", 5, NOW));
    }
}
