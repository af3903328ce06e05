//! Positions, cash and the transactions that change them. A booking either counts exactly or is
//! refused as a whole. The same arithmetic counts it live, folds it into the opening balance when
//! it is old, and recounts it on request.
//!
//! Rules: docs/engine-rules.md#positions-and-profit.

mod arithmetic;
mod exposure;
mod fees;
mod open_qty;
mod recount;
mod codec;

use arithmetic::CountedTrade;
pub use arithmetic::after;
pub use exposure::Exposure;
pub use fees::FeeCharge;
pub use open_qty::OpenQty;

use std::collections::{BTreeMap, VecDeque};

use crate::command::{ExecRef, Movement, MovementKind};
use crate::event::{Booking, PositionState};
use crate::id::{AccountId, Currency, IntId, OrderHandle, SecurityId, StrategyId, TransactionId, Uuid};
use crate::index::{index_u16, index_u32};
use crate::number::{ContractSize, Money, Price, Qty};
use crate::order::Order;
use crate::pages::LargePages;
use crate::prefetch::fetch;
use crate::terms::Terms;
use crate::time::Timestamp;

/// UUIDs of movements remembered, to make a repeated call harmless. A day of manual work is far
/// below it.
pub const UUIDS_MAX: usize = 65_536;

/// Distance ahead at which the memory of an old transaction is prefetched: one execution makes two
/// transactions.
const FOLD_AHEAD: usize = 2;

/// Account of a transaction without an account: the expiration of a strategy's position.
pub const NO_ACCOUNT: AccountId = AccountId(0);

/// Data of a security that booking needs.
#[derive(Clone, Copy, Debug)]
pub struct Instrument {
    pub security: SecurityId,
    /// Index in the shard.
    pub local: u32,
    pub currency: Currency,
    pub size: ContractSize,
}

/// Position of one strategy in one security.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    pub strategy: StrategyId,
    pub state: PositionState,
    pub open: OpenQty,
    /// Part of `open` that may only reduce the position.
    pub reducing: Qty,
    /// Whether there was ever a transaction: before that the entry exists but is not reported.
    pub traded: bool,
    /// Index of the strategy's cash in the security's currency.
    cash: u32,
    /// State before the oldest transaction kept.
    opening: PositionState,
    recount: PositionState,
}

/// One strategy's money in one currency, as far as this shard has moved it.
#[derive(Clone, Copy, Debug)]
pub struct Cash {
    pub strategy: StrategyId,
    pub currency: Currency,
    pub amount: Money,
    /// Whether there was ever a booking.
    pub moved: bool,
    opening: Money,
    recount: Money,
    /// Index of the contra account of every booking.
    contra: u32,
}

/// The contra account of every booking in a currency: together they are always zero.
#[derive(Clone, Copy, Debug)]
struct Contra {
    currency: Currency,
    amount: i128,
}

/// A transaction of a security.
#[derive(Clone, Copy, Debug)]
pub struct SecurityTransaction {
    pub kind: MovementKind,
    pub account: AccountId,
    /// Signed.
    pub qty: Qty,
    pub price: Price,
    pub commission: Money,
    pub order: OrderHandle,
    pub order_id: IntId,
    pub exec: ExecRef,
    /// Index of the account's exposure among those of the security; `None` without an account.
    pub exposure: Option<u16>,
}

#[derive(Debug)]
pub struct Ledger {
    positions: Vec<Vec<Position>>,
    exposures: Vec<Vec<Exposure>>,
    /// Number of the last transaction, by security.
    numbers: Vec<u32>,
    cash_numbers: BTreeMap<StrategyId, u32>,
    cash: Vec<Cash>,
    contras: Vec<Contra>,
    transactions: VecDeque<KeptTransaction>,
    transactions_max: usize,
    /// Number of transactions folded into the opening balance, which is the number of the oldest
    /// kept.
    folded: u64,
    uuids: BTreeMap<Uuid, TransactionId>,
    uuid_line: VecDeque<Uuid>,
}

/// A kept transaction: the booking, and the data needed to recount it.
#[derive(Clone, Copy, Debug)]
struct KeptTransaction {
    at: Timestamp,
    booking: Booking,
    size: ContractSize,
    local: u32,
    position: u16,
    cash: u32,
}

