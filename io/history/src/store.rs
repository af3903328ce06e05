//! The history of the market: ticks and bars of all securities, and what the next tick of each
//! adds to them.
//!
//! ```text
//! tick of a shard ─► its time ─► ticks ─► BarBuilder ─► bars of 1 s, 1 min, 1 day
//! ```
//!
//! At a start, bars in progress are built again from the rows below them: days from minutes,
//! minutes from seconds, seconds from ticks. So nothing but rows is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::Path;

use pitlane_engine::event::Tick;
use pitlane_engine::id::{SecurityId, ShardId};
use pitlane_engine::number::Qty;
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::shard_of;
use pitlane_engine::time::{Day, NS_PER_S, Timestamp};

use super::bar_builder::{BarBuilder, BarContext};
use super::interval::{BarInterval, DaySpan, NS_PER_MINUTE, TradingDays};
use super::rows::{HistoryRow, StoredBar, StoredTick};
use super::series::{RowRange, Series};
use super::settings::HistorySettings;

/// Time by which stored rows may be ahead of the clock. Rows further ahead were written while the
/// clock was wrong: they are set aside, since nothing could be added before their time comes.
const AHEAD_NS_MAX: u64 = 3_600 * NS_PER_S;

#[derive(Debug)]
pub(crate) struct HistoryStore {
    settings: HistorySettings,
    days: TradingDays,
    ticks: Series<StoredTick>,
    bars: BarSeries,
    securities: BTreeMap<SecurityId, SecurityHistory>,
    /// Trading day of each shard, once it is known.
    trading_days: BTreeMap<ShardId, Day>,
    /// Whether the disk did not take the last rows.
    is_failing: bool,
    /// Rows that the disk did not take, or could not have taken in order.
    lost: u64,
    /// Held while this process writes the files.
    _lock: File,
}

/// The bars that have ended, by interval.
#[derive(Debug)]
struct BarSeries {
    seconds: Series<StoredBar>,
    minutes: Series<StoredBar>,
    days: Series<StoredBar>,
}

/// What is known of one security.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecurityHistory {
    pub last: Option<StoredTick>,
    /// Volume of the trading day in the tick before; `None` before the first tick of this process.
    volume: Option<Qty>,
    /// The source's time in the tick before.
    source_at: Timestamp,
    builder: BarBuilder,
    /// The last trading day that has ended.
    pub ended_day: Option<StoredBar>,
}

impl BarSeries {
    fn of(&self, interval: BarInterval) -> &Series<StoredBar> {
        match interval {
            BarInterval::Second => &self.seconds,
            BarInterval::Minute => &self.minutes,
            BarInterval::Day => &self.days,
        }
    }

    fn of_mut(&mut self, interval: BarInterval) -> &mut Series<StoredBar> {
        match interval {
            BarInterval::Second => &mut self.seconds,
            BarInterval::Minute => &mut self.minutes,
            BarInterval::Day => &mut self.days,
        }
    }
}

impl HistoryStore {
    /// Opens the files, repairs them, and builds the bars in progress.
    pub(crate) fn open(
        settings: HistorySettings,
        reference: &RefData,
        now: Timestamp,
    ) -> io::Result<HistoryStore> {
        fs::create_dir_all(&settings.folder)?;
        let mut store = HistoryStore::read(&settings, reference)?;
        if store.newest().since(now) > AHEAD_NS_MAX {
            drop(store);
            set_aside(&settings.folder)?;
            store = HistoryStore::read(&settings, reference)?;
        }
        store.build_bars_in_progress();
        store.retain(now);
        Ok(store)
    }

    fn read(settings: &HistorySettings, reference: &RefData) -> io::Result<HistoryStore> {
        let folder = &settings.folder;
        let lock = File::create(folder.join("lock"))?;
        lock.try_lock().map_err(|error| {
            io::Error::other(format!("{}: another process uses it: {error}", folder.display()))
        })?;
        Ok(HistoryStore {
            days: TradingDays::of(reference),
            ticks: Series::open(folder, "ticks")?,
            bars: BarSeries {
                seconds: Series::open(folder, "bars-1s")?,
                minutes: Series::open(folder, "bars-1m")?,
                days: Series::open(folder, "bars-1d")?,
            },
            securities: BTreeMap::new(),
            trading_days: BTreeMap::new(),
            is_failing: false,
            lost: 0,
            _lock: lock,
            settings: settings.clone(),
        })
    }

