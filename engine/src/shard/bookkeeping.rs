//! Bookkeeping: movements that no order made, expiries, and recounts.
//!
//! Rules: docs/engine-rules.md#manual-transactions.

use super::{Shard, shard_of_cash};
use crate::command::{ExecRef, Movement, MovementKind};
use crate::event::EventKind;
use crate::id::{Currency, IntId, OrderHandle, SecurityId, Source, Uuid};
use crate::ledger::{NO_ACCOUNT, SecurityTransaction};
use crate::number::{Money, Price, Qty};
use crate::outbox::Outbox;
use crate::reason::Reason;

impl Shard {
    /// Records a manual transaction. The same UUID again changes nothing and is not an error.
    pub(super) fn movement(
        &mut self,
        source: Source,
        movement: &Movement,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let named = movement.uuid != Uuid::default();
        if named && self.ledger.seen(movement.uuid) {
            return Ok(());
        }
        self.directory.strategy(movement.strategy).ok_or(Reason::UnknownStrategy)?;
        self.directory.account(movement.account).ok_or(Reason::UnknownAccount)?;
        match movement.security {
            Some(security) => self.book_trade(security, movement, out)?,
            None => self.book_amount(movement)?,
        }
        let booking = *self.ledger.last_booked();
        if named {
            self.ledger.remember(movement.uuid, booking.id);
        }
        out.emit(self.watchers.of_order(source), self.now, EventKind::Booked(booking));
        Ok(())
    }

    fn book_trade(
        &mut self,
        security: SecurityId,
        movement: &Movement,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let local = self.directory.local(security).ok_or(Reason::UnknownSecurity)?;
        let qty = movement.qty;
        let fits = match movement.kind {
            MovementKind::Buy => qty.is_positive(),
            MovementKind::Sell => qty.is_negative(),
            MovementKind::Expiration | MovementKind::Rebalance => !qty.is_zero(),
            MovementKind::Credit
            | MovementKind::Debit
            | MovementKind::Interest
            | MovementKind::Fees
            | MovementKind::Refund => false,
        };
        if !fits || movement.commission.is_negative() {
            return Err(Reason::BadTransaction);
        }
        let instrument = self.directory.locals[local as usize].instrument;
        let position = self.ledger.position_index(movement.strategy, &instrument);
        let has_account = movement.account != NO_ACCOUNT;
        let deal = SecurityTransaction {
            kind: movement.kind,
            account: movement.account,
            qty,
            price: movement.price,
            commission: movement.commission,
            order: OrderHandle::NONE,
            order_id: IntId::NONE,
            exec: ExecRef(movement.uuid.0),
            exposure: has_account.then(|| self.ledger.exposure_index(movement.account, local)),
        };
        self.book(local, position, &deal, out).ok_or(Reason::Overflow)?;
        self.check_excess(local, position);
        Ok(())
    }

    fn book_amount(&mut self, movement: &Movement) -> Result<(), Reason> {
        let amount = Money::from_raw(movement.price.raw());
        let (fits, amount) = match movement.kind {
            MovementKind::Credit | MovementKind::Interest | MovementKind::Refund => {
                (amount.is_positive(), Some(amount))
            }
            MovementKind::Debit | MovementKind::Fees => (amount.is_positive(), amount.checked_neg()),
            MovementKind::Rebalance => (!amount.is_zero(), Some(amount)),
            MovementKind::Buy | MovementKind::Sell | MovementKind::Expiration => (false, None),
        };
        let plain = movement.qty.is_zero() && movement.commission.is_zero();
        if !fits || !plain || movement.currency == Currency::default() {
            return Err(Reason::BadTransaction);
        }
        if shard_of_cash(movement.strategy, self.shards) != self.id {
            return Err(Reason::UnknownScope);
        }
        let amount = amount.ok_or(Reason::Overflow)?;
        self.ledger.book_cash(self.now, movement, amount).ok_or(Reason::Overflow)
    }

    /// Expires a security: its orders end, and its positions are closed at the settlement price.
    pub(super) fn expire_security(&mut self, security: SecurityId, price: Price) -> Result<(), Reason> {
        let local = self.directory.local(security).ok_or(Reason::UnknownSecurity)?;
        self.directory.locals[local as usize].expired = true;
        self.continuation.begin_expire(local, price);
        Ok(())
    }

    /// Closes one of the positions; after the last one, the exposures of accounts are closed too.
    pub(super) fn expire_position(&mut self, local: u32, at: u16, price: Price, out: &mut Outbox) {
        if at == 0 {
            self.emit_hidden_exposures(local, out);
        }
        self.close_expired(local, at, price, out);
        if at as usize + 1 == self.ledger.positions(local).len() {
            self.expire_exposures(local, price);
        }
    }

    /// Emits that no account has a position any more if no booking will show it, because the
    /// accounts of each strategy hold opposite positions.
    fn emit_hidden_exposures(&self, local: u32, out: &mut Outbox) {
        let is_booked = self.ledger.positions(local).iter().any(|held| !held.state.qty.is_zero());
        if !is_booked && self.ledger.exposures(local).iter().any(|held| !held.net.is_zero()) {
            let security = self.directory.locals[local as usize].instrument.security;
            self.emit(EventKind::Exposure { account: None, security, qty: Qty::ZERO }, out);
        }
    }

    fn close_expired(&mut self, local: u32, at: u16, price: Price, out: &mut Outbox) {
        let qty = self.ledger.position(local, at).state.qty;
        let Some(closing) = qty.checked_neg().filter(|closing| !closing.is_zero()) else {
            return;
        };
        let deal = SecurityTransaction {
            kind: MovementKind::Expiration,
            account: NO_ACCOUNT,
            qty: closing,
            price,
            commission: Money::ZERO,
            order: OrderHandle::NONE,
            order_id: IntId::NONE,
            exec: ExecRef(0),
            exposure: None,
        };
        match self.book(local, at, &deal, out) {
            Some(()) => self.emit(EventKind::Booked(*self.ledger.last_booked()), out),
            None => self.continuation.refuse(Reason::Overflow),
        }
    }

    /// Recounts all positions from the transactions and reports the differences.
    pub(super) fn reset_positions(&mut self) -> Result<(), Reason> {
        self.ledger.recount();
        if !self.directory.locals.is_empty() {
            self.continuation.begin_positions();
        }
        Ok(())
    }

    /// Recounts all cash from the transactions and reports the differences.
    pub(super) fn reset_cash(&mut self) -> Result<(), Reason> {
        self.ledger.recount();
        self.continuation.begin_cash();
        Ok(())
    }
}
