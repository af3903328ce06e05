//! Reads the fields of a frame in one pass: each becomes a tag and a place in the buffer, and the
//! first fault of structure is kept. It copies and allocates nothing; the caller owns the table and
//! reuses it.

mod reject_reason;
mod scan;

use std::cell::Cell;

use pitlane_engine::index::{index_u8, index_u32};
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::Timestamp;

pub use self::reject_reason::SessionRejectReason;
pub(super) use self::scan::find_soh;
use self::scan::{first_byte, short_tag, small_number};
use super::frame::{FixFrame, SOH};
use super::msg_type;
use super::tag;
use super::timestamp::LastTimestamp;

/// Fields of one message. A new order has about twenty; no order has more than this.
pub const FIELDS_MAX: usize = 256;

/// Fault of a message, and the field that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldFault {
    pub reason: SessionRejectReason,
    /// Tag of the fault; zero if none can be named.
    pub tag: u32,
    /// Index of the field, so that the first of two faults can be reported.
    pub at: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct FieldPlace {
    tag: u32,
    start: u32,
    len: u32,
}

impl FieldPlace {
    /// Creates a place in a message, whose length has at most nine digits, see [`super::frame`].
    #[inline]
    fn new(tag: u32, start: usize, len: usize) -> FieldPlace {
        FieldPlace { tag, start: index_u32(start), len: index_u32(len) }
    }
}

/// Places of the fields of one message. The caller keeps the table from message to message.
#[derive(Clone, Debug)]
pub struct Fields {
    places: [FieldPlace; FIELDS_MAX],
    len: usize,
    /// Number of the message in the upper byte, so that the entries of `first` that belong to
    /// earlier messages need not be cleared.
    mark: u16,
    /// Index of the first place with each tag, and the mark of its message.
    first: [u16; tag::SLOTS],
    last_time: Cell<LastTimestamp>,
}

const _: () = assert!(FIELDS_MAX <= 256, "a place has its number in a byte");

/// Bits of a mark.
const MARK: u16 = 0xff00;

impl Default for Fields {
    fn default() -> Fields {
        Fields {
            places: [FieldPlace::default(); FIELDS_MAX],
            len: 0,
            mark: 0,
            first: [0; tag::SLOTS],
            last_time: Cell::default(),
        }
    }
}

impl Fields {
    /// Starts a new message, in which 8, 9 and 35 have occurred.
    #[inline]
    fn clear(&mut self) {
        self.len = 0;
        self.mark = self.mark.wrapping_add(0x100);
        if self.mark == 0 {
            self.first.fill(0);
            self.mark = 0x100;
        }
        for tag in [tag::BEGIN_STRING, tag::BODY_LENGTH, tag::MSG_TYPE] {
            self.first[tag as usize] = self.mark;
        }
    }

    /// Returns whether a tag with this slot has occurred.
    #[inline(always)]
    fn has(&self, slot: usize) -> bool {
        self.first[slot] & MARK == self.mark
    }

    /// Adds a field and returns whether its tag occurred before. There is room.
    fn add(&mut self, place: FieldPlace) -> bool {
        let at = self.len;
        let twice = match tag::slot(place.tag) {
            Some(slot) if self.has(slot) => true,
            Some(slot) => {
                self.first[slot] = self.mark | index_u8(at) as u16;
                false
            }
            None => self.places[..at].iter().any(|before| before.tag == place.tag),
        };
        self.places[at] = place;
        self.len = at + 1;
        twice
    }

    /// Returns the first place with this tag.
    #[inline]
    fn find(&self, tag: u32) -> Option<usize> {
        let Some(slot) = tag::slot(tag) else {
            return self.places[..self.len].iter().position(|place| place.tag == tag);
        };
        let is_framing = matches!(tag, tag::BEGIN_STRING | tag::BODY_LENGTH | tag::MSG_TYPE);
        (self.has(slot) && !is_framing).then(|| (self.first[slot] & !MARK) as usize)
    }
}

/// Fields of the standard header that a session uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StandardHeader<'a> {
    pub msg_seq_num: Option<&'a [u8]>,
    pub sender_comp_id: Option<&'a [u8]>,
    pub target_comp_id: Option<&'a [u8]>,
    pub sending_time: Option<&'a [u8]>,
    pub orig_sending_time: Option<&'a [u8]>,
    pub poss_dup: bool,
    pub poss_resend: bool,
}

