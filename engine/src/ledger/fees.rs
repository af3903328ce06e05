//! Fees of a venue as transactions of their own.

use super::{Instrument, KeptTransaction, Ledger};
use crate::command::{ExecRef, MovementKind, VenueFee};
use crate::event::{Booking, PositionState};
use crate::id::{AccountId, IntId, OrderHandle, TransactionId};
use crate::number::{ContractSize, Money, Price, Qty};
use crate::time::Timestamp;

/// A fee of a fill.
#[derive(Clone, Copy, Debug)]
pub struct FeeCharge {
    /// Index of the strategy's position among those of the security.
    pub position: u16,
    pub account: AccountId,
    pub order: OrderHandle,
    pub order_id: IntId,
    pub exec: ExecRef,
    pub fee: VenueFee,
}

impl Ledger {
    /// Books a fee as a movement of the strategy's cash. It is numbered in the ledger of the
    /// security, because each shard has only a part of a strategy's cash. Returns `None` if it
    /// cannot be counted; then nothing has changed.
    pub fn book_fee(&mut self, now: Timestamp, instrument: &Instrument, charge: &FeeCharge) -> Option<()> {
        let FeeCharge { position, account, order, order_id, exec, fee } = *charge;
        let strategy = self.position(instrument.local, position).strategy;
        let number = self.numbers[instrument.local as usize].checked_add(1)?;
        let change = fee.amount.checked_neg()?;
        let cash_at = self.cash_index(strategy, fee.currency);
        let cash = self.cash[cash_at as usize].amount.checked_add(change)?;
        self.numbers[instrument.local as usize] = number;
        self.pay(cash_at, cash, fee.amount);
        let booking = Booking {
            id: TransactionId::of_security(instrument.security, number),
            order,
            order_id,
            exec,
            kind: MovementKind::Fees,
            strategy,
            account,
            security: None,
            qty: Qty::ZERO,
            price: Price::from_raw(change.raw()),
            commission: Money::ZERO,
            currency: fee.currency,
            position: PositionState::default(),
            cash,
        };
        self.make_room();
        let size = ContractSize::ONE;
        let kept = KeptTransaction { at: now, booking, size, local: u32::MAX, position: 0, cash: cash_at };
        self.transactions.push_back(kept);
        Some(())
    }
}
