//! Actions of clients, feeds, venues and operators in a run: mostly sensible, with a good share of
//! nonsense.
//!
//! An action names an order by its place among those submitted, not by its handle, so that the same
//! flow can be played on any number of shards.

use pitlane_engine::command::{
    BudgetAct, BudgetChange, BudgetKind, CommandKind, ExecRef, Movement, MovementKind, Quote, RiskLimits,
    Scope, StrategyPhase, Trade, TradingSession, VenueReport, VenueState,
};
use pitlane_engine::directive::{Directive, DirectiveVersion};
use pitlane_engine::id::{AccountId, Currency, IntId, SecurityId, StrategyId, Uuid};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, OrderKind, Side, Terms, Tif};
use pitlane_engine::time::{Day, NS_PER_S, Timestamp};

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

/// The ingredients of a run. Weights are relative.
#[derive(Clone, Debug)]
pub struct Profile {
    pub securities: Vec<SecurityId>,
    /// Prices lie within this many ticks around 100.
    pub width: i64,
    /// Actions per hundred that make no sense.
    pub nonsense: u64,
    pub limits: bool,
    /// Credit of the accounts that have one, in dollars.
    pub credit: Option<i64>,
    pub sessions: bool,
    /// Whether the flow itself contains the reports of external venues.
    pub reports: bool,
    /// Whether operators set kill switches and book transactions.
    pub operators: bool,
    /// Whether prices are regular: on the grid, bid below ask.
    pub tame: bool,
    pub weights: Weights,
}

#[derive(Clone, Copy, Debug)]
pub struct Weights {
    pub submit: u64,
    pub modify: u64,
    pub cancel: u64,
    pub close: u64,
    pub feed: u64,
    pub report: u64,
    pub operate: u64,
    pub session: u64,
    pub wait: u64,
}

impl Profile {
    pub fn random(dice: &mut Dice) -> Profile {
        let mut securities = test_market::SECURITIES.to_vec();
        // Few securities meet often, many spread over the shards.
        let keep = dice.pick(&[1, 1, 2, 3, 10]);
        while securities.len() > keep {
            let at = dice.below(securities.len() as u64) as usize;
            securities.remove(at);
        }
        Profile {
            securities,
            width: dice.pick(&[2, 4, 12]),
            nonsense: dice.pick(&[0, 5, 20]),
            limits: dice.percent(40),
            credit: None,
            sessions: dice.percent(40),
            reports: true,
            operators: dice.percent(50),
            tame: true,
            weights: Weights {
                submit: 40,
                modify: dice.pick(&[0, 8, 20]),
                cancel: dice.pick(&[2, 10]),
                close: dice.pick(&[0, 3]),
                feed: dice.pick(&[0, 10, 30]),
                report: 25,
                operate: 3,
                session: dice.pick(&[2, 6]),
                wait: 5,
            },
        }
    }
}