/// A frame with its fields, borrowed from the bytes and from the table.
#[derive(Clone, Copy, Debug)]
pub struct FixMessage<'a, 'f> {
    pub frame: FixFrame<'a>,
    pub msg_type: &'a [u8],
    pub header: StandardHeader<'a>,
    /// First fault of structure.
    pub fault: Option<FieldFault>,
    /// Class bits of all fields that are not plain ones.
    classes: u8,
    fields: &'f Fields,
}

impl<'a> FixMessage<'a, '_> {
    /// Returns MsgType (35) as one of [`msg_type`]'s codes.
    #[inline]
    pub fn type_code(&self) -> u8 {
        msg_type::code(self.msg_type)
    }

    /// Returns whether a field counts the members of a group.
    #[inline]
    pub fn has_groups(&self) -> bool {
        self.classes & tag::COUNT != 0
    }

    /// Returns whether there is a term of an order that most orders do not have.
    #[inline]
    pub fn has_special_terms(&self) -> bool {
        self.classes & tag::SPECIAL_TERM != 0
    }

    /// Returns the fields after MsgType, without CheckSum.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &'a [u8])> {
        let bytes = self.frame.bytes;
        let places = &self.fields.places[..self.fields.len];
        places.iter().map(move |place| {
            let start = place.start as usize;
            (place.tag, &bytes[start..start + place.len as usize])
        })
    }

    /// Returns the value of the first field with this tag.
    #[inline]
    pub fn get(&self, tag: u32) -> Option<&'a [u8]> {
        self.find(tag).map(|found| found.1)
    }

    /// Returns index and value of the first field with this tag.
    #[inline]
    pub fn find(&self, tag: u32) -> Option<(usize, &'a [u8])> {
        let at = self.fields.find(tag)?;
        let place = &self.fields.places[at];
        let start = place.start as usize;
        Some((at, &self.frame.bytes[start..start + place.len as usize]))
    }

    /// Reads a value of this message that is a UTCTimestamp.
    #[inline]
    pub fn timestamp(&self, value: &[u8]) -> Option<Timestamp> {
        LastTimestamp::parse(&self.fields.last_time, value)
    }

    /// Returns the same fields as [`FixMessage::iter`], and those of a long list of market data
    /// that are not in the table. A field without a tag has the tag 0.
    pub fn all_fields(&self) -> impl Iterator<Item = (u32, &'a [u8])> {
        let type_end = find_soh(self.frame.bytes, self.frame.body);
        let fields = self.frame.bytes.get(type_end..self.frame.end).unwrap_or_default();
        fields.split(|&byte| byte == SOH).filter(|field| !field.is_empty()).map(|field| {
            let mut parts = field.splitn(2, |&byte| byte == b'=');
            let tag = parts.next().and_then(|tag| parse_u64(tag).ok());
            (tag.and_then(|tag| u32::try_from(tag).ok()).unwrap_or(0), parts.next().unwrap_or_default())
        })
    }

    pub fn len(&self) -> usize {
        self.fields.len
    }

    pub fn is_empty(&self) -> bool {
        self.fields.len == 0
    }
}

/// Returns whether a message consists mostly of groups: market data and its requests. Their readers
/// count the members.
#[cold]
fn is_table(msg_type: &[u8]) -> bool {
    is_market_data(msg_type) || msg_type::code(msg_type) == msg_type::MARKET_DATA_REQUEST
}

/// Returns whether a message may have more fields than the table: a book has hundreds of levels.
/// Its reader takes them from [`FixMessage::all_fields`].
#[cold]
fn is_market_data(msg_type: &[u8]) -> bool {
    matches!(
        msg_type::code(msg_type),
        msg_type::MARKET_DATA_SNAPSHOT | msg_type::MARKET_DATA_INCREMENTAL_REFRESH
    )
}