    /// Returns the newest time of all rows.
    fn newest(&self) -> Timestamp {
        let ticks = self.ticks.newest();
        let bars = BarInterval::ALL.into_iter().map(|interval| self.bars.of(interval).newest());
        bars.fold(ticks, Timestamp::max)
    }

    fn build_bars_in_progress(&mut self) {
        let mut all: BTreeSet<SecurityId> = self.ticks.securities().collect();
        BarInterval::ALL.into_iter().for_each(|interval| all.extend(self.bars.of(interval).securities()));
        for security in all {
            let (days, minutes) = (self.bars.days.last(security), self.bars.minutes.last(security));
            let last_tick = self.ticks.last(security);
            let mut history = SecurityHistory {
                last: last_tick,
                ended_day: days,
                source_at: last_tick.map_or(Timestamp::ZERO, |tick| tick.at),
                ..SecurityHistory::default()
            };
            let day_end = days.map_or(Timestamp::ZERO, |bar| self.days.span(security, bar.at).end);
            let minute_end = minutes.map_or(Timestamp::ZERO, |bar| bar.at.plus(NS_PER_MINUTE)).max(day_end);
            let of_minutes = rows_from(&self.bars.minutes, security, day_end);
            let of_seconds = rows_from(&self.bars.seconds, security, minute_end);
            let second_end = self.bars.seconds.last(security);
            let second_end = second_end.map_or(Timestamp::ZERO, |bar| bar.at.plus(NS_PER_S)).max(minute_end);
            let of_ticks = rows_from(&self.ticks, security, second_end);
            history.builder.not_before(second_end);
            let mut ended = Vec::new();
            let mut put = |interval, bar| ended.push((interval, bar));
            let span = |at| self.days.span(security, at);
            let mut ctx = BarContext { span: &span, ended: &mut put };
            of_minutes.into_iter().for_each(|bar| history.builder.add_minute(bar, &mut ctx));
            of_seconds.into_iter().for_each(|bar| history.builder.add_second(bar, &mut ctx));
            for tick in of_ticks.into_iter().filter(|tick| tick.has_trade) {
                history.builder.add_trade(tick.at, tick.last, tick.traded, &mut ctx);
            }
            self.put_ended(security, &mut history, ended);
            self.securities.insert(security, history);
        }
    }

    /// Takes new reference data, with the time zones of their exchanges.
    pub(crate) fn set_reference(&mut self, reference: &RefData) {
        self.days = TradingDays::of(reference);
    }

    /// Notes the trading day of a shard. When a day begins, shards count their volumes from zero.
    pub(crate) fn set_trading_day(&mut self, shard: ShardId, day: Day) {
        if self.trading_days.insert(shard, day).is_none_or(|before| before == day) {
            return;
        }
        for (security, history) in &mut self.securities {
            if shard_of(*security, self.settings.shards) == shard && history.volume.is_some() {
                history.volume = Some(Qty::ZERO);
            }
        }
    }

    /// Adds a tick that a shard has published at `published`. A tick that shows nothing new, such
    /// as those of a shard's snapshot, adds nothing.
    pub(crate) fn add_tick(&mut self, published: Timestamp, tick: &Tick) {
        let mut history = self.securities.remove(&tick.security).unwrap_or_default();
        let stored = history.next_row(published, tick);
        history.volume = Some(tick.volume);
        history.source_at = tick.at;
        if let Some(row) = stored {
            history.last = Some(row);
            let pushed = self.ticks.push(tick.security, row);
            self.check(pushed);
            if row.has_trade {
                let mut ended = Vec::new();
                let mut put = |interval, bar| ended.push((interval, bar));
                let span = |at| self.days.span(tick.security, at);
                let mut ctx = BarContext { span: &span, ended: &mut put };
                history.builder.add_trade(row.at, row.last, row.traded, &mut ctx);
                self.put_ended(tick.security, &mut history, ended);
            }
        }
        self.securities.insert(tick.security, history);
    }

