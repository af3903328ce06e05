//! The history as a whole: bars beside those of a naive computation, restarts, damage, clocks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use pitlane_engine::event::{Event, EventKind, Tick};
use pitlane_engine::id::{SecurityId, ShardId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::{RefData, RefDataRows};
use pitlane_engine::rng::Rng;
use pitlane_engine::time::{Day, NS_PER_DAY, NS_PER_MS, NS_PER_S, Timestamp};
use pitlane_runtime::clock::Clock;
use pitlane_runtime::metrics::Registry;
use pitlane_testkit::temp_folder::TestFolder;

use super::*;
use crate::query::answer;
use crate::rows::{StoredBar, StoredTick};
use crate::series::RowRange;
use crate::store::HistoryStore;

const ALL: RowRange =
    RowRange { from: Timestamp::ZERO, to: Timestamp::MAX, limit: usize::MAX, is_backwards: false };
const ONE: SecurityId = SecurityId(1);

/// Midnight of a day in UTC.
fn midnight() -> Timestamp {
    Day::parse(b"2026-11-14").unwrap().start()
}

fn settings(folder: &Path) -> HistorySettings {
    HistorySettings {
        folder: folder.join("history"),
        shards: 1,
        ticks_ns: NS_PER_DAY,
        seconds_ns: 2 * NS_PER_DAY,
        minutes_ns: 90 * NS_PER_DAY,
        bytes_max: 1 << 30,
    }
}

/// Reference data without exchanges: every day is a day of UTC.
fn reference() -> RefData {
    RefData::check(RefDataRows::default()).unwrap()
}

fn open(folder: &Path, now: Timestamp) -> HistoryStore {
    HistoryStore::open(settings(folder), &reference(), now).unwrap()
}

/// The market of one security, as a shard publishes it.
#[derive(Clone, Copy)]
struct Market(Tick);

impl Market {
    fn new(security: SecurityId) -> Market {
        Market(Tick { security, ..Tick::default() })
    }

    fn quote(&mut self, at: Timestamp, bid: i64) -> Tick {
        (self.0.bid, self.0.bid_size, self.0.at) = (Price::from_raw(bid), Qty::from_raw(10), at);
        (self.0.ask, self.0.ask_size) = (Price::from_raw(bid + 1), Qty::from_raw(20));
        self.0
    }

    fn trade(&mut self, at: Timestamp, price: i64, size: i64) -> Tick {
        (self.0.last, self.0.last_size, self.0.traded) = (Price::from_raw(price), Qty::from_raw(size), true);
        (self.0.volume, self.0.at) = (Qty::from_raw(self.0.volume.raw() + size), at);
        self.0
    }
}

/// Computes bars from the recorded ticks in the plainest way.
fn naive_bars(ticks: &[StoredTick], interval_ns: u64) -> Vec<StoredBar> {
    let mut groups: BTreeMap<u64, Vec<&StoredTick>> = BTreeMap::new();
    for tick in ticks.iter().filter(|tick| tick.has_trade) {
        groups.entry(tick.at.0 / interval_ns).or_default().push(tick);
    }
    let bar = |(nth, trades): (u64, Vec<&StoredTick>)| StoredBar {
        at: Timestamp(nth * interval_ns),
        open: trades[0].last,
        high: trades.iter().map(|tick| tick.last).max().unwrap(),
        low: trades.iter().map(|tick| tick.last).min().unwrap(),
        close: trades[trades.len() - 1].last,
        volume: Qty::from_raw(trades.iter().map(|tick| tick.traded.raw()).sum()),
        trades: trades.len() as u64,
    };
    groups.into_iter().map(bar).collect()
}

fn assert_bars_are_those_of_the_ticks(store: &HistoryStore, security: SecurityId) {
    let ticks = store.ticks(security, ALL).unwrap();
    for (interval, interval_ns) in [
        (BarInterval::Second, NS_PER_S),
        (BarInterval::Minute, 60 * NS_PER_S),
        (BarInterval::Day, NS_PER_DAY),
    ] {
        let (bars, _) = store.bars(security, interval, ALL).unwrap();
        assert_eq!(bars, naive_bars(&ticks, interval_ns), "{interval:?} of {security:?}");
    }
}

#[test]
fn bars_equal_those_of_a_naive_computation_through_restarts_and_jumping_clocks() {
    let folder = TestFolder::new("history", "naive");
    let mut rng = Rng::new(24);
    // Shortly before midnight, so that a day ends.
    let mut now = Timestamp(midnight().0 - 20 * 60 * NS_PER_S);
    let mut store = open(&folder, now);
    let mut markets = [1, 2, 3].map(|id| Market::new(SecurityId(id)));
    let mut sent = BTreeMap::from([1, 2, 3].map(|id| (SecurityId(id), 0_i64)));
    for step in 0..20_000 {
        now = now.plus(match rng.below(2_000) {
            // The clock jumps, or the machine was suspended.
            0 => rng.below(3 * 3_600) * NS_PER_S,
            1..200 => rng.below(10 * NS_PER_S),
            _ => rng.below(200 * NS_PER_MS),
        });
        let market = &mut markets[rng.below(3) as usize];
        // Sources may be late, have the same time twice, or a wrong clock.
        let at = match rng.below(20) {
            0 => Timestamp(now.0.saturating_sub(rng.below(5 * NS_PER_S))),
            1 => now.plus(rng.below(NS_PER_DAY)),
            2 => market.0.at,
            _ => now,
        };
        let price = 1_000 + rng.below(50) as i64;
        let tick = match rng.below(3) {
            0 => market.quote(at, price),
            _ => {
                let size = 1 + rng.below(9) as i64;
                *sent.get_mut(&market.0.security).unwrap() += size;
                market.trade(at, price, size)
            }
        };
        store.add_tick(now, &tick);
        if rng.below(10) == 0 {
            store.advance(now);
        }
        // Killed and started again; the shard then sends its market once more.
        if step % 2_500 == 2_499 {
            store.advance(now);
            drop(store);
            store = open(&folder, now);
            markets.iter().for_each(|market| store.add_tick(now, &market.0));
        }
    }
    for (security, volume) in sent {
        assert_bars_are_those_of_the_ticks(&store, security);
        let ticks = store.ticks(security, ALL).unwrap();
        assert!(ticks.is_sorted_by(|one, next| one.at < next.at), "times of ticks increase");
        assert_eq!(ticks.iter().map(|tick| tick.traded.raw()).sum::<i64>(), volume, "no trade is lost");
        assert!(ticks.iter().all(|tick| tick.at <= now.plus(ticks.len() as u64)), "none is in the future");
    }
}

#[test]
fn a_kill_at_any_moment_loses_only_what_was_not_written() {
    let folder = TestFolder::new("history", "kill");
    let mut market = Market::new(ONE);
    let mut store = open(&folder, midnight());
    for second in 0..200 {
        let at = midnight().plus(second * NS_PER_S);
        store.add_tick(at, &market.trade(at, 100 + second as i64 % 7, 1));
        store.advance(at);
    }
    // These ticks are in memory only.
    let end = midnight().plus(200 * NS_PER_S);
    store.add_tick(end, &market.trade(end, 500, 1));
    drop(store);
    let store = open(&folder, end);
    assert_eq!(store.ticks(ONE, ALL).unwrap().len(), 200);
    assert_bars_are_those_of_the_ticks(&store, ONE);
    let (_, in_progress) = store.bars(ONE, BarInterval::Day, ALL).unwrap();
    assert_eq!(in_progress, midnight(), "the day has not ended");
}

#[test]
fn bars_that_were_not_written_are_built_from_the_ticks_again() {
    let folder = TestFolder::new("history", "bars-lost");
    let mut market = Market::new(ONE);
    let mut store = open(&folder, midnight());
    for second in 0..150 {
        let at = midnight().plus(second * NS_PER_S);
        store.add_tick(at, &market.trade(at, 100 + second as i64 % 7, 1));
    }
    store.advance(midnight().plus(150 * NS_PER_S));
    drop(store);
    for name in ["bars-1s.log", "bars-1m.log"] {
        let path = folder.join("history").join(name);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    }
    let store = open(&folder, midnight().plus(151 * NS_PER_S));
    assert_eq!(store.bars(ONE, BarInterval::Second, ALL).unwrap().0.len(), 150);
    assert_bars_are_those_of_the_ticks(&store, ONE);
}

#[test]
fn a_tick_that_a_snapshot_repeats_is_stored_once_and_one_that_was_missed_is_added() {
    let folder = TestFolder::new("history", "snapshot");
    let mut market = Market::new(ONE);
    let at = |second| midnight().plus(second * NS_PER_S);
    let mut store = open(&folder, at(0));
    store.add_tick(at(1), &market.quote(at(1), 100));
    store.add_tick(at(2), &market.trade(at(2), 100, 5));
    store.advance(at(3));
    for _ in 0..2 {
        drop(store);
        store = open(&folder, at(9));
        store.add_tick(at(9), &market.0);
        store.advance(at(9));
        assert_eq!(store.ticks(ONE, ALL).unwrap().len(), 2);
    }
    // A trade happened after the last write before a kill.
    let missed = market.trade(at(4), 101, 3);
    drop(store);
    store = open(&folder, at(9));
    store.add_tick(at(9), &missed);
    let ticks = store.ticks(ONE, ALL).unwrap();
    assert_eq!((ticks.len(), ticks[2].at, ticks[2].traded), (3, at(4), Qty::from_raw(3)));
}

#[test]
fn the_volume_of_a_new_trading_day_counts_from_zero() {
    let folder = TestFolder::new("history", "trading-day");
    let mut market = Market::new(ONE);
    let mut store = open(&folder, midnight());
    let at = |second| midnight().plus(second * NS_PER_S);
    store.set_trading_day(ShardId(0), Day(20_000));
    store.add_tick(at(1), &market.trade(at(1), 100, 2));
    store.add_tick(at(2), &market.trade(at(2), 100, 1));
    // The shard begins a day: its volume is zero, and no tick tells that.
    store.set_trading_day(ShardId(0), Day(20_001));
    market.0.volume = Qty::ZERO;
    store.add_tick(at(3), &market.trade(at(3), 100, 7));
    // The same day again, as in a snapshot, changes nothing.
    store.set_trading_day(ShardId(0), Day(20_001));
    store.add_tick(at(4), &market.trade(at(4), 100, 4));
    // A day of another shard does not concern this security.
    store.set_trading_day(ShardId(1), Day(20_000));
    store.set_trading_day(ShardId(1), Day(20_001));
    store.add_tick(at(5), &market.trade(at(5), 100, 3));
    let traded: Vec<i64> = store.ticks(ONE, ALL).unwrap().iter().map(|tick| tick.traded.raw()).collect();
    assert_eq!(traded, [2, 1, 7, 4, 3]);
}

#[test]
fn a_quote_has_the_day_and_the_close_of_the_day_before_also_after_a_restart() {
    let folder = TestFolder::new("history", "quote");
    let mut market = Market::new(ONE);
    let day = |days: u64, seconds: u64| midnight().plus(days * NS_PER_DAY + seconds * NS_PER_S);
    let mut store = open(&folder, day(0, 0));
    let price = |raw| Some(Price::from_raw(raw));
    let prices = |store: &HistoryStore, now| {
        let quote = store.quote(ONE, now);
        (quote.last.map(|tick| tick.last), quote.today.map(|bar| bar.open), quote.before.map(|bar| bar.close))
    };
    assert_eq!(prices(&store, day(0, 0)), (None, None, None));
    store.add_tick(day(0, 10), &market.trade(day(0, 10), 100, 1));
    store.add_tick(day(0, 90), &market.trade(day(0, 90), 110, 1));
    assert_eq!(prices(&store, day(0, 99)), (price(110), price(100), None));
    // The next day has no trade yet.
    assert_eq!(prices(&store, day(1, 0)), (price(110), None, price(110)));
    for _ in 0..2 {
        store.advance(day(1, 5));
        assert_eq!(prices(&store, day(1, 5)), (price(110), None, price(110)));
        drop(store);
        store = open(&folder, day(1, 6));
    }
    store.add_tick(day(1, 7), &market.trade(day(1, 7), 120, 1));
    store.add_tick(day(1, 8), &market.trade(day(1, 8), 115, 1));
    for _ in 0..2 {
        assert_eq!(prices(&store, day(1, 9)), (price(115), price(120), price(110)));
        store.advance(day(1, 9));
        drop(store);
        store = open(&folder, day(1, 9));
    }
    // A week without trades: the close is that of the last day with trades.
    assert_eq!(prices(&store, day(8, 0)), (price(115), None, price(115)));
}

#[test]
fn the_size_of_all_files_is_bounded_and_bars_of_days_go_last() {
    let folder = TestFolder::new("history", "size");
    let mut market = Market::new(ONE);
    let settings = HistorySettings { bytes_max: 40 << 20, ..settings(&folder) };
    let mut store = HistoryStore::open(settings, &reference(), midnight()).unwrap();
    let mut now = midnight();
    for number in 0..700_000 {
        now = now.plus(NS_PER_S);
        store.add_tick(now, &market.trade(now, 100 + number % 10, 1));
        if number % 1_000 == 0 {
            store.advance(now);
            store.retain(now);
            assert!(store.bytes() <= 40 << 20, "{} bytes after {number} ticks", store.bytes());
        }
    }
    let on_disk: u64 = fs::read_dir(folder.join("history"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(on_disk <= 40 << 20, "{on_disk}");
    let count = |interval| store.bars(ONE, interval, ALL).unwrap().0.len();
    assert_eq!(count(BarInterval::Day), 9, "of each day");
    assert!(count(BarInterval::Second) < 700_000);
    let ticks = store.ticks(ONE, ALL).unwrap();
    assert_eq!(ticks.last().map(|tick| tick.at), Some(now), "the newest stay");
}

#[test]
fn rows_that_are_too_old_are_removed() {
    let folder = TestFolder::new("history", "age");
    let mut market = Market::new(ONE);
    let settings = HistorySettings { ticks_ns: 3_600 * NS_PER_S, ..settings(&folder) };
    let mut store = HistoryStore::open(settings, &reference(), midnight()).unwrap();
    let mut now = midnight();
    for number in 0..300_000 {
        now = now.plus(10 * NS_PER_MS);
        store.add_tick(now, &market.trade(now, 100 + number % 10, 1));
    }
    store.advance(now);
    let before = store.ticks(ONE, ALL).unwrap().len();
    let later = now.plus(2 * 3_600 * NS_PER_S);
    store.retain(later);
    let after = store.ticks(ONE, ALL).unwrap().len();
    assert!(after < before && after > 0, "{before} {after}: whole files are removed");
    assert_eq!(store.bars(ONE, BarInterval::Second, ALL).unwrap().0.len(), 3_001, "bars stay");
}

#[test]
fn a_history_from_the_future_is_set_aside() {
    let folder = TestFolder::new("history", "ahead");
    let (mut market, year) = (Market::new(ONE), 365 * NS_PER_DAY);
    let ahead = midnight().plus(year);
    let mut store = open(&folder, ahead);
    store.add_tick(ahead, &market.trade(ahead, 100, 1));
    store.advance(ahead);
    drop(store);
    // A clock that is behind by less than an hour goes on after the last row.
    let behind = Timestamp(ahead.0 - 1_800 * NS_PER_S);
    let mut store = open(&folder, behind);
    store.add_tick(behind, &market.trade(behind, 101, 1));
    assert_eq!(store.ticks(ONE, ALL).unwrap()[1].at, ahead.plus(1));
    drop(store);
    let mut store = open(&folder, midnight());
    assert_eq!(store.ticks(ONE, ALL).unwrap(), []);
    assert!(folder.join("history-ahead").join("ticks.log").exists());
    store.add_tick(midnight(), &market.trade(midnight(), 102, 1));
    assert_eq!(store.ticks(ONE, ALL).unwrap()[0].at, midnight());
}

#[test]
fn two_processes_cannot_write_the_same_history() {
    let folder = TestFolder::new("history", "lock");
    let store = open(&folder, midnight());
    let second = HistoryStore::open(settings(&folder), &reference(), midnight());
    assert!(second.unwrap_err().to_string().contains("another process uses it"));
    drop(store);
    open(&folder, midnight());
}

fn asked(
    store: &HistoryStore,
    query: &HistoryQuery,
    format: RowFormat,
    now: Timestamp,
) -> (String, HistoryAnswer) {
    let answer = answer(store, query, format, now).unwrap();
    (String::from_utf8(answer.body.clone()).unwrap(), answer)
}

#[test]
fn answers_are_json_or_csv() {
    let folder = TestFolder::new("history", "formats");
    let mut market = Market::new(ONE);
    let mut store = open(&folder, midnight());
    let at = |second| midnight().plus(second * NS_PER_S);
    store.add_tick(at(1), &market.quote(at(1), 150_000_000));
    store.add_tick(at(2), &market.trade(at(2), 150_000_000, 200_000_000));
    let page = PageQuery { from: None, to: Timestamp::MAX, limit: 10 };
    let ticks = HistoryQuery::Ticks { security: ONE, page };
    assert_eq!(
        asked(&store, &ticks, RowFormat::Csv, at(3)).0,
        "time,security,bid,bidSize,ask,askSize,last,lastSize\n\
         2026-11-14T00:00:01Z,1,1.5,0.0000001,1.50000001,0.0000002,,\n\
         2026-11-14T00:00:02Z,1,1.5,0.0000001,1.50000001,0.0000002,1.5,2\n"
    );
    assert_eq!(
        asked(&store, &ticks, RowFormat::Json, at(3)).0,
        "[{\"securityId\":1,\"dateTime\":\"2026-11-14T00:00:01Z\",\"bid\":1.5,\"bidSize\":0.0000001,\
         \"ask\":1.50000001,\"askSize\":0.0000002},\
         {\"securityId\":1,\"dateTime\":\"2026-11-14T00:00:02Z\",\"bid\":1.5,\"bidSize\":0.0000001,\
         \"ask\":1.50000001,\"askSize\":0.0000002,\"last\":1.5,\"lastSize\":2}]"
    );
    let bars = HistoryQuery::Bars { security: ONE, interval: BarInterval::Second, page };
    assert_eq!(
        asked(&store, &bars, RowFormat::Csv, at(3)).0,
        "time,security,open,high,low,close,volume\n2026-11-14T00:00:02Z,1,1.5,1.5,1.5,1.5,2\n"
    );
    let json = |store: &HistoryStore| asked(store, &bars, RowFormat::Json, at(3)).0;
    assert!(json(&store).ends_with("\"volume\":2,\"trades\":1,\"complete\":false}]"), "{}", json(&store));
    store.advance(at(9));
    assert!(json(&store).ends_with("\"volume\":2,\"trades\":1,\"complete\":true}]"), "{}", json(&store));
    let quotes = HistoryQuery::Quotes { securities: Vec::new() };
    assert_eq!(
        asked(&store, &quotes, RowFormat::Csv, at(9)).0,
        "time,security,bid,bidSize,ask,askSize,last,lastSize,open,high,low,volume,previousClose,previousDay\n\
         2026-11-14T00:00:02Z,1,1.5,0.0000001,1.50000001,0.0000002,1.5,2,1.5,1.5,1.5,2,,\n"
    );
    let unknown = HistoryQuery::Quotes { securities: vec![SecurityId(9)] };
    assert_eq!(asked(&store, &unknown, RowFormat::Json, at(9)).0, "[{\"securityId\":9,\"volume\":0}]");
}

#[test]
fn pages_in_either_direction_have_each_row_once() {
    let folder = TestFolder::new("history", "pages");
    let mut market = Market::new(ONE);
    let mut store = open(&folder, midnight());
    // Many ticks have the same time at their source.
    for number in 0..23 {
        let at = midnight().plus(number / 5 * NS_PER_S);
        store.add_tick(at, &market.trade(at, 100 + number as i64, 1));
    }
    let rows = |answer: &str| answer.lines().skip(1).map(str::to_string).collect::<Vec<_>>();
    let ask = |page| asked(&store, &HistoryQuery::Ticks { security: ONE, page }, RowFormat::Csv, midnight());
    let whole = rows(&ask(PageQuery { from: None, to: Timestamp::MAX, limit: 100 }).0);
    assert_eq!(whole.len(), 23);
    let mut page = PageQuery { from: Some(Timestamp::ZERO), to: Timestamp::MAX, limit: 4 };
    let mut forwards = Vec::new();
    loop {
        let (body, answer) = ask(page);
        forwards.extend(rows(&body));
        assert_eq!(answer.previous_to, None);
        let Some(from) = answer.next_from else { break };
        page.from = Some(from);
    }
    assert_eq!(forwards, whole);
    let mut page = PageQuery { from: None, to: Timestamp::MAX, limit: 4 };
    let mut backwards = Vec::new();
    loop {
        let (body, answer) = ask(page);
        backwards.splice(0..0, rows(&body));
        assert_eq!(answer.next_from, None);
        let Some(to) = answer.previous_to else { break };
        page.to = to;
    }
    assert_eq!(backwards, whole);
}

#[test]
fn the_thread_answers_with_every_tick_before_the_question_and_writes_all_at_its_end() {
    let folder = TestFolder::new("history", "thread");
    let time = Arc::new(AtomicU64::new(midnight().0));
    let registry = Arc::new(Registry::new(1));
    let begin = || {
        start(HistoryStart {
            settings: settings(&folder),
            reference: &reference(),
            clock: Clock::controlled(time.clone()),
            registry: registry.clone(),
        })
        .unwrap()
    };
    let ticks_of = |client: &HistoryClient| {
        let (sender, receiver) = channel();
        let page = PageQuery { from: None, to: Timestamp::MAX, limit: 1_000 };
        let query = HistoryQuery::Ticks { security: ONE, page };
        client.ask(query, RowFormat::Csv, move |answer| sender.send(answer.unwrap().body).unwrap()).unwrap();
        receiver.recv().unwrap().iter().filter(|octet| **octet == b'\n').count() - 1
    };
    let (mut recorder, client, thread) = begin();
    let mut market = Market::new(ONE);
    for number in 1..=50 {
        let at = midnight().plus(number * NS_PER_MS);
        time.store(at.0, Ordering::Release);
        let tick = market.trade(at, 100, 1);
        recorder.handle_event(ShardId(0), &Event { seq: number, at, body: EventKind::Tick(tick) });
        if number % 10 == 0 {
            assert_eq!(ticks_of(&client) as u64, number);
        }
    }
    client.end();
    thread.join().unwrap();
    assert_eq!(registry.history.ticks.get(), 50);
    assert_eq!(
        client.ask(HistoryQuery::Quotes { securities: vec![] }, RowFormat::Csv, |_| {}),
        Err(HistoryBusy)
    );
    let (_recorder, client, thread) = begin();
    assert_eq!(ticks_of(&client), 50);
    client.end();
    thread.join().unwrap();
}
