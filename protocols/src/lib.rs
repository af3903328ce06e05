#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::wildcard_enum_match_arm,
        reason = "the numbers of a test are small, and a test looks at one variant at a time"
    )
)]

pub mod codes;

pub mod order_line;

pub mod checksum;
mod handle_table;

pub mod decoded;
pub mod json;

pub mod sbe;

pub mod websocket;
pub mod venue;
pub mod fix;
pub mod binance;
pub mod stomp;

pub mod rest;
pub mod remote;

#[cfg(test)]
mod test_reports;
