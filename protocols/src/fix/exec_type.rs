//! ExecType (150) by name.

pub const NEW: u8 = b'0';
/// A fill, as FIX before 4.3 names it.
pub const PARTIAL_FILL: u8 = b'1';
/// A fill that completes the order, as FIX before 4.3 names it.
pub const FILL: u8 = b'2';
pub const DONE_FOR_DAY: u8 = b'3';
pub const CANCELED: u8 = b'4';
pub const REPLACED: u8 = b'5';
pub const PENDING_CANCEL: u8 = b'6';
pub const REJECTED: u8 = b'8';
pub const PENDING_NEW: u8 = b'A';
pub const EXPIRED: u8 = b'C';
pub const PENDING_REPLACE: u8 = b'E';
pub const TRADE: u8 = b'F';
pub const TRADE_CORRECT: u8 = b'G';
pub const TRADE_CANCEL: u8 = b'H';
pub const ORDER_STATUS: u8 = b'I';
