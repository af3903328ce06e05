//! The messages of FIX 4.2 that a client may send. Formats of the tags are those of FIX 4.4, which
//! has nearly all of them; values are in [`super::version_values`].

use super::messages::{ListedMessage, OURS, TEXT};
use crate::fix::msg_type;

pub(super) static MESSAGES: [ListedMessage; 9] = [
    ListedMessage::new(
        &[msg_type::NEW_ORDER_SINGLE],
        &[11, 21, 40, 54, 55, 60],
        &[ORDER, ORDER_TERMS, &[81, 140, 23, 117], INSTRUMENT, TEXT, OURS],
    ),
    ListedMessage::new(
        &[msg_type::ORDER_CANCEL_REQUEST],
        &[11, 41, 54, 55, 60],
        &[ORDER, &[37, 41, 66, 376, 377], INSTRUMENT, TEXT, OURS],
    ),
    ListedMessage::new(
        &[msg_type::ORDER_CANCEL_REPLACE_REQUEST],
        &[11, 21, 40, 41, 54, 55, 60],
        &[ORDER, ORDER_TERMS, &[37, 41, 66], INSTRUMENT, TEXT, OURS],
    ),
    // Username and password (553, 554) are of later versions. A session that asks for them needs
    // them here too.
    ListedMessage::new(&[msg_type::LOGON], &[98, 108], &[&[98, 108, 95, 96, 141, 383, 384, 553, 554]]),
    ListedMessage::new(
        &[msg_type::ORDER_STATUS_REQUEST],
        &[11, 54, 55],
        &[&[37, 11, 109, 1, 76, 54], INSTRUMENT, OURS],
    ),
    ListedMessage::new(
        &[msg_type::DONT_KNOW_TRADE],
        &[17, 37, 54, 55, 127],
        &[&[37, 17, 127, 54, 38, 152, 32, 31], INSTRUMENT, TEXT],
    ),
    ListedMessage::new(
        &[msg_type::MARKET_DATA_REQUEST],
        &[146, 262, 263, 264, 267],
        &[&[262, 263, 264, 265, 266, 267, 146]],
    ),
    ListedMessage::new(
        &[msg_type::SECURITY_DEFINITION_REQUEST],
        &[320, 321],
        &[&[320, 321, 15, 336, 146], INSTRUMENT, TEXT],
    ),
    ListedMessage::new(
        &[msg_type::TRADING_SESSION_STATUS_REQUEST],
        &[263, 335],
        &[&[335, 336, 338, 339, 263]],
    ),
];

/// Tags that an order, its cancel and its replacement have in common.
const ORDER: &[u32] = &[11, 109, 76, 1, 54, 60, 38, 152];

/// Tags of an instrument.
const INSTRUMENT: &[u32] =
    &[55, 65, 48, 22, 167, 200, 205, 201, 202, 206, 231, 223, 207, 106, 348, 349, 107, 350, 351];

/// Terms of an order and of its replacement.
const ORDER_TERMS: &[u32] = &[
    78, 63, 64, 21, 18, 110, 111, 100, 386, 114, 40, 44, 99, 15, 376, 377, 59, 168, 432, 126, 427, 12, 13,
    47, 121, 120, 193, 192, 77, 203, 204, 210, 211, 388, 389, 439, 440,
];
