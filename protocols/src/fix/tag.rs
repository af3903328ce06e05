//! Tags by name, and what the frame's structure must know of each: whether it belongs to the header or the trailer, announces
//! raw data, is raw data, or may come again as a member of a group.

pub const ACCOUNT: u32 = 1;
pub const AVG_PX: u32 = 6;
pub const BEGIN_SEQ_NO: u32 = 7;
pub const BEGIN_STRING: u32 = 8;
pub const BODY_LENGTH: u32 = 9;
pub const CHECK_SUM: u32 = 10;
pub const CL_ORD_ID: u32 = 11;
pub const CUM_QTY: u32 = 14;
pub const CURRENCY: u32 = 15;
pub const END_SEQ_NO: u32 = 16;
pub const EXEC_ID: u32 = 17;
pub const EXEC_REF_ID: u32 = 19;
pub const SECURITY_ID_SOURCE: u32 = 22;
pub const LAST_PX: u32 = 31;
pub const LAST_QTY: u32 = 32;
pub const MSG_SEQ_NUM: u32 = 34;
pub const MSG_TYPE: u32 = 35;
pub const NEW_SEQ_NO: u32 = 36;
pub const ORDER_ID: u32 = 37;
pub const ORDER_QTY: u32 = 38;
pub const ORD_STATUS: u32 = 39;
pub const ORD_TYPE: u32 = 40;
pub const ORIG_CL_ORD_ID: u32 = 41;
pub const POSS_DUP_FLAG: u32 = 43;
pub const PRICE: u32 = 44;
pub const REF_SEQ_NUM: u32 = 45;
pub const SECURITY_ID: u32 = 48;
pub const SENDER_COMP_ID: u32 = 49;
pub const SENDING_TIME: u32 = 52;
pub const SIDE: u32 = 54;
pub const SYMBOL: u32 = 55;
pub const TARGET_COMP_ID: u32 = 56;
pub const TEXT: u32 = 58;
pub const TIME_IN_FORCE: u32 = 59;
pub const TRANSACT_TIME: u32 = 60;
pub const POSS_RESEND: u32 = 97;
pub const ENCRYPT_METHOD: u32 = 98;
pub const STOP_PX: u32 = 99;
pub const CXL_REJ_REASON: u32 = 102;
pub const ORD_REJ_REASON: u32 = 103;
pub const HEART_BT_INT: u32 = 108;
pub const TEST_REQ_ID: u32 = 112;
pub const ON_BEHALF_OF_COMP_ID: u32 = 115;
pub const ON_BEHALF_OF_SUB_ID: u32 = 116;
pub const ORIG_SENDING_TIME: u32 = 122;
pub const GAP_FILL_FLAG: u32 = 123;
pub const EXPIRE_TIME: u32 = 126;
pub const DELIVER_TO_COMP_ID: u32 = 128;
pub const DELIVER_TO_SUB_ID: u32 = 129;
pub const RESET_SEQ_NUM_FLAG: u32 = 141;
pub const ON_BEHALF_OF_LOCATION_ID: u32 = 144;
pub const DELIVER_TO_LOCATION_ID: u32 = 145;
pub const EXEC_TYPE: u32 = 150;
pub const SECURITY_TYPE: u32 = 167;
pub const SECURITY_EXCHANGE: u32 = 207;
pub const MD_REQ_ID: u32 = 262;
pub const MD_ENTRY_TYPE: u32 = 269;
pub const MD_ENTRY_PX: u32 = 270;
pub const MD_ENTRY_SIZE: u32 = 271;
pub const MD_UPDATE_ACTION: u32 = 279;
pub const MD_ENTRY_POSITION_NO: u32 = 290;
pub const REF_MSG_TYPE: u32 = 372;
pub const BUSINESS_REJECT_REF_ID: u32 = 379;
pub const EXPIRE_DATE: u32 = 432;
pub const CXL_REJ_RESPONSE_TO: u32 = 434;
pub const TEST_MESSAGE_INDICATOR: u32 = 464;
pub const USERNAME: u32 = 553;
pub const PASSWORD: u32 = 554;
pub const NEXT_EXPECTED_MSG_SEQ_NUM: u32 = 789;
pub const ORD_STATUS_REQ_ID: u32 = 790;
pub const STRATEGY_ID: u32 = 7001;
pub const STRATEGY_NAME: u32 = 7002;
pub const EXCHANGE_ORDER: u32 = 7003;

