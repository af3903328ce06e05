//! Actions of clients, feeds, venues and operators in a run: mostly sensible, with a good share of
//! nonsense.
//!
//! An action names an order by its place among those submitted, not by its handle, so that the same
//! flow can be played on any number of shards.

mod operators;
mod profile;
mod venue_reports;

use pitlane_engine::command::{CommandKind, FeedLevel, Quote, StrategyPhase, Trade, VenueReport};
use pitlane_engine::id::{AccountId, IntId, SecurityId, StrategyId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::{Changes, OrderKind, Side, Terms, Tif};
use pitlane_engine::time::{NS_PER_S, Timestamp};

pub use self::profile::{Profile, Weights};
use crate::dice::Dice;
use crate::test_market;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A command that names no order, or enters one.
    Plain(CommandKind),
    Modify {
        nth: usize,
        id: IntId,
        changes: Changes,
    },
    Cancel {
        nth: usize,
        id: IntId,
    },
    Report {
        nth: usize,
        report: VenueReport,
    },
    /// Time passes; the shards' own deadlines are served on the way.
    Wait(u64),
}

#[derive(Debug)]
pub struct ActionGenerator {
    dice: Dice,
    profile: Profile,
    ids: u64,
    execs: u64,
    /// Directives so far.
    directed: u64,
    /// Orders submitted so far, closes included.
    pub submitted: usize,
}

impl ActionGenerator {
    pub fn new(mut dice: Dice, profile: Profile) -> ActionGenerator {
        let dice = dice.fork();
        ActionGenerator { dice, profile, ids: 0, execs: 0, directed: 0, submitted: 0 }
    }