/// Reads the fields of a frame.
#[inline]
pub fn read<'a, 'f>(frame: FixFrame<'a>, fields: &'f mut Fields) -> FixMessage<'a, 'f> {
    let pass = FieldReader { bytes: frame.bytes, end: frame.end, begin_string: frame.begin_string };
    let mut fault = None;
    // The frame guarantees that MsgType is first.
    let type_end = find_soh(frame.bytes, frame.body + 3);
    let msg_type = &frame.bytes[frame.body + 3..type_end];
    if msg_type.is_empty() {
        fault = Some(FieldFault { reason: SessionRejectReason::NoValue, tag: tag::MSG_TYPE, at: 0 });
    }
    fields.clear();
    let mut at = type_end + 1;
    let mut raw = None;
    let mut part = tag::HEADER;
    let mut classes = 0;
    loop {
        if raw.is_none() {
            (at, part) = pass.plain_fields(at, part, fields);
        }
        if at >= frame.end {
            break;
        }
        let len = fields.len;
        if len == FIELDS_MAX {
            if is_market_data(msg_type) {
                break;
            }
            fault = fault.or(Some(FieldFault { reason: SessionRejectReason::Other, tag: 0, at: len }));
            break;
        }
        let (place, reason) = pass.field(at, &mut raw, &mut part);
        let class = tag::class_in(frame.begin_string, place.tag);
        classes |= class;
        let twice = fields.add(place) && !is_table(msg_type) && class & tag::MEMBER == 0;
        if (twice || reason.is_some()) && fault.is_none() {
            let reason = reason.unwrap_or(SessionRejectReason::TagTwice);
            fault = Some(FieldFault { reason, tag: place.tag, at: len });
        }
        at = (place.start + place.len) as usize + 1;
    }
    if let Some((length, _, _)) = raw {
        fault = fault.or(Some(FieldFault {
            reason: SessionRejectReason::IncorrectFormat,
            tag: length,
            at: fields.len,
        }));
    }
    let mut message =
        FixMessage { frame, msg_type, header: StandardHeader::default(), fault, classes, fields };
    message.header = StandardHeader::of(&message);
    message
}

impl<'a> StandardHeader<'a> {
    #[inline]
    fn of(message: &FixMessage<'a, '_>) -> StandardHeader<'a> {
        StandardHeader {
            msg_seq_num: message.get(tag::MSG_SEQ_NUM),
            sender_comp_id: message.get(tag::SENDER_COMP_ID),
            target_comp_id: message.get(tag::TARGET_COMP_ID),
            sending_time: message.get(tag::SENDING_TIME),
            orig_sending_time: message.get(tag::ORIG_SENDING_TIME),
            poss_dup: message.get(tag::POSS_DUP_FLAG) == Some(b"Y"),
            poss_resend: message.get(tag::POSS_RESEND) == Some(b"Y"),
        }
    }
}

/// Input of the pass.
struct FieldReader<'a> {
    bytes: &'a [u8],
    end: usize,
    begin_string: &'a [u8],
}

/// Announced raw data: the tag of its length, its own tag, and its length.
type Raw = Option<(u32, u32, usize)>;

impl<'a> FieldReader<'a> {
    /// Adds the fields from `at` on, up to the first one that depends on its neighbours or may have
    /// a fault: most messages have none. A field that is added belongs to header or body, is in
    /// place, has a tag with a slot that occurs for the first time, and a value. Returns the offset
    /// of the other field, or of the end, and the part of the message there.
    #[inline(always)]
    fn plain_fields(&self, at: usize, part: u8, fields: &mut Fields) -> (usize, u8) {
        if part == tag::TRAILER {
            return (at, part);
        }
        let body = if part == tag::HEADER { self.plain_part::<{ tag::HEADER }>(at, fields) } else { at };
        let end = self.plain_part::<0>(body, fields);
        // The first field of the body ends the header.
        (end, if end > body { 0 } else { part })
    }

    /// Adds plain fields whose tags have this class, and returns the offset of the next field.
    #[inline(always)]
    fn plain_part<const CLASS: u8>(&self, mut at: usize, fields: &mut Fields) -> usize {
        let Fields { places, len, mark, first, .. } = fields;
        let (mark, mut count) = (*mark, *len);
        while at < self.end {
            let Some(word) = self.bytes.get(at..).and_then(|rest| rest.first_chunk()) else { break };
            let word = u64::from_le_bytes(*word);
            // The search starts at the field's beginning, so that the next field does not wait for
            // this tag.
            let end = match first_byte(word, SOH) {
                Some(found) => at + found as usize,
                None => find_soh(self.bytes, at + 8),
            };
            let Some((tag, digits)) = short_tag(word) else { break };
            let Some(slot) = tag::slot(tag) else { break };
            let start = at + digits + 1;
            if tag::slot_class(slot) != CLASS || end <= start || first[slot] & MARK == mark {
                break;
            }
            let Some(place) = places.get_mut(count) else { break };
            *place = FieldPlace::new(tag, start, end - start);
            first[slot] = mark | index_u8(count) as u16;
            count += 1;
            at = end + 1;
        }
        *len = count;
        at
    }

