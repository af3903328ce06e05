//! Messages of dialogue files as text. A crate of its own: dialogues are also played without a
//! socket, by tests of `engine` and `protocols` that need nothing else of the test kit.

#![allow(clippy::unwrap_used, reason = "every function is part of a test, and a test may")]

pub mod binance;
pub mod binance_book;
pub mod fix_fields;
pub mod stomp_frames;
