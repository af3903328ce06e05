//! Buys when the price has fallen, and sells when it has risen by as much.

use pitlane_strategy::prelude::*;

pub(crate) struct BuyTheDip {
    security: SecurityId,
    dip: Price,
    qty: Qty,
    /// The highest bid since the last sale; while it holds shares, the price it paid.
    mark: Price,
}

impl FromParameters for BuyTheDip {
    const KIND: &'static str = "buy-the-dip";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter::required("dip"), Parameter::with_default("qty", "10")];

    fn from_parameters(securities: &[SecurityId], parameters: &Parameters) -> Result<Self, BadParameter> {
        let &[security] = securities else { return Err(BadParameter::securities("it trades one security")) };
        let (dip, qty) = (parameters.price("dip")?, parameters.qty("qty")?);
        Ok(BuyTheDip { security, dip, qty, mark: Price::ZERO })
    }
}

impl Strategy for BuyTheDip {
    fn on_phase(&mut self, phase: StrategyPhase, context: &mut Context<'_>) -> Result<(), Failure> {
        if phase == StrategyPhase::Init {
            context.subscribe(self.security)?;
        }
        Ok(())
    }

    fn on_tick(&mut self, tick: &Tick, context: &mut Context<'_>) -> Result<(), Failure> {
        if !context.is_running() || !tick.is_quoted() || context.has_open_order(self.security) {
            return Ok(());
        }
        let held = context.position(self.security).qty;
        if held.is_positive() && tick.bid.checked_sub(self.mark) >= Some(self.dip) {
            context.sell(self.security, held)?;
            self.mark = tick.bid;
        } else if held.is_zero() && self.mark.checked_sub(tick.ask) >= Some(self.dip) {
            context.buy(self.security, self.qty)?;
            self.mark = tick.ask;
        } else if held.is_zero() {
            self.mark = self.mark.max(tick.bid);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pitlane_strategy::testing::TestMarket;

    use super::*;

    #[test]
    fn it_buys_ten_after_a_fall_and_sells_them_after_a_rise() {
        let mut market = TestMarket::with::<BuyTheDip>(&[("dip", "0.50")]).expect("the parameters are valid");
        market.quote("10.00", "10.01");
        market.quote("9.60", "9.61");
        assert!(market.take_orders().is_empty(), "it fell by 39 cents only");
        market.quote("9.49", "9.50");
        market.quote("9.90", "9.91");
        market.quote("10.00", "10.01");
        let fills = market.take_fills();
        let fills: Vec<_> = fills.iter().map(|fill| (fill.qty.to_string(), fill.price.to_string())).collect();
        assert_eq!(fills, [("10".into(), "9.5".into()), ("-10".into(), "10".into())]);
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        let bad = TestMarket::with::<BuyTheDip>(&[("dip", "-1")]).expect_err("a dip is above zero");
        assert_eq!(bad.to_string(), "dip: it must be a price above zero");
    }
}
