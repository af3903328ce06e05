//! OrdStatus (39) by name.

pub const NEW: u8 = b'0';
pub const PARTIALLY_FILLED: u8 = b'1';
pub const FILLED: u8 = b'2';
pub const DONE_FOR_DAY: u8 = b'3';
pub const CANCELED: u8 = b'4';
pub const REPLACED: u8 = b'5';
pub const PENDING_CANCEL: u8 = b'6';
pub const REJECTED: u8 = b'8';
pub const SUSPENDED: u8 = b'9';
pub const PENDING_NEW: u8 = b'A';
pub const EXPIRED: u8 = b'C';
pub const ACCEPTED_FOR_BIDDING: u8 = b'D';
pub const PENDING_REPLACE: u8 = b'E';