    /// Ends the bars whose time is over, and writes everything to the log.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        let mut securities = std::mem::take(&mut self.securities);
        for (security, history) in &mut securities {
            let mut ended = Vec::new();
            let mut put = |interval, bar| ended.push((interval, bar));
            let span = |at| self.days.span(*security, at);
            let mut ctx = BarContext { span: &span, ended: &mut put };
            history.builder.advance(now, &mut ctx);
            self.put_ended(*security, history, ended);
        }
        self.securities = securities;
        // The ticks come first: what is built from them may be missing, but not the other way
        // round.
        let flushed = self.ticks.flush();
        self.check(flushed);
        for interval in BarInterval::ALL {
            let flushed = self.bars.of_mut(interval).flush();
            self.check(flushed);
        }
    }

    /// Stores bars that have ended.
    fn put_ended(
        &mut self,
        security: SecurityId,
        history: &mut SecurityHistory,
        ended: Vec<(BarInterval, StoredBar)>,
    ) {
        for (interval, bar) in ended {
            if interval == BarInterval::Day {
                history.ended_day = Some(bar);
            }
            let pushed = self.bars.of_mut(interval).push(security, bar);
            self.check(pushed);
        }
    }

    /// Removes what is too old, and while the files are too large, the oldest of what is needed
    /// least.
    pub(crate) fn retain(&mut self, now: Timestamp) {
        let HistorySettings { ticks_ns, seconds_ns, minutes_ns, bytes_max, .. } = self.settings;
        let since = |age_ns: u64| Timestamp(now.0.saturating_sub(age_ns));
        let removed = remove_all(|| self.ticks.remove_before(since(ticks_ns)))
            .and(remove_all(|| self.bars.seconds.remove_before(since(seconds_ns))))
            .and(remove_all(|| self.bars.minutes.remove_before(since(minutes_ns))));
        self.check(removed);
        while self.bytes() > bytes_max {
            let removed = self.remove_least_needed();
            let is_over = !matches!(removed, Ok(true));
            self.check(removed.map(|_| ()));
            if is_over {
                break;
            }
        }
    }

    fn remove_least_needed(&mut self) -> io::Result<bool> {
        Ok(self.ticks.remove_oldest()?
            || self.bars.seconds.remove_oldest()?
            || self.bars.minutes.remove_oldest()?
            || self.bars.days.remove_oldest()?)
    }

    /// Returns the bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let bars = BarInterval::ALL.into_iter().map(|interval| self.bars.of(interval).bytes());
        self.ticks.bytes() + bars.sum::<u64>()
    }

    /// Returns how often the disk did not take rows.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Forces everything to disk.
    pub(crate) fn sync(&mut self) {
        let synced = self.ticks.sync();
        self.check(synced);
        for interval in BarInterval::ALL {
            let synced = self.bars.of_mut(interval).sync();
            self.check(synced);
        }
    }

    /// Logs the first error of a row of errors. The history goes on in memory, and on disk as soon
    /// as the disk takes rows again.
    fn check(&mut self, result: io::Result<()>) {
        if let Err(error) = &result {
            self.lost += 1;
            if !self.is_failing {
                tracing::error!(%error, "the history of the market cannot be written: rows are missing in it");
            }
        }
        self.is_failing = result.is_err();
    }

    /// Returns the ticks of a security in a range.
    pub(crate) fn ticks(&self, security: SecurityId, range: RowRange) -> io::Result<Vec<StoredTick>> {
        self.ticks.range(security, range)
    }

    /// Returns the bars of a security in a range; the second value is the begin of the first bar
    /// that is still in progress.
    pub(crate) fn bars(
        &self,
        security: SecurityId,
        interval: BarInterval,
        range: RowRange,
    ) -> io::Result<(Vec<StoredBar>, Timestamp)> {
        let mut rows = self.bars.of(interval).range(security, range)?;
        let in_progress = self.in_progress(security, interval);
        let since = in_progress.first().map_or(Timestamp::MAX, |bar| bar.at);
        let wanted = in_progress.into_iter().filter(|bar| (range.from..range.to).contains(&bar.at));
        rows.extend(wanted);
        let count = rows.len().min(range.limit);
        match range.is_backwards {
            true => _ = rows.drain(..rows.len() - count),
            false => rows.truncate(count),
        }
        Ok((rows, since))
    }

    fn in_progress(&self, security: SecurityId, interval: BarInterval) -> Vec<StoredBar> {
        let Some(history) = self.securities.get(&security) else { return Vec::new() };
        let bars = history.builder.in_progress(&|at| self.days.span(security, at)).into_iter();
        bars.filter(|(other, _)| *other == interval).map(|(_, bar)| bar).collect()
    }

    /// Returns the securities that have ever had a price.
    pub(crate) fn securities(&self) -> impl Iterator<Item = SecurityId> {
        let has_price = |history: &SecurityHistory| history.last.is_some() || history.ended_day.is_some();
        self.securities.iter().filter(move |(_, history)| has_price(history)).map(|(id, _)| *id)
    }

    /// Returns the last tick, the bar of the current trading day and that of the trading day
    /// before, as far as they are known.
    pub(crate) fn quote(&self, security: SecurityId, now: Timestamp) -> DayQuote {
        let Some(history) = self.securities.get(&security) else { return DayQuote::default() };
        let DaySpan { start, .. } = self.days.span(security, now);
        let mut today = None;
        let mut before = history.ended_day;
        for bar in self.in_progress(security, BarInterval::Day) {
            if bar.at >= start { today = Some(bar) } else { before = Some(bar) }
        }
        DayQuote { last: history.last, today, before }
    }
}