    /// Returns the actions at the beginning of every run, so that trading is possible.
    pub fn opening() -> Vec<Action> {
        let running = test_market::STRATEGIES
            .iter()
            .map(|&strategy| Action::Plain(CommandKind::Phase { strategy, phase: StrategyPhase::Running }));
        let connected =
            Action::Plain(CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected: true });
        let subscribe = |&security| {
            Action::Plain(CommandKind::Subscribe { strategy: test_market::STRATEGIES[0], security, on: true })
        };
        running
            .chain([connected])
            .chain(test_market::SHARES.iter().chain(&test_market::FUTURES).map(subscribe))
            .collect()
    }

    pub fn next(&mut self, now: Timestamp) -> Action {
        let w = self.profile.weights;
        let reports = if self.profile.reports { w.report } else { 0 };
        let operate = if self.profile.operators { w.operate } else { 0 };
        let session = if self.profile.sessions { w.session } else { 0 };
        let weights = [w.submit, w.modify, w.cancel, w.close, w.feed, reports, operate, session, w.wait];
        let mut at = self.dice.below(weights.iter().sum());
        for (kind, weight) in weights.into_iter().enumerate() {
            if at < weight {
                return self.action(kind, now);
            }
            at -= weight;
        }
        Action::Wait(1)
    }

    fn action(&mut self, kind: usize, now: Timestamp) -> Action {
        match kind {
            0 => self.submit(now),
            1 => Action::Modify { nth: self.nth(), id: self.id(), changes: self.changes(now) },
            2 => Action::Cancel { nth: self.nth(), id: self.id() },
            3 => self.close(),
            4 => self.feed(now),
            5 => Action::Report { nth: self.nth(), report: self.report() },
            6 => self.operate(now),
            7 => self.session(now),
            _ => Action::Wait(self.wait()),
        }
    }

    fn wait(&mut self) -> u64 {
        self.dice.pick(&[1_000, 1_000_000, NS_PER_S / 3, NS_PER_S, 60 * NS_PER_S])
    }

    fn id(&mut self) -> IntId {
        self.ids += 1;
        IntId::numbered(b'o', self.ids)
    }

    /// Returns the number of mostly one of the newest orders.
    fn nth(&mut self) -> usize {
        let count = self.submitted;
        if count == 0 || self.dice.percent(2) {
            return self.submitted;
        }
        let back = if self.dice.percent(70) { self.dice.index(count.min(8)) } else { self.dice.index(count) };
        count - 1 - back
    }

    fn security(&mut self) -> SecurityId {
        let list = std::mem::take(&mut self.profile.securities);
        let security = self.dice.pick(&list);
        self.profile.securities = list;
        security
    }

    fn account(&mut self, security: SecurityId) -> AccountId {
        if test_market::ABROAD.contains(&security) {
            self.dice.pick(&test_market::OUTSIDE_ACCOUNTS)
        } else {
            self.dice.pick(&test_market::HOME_ACCOUNTS)
        }
    }

    fn price(&mut self, security: SecurityId) -> Price {
        let ticks = self.dice.between(-self.profile.width, self.profile.width);
        Price::from_raw(test_market::price("100").raw() + ticks * tick(security))
    }

    fn qty(&mut self, security: SecurityId) -> Qty {
        Qty::from_raw(self.dice.between(1, 12) * lot(security))
    }

    fn submit(&mut self, now: Timestamp) -> Action {
        let security = self.security();
        let kind = self.dice.pick(&[
            OrderKind::Limit,
            OrderKind::Limit,
            OrderKind::Limit,
            OrderKind::Limit,
            OrderKind::Market,
            OrderKind::Stop,
            OrderKind::StopLimit,
        ]);
        let mut tif = self.dice.pick(&[Tif::Day, Tif::Day, Tif::Gtc, Tif::Ioc, Tif::Fok, Tif::Gtd]);
        if self.profile.sessions && !kind.has_stop() && self.dice.percent(25) {
            tif = self.dice.pick(&[Tif::Ato, Tif::Atc]);
        }
        let mut terms = Terms {
            qty: self.qty(security),
            security,
            strategy: self.dice.pick(&test_market::STRATEGIES),
            account: self.account(security),
            side: self.dice.pick(&Side::BOTH),
            kind,
            tif,
            ..Terms::default()
        };
        if kind.has_limit() {
            (terms.limit, terms.limit_given) = (self.price(security), true);
        }
        if kind.has_stop() {
            (terms.stop, terms.stop_given) = (self.price(security), true);
        }
        if tif == Tif::Gtd {
            terms.tif_date = now.plus(self.wait() + 1);
        }
        if self.dice.percent(self.profile.nonsense) {
            self.spoil(&mut terms, now);
        }
        self.submitted += 1;
        Action::Plain(CommandKind::Submit { id: self.id(), terms })
    }

    /// Makes one field wrong.
    fn spoil(&mut self, terms: &mut Terms, now: Timestamp) {
        match self.dice.below(20) {
            0 => terms.security = test_market::NO_SECURITY,
            1 => terms.security = test_market::NOT_TRADEABLE,
            2 => terms.account = test_market::NO_ACCOUNT,
            3 => terms.account = test_market::INACTIVE_ACCOUNT,
            4 => terms.account = test_market::PLAIN_ACCOUNT,
            5 => terms.strategy = test_market::NO_STRATEGY,
            6 => terms.strategy = test_market::IDLE_STRATEGY,
            7 => terms.qty = Qty::from_raw(self.dice.pick(&[0, -1, i64::MIN, -lot(terms.security)])),
            8 => terms.qty = Qty::from_raw(terms.qty.raw() + self.dice.pick(&[1, -1, 3])),
            9 => terms.limit = Price::from_raw(terms.limit.raw() + 1),
            10 => terms.stop = Price::from_raw(terms.stop.raw() - 1),
            11 => terms.limit_given = !terms.limit_given,
            12 => terms.stop_given = !terms.stop_given,
            13 => (terms.tif, terms.tif_date) = (Tif::Gtd, Timestamp(now.0 - self.dice.below(2))),
            14 => (terms.tif, terms.tif_date) = (Tif::Gtd, Timestamp::ZERO),
            15 => terms.tif_date = now.plus(5),
            16 => terms.tif = self.dice.pick(&[Tif::Ato, Tif::Atc]),
            17 => {
                let huge = i64::MAX;
                terms.qty = Qty::from_raw(huge - huge % lot(terms.security));
            }
            18 => terms.account = test_market::RESERVED_ACCOUNT,
            _ => terms.limit = Price::from_raw(i64::MAX - i64::MAX % tick(terms.security)),
        }
    }

    fn changes(&mut self, now: Timestamp) -> Changes {
        let security = self.security();
        let mut changes = Changes::default();
        if self.dice.percent(60) {
            changes = changes.with_qty(self.qty(security));
        }
        if self.dice.percent(50) {
            changes = changes.with_limit(self.price(security));
        }
        if self.dice.percent(10) {
            changes = changes.with_stop(self.price(security));
        }
        if self.dice.percent(10) {
            let tif = self.dice.pick(&Tif::ALL);
            changes = changes.with_tif(tif);
            if tif == Tif::Gtd {
                changes = changes.with_tif_date(now.plus(self.wait() + 1));
            }
        }
        if self.dice.percent(self.profile.nonsense) {
            changes = changes.with_qty(Qty::from_raw(self.dice.pick(&[0, -5, 1, i64::MAX])));
        }
        changes
    }

    fn close(&mut self) -> Action {
        let security = self.security();
        let qty = if self.dice.percent(50) { Qty::ZERO } else { self.qty(security) };
        self.submitted += 1;
        let id = self.id();
        let strategy = self.dice.pick(&test_market::STRATEGIES);
        Action::Plain(CommandKind::Close { id, strategy, account: self.account(security), security, qty })
    }

    fn feed(&mut self, now: Timestamp) -> Action {
        let security = self.security();
        let (quote, trade) = (self.quote(security, now), self.trade(security, now));
        if self.profile.has_levels && self.dice.percent(60) {
            return Action::Plain(CommandKind::Level { security, level: self.level(security, now) });
        }
        Action::Plain(match self.dice.below(5) {
            0 | 1 => CommandKind::Quote { security, quote },
            2 | 3 => CommandKind::Trade { security, trade },
            _ => CommandKind::Tick { security, quote, trade },
        })
    }

    fn quote(&mut self, security: SecurityId, at: Timestamp) -> Quote {
        let bid = self.price(security);
        let mut ask = Price::from_raw(bid.raw() + self.dice.between(1, 4) * tick(security));
        if !self.profile.tame && self.dice.percent(10) {
            ask = Price::from_raw(self.dice.roll() as i64);
        }
        let mut size = || if self.dice.percent(12) { Qty::ZERO } else { self.size(security, 20) };
        Quote { bid, bid_size: size(), ask, ask_size: size(), at }
    }

    /// Returns a size of the feed up to a number of lots. One in eight has half a lot besides.
    fn size(&mut self, security: SecurityId, lots_max: i64) -> Qty {
        let eighths = self.dice.between(1, lots_max * 8 + 1);
        let part = if eighths % 8 == 1 { lot(security) / 2 } else { 0 };
        Qty::from_raw(eighths / 8 * lot(security) + part)
    }

    fn level(&mut self, security: SecurityId, at: Timestamp) -> FeedLevel {
        let size = self.size(security, 20);
        FeedLevel { side: self.dice.pick(&Side::BOTH), price: self.price(security), size, at }
    }

    fn trade(&mut self, security: SecurityId, at: Timestamp) -> Trade {
        let size = if self.dice.percent(10) { Qty::ZERO } else { self.size(security, 25) };
        Trade { price: self.price(security), size, at }
    }
}

/// Returns the raw tick size of a security of the small market.
pub fn tick(security: SecurityId) -> i64 {
    match security.0 {
        5..=7 => 25_000_000,
        8..=10 => 5_000_000,
        _ => 1_000_000,
    }
}

/// Returns the raw lot size.
pub fn lot(security: SecurityId) -> i64 {
    match security.0 {
        5..=7 => 1_000_000_000,
        _ => 100_000_000,
    }
}

/// A strategy that may send orders.
pub const RUNNING: StrategyId = StrategyId(1);
