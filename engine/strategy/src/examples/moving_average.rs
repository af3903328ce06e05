//! Moving-average cross: long while the average of the last few prices is above that of many, flat
//! or short while it is below.
//!
//! | parameter | what |
//! |---|---|
//! | `fast`, `slow` | prices in each average; fewer in the first |
//! | `bar_s` | prices are the closes of bars of so many seconds; 0: every tick is a price |
//! | `qty` | size of the position |
//! | `short` | whether it goes short below, or only flat |

use super::super::bars::{Bar, price_of};
use super::super::context::Context;
use super::super::parameters::{BadParameter, FromParameters, Parameter, Parameters};
use super::super::{Failure, Strategy};
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::event::{OrderReport, Tick};
use pitlane_engine::id::{IntId, SecurityId};
use pitlane_engine::index::index_usize;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::{Side, Status};
use pitlane_engine::time::NS_PER_S;

/// The defaults are a small position, and never a short one.
impl FromParameters for MovingAverage {
    const KIND: &'static str = "moving-average-cross";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::with_default("fast", "20"),
        Parameter::with_default("slow", "100"),
        Parameter::with_default("bar_s", "1"),
        Parameter::with_default("qty", "1"),
        Parameter::with_default("short", "false"),
    ];

    fn from_parameters(
        securities: &[SecurityId],
        parameters: &Parameters,
    ) -> Result<MovingAverage, BadParameter> {
        let settings = MovingAverageSettings {
            fast: index_usize(parameters.count("fast", 1..=100_000)?),
            slow: index_usize(parameters.count("slow", 2..=1_000_000)?),
            bar_ns: parameters.count("bar_s", 0..=86_400)? * NS_PER_S,
            qty: parameters.qty("qty")?,
            short: parameters.flag("short")?,
        };
        if settings.fast >= settings.slow {
            return Err(BadParameter::new("fast", "it must be below slow"));
        }
        Ok(MovingAverage::new(settings, securities))
    }
}

#[derive(Clone, Copy, Debug)]
struct MovingAverageSettings {
    fast: usize,
    slow: usize,
    bar_ns: u64,
    qty: Qty,
    short: bool,
}

/// See the module.
#[derive(Debug)]
pub struct MovingAverage {
    settings: MovingAverageSettings,
    series: Vec<PriceSeries>,
}

/// One security: its last prices, and the sums of them.
#[derive(Debug)]
struct PriceSeries {
    security: SecurityId,
    /// A ring of the last `slow` prices.
    prices: Vec<i64>,
    next: usize,
    fast_sum: i128,
    slow_sum: i128,
    /// Whether the fast average was above at the last price; None before there are enough.
    above: Option<bool>,
}

impl MovingAverage {
    fn new(settings: MovingAverageSettings, securities: &[SecurityId]) -> MovingAverage {
        let line = |security: &SecurityId| PriceSeries {
            security: *security,
            prices: Vec::with_capacity(settings.slow),
            next: 0,
            fast_sum: 0,
            slow_sum: 0,
            above: None,
        };
        MovingAverage { settings, series: securities.iter().map(line).collect() }
    }

    fn price(
        &mut self,
        security: SecurityId,
        price: Price,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let settings = self.settings;
        let Some(line) = self.series.iter_mut().find(|line| line.security == security) else { return Ok(()) };
        let Some(above) = line.add(price.raw(), &settings) else { return Ok(()) };
        if line.above.replace(above) == Some(above) || context.phase() != StrategyPhase::Running {
            return Ok(());
        }
        settings.trade(security, above, context)
    }
}

impl MovingAverageSettings {
    /// Moves the position to its target. While an order is open it waits for the next cross.
    fn trade(&self, security: SecurityId, above: bool, context: &mut Context<'_>) -> Result<(), Failure> {
        if context.open_orders().iter().any(|order| order.security == security) {
            return Ok(());
        }
        let target = match (above, self.short) {
            (true, _) => self.qty.raw(),
            (false, true) => -self.qty.raw(),
            (false, false) => 0,
        };
        let missing = target - context.position(security).qty.raw();
        let side = if missing > 0 { Side::Buy } else { Side::Sell };
        if missing != 0 {
            context.market(security, side, Qty::from_raw(missing.abs()))?;
        }
        Ok(())
    }
}

