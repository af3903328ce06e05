//! The messages of FIX 4.4 that a client may send: the tags of each between header and trailer, and
//! the required ones; those of FIX 5.0 SP2 are in [`fix50`]. Members of repeating groups are in
//! [`crate::fix::groups`]; here stands the tag that counts them.

use super::field_rules::type_of;
use super::messages42;
use crate::fix::fix50::{self, MessageTags};
use crate::fix::groups::{INSTRUMENT, UNDERLYING};
use crate::fix::msg_type;
use crate::fix::tag;
use crate::fix::version::FixVersion;

/// A set of the tags that have a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TagSet([u64; tag::SLOTS / 64]);

impl TagSet {
    const fn of(blocks: &[&[u32]]) -> TagSet {
        let mut words = [0; tag::SLOTS / 64];
        let mut block = 0;
        while block < blocks.len() {
            let mut at = 0;
            while at < blocks[block].len() {
                let Some(slot) = tag::slot(blocks[block][at]) else { panic!("a tag without a slot") };
                words[slot / 64] |= 1 << (slot % 64);
                at += 1;
            }
            block += 1;
        }
        TagSet(words)
    }

    pub(super) fn has(&self, tag: u32) -> bool {
        tag::slot(tag).is_some_and(|slot| self.0[slot / 64] & 1 << (slot % 64) != 0)
    }

