//! The book of an outside venue, as its adapter brings it into the shard of its security.
//!
//! ```text
//! VenueLevels ─► VenueLevels ─► … ─► VenueBook { is_known: true }     one change, complete
//!                                    VenueBook { is_known: false }    nothing is known any more
//! ```
//!
//! The levels themselves are not stored in the journal: no order depends on them, they would be the
//! largest part of it, and after a restart the venue sends them again. The small command that
//! completes a change is stored, so that the number of a published book means one book only.

use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem};
use crate::id::SecurityId;
use crate::index::index_u8;
use crate::number::{Price, Qty};
use crate::terms::Side;

/// Levels in one command: as many as fit.
pub const VENUE_LEVELS_MAX: usize = 6;

/// Part of a change of a venue's book: new quantities of some prices. Zero removes a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueLevels {
    /// The first `count` of them are valid.
    levels: [(Price, Qty); VENUE_LEVELS_MAX],
    pub security: SecurityId,
    /// A bit for each level of the ask side.
    asks: u8,
    count: u8,
    /// Whether the book begins again with this part: earlier levels do not count any more.
    pub replaces: bool,
}

impl VenueLevels {
    pub fn new(security: SecurityId, replaces: bool) -> VenueLevels {
        let levels = [(Price::ZERO, Qty::ZERO); VENUE_LEVELS_MAX];
        VenueLevels { levels, security, asks: 0, count: 0, replaces }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn is_full(&self) -> bool {
        self.count as usize == VENUE_LEVELS_MAX
    }

    /// Adds a level; the caller has checked that there is room.
    pub fn push(&mut self, side: Side, price: Price, qty: Qty) {
        let at = self.count as usize;
        self.levels[at] = (price, qty);
        self.asks |= u8::from(side == Side::Sell) << at;
        self.count = index_u8(at + 1);
    }

    pub fn levels(&self) -> impl Iterator<Item = (Side, Price, Qty)> {
        self.levels.iter().take(self.count as usize).enumerate().map(|(at, &(price, qty))| {
            let side = if self.asks >> at & 1 == 1 { Side::Sell } else { Side::Buy };
            (side, price, qty)
        })
    }
}

/// The security, whether the book begins again, the number of levels, and each level.
impl Codec for VenueLevels {
    fn encode(&self, out: &mut impl ByteSink) {
        self.security.encode(out);
        self.replaces.encode(out);
        self.count.encode(out);
        for (side, price, qty) in self.levels() {
            side.encode(out);
            price.encode(out);
            qty.encode(out);
        }
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<VenueLevels, DecodeError> {
        let mut part = VenueLevels::new(Codec::decode(from)?, Codec::decode(from)?);
        let count = u8::decode(from)?;
        from.check(count as usize <= VENUE_LEVELS_MAX, DecodeProblem::Value)?;
        for _ in 0..count {
            part.push(Codec::decode(from)?, Codec::decode(from)?, Codec::decode(from)?);
        }
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_back_with_their_side_and_too_many_are_refused() {
        let mut part = VenueLevels::new(SecurityId(7), true);
        let level =
            |at: usize| (Side::BOTH[at % 2], Price::from_raw(at as i64), Qty::from_raw(10 * at as i64));
        let all: Vec<(Side, Price, Qty)> = (0..VENUE_LEVELS_MAX).map(level).collect();
        all.iter().for_each(|&(side, price, qty)| part.push(side, price, qty));
        assert!(part.is_full() && part.levels().eq(all));
        let mut bytes = Vec::new();
        part.encode(&mut bytes);
        assert_eq!(VenueLevels::decode(&mut ByteReader::new(&bytes)), Ok(part));
        let count_at = 5;
        assert_eq!(usize::from(bytes[count_at]), VENUE_LEVELS_MAX);
        bytes[count_at] += 1;
        assert!(VenueLevels::decode(&mut ByteReader::new(&bytes)).is_err());
    }

    #[test]
    fn a_part_is_full_after_its_last_level_and_empty_before_its_first() {
        let mut part = VenueLevels::new(SecurityId(1), false);
        for count in 0..VENUE_LEVELS_MAX {
            assert_eq!((part.is_empty(), part.is_full()), (count == 0, false));
            part.push(Side::Buy, Price::ZERO, Qty::ZERO);
        }
        assert!(part.is_full() && !part.is_empty());
    }
}
