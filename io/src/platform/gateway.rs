//! A gateway's duty: the sources that live on its thread. One of the gateways also carries control, market and the demo
//! trader.
//!
//! In each round it hears first and speaks afterwards: a lane that is not emptied stops a shard.

use std::sync::Arc;

use pitlane_engine::mesh::{PortEnd, ShardMask};
use pitlane_engine::time::Timestamp;

use super::EVENTS_PER_POLL_MAX;
use super::control::Control;
use super::market::Market;
use super::trader::Trader;
use crate::stages::Recorder;
use crate::topology::bells::Bells;
use crate::topology::life::Course;

#[derive(Debug)]
pub struct Gateway {
    /// For the sessions of its sockets.
    port: PortEnd,
    pub control: Option<Control>,
    pub market: Option<Market>,
    pub trader: Option<Trader>,
    bells: Arc<Bells>,
    /// None: nothing is stamped.
    recorder: Option<Recorder>,
    /// Whether the last round found anything to hear.
    heard: bool,
}

impl Gateway {
    pub fn new(port: PortEnd, bells: Arc<Bells>, recorder: Option<Recorder>) -> Gateway {
        Gateway { port, control: None, market: None, trader: None, bells, recorder, heard: false }
    }

    /// Does a bounded amount of work and says how much.
    pub fn poll(&mut self, now: Timestamp, course: Course) -> usize {
        let heard = self.hear(now);
        self.heard = heard > 0;
        let said = if course <= Course::Closing { self.speak(now, course) } else { 0 };
        self.ring();
        if let Some(recorder) = &mut self.recorder {
            recorder.poll(now);
        }
        heard + said
    }

    fn hear(&mut self, now: Timestamp) -> usize {
        let mut heard = 0;
        while heard < EVENTS_PER_POLL_MAX && self.port.poll_event().is_some() {
            heard += 1;
        }
        let Gateway { control, market, trader, recorder, .. } = self;
        if let Some(control) = control {
            heard += control.hear(|security, on| {
                if let Some(market) = market.as_mut() {
                    market.set_on(security, on, now);
                }
            });
        }
        heard += market.as_mut().map_or(0, Market::hear);
        heard + trader.as_mut().map_or(0, |trader| trader.hear(recorder.as_mut()))
    }

    fn speak(&mut self, now: Timestamp, course: Course) -> usize {
        let is_open = course == Course::Open;
        let mut said = 0;
        if let Some(control) = &mut self.control {
            if course == Course::Closing {
                control.close();
            } else {
                let market = &mut self.market;
                said += control.poll(now, |exchange, session| {
                    if let Some(market) = market.as_mut() {
                        market.enter(exchange, session, now);
                    }
                });
            }
        }
        if let Some(market) = self.market.as_mut().filter(|_| is_open) {
            said += market.poll(now);
        }
        if let Some(trader) = &mut self.trader {
            said += trader.poll(now, is_open, self.recorder.as_ref());
        }
        said
    }

    /// Wakes the shards that were sent something.
    fn ring(&mut self) {
        let called = [
            self.port.take_called(),
            self.control.as_mut().map(Control::take_called).unwrap_or_default(),
            self.market.as_mut().map(Market::take_called).unwrap_or_default(),
            self.trader.as_mut().map(Trader::take_called).unwrap_or_default(),
        ];
        self.bells.wake_shards(called.into_iter().fold(ShardMask::default(), ShardMask::with));
    }

    pub fn is_done(&self, course: Course) -> bool {
        match course {
            Course::Opening => self.control.as_ref().is_none_or(Control::is_ready),
            Course::Open | Course::Draining => true,
            Course::Closing => self.trader.as_ref().is_none_or(|trader| !trader.is_waiting()),
            Course::Ended => !self.heard,
        }
    }

    /// Whether something waits for room.
    pub fn is_waiting(&self) -> bool {
        self.control.as_ref().is_some_and(Control::is_waiting)
            || self.market.as_ref().is_some_and(Market::is_waiting)
            || self.trader.as_ref().is_some_and(Trader::is_waiting)
    }

    pub fn deadline(&self, course: Course) -> Timestamp {
        let control = self.control.as_ref().map_or(Timestamp::MAX, Control::deadline);
        let stages = self.recorder.as_ref().map_or(Timestamp::MAX, Recorder::deadline);
        let mut deadline = control.min(stages);
        if course == Course::Open {
            let market = self.market.as_ref().map_or(Timestamp::MAX, Market::deadline);
            let trader = self.trader.as_ref().map_or(Timestamp::MAX, Trader::deadline);
            deadline = deadline.min(market).min(trader);
        }
        deadline
    }
}
