//! FIX 4.4's rules for the messages that a client may send: tags of each message, required tags,
//! and formats of values. Only a session that validates uses them (`UseDataDictionary` with
//! `ValidateIncomingMessage`).

use pitlane_engine::text::{parse_scaled, parse_u64};

use super::fields::{FieldFault, FixMessage, SessionRejectReason};
use super::msg_type;
use super::tag;
use super::timestamp::{parse_date, parse_timestamp};

/// Highest tag of FIX 4.4. Users define tags from 5000 to 9999.
const TAG_LAST: u32 = 956;
const USER_TAGS: std::ops::RangeInclusive<u32> = 5_000..=9_999;

/// Returns the first violation in field order, else the first missing field.
pub fn check(message: &FixMessage) -> Option<FieldFault> {
    let body = body_of(message.msg_type)?;
    let mut group: Option<OpenGroup> = None;
    for (at, (tag, value)) in message.iter().enumerate() {
        if let Some(open) = &mut group
            && !open.takes(tag)
        {
            if let Some(fault) = open.fault(at) {
                return Some(fault);
            }
            group = None;
        }
        let reason = check_field(body, tag, value);
        if let Some(reason) = reason {
            return Some(FieldFault { reason, tag, at });
        }
        if group.is_none()
            && let Some(members) = members_of(tag)
        {
            let count = parse_u64(value).ok()?;
            group = Some(OpenGroup { tag, at, members, count, found: 0, ordered: true });
        }
    }
    if let Some(fault) = group.and_then(|group| group.fault(message.len())) {
        return Some(fault);
    }
    let missing = |&&tag: &&u32| message.get(tag).is_none();
    let missing = HEADER_NEEDED.iter().chain(body.needed).find(missing).copied();
    missing.map(|tag| FieldFault { reason: SessionRejectReason::RequiredTagMissing, tag, at: message.len() })
}

fn check_field(body: &MessageSpec, tag: u32, value: &[u8]) -> Option<SessionRejectReason> {
    if USER_TAGS.contains(&tag) {
        return None;
    }
    if tag == 0 || tag > TAG_LAST {
        return Some(SessionRejectReason::InvalidTag);
    }
    let is_frame = tag::class(tag) & (tag::HEADER | tag::TRAILER) != 0;
    if !is_frame && !body.has(tag) {
        return Some(SessionRejectReason::TagNotForMessage);
    }
    check_value(tag, value)
}

/// Checks how the value of a tag is written, for the tags that we check.
fn check_value(tag: u32, value: &[u8]) -> Option<SessionRejectReason> {
    let written = match tag {
        7 | 16 | 34 | 36 | 45 | 371 | 373 | 383 | 384 | 453 | 454 | 78 | 386 | 711 | 232 | 864 | 627
        | 789 => parse_u64(value).is_ok(),
        108 => parse_u64(value.strip_prefix(b"-").unwrap_or(value)).is_ok(),
        38 | 44 | 99 | 110 | 111 | 152 | 468 | 640 | 192 | 210 | 211 => !matches!(
            parse_scaled(value),
            Err(pitlane_engine::text::TextError::Character | pitlane_engine::text::TextError::Empty)
        ),
        52 | 60 | 122 | 126 | 168 => parse_timestamp(value).is_some(),
        64 | 193 | 432 | 541 => parse_date(value).is_some(),
        _ => true,
    };
    if !written {
        return Some(SessionRejectReason::IncorrectFormat);
    }
    let codes: &[u8] = match tag {
        21 => b"123",
        40 => b"123456789BCDEFGHIJKLMP",
        54 => b"123456789ABCDEFG",
        59 => b"01234567",
        127 => b"ABCDEFZ",
        530 => b"1234567",
        585 => b"12345678",
        98 => b"0123456",
        43 | 97 | 114 | 123 | 141 | 464 => b"YN",
        _ => return None,
    };
    let known = matches!(value, [code] if codes.contains(code));
    (!known).then_some(SessionRejectReason::ValueIncorrect)
}

