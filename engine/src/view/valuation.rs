//! Values of positions and cash. They are computed on request, never stored. A value that cannot be
//! counted is absent, and one that cannot be converted is named.

use std::collections::BTreeMap;

use super::{PositionView, View};
use crate::id::{Currency, SecurityId, StrategyId};
use crate::number::{ContractSize, Money, Notional, Price, Qty};
use crate::refdata::RefData;
use crate::terms::Side;

/// A position at market prices, in the currency of its security.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Valuation {
    pub currency: Currency,
    /// Average price paid per unit; `None` when flat.
    pub avg_price: Option<Price>,
    /// Bid for a long position, ask for a short one, last price where there is no quote or no
    /// position; `None` without any.
    pub market_price: Option<Price>,
    pub market_value: Option<Money>,
    pub unrealized: Option<Money>,
}

/// Assets of one or all strategies, in the base currency, and before conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portfolio {
    pub base: Currency,
    /// Cash plus market value: the proceeds of selling everything. `None` if it cannot be counted.
    pub net_liquidation: Option<Money>,
    pub cash: Option<Money>,
    pub market_value: Option<Money>,
    pub realized: Option<Money>,
    pub unrealized: Option<Money>,
    /// By currency.
    pub holdings: Vec<Holding>,
    /// Assets that these values do not include.
    pub missing: Vec<Missing>,
}

/// Assets in one currency. An amount that cannot be counted is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    pub currency: Currency,
    pub cash: Option<Money>,
    pub market_value: Option<Money>,
    pub realized: Option<Money>,
    pub unrealized: Option<Money>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// There is a position without a price.
    Price(SecurityId),
    /// There is a position in a security that the reference data do not know.
    Reference(SecurityId),
    /// There is no currency pair with a price between this currency and the base.
    Rate(Currency),
    /// The amounts of this currency cannot be counted, so the sums are absent.
    TooLarge(Currency),
}

impl View {
    /// Returns a position at market prices; `None` if the reference data do not know its security.
    pub fn valuation(&self, position: &PositionView, reference: &RefData) -> Option<Valuation> {
        let security = reference.security(position.id.security())?;
        let family = reference.family_of(security);
        let state = position.state;
        let market_price = self.market_price(security.id, state.qty);
        let market_value = match state.qty.is_zero() {
            true => Some(Money::ZERO),
            false => {
                market_price.and_then(|price| Notional::of(price, state.qty).money(family.contract_size))
            }
        };
        Some(Valuation {
            currency: family.currency,
            avg_price: state.cost.per(state.qty, family.contract_size),
            market_price,
            market_value,
            unrealized: market_value.and_then(|value| value.checked_sub(state.cost)),
        })
    }

    /// Returns the assets of a strategy (or, with `None`, of all), in the base currency.
    pub fn portfolio(&self, strategy: Option<StrategyId>, base: Currency, reference: &RefData) -> Portfolio {
        self.portfolio_of(|of| strategy.is_none_or(|strategy| strategy == of), base, reference)
    }

    /// Returns the assets of the selected strategies together.
    pub fn portfolio_of(
        &self,
        wanted: impl Fn(StrategyId) -> bool,
        base: Currency,
        reference: &RefData,
    ) -> Portfolio {
        let (sums, mut missing) = self.holdings(wanted, reference);
        let mut total = Sums::default();
        let mut counted = true;
        for (&currency, sums) in sums.iter().filter(|(_, sums)| !sums.is_zero()) {
            let Some(rate) = self.rate(currency, base, sums.net(), reference) else {
                missing.push(Missing::Rate(currency));
                continue;
            };
            match sums.converted(rate) {
                Some(converted) => total.add(&converted),
                None => {
                    counted = false;
                    missing.push(Missing::TooLarge(currency));
                }
            }
        }
        let amount = |sum: i128| counted.then(|| narrow(sum)).flatten();
        missing.sort_unstable();
        Portfolio {
            base,
            net_liquidation: amount(total.net()),
            cash: amount(total.cash),
            market_value: amount(total.market_value),
            realized: amount(total.realized),
            unrealized: amount(total.unrealized),
            holdings: sums.iter().map(|(&currency, sums)| sums.holding(currency)).collect(),
            missing,
        }
    }

    /// Converts an amount to another currency at the current prices, at the worse side of the
    /// quote; `None` without a rate, or if the result cannot be counted.
    pub fn convert(&self, amount: Money, from: Currency, to: Currency, reference: &RefData) -> Option<Money> {
        let amount = amount.raw() as i128;
        narrow(self.rate(from, to, amount, reference)?.convert(amount)?)
    }

