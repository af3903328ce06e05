//! The hash of a run: of every order report, transaction and daily value, exactly as they were.
//! Texts, plots, rounding and the names of files and kinds are not part of it, so the same run has
//! the same hash however it was started and however it is shown.

use pitlane_engine::event::{Booking, OrderReport};
use pitlane_engine::number::Money;
use pitlane_engine::time::Timestamp;
use xxhash_rust::xxh3::Xxh3;

// The first byte of a record says what it is.
const REPORT: u8 = 1;
const BOOKING: u8 = 2;
const VALUE: u8 = 3;
const RANGE: u8 = 4;

#[derive(Clone, Default)]
pub(crate) struct RunHash(Box<Xxh3>);

impl std::fmt::Debug for RunHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RunHash({:016x})", self.digest())
    }
}

impl RunHash {
    pub(crate) fn add_report(&mut self, at: Timestamp, report: &OrderReport) {
        self.record(REPORT, at, report.strategy.0.into(), report.security.0.into());
        self.0.update(report.id.as_bytes());
        self.0.update(&[report.what as u8, report.status as u8, report.side as u8, report.kind as u8]);
        self.0.update(report.reason.code().as_bytes());
        let OrderReport { qty, cum_qty, last_qty, last_price, .. } = report;
        self.numbers(&[qty.raw(), cum_qty.raw(), last_qty.raw(), last_price.raw()]);
    }

    /// Adds a transaction; `fee` is what was paid in all.
    pub(crate) fn add_booking(&mut self, at: Timestamp, booking: &Booking, fee: Money) {
        let security = booking.security.map_or(u64::MAX, |security| security.0.into());
        self.record(BOOKING, at, booking.strategy.0.into(), security);
        let Booking { qty, price, position, .. } = booking;
        self.numbers(&[qty.raw(), price.raw(), fee.raw(), position.qty.raw(), position.realized.raw()]);
    }

    /// Adds the value of a strategy at the end of a day or of the run.
    pub(crate) fn add_value(&mut self, at: Timestamp, strategy: u64, equity: Money) {
        self.record(VALUE, at, strategy, 0);
        self.numbers(&[equity.raw()]);
    }

    /// Adds the period of the run and the number of its rows.
    pub(crate) fn add_range(&mut self, from: Timestamp, to: Timestamp, rows: u64) {
        self.record(RANGE, from, to.0, rows);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.0.digest()
    }

    fn record(&mut self, kind: u8, at: Timestamp, one: u64, two: u64) {
        self.0.update(&[kind]);
        [at.0, one, two].iter().for_each(|number| self.0.update(&number.to_le_bytes()));
    }

    fn numbers(&mut self, numbers: &[i64]) {
        numbers.iter().for_each(|number| self.0.update(&number.to_le_bytes()));
    }
}
