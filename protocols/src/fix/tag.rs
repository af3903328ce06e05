//! Tags by name, and the class of each tag that the field reader needs: part of the header or
//! trailer, length of raw data, raw data, count of a group, or member of a group.

use super::fix50;
use super::groups::{GROUPS, Group};

macro_rules! tags {
    ($($name:ident $number:literal,)*) => {
        $(pub const $name: u32 = $number;)*

        /// Tags with their `=`, as the encoder writes them.
        pub mod prefix {
            $(pub const $name: &[u8; super::prefix_len($number)] = &super::write_prefix($number);)*
        }
    };
}

tags! {
    ACCOUNT 1,
    AVG_PX 6,
    BEGIN_SEQ_NO 7,
    BEGIN_STRING 8,
    BODY_LENGTH 9,
    CHECK_SUM 10,
    CL_ORD_ID 11,
    CUM_QTY 14,
    CURRENCY 15,
    END_SEQ_NO 16,
    EXEC_ID 17,
    EXEC_INST 18,
    EXEC_REF_ID 19,
    EXEC_TRANS_TYPE 20,
    HANDL_INST 21,
    SECURITY_ID_SOURCE 22,
    LAST_MKT 30,
    LAST_PX 31,
    LAST_QTY 32,
    MSG_SEQ_NUM 34,
    MSG_TYPE 35,
    NEW_SEQ_NO 36,
    ORDER_ID 37,
    ORDER_QTY 38,
    ORD_STATUS 39,
    ORD_TYPE 40,
    ORIG_CL_ORD_ID 41,
    POSS_DUP_FLAG 43,
    PRICE 44,
    REF_SEQ_NUM 45,
    SECURITY_ID 48,
    SENDER_COMP_ID 49,
    SENDING_TIME 52,
    SIDE 54,
    SYMBOL 55,
    TARGET_COMP_ID 56,
    TEXT 58,
    TIME_IN_FORCE 59,
    TRANSACT_TIME 60,
    RPT_SEQ 83,
    RAW_DATA_LENGTH 95,
    RAW_DATA 96,
    POSS_RESEND 97,
    ENCRYPT_METHOD 98,
    STOP_PX 99,
    CXL_REJ_REASON 102,
    ORD_REJ_REASON 103,
    SECURITY_DESC 107,
    HEART_BT_INT 108,
    MIN_QTY 110,
    MAX_FLOOR 111,
    TEST_REQ_ID 112,
    ON_BEHALF_OF_COMP_ID 115,
    ON_BEHALF_OF_SUB_ID 116,
    ORIG_SENDING_TIME 122,
    GAP_FILL_FLAG 123,
    EXPIRE_TIME 126,
    DK_REASON 127,
    DELIVER_TO_COMP_ID 128,
    DELIVER_TO_SUB_ID 129,
    RESET_SEQ_NUM_FLAG 141,
    ON_BEHALF_OF_LOCATION_ID 144,
    DELIVER_TO_LOCATION_ID 145,
    NO_RELATED_SYM 146,
    EXEC_TYPE 150,
    LEAVES_QTY 151,
    SECURITY_TYPE 167,
    MATURITY_MONTH_YEAR 200,
    PUT_OR_CALL 201,
    STRIKE_PRICE 202,
    MATURITY_DAY 205,
    SECURITY_EXCHANGE 207,
    CONTRACT_MULTIPLIER 231,
    MD_REQ_ID 262,
    SUBSCRIPTION_REQUEST_TYPE 263,
    MARKET_DEPTH 264,
    MD_UPDATE_TYPE 265,
    AGGREGATED_BOOK 266,
    NO_MD_ENTRY_TYPES 267,
    NO_MD_ENTRIES 268,
    MD_ENTRY_TYPE 269,
    MD_ENTRY_PX 270,
    MD_ENTRY_SIZE 271,
    MD_ENTRY_DATE 272,
    MD_ENTRY_TIME 273,
    MD_ENTRY_ID 278,
    MD_UPDATE_ACTION 279,
    MD_REQ_REJ_REASON 281,
    MD_ENTRY_POSITION_NO 290,
    SECURITY_REQ_ID 320,
    SECURITY_REQUEST_TYPE 321,
    SECURITY_RESPONSE_ID 322,
    SECURITY_RESPONSE_TYPE 323,
    UNSOLICITED_INDICATOR 325,
    TRAD_SES_REQ_ID 335,
    TRADING_SESSION_ID 336,
    TRAD_SES_STATUS 340,
    REF_TAG_ID 371,
    REF_MSG_TYPE 372,
    SESSION_REJECT_REASON 373,
    BUSINESS_REJECT_REF_ID 379,
    BUSINESS_REJECT_REASON 380,
    TOT_NO_RELATED_SYM 393,
    EXPIRE_DATE 432,
    CXL_REJ_RESPONSE_TO 434,
    PARTY_ID_SOURCE 447,
    PARTY_ID 448,
    PARTY_ROLE 452,
    NO_PARTY_IDS 453,
    TEST_MESSAGE_INDICATOR 464,
    MASS_CANCEL_REQUEST_TYPE 530,
    MASS_CANCEL_RESPONSE 531,
    MASS_CANCEL_REJECT_REASON 532,
    TOTAL_AFFECTED_ORDERS 533,
    MATURITY_DATE 541,
    USERNAME 553,
    PASSWORD 554,
    SECURITY_LIST_REQUEST_TYPE 559,
    SECURITY_REQUEST_RESULT 560,
    ROUND_LOT 561,
    TRAD_SES_STATUS_REJ_REASON 567,
    ACCOUNT_TYPE 581,
    MASS_STATUS_REQ_ID 584,
    MASS_STATUS_REQ_TYPE 585,
    NO_POSITIONS 702,
    POS_TYPE 703,
    LONG_QTY 704,
    SHORT_QTY 705,
    POS_AMT_TYPE 707,
    POS_AMT 708,
    POS_REQ_ID 710,
    CLEARING_BUSINESS_DATE 715,
    POS_MAINT_RPT_ID 721,
    POS_REQ_TYPE 724,
    TOTAL_NUM_POS_REPORTS 727,
    POS_REQ_RESULT 728,
    POS_REQ_STATUS 729,
    SETTL_PRICE 730,
    SETTL_PRICE_TYPE 731,
    PRIOR_SETTL_PRICE 734,
    NO_POS_AMT 753,
    NEXT_EXPECTED_MSG_SEQ_NUM 789,
    ORD_STATUS_REQ_ID 790,
    COPY_MSG_INDICATOR 797,
    LAST_FRAGMENT 893,
    TOT_NUM_REPORTS 911,
    LAST_RPT_REQUESTED 912,
    MD_PRICE_LEVEL 1023,
    APPL_VER_ID 1128,
    CSTM_APPL_VER_ID 1129,
    DEFAULT_APPL_VER_ID 1137,
    APPL_EXT_ID 1156,
    MASS_ACTION_REPORT_ID 1369,
    STRATEGY_ID 7001,
    STRATEGY_NAME 7002,
    EXCHANGE_ORDER 7003,
}