impl Ledger {
    pub fn new(securities: usize, transactions_max: u32, pages: LargePages) -> Ledger {
        Ledger {
            positions: vec![Vec::new(); securities],
            exposures: vec![Vec::new(); securities],
            numbers: vec![0; securities],
            cash_numbers: BTreeMap::new(),
            cash: Vec::new(),
            contras: Vec::new(),
            transactions: pages.table(transactions_max.max(1) as usize).into(),
            transactions_max: transactions_max.max(1) as usize,
            folded: 0,
            uuids: BTreeMap::new(),
            uuid_line: VecDeque::new(),
        }
    }

    /// Changes the number of transactions kept.
    pub fn set_bound(&mut self, transactions_max: u32) {
        self.transactions_max = transactions_max.max(1) as usize;
        while self.transactions.len() > self.transactions_max {
            self.fold_oldest();
        }
        self.transactions.reserve(self.transactions_max - self.transactions.len());
    }

    /// Adds a security.
    pub fn add_security(&mut self) {
        self.positions.push(Vec::new());
        self.exposures.push(Vec::new());
        self.numbers.push(0);
    }

    /// Returns the index of the strategy's position among those of the security; creates it if
    /// needed.
    #[inline]
    pub fn position_index(&mut self, strategy: StrategyId, instrument: &Instrument) -> u16 {
        let list = &self.positions[instrument.local as usize];
        if let Some(at) = list.iter().position(|p| p.strategy == strategy) {
            return index_u16(at);
        }
        self.open_position(strategy, instrument)
    }

    #[cold]
    fn open_position(&mut self, strategy: StrategyId, instrument: &Instrument) -> u16 {
        let cash = self.cash_index(strategy, instrument.currency);
        let list = &mut self.positions[instrument.local as usize];
        list.push(Position {
            strategy,
            state: PositionState::default(),
            open: OpenQty::default(),
            reducing: Qty::ZERO,
            traded: false,
            cash,
            opening: PositionState::default(),
            recount: PositionState::default(),
        });
        index_u16(list.len() - 1)
    }

    /// Returns the position of a strategy in a security, with its index among those of the
    /// security.
    #[inline(always)]
    pub fn find_position(&self, strategy: StrategyId, local: u32) -> Option<(u16, &Position)> {
        let positions = &self.positions[local as usize];
        let at = positions.iter().position(|position| position.strategy == strategy)?;
        Some((index_u16(at), &positions[at]))
    }

    /// Returns the exposure of an account in a security, with its index among those of the
    /// security.
    #[inline(always)]
    pub fn find_exposure(&self, account: AccountId, local: u32) -> Option<(u16, &Exposure)> {
        let exposures = &self.exposures[local as usize];
        let at = exposures.iter().position(|exposure| exposure.account == account)?;
        Some((index_u16(at), &exposures[at]))
    }

    #[inline]
    pub fn exposure_index(&mut self, account: AccountId, local: u32) -> u16 {
        let list = &mut self.exposures[local as usize];
        match list.iter().position(|e| e.account == account) {
            Some(at) => index_u16(at),
            None => {
                list.push(Exposure::new(account));
                index_u16(list.len() - 1)
            }
        }
    }

    #[inline]
    pub fn position(&self, local: u32, at: u16) -> &Position {
        &self.positions[local as usize][at as usize]
    }

    #[inline]
    pub fn position_mut(&mut self, local: u32, at: u16) -> &mut Position {
        &mut self.positions[local as usize][at as usize]
    }

    #[inline]
    pub fn exposure(&self, local: u32, at: u16) -> &Exposure {
        &self.exposures[local as usize][at as usize]
    }

    #[inline]
    pub fn exposure_mut(&mut self, local: u32, at: u16) -> &mut Exposure {
        &mut self.exposures[local as usize][at as usize]
    }

    /// Adds to the open quantity of an order and to the credit reserved for it, in its strategy's
    /// position and its account's exposure. Negative numbers take from them.
    #[inline(always)]
    pub fn add_open(&mut self, order: &Order, qty: Qty, reserve: Money) {
        let side = order.terms.side;
        let (position, exposure) = self.counts_mut(order);
        position.open.change(side, qty);
        exposure.open.change(side, qty);
        exposure.reserve(side, reserve);
    }