/// The newest prices of a security.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DayQuote {
    pub last: Option<StoredTick>,
    pub today: Option<StoredBar>,
    pub before: Option<StoredBar>,
}

impl SecurityHistory {
    /// Returns the row that a tick adds; `None` if it shows nothing new.
    fn next_row(&self, published: Timestamp, tick: &Tick) -> Option<StoredTick> {
        let is_quoted = tick.bid_size.is_positive() || tick.ask_size.is_positive();
        let (has_quote, has_trade, traded) = match (&self.last, self.volume) {
            // The first tick, of this process or at all: of the trades only the last one is known.
            (last, None) => {
                let is_known = last.is_some_and(|last| last.shows_trade(tick));
                let has_trade = tick.traded && !is_known;
                let has_quote = is_quoted && !last.is_some_and(|last| last.shows_quote(tick));
                (has_quote, has_trade, tick.last_size)
            }
            (last, Some(volume)) => {
                let has_quote = !last.is_some_and(|last| last.shows_quote(tick));
                let added = tick.volume.raw() - volume.raw();
                // The volume also falls when a trading day begins.
                let traded = if added < 0 { tick.volume } else { Qty::from_raw(added) };
                let is_known = last.is_some_and(|last| last.shows_trade(tick));
                (has_quote, tick.traded && (traded.is_positive() || !is_known), traded)
            }
        };
        if !has_quote && !has_trade {
            return None;
        }
        Some(StoredTick {
            at: self.time_of(published, tick),
            bid: tick.bid,
            bid_size: tick.bid_size,
            ask: tick.ask,
            ask_size: tick.ask_size,
            last: tick.last,
            last_size: tick.last_size,
            traded: if has_trade { traded } else { Qty::ZERO },
            has_quote,
            has_trade,
        })
    }

    /// Returns the time of a tick: that of its source, but not later than its publication and later
    /// than the tick before. A trade between clients has no time of a source: the tick then has the
    /// source's time of the tick before.
    fn time_of(&self, published: Timestamp, tick: &Tick) -> Timestamp {
        let has_own = tick.at != self.source_at && tick.at != Timestamp::ZERO;
        let at = if has_own { tick.at.min(published) } else { published };
        let after_last = self.last.map_or(Timestamp::ZERO, |last| last.at.plus(1));
        at.max(after_last).max(self.builder.earliest())
    }
}

/// Returns all rows of a security from a time on. Rows that cannot be read count as absent.
fn rows_from<R: HistoryRow>(series: &Series<R>, security: SecurityId, from: Timestamp) -> Vec<R> {
    let range = RowRange { from, to: Timestamp::MAX, limit: usize::MAX, is_backwards: false };
    series.range(security, range).unwrap_or_else(|error| {
        tracing::error!(%error, security = security.0, "the history of a security cannot be read");
        Vec::new()
    })
}

/// Removes one file after the other until there is none to remove.
fn remove_all(mut remove: impl FnMut() -> io::Result<bool>) -> io::Result<()> {
    while remove()? {}
    Ok(())
}

/// Moves the files of a history from the future into a folder beside it, in place of an earlier
/// one.
fn set_aside(folder: &Path) -> io::Result<()> {
    let aside = folder.with_file_name("history-ahead");
    tracing::warn!(
        folder = %aside.display(),
        "the stored history is ahead of the clock by more than an hour: it is set aside, and a new one begins"
    );
    if aside.exists() {
        fs::remove_dir_all(&aside)?;
    }
    fs::rename(folder, &aside)?;
    fs::create_dir_all(folder)
}
