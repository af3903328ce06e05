//! The history of the live market: bars of one second, one minute and one trading day, recent
//! ticks, and the close of the trading day before, kept across restarts.
//!
//! ```text
//! http thread ── ticks ──► ring ──► thread `history`: HistoryStore ──► files
//!      └────── questions ─────────────────┘  └──► answers as JSON, CSV, Parquet, Arrow
//! ```
//!
//! The http thread, which receives every tick, copies ticks into a ring and never waits. Ticks that
//! do not fit are dropped for the history only, and counted.
//!
//! Rules: docs/market-history.md.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::wildcard_enum_match_arm,
        clippy::unwrap_used,
        reason = "the numbers of a test are small, and a test looks at one variant at a time"
    )
)]

mod bar_builder;
mod interval;
mod part_file;
mod query;
mod rows;
mod series;
mod settings;
mod store;
mod tail_log;
mod thread;

pub use self::interval::BarInterval;
pub use self::query::{HistoryAnswer, HistoryQuery, PageQuery, RowFormat};
pub use self::settings::HistorySettings;
pub use self::thread::{HistoryBusy, HistoryClient, HistoryRecorder, HistoryStart, start};

#[cfg(test)]
mod tests;
