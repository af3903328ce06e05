//! Fees of fills. The venue charges them in the asset that is received, or in a third one such as
//! BNB, and reports them with each trade.

use std::collections::BTreeSet;

use pitlane_engine::command::{ExecRef, VenueFee, VenueReport};
use pitlane_engine::id::Currency;
use pitlane_engine::number::{Money, Price, Qty};

use super::session::BinanceSession;

/// Assets in which fees are booked: each gives the strategies a balance. The venue charges two for
/// each symbol and some more; fees in others are not booked.
pub const FEE_ASSETS_MAX: usize = 1_024;

/// Longest name of an asset in a message.
const ASSET_CHARS_MAX: usize = 32;

/// The assets in which the venue has charged fees.
#[derive(Debug, Default)]
pub(super) struct FeeAssets {
    seen: BTreeSet<Currency>,
}

impl FeeAssets {
    /// Returns the fee of a trade, or why it cannot be booked.
    fn fee(&mut self, amount: &str, asset: Option<&str>) -> Result<VenueFee, String> {
        let asset = asset.unwrap_or_default();
        let shown = || {
            let name: String = asset.chars().take(ASSET_CHARS_MAX).collect();
            format!("a fee in the asset {name:?} is not booked, but the commission of the family is")
        };
        let amount = Money::parse(amount.as_bytes()).map_err(|_| shown())?;
        if amount.is_zero() {
            return Ok(VenueFee::default());
        }
        let currency = Currency::parse(asset.as_bytes()).map_err(|_| shown())?;
        if !self.seen.contains(&currency) && self.seen.len() >= FEE_ASSETS_MAX {
            return Err(shown());
        }
        self.seen.insert(currency);
        Ok(VenueFee { amount, currency })
    }
}

/// Execution of a trade, with the filled quantity of its order.
#[derive(Clone, Copy, Debug)]
pub(super) struct TradeValues {
    pub exec: ExecRef,
    pub qty: Qty,
    pub price: Price,
    pub cum: Qty,
}

impl BinanceSession {
    /// Returns the report of a trade with its fee.
    pub(super) fn fill_report(
        &mut self,
        trade: TradeValues,
        commission: &str,
        asset: Option<&str>,
    ) -> VenueReport {
        let TradeValues { exec, qty, price, cum } = trade;
        match self.fee_assets.fee(commission, asset) {
            Ok(fee) => VenueReport::FilledWithFee { exec, qty, price, cum, fee },
            Err(problem) => {
                self.counts.incomplete += 1;
                self.record_error(problem);
                VenueReport::FilledTo { exec, qty, price, cum }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fee_has_an_amount_and_an_asset() {
        let mut assets = FeeAssets::default();
        let fee = assets.fee("0.00007500", Some("BNB")).unwrap();
        assert_eq!((fee.amount.to_string(), fee.currency.as_str()), ("0.000075".into(), "BNB"));
        assert_eq!(assets.fee("0", None), Ok(VenueFee::default()));
        for (amount, asset) in [("1", None), ("1", Some("1000000MOG")), ("x", Some("BNB")), ("", Some("BNB"))]
        {
            assert!(assets.fee(amount, asset).unwrap_err().contains("is not booked"), "{amount} {asset:?}");
        }
        let long = "x".repeat(1_000);
        assert!(assets.fee("1", Some(&long)).unwrap_err().len() < 200);
    }

    #[test]
    fn the_number_of_assets_is_bounded() {
        let mut assets = FeeAssets::default();
        for number in 0..FEE_ASSETS_MAX {
            assert!(assets.fee("1", Some(&format!("{number:04}"))).is_ok());
        }
        assert!(assets.fee("1", Some("BNB")).is_err());
        assert!(assets.fee("1", Some("0007")).is_ok(), "it is known");
    }
}
