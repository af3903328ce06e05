#![doc = include_str!("strategy/README.md")]

pub mod bars;
pub mod dispatcher;
pub mod context;
pub mod examples;
pub mod host;
pub mod registry;
pub mod remote_protocol;
pub mod lifecycle;
pub mod market;
pub mod orders;
pub mod parameters;
pub mod runner;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

pub use self::bars::Bar;
pub use self::context::{Context, Operation};
pub use self::orders::{OpenOrder, Refused, StrategyRequestKind};
use crate::command::Phase;
use crate::event::{Booking, OrderReport, Tick};
use crate::id::IntId;
use crate::reason::Reason;

/// What an author writes. Every method may stay as it is; one that answers with a [`Failure`] stops this strategy, and only
/// this one.
///
/// All that a strategy may do goes through the [`Context`]: it has no clock and no way to the platform of its own, so it
/// does the same over the same events wherever it runs.
pub trait Strategy: Send {
    /// It has entered a phase. In INIT it asks for securities, bars and timers.
    fn on_phase(&mut self, phase: Phase, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (phase, context);
        Ok(())
    }

    /// The market of a security it asked for; in PREFEED and RUNNING.
    fn on_tick(&mut self, tick: &Tick, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (tick, context);
        Ok(())
    }

    /// A bar it asked for is complete; in PREFEED and RUNNING, before the tick that ended it.
    fn on_bar(&mut self, bar: &Bar, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (bar, context);
        Ok(())
    }

    /// Something happened to an order of its own. `id` is the one it was submitted under, whatever it was modified to.
    fn on_order_status(
        &mut self,
        id: &IntId,
        report: &OrderReport,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let _ = (id, report, context);
        Ok(())
    }

    /// A request came to nothing: an order that could not be sent, a cancel or a modification that came too late.
    fn on_refused(&mut self, refused: &Refused, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (refused, context);
        Ok(())
    }

    /// A transaction in its name, also of orders that others sent for it. The context knows the position after it.
    fn on_transaction(&mut self, booking: &Booking, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (booking, context);
        Ok(())
    }

    /// An event of another strategy or of a client; the body is JSON.
    fn on_generic(&mut self, name: &str, body: &[u8], context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (name, body, context);
        Ok(())
    }

    /// A timer it set is due.
    fn on_timer(&mut self, timer: u32, context: &mut Context<'_>) -> Result<(), Failure> {
        let _ = (timer, context);
        Ok(())
    }
}

/// Why a strategy cannot go on, in words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(Cow<'static, str>);

impl Failure {
    pub fn new(text: impl Into<Cow<'static, str>>) -> Failure {
        Failure(text.into())
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// So that `?` works on what the context declines.
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
