//! Sizes of the portions behind the feed's best price, so that the simulated book looks like one of
//! an exchange: the sizes differ by price, grow away from the market on average, and change as
//! orders arrive and leave. The feed shows only its best price, so the sizes are made here, from
//! the seed, the security, the side and the price.
//!
//! ```text
//! mean     of the last shown sizes ──► scale, a power of two of lots
//! turns    quotes so far ─┐
//! price ──► phase ────────┴──► epoch of the price ──► lots, 1 to 3, 5 or 7 times the scale
//! ```
//!
//! The size at a price stays until its epoch ends. The epochs of the prices end at different
//! turns, so a new quote changes about one price in eight. Everything follows from the quotes, so
//! each replay gives the same sizes.
//!
//! Rules: docs/engine-rules.md#sizes-of-the-simulated-book.

use super::BookSpec;
use crate::codec::{ByteReader, ByteSink, Codec, DecodeError};
use crate::number::Qty;
use crate::rng::{below, mix};
use crate::terms::Side;

/// Quotes for which a size stays.
const TURNS_PER_EPOCH: u64 = 8;
/// Quotes over which the mean reaches back.
const MEAN_TURNS: i64 = 32;
/// Largest size that the mean counts: the sum of so many fits.
const COUNTED_SIZE_MAX: i64 = i64::MAX / MEAN_TURNS;
/// Portions after which the range of sizes grows, and the last time that it does.
const BAND_PORTIONS: u32 = 4;
const LAST_BAND: u32 = 2;

/// State behind the sizes of one side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VariedSizes {
    /// Follows from seed, security and side.
    key: u64,
    lot: Qty,
    /// Number of changes of this side of the quote.
    turns: u64,
    /// The mean of the shown sizes, times [`MEAN_TURNS`]; zero before the first.
    sum: i64,
}

impl VariedSizes {
    pub(super) fn new(spec: &BookSpec, side: Side) -> VariedSizes {
        let name = 2 * spec.security.0 as u64 + side as u64;
        let key = mix(spec.settings.seed ^ mix(name));
        VariedSizes { key, lot: spec.lot, turns: 0, sum: 0 }
    }

    /// Returns these sizes with the past of others.
    pub(super) fn after(self, before: &VariedSizes) -> VariedSizes {
        VariedSizes { turns: before.turns, sum: before.sum, ..self }
    }

    /// Counts a quote that shows this size.
    pub(super) fn advance(&mut self, shown: Qty) {
        self.turns = self.turns.wrapping_add(1);
        let counted = shown.raw().min(COUNTED_SIZE_MAX);
        if counted > 0 {
            let before = if self.sum == 0 { counted * MEAN_TURNS } else { self.sum };
            self.sum = before - before / MEAN_TURNS + counted;
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        (0..=COUNTED_SIZE_MAX * MEAN_TURNS).contains(&self.sum)
    }

    /// Returns the size of a portion behind the first at its price: whole lots, at least one.
    pub(super) fn size(&self, portion: u32, ticks: i64) -> Qty {
        let place = mix(self.key ^ ticks.cast_unsigned());
        let epoch = self.turns.wrapping_add(place % TURNS_PER_EPOCH) / TURNS_PER_EPOCH;
        let lot = self.lot.raw();
        let mean = (self.sum / MEAN_TURNS / lot).max(1).cast_unsigned();
        let scale = 1 << mean.ilog2();
        let range = scale * (3 + 2 * (portion / BAND_PORTIONS).min(LAST_BAND) as u64);
        let lots = 1 + below(mix(place ^ epoch), range);
        // One lot where more would not fit.
        Qty::from_raw(lot.checked_mul(lots.cast_signed()).unwrap_or(lot))
    }

    /// Writes what does not follow from the settings.
    pub(super) fn save(&self, out: &mut impl ByteSink) {
        let VariedSizes { key: _, lot: _, turns, sum } = self;
        turns.encode(out);
        sum.encode(out);
    }

    pub(super) fn restore(&mut self, from: &mut ByteReader<'_>) -> Result<(), DecodeError> {
        self.turns = Codec::decode(from)?;
        self.sum = Codec::decode(from)?;
        Ok(())
    }
}
