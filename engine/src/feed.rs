//! The simulated feed: for each security a random walk of quotes and trades, from a seed.
//!
//! Each security has its own random stream and its own clock. Its events depend only on the seed,
//! its own reference data and the instants at which it was switched on: not on other securities, on
//! shards, or on how often the feed is polled. Prices are whole ticks above zero, sizes whole lots.
//!
//! ```text
//!            lowest = start / 2 ◄──────── bid walks ────────► highest = 2 × start
//! event:     Trade at bid or ask  |  Quote, after a step  |  Tick: both
//! ```

mod schedule;

use std::collections::BTreeMap;

use crate::command::{Command, CommandKind, Quote, Trade};
use crate::id::{SecurityId, Source};
use crate::number::{Price, Qty};
use crate::refdata::{RefData, Security, SecurityKind};
use crate::rng::Rng;
use crate::time::{NS_PER_MS, NS_PER_S, Timestamp};

use schedule::Schedule;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSettings {
    pub seed: u64,
    /// Mean time between two events of one security: 200 ms is five a second. Zero: no events.
    pub interval_ns: u64,
    /// Intervals of securities that differ from it.
    pub intervals: BTreeMap<SecurityId, u64>,
    /// Largest step, up or down.
    pub volatility_ticks: u32,
    /// Widest spread between bid and ask; the narrowest is one tick.
    pub spread_ticks_max: u32,
    /// Largest size of a quote or a trade.
    pub size_lots_max: u32,
    /// Share of events that are a trade alone, and share that are a quote and a trade at once, in
    /// thousandths; the rest are quotes.
    pub trade_permille: u32,
    pub tick_permille: u32,
    /// If the next event of a security is later than this (the machine slept), the feed skips what
    /// it missed. Zero: the feed skips nothing, which makes the result independent of when it is
    /// polled.
    pub lag_ns_max: u64,
    /// Source under which the feed sends commands.
    pub source: Source,
}

impl Default for FeedSettings {
    fn default() -> FeedSettings {
        FeedSettings {
            seed: 1,
            interval_ns: 200 * NS_PER_MS,
            intervals: BTreeMap::new(),
            volatility_ticks: 2,
            spread_ticks_max: 3,
            size_lots_max: 20,
            trade_permille: 250,
            tick_permille: 150,
            lag_ns_max: 0,
            source: Source::default(),
        }
    }
}

impl FeedSettings {
    /// Returns the mean time between events for a rate in events per second and security; at most
    /// one event per nanosecond.
    pub fn interval_of_rate(events_per_s: u64) -> u64 {
        NS_PER_S.checked_div(events_per_s).map_or(0, |interval| interval.max(1))
    }
}

/// See the module's comment.
#[derive(Debug)]
pub struct Feed {
    settings: FeedSettings,
    /// By security id.
    streams: Vec<Stream>,
    schedule: Schedule,
}

impl Feed {
    /// Creates a feed of every security that can have one. All streams are switched off.
    pub fn new(reference: &RefData, settings: FeedSettings) -> Feed {
        let of = |security| Stream::new(reference, security, &settings);
        let streams: Vec<Stream> = reference.securities().iter().filter_map(of).collect();
        Feed { schedule: Schedule::new(streams.len()), streams, settings }
    }

    /// Applies new reference data: new securities get a stream, still off; existing streams
    /// continue unchanged.
    pub fn adopt(&mut self, reference: &RefData) {
        let is_new =
            |row: &&Security| self.streams.binary_search_by_key(&row.id, |stream| stream.security).is_err();
        let new = reference.securities().iter().filter(is_new);
        let new: Vec<Stream> = new.filter_map(|row| Stream::new(reference, row, &self.settings)).collect();
        if new.is_empty() {
            return;
        }
        let old = std::mem::take(&mut self.streams).into_iter().enumerate();
        let mut all: Vec<(Stream, Timestamp)> =
            old.map(|(at, stream)| (stream, self.schedule.at(at))).collect();
        all.extend(new.into_iter().map(|stream| (stream, Timestamp::MAX)));
        all.sort_by_key(|(stream, _)| stream.security);
        self.schedule = Schedule::new(all.len());
        for (at, (stream, next)) in all.into_iter().enumerate() {
            self.streams.push(stream);
            self.schedule.set(at, next);
        }
    }

    /// Switches a security on or off. Its first event then comes within one interval. Returns false
    /// if there is no such stream.
    pub fn set_on(&mut self, security: SecurityId, on: bool, now: Timestamp) -> bool {
        let Ok(at) = self.streams.binary_search_by_key(&security, |stream| stream.security) else {
            return false;
        };
        let stream = &mut self.streams[at];
        if on != stream.on {
            stream.on = on;
            let next = if on { stream.first_at(now) } else { Timestamp::MAX };
            self.schedule.set(at, next);
        }
        true
    }

