//! One side of the feed's quote, as orders consume it: the shown size at its price, then further
//! portions at worse prices.
//!
//! Rules: docs/engine-rules.md#matching.

use super::portion_sizes::VariedSizes;
use super::{BookDetail, BookSpec};
use crate::codec::{ByteReader, ByteSink, Codec, DecodeError};
use crate::number::Qty;
use crate::settings::{QUOTE_LEVELS_MAX, QuoteSizes, VenueSettings};
use crate::terms::Side;

/// See the module's comment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QuoteSide {
    pub ticks: i64,
    /// Zero: nothing is shown.
    pub size: Qty,
    /// Number of consumed portions, and the consumed part of the next.
    portion: u32,
    taken: Qty,
    /// Sizes of the further portions; `None`: each has the shown size.
    varied: Option<VariedSizes>,
}

impl QuoteSide {
    /// Creates a side that shows nothing.
    pub(super) fn new(spec: &BookSpec, side: Side) -> QuoteSide {
        let varied = match spec.settings.quote_sizes {
            QuoteSizes::Equal => None,
            QuoteSizes::Varied => Some(VariedSizes::new(spec, side)),
        };
        QuoteSide { varied, ..QuoteSide::default() }
    }

    /// Shows another price or size. The consumed size is available again.
    pub(super) fn show(&mut self, ticks: i64, size: Qty) {
        (self.ticks, self.size) = (ticks, size);
        (self.portion, self.taken) = (0, Qty::ZERO);
        if let Some(varied) = &mut self.varied {
            varied.advance(size);
        }
    }

    /// Applies new settings. The consumed part stays consumed, as far as there still is so much.
    fn set_up(&mut self, spec: &BookSpec, side: Side) {
        let before = self.varied;
        self.varied = QuoteSide::new(spec, side).varied.map(|varied| match before {
            Some(before) => varied.after(&before),
            None => {
                let mut first = varied;
                first.advance(self.size);
                first
            }
        });
        let portions = portions(&spec.settings).max(1);
        if self.portion > portions {
            (self.portion, self.taken) = (portions, Qty::ZERO);
        }
        let whole = self.whole(side, &spec.settings);
        if whole.is_some_and(|(_, size)| self.taken.is_positive() && self.taken >= size) {
            self.next_portion();
        }
    }

    pub(super) fn is_sound(&self, side: Side, settings: &VenueSettings) -> bool {
        // New settings may leave a portion that there no longer is, with its consumed part.
        let size = match self.portion {
            0 => self.size,
            _ => self.whole(side, settings).map_or(Qty::MAX, |(_, size)| size),
        };
        !self.taken.is_negative()
            && self.taken <= size
            && self.portion <= portions(settings).max(1)
            && self.varied.is_none_or(|varied| varied.is_sound())
    }

    /// Returns the next portion with its consumed part: its price in ticks, and its size.
    fn whole(&self, side: Side, settings: &VenueSettings) -> Option<(i64, Qty)> {
        if !self.size.is_positive() || self.portion >= portions(settings) {
            return None;
        }
        let away = self.portion as i64 * settings.slippage_ticks as i64;
        let ticks = match side {
            Side::Buy => self.ticks.checked_sub(away)?,
            Side::Sell => self.ticks.checked_add(away)?,
        };
        let size = match &self.varied {
            Some(varied) if self.portion > 0 => varied.size(self.portion, ticks),
            Some(_) | None => self.size,
        };
        Some((ticks, size))
    }

    /// Returns the next portion: its price in ticks, and its rest. `side` is the quote's.
    pub(super) fn portion(&self, side: Side, settings: &VenueSettings) -> Option<(i64, Qty)> {
        let (ticks, size) = self.whole(side, settings)?;
        Some((ticks, Qty::from_raw(size.raw() - self.taken.raw())))
    }

    /// Returns the remaining portions, from the next on.
    pub(super) fn portions(&self, side: Side, settings: &VenueSettings) -> impl Iterator<Item = (i64, Qty)> {
        let mut rest = *self;
        std::iter::from_fn(move || {
            let portion = rest.portion(side, settings)?;
            rest.next_portion();
            Some(portion)
        })
    }

    /// Returns the rest of the size that the feed shows.
    pub(super) fn first(&self) -> Qty {
        match self.portion {
            0 => Qty::from_raw(self.size.raw() - self.taken.raw()),
            _ => Qty::ZERO,
        }
    }

    /// Takes a quantity from the next portion, whose rest is `rest`.
    pub(super) fn take(&mut self, qty: Qty, rest: Qty) {
        assert!(qty <= rest, "a portion has its size");
        self.taken = Qty::from_raw(self.taken.raw() + qty.raw());
        if qty == rest {
            self.next_portion();
        }
    }

    /// Drops the rest of the portion.
    pub(super) fn next_portion(&mut self) {
        self.portion += 1;
        self.taken = Qty::ZERO;
    }

    /// Takes all portions within this many ticks of the next one, and returns their sum.
    pub(super) fn take_within(&mut self, side: Side, settings: &VenueSettings, ticks: u64) -> i128 {
        let steps = ticks / settings.slippage_ticks.max(1) as u64;
        let left = portions(settings) - self.portion;
        let count = u32::try_from(steps.saturating_add(1)).map_or(left, |count| count.min(left));
        if self.varied.is_some() {
            let sizes = self.portions(side, settings).take(count as usize).map(|(_, qty)| qty.raw() as i128);
            let sum = sizes.sum();
            self.skip(count);
            return sum;
        }
        let sum = count as i128 * self.size.raw() as i128 - self.taken.raw() as i128;
        self.skip(count);
        sum
    }

    fn skip(&mut self, portions: u32) {
        self.portion += portions;
        self.taken = Qty::ZERO;
    }
}

impl BookDetail {
    pub(super) fn set_up(&mut self, settings: VenueSettings) {
        self.spec.settings = settings;
        for side in Side::BOTH {
            self.shown[side as usize].set_up(&self.spec, side);
        }
    }
}

/// The stored bytes. Those of varied sizes exist only where the settings ask for them, so the bytes
/// of a book with equal sizes are the same as before there were others.
impl QuoteSide {
    pub(super) fn save(&self, out: &mut impl ByteSink) {
        let QuoteSide { ticks, size, portion, taken, varied } = self;
        ticks.encode(out);
        size.encode(out);
        portion.encode(out);
        taken.encode(out);
        if let Some(varied) = varied {
            varied.save(out);
        }
    }

    /// Restores the state of a side that has its settings.
    pub(super) fn restore(&mut self, from: &mut ByteReader<'_>) -> Result<(), DecodeError> {
        self.ticks = Codec::decode(from)?;
        self.size = Codec::decode(from)?;
        self.portion = Codec::decode(from)?;
        self.taken = Codec::decode(from)?;
        self.varied.as_mut().map_or(Ok(()), |varied| varied.restore(from))
    }

    /// Adds the state of varied sizes to the digest.
    pub(super) fn fold(&self, sum: &mut impl ByteSink) {
        if let Some(varied) = &self.varied {
            varied.save(sum);
        }
    }
}

/// Returns the number of portions. The sizes of varied ones are added up one by one, so there are
/// at most [`QUOTE_LEVELS_MAX`].
fn portions(settings: &VenueSettings) -> u32 {
    let levels = match settings.quote_sizes {
        QuoteSizes::Equal => settings.quote_levels,
        QuoteSizes::Varied => settings.quote_levels.min(QUOTE_LEVELS_MAX),
    };
    match settings.slippage_ticks {
        0 => levels.min(1),
        _ => levels,
    }
}
