//! Profit of a trading day before and after fees.

use std::collections::BTreeMap;

use pitlane_engine::id::{Currency, StrategyId};
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Day;
use pitlane_engine::view::DayResult;
use serde::Serialize;
use utoipa::ToSchema;

use super::Decimal;

/// Profit of a trading day: of all strategies, of each, and of each in each security.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfitVO {
    /// Absent before the first trading day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trading_day: Option<String>,
    pub base_currency: String,
    pub total: ProfitSumVO,
    pub strategies: Vec<ProfitSumVO>,
    pub rows: Vec<ProfitRowVO>,
}

/// Sum of a trading day that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfitDayVO {
    pub trading_day: String,
    pub base_currency: String,
    pub total: ProfitSumVO,
}

/// A sum in the base currency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfitSumVO {
    /// Absent: all strategies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<String>,
    /// Without fees, realised or not. Absent if it overflows, like the others.
    #[serde(rename = "grossPL", skip_serializing_if = "Option::is_none")]
    pub gross_pl: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fees: Option<Decimal>,
    #[serde(rename = "netPL", skip_serializing_if = "Option::is_none")]
    pub net_pl: Option<Decimal>,
    /// Rows that the sums leave out: their amount or their exchange rate is unknown.
    pub missing: u32,
}

/// Profit of one strategy in one security, in the currency of the security.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfitRowVO {
    pub strategy_id: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<String>,
    pub security_id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    pub currency: String,
    /// Quantity that is held now, or was when the day ended: above zero long, below zero short.
    pub quantity: Decimal,
    /// Trades of the day.
    pub trades: u64,
    /// Without fees, realised or not. Absent without a price of now or of the day before, or if the
    /// service no longer has all trades of the day.
    #[serde(rename = "grossPL", skip_serializing_if = "Option::is_none")]
    pub gross_pl: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fees: Option<Decimal>,
    #[serde(rename = "netPL", skip_serializing_if = "Option::is_none")]
    pub net_pl: Option<Decimal>,
}

/// The result of one strategy in one security, also in the base currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvertedResult {
    pub result: DayResult,
    /// Gross profit and fees; `None` if an amount or its exchange rate is unknown.
    pub base: Option<(Money, Money)>,
}

/// Sums in units of 10⁻⁸ of the base currency. 128 bits hold more amounts than there can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfitSums {
    pub gross: i128,
    pub fees: i128,
    /// Amounts that were unknown and are left out.
    pub missing: u32,
}

impl ProfitSums {
    /// Adds gross profit and fees; `None` if one of them is unknown.
    pub fn add(&mut self, amounts: Option<(Money, Money)>) {
        match amounts {
            Some((gross, fees)) => {
                self.gross += gross.raw() as i128;
                self.fees += fees.raw() as i128;
            }
            None => self.missing += 1,
        }
    }

    /// Returns the profit after fees.
    pub fn net(&self) -> i128 {
        self.gross - self.fees
    }

    fn vo(&self, strategy_name: Option<String>) -> ProfitSumVO {
        let amount = |sum: i128| i64::try_from(sum).ok().map(|raw| Decimal::from(Money::from_raw(raw)));
        ProfitSumVO {
            strategy_name,
            gross_pl: amount(self.gross),
            fees: amount(self.fees),
            net_pl: amount(self.net()),
            missing: self.missing,
        }
    }
}

impl ProfitVO {
    pub fn of(
        day: Option<Day>,
        results: &[ConvertedResult],
        base: Currency,
        reference: &RefData,
    ) -> ProfitVO {
        let mut strategies: BTreeMap<StrategyId, ProfitSums> = BTreeMap::new();
        for row in results {
            strategies.entry(row.result.strategy).or_default().add(row.base);
        }
        let name = |id: StrategyId| reference.strategy(id).map(|row| row.name.clone());
        ProfitVO {
            trading_day: day.map(|day| day.to_string()),
            base_currency: base.to_string(),
            total: total(results),
            strategies: strategies.iter().map(|(id, sums)| sums.vo(name(*id))).collect(),
            rows: results.iter().map(|row| ProfitRowVO::of(&row.result, reference)).collect(),
        }
    }
}

impl ProfitDayVO {
    pub fn of<'r>(
        day: Day,
        results: impl IntoIterator<Item = &'r ConvertedResult>,
        base: Currency,
    ) -> ProfitDayVO {
        ProfitDayVO { trading_day: day.to_string(), base_currency: base.to_string(), total: total(results) }
    }
}

fn total<'r>(results: impl IntoIterator<Item = &'r ConvertedResult>) -> ProfitSumVO {
    let mut total = ProfitSums::default();
    results.into_iter().for_each(|row| total.add(row.base));
    total.vo(None)
}

impl ProfitRowVO {
    fn of(result: &DayResult, reference: &RefData) -> ProfitRowVO {
        ProfitRowVO {
            strategy_id: result.strategy.0,
            strategy_name: reference.strategy(result.strategy).map(|row| row.name.clone()),
            security_id: result.security.0,
            symbol: reference.security(result.security).map(|row| row.symbol.clone()),
            currency: result.currency.to_string(),
            quantity: result.qty.into(),
            trades: result.trades,
            gross_pl: result.gross.map(Decimal::from),
            fees: result.fees.map(Decimal::from),
            net_pl: result.net.map(Decimal::from),
        }
    }
}
