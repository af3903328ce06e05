//! The books as bytes.

use super::{Cash, Contra, Exposure, Instrument, Kept, Ledger, OpenQty, Position, UUIDS_MAX};
use crate::id::{TransactionId, Uuid};
use crate::image::{Damage, Fold, Image, Problem, Reader, Sink, image};
use crate::pages::LargePages;

image!(Instrument { security, local, currency, size });
image!(OpenQty { buy, sell });
image!(Position { strategy, state, open, reducing, traded, cash, opening, recount });
image!(Exposure { account, net, open, cost, gain, aside, used });
image!(Cash { strategy, currency, amount, moved, opening, recount, contra });
image!(Contra { currency, amount });
image!(Kept { at, booking, size, local, position, cash });

impl Ledger {
    pub(crate) fn save(&self, out: &mut impl Sink) {
        self.positions.encode(out);
        self.exposures.encode(out);
        self.numbers.encode(out);
        self.cash_numbers.encode(out);
        self.cash.encode(out);
        self.contras.encode(out);
        self.transactions.encode(out);
        self.folded.encode(out);
        // In the order they came; the map is made of them.
        (self.uuid_line.len() as u32).encode(out);
        for uuid in &self.uuid_line {
            (*uuid, self.uuids.get(uuid).copied().unwrap_or_default()).encode(out);
        }
    }

    pub(crate) fn load(
        from: &mut Reader<'_>,
        securities: usize,
        transactions_max: u32,
        pages: LargePages,
    ) -> Result<Ledger, Damage> {
        let mut ledger = Ledger::new(0, transactions_max, pages);
        ledger.positions = Image::decode(from)?;
        ledger.exposures = Image::decode(from)?;
        ledger.numbers = Image::decode(from)?;
        ledger.cash_numbers = Image::decode(from)?;
        ledger.cash = Image::decode(from)?;
        ledger.contras = Image::decode(from)?;
        let kept: Vec<Kept> = Image::decode(from)?;
        from.check(kept.len() <= ledger.transactions_max, Problem::Contradiction)?;
        ledger.transactions.extend(kept);
        ledger.folded = Image::decode(from)?;
        let uuids: Vec<(Uuid, TransactionId)> = Image::decode(from)?;
        from.check(uuids.len() <= UUIDS_MAX, Problem::Contradiction)?;
        ledger.uuid_line.extend(uuids.iter().map(|(uuid, _)| *uuid));
        ledger.uuids.extend(uuids);
        let sound = ledger.is_sound(securities);
        from.check(sound, Problem::Contradiction)?;
        Ok(ledger)
    }

    /// Numbers, balances and money of the day.
    pub(crate) fn fold(&self, sum: &mut Fold) {
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

    /// Whether every index leads somewhere.
    fn is_sound(&self, securities: usize) -> bool {
        let tables = [self.positions.len(), self.exposures.len(), self.numbers.len()];
        let cash = |at: u32| (at as usize) < self.cash.len();
        let position = |kept: &Kept| {
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
    }
}