    pub fn is_on(&self, security: SecurityId) -> bool {
        let found = self.streams.binary_search_by_key(&security, |stream| stream.security);
        found.is_ok_and(|at| self.streams[at].on)
    }

    /// Returns the time of the next event; `Timestamp::MAX` if there is none.
    pub fn next_at(&self) -> Timestamp {
        self.schedule.first().map_or(Timestamp::MAX, |(_, at)| at)
    }

    /// Returns the next due event, in order of time; of two at the same time the lower security
    /// comes first.
    pub fn poll(&mut self, now: Timestamp) -> Option<Command> {
        let (first, mut at) = self.schedule.first().filter(|(_, at)| *at <= now && *at < Timestamp::MAX)?;
        let stream = &mut self.streams[first];
        let late = self.settings.lag_ns_max > 0 && now.since(at) > self.settings.lag_ns_max;
        if late {
            at = now;
        }
        let body = stream.step(at, &self.settings);
        let next = stream.next_at(at);
        self.schedule.set(first, next);
        Some(Command::new(self.settings.source, 0, body))
    }
}

/// The market of one security. Invariant: `lowest <= bid <= highest`, and every price up to
/// `highest` and a spread fits.
#[derive(Debug)]
struct Stream {
    security: SecurityId,
    on: bool,
    /// Whether there has been an event; the first one carries both a quote and a trade.
    begun: bool,
    rng: Rng,
    interval_ns: u64,
    tick: Price,
    lot: Qty,
    /// In ticks, as are the bounds.
    bid: i64,
    ask: i64,
    lowest: i64,
    highest: i64,
    bid_size: Qty,
    ask_size: Qty,
}

impl Stream {
    /// Returns `None` if the security never moves, or has no valid prices.
    fn new(reference: &RefData, security: &Security, settings: &FeedSettings) -> Option<Stream> {
        let interval_ns = *settings.intervals.get(&security.id).unwrap_or(&settings.interval_ns);
        let family = reference.family_of(security);
        let (tick, lot) = (family.tick_size, family.lot_size);
        if interval_ns == 0 || !tick.is_positive() || !lot.is_positive() {
            return None;
        }
        let told = security.start_price.filter(|price| price.is_positive());
        let start = told.unwrap_or_else(|| usual_price(security.kind));
        let top = i64::MAX / tick.raw() - settings.spread_ticks_max.max(1) as i64;
        if top < 1 {
            return None;
        }
        let bid = (start.raw() / tick.raw()).clamp(1, top);
        // Seeds that differ only in the low bits give unrelated streams.
        let seed = Rng::new(settings.seed).next_u64() ^ security.id.0 as u64;
        Some(Stream {
            security: security.id,
            on: false,
            begun: false,
            rng: Rng::new(seed),
            interval_ns,
            tick,
            lot,
            bid,
            ask: bid + 1,
            lowest: (bid / 2).max(1),
            highest: bid.saturating_mul(2).min(top),
            bid_size: lot,
            ask_size: lot,
        })
    }

    /// Draws a time in the next interval, so that securities switched on together do not move
    /// together.
    fn first_at(&mut self, now: Timestamp) -> Timestamp {
        now.plus(self.rng.below(self.interval_ns))
    }

    /// Draws the next time: half an interval to one and a half intervals later.
    fn next_at(&mut self, at: Timestamp) -> Timestamp {
        let half = self.interval_ns / 2;
        at.plus((half + self.rng.below(self.interval_ns)).max(1))
    }

    fn step(&mut self, at: Timestamp, settings: &FeedSettings) -> CommandKind {
        let security = self.security;
        let dice = self.rng.below(1_000) as u32;
        let begun = std::mem::replace(&mut self.begun, true);
        if begun && dice < settings.trade_permille {
            return CommandKind::Trade { security, trade: self.trade(at, settings) };
        }
        self.walk(settings);
        let quote = self.quote(at);
        if begun && dice >= settings.trade_permille.saturating_add(settings.tick_permille) {
            return CommandKind::Quote { security, quote };
        }
        CommandKind::Tick { security, quote, trade: self.trade(at, settings) }
    }