/// A group that is being read.
struct OpenGroup {
    tag: u32,
    at: usize,
    /// Tags of a member; the first one opens each member.
    members: &'static [u32],
    count: u64,
    found: u64,
    ordered: bool,
}

impl OpenGroup {
    /// Returns whether a tag continues the group.
    fn takes(&mut self, tag: u32) -> bool {
        if !self.members.contains(&tag) {
            return false;
        }
        if tag == self.members[0] {
            self.found += 1;
        } else if self.found == 0 {
            self.ordered = false;
        }
        true
    }

    /// Returns the fault of the complete group.
    fn fault(&self, _end: usize) -> Option<FieldFault> {
        let fault = |reason| Some(FieldFault { reason, tag: self.tag, at: self.at });
        match () {
            () if !self.ordered => fault(SessionRejectReason::GroupOutOfOrder),
            () if self.found != self.count => fault(SessionRejectReason::GroupCount),
            () => None,
        }
    }
}

/// Returns the tags of the group that a tag counts, first the one that opens a member.
fn members_of(count: u32) -> Option<&'static [u32]> {
    Some(match count {
        78 => &[79, 661, 736, 467, 539, 524, 525, 538, 804, 545, 805, 80],
        232 => &[233, 234],
        384 => &[372, 385],
        386 => &[336, 625],
        453 => &[448, 447, 452, 802, 523, 803],
        454 => &[455, 456],
        627 => &[628, 629, 630],
        864 => &[865, 866, 867, 868],
        _ => return None,
    })
}

/// Tags of a message between header and trailer.
struct MessageSpec {
    tags: &'static [&'static [u32]],
    needed: &'static [u32],
}

impl MessageSpec {
    fn has(&self, tag: u32) -> bool {
        self.tags.iter().any(|tags| tags.contains(&tag))
    }
}

const HEADER_NEEDED: &[u32] =
    &[tag::SENDER_COMP_ID, tag::TARGET_COMP_ID, tag::MSG_SEQ_NUM, tag::SENDING_TIME];

fn body_of(msg_type: &[u8]) -> Option<&'static MessageSpec> {
    Some(match msg_type::code(msg_type) {
        msg_type::HEARTBEAT => &MessageSpec { tags: &[&[112]], needed: &[] },
        msg_type::TEST_REQUEST => &MessageSpec { tags: &[&[112]], needed: &[112] },
        msg_type::RESEND_REQUEST => &MessageSpec { tags: &[&[7, 16]], needed: &[7, 16] },
        msg_type::REJECT => &MessageSpec { tags: &[&[45, 371, 372, 373, 58, 354, 355]], needed: &[45] },
        msg_type::SEQUENCE_RESET => &MessageSpec { tags: &[&[36, 123]], needed: &[36] },
        msg_type::LOGOUT => &MessageSpec { tags: &[&[58, 354, 355]], needed: &[] },
        msg_type::LOGON => &MessageSpec {
            tags: &[&[98, 108, 95, 96, 141, 789, 383, 384, 372, 385, 464, 553, 554]],
            needed: &[98, 108],
        },
        msg_type::NEW_ORDER_SINGLE => {
            &MessageSpec { tags: &[ORDER, INSTRUMENT, PARTIES, MORE, ALLOCS], needed: &[11, 54, 60, 40] }
        }
        msg_type::ORDER_CANCEL_REQUEST => {
            &MessageSpec { tags: &[ORDER, INSTRUMENT, PARTIES], needed: &[41, 11, 54, 60] }
        }
        msg_type::ORDER_CANCEL_REPLACE_REQUEST => {
            &MessageSpec { tags: &[ORDER, INSTRUMENT, PARTIES, MORE, ALLOCS], needed: &[41, 11, 54, 60, 40] }
        }
        msg_type::ORDER_STATUS_REQUEST => {
            &MessageSpec { tags: &[STATUS, INSTRUMENT, PARTIES, UNDERLYING], needed: &[11, 54] }
        }
        msg_type::ORDER_MASS_CANCEL_REQUEST => {
            &MessageSpec { tags: &[MASS_CANCEL, INSTRUMENT, UNDERLYING], needed: &[11, 530, 60] }
        }
        msg_type::DONT_KNOW_TRADE => &MessageSpec {
            tags: &[
                &[37, 198, 17, 127, 54, 38, 152, 516, 468, 469, 32, 31, 58, 354, 355],
                INSTRUMENT,
                UNDERLYING,
            ],
            needed: &[37, 17, 127, 54],
        },
        msg_type::UNKNOWN if msg_type == msg_type::ORDER_MASS_STATUS_REQUEST => {
            &MessageSpec { tags: &[MASS_STATUS, INSTRUMENT, PARTIES, UNDERLYING], needed: &[584, 585] }
        }
        _ => return None,
    })
}

