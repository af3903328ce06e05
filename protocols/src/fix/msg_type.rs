//! MsgType (35) by name.
//!
//! Nearly every type that a session handles or sends is one character, so it is compared and
//! written as a byte.

pub const HEARTBEAT: u8 = b'0';
pub const TEST_REQUEST: u8 = b'1';
pub const RESEND_REQUEST: u8 = b'2';
pub const REJECT: u8 = b'3';
pub const SEQUENCE_RESET: u8 = b'4';
pub const LOGOUT: u8 = b'5';
pub const EXECUTION_REPORT: u8 = b'8';
pub const ORDER_CANCEL_REJECT: u8 = b'9';
pub const LOGON: u8 = b'A';
pub const NEW_ORDER_SINGLE: u8 = b'D';
pub const ORDER_CANCEL_REQUEST: u8 = b'F';
pub const ORDER_CANCEL_REPLACE_REQUEST: u8 = b'G';
pub const ORDER_STATUS_REQUEST: u8 = b'H';
pub const DONT_KNOW_TRADE: u8 = b'Q';
pub const MARKET_DATA_REQUEST: u8 = b'V';
pub const MARKET_DATA_SNAPSHOT: u8 = b'W';
pub const MARKET_DATA_INCREMENTAL_REFRESH: u8 = b'X';
pub const MARKET_DATA_REQUEST_REJECT: u8 = b'Y';
pub const SECURITY_DEFINITION_REQUEST: u8 = b'c';
pub const SECURITY_DEFINITION: u8 = b'd';
pub const TRADING_SESSION_STATUS_REQUEST: u8 = b'g';
pub const TRADING_SESSION_STATUS: u8 = b'h';
pub const BUSINESS_MESSAGE_REJECT: u8 = b'j';
pub const ORDER_MASS_CANCEL_REQUEST: u8 = b'q';
pub const ORDER_MASS_CANCEL_REPORT: u8 = b'r';
pub const SECURITY_LIST_REQUEST: u8 = b'x';
pub const SECURITY_LIST: u8 = b'y';

/// Types of two characters.
pub const ORDER_MASS_STATUS_REQUEST: &[u8] = b"AF";
pub const REQUEST_FOR_POSITIONS: &[u8] = b"AN";
pub const REQUEST_FOR_POSITIONS_ACK: SentMsgType = SentMsgType::of_two(*b"AO");
pub const POSITION_REPORT: SentMsgType = SentMsgType::of_two(*b"AP");

/// The type of a message that is sent: one character, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentMsgType {
    pub(super) first: u8,
    pub(super) second: Option<u8>,
}

impl SentMsgType {
    const fn of_two([first, second]: [u8; 2]) -> SentMsgType {
        SentMsgType { first, second: Some(second) }
    }
}

impl From<u8> for SentMsgType {
    #[inline]
    fn from(first: u8) -> SentMsgType {
        SentMsgType { first, second: None }
    }
}

/// Stands for every MsgType that is not one character. A MsgType of one NUL is unknown too.
pub const UNKNOWN: u8 = 0;

/// Returns the byte of a MsgType of one character, and [`UNKNOWN`] for every other MsgType.
#[inline]
pub fn code(msg_type: &[u8]) -> u8 {
    match msg_type {
        [code] => *code,
        _ => UNKNOWN,
    }
}