    /// Moves the bid by one step, reflected at the bounds, and draws a new spread and new sizes.
    fn walk(&mut self, settings: &FeedSettings) {
        let reach = settings.volatility_ticks as i64;
        let step = self.rng.below(2 * reach as u64 + 1) as i64 - reach;
        let bid = self.bid.saturating_add(step);
        let inside = (self.lowest..=self.highest).contains(&bid);
        self.bid = if inside { bid } else { self.bid.saturating_sub(step).clamp(self.lowest, self.highest) };
        self.ask = self.bid + 1 + self.rng.below(settings.spread_ticks_max.max(1) as u64) as i64;
        self.bid_size = self.size(settings);
        self.ask_size = self.size(settings);
    }

    fn quote(&self, at: Timestamp) -> Quote {
        Quote {
            bid: self.price(self.bid),
            bid_size: self.bid_size,
            ask: self.price(self.ask),
            ask_size: self.ask_size,
            at,
        }
    }

    fn trade(&mut self, at: Timestamp, settings: &FeedSettings) -> Trade {
        let ticks = if self.rng.below(2) == 0 { self.bid } else { self.ask };
        Trade { price: self.price(ticks), size: self.size(settings), at }
    }

    fn price(&self, ticks: i64) -> Price {
        Price::from_ticks(ticks, self.tick).expect("the highest price was seen to fit")
    }

    /// Draws a size in whole lots; one lot where more would not fit.
    fn size(&mut self, settings: &FeedSettings) -> Qty {
        let lots = 1 + self.rng.below(settings.size_lots_max.max(1) as u64) as i64;
        Qty::from_raw(self.lot.raw().checked_mul(lots).unwrap_or(self.lot.raw()))
    }
}

