//! The portions of a quote: the shown size at its price, then further ones at worse prices.

use pitlane_engine::id::SecurityId;
use pitlane_engine::settings::QuoteSizes;
use pitlane_engine::terms::Side;

use super::Twin;
use super::market::TwinMarket;
use crate::dice;

/// Shown sizes of one side since the beginning, one for each change of that side of the quote.
#[derive(Clone, Debug, Default)]
pub struct ShownSizes {
    changes: u64,
    /// Average of the recent sizes times 32: each further size counts for a 32nd.
    average_times_32: i128,
}

impl ShownSizes {
    pub(super) fn push(&mut self, size: i64) {
        self.changes += 1;
        let counted = (size as i128).min(i64::MAX as i128 / 32);
        if counted > 0 && self.average_times_32 == 0 {
            self.average_times_32 = 32 * counted;
        } else if counted > 0 {
            self.average_times_32 += counted - self.average_times_32 / 32;
        }
    }
}

impl Twin {
    /// Returns the next portion of a quote: its price and its remaining size.
    pub(super) fn portion(&self, security: SecurityId, side: Side) -> Option<(i64, i64)> {
        self.portion_of(&self.markets[&security], security, side)
    }

    /// Returns the same for a copy of the market, by counting through all portions.
    pub(super) fn portion_of(
        &self,
        market: &TwinMarket,
        security: SecurityId,
        side: Side,
    ) -> Option<(i64, i64)> {
        let settings = self.venue_settings(security);
        let mut taken = market.consumed(side);
        let portions = if settings.slippage_ticks == 0 { 1 } else { settings.quote_levels as i64 };
        for portion in 0..portions {
            let (price, size) = self.whole_portion(market, security, side, portion)?;
            if taken < size {
                return Some((price, size - taken));
            }
            taken -= size;
        }
        None
    }

    /// Returns price and size of a portion, counted from zero, as if nothing had been taken.
    fn whole_portion(
        &self,
        market: &TwinMarket,
        security: SecurityId,
        side: Side,
        portion: i64,
    ) -> Option<(i64, i64)> {
        let settings = self.venue_settings(security);
        let (best, shown) = market.shown(side)?;
        let row = self.reference.security(security).expect("a known security");
        let family = self.reference.family_of(row);
        let (tick, lot) = (family.tick_size.raw(), family.lot_size.raw());
        let worse = portion * settings.slippage_ticks as i64 * tick;
        let (price, number) = match side {
            Side::Buy => (best - worse, 0),
            Side::Sell => (best + worse, 1),
        };
        if portion == 0 || settings.quote_sizes == QuoteSizes::Equal {
            return Some((price, shown));
        }
        let past = &market.shown_sizes[side as usize];
        let mut scale = 1;
        while scale * 2 * lot as i128 <= past.average_times_32 / 32 {
            scale *= 2;
        }
        let times = match portion {
            ..4 => 3,
            4..8 => 5,
            8.. => 7,
        };
        let key = dice::split_mix(settings.seed ^ dice::split_mix(2 * security.0 as u64 + number));
        let place = dice::split_mix(key ^ (price / tick) as u64);
        let epoch = (past.changes + place % 8) / 8;
        let drawn = dice::split_mix(place ^ epoch) as i128;
        let lots = 1 + drawn * scale * times / (1i128 << 64);
        Some((price, i64::try_from(lots * lot as i128).expect("runs use small numbers")))
    }
}