/// Tags of FIX 4.4 lie below; those above are looked up slowly.
pub const COMMON_TAGS: usize = 1_024;

/// Tags of our own, and their neighbours.
const OWN_TAGS: u32 = 7_000;
const OWN_TAGS_COUNT: usize = 64;

/// Tags that have a place of their own in a table.
pub const SLOTS: usize = COMMON_TAGS + OWN_TAGS_COUNT;

/// The place of a tag in such a table: those of FIX 4.4, then ours. Others have none and are searched for.
#[inline]
pub fn slot(tag: u32) -> Option<usize> {
    let own = tag.wrapping_sub(OWN_TAGS) as usize;
    match tag as usize {
        tag if tag < COMMON_TAGS => Some(tag),
        _ if own < OWN_TAGS_COUNT => Some(COMMON_TAGS + own),
        _ => None,
    }
}

/// The largest tag that is read. Larger ones are no tags, and never wrap into one.
pub const TAG_MAX: u32 = i32::MAX as u32;

pub const HEADER: u8 = 1;
pub const TRAILER: u8 = 2;
/// The length of the raw data that must follow.
pub const LENGTH: u8 = 4;
pub const DATA: u8 = 8;
/// May come more than once, as a member of a group.
pub const MEMBER: u8 = 16;

/// What kind of tag it is.
#[inline]
pub fn class(tag: u32) -> u8 {
    CLASSES.get(tag as usize).copied().unwrap_or(0)
}

/// The tag of the raw data whose length this tag tells.
pub fn data_of(length: u32) -> Option<u32> {
    RAW.iter().find(|pair| pair.0 == length).map(|pair| pair.1)
}

/// Raw data of FIX 4.4: the tag of its length, and its own.
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

/// Members of groups in the messages a client may send us.
const MEMBERS: [u32; 78] = [
    // NoHops, NoMsgTypes, NoPartyIDs with its sub ids, NoAllocs with its parties.
    628, 629, 630, 372, 385, 448, 447, 452, 523, 803, 802, 79, 661, 736, 467, 80, 539, 524, 525, 538, 804,
    545, 805, // NoTradingSessions, NoSecurityAltID, NoEvents, NoStipulations.
    336, 625, 455, 456, 865, 866, 867, 868, 233, 234,
    // NoUnderlyings with its alternative ids and stipulations.
    311, 312, 309, 305, 457, 458, 459, 462, 463, 310, 763, 313, 542, 241, 242, 243, 244, 245, 246, 256, 595,
    592, 593, 594, 247, 316, 941, 317, 436, 435, 308, 306, 362, 363, 307, 364, 365, 877, 878, 318, 879, 810,
    882, 883, 887,
];

static CLASSES: [u8; COMMON_TAGS] = classes();

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
    while at < MEMBERS.len() {
        table[MEMBERS[at] as usize] |= MEMBER;
        at += 1;
    }
    at = 0;
    while at < RAW.len() {
        table[RAW[at].0 as usize] |= LENGTH;
        table[RAW[at].1 as usize] |= DATA;
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
        assert_eq!(class(448), MEMBER);
        assert_eq!(class(CL_ORD_ID), 0);
        assert_eq!(class(STRATEGY_ID), 0);
        assert_eq!(class(u32::MAX), 0);
        assert_eq!((data_of(95), data_of(96)), (Some(96), None));
        assert_eq!([0, 1_023, 7_000, 7_063].map(slot), [Some(0), Some(1_023), Some(1_024), Some(1_087)]);
        assert_eq!([1_024, 6_999, 7_064, u32::MAX].map(slot), [None; 4]);
    }
}