const STATUS: &[u32] = &[37, 11, 526, 583, 1, 660, 790, 54];

const MASS_STATUS: &[u32] = &[584, 585, 1, 660, 336, 625, 54];

const MASS_CANCEL: &[u32] = &[11, 526, 530, 336, 625, 54, 60, 58, 354, 355];

/// Tags of NoUnderlyings and its members.
const UNDERLYING: &[u32] = &[
    711, 311, 312, 309, 305, 457, 458, 459, 462, 463, 310, 763, 313, 542, 241, 242, 243, 244, 245, 246, 256,
    595, 592, 593, 594, 247, 316, 941, 317, 436, 435, 308, 306, 362, 363, 307, 364, 365, 877, 878, 318, 879,
    810, 882, 883, 887,
];

/// Tags that an order, its cancel and its replacement have in common.
const ORDER: &[u32] = &[
    41, 37, 11, 526, 583, 586, 1, 660, 581, 54, 60, 38, 152, 516, 468, 469, 58, 354, 355, 711, 311, 312, 309,
    305, 457, 458, 459, 462, 463, 310, 763, 313, 542, 241, 242, 243, 244, 245, 246, 256, 595, 592, 593, 594,
    247, 316, 941, 317, 436, 435, 308, 306, 362, 363, 307, 364, 365, 877, 878, 318, 879, 810, 882, 883, 887,
];

const PARTIES: &[u32] = &[453, 448, 447, 452, 802, 523, 803];

const ALLOCS: &[u32] = &[70, 78, 79, 661, 736, 467, 539, 524, 525, 538, 804, 545, 805, 80];

const INSTRUMENT: &[u32] = &[
    55, 65, 48, 22, 454, 455, 456, 460, 461, 167, 762, 200, 541, 201, 224, 225, 239, 226, 227, 228, 255, 543,
    470, 471, 472, 240, 202, 947, 206, 231, 223, 207, 106, 348, 349, 107, 350, 351, 691, 667, 875, 876, 864,
    865, 866, 867, 868, 873, 874,
];

/// Terms of an order beside its quantity.
const MORE: &[u32] = &[
    229, 453, 589, 590, 591, 63, 64, 544, 635, 21, 18, 110, 111, 100, 386, 336, 625, 81, 140, 114, 40, 423,
    44, 99, 218, 220, 221, 222, 662, 663, 699, 761, 235, 236, 701, 696, 697, 698, 15, 376, 377, 23, 117, 59,
    168, 432, 126, 427, 12, 13, 479, 497, 528, 529, 582, 121, 120, 775, 192, 193, 640, 77, 203, 210, 211,
    835, 836, 837, 838, 840, 388, 389, 841, 842, 843, 844, 846, 847, 848, 849, 480, 481, 513, 494, 158, 232,
    233, 234, 156, 155,
];

