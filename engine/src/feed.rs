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
//!
//! An option does not walk: its price follows the bid of its underlying ([`OptionPrice`]), if that
//! has a stream and the start prices of both fit. So its events depend on those of its underlying
//! too.

mod option_price;
mod resume;
mod schedule;

use std::collections::BTreeMap;

use crate::command::{Command, CommandKind, Quote, Trade};
use crate::id::{SecurityId, Source};
use crate::number::{Price, Qty};
use crate::refdata::{RefData, Security, SecurityKind};
use crate::rng::Rng;
use crate::time::{NS_PER_MS, Timestamp};

use option_price::OptionPrice;
use schedule::StreamSchedule;

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

/// See the module's comment.
#[derive(Debug)]
pub struct Feed {
    settings: FeedSettings,
    /// By security id.
    streams: Vec<PriceStream>,
    schedule: StreamSchedule,
}

impl Feed {
    /// Creates a feed of every security that can have one. All streams are switched off.
    pub fn new(reference: &RefData, settings: FeedSettings) -> Feed {
        let of = |security| PriceStream::new(reference, security, &settings);
        let streams: Vec<PriceStream> = reference.securities().iter().filter_map(of).collect();
        Feed { schedule: StreamSchedule::new(streams.len()), streams, settings }
    }

    /// Applies new reference data: new securities get a stream, still off; existing streams
    /// continue unchanged.
    pub fn set_reference(&mut self, reference: &RefData) {
        let is_new =
            |row: &&Security| self.streams.binary_search_by_key(&row.id, |stream| stream.security).is_err();
        let new = reference.securities().iter().filter(is_new);
        let new: Vec<PriceStream> =
            new.filter_map(|row| PriceStream::new(reference, row, &self.settings)).collect();
        if new.is_empty() {
            return;
        }
        let old = std::mem::take(&mut self.streams).into_iter().enumerate();
        let mut all: Vec<(PriceStream, Timestamp)> =
            old.map(|(at, stream)| (stream, self.schedule.at(at))).collect();
        all.extend(new.into_iter().map(|stream| (stream, Timestamp::MAX)));
        all.sort_by_key(|(stream, _)| stream.security);
        self.schedule = StreamSchedule::new(all.len());
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
        let underlying = self.underlying_price(first);
        let stream = &mut self.streams[first];
        let late = self.settings.lag_ns_max > 0 && now.since(at) > self.settings.lag_ns_max;
        if late {
            at = now;
        }
        let body = stream.step(at, underlying, &self.settings);
        let next = stream.next_at(at);
        self.schedule.set(first, next);
        Some(Command::new(self.settings.source, 0, body))
    }
}

impl Feed {
    /// Returns the bid of the underlying that a stream follows, in raw units of the price.
    fn underlying_price(&self, stream: usize) -> Option<i64> {
        let (underlying, _) = self.streams[stream].follows?;
        let at = self.streams.binary_search_by_key(&underlying, |stream| stream.security).ok()?;
        let stream = &self.streams[at];
        Some(stream.price(stream.bid).raw())
    }
}

/// The market of one security. Invariant: `lowest <= bid <= highest` unless it follows another one,
/// and every price up to `top` and a spread fits.
#[derive(Debug)]
struct PriceStream {
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
    /// Highest bid that can be written.
    top: i64,
    /// Underlying whose price this one follows.
    follows: Option<(SecurityId, OptionPrice)>,
    bid_size: Qty,
    ask_size: Qty,
}

impl PriceStream {
    /// Returns `None` if the security never moves, or has no valid prices.
    fn new(reference: &RefData, security: &Security, settings: &FeedSettings) -> Option<PriceStream> {
        let interval_ns = *settings.intervals.get(&security.id).unwrap_or(&settings.interval_ns);
        let family = reference.family_of(security);
        let (tick, lot) = (family.tick_size, family.lot_size);
        if interval_ns == 0 || !tick.is_positive() || !lot.is_positive() {
            return None;
        }
        let start = start_price(security);
        let top = i64::MAX / tick.raw() - settings.spread_ticks_max.max(1) as i64;
        if top < 1 {
            return None;
        }
        let bid = (start.raw() / tick.raw()).clamp(1, top);
        let underlying = security.underlying.and_then(|id| reference.security(id));
        let follows =
            underlying.and_then(|row| Some((row.id, OptionPrice::new(security, start, start_price(row))?)));
        // Seeds that differ only in the low bits give unrelated streams.
        let seed = Rng::new(settings.seed).next_u64() ^ security.id.0 as u64;
        Some(PriceStream {
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
            top,
            follows,
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

    fn step(&mut self, at: Timestamp, underlying: Option<i64>, settings: &FeedSettings) -> CommandKind {
        let security = self.security;
        let draw = self.rng.below(1_000);
        let begun = std::mem::replace(&mut self.begun, true);
        if begun && draw < settings.trade_permille.into() {
            return CommandKind::Trade { security, trade: self.trade(at, settings) };
        }
        match self.follows.zip(underlying) {
            Some(((_, option), underlying)) => self.follow(option.at(underlying), settings),
            None => self.walk(settings),
        }
        self.draw_spread(settings);
        let quote = self.quote(at);
        if begun && draw >= settings.trade_permille.saturating_add(settings.tick_permille).into() {
            return CommandKind::Quote { security, quote };
        }
        CommandKind::Tick { security, quote, trade: self.trade(at, settings) }
    }

    /// Moves the bid to a price, give or take a tick.
    fn follow(&mut self, price: i64, settings: &FeedSettings) {
        let reach = settings.volatility_ticks.min(1) as i64;
        let noise = self.rng.below(2 * reach as u64 + 1) as i64 - reach;
        self.bid = (price / self.tick.raw()).saturating_add(noise).clamp(1, self.top);
    }

    /// Moves the bid by one step, reflected at the bounds.
    fn walk(&mut self, settings: &FeedSettings) {
        let reach = settings.volatility_ticks as i64;
        let step = self.rng.below(2 * reach as u64 + 1) as i64 - reach;
        let bid = self.bid.saturating_add(step);
        let inside = (self.lowest..=self.highest).contains(&bid);
        self.bid = if inside { bid } else { self.bid.saturating_sub(step).clamp(self.lowest, self.highest) };
    }

    /// Draws a new spread and new sizes.
    fn draw_spread(&mut self, settings: &FeedSettings) {
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

/// Returns the price at which a security begins.
fn start_price(security: &Security) -> Price {
    let given = security.start_price.filter(|price| price.is_positive());
    given.unwrap_or_else(|| usual_price(security.kind))
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
mod tests;