    /// Returns the position and the exposure in which an order is counted.
    #[inline]
    pub fn counts_mut(&mut self, order: &Order) -> (&mut Position, &mut Exposure) {
        self.counts_at((order.local, order.position, order.exposure))
    }

    /// Returns a position and an exposure by the indices of their security and their own.
    #[inline]
    fn counts_at(&mut self, (local, position, exposure): (u32, u16, u16)) -> (&mut Position, &mut Exposure) {
        let local = local as usize;
        (&mut self.positions[local][position as usize], &mut self.exposures[local][exposure as usize])
    }

    /// Counts a new order like [`Ledger::add_open`], in the counts with these indices. `more` is
    /// the growth of the credit in use, if it is known.
    #[inline]
    pub fn add_new(&mut self, at: (u32, u16, u16), terms: &Terms, reserve: Money, more: Option<Money>) {
        let (side, qty) = (terms.side, terms.qty);
        let (position, exposure) = self.counts_at(at);
        position.open.change(side, qty);
        exposure.open.change(side, qty);
        exposure.reserve(side, reserve);
        exposure.used += more.unwrap_or_default().raw() as i128;
    }

    /// Reserves credit for an order, or releases it if the amount is negative.
    #[inline]
    pub fn reserve_credit(&mut self, order: &Order, amount: Money) {
        self.exposure_mut(order.local, order.exposure).reserve(order.terms.side, amount);
    }

    /// Prefetches the counts of a security in the common case: one strategy, an account or two.
    #[inline]
    pub fn fetch(&self, local: u32) {
        let local = local as usize;
        if let Some(position) = self.positions.get(local).and_then(|positions| positions.first()) {
            fetch(position);
            fetch(&position.open);
        }
        if let Some(exposures) = self.exposures.get(local) {
            exposures.iter().take(2).for_each(Exposure::fetch);
        }
    }

    pub fn exposures(&self, local: u32) -> &[Exposure] {
        &self.exposures[local as usize]
    }

    pub fn positions(&self, local: u32) -> &[Position] {
        &self.positions[local as usize]
    }

    /// Returns the strategy's cash in the security's currency, as far as this shard has moved it.
    pub fn cash_of(&self, position: &Position) -> Money {
        self.cash[position.cash as usize].amount
    }

    pub fn cash(&self) -> &[Cash] {
        &self.cash
    }

    /// Returns the transactions kept, oldest first.
    pub fn transactions(&self) -> impl ExactSizeIterator<Item = (Timestamp, &Booking)> {
        self.transactions.iter().map(|kept| (kept.at, &kept.booking))
    }

    pub fn transaction(&self, index: usize) -> Option<(Timestamp, &Booking)> {
        self.transactions.get(index).map(|kept| (kept.at, &kept.booking))
    }

    /// Returns the number of transactions that are no longer kept.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// Returns the transaction booked last.
    #[inline]
    pub fn last_booked(&self) -> &Booking {
        &self.transactions.back().expect("one was booked before").booking
    }

    /// Books a transaction of a security, see [`Ledger::last_booked`]. Returns the change of the
    /// credit that the account uses; zero unless the security `counts`. Returns `None` if the
    /// transaction cannot be counted; then nothing has changed.
    #[inline(always)]
    pub fn book(
        &mut self,
        now: Timestamp,
        instrument: &Instrument,
        position: u16,
        deal: &SecurityTransaction,
        counts: bool,
    ) -> Option<i128> {
        let local = instrument.local;
        let held = self.position(local, position);
        let (strategy, cash_at) = (held.strategy, held.cash);
        let trade = CountedTrade::new(deal.qty, deal.price, deal.commission, instrument.size)?;
        let state = trade.position_after(&held.state)?;
        let cash = trade.cash_after(self.cash[cash_at as usize].amount)?;
        let number = self.numbers[local as usize].checked_add(1)?;
        let mut change = 0;
        if let Some(at) = deal.exposure {
            let exposure = self.exposure_mut(local, at);
            let held = PositionState { qty: exposure.net, cost: exposure.cost, realized: exposure.gain };
            let held = trade.position_after(&held)?;
            exposure.gain = held.realized.checked_sub(deal.commission)?;
            (exposure.net, exposure.cost) = (held.qty, held.cost);
            change = exposure.recount_credit(counts);
        }

        self.numbers[local as usize] = number;
        let held = self.position_mut(local, position);
        (held.state, held.traded) = (state, true);
        self.pay(cash_at, cash, trade.cost);
        self.make_room();
        self.transactions.push_back(KeptTransaction {
            at: now,
            booking: Booking {
                id: TransactionId::of_security(instrument.security, number),
                order: deal.order,
                order_id: deal.order_id,
                exec: deal.exec,
                kind: deal.kind,
                strategy,
                account: deal.account,
                security: Some(instrument.security),
                qty: deal.qty,
                price: deal.price,
                commission: deal.commission,
                currency: instrument.currency,
                position: state,
                cash,
            },
            size: instrument.size,
            local,
            position,
            cash: cash_at,
        });
        Some(change)
    }

