#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::wildcard_enum_match_arm,
        reason = "the numbers of a test are small, and a test looks at one variant at a time"
    )
)]

pub mod bars;
pub mod dispatcher;
pub mod context;
pub mod detached;
pub mod examples;
pub mod host;
pub mod registry;
pub mod lifecycle;
pub mod market;
pub mod orders;
pub mod parameters;
pub mod prelude;
pub mod runner;
mod security_key;
pub mod testing;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

pub use self::bars::Bar;
pub use self::context::{Context, Operation};
pub use self::orders::{OpenOrder, Refused, StrategyRequestKind};
pub use self::parameters::{BadParameter, FromParameters, Parameter, Parameters};
pub use self::registry::{Registry, StrategyKind};
pub use self::security_key::SecurityKey;
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::event::{Booking, OrderReport, Tick};
use pitlane_engine::id::IntId;
use pitlane_engine::reason::Reason;

/// The interface that an author implements. Every method has a default; a method that returns a
/// [`Failure`] stops this strategy, and only this one.
///
/// A strategy acts only through the [`Context`]: it has no clock and no other access to the
/// platform, so it does the same over the same events wherever it runs.
pub trait Strategy: Send {
    /// Handles the entry into a phase. In INIT the strategy requests securities, bars and timers.
    fn on_phase(&mut self, phase: StrategyPhase, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (phase, context);
        Ok(())
    }

    /// Handles a tick of a subscribed security, in PREFEED and RUNNING.
    fn on_tick(&mut self, tick: &Tick, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (tick, context);
        Ok(())
    }

    /// Handles a completed bar, in PREFEED and RUNNING, before the tick that ended it.
    fn on_bar(&mut self, bar: &Bar, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (bar, context);
        Ok(())
    }

    /// Handles a report about an own order. `id` is the id under which it was submitted, regardless
    /// of modifications.
    fn on_order_status(
        &mut self,
        id: &IntId,
        report: &OrderReport,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let _ = (id, report, context);
        Ok(())
    }

    /// Handles a refused request: an order that could not be sent, a cancel or a modification that
    /// came too late.
    fn on_refused(&mut self, refused: &Refused, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (refused, context);
        Ok(())
    }

    /// Handles a transaction of the strategy, including those of orders that others sent for it.
    /// The context has the position after it.
    fn on_transaction(&mut self, booking: &Booking, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (booking, context);
        Ok(())
    }

    /// Handles an event of another strategy or of a client; the body is JSON.
    fn on_generic(&mut self, name: &str, body: &[u8], context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (name, body, context);
        Ok(())
    }

    /// Handles a due timer.
    fn on_timer(&mut self, timer: u32, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (timer, context);
        Ok(())
    }
}

/// Reason why a strategy cannot continue, as text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(Cow<'static, str>);

impl Failure {
    /// Creates a failure with a reason.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Failure {
        Failure(text.into())
    }

    /// Returns the reason.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Allows `?` on reasons that the context returns.
impl From<Reason> for Failure {
    fn from(reason: Reason) -> Failure {
        Failure(Cow::Borrowed(reason.text()))
    }
}

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Failure {
        Failure(Cow::Borrowed(text))
    }
}