/// Returns whether FIX 4.4 has a message of this type.
pub fn is_msg_type(msg_type: &[u8]) -> bool {
    match msg_type {
        [one] => {
            matches!(one, b'0'..=b'9' | b'A'..=b'H' | b'J'..=b'N' | b'P'..=b'T' | b'V'..=b'Z' | b'a'..=b'z')
        }
        [b'A', second] => second.is_ascii_uppercase(),
        [b'B', second] => (b'A'..=b'H').contains(second),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoded::Decoded;
    use crate::fix::fields::{Fields, read};
    use crate::fix::frame::{check_sum, decode};

    fn fault(body: &str) -> Option<(SessionRejectReason, u32)> {
        let (kind, rest) = body.split_once('|').unwrap();
        let body = format!("{kind}|49=C|56=S|34=1|52=20261116-08:00:00|{rest}").replace('|', "\x01");
        let mut bytes = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
        let sum = check_sum(&bytes);
        bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        let Ok(Decoded::Message { message: frame, .. }) = decode(&bytes, 100_000) else { panic!("{body}") };
        let mut fields = Fields::default();
        let message = read(frame, &mut fields);
        assert_eq!(message.fault, None, "{body}");
        check(&message).map(|fault| (fault.reason, fault.tag))
    }

    const ORDER: &str = "35=D|11=a|54=1|55=X|60=20261116-08:00:00|40=1|38=5|";

    #[test]
    fn good_messages_pass() {
        for good in [
            "35=0|",
            "35=1|112=x|",
            "35=2|7=1|16=0|",
            "35=A|98=0|108=30|141=Y|384=2|372=D|385=R|372=8|385=S|553=me|554=secret|",
            ORDER,
            "35=D|11=a|453=2|448=A|447=D|452=1|448=B|447=D|452=3|802=1|523=s|803=1|54=1|55=X|60=20261116-08:00:00|40=1|",
            "35=D|11=a|54=1|48=7|60=20261116-08:00:00|40=P|59=6|432=20261117|7001=1|7002=A|7003=Y|9999=z|",
            "35=F|41=a|11=b|54=1|55=X|60=20261116-08:00:00.123|38=5|",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
    }

    #[test]
    fn each_fault_of_the_dictionary_has_its_reason() {
        use SessionRejectReason::*;
        let cases = [
            (format!("{ORDER}4999=x|"), InvalidTag, 4999),
            (format!("{ORDER}957=x|"), InvalidTag, 957),
            (format!("{ORDER}112=x|"), TagNotForMessage, 112),
            (format!("{ORDER}150=x|"), TagNotForMessage, 150),
            (ORDER.replace("11=a|", ""), RequiredTagMissing, 11),
            (ORDER.replace("60=20261116-08:00:00|", ""), RequiredTagMissing, 60),
            (ORDER.replace("54=1", "54=x"), ValueIncorrect, 54),
            (ORDER.replace("40=1", "40=?"), ValueIncorrect, 40),
            (format!("{ORDER}59=9|"), ValueIncorrect, 59),
            (ORDER.replace("38=5", "38=+200"), IncorrectFormat, 38),
            (ORDER.replace("38=5", "38=1e3"), IncorrectFormat, 38),
            (format!("{ORDER}453=2|448=A|447=D|452=1|"), GroupCount, 453),
            (format!("{ORDER}453=1|447=D|448=A|452=1|"), GroupOutOfOrder, 453),
            (format!("{ORDER}453=1000000000|448=A|"), GroupCount, 453),
            (format!("{ORDER}453=-1|448=A|"), IncorrectFormat, 453),
            ("35=1|".to_string(), RequiredTagMissing, 112),
            ("35=2|7=x|16=0|".to_string(), IncorrectFormat, 7),
        ];
        for (body, reason, tag) in cases {
            assert_eq!(fault(&body), Some((reason, tag)), "{body}");
        }
    }

    #[test]
    fn message_types_are_those_of_fix_44() {
        for known in ["0", "D", "8", "j", "V", "AE", "BH", "AZ"] {
            assert!(is_msg_type(known.as_bytes()), "{known}");
        }
        for unknown in ["", "I", "O", "U", "BI", "ZZ", "U1", "AEE", "?"] {
            assert!(!is_msg_type(unknown.as_bytes()), "{unknown}");
        }
    }
}