impl PriceSeries {
    /// Adds a price and returns whether the fast average is above the slow one; `None` while there
    /// are too few prices.
    fn add(&mut self, price: i64, settings: &MovingAverageSettings) -> Option<bool> {
        let MovingAverageSettings { fast, slow, .. } = *settings;
        if self.prices.len() < slow {
            self.prices.push(price);
        } else {
            self.slow_sum -= self.prices[self.next] as i128;
            self.prices[self.next] = price;
        }
        self.slow_sum += price as i128;
        self.fast_sum += price as i128;
        let leaves = self.next + slow - fast;
        let leaves = if leaves >= slow { leaves - slow } else { leaves };
        if let Some(old) = self.prices.get(leaves).filter(|_| self.prices.len() > fast) {
            self.fast_sum -= *old as i128;
        }
        self.next = if self.next + 1 == slow { 0 } else { self.next + 1 };
        let is_full = self.prices.len() == slow;
        // Compares sums instead of averages, without a division.
        is_full.then(|| self.fast_sum * slow as i128 > self.slow_sum * fast as i128)
    }
}

impl Strategy for MovingAverage {
    fn on_phase(&mut self, phase: StrategyPhase, context: &mut Context<'_>) -> Result<(), Failure> {
        match phase {
            StrategyPhase::Init => {
                for line in &self.series {
                    match self.settings.bar_ns {
                        0 => context.subscribe(line.security)?,
                        bar_ns => context.subscribe_bars(line.security, bar_ns)?,
                    }
                }
            }
            StrategyPhase::Stop => context.cancel_all(),
            StrategyPhase::Prefeed | StrategyPhase::Start | StrategyPhase::Running | StrategyPhase::Exit => {}
        }
        Ok(())
    }

    fn on_tick(&mut self, tick: &Tick, context: &mut Context<'_>) -> Result<(), Failure> {
        match price_of(tick) {
            Some(price) if self.settings.bar_ns == 0 => self.price(tick.security, price, context),
            _ => Ok(()),
        }
    }

    fn on_bar(&mut self, bar: &Bar, context: &mut Context<'_>) -> Result<(), Failure> {
        self.price(bar.security, bar.close, context)
    }

    /// A strategy whose orders are rejected does not know its position: it stops rather
    /// than guess.
    fn on_order_status(
        &mut self,
        _: &IntId,
        report: &OrderReport,
        _: &mut Context<'_>,
    ) -> Result<(), Failure> {
        if report.status == Status::Rejected {
            return Err(Failure::new(format!("order {} was rejected: {}", report.id, report.reason.text())));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn averages_are_those_of_the_last_prices() {
        let settings =
            MovingAverageSettings { fast: 2, slow: 5, bar_ns: 0, qty: Qty::from_raw(1), short: false };
        let mut strategy = MovingAverage::new(settings, &[SecurityId(1)]);
        let line = &mut strategy.series[0];
        let prices = [5, 9, -3, 7, 7, 2, 8, 8, 1, 0, 0, 4, 100, 3, 3, 3, 3];
        for (at, price) in prices.into_iter().enumerate() {
            let above = line.add(price, &settings);
            let last = |count: usize| prices[(at + 1).saturating_sub(count)..=at].iter().sum::<i64>() as i128;
            assert_eq!((line.fast_sum, line.slow_sum), (last(2), last(5)), "{at}");
            let expected = (at >= 4).then(|| last(2) * 5 > last(5) * 2);
            assert_eq!(above, expected, "{at}");
        }
    }

    #[test]
    fn an_error_in_a_parameter_is_named() {
        let make_with = |fast: &str, extra: &str| {
            let texts = [
                ("fast", fast),
                ("slow", "5"),
                ("bar_s", "0"),
                ("qty", "10"),
                ("short", "true"),
                (extra, "1"),
            ];
            let texts = texts.into_iter().filter(|(name, _)| !name.is_empty());
            let texts = texts.map(|(name, text)| (name.to_string(), text.to_string())).collect();
            let registry = Registry::with_examples();
            let kind = registry.find(MovingAverage::KIND).unwrap();
            kind.make(&[], &Parameters::new(texts)).err().map(|bad| bad.name)
        };
        assert_eq!(make_with("2", ""), None);
        assert_eq!(make_with("5", "").as_deref(), Some("fast"));
        assert_eq!(make_with("x", "").as_deref(), Some("fast"));
        assert_eq!(make_with("2", "slwo").as_deref(), Some("slwo"));
    }
}
