//! Converts a bar into the market that the venue sees: four trades along a path, each with a quote
//! around it.
//!
//! ```text
//! open ─► extreme nearer to the open ─► other extreme ─► close   at 0, 1/4, 1/2, 3/4 of interval
//! ```
//!
//! The quote is one tick to each side of the trade. Its size, and the trade's, are a share of the
//! bar's volume, so that no more is traded than the bar allows.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_config::SimulationConfig;
use pitlane_engine::command::{CommandKind, Quote, Trade};
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::TickRow;

/// Number of steps of a bar.
pub const STEPS: usize = 4;
/// Maximum number of steps that wait for their time: those of all bars that overlap. More than all
/// securities of a large market have.
pub const WAITING_MAX: usize = STEPS << 17;

/// How bars become prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarPath {
    pub interval_ns: u64,
    /// Share of a bar's volume that can be traded against, in hundredths of a percent.
    pub volume_bp: u32,
}

/// One row of a file of bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarRow {
    pub at: Timestamp,
    pub security: SecurityId,
    pub open: Price,
    pub high: Price,
    pub low: Price,
    pub close: Price,
    pub volume: Qty,
}

impl BarPath {
    /// Returns how the bars of a simulation become prices.
    pub fn of(settings: &SimulationConfig) -> BarPath {
        BarPath { interval_ns: settings.bar_ns, volume_bp: settings.bar_volume_bp }
    }

    /// Returns the rows of a bar, earliest first. `tick` and `lot` are the security's.
    pub fn rows(&self, bar: &BarRow, tick: Price, lot: Qty) -> [TickRow; STEPS] {
        let to_high = bar.high.raw().abs_diff(bar.open.raw());
        let to_low = bar.low.raw().abs_diff(bar.open.raw());
        let (first, second) = if to_low <= to_high { (bar.low, bar.high) } else { (bar.high, bar.low) };
        let size = self.size(bar.volume, lot);
        let step_ns = self.interval_ns / STEPS as u64;
        let mut step = 0;
        [bar.open, first, second, bar.close].map(|price| {
            let at = bar.at.plus(step_ns * step);
            step += 1;
            let around = |side: i64| Price::from_raw(price.raw().saturating_add(side * tick.raw()));
            let quote = Quote { bid: around(-1), bid_size: size, ask: around(1), ask_size: size, at };
            let trade = Trade { price, size, at };
            TickRow {
                at,
                security: bar.security,
                body: CommandKind::Tick { security: bar.security, quote, trade },
            }
        })
    }

    /// Returns a quarter of the share, in whole lots; at least one lot.
    fn size(&self, volume: Qty, lot: Qty) -> Qty {
        let share = volume.raw() as i128 * self.volume_bp as i128 / 10_000 / STEPS as i128;
        let lots = (share / lot.raw() as i128).max(1);
        Qty::from_raw(i64::try_from(lots * lot.raw() as i128).unwrap_or(lot.raw()))
    }
}

/// Converts the bars of one file into rows, in time order even if several securities have bars at
/// once.
#[derive(Debug)]
pub struct BarExpansion {
    path: BarPath,
    reference: Arc<RefData>,
    /// Rows by time, and for equal times in order of arrival.
    waiting: BTreeMap<(Timestamp, u64), TickRow>,
    unfolded: u64,
    /// Next bar, whose start limits how far the other bars may proceed.
    next: Option<BarRow>,
}

impl BarExpansion {
    pub fn new(path: BarPath, reference: Arc<RefData>) -> BarExpansion {
        BarExpansion { path, reference, waiting: BTreeMap::new(), unfolded: 0, next: None }
    }

    /// Returns whether it needs the next bar, if there is one, before it returns a row.
    pub fn wants(&self) -> bool {
        self.next.is_none()
    }

    pub fn put(&mut self, bar: BarRow) {
        self.next = Some(bar);
    }

    /// Returns a row whose time has come. `None` means that the bar was converted, or that nothing
    /// is left.
    pub fn poll(&mut self) -> Result<Option<TickRow>, String> {
        let until = self.next.map_or(Timestamp::MAX, |bar| bar.at);
        if let Some(first) = self.waiting.first_entry()
            && first.key().0 <= until
        {
            return Ok(Some(first.remove()));
        }
        match self.next.take() {
            Some(bar) => self.unfold(&bar).map(|()| None),
            None => Ok(None),
        }
    }

    fn unfold(&mut self, bar: &BarRow) -> Result<(), String> {
        if self.waiting.len() + STEPS > WAITING_MAX {
            return Err(format!("more than {} bars begin at once", WAITING_MAX / STEPS));
        }
        let row = self.reference.security(bar.security).ok_or("there is no such security")?;
        let family = self.reference.family_of(row);
        for row in self.path.rows(bar, family.tick_size, family.lot_size) {
            self.unfolded += 1;
            self.waiting.insert((row.at, self.unfolded), row);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_goes_to_the_nearer_extreme_first() {
        let path = BarPath { interval_ns: 400, volume_bp: 1_000 };
        let bar = BarRow {
            at: Timestamp(1_000),
            security: SecurityId(1),
            open: Price::from_raw(100),
            high: Price::from_raw(110),
            low: Price::from_raw(95),
            close: Price::from_raw(105),
            volume: Qty::from_raw(4_007),
        };
        let rows = path.rows(&bar, Price::from_raw(5), Qty::from_raw(10));
        let trades = rows.map(|row| {
            let CommandKind::Tick { quote, trade, .. } = row.body else { panic!("{row:?}") };
            assert_eq!((quote.bid.raw(), quote.ask.raw()), (trade.price.raw() - 5, trade.price.raw() + 5));
            (row.at.0, trade.price.raw(), trade.size.raw())
        });
        assert_eq!(trades, [(1_000, 100, 100), (1_100, 95, 100), (1_200, 110, 100), (1_300, 105, 100)]);
        let high_first = BarRow { high: Price::from_raw(101), ..bar };
        let rows = path.rows(&high_first, Price::from_raw(5), Qty::from_raw(1_000_000));
        let CommandKind::Tick { trade, .. } = rows[1].body else { panic!() };
        assert_eq!((trade.price.raw(), trade.size.raw()), (101, 1_000_000), "one lot at least");
    }
}
