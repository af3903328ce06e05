//! Bytes of the ledger.

use super::{Cash, Contra, Exposure, Instrument, KeptTransaction, Ledger, OpenQty, Position, UUIDS_MAX};
use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, Digest, codec, encode_count};
use crate::id::{TransactionId, Uuid};
use crate::pages::LargePages;

codec!(Instrument { security, local, currency, size });
codec!(OpenQty { buy, sell });
codec!(Position { strategy, state, open, reducing, traded, cash, opening, recount });
codec!(Exposure { account, net, open, cost, gain, reserved, used });
codec!(Cash { strategy, currency, amount, moved, opening, recount, contra });
codec!(Contra { currency, amount });
codec!(KeptTransaction { at, booking, size, local, position, cash });

impl Ledger {
    pub(crate) fn save(&self, out: &mut impl ByteSink) {
        self.positions.encode(out);
        self.exposures.encode(out);
        self.numbers.encode(out);
        self.cash_numbers.encode(out);
        self.cash.encode(out);
        self.contras.encode(out);
        self.transactions.encode(out);
        self.folded.encode(out);
        // In order of arrival; decoding rebuilds the map from them.
        encode_count(self.uuid_line.len(), out);
        for uuid in &self.uuid_line {
            (*uuid, self.uuids.get(uuid).copied().unwrap_or_default()).encode(out);
        }
    }

    pub(crate) fn load(
        from: &mut ByteReader<'_>,
        securities: usize,
        transactions_max: u32,
        pages: LargePages,
    ) -> Result<Ledger, DecodeError> {
        let mut ledger = Ledger::new(0, transactions_max, pages);
        ledger.positions = Codec::decode(from)?;
        ledger.exposures = Codec::decode(from)?;
        ledger.numbers = Codec::decode(from)?;
        ledger.cash_numbers = Codec::decode(from)?;
        ledger.cash = Codec::decode(from)?;
        ledger.contras = Codec::decode(from)?;
        let kept: Vec<KeptTransaction> = Codec::decode(from)?;
        from.check(kept.len() <= ledger.transactions_max, DecodeProblem::Contradiction)?;
        ledger.transactions.extend(kept);
        ledger.folded = from.counter()?;
        let uuids: Vec<(Uuid, TransactionId)> = Codec::decode(from)?;
        from.check(uuids.len() <= UUIDS_MAX, DecodeProblem::Contradiction)?;
        ledger.uuid_line.extend(uuids.iter().map(|(uuid, _)| *uuid));
        ledger.uuids.extend(uuids);
        let sound = ledger.is_sound(securities);
        from.check(sound, DecodeProblem::Contradiction)?;
        Ok(ledger)
    }

    /// Adds numbers, balances and money of the day to the digest.
    pub(crate) fn fold(&self, sum: &mut Digest) {
        self.numbers.encode(sum);
        self.cash_numbers.encode(sum);
        self.cash.encode(sum);
        self.contras.encode(sum);
        self.folded.encode(sum);
        self.transactions.len().encode(sum);
        for position in self.positions.iter().flatten() {
            position.state.encode(sum);
            position.open.encode(sum);
        }
    }

    /// Returns whether every index is valid, and the balances are those of the transactions.
    fn is_sound(&self, securities: usize) -> bool {
        let tables = [self.positions.len(), self.exposures.len(), self.numbers.len()];
        let cash = |at: u32| (at as usize) < self.cash.len();
        let position = |kept: &KeptTransaction| {
            let list = self.positions.get(kept.local as usize);
            list.is_some_and(|list| (kept.position as usize) < list.len())
        };
        tables == [securities; 3]
            && self.uuids.len() == self.uuid_line.len()
            && self.positions.iter().all(|list| list.len() <= 1 << 16)
            && self.exposures.iter().all(|list| list.len() <= 1 << 16)
            && self.positions.iter().flatten().all(|position| cash(position.cash))
            && self.cash.iter().all(|cash| (cash.contra as usize) < self.contras.len())
            && self.transactions.iter().all(|kept| cash(kept.cash))
            && self.transactions.iter().filter(|kept| kept.booking.security.is_some()).all(position)
            && self.agrees_with_recount()
    }
}