    /// Closes the account's exposure in a security at a price, without a transaction of its own.
    pub fn close_exposure(&mut self, instrument: &Instrument, at: u16, price: Price) -> Option<()> {
        let exposure = self.exposure_mut(instrument.local, at);
        if exposure.net.is_zero() {
            return Some(());
        }
        let held = PositionState { qty: exposure.net, cost: exposure.cost, realized: exposure.gain };
        let held = after(&held, exposure.net.checked_neg()?, price, instrument.size)?;
        (exposure.net, exposure.cost, exposure.gain) = (held.qty, held.cost, held.realized);
        Some(())
    }

    /// Books a movement of cash; `amount` is signed as it changes the balance.
    pub fn book_cash(&mut self, now: Timestamp, movement: &Movement, amount: Money) -> Option<()> {
        let Movement { kind, strategy, account, currency, uuid, .. } = *movement;
        let cash_at = self.cash_index(strategy, currency);
        let cash = self.cash[cash_at as usize].amount.checked_add(amount)?;
        let number = self.cash_numbers.get(&strategy).copied().unwrap_or(0).checked_add(1)?;
        let cost = amount.checked_neg()?;
        self.cash_numbers.insert(strategy, number);
        self.pay(cash_at, cash, cost);
        let booking = Booking {
            id: TransactionId::of_cash(strategy, number),
            order: OrderHandle::NONE,
            order_id: IntId::NONE,
            exec: ExecRef(uuid.0),
            kind,
            strategy,
            account,
            security: None,
            qty: Qty::ZERO,
            price: Price::from_raw(amount.raw()),
            commission: Money::ZERO,
            currency,
            position: PositionState::default(),
            cash,
        };
        self.make_room();
        let size = ContractSize::ONE;
        self.transactions.push_back(KeptTransaction {
            at: now,
            booking,
            size,
            local: u32::MAX,
            position: 0,
            cash: cash_at,
        });
        Some(())
    }

    /// Returns whether a movement with this UUID was booked.
    pub fn seen(&self, uuid: Uuid) -> bool {
        self.uuids.contains_key(&uuid)
    }

    pub fn remember(&mut self, uuid: Uuid, id: TransactionId) {
        if self.uuid_line.len() == UUIDS_MAX
            && let Some(oldest) = self.uuid_line.pop_front()
        {
            self.uuids.remove(&oldest);
        }
        self.uuid_line.push_back(uuid);
        self.uuids.insert(uuid, id);
    }

    fn pay(&mut self, at: u32, cash: Money, cost: Money) {
        let place = &mut self.cash[at as usize];
        (place.amount, place.moved) = (cash, true);
        self.contras[place.contra as usize].amount += cost.raw() as i128;
    }

    #[inline]
    fn make_room(&mut self) {
        if self.transactions.len() == self.transactions_max {
            self.fold_oldest();
        }
    }

    fn cash_index(&mut self, strategy: StrategyId, currency: Currency) -> u32 {
        if let Some(at) = self.cash.iter().position(|c| c.strategy == strategy && c.currency == currency) {
            return index_u32(at);
        }
        let contra = match self.contras.iter().position(|c| c.currency == currency) {
            Some(at) => index_u32(at),
            None => {
                self.contras.push(Contra { currency, amount: 0 });
                index_u32(self.contras.len() - 1)
            }
        };
        let zero = Money::ZERO;
        let cash =
            Cash { strategy, currency, amount: zero, moved: false, opening: zero, recount: zero, contra };
        self.cash.push(cash);
        index_u32(self.cash.len() - 1)
    }
}

#[cfg(test)]
mod tests;