    pub(super) fn market_price(&self, security: SecurityId, qty: Qty) -> Option<Price> {
        match qty.raw() {
            0 => self.tick(security).filter(|tick| tick.traded).map(|tick| tick.last),
            1.. => self.price_for(security, Side::Sell),
            _ => self.price_for(security, Side::Buy),
        }
    }

    fn holdings(
        &self,
        wanted: impl Fn(StrategyId) -> bool,
        reference: &RefData,
    ) -> (BTreeMap<Currency, Sums>, Vec<Missing>) {
        let mut sums: BTreeMap<Currency, Sums> = BTreeMap::new();
        let mut missing = Vec::new();
        for ((_, currency, _), part) in self.ledger.cash_parts().filter(|((of, _, _), _)| wanted(*of)) {
            sums.entry(currency).or_default().cash += part.raw() as i128;
        }
        for position in self.positions().filter(|position| wanted(position.id.strategy())) {
            let security = position.id.security();
            let Some(valuation) = self.valuation(&position, reference) else {
                missing.push(Missing::Reference(security));
                continue;
            };
            let sum = sums.entry(valuation.currency).or_default();
            sum.realized += position.state.realized.raw() as i128;
            match (valuation.market_value, valuation.market_price) {
                (Some(value), _) => {
                    sum.market_value += value.raw() as i128;
                    sum.unrealized += value.raw() as i128 - position.state.cost.raw() as i128;
                }
                (None, None) => missing.push(Missing::Price(security)),
                (None, Some(_)) => sum.too_large = true,
            }
        }
        missing.dedup();
        (sums, missing)
    }

    /// Returns the rate from one currency to another: by the pair that sells it, or by the one that
    /// buys the other with it; of several the lowest security with a price. Both a holder and a
    /// debtor of the currency get the worse side of the quote.
    fn rate(
        &self,
        from: Currency,
        to: Currency,
        amount: i128,
        reference: &RefData,
    ) -> Option<ConversionRate> {
        if from == to {
            return Some(ConversionRate::Same);
        }
        let (sell, buy) = if amount < 0 { (Side::Buy, Side::Sell) } else { (Side::Sell, Side::Buy) };
        reference.securities().iter().find_map(|pair| {
            let quoted = reference.family_of(pair).currency;
            let price = |side| self.price_for(pair.id, side).filter(|price| price.is_positive());
            match (pair.base_currency?, quoted) {
                (base, quoted) if (base, quoted) == (from, to) => price(sell).map(ConversionRate::Times),
                (base, quoted) if (base, quoted) == (to, from) => price(buy).map(ConversionRate::Divided),
                _ => None,
            }
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum ConversionRate {
    Same,
    Times(Price),
    Divided(Price),
}

impl ConversionRate {
    fn convert(self, amount: i128) -> Option<i128> {
        let amount = narrow(amount)?;
        let converted = match self {
            ConversionRate::Same => amount,
            ConversionRate::Times(price) => {
                Notional::of(price, Qty::from_raw(amount.raw())).money(ContractSize::ONE)?
            }
            ConversionRate::Divided(price) => {
                let units = amount.per(Qty::from_raw(price.raw()), ContractSize::ONE)?;
                Money::from_raw(units.raw())
            }
        };
        Some(converted.raw() as i128)
    }
}

/// Sums of money in units of 10⁻⁸. 128 bits hold more amounts than there can be.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    cash: i128,
    market_value: i128,
    realized: i128,
    unrealized: i128,
    /// The value of a position does not fit.
    too_large: bool,
}

impl Sums {
    fn net(&self) -> i128 {
        self.cash + self.market_value
    }

    fn is_zero(&self) -> bool {
        let Sums { cash, market_value, realized, unrealized, too_large } = *self;
        !too_large && [cash, market_value, realized, unrealized] == [0; 4]
    }

    fn add(&mut self, other: &Sums) {
        self.cash += other.cash;
        self.market_value += other.market_value;
        self.realized += other.realized;
        self.unrealized += other.unrealized;
    }

    fn converted(&self, rate: ConversionRate) -> Option<Sums> {
        if self.too_large {
            return None;
        }
        Some(Sums {
            cash: rate.convert(self.cash)?,
            market_value: rate.convert(self.market_value)?,
            realized: rate.convert(self.realized)?,
            unrealized: rate.convert(self.unrealized)?,
            too_large: false,
        })
    }

    fn holding(&self, currency: Currency) -> Holding {
        let valued = |sum: i128| if self.too_large { None } else { narrow(sum) };
        Holding {
            currency,
            cash: narrow(self.cash),
            market_value: valued(self.market_value),
            realized: narrow(self.realized),
            unrealized: valued(self.unrealized),
        }
    }
}

fn narrow(sum: i128) -> Option<Money> {
    i64::try_from(sum).ok().map(Money::from_raw)
}
