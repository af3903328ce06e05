//! Transactions, and what they add up to. Only the list is stored; positions and cash are computed
//! on request.

use pitlane_engine::command::{Movement, MovementKind, VenueFee};
use pitlane_engine::id::{AccountId, Currency, SecurityId, StrategyId, Uuid};
use pitlane_engine::number::{ContractSize, Money, Notional, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::Side;

use super::{Twin, TwinBooking, TwinEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwinTransaction {
    pub kind: MovementKind,
    pub strategy: StrategyId,
    pub account: AccountId,
    pub security: Option<SecurityId>,
    pub qty: Qty,
    pub price: Price,
    pub commission: Money,
    pub currency: Currency,
    /// Whether a fill of an order caused it.
    pub by_order: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TwinPosition {
    pub qty: Qty,
    pub cost: Money,
    pub realized: Money,
}

impl Twin {
    pub(super) fn book_fill(&mut self, order: usize, qty: i64, price: i64) {
        let terms = self.orders[order].terms;
        let row = self.reference.security(terms.security).expect("an accepted order has a security");
        let family = self.reference.family_of(row);
        let transaction = TwinTransaction {
            kind: if terms.side == Side::Buy { MovementKind::Buy } else { MovementKind::Sell },
            strategy: terms.strategy,
            account: terms.account,
            security: Some(terms.security),
            qty: terms.side.signed(Qty::from_raw(qty)),
            price: Price::from_raw(price),
            commission: match self.fill_fee {
                Some(fee) if fee.currency == family.currency => fee.amount,
                Some(_) => Money::ZERO,
                None => {
                    Money::per_unit(family.commission, Qty::from_raw(qty)).expect("runs use small numbers")
                }
            },
            currency: family.currency,
            by_order: true,
        };
        self.book(Some(order), transaction);
    }

    /// Books a fee of a venue apart from its fill.
    pub(super) fn book_fee(&mut self, order: usize, fee: VenueFee) {
        if fee.amount.is_zero() {
            return;
        }
        let terms = self.orders[order].terms;
        let transaction = TwinTransaction {
            kind: MovementKind::Fees,
            strategy: terms.strategy,
            account: terms.account,
            security: None,
            qty: Qty::ZERO,
            price: Price::from_raw(-fee.amount.raw()),
            commission: Money::ZERO,
            currency: fee.currency,
            by_order: true,
        };
        self.book(Some(order), transaction);
    }

    /// Returns the currency of the security of an order.
    pub(super) fn currency_of(&self, order: usize) -> Currency {
        let row = self.reference.security(self.orders[order].terms.security);
        self.reference.family_of(row.expect("an accepted order has a security")).currency
    }

    /// Busts a fill: books the same transaction with opposite signs.
    pub(super) fn book_reversal(&mut self, order: usize, qty: i64, price: i64) {
        let before = self.transactions.len();
        let events = self.events.len();
        self.book_fill(order, qty, price);
        let mut transaction = self.transactions[before];
        self.transactions.truncate(before);
        self.events.truncate(events);
        transaction.qty = Qty::from_raw(-transaction.qty.raw());
        transaction.commission = Money::from_raw(-transaction.commission.raw());
        self.book(Some(order), transaction);
    }

    pub(super) fn book(&mut self, order: Option<usize>, transaction: TwinTransaction) {
        self.transactions.push(transaction);
        let position = match transaction.security {
            Some(security) => self.position(transaction.strategy, security),
            None => TwinPosition::default(),
        };
        let cash = self.cash(transaction.strategy, transaction.currency);
        self.events.push(TwinEvent::Booked(TwinBooking { order, transaction, position, cash }));
    }

    /// Returns the position of a strategy in a security, from the first transaction on.
    pub fn position(&self, strategy: StrategyId, security: SecurityId) -> TwinPosition {
        let size = self.contract_size(security);
        let mut position = TwinPosition::default();
        for t in &self.transactions {
            if t.strategy == strategy && t.security == Some(security) {
                position = position.after(t.qty, t.price, size);
            }
        }
        position
    }

    /// Returns the quantity of a security that an account holds.
    pub fn account_qty(&self, account: AccountId, security: SecurityId) -> i64 {
        self.account_position(account, security).0.qty.raw()
    }

    pub fn cash(&self, strategy: StrategyId, currency: Currency) -> Money {
        let mine = |t: &&TwinTransaction| t.strategy == strategy && t.currency == currency;
        let sum: i64 = self.transactions.iter().filter(mine).map(|t| self.cash_of(t)).sum();
        Money::from_raw(sum)
    }

    /// Returns the change of cash by one transaction.
    pub fn cash_of(&self, t: &TwinTransaction) -> i64 {
        // The amount of a cash movement is booked with its sign.
        let Some(security) = t.security else { return t.price.raw() };
        let value = Notional::of(t.price, t.qty).money(self.contract_size(security));
        -value.expect("runs use small numbers").raw() - t.commission.raw()
    }

    pub(super) fn contract_size(&self, security: SecurityId) -> ContractSize {
        let row = self.reference.security(security).expect("transactions name known securities");
        self.reference.family_of(row).contract_size
    }

    pub(super) fn movement(&mut self, m: &Movement) {
        // Idempotent by uuid: a repeated one changes nothing.
        if m.uuid != Uuid::default() && self.uuids.contains(&m.uuid) {
            return self.done(Reason::None);
        }
        let reason = self.movement_reject(m);
        if reason != Reason::None {
            return self.done(reason);
        }
        self.uuids.push(m.uuid);
        let currency = match m.security {
            Some(security) => {
                let row = self.reference.security(security).expect("checked above");
                self.reference.family_of(row).currency
            }
            None => m.currency,
        };
        self.book(
            None,
            TwinTransaction {
                kind: m.kind,
                strategy: m.strategy,
                account: m.account,
                security: m.security,
                qty: m.qty,
                price: if matches!(m.kind, MovementKind::Debit | MovementKind::Fees) {
                    Price::from_raw(-m.price.raw())
                } else {
                    m.price
                },
                commission: m.commission,
                currency,
                by_order: false,
            },
        );
        if let Some(security) = m.security {
            self.check_excess(m.strategy, security);
        }
        self.done(Reason::None);
    }

    fn movement_reject(&self, m: &Movement) -> Reason {
        if self.reference.strategy(m.strategy).is_none() {
            return Reason::UnknownStrategy;
        }
        if self.reference.account(m.account).is_none() {
            return Reason::UnknownAccount;
        }
        if m.security.is_some_and(|security| self.reference.security(security).is_none()) {
            return Reason::UnknownSecurity;
        }
        let trade = m.security.is_some();
        let sound = match m.kind {
            MovementKind::Buy => trade && m.qty.is_positive(),
            MovementKind::Sell => trade && m.qty.is_negative(),
            MovementKind::Expiration => trade && !m.qty.is_zero(),
            MovementKind::Credit
            | MovementKind::Debit
            | MovementKind::Interest
            | MovementKind::Fees
            | MovementKind::Refund => !trade && m.qty.is_zero() && m.price.is_positive(),
            MovementKind::Rebalance => trade != m.qty.is_zero(),
        };
        let sound = sound && (trade || m.commission.is_zero());
        if sound { Reason::None } else { Reason::BadTransaction }
    }

    pub(super) fn expire_security(&mut self, security: SecurityId, price: Price) {
        let Some(row) = self.reference.security(security) else {
            return self.done(Reason::UnknownSecurity);
        };
        let currency = self.reference.family_of(row).currency;
        self.markets.get_mut(&security).expect("a known security").expired = true;
        self.expire_where(security, Reason::SecurityExpired, |_, _| true);
        self.expiries.push((self.transactions.len(), security, price));
        let strategies: Vec<StrategyId> = self.reference.strategies().iter().map(|row| row.id).collect();
        for strategy in strategies {
            let qty = self.position(strategy, security).qty;
            if qty.is_zero() {
                continue;
            }
            let transaction = TwinTransaction {
                kind: MovementKind::Expiration,
                strategy,
                // A position belongs to a strategy, through whatever accounts it was traded.
                account: AccountId::default(),
                security: Some(security),
                qty: Qty::from_raw(-qty.raw()),
                price,
                commission: Money::ZERO,
                currency,
                by_order: false,
            };
            self.book(None, transaction);
        }
        self.done(Reason::None);
    }
}

impl TwinPosition {
    /// Returns the position after a trade: average cost; the closed part is realised; beyond zero
    /// the rest opens a new position.
    pub fn after(self, qty: Qty, price: Price, size: ContractSize) -> TwinPosition {
        let worth = |qty: i64| {
            Notional::of(price, Qty::from_raw(qty)).money(size).expect("runs use small numbers").raw()
        };
        let (held, traded) = (self.qty.raw(), qty.raw());
        let same_direction = held == 0 || (held > 0) == (traded > 0);
        if same_direction {
            return TwinPosition {
                qty: Qty::from_raw(held + traded),
                cost: Money::from_raw(self.cost.raw() + worth(traded)),
                realized: self.realized,
            };
        }
        // The closed part with the sign of the position.
        let closed = held.signum() * held.abs().min(traded.abs());
        let cost = self.cost.share(Qty::from_raw(closed), self.qty).expect("a part fits").raw();
        // The opened part costs the value of the trade without the closed part, so that both add up
        // to the trade.
        let opened = if traded + closed == 0 { 0 } else { worth(traded) + worth(closed) };
        TwinPosition {
            qty: Qty::from_raw(held + traded),
            cost: Money::from_raw(self.cost.raw() - cost + opened),
            realized: Money::from_raw(self.realized.raw() + worth(closed) - cost),
        }
    }
}
