//! Mean reversion: buys when the price is well below its average, and sells when it is back.
//!
//! | parameter | what |
//! |---|---|
//! | `ticks` | length of the average; no order is sent before so many ticks |
//! | `distance_bp` | distance below the average at which it buys, in hundredths of a percent |
//! | `qty` | size of the position |

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::event::{OrderReport, Tick};
use pitlane_engine::id::{IntId, SecurityId};
use pitlane_engine::number::Qty;
use pitlane_engine::terms::{Side, Status};
use pitlane_strategy::host::StrategyFactory;
use pitlane_strategy::parameters::{BadParameter, Parameters};
use pitlane_strategy::{Context, Failure, Strategy};

/// One in hundredths of a percent.
const ONE_BP: i128 = 10_000;

/// Checks the parameters and returns a factory, which creates the strategy at each start.
pub fn make(securities: &[SecurityId], parameters: &Parameters) -> Result<StrategyFactory, BadParameter> {
    parameters.only(&["ticks", "distance_bp", "qty"])?;
    let ticks = parameters.count("ticks", 2..=1_000_000)?;
    let distance_bp = parameters.count("distance_bp", 1..=5_000)?;
    let qty = parameters.qty("qty")?;
    let securities = securities.to_vec();
    Ok(Box::new(move || {
        let average = |security: &SecurityId| Average { security: *security, seen: 0, scaled: 0 };
        let averages = securities.iter().map(average).collect();
        Box::new(MeanReversion { ticks, distance_bp, qty, averages })
    }))
}

struct MeanReversion {
    ticks: u64,
    distance_bp: u64,
    qty: Qty,
    averages: Vec<Average>,
}

/// Exponential average of the mid prices of one security, in integers.
struct Average {
    security: SecurityId,
    seen: u64,
    /// The average times the number of ticks that it covers.
    scaled: i128,
}

impl Average {
    /// Adds a price. Returns how far it is from the average, in hundredths of a percent; `None`
    /// until there are enough prices.
    fn add(&mut self, price: i128, ticks: u64) -> Option<i128> {
        if self.seen < ticks {
            self.seen += 1;
            self.scaled += price;
        } else {
            self.scaled += price - self.scaled / i128::from(ticks);
        }
        let average = self.scaled / i128::from(self.seen);
        (self.seen == ticks && average > 0).then(|| (price - average) * ONE_BP / average)
    }
}

impl Strategy for MeanReversion {
    fn on_phase(&mut self, phase: StrategyPhase, context: &mut Context<'_>) -> Result<(), Failure> {
        match phase {
            StrategyPhase::Init => {
                for average in &self.averages {
                    context.subscribe(average.security)?;
                }
            }
            StrategyPhase::Stop => context.cancel_all(),
            StrategyPhase::Prefeed | StrategyPhase::Start | StrategyPhase::Running | StrategyPhase::Exit => {}
        }
        Ok(())
    }

    fn on_tick(&mut self, tick: &Tick, context: &mut Context<'_>) -> Result<(), Failure> {
        if !tick.bid_size.is_positive() || !tick.ask_size.is_positive() {
            return Ok(());
        }
        let mid = (i128::from(tick.bid.raw()) + i128::from(tick.ask.raw())) / 2;
        let Some(average) = self.averages.iter_mut().find(|average| average.security == tick.security) else {
            return Ok(());
        };
        // In PREFEED it collects prices; only in RUNNING may it trade.
        let Some(distance_bp) = average.add(mid, self.ticks) else { return Ok(()) };
        let is_busy = context.open_orders().iter().any(|order| order.security == tick.security);
        if is_busy || context.phase() != StrategyPhase::Running {
            return Ok(());
        }
        let held = context.position(tick.security).qty;
        if held.is_zero() && distance_bp <= -i128::from(self.distance_bp) {
            context.market(tick.security, Side::Buy, self.qty)?;
        } else if held.is_positive() && distance_bp >= 0 {
            context.market(tick.security, Side::Sell, held)?;
        }
        Ok(())
    }

    /// A strategy whose orders are rejected stops, because it does not know why.
    fn on_order_status(
        &mut self,
        id: &IntId,
        report: &OrderReport,
        _: &mut Context<'_>,
    ) -> Result<(), Failure> {
        if report.status == Status::Rejected {
            return Err(Failure::new(format!("order {id} was rejected: {}", report.reason.text())));
        }
        Ok(())
    }
}
