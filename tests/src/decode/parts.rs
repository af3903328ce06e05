//! The parts of commands: terms, reports of venues, books, limits and filters.

use pitlane_engine::command::{
    BudgetAct, BudgetChange, BudgetKind, CancelFilter, ExecRef, FeedLevel, Movement, MovementKind, Quote,
    RiskLimits, Trade, VENUE_LEVELS_MAX, VenueFee, VenueLevels, VenueReport, VenueState, WatchTarget,
};
use pitlane_engine::directive::Directive;
use pitlane_engine::id::{AdapterId, Currency, Uuid};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::{Protocol, SenderAddress, SenderPart, SenderText};
use pitlane_engine::terms::{Changes, ExecInst, OrderKind, Side, SpecialTerms, Terms, Tif};
use pitlane_engine::time::Timestamp;

use super::Bytes;
use crate::test_market;

impl Bytes<'_> {
    pub(super) fn terms(&mut self, now: Timestamp) -> Terms {
        let kind = self.pick(&OrderKind::ALL);
        let tif = self.pick(&Tif::ALL);
        // Prices that the order type requires are mostly present, so that most orders are accepted.
        let odd = self.byte();
        Terms {
            qty: self.qty(),
            limit: self.price(),
            stop: if kind.has_stop() { self.price() } else { Price::ZERO },
            tif_date: if tif == Tif::Gtd { self.date(now) } else { Timestamp::ZERO },
            security: self.security(),
            strategy: self.strategy(),
            account: self.account(),
            side: self.pick(&Side::BOTH),
            kind,
            tif,
            limit_given: kind.has_limit() != (odd == 1),
            stop_given: kind.has_stop() != (odd == 2),
            exchange_order: odd == 3,
            reduce_only: odd == 4,
            special: odd == 5,
        }
    }

    pub(super) fn changes(&mut self, now: Timestamp) -> Changes {
        let named = self.byte();
        let mut changes = Changes::default();
        if named & 1 != 0 {
            changes = changes.with_qty(self.qty());
        }
        if named & 2 != 0 {
            changes = changes.with_limit(self.price());
        }
        if named & 4 != 0 {
            changes = changes.with_stop(self.price());
        }
        if named & 8 != 0 {
            changes = changes.with_tif(self.pick(&Tif::ALL));
        }
        if named & 16 != 0 {
            changes = changes.with_tif_date(self.date(now));
        }
        if named & 32 != 0 {
            changes = changes.with_special(named & 64 != 0);
        }
        changes
    }

    pub(super) fn special_terms(&mut self) -> SpecialTerms {
        let exec_inst = ExecInst::parse(&[self.byte()]).unwrap_or_default();
        SpecialTerms { exec_inst, min_qty: Some(self.qty()), max_floor: self.flag().then(|| self.qty()) }
    }

    pub(super) fn quote(&mut self, at: Timestamp) -> Quote {
        Quote { bid: self.price(), bid_size: self.qty(), ask: self.price(), ask_size: self.qty(), at }
    }

    pub(super) fn level(&mut self, at: Timestamp) -> FeedLevel {
        FeedLevel { side: self.pick(&Side::BOTH), price: self.price(), size: self.qty(), at }
    }

    /// Returns part of a change of a venue's book, with at most as many levels as a command takes.
    pub(super) fn venue_levels(&mut self) -> VenueLevels {
        let mut part = VenueLevels::new(self.security(), self.flag());
        for _ in 0..self.byte() as usize % (VENUE_LEVELS_MAX + 1) {
            let (side, price) = (self.pick(&Side::BOTH), self.price());
            let qty = if self.flag() { Qty::ZERO } else { self.qty() };
            part.push(side, price, qty);
        }
        part
    }

    pub(super) fn trade(&mut self, at: Timestamp) -> Trade {
        Trade { price: self.price(), size: self.qty(), at }
    }

    pub(super) fn report(&mut self) -> VenueReport {
        let reason = self.pick(Reason::ALL);
        let exec = ExecRef(self.byte() as u128 % 40);
        match self.byte() % 16 {
            0 => VenueReport::Accepted,
            1 => VenueReport::Rejected(reason),
            2 => VenueReport::Filled { exec, qty: self.qty(), price: self.price() },
            3 => VenueReport::Canceled(reason),
            4 => VenueReport::Expired(reason),
            5 => VenueReport::CancelRefused(reason),
            6 => VenueReport::Replaced,
            7 => VenueReport::ReplaceRefused(reason),
            8 => VenueReport::Busted { exec },
            9 => VenueReport::Corrected { exec, qty: self.qty(), price: self.price() },
            10 => VenueReport::Reconciled,
            11 => VenueReport::FilledTo { exec, qty: self.qty(), price: self.price(), cum: self.qty() },
            12 => {
                let exec_ref = ExecRef(self.byte() as u128 % 40);
                let (qty, price, is_open) = (self.qty(), self.price(), self.flag());
                VenueReport::Amended { exec_ref, exec, qty, price, is_open }
            }
            13 => {
                let states = [
                    VenueState::Open,
                    VenueState::Filled,
                    VenueState::Canceled(reason),
                    VenueState::Expired(reason),
                    VenueState::Rejected(reason),
                ];
                VenueReport::Standing { cum: self.qty(), average: self.price(), state: self.pick(&states) }
            }
            14 => VenueReport::Unsure,
            _ => {
                let (qty, price, cum) = (self.qty(), self.price(), self.qty());
                let fee = VenueFee {
                    amount: self.money(),
                    currency: test_market::currency(self.pick(&["USD", "BNB"])),
                };
                VenueReport::FilledWithFee { exec, qty, price, cum, fee }
            }
        }
    }

    pub(super) fn movement(&mut self) -> Movement {
        Movement {
            kind: self.pick(&MovementKind::ALL),
            strategy: self.strategy(),
            account: self.account(),
            security: if self.flag() { Some(self.security()) } else { None },
            qty: if self.flag() { self.qty() } else { Qty::ZERO },
            price: self.price(),
            commission: self.money(),
            currency: self.pick(&[
                Currency::default(),
                test_market::currency("USD"),
                test_market::currency("EUR"),
            ]),
            uuid: Uuid(self.byte() as u128 % 5),
        }
    }

    pub(super) fn directive(&mut self) -> Directive {
        let scope = self.scope();
        match self.byte() % 3 {
            0 => Directive::Limits { scope, limits: self.limits() },
            1 => Directive::Restrict { scope, security: self.security(), on: self.flag() },
            _ => Directive::Kill { scope, on: self.flag() },
        }
    }

    pub(super) fn limits(&mut self) -> RiskLimits {
        RiskLimits {
            max_order_qty: self.qty(),
            max_order_value: self.money(),
            price_collar_bp: self.pick(&[0, 100, 10_000, u32::MAX]),
            max_open_orders: self.pick(&[0, 1, 5, u32::MAX]),
            max_position: self.qty(),
            max_orders_per_s: self.pick(&[0, 1, u32::MAX]),
            duplicate_window_ms: self.pick(&[0, 1_000, u32::MAX]),
            credit: self.money(),
            credit_currency: test_market::currency("USD"),
            trading_enabled: !self.flag(),
        }
    }

    pub(super) fn budget(&mut self) -> BudgetChange {
        let kinds = [BudgetKind::OpenOrders, BudgetKind::OrdersPerSecond, BudgetKind::Credit];
        let amount = self.number(0, 1);
        BudgetChange {
            scope: self.scope(),
            kind: self.pick(&kinds),
            act: self.pick(&[
                BudgetAct::Lift,
                BudgetAct::Set(amount),
                BudgetAct::Grant(amount),
                BudgetAct::Recall(amount),
            ]),
        }
    }

    pub(super) fn watch(&mut self) -> WatchTarget {
        match self.byte() % 9 {
            0 => WatchTarget::Ticks(self.security()),
            1 => WatchTarget::Orders,
            2 => WatchTarget::Everything,
            3 => WatchTarget::Venue(AdapterId(self.byte() % 3)),
            4 => WatchTarget::Depth(self.security()),
            5 => WatchTarget::Levels(self.security()),
            6 => WatchTarget::BookOrders(self.security()),
            7 => WatchTarget::Trades(self.security()),
            _ => WatchTarget::Budgets,
        }
    }

    pub(super) fn cancel_filter(&mut self) -> CancelFilter {
        CancelFilter {
            strategy: self.flag().then(|| self.strategy()),
            security: self.flag().then(|| self.security()),
            side: self.flag().then(|| self.pick(&[Side::Buy, Side::Sell])),
            origin: self.flag().then(|| self.source().origin),
            source: self.flag().then(|| self.source()),
        }
    }

    pub(super) fn sender_part(&mut self) -> SenderPart {
        let text = SenderText::new(&"x".repeat(self.byte() as usize));
        match self.flag() {
            true => SenderPart::Session(text),
            false => SenderPart::Login {
                protocol: self.pick(&[Protocol::Internal, Protocol::Rest, Protocol::Fix]),
                address: SenderAddress([self.byte(); 16]),
                login: text,
            },
        }
    }
}