/// Accounts with a credit: one at a simulated exchange, one whose venue busts fills.
const CREDITED: [AccountId; 2] = [test_market::HOME_ACCOUNTS[0], test_market::OUTSIDE_ACCOUNTS[0]];

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

    /// Returns the actions that set the credit of the accounts, as operator and budget would.
    pub fn credit(dollars: i64) -> Vec<Action> {
        let credit = Money::whole(dollars).expect("a small number");
        let limits =
            RiskLimits { credit, credit_currency: test_market::currency("USD"), ..RiskLimits::default() };
        let act = BudgetAct::Set(credit.raw());
        let actions = |account| {
            let scope = Scope::Account(account);
            let budget = BudgetChange { scope, kind: BudgetKind::Credit, act };
            [Action::Plain(CommandKind::Limits { scope, limits }), Action::Plain(CommandKind::Budget(budget))]
        };
        CREDITED.into_iter().flat_map(actions).collect()
    }

    /// Returns a command with another credit for one of them, in another currency, or none.
    fn another_credit(&mut self) -> CommandKind {
        let scope = Scope::Account(self.dice.pick(&CREDITED));
        let credit = Money::whole(self.dice.pick(&[0, 500, 3_000, 50_000])).expect("a small number");
        let credit_currency = test_market::currency(self.dice.pick(&["USD", "USD", "USD", "EUR"]));
        CommandKind::Limits { scope, limits: RiskLimits { credit, credit_currency, ..RiskLimits::default() } }
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
        let count = self.submitted as u64;
        if count == 0 || self.dice.percent(2) {
            return self.submitted;
        }
        let back = if self.dice.percent(70) { self.dice.below(count.min(8)) } else { self.dice.below(count) };
        (count - 1 - back) as usize
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
        let mut size = || {
            if self.dice.percent(12) {
                Qty::ZERO
            } else {
                Qty::from_raw(self.dice.between(1, 20) * lot(security))
            }
        };
        Quote { bid, bid_size: size(), ask, ask_size: size(), at }
    }

    fn trade(&mut self, security: SecurityId, at: Timestamp) -> Trade {
        let size = if self.dice.percent(10) {
            Qty::ZERO
        } else {
            Qty::from_raw(self.dice.between(1, 25) * lot(security))
        };
        Trade { price: self.price(security), size, at }
    }

    fn report(&mut self) -> VenueReport {
        let reason = self.dice.pick(&[Reason::VenueRejected, Reason::VenueCancelled, Reason::PriceBand]);
        let security = test_market::ABROAD[0];
        let (qty, price) = (self.qty(security), self.price(security));
        match self.dice.below(30) {
            0..=4 => VenueReport::Accepted,
            5 if self.dice.percent(50) => VenueReport::Rejected(Reason::VenueUnavailable),
            5 => VenueReport::Rejected(reason),
            6..=9 => VenueReport::Filled { exec: self.exec(), qty, price },
            10..=12 => VenueReport::FilledTo { exec: self.exec(), qty, price, cum: self.qty(security) },
            13 => VenueReport::Canceled(reason),
            14 => VenueReport::Expired(Reason::ExpiredDay),
            15 if self.dice.percent(50) => VenueReport::CancelRefused(Reason::UnknownOrder),
            15 => VenueReport::CancelRefused(reason),
            16 | 17 => VenueReport::Replaced,
            18 if self.dice.percent(50) => VenueReport::ReplaceRefused(Reason::OrderFinished),
            18 => VenueReport::ReplaceRefused(reason),
            19 => VenueReport::Busted { exec: self.old_exec() },
            20 => VenueReport::Corrected { exec: self.old_exec(), qty, price },
            21..=23 => {
                let is_open = self.dice.percent(70);
                let (qty, price) =
                    if self.dice.percent(50) { (Qty::ZERO, Price::ZERO) } else { (qty, price) };
                VenueReport::Amended { exec_ref: self.old_exec(), exec: self.exec(), qty, price, is_open }
            }
            24 => VenueReport::Unsure,
            25..=27 => {
                let state = self.dice.pick(&[
                    VenueState::Open,
                    VenueState::Open,
                    VenueState::Filled,
                    VenueState::Canceled(Reason::VenueCancelled),
                    VenueState::Expired(Reason::ExpiredDay),
                    VenueState::Rejected(Reason::UnknownOrder),
                ]);
                let cum = if self.dice.percent(30) { Qty::ZERO } else { qty };
                let average = if self.dice.percent(10) { Price::ZERO } else { price };
                VenueReport::Standing { cum, average, state }
            }
            _ => VenueReport::Reconciled,
        }
    }

    fn exec(&mut self) -> ExecRef {
        if self.dice.percent(10) {
            return self.old_exec();
        }
        self.execs += 1;
        ExecRef(self.execs as u128)
    }

    fn old_exec(&mut self) -> ExecRef {
        ExecRef(self.dice.below(self.execs + 1) as u128)
    }

    fn session(&mut self, now: Timestamp) -> Action {
        if self.dice.percent(30) {
            return Action::Plain(CommandKind::Halt { security: self.security(), on: self.dice.percent(50) });
        }
        let exchange = self.dice.pick(&[
            test_market::AUCTIONS,
            test_market::AUCTIONS,
            test_market::PLAIN,
            test_market::OUTSIDE,
        ]);
        let session = self.dice.pick(&[
            TradingSession::Closed,
            TradingSession::OpeningAuction,
            TradingSession::Continuous,
            TradingSession::Continuous,
            TradingSession::ClosingAuction,
        ]);
        if self.dice.percent(40) {
            let has_hours = self.dice.percent(80);
            let since = if has_hours { now } else { Timestamp::ZERO };
            return Action::Plain(CommandKind::Schedule { exchange, session, since, has_hours });
        }
        Action::Plain(CommandKind::Session { exchange, session })
    }

    fn scope(&mut self) -> Scope {
        match self.dice.below(6) {
            0 => Scope::Global,
            1 | 2 => Scope::Strategy(self.dice.pick(&test_market::STRATEGIES)),
            3 => Scope::Account(self.dice.pick(&test_market::HOME_ACCOUNTS)),
            4 => Scope::Security(self.security()),
            _ => Scope::Adapter(test_market::OUTSIDE_ADAPTER),
        }
    }

    fn directive(&mut self, security: SecurityId) -> Directive {
        let scope = self.scope();
        match self.dice.below(3) {
            0 if self.profile.limits => Directive::Limits { scope, limits: self.limits() },
            1 => Directive::Restrict { scope, security, on: self.dice.percent(30) },
            _ => Directive::Kill { scope, on: self.dice.percent(30) },
        }
    }

    fn operate(&mut self, now: Timestamp) -> Action {
        let security = self.security();
        let strategy = self.dice.pick(&test_market::STRATEGIES);
        Action::Plain(match self.dice.below(12) {
            0 if self.dice.percent(50) => {
                // Versions come in any order: the newest counts.
                let version = DirectiveVersion(1 + self.dice.below(self.directed + 4));
                self.directed += 1;
                CommandKind::Direct { version, directive: self.directive(security) }
            }
            0 => CommandKind::Kill { scope: self.scope(), on: self.dice.percent(30) },
            1 => CommandKind::Restrict { scope: self.scope(), security, on: self.dice.percent(30) },
            2 => CommandKind::Phase {
                strategy,
                phase: self.dice.pick(&[StrategyPhase::Running, StrategyPhase::Running, StrategyPhase::Stop]),
            },
            3 => CommandKind::Transaction(self.movement()),
            4 if self.dice.percent(50) => {
                let day = Day(test_market::START_DAY + self.dice.between(-1, 2) as i32);
                CommandKind::Expiry { exchange: self.dice.pick(&test_market::EXCHANGES), day }
            }
            4 => CommandKind::Expire { security, price: self.price(security) },
            5 => CommandKind::ResetPositions,
            6 => CommandKind::ResetCash,
            7 => CommandKind::TradingDay { day: Day(now.day().0) },
            8 => CommandKind::Subscribe { strategy, security, on: self.dice.percent(60) },
            9 => CommandKind::Adapter {
                adapter: test_market::OUTSIDE_ADAPTER,
                connected: self.dice.percent(60),
            },
            10 if self.profile.limits => {
                let scope = self.scope();
                let kind = self.dice.pick(&[BudgetKind::OpenOrders, BudgetKind::OrdersPerSecond]);
                CommandKind::Budget(BudgetChange {
                    scope,
                    kind,
                    act: BudgetAct::Set(self.dice.between(0, 9)),
                })
            }
            10 if self.profile.credit.is_some() && self.dice.percent(50) => {
                let scope = Scope::Account(self.dice.pick(&CREDITED));
                let act =
                    BudgetAct::Set(Money::whole(self.dice.between(0, 9_000)).expect("a small number").raw());
                CommandKind::Budget(BudgetChange { scope, kind: BudgetKind::Credit, act })
            }
            10 if self.profile.credit.is_some() => self.another_credit(),
            11 if self.profile.credit.is_some() => CommandKind::Transaction(self.movement()),
            _ if self.profile.limits => CommandKind::Limits { scope: self.scope(), limits: self.limits() },
            _ => CommandKind::ResetCash,
        })
    }

    /// Returns some of the limits that concern one order or one security.
    fn limits(&mut self) -> RiskLimits {
        let mut limits = RiskLimits { trading_enabled: !self.dice.percent(5), ..RiskLimits::default() };
        if self.dice.percent(30) {
            limits.max_order_qty = Qty::whole(self.dice.between(1, 120)).expect("a small number");
        }
        if self.dice.percent(30) {
            limits.max_order_value = Money::whole(self.dice.between(100, 20_000)).expect("a small number");
        }
        if self.dice.percent(30) {
            limits.price_collar_bp = self.dice.between(1, 50) as u32;
        }
        if self.dice.percent(30) {
            limits.max_position = Qty::whole(self.dice.between(5, 200)).expect("a small number");
        }
        if self.dice.percent(30) {
            limits.duplicate_window_ms = self.dice.pick(&[1, 1_000]);
        }
        limits
    }

    fn movement(&mut self) -> Movement {
        let kind = self.dice.pick(&MovementKind::ALL);
        let security = self.security();
        let qty = self.qty(security);
        let trade = match kind {
            MovementKind::Buy | MovementKind::Sell | MovementKind::Expiration => true,
            MovementKind::Rebalance => self.dice.percent(50),
            MovementKind::Credit
            | MovementKind::Debit
            | MovementKind::Interest
            | MovementKind::Fees
            | MovementKind::Refund => false,
        };
        let mut movement = Movement {
            kind,
            strategy: self.dice.pick(&test_market::STRATEGIES),
            account: self.account(security),
            security: trade.then_some(security),
            qty: match (trade, kind) {
                (false, _) => Qty::ZERO,
                (true, MovementKind::Sell) => Qty::from_raw(-qty.raw()),
                (true, _) => qty,
            },
            price: self.price(security),
            commission: if !trade || self.dice.percent(50) {
                Money::ZERO
            } else {
                Money::from_raw(12_345_678)
            },
            currency: if trade { Currency::default() } else { test_market::currency("USD") },
            uuid: Uuid::default(),
        };
        // A few are sent again; a UUID belongs to one ledger, as it would if it were unique.
        let ledger = movement.security.map_or(1_000 + movement.strategy.0 as u128, |id| id.0 as u128);
        movement.uuid = Uuid(self.dice.pick(&[0, 1]) * (ledger * 10 + self.dice.below(3) as u128));
        if self.dice.percent(self.profile.nonsense) {
            movement.qty = Qty::from_raw(-movement.qty.raw());
        }
        movement
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