    /// Adds a tag and returns whether it is new. A tag without a slot is always new.
    pub(super) fn add(&mut self, tag: u32) -> bool {
        let Some(slot) = tag::slot(tag) else { return true };
        let (word, bit) = (&mut self.0[slot / 64], 1 << (slot % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// Rules of one message of FIX 4.2 or FIX 4.4.
pub(super) struct ListedMessage {
    msg_type: &'static [u8],
    tags: TagSet,
    /// Required tags in rising order.
    required: &'static [u32],
}

impl ListedMessage {
    pub(super) const fn new(
        msg_type: &'static [u8],
        required: &'static [u32],
        blocks: &[&[u32]],
    ) -> ListedMessage {
        ListedMessage { msg_type, tags: TagSet::of(blocks), required }
    }
}

/// Rules of one message.
pub(super) enum MessageRule {
    Listed(&'static ListedMessage),
    /// Tags of FIX 5.0 SP2, and the message of FIX 4.4, which may have our own tags.
    Fix50(MessageTags, &'static ListedMessage),
}

impl MessageRule {
    /// Returns whether the message may have a tag outside of groups.
    pub(super) fn has(&self, tag: u32) -> bool {
        match self {
            MessageRule::Listed(message) => message.tags.has(tag),
            MessageRule::Fix50(tags, message) => {
                tags.has(tag) || OURS.contains(&tag) && message.tags.has(tag)
            }
        }
    }

    /// Returns the required tags in rising order.
    pub(super) fn required(&self) -> impl Iterator<Item = u32> {
        let (listed, runs) = match self {
            MessageRule::Listed(message) => (message.required, &[][..]),
            MessageRule::Fix50(tags, _) => (&[][..], tags.required),
        };
        listed.iter().copied().chain(runs.iter().map(|run| run.first))
    }

    /// Returns whether the dictionary of the message has a tag.
    pub(super) fn is_defined(&self, version: FixVersion, tag: u32) -> bool {
        match self {
            MessageRule::Listed(_) => type_of(version, tag).is_some(),
            MessageRule::Fix50(tags, _) => tags.is_defined(tag) || OURS.contains(&tag),
        }
    }
}

/// Required tags of every header, in rising order.
pub(super) const HEADER_REQUIRED: &[u32] =
    &[tag::MSG_SEQ_NUM, tag::SENDER_COMP_ID, tag::SENDING_TIME, tag::TARGET_COMP_ID];

/// Messages that FIX 4.2 and 4.4 have alike.
static COMMON_MESSAGES: [ListedMessage; 7] = [
    ListedMessage::new(&[msg_type::HEARTBEAT], &[], &[&[112]]),
    ListedMessage::new(&[msg_type::TEST_REQUEST], &[112], &[&[112]]),
    ListedMessage::new(&[msg_type::RESEND_REQUEST], &[7, 16], &[&[7, 16]]),
    ListedMessage::new(&[msg_type::REJECT], &[45], &[&[45, 371, 372, 373], TEXT]),
    ListedMessage::new(&[msg_type::SEQUENCE_RESET], &[36], &[&[36, 123]]),
    ListedMessage::new(&[msg_type::LOGOUT], &[], &[TEXT]),
    ListedMessage::new(&[msg_type::BUSINESS_MESSAGE_REJECT], &[372, 380], &[&[45, 372, 379, 380], TEXT]),
];

/// Orders stand first, because they are searched for most often.
static MESSAGES: [ListedMessage; 13] = [
    ListedMessage::new(
        &[msg_type::NEW_ORDER_SINGLE],
        &[11, 40, 54, 60],
        &[ORDER, ORDER_TERMS, &[81, 140, 232, 23, 117], INSTRUMENT, FINANCING, QUANTITY, TEXT, OURS],
    ),
    ListedMessage::new(
        &[msg_type::ORDER_CANCEL_REQUEST],
        &[11, 41, 54, 60],
        &[ORDER, &[37, 41, 66, 586, 376], INSTRUMENT, FINANCING, QUANTITY, TEXT, OURS],
    ),
    ListedMessage::new(
        &[msg_type::ORDER_CANCEL_REPLACE_REQUEST],
        &[11, 40, 41, 54, 60],
        &[ORDER, ORDER_TERMS, &[37, 41, 66, 586], INSTRUMENT, FINANCING, QUANTITY, TEXT, OURS],
    ),
    ListedMessage::new(
        &[msg_type::LOGON],
        &[98, 108],
        &[&[98, 108, 95, 96, 141, 789, 383, 384, 464, 553, 554]],
    ),
    ListedMessage::new(
        &[msg_type::ORDER_STATUS_REQUEST],
        &[11, 54],
        &[&[37, 11, 526, 583, 453, 790, 1, 660, 711, 54], INSTRUMENT, FINANCING, OURS],
    ),
    ListedMessage::new(
        &[msg_type::DONT_KNOW_TRADE],
        &[17, 37, 54, 127],
        &[&[37, 198, 17, 127, 711, 555, 54, 32, 31], INSTRUMENT, QUANTITY, TEXT],
    ),
    ListedMessage::new(
        &[msg_type::ORDER_MASS_CANCEL_REQUEST],
        &[11, 60, 530],
        &[&[11, 526, 530, 336, 625, 54, 60], INSTRUMENT, UNDERLYING, TEXT, OURS],
    ),
    ListedMessage::new(
        msg_type::ORDER_MASS_STATUS_REQUEST,
        &[584, 585],
        &[&[584, 585, 453, 1, 660, 336, 625, 54], INSTRUMENT, UNDERLYING, OURS],
    ),
    ListedMessage::new(
        &[msg_type::MARKET_DATA_REQUEST],
        &[146, 262, 263, 264, 267],
        &[&[262, 263, 264, 265, 266, 286, 546, 547, 267, 146, 386, 815, 812]],
    ),
    ListedMessage::new(b"x", &[320, 559], &[DEFINITION, &[559], INSTRUMENT, FINANCING, TEXT]),
    ListedMessage::new(b"c", &[320, 321], &[DEFINITION, &[321, 827], INSTRUMENT, TEXT]),
    ListedMessage::new(
        &[msg_type::TRADING_SESSION_STATUS_REQUEST],
        &[263, 335],
        &[&[335, 336, 625, 338, 339, 263]],
    ),
    ListedMessage::new(
        msg_type::REQUEST_FOR_POSITIONS,
        &[1, 60, 581, 710, 715, 724],
        &[
            &[710, 724, 573, 263, 453, 1, 660, 581, 15, 555, 711, 715, 716, 717, 386, 60, 725, 726],
            INSTRUMENT,
            TEXT,
            OURS,
        ],
    ),
];

/// Text and EncodedText.
pub(super) const TEXT: &[u32] = &[58, 354, 355];

/// Our own tags, see docs/fix-rules.md#new-order-single.
pub(super) const OURS: &[u32] = &[tag::STRATEGY_ID, tag::STRATEGY_NAME, tag::EXCHANGE_ORDER];

/// Tags that an order, its cancel and its replacement have in common.
const ORDER: &[u32] = &[11, 526, 583, 453, 1, 660, 581, 711, 54, 60];

/// Tags of the quantity of an order.
const QUANTITY: &[u32] = &[38, 152, 516, 468, 469];

/// Tags of the agreement of a financing.
const FINANCING: &[u32] = &[913, 914, 915, 918, 788, 916, 917, 919, 898];

/// Tags that the requests for definitions of securities have in common.
const DEFINITION: &[u32] = &[320, 668, 869, 870, 711, 555, 15, 336, 625, 263];

/// Terms of an order and of its replacement.
const ORDER_TERMS: &[u32] = &[
    229, 75, 589, 590, 591, 70, 78, 63, 64, 544, 635, 21, 18, 110, 111, 100, 386, 114, 854, 40, 423, 44, 99,
    // Spread, benchmark and yield.
    218, 220, 221, 222, 662, 663, 699, 761, 235, 236, 701, 696, 697, 698, //
    15, 376, 377, 59, 168, 432, 126, 427, 12, 13, 479, 497, 528, 529, 582, 121, 120, 775, 193, 192, 640, 77,
    203, 210, // Pegs, discretion and target strategies.
    211, 835, 836, 837, 838, 840, 388, 389, 841, 842, 843, 844, 846, 847, 848, 849, 480, 481, 513, 494,
];

/// Returns the rules of a message that a client may send.
pub(super) fn rule_of(version: FixVersion, msg_type: &[u8]) -> Option<MessageRule> {
    let messages = match version {
        FixVersion::Fix42 => &messages42::MESSAGES[..],
        FixVersion::Fix44 | FixVersion::Fix50Sp2 => &MESSAGES[..],
    };
    let listed = messages.iter().chain(&COMMON_MESSAGES).find(|rule| rule.msg_type == msg_type)?;
    match version {
        FixVersion::Fix42 | FixVersion::Fix44 => Some(MessageRule::Listed(listed)),
        FixVersion::Fix50Sp2 => Some(MessageRule::Fix50(fix50::message(msg_type)?, listed)),
    }
}

/// Returns whether a version has a message of this type.
pub fn is_msg_type(version: FixVersion, msg_type: &[u8]) -> bool {
    let is_old = version == FixVersion::Fix42;
    match msg_type {
        [b'n'..=b'z'] if is_old => false,
        [one] => {
            matches!(one, b'0'..=b'9' | b'A'..=b'H' | b'J'..=b'N' | b'P'..=b'T' | b'V'..=b'Z' | b'a'..=b'z')
        }
        [b'A', second] => !is_old && second.is_ascii_uppercase(),
        [b'B', b'A'..=b'H'] => !is_old,
        b"CP" => false,
        [b'B'..=b'D', b'A'..=b'Z'] | [b'E', b'A' | b'B'] => version == FixVersion::Fix50Sp2,
        _ => false,
    }
}
