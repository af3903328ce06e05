//! Replays files of ticks as a live market: each row at its time, at any speed.
//!
//! One row is published at a time, and the next only in the next cycle: in the shared layout
//! strategies then see and send the same as in simulation. Files are read in the thread of the
//! feed, a block of some thousand rows at once.

use std::sync::Arc;

use pitlane_config::{ReplayConfig, SimulationConfig};
use pitlane_engine::command::CommandKind;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::bars::BarPath;
use super::file::ReadOptions;
use super::merge::{self, Merge};
use super::{DataError, TickRow};

#[derive(Debug)]
pub struct MarketReplay {
    data: Merge,
    /// Speed in thousandths; `None` for as fast as possible.
    speed_permille: Option<u64>,
    /// Time of the first row, and the time at which it was published.
    begun: Option<(Timestamp, Timestamp)>,
}

impl MarketReplay {
    /// Opens the files; returns `None` if no file is configured.
    pub fn open(
        settings: &ReplayConfig,
        bars: &SimulationConfig,
        reference: &Arc<RefData>,
    ) -> Result<Option<MarketReplay>, DataError> {
        if settings.data.is_empty() {
            return Ok(None);
        }
        let options = ReadOptions { bars: BarPath::of(bars), files: settings.files.clone() };
        let data = merge::open(&settings.data, reference, &options, (Timestamp::ZERO, Timestamp::MAX))?;
        Ok(Some(MarketReplay { data, speed_permille: settings.speed_permille, begun: None }))
    }

    /// Returns when the next row is due; the maximum time if there is none.
    pub fn next_at(&self) -> Timestamp {
        match (self.data.peek(), self.begun) {
            (None, _) => Timestamp::MAX,
            (Some(_), None) => Timestamp::ZERO,
            (Some(at), Some((first, started_at))) => self.moved(at, first, started_at),
        }
    }

    /// Returns the next row that is due, with the current time.
    pub fn poll(&mut self, now: Timestamp) -> Result<Option<TickRow>, DataError> {
        let Some(at) = self.data.peek() else { return Ok(None) };
        let (first, started_at) = *self.begun.get_or_insert((at, now));
        if self.moved(at, first, started_at) > now {
            return Ok(None);
        }
        Ok(self.data.next_row()?.map(|row| restamped(row, now)))
    }

    fn moved(&self, at: Timestamp, first: Timestamp, started_at: Timestamp) -> Timestamp {
        let Some(speed) = self.speed_permille else { return started_at };
        let ns = at.since(first) as u128 * 1_000 / speed as u128;
        started_at.plus(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// Returns the row with another time.
fn restamped(mut row: TickRow, at: Timestamp) -> TickRow {
    row.at = at;
    if let CommandKind::Quote { quote, .. } | CommandKind::Tick { quote, .. } = &mut row.body {
        quote.at = at;
    }
    if let CommandKind::Trade { trade, .. } | CommandKind::Tick { trade, .. } = &mut row.body {
        trade.at = at;
    }
    if let CommandKind::Level { level, .. } = &mut row.body {
        level.at = at;
    }
    row
}