/// Returns the start price of a security without one: a plausible price for its kind.
fn usual_price(kind: SecurityKind) -> Price {
    const fn whole(units: i64) -> Price {
        Price::whole(units).expect("a small number")
    }
    match kind {
        SecurityKind::Stock | SecurityKind::Bond => const { whole(100) },
        SecurityKind::Fund => const { whole(50) },
        SecurityKind::Future | SecurityKind::Index => const { whole(5_000) },
        SecurityKind::Option => const { whole(5) },
        SecurityKind::Forex => const { whole(1) },
        SecurityKind::Commodity => const { whole(80) },
        SecurityKind::Crypto => const { whole(50_000) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AdapterId, Currency, ExchangeId, FamilyId};
    use crate::number::{ContractSize, Grid, Money};
    use crate::refdata::{Exchange, Family, OptionKind, Rows};
    use crate::time::{Day, TimeOfDay};

    const START: Timestamp = Timestamp(1_000 * NS_PER_S);

    fn price(text: &str) -> Price {
        Price::parse(text.as_bytes()).unwrap()
    }

    /// One family per security, so that each has its own tick.
    fn reference(plan: &[(u32, &str, Option<&str>)]) -> RefData {
        let mut rows = Rows::default();
        rows.exchanges.push(Exchange {
            id: ExchangeId(1),
            name: "one".into(),
            mic: "XONE".into(),
            time_zone: "UTC".into(),
            open: TimeOfDay(0),
            close: TimeOfDay(86_400),
            auctions: false,
            adapter: AdapterId::SIM,
            adapter_type: "SIM".into(),
        });
        for &(number, tick, start) in plan {
            let kind = SecurityKind::ALL[number as usize % SecurityKind::ALL.len()];
            let is_option = kind == SecurityKind::Option;
            rows.families.push(Family {
                id: FamilyId(number),
                name: format!("F{number}"),
                symbol_root: String::new(),
                exchange: ExchangeId(1),
                currency: Currency::parse(b"USD").unwrap(),
                contract_size: ContractSize::ONE,
                tick_size: price(tick),
                lot_size: Qty::whole(100).unwrap(),
                commission: Money::ZERO,
                tradeable: true,
                expirable: kind.expires(),
            });
            rows.securities.push(Security {
                id: SecurityId(number),
                symbol: format!("S{number}"),
                description: String::new(),
                kind,
                family: FamilyId(number),
                isin: None,
                underlying: is_option.then_some(SecurityId(plan[0].0)),
                expiration: kind.expires().then_some(Day(20_000)),
                strike: is_option.then(|| price("5")),
                option: is_option.then_some(OptionKind::Call),
                base_currency: kind.is_pair().then(|| Currency::parse(b"EUR").unwrap()),
                start_price: start.map(price),
                tradeable: true,
            });
        }
        RefData::check(rows).unwrap()
    }

    fn security_of(body: &CommandKind) -> SecurityId {
        match body {
            CommandKind::Quote { security, .. }
            | CommandKind::Trade { security, .. }
            | CommandKind::Tick { security, .. } => *security,
            other => panic!("a feed does not emit {other:?}"),
        }
    }

    fn quote_of(body: &CommandKind) -> Option<Quote> {
        match body {
            CommandKind::Quote { quote, .. } | CommandKind::Tick { quote, .. } => Some(*quote),
            _ => None,
        }
    }

    fn trade_of(body: &CommandKind) -> Option<Trade> {
        match body {
            CommandKind::Trade { trade, .. } | CommandKind::Tick { trade, .. } => Some(*trade),
            _ => None,
        }
    }

    fn time_of(body: &CommandKind) -> Timestamp {
        quote_of(body).map(|quote| quote.at).or(trade_of(body).map(|trade| trade.at)).unwrap()
    }

    /// Collects all events of a period, polled in steps.
    fn run(feed: &mut Feed, from: Timestamp, seconds: u64, steps: u64) -> Vec<CommandKind> {
        let mut all = Vec::new();
        for step in 1..=steps {
            let now = from.plus(seconds * NS_PER_S / steps * step);
            while let Some(command) = feed.poll(now) {
                all.push(command.body);
            }
            assert!(feed.next_at() > now);
        }
        all
    }

    fn on(feed: &mut Feed, securities: &[u32]) {
        securities.iter().for_each(|&number| assert!(feed.set_on(SecurityId(number), true, START)));
    }

    #[test]
    fn a_security_is_independent_of_others_and_of_polling() {
        let few = reference(&[(7, "0.01", None)]);
        let many = reference(&[(1, "1", None), (3, "0.5", None), (7, "0.01", None), (9, "0.01", None)]);
        let mut alone = Feed::new(&few, FeedSettings::default());
        let mut among = Feed::new(&many, FeedSettings::default());
        on(&mut alone, &[7]);
        on(&mut among, &[9, 7, 1, 3]);
        let alone = run(&mut alone, START, 100, 1);
        let mut among = run(&mut among, START, 100, 777);
        assert!(among.is_sorted_by_key(time_of));
        among.retain(|body| security_of(body) == SecurityId(7));
        assert_eq!(alone, among);
        assert!((400..600).contains(&alone.len()), "about five a second: {}", alone.len());
    }

    #[test]
    fn different_seeds_and_names_give_unrelated_streams() {
        let reference = reference(&[(1, "0.01", Some("100")), (10, "0.01", Some("100"))]);
        let walk = |seed, number| {
            let mut feed = Feed::new(&reference, FeedSettings { seed, ..FeedSettings::default() });
            on(&mut feed, &[number]);
            run(&mut feed, START, 10, 1).iter().filter_map(quote_of).collect::<Vec<_>>()
        };
        assert_eq!(walk(1, 1), walk(1, 1));
        assert_ne!(walk(1, 1), walk(2, 1));
        assert_ne!(walk(1, 1), walk(1, 10));
    }

    #[test]
    fn prices_are_positive_and_on_the_grid_and_sizes_are_lots() {
        let plan = [
            (0, "0.00005", Some("1.1")),
            (1, "0.25", Some("0.25")),
            (2, "0.01", None),
            (3, "7", Some("98")),
            (4, "40000000000", Some("80000000000")),
        ];
        let settings = FeedSettings {
            interval_ns: FeedSettings::interval_of_rate(500),
            volatility_ticks: 9,
            ..FeedSettings::default()
        };
        let mut feed = Feed::new(&reference(&plan), settings);
        on(&mut feed, &[0, 1, 2, 3]);
        assert!(!feed.set_on(SecurityId(4), true, START), "there is no room for a spread");
        let all = run(&mut feed, START, 20, 1);
        assert!(all.len() > 30_000);
        let lot = Qty::whole(100).unwrap();
        for body in &all {
            let tick = price(plan[security_of(body).0 as usize].1);
            if let Some(quote) = quote_of(body) {
                assert!(quote.bid.is_positive() && quote.bid < quote.ask);
                assert!(quote.bid.ticks(tick).is_some() && quote.ask.ticks(tick).is_some());
                assert!(quote.bid_size >= lot && Grid::new(lot.raw()).steps(quote.bid_size.raw()).is_some());
                assert!(quote.ask_size >= lot && Grid::new(lot.raw()).steps(quote.ask_size.raw()).is_some());
            }
            if let Some(trade) = trade_of(body) {
                assert!(trade.price.is_positive() && trade.price.ticks(tick).is_some());
                assert!(trade.size.is_positive() && Grid::new(lot.raw()).steps(trade.size.raw()).is_some());
            }
        }
    }

    #[test]
    fn the_first_event_has_quote_and_trade_from_the_start_price() {
        let mut feed = Feed::new(&reference(&[(1, "0.01", Some("42"))]), FeedSettings::default());
        on(&mut feed, &[1]);
        let first = run(&mut feed, START, 1, 1)[0];
        let (quote, trade) = (quote_of(&first).unwrap(), trade_of(&first).unwrap());
        assert!(quote.bid >= price("41.98") && quote.bid <= price("42.02"));
        assert!(trade.price == quote.bid || trade.price == quote.ask);
    }

    #[test]
    fn a_security_without_a_start_price_begins_where_its_kind_usually_is() {
        let plan: Vec<_> = (0..9).map(|number| (number, "0.01", None)).collect();
        let settings = FeedSettings { volatility_ticks: 0, ..FeedSettings::default() };
        let mut feed = Feed::new(&reference(&plan), settings);
        on(&mut feed, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let all = run(&mut feed, START, 1, 1);
        for (number, kind) in SecurityKind::ALL.into_iter().enumerate() {
            let mut own = all.iter().filter(|body| security_of(body).0 as usize == number);
            assert_eq!(own.find_map(quote_of).unwrap().bid, usual_price(kind));
        }
    }

    #[test]
    fn only_securities_that_are_on_move() {
        let plan = reference(&[(1, "0.01", None), (2, "0.01", None)]);
        let mut feed = Feed::new(&plan, FeedSettings::default());
        assert_eq!((feed.next_at(), feed.poll(Timestamp::MAX)), (Timestamp::MAX, None));
        assert!(!feed.set_on(SecurityId(3), true, START) && !feed.is_on(SecurityId(3)));
        on(&mut feed, &[1, 2]);
        assert!(run(&mut feed, START, 2, 1).len() > 10);
        assert!(feed.set_on(SecurityId(1), false, START));
        let rest = run(&mut feed, START.plus(2 * NS_PER_S), 2, 1);
        assert!(rest.iter().all(|body| security_of(body) == SecurityId(2)));
        assert!(feed.is_on(SecurityId(2)) && !feed.is_on(SecurityId(1)));
        // Switched on again it continues from now; a second switch changes nothing.
        let later = START.plus(1_000 * NS_PER_S);
        feed.set_on(SecurityId(2), false, later);
        feed.set_on(SecurityId(1), true, later);
        let due = feed.next_at();
        feed.set_on(SecurityId(1), true, later.plus(1));
        assert!(due >= later && feed.next_at() == due);
    }

    #[test]
    fn missed_events_can_be_skipped() {
        let lag_ns_max = NS_PER_S;
        let plan = reference(&[(1, "0.01", None)]);
        let mut feed = Feed::new(&plan, FeedSettings { lag_ns_max, ..FeedSettings::default() });
        on(&mut feed, &[1]);
        let after = run(&mut feed, START, 3_600, 1);
        assert_eq!(after.len(), 1);
        assert_eq!(time_of(&after[0]), START.plus(3_600 * NS_PER_S));
    }

    #[test]
    fn a_security_may_have_its_own_pace_or_none() {
        let plan = reference(&[(1, "0.01", None), (2, "0.01", None), (3, "0.01", None)]);
        let intervals = BTreeMap::from([(SecurityId(1), 20 * NS_PER_S), (SecurityId(2), 0)]);
        let mut feed = Feed::new(&plan, FeedSettings { intervals, ..FeedSettings::default() });
        on(&mut feed, &[1, 3]);
        assert!(!feed.set_on(SecurityId(2), true, START));
        let all = run(&mut feed, START, 200, 10);
        let slow = all.iter().filter(|body| security_of(body) == SecurityId(1)).count();
        assert!((7..=14).contains(&slow), "{slow}");
        assert_eq!(FeedSettings::interval_of_rate(0), 0);
        assert_eq!(FeedSettings::interval_of_rate(5), 200 * NS_PER_MS);
        assert_eq!(FeedSettings::interval_of_rate(u64::MAX), 1);
    }

    #[test]
    fn a_walk_goes_both_ways_and_stays_within_its_bounds() {
        let settings = FeedSettings { interval_ns: 1_000, volatility_ticks: 5, ..FeedSettings::default() };
        let mut feed = Feed::new(&reference(&[(1, "1", Some("40"))]), settings);
        on(&mut feed, &[1]);
        let bids: Vec<Price> =
            run(&mut feed, START, 1, 1).iter().filter_map(quote_of).map(|quote| quote.bid).collect();
        assert_eq!((bids.iter().min(), bids.iter().max()), (Some(&price("20")), Some(&price("80"))));
    }
}