/// Returns the number of bytes of a tag with its `=`.
const fn prefix_len(tag: u32) -> usize {
    tag.ilog10() as usize + 2
}

const fn write_prefix<const N: usize>(tag: u32) -> [u8; N] {
    let mut text = [b'='; N];
    let (mut rest, mut at) = (tag, N - 1);
    while at > 0 {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

/// Tags of FIX 4.4 are below; tags above are looked up slowly.
pub const COMMON_TAGS: usize = 1_024;

/// First of our own tags and its neighbours.
const OWN_TAGS: u32 = 7_000;
const OWN_TAGS_COUNT: usize = 64;

/// Tags that have a slot in a table.
pub const SLOTS: usize = COMMON_TAGS + OWN_TAGS_COUNT;

/// Returns the slot of a tag in such a table: first those of FIX 4.4, then ours. Other tags have
/// none and are searched for.
#[inline]
pub const fn slot(tag: u32) -> Option<usize> {
    let own = tag.wrapping_sub(OWN_TAGS) as usize;
    match tag as usize {
        tag if tag < COMMON_TAGS => Some(tag),
        _ if own < OWN_TAGS_COUNT => Some(COMMON_TAGS + own),
        _ => None,
    }
}

/// Largest tag that is read. A larger number is not a tag, and never wraps into one.
pub const TAG_MAX: u32 = i32::MAX as u32;

/// BeginString of FIXT 1.1, whose messages are those of FIX 5.0 SP2.
pub const FIXT: &[u8] = b"FIXT.1.1";

pub const HEADER: u8 = 1;
pub const TRAILER: u8 = 2;
/// Length of the raw data that must follow.
pub const LENGTH: u8 = 4;
pub const DATA: u8 = 8;
/// May occur more than once, as a member of a group.
pub const MEMBER: u8 = 16;
/// Number of members of the group that must follow.
pub const COUNT: u8 = 32;
/// Term of an order that most orders do not have, so that only those with one pay for its check.
pub const SPECIAL_TERM: u8 = 64;

/// Returns the class bits of a tag.
#[inline]
pub fn class(tag: u32) -> u8 {
    match CLASSES.get(tag as usize) {
        Some(&class) => class,
        None if FIXT_HEADERS.contains(&tag) => HEADER,
        None => 0,
    }
}

/// Returns the class bits of the tag with this slot, in every version. Our own tags have none.
#[inline]
pub(super) fn slot_class(slot: usize) -> u8 {
    SLOT_CLASSES.get(slot).copied().unwrap_or(0)
}

/// Returns the class bits of a tag in a message with this BeginString. Over FIXT there are more.
#[inline]
pub fn class_in(begin_string: &[u8], tag: u32) -> u8 {
    match CLASSES.get(tag as usize) {
        Some(&class) => class,
        None if begin_string == FIXT => fix50::slot(tag).map_or(0, |slot| CLASSES_50[slot]),
        None => class(tag),
    }
}

/// Returns the tag of the raw data whose length this tag gives.
pub fn data_of(length: u32) -> Option<u32> {
    let listed = RAW.iter().find(|pair| pair.0 == length).map(|pair| pair.1);
    listed.or_else(|| fix50::data_of(length))
}

/// Raw data of FIX 4.4: the tag of the length, and the tag of the data.
const RAW: [(u32, u32); 16] = [
    (90, 91),
    (93, 89),
    (95, 96),
    (212, 213),
    (348, 349),
    (350, 351),
    (352, 353),
    (354, 355),
    (356, 357),
    (358, 359),
    (360, 361),
    (362, 363),
    (364, 365),
    (445, 446),
    (618, 619),
    (621, 622),
];

const HEADERS: [u32; 30] = [
    8, 9, 34, 35, 43, 49, 50, 52, 56, 57, 90, 91, 97, 115, 116, 122, 128, 129, 142, 143, 144, 145, 212, 213,
    347, 369, 627, 628, 629, 630,
];

const TRAILERS: [u32; 3] = [89, 93, 10];

const SPECIAL_TERMS: [u32; 3] = [EXEC_INST, MIN_QTY, MAX_FLOOR];

static CLASSES: [u8; COMMON_TAGS] = classes();

/// Classes of the tags that have a slot, by their slot.
static SLOT_CLASSES: [u8; SLOTS] = {
    let (classes, mut table) = (classes(), [0; SLOTS]);
    let mut at = 0;
    while at < classes.len() {
        table[at] = classes[at];
        at += 1;
    }
    table
};

/// Classes of the tags of FIX 5.0 SP2, by their slot there.
static CLASSES_50: [u8; fix50::SLOTS] = CLASSES_OF_FIX50;

const CLASSES_OF_FIX50: [u8; fix50::SLOTS] = {
    let mut table = [0; fix50::SLOTS];
    let mut tag = 0;
    while let Some(slot) = fix50::slot(tag) {
        if fix50::TYPE_LETTERS[slot] == fix50::RAW_DATA {
            table[slot] |= DATA;
        }
        if fix50::data_of(tag).is_some() {
            table[slot] |= LENGTH;
        }
        tag = fix50::next_tag(tag);
    }
    let lines = &fix50::GROUP_LINES;
    let (mut word, mut line) = (0, 0);
    let mut is_list = false;
    while word < lines.words.len() {
        let begins_line = line < lines.starts.len() && lines.starts[line] == word;
        if begins_line {
            line += 1;
            is_list = lines.words[word].first == NO_RELATED_SYM;
        }
        let bit = if begins_line { COUNT } else { MEMBER };
        let mut tag = lines.words[word].first;
        // The fields of an instrument occur once in every message that is not a table.
        while tag <= lines.words[word].last && (begins_line || !is_list) {
            let Some(slot) = fix50::slot(tag) else { panic!("a tag without a slot") };
            table[slot] |= bit;
            tag += 1;
        }
        word += 1;
    }
    let mut at = 0;
    while at < FIXT_HEADERS.len() {
        let Some(slot) = fix50::slot(FIXT_HEADERS[at]) else { panic!("a tag without a slot") };
        table[slot] |= HEADER;
        at += 1;
    }
    table
};

/// The header of FIXT has these tags in addition.
const FIXT_HEADERS: [u32; 3] = [APPL_VER_ID, CSTM_APPL_VER_ID, APPL_EXT_ID];

const fn classes() -> [u8; COMMON_TAGS] {
    let mut table = [0; COMMON_TAGS];
    let mut at = 0;
    while at < HEADERS.len() {
        table[HEADERS[at] as usize] |= HEADER;
        at += 1;
    }
    at = 0;
    while at < TRAILERS.len() {
        table[TRAILERS[at] as usize] |= TRAILER;
        at += 1;
    }
    at = 0;
    while at < GROUPS.len() {
        let Group { count, members } = GROUPS[at];
        table[count as usize] |= COUNT;
        let mut member = 0;
        // The fields of an instrument occur once in every message that is not a table.
        while member < members.len() && count != NO_RELATED_SYM {
            table[members[member] as usize] |= MEMBER;
            member += 1;
        }
        at += 1;
    }
    at = 0;
    while at < SPECIAL_TERMS.len() {
        table[SPECIAL_TERMS[at] as usize] |= SPECIAL_TERM;
        at += 1;
    }
    at = 0;
    while at < RAW.len() {
        table[RAW[at].0 as usize] |= LENGTH;
        table[RAW[at].1 as usize] |= DATA;
        at += 1;
    }
    // A few tags are counts and members only in groups of FIX 5.0 SP2.
    at = 0;
    while at < table.len() {
        table[at] |= CLASSES_OF_FIX50[at] & (COUNT | MEMBER);
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_the_lists() {
        assert_eq!(class(MSG_SEQ_NUM), HEADER);
        assert_eq!(class(90), HEADER | LENGTH);
        assert_eq!(class(89), TRAILER | DATA);
        assert_eq!((class(448), class(453), class(802)), (MEMBER, COUNT, COUNT | MEMBER));
        assert_eq!((class(363), class(SYMBOL), class(711)), (DATA | MEMBER, 0, COUNT));
        assert_eq!(class(CL_ORD_ID), 0);
        assert_eq!((class(STRATEGY_ID), class(APPL_VER_ID), class(DEFAULT_APPL_VER_ID)), (0, HEADER, 0));
        assert_eq!((class(1_812), class(1_813), class(1_402)), (0, 0, 0));
        let fixt = [448, 1_812, 1_813, 1_401, 1_402, APPL_VER_ID, DEFAULT_APPL_VER_ID, STRATEGY_ID];
        assert_eq!(fixt.map(|tag| class_in(FIXT, tag)), [MEMBER, COUNT, MEMBER, LENGTH, DATA, HEADER, 0, 0]);
        let others = fixt.map(|tag| class_in(b"FIX.4.4", tag));
        assert_eq!(others, [MEMBER, 0, 0, 0, 0, HEADER, 0, 0]);
        assert_eq!((class(u32::MAX), class_in(FIXT, u32::MAX)), (0, 0));
        assert_eq!((data_of(95), data_of(96), data_of(1_401)), (Some(96), None, Some(1_402)));
        assert_eq!((prefix::ACCOUNT, prefix::CL_ORD_ID, prefix::STRATEGY_ID), (b"1=", b"11=", b"7001="));
        assert_eq!([0, 1_023, 7_000, 7_063].map(slot), [Some(0), Some(1_023), Some(1_024), Some(1_087)]);
        assert_eq!([1_024, 6_999, 7_064, u32::MAX].map(slot), [None; 4]);
    }
}