    /// Returns the field at `at` and its fault. `part` is the current part of the message.
    fn field(&self, at: usize, raw: &mut Raw, part: &mut u8) -> (FieldPlace, Option<SessionRejectReason>) {
        let (tag, start) = match self.tag(at) {
            Ok(found) => found,
            Err(reason) => {
                let end = find_soh(self.bytes, at);
                *raw = None;
                return (FieldPlace::new(0, at, end - at), Some(reason));
            }
        };
        let class = tag::class_in(self.begin_string, tag);
        let mut fault = None;
        let announced = raw.take();
        let end = match announced {
            Some((_, data, len)) if data == tag && self.raw_fits(start, len) => start + len,
            Some((length, _, _)) => {
                fault = Some((SessionRejectReason::IncorrectFormat, length));
                find_soh(self.bytes, start)
            }
            None => find_soh(self.bytes, start),
        };
        let value = &self.bytes[start..end];
        if class != 0 {
            let misplaced = self.structure(tag, class, value, announced.is_some(), raw, part);
            fault = fault.or(misplaced.map(|reason| (reason, tag)));
        } else {
            // This tag ends the header. After the trailer its order is wrong.
            if *part == tag::TRAILER {
                fault = fault.or(Some((SessionRejectReason::OutOfOrder, tag)));
            }
            *part &= !tag::HEADER;
        }
        if value.is_empty() {
            fault = fault.or(Some((SessionRejectReason::NoValue, tag)));
        }
        // If the length of raw data has the fault, the field that reveals it is kept under the
        // length's tag.
        let kept_tag = fault.map_or(tag, |fault| fault.1);
        (FieldPlace::new(kept_tag, start, value.len()), fault.map(|fault| fault.0))
    }

    /// Returns the tag at `at` and the offset of its value.
    #[inline]
    fn tag(&self, at: usize) -> Result<(u32, usize), SessionRejectReason> {
        let mut value = 0u64;
        let mut here = at;
        loop {
            let byte = self.bytes[here];
            match byte.wrapping_sub(b'0') {
                digit @ 0..=9 if value <= tag::TAG_MAX as u64 => value = value * 10 + digit as u64,
                _ if byte == b'=' => break,
                // A field without `=` is the rest of a value that contains a delimiter.
                _ => {
                    let rest = &self.bytes[here..find_soh(self.bytes, here)];
                    let is_field = rest.contains(&b'=');
                    return Err(if is_field {
                        SessionRejectReason::InvalidTag
                    } else {
                        SessionRejectReason::DelimiterInValue
                    });
                }
            }
            here += 1;
        }
        // Refuses an empty tag, zero, and a leading zero.
        let value = u32::try_from(value).ok().filter(|value| *value <= tag::TAG_MAX);
        match value {
            Some(tag) if here > at && self.bytes[at] != b'0' => Ok((tag, here + 1)),
            _ => Err(SessionRejectReason::InvalidTag),
        }
    }

    /// Checks the rules for a tag of the header, the trailer, raw data or a group.
    #[inline]
    fn structure(
        &self,
        tag: u32,
        class: u8,
        value: &'a [u8],
        announced: bool,
        raw: &mut Raw,
        part: &mut u8,
    ) -> Option<SessionRejectReason> {
        let mut fault = None;
        if class & tag::HEADER != 0 {
            if *part & tag::HEADER == 0 {
                fault = Some(SessionRejectReason::OutOfOrder);
            }
        } else if class & tag::TRAILER != 0 {
            *part = tag::TRAILER;
            // The check sum is after the body, so this is a second one.
            if tag == tag::CHECK_SUM {
                fault = Some(SessionRejectReason::OutOfOrder);
            }
        } else {
            if *part == tag::TRAILER {
                fault = Some(SessionRejectReason::OutOfOrder);
            }
            *part &= !tag::HEADER;
        }
        if class & tag::DATA != 0 && !announced {
            fault = fault.or(Some(SessionRejectReason::OutOfOrder));
        }
        if class & tag::LENGTH != 0 {
            match (tag::data_of(tag), small_number(value)) {
                (Some(data), Some(len)) if len > 0 => *raw = Some((tag, data, len)),
                _ => fault = fault.or(Some(SessionRejectReason::IncorrectFormat)),
            }
        }
        fault
    }

    /// Returns whether raw data of this length ends within the frame and a delimiter follows it.
    fn raw_fits(&self, start: usize, len: usize) -> bool {
        start + len < self.end && self.bytes[start + len] == SOH
    }
}

#[cfg(test)]
pub(super) mod tests;
