//! Actions of operators and exchanges: sessions, switches, limits, budgets and transactions.

use pitlane_engine::command::{
    BudgetAct, BudgetChange, BudgetKind, CancelFilter, CommandKind, Movement, MovementKind, RiskLimits,
    Scope, StrategyPhase, TradingSession,
};
use pitlane_engine::directive::{Directive, DirectiveVersion};
use pitlane_engine::id::{AccountId, Currency, Origin, SecurityId, Uuid};
use pitlane_engine::number::{Money, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::time::{Day, Timestamp};

use super::{Action, ActionGenerator};
use crate::test_market;

/// Accounts with a credit: one at a simulated exchange, one whose venue busts fills.
const CREDITED: [AccountId; 2] = [test_market::HOME_ACCOUNTS[0], test_market::OUTSIDE_ACCOUNTS[0]];

impl ActionGenerator {
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

    pub(super) fn session(&mut self, now: Timestamp) -> Action {
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

    fn cancel_filter(&mut self) -> CancelFilter {
        let strategy = self.dice.pick(&[test_market::STRATEGIES[1], test_market::NO_STRATEGY]);
        CancelFilter {
            strategy: self.dice.percent(30).then_some(strategy),
            security: self.dice.percent(50).then(|| self.security()),
            side: self.dice.percent(50).then(|| self.dice.pick(&[Side::Buy, Side::Sell])),
            origin: self.dice.percent(30).then(|| self.dice.pick(&[Origin::Fix, Origin::Rest])),
            source: self.dice.percent(30).then(|| test_market::source(0, self.dice.pick(&[1, 2]))),
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

    pub(super) fn operate(&mut self, now: Timestamp) -> Action {
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
            1 if self.dice.percent(50) => {
                CommandKind::CancelOrders { id: self.id(), filter: self.cancel_filter() }
            }
            1 => CommandKind::Restrict { scope: self.scope(), security, on: self.dice.percent(30) },
            2 => CommandKind::Phase {
                strategy,
                phase: self.dice.pick(&[StrategyPhase::Running, StrategyPhase::Running, StrategyPhase::Stop]),
            },
            3 => CommandKind::Transaction(self.movement()),
            4 if self.dice.percent(50) => {
                let days = i32::try_from(self.dice.between(-1, 2)).expect("a small number");
                let day = Day(test_market::START_DAY + days);
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
            limits.price_collar_bp = self.dice.between(1, 50).try_into().expect("a small number");
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
