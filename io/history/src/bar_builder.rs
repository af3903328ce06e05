//! Builds the bars of one security from its trades. A second that has ended is added to its minute,
//! and a minute that has ended to its day, so each trade is counted once:
//!
//! ```text
//! trade ─► second ── ended ─► minute ── ended ─► day ── ended ─►
//! ```
//!
//! A bar ends when a trade of a later interval arrives, or some time after the end of its interval.
//! Then no trade may be added to it any more: [`BarBuilder::earliest`].

use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::interval::{BarInterval, DaySpan, NS_PER_MINUTE, floor};
use super::rows::StoredBar;

/// Time after the end of an interval in which its bar still takes trades: sources and lanes may be
/// that late.
pub(crate) const LATE_NS: u64 = 2 * NS_PER_S;

/// The bars in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct BarBuilder {
    second: Option<StoredBar>,
    minute: Option<StoredBar>,
    day: Option<(StoredBar, DaySpan)>,
    /// End of the last bar that has ended.
    earliest: Timestamp,
}

/// What the builder needs of its surroundings: the trading day of a time, and a receiver of the
/// bars that have ended.
pub(crate) struct BarContext<'a> {
    pub span: &'a dyn Fn(Timestamp) -> DaySpan,
    pub ended: &'a mut dyn FnMut(BarInterval, StoredBar),
}

impl BarBuilder {
    /// Returns the earliest time that a trade may have.
    pub(crate) fn earliest(&self) -> Timestamp {
        self.earliest
    }

    /// Sets the end of the last bar that has ended before the process started.
    pub(crate) fn not_before(&mut self, earliest: Timestamp) {
        self.earliest = self.earliest.max(earliest);
    }

    /// Adds a trade. Its time is not before [`BarBuilder::earliest`] and not before that of the
    /// trade before.
    pub(crate) fn add_trade(&mut self, at: Timestamp, price: Price, qty: Qty, ctx: &mut BarContext<'_>) {
        let bar = StoredBar::of_trade(floor(at, NS_PER_S), price, qty);
        if self.second.is_some_and(|second| second.at != bar.at) {
            self.end_second(ctx);
        }
        merge(&mut self.second, bar);
    }

    /// Adds a second that has ended, also one of an earlier process.
    pub(crate) fn add_second(&mut self, bar: StoredBar, ctx: &mut BarContext<'_>) {
        self.not_before(bar.at.plus(NS_PER_S));
        let bar = StoredBar { at: floor(bar.at, NS_PER_MINUTE), ..bar };
        if self.minute.is_some_and(|minute| minute.at != bar.at) {
            self.end_minute(ctx);
        }
        merge(&mut self.minute, bar);
    }

    /// Adds a minute that has ended, also one of an earlier process.
    pub(crate) fn add_minute(&mut self, bar: StoredBar, ctx: &mut BarContext<'_>) {
        self.not_before(bar.at.plus(NS_PER_MINUTE));
        let span = (ctx.span)(bar.at);
        let bar = StoredBar { at: span.start, ..bar };
        match &mut self.day {
            Some((day, _)) if day.at == bar.at => day.add(&bar),
            Some(_) | None => {
                self.end_day(ctx);
                self.day = Some((bar, span));
            }
        }
    }

    /// Ends the bars whose time is over.
    pub(crate) fn advance(&mut self, now: Timestamp, ctx: &mut BarContext<'_>) {
        let is_over = |end: Timestamp| end.plus(LATE_NS) <= now;
        if self.second.is_some_and(|bar| is_over(bar.at.plus(NS_PER_S))) {
            self.end_second(ctx);
        }
        // A second in progress belongs to the minute in progress or to a later one, and so on.
        let minute_of = |second: StoredBar| floor(second.at, NS_PER_MINUTE);
        let is_later = |minute: StoredBar| self.second.is_none_or(|second| minute_of(second) != minute.at);
        if self.minute.is_some_and(|bar| is_over(bar.at.plus(NS_PER_MINUTE)) && is_later(bar)) {
            self.end_minute(ctx);
        }
        let begins = [self.second.map(minute_of), self.minute.map(|minute| minute.at)];
        let has_more = |span: DaySpan| begins.into_iter().flatten().any(|begin| begin < span.end);
        if self.day.is_some_and(|(_, span)| is_over(span.end) && !has_more(span)) {
            self.end_day(ctx);
        }
    }

    /// Returns the bars in progress, of all intervals, as if they ended now.
    pub(crate) fn in_progress(&self, span: &dyn Fn(Timestamp) -> DaySpan) -> Vec<(BarInterval, StoredBar)> {
        let mut bars = Vec::new();
        let mut rest = self.clone();
        let mut ended = |interval, bar| bars.push((interval, bar));
        let mut ctx = BarContext { span, ended: &mut ended };
        rest.end_second(&mut ctx);
        rest.end_minute(&mut ctx);
        rest.end_day(&mut ctx);
        bars
    }

    fn end_second(&mut self, ctx: &mut BarContext<'_>) {
        if let Some(bar) = self.second.take() {
            (ctx.ended)(BarInterval::Second, bar);
            self.add_second(bar, ctx);
        }
    }

    fn end_minute(&mut self, ctx: &mut BarContext<'_>) {
        if let Some(bar) = self.minute.take() {
            (ctx.ended)(BarInterval::Minute, bar);
            self.add_minute(bar, ctx);
        }
    }

    fn end_day(&mut self, ctx: &mut BarContext<'_>) {
        if let Some((bar, span)) = self.day.take() {
            (ctx.ended)(BarInterval::Day, bar);
            self.not_before(span.end);
        }
    }
}

fn merge(bar: &mut Option<StoredBar>, more: StoredBar) {
    match bar {
        Some(bar) => bar.add(&more),
        None => *bar = Some(more),
    }
}
