//! Market maker: a bid and an ask around the middle of the market, moved with it and leaned against
//! its own position.
//!
//! | parameter | what |
//! |---|---|
//! | `qty` | size of each quote |
//! | `half_spread_ticks` | distance of each quote from the middle |
//! | `position_max` | largest position; the side that would exceed it is not quoted |
//! | `loss_max` | realised loss in a security at which it gives up; 0: never |

use super::super::context::Context;
use super::super::parameters::{BadParameter, FromParameters, Parameter, Parameters};
use super::super::{Failure, Strategy};
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::event::{Booking, OrderReport, Tick};
use pitlane_engine::id::{IntId, SecurityId};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, Side, Status};

/// The defaults are a small position and a bounded loss.
impl FromParameters for MarketMaker {
    const KIND: &'static str = "market-maker";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::with_default("qty", "1"),
        Parameter::with_default("half_spread_ticks", "2"),
        Parameter::with_default("position_max", "10"),
        Parameter::with_default("loss_max", "1000"),
    ];

    fn from_parameters(
        securities: &[SecurityId],
        parameters: &Parameters,
    ) -> Result<MarketMaker, BadParameter> {
        let settings = MarketMakerSettings {
            qty: parameters.qty("qty")?,
            half_spread_ticks: parameters.count("half_spread_ticks", 1..=1_000_000)? as i64,
            position_max: parameters.qty("position_max")?,
            loss_max: parameters.money("loss_max")?,
        };
        if settings.position_max < settings.qty {
            return Err(BadParameter::new("position_max", "it must not be below qty"));
        }
        Ok(MarketMaker::new(settings, securities))
    }
}

#[derive(Clone, Copy, Debug)]
struct MarketMakerSettings {
    qty: Qty,
    half_spread_ticks: i64,
    position_max: Qty,
    loss_max: Money,
}

/// See the module. A refused request is no problem: the next tick sends or moves the quote again.
#[derive(Debug)]
pub struct MarketMaker {
    settings: MarketMakerSettings,
    pairs: Vec<QuotePair>,
}

/// Its quotes in one security, by side.
#[derive(Debug)]
struct QuotePair {
    security: SecurityId,
    tick_size: Price,
    quotes: [Option<IntId>; 2],
}

impl MarketMaker {
    fn new(settings: MarketMakerSettings, securities: &[SecurityId]) -> MarketMaker {
        let pair = |security: &SecurityId| QuotePair {
            security: *security,
            tick_size: Price::ZERO,
            quotes: [None; 2],
        };
        MarketMaker { settings, pairs: securities.iter().map(pair).collect() }
    }
}

impl Strategy for MarketMaker {
    fn on_phase(&mut self, phase: StrategyPhase, context: &mut Context<'_>) -> Result<(), Failure> {
        match phase {
            StrategyPhase::Init => {
                for pair in &mut self.pairs {
                    let row = context.reference().security(pair.security).ok_or(Reason::UnknownSecurity)?;
                    pair.tick_size = context.reference().family_of(row).tick_size;
                    context.subscribe(pair.security)?;
                }
            }
            StrategyPhase::Stop => context.cancel_all(),
            StrategyPhase::Prefeed | StrategyPhase::Start | StrategyPhase::Running | StrategyPhase::Exit => {}
        }
        Ok(())
    }

    fn on_tick(&mut self, tick: &Tick, context: &mut Context<'_>) -> Result<(), Failure> {
        let is_quoted = tick.bid_size.is_positive() && tick.ask_size.is_positive();
        if context.phase() != StrategyPhase::Running || !is_quoted {
            return Ok(());
        }
        let settings = self.settings;
        let Some(pair) = self.pairs.iter_mut().find(|pair| pair.security == tick.security) else {
            return Ok(());
        };
        for side in Side::BOTH {
            pair.quote(side, tick, &settings, context)?;
        }
        Ok(())
    }

    fn on_order_status(
        &mut self,
        id: &IntId,
        report: &OrderReport,
        _: &mut Context<'_>,
    ) -> Result<(), Failure> {
        if report.status.is_finished() {
            self.forget(id);
        }
        Ok(())
    }

    fn on_transaction(&mut self, booking: &Booking, _: &mut Context<'_>) -> Result<(), Failure> {
        let loss = booking.position.realized.checked_neg().unwrap_or(Money::MAX);
        if self.settings.loss_max.is_positive() && loss > self.settings.loss_max {
            return Err(Failure::new(format!("the realised loss of {loss} is above loss_max")));
        }
        Ok(())
    }
}

impl MarketMaker {
    fn forget(&mut self, id: &IntId) {
        for quote in self.pairs.iter_mut().flat_map(|pair| &mut pair.quotes) {
            quote.take_if(|quoted| quoted == id);
        }
    }
}

impl QuotePair {
    /// Sends, moves or withdraws one of the two quotes.
    fn quote(
        &mut self,
        side: Side,
        tick: &Tick,
        settings: &MarketMakerSettings,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let held = context.position(self.security).qty;
        let fits =
            side.signed(held).checked_add(settings.qty).is_some_and(|after| after <= settings.position_max);
        let price = self.price(side, tick, held, settings).filter(|_| fits);
        let at = side as usize;
        let known = self.quotes[at].and_then(|id| context.order(&id).copied());
        match (known, price) {
            (None, Some(price)) => {
                self.quotes[at] = Some(context.limit(self.security, side, settings.qty, price)?);
            }
            (Some(order), Some(price)) if order.limit != price && is_settled(order.status) => {
                context.modify(&order.id, Changes::default().with_limit(price))?;
            }
            (Some(order), None) if is_settled(order.status) => context.cancel(&order.id)?,
            (Some(_), _) | (None, None) => {}
        }
        Ok(())
    }

    /// Returns the price: half a spread from the middle, and one tick further for each quote size
    /// of position that this side would add to.
    fn price(&self, side: Side, tick: &Tick, held: Qty, settings: &MarketMakerSettings) -> Option<Price> {
        let middle = tick.bid.raw().midpoint(tick.ask.raw()).div_euclid(self.tick_size.raw());
        let lean = held.raw() / settings.qty.raw();
        let ticks = match side {
            Side::Buy => middle - settings.half_spread_ticks,
            Side::Sell => middle + settings.half_spread_ticks,
        };
        let price = Price::from_ticks(ticks.checked_sub(lean)?, self.tick_size)?;
        // A passive quote does not cross the market, whose prices may lie between ticks.
        let size = self.tick_size.raw();
        let price = match side {
            Side::Buy => price.min(Price::from_ticks(tick.bid.raw().div_euclid(size), self.tick_size)?),
            Side::Sell => price.max(Price::from_ticks(-(-tick.ask.raw()).div_euclid(size), self.tick_size)?),
        };
        price.is_positive().then_some(price)
    }
}

/// Returns whether no request is pending.
fn is_settled(status: Status) -> bool {
    matches!(status, Status::New | Status::PartiallyFilled)
}
