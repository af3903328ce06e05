//! Fees that outside venues have charged for remembered executions, so that a fill that is taken
//! back returns its fee.

use super::Orders;
use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, codec};
use crate::command::{ExecRef, VenueFee};
use crate::index::index_u32;

/// Fee of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedFee {
    pub fee: VenueFee,
    /// Whether the fill was booked before its fee was known, with the commission of its family.
    pub is_late: bool,
}

impl RecordedFee {
    /// Returns the fee with which the fill itself was booked.
    pub fn of_fill(self) -> Option<VenueFee> {
        (!self.is_late).then_some(self.fee)
    }
}

/// Fees by the place of their executions. It is as long as the last of them needs, so that it is
/// empty where no venue reports fees.
#[derive(Debug, Default)]
pub(super) struct RecordedFees(Vec<Option<RecordedFee>>);

impl RecordedFees {
    fn set(&mut self, at: u32, fee: RecordedFee) {
        if self.0.len() <= at as usize {
            self.0.resize(at as usize + 1, None);
        }
        self.0[at as usize] = Some(fee);
    }

    pub(super) fn take(&mut self, at: u32) -> Option<RecordedFee> {
        self.0.get_mut(at as usize).and_then(Option::take)
    }
}

impl Orders {
    /// Remembers the fee of an execution; of one that is not remembered, nothing.
    pub fn remember_fee(&mut self, slot: u32, exec: ExecRef, fee: RecordedFee) {
        if let Some(at) = self.root(slot, exec) {
            self.fees.set(at, fee);
        }
    }

    /// Returns the fee of an execution that has this id, or was corrected under it.
    pub fn fee(&self, slot: u32, exec: ExecRef) -> Option<RecordedFee> {
        self.root(slot, exec).and_then(|at| self.fees.0.get(at as usize).copied().flatten())
    }

    /// Returns the fee of an execution, and forgets it.
    pub fn take_fee(&mut self, slot: u32, exec: ExecRef) -> Option<RecordedFee> {
        self.root(slot, exec).and_then(|at| self.fees.take(at))
    }

    /// Returns whether an execution has a fee of its venue.
    pub(crate) fn has_fees(&self) -> bool {
        self.fees.0.iter().any(Option::is_some)
    }

    /// Appends the fees to a saved state.
    pub(crate) fn save_fees(&self, out: &mut impl ByteSink) {
        let places = (0..).zip(&self.fees.0);
        let fees: Vec<(u32, RecordedFee)> = places.filter_map(|(at, fee)| Some((at, (*fee)?))).collect();
        fees.encode(out);
    }

    /// Decodes the fees of a saved state.
    pub(crate) fn load_fees(&mut self, from: &mut ByteReader<'_>) -> Result<(), DecodeError> {
        let fees: Vec<(u32, RecordedFee)> = Codec::decode(from)?;
        let is_sorted = fees.is_sorted_by(|(one, _), (next, _)| one < next);
        let is_known = fees.last().is_none_or(|(last, _)| *last < index_u32(self.executions.len()));
        from.check(is_sorted && is_known, DecodeProblem::Contradiction)?;
        fees.into_iter().for_each(|(at, fee)| self.fees.set(at, fee));
        Ok(())
    }
}

codec!(RecordedFee { fee, is_late });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Currency, IntId, ShardId};
    use crate::number::{Money, Price, Qty};
    use crate::order::Order;
    use crate::orders::empty_order;
    use crate::pages::LargePages;

    fn fee(amount: i64) -> RecordedFee {
        let currency = Currency::parse(b"BNB").unwrap();
        RecordedFee { fee: VenueFee { amount: Money::from_raw(amount), currency }, is_late: false }
    }

    fn orders() -> (Orders, u32) {
        let mut orders = Orders::new(ShardId(0), 10, 2, LargePages::NONE);
        let slot = orders.insert(Order { id: IntId::numbered(b't', 1), ..empty_order() });
        (orders, slot)
    }

    #[test]
    fn a_fee_ends_with_its_execution() {
        let (mut orders, slot) = orders();
        let (first, second, unknown) = (ExecRef(1), ExecRef(2), ExecRef(3));
        assert!(orders.remember(slot, first, Qty::from_raw(4), Price::from_raw(5)));
        orders.remember_fee(slot, first, fee(7));
        assert!(orders.remember_correction(slot, first, second));
        assert_eq!((orders.fee(slot, first), orders.fee(slot, second)), (Some(fee(7)), Some(fee(7))));
        orders.remember_fee(slot, unknown, fee(8));
        assert_eq!((orders.fee(slot, unknown), orders.take_fee(slot, unknown)), (None, None));
        assert_eq!((orders.take_fee(slot, second), orders.fee(slot, first)), (Some(fee(7)), None));
        // The next order gets the places of the old one.
        orders.remember_fee(slot, first, fee(9));
        orders.finish(slot);
        orders.forget_oldest(false);
        let slot = orders.insert(Order { id: IntId::numbered(b't', 2), ..empty_order() });
        assert!(orders.remember(slot, first, Qty::from_raw(4), Price::from_raw(5)));
        assert!(orders.remember(slot, second, Qty::from_raw(4), Price::from_raw(5)));
        assert_eq!((orders.fee(slot, first), orders.fee(slot, second)), (None, None));
    }

    #[test]
    fn saved_fees_are_those_of_known_executions() {
        let (mut orders, slot) = orders();
        assert!(!orders.has_fees());
        assert!(orders.remember(slot, ExecRef(1), Qty::from_raw(4), Price::from_raw(5)));
        assert!(orders.remember(slot, ExecRef(2), Qty::from_raw(4), Price::from_raw(5)));
        orders.remember_fee(slot, ExecRef(2), fee(7));
        assert!(orders.has_fees());
        let mut bytes = Vec::new();
        orders.save_fees(&mut bytes);
        orders.take_fee(slot, ExecRef(2));
        orders.load_fees(&mut ByteReader::new(&bytes)).unwrap();
        assert_eq!((orders.fee(slot, ExecRef(1)), orders.fee(slot, ExecRef(2))), (None, Some(fee(7))));
        for wrong in [vec![(2, fee(1))], vec![(1, fee(1)), (0, fee(1))], vec![(0, fee(1)), (0, fee(1))]] {
            let mut bytes = Vec::new();
            wrong.encode(&mut bytes);
            let error = orders.load_fees(&mut ByteReader::new(&bytes)).unwrap_err();
            assert_eq!(error.problem, DecodeProblem::Contradiction, "{wrong:?}");
        }
    }
}
