//! A platform in one thread: the shards' workers, the feed, a desk with its trader and the view, stepped in turn.
//!
//! ```text
//!            ┌── Control ──► workers ──► View, Control, and whoever listens
//!   poll ────┼── Market ───►    │
//!            └── Desk ─────►    └──────► Desk ◄── Demo
//! ```
//!
//! It is told the time, so it runs on the real clock as on a virtual one.

mod control;
mod market;

use std::sync::Arc;

use pitlane_engine::desk::{Desk, DeskSettings, IdBlock};
use pitlane_engine::event::{Body, Event};
use pitlane_engine::id::PortId;
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, ShardEnd, mesh};
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::{View, ViewSettings};
use pitlane_engine::worker::Worker;

use self::control::Control;
use self::market::Market;
use crate::demo::Demo;

/// Events heard in one poll, by port: the others want their turn too.
const EVENTS_PER_POLL_MAX: usize = 4_096;
/// Numbers for order ids; without a journal they begin anew with each start.
const NUMBERS: IdBlock = IdBlock { next: 1, end: 1 << 48 };

/// The ports of the mesh. Operator, clock, treasury and view are one of them.
const CONTROL: PortId = PortId(0);
const DESK: PortId = PortId(1);
const FEED: PortId = PortId(2);
const PORTS: [PortClass; 3] = [PortClass::Control, PortClass::Client, PortClass::Feed];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlatformSettings {
    pub shards: u8,
    /// Of the market, the venue and the trader.
    pub seed: u64,
    /// Mean time between two market events of one security.
    pub interval_ns: u64,
    pub depths: Depths,
}

#[derive(Debug)]
pub struct Platform {
    reference: Arc<RefData>,
    workers: Vec<Worker>,
    control: Control,
    market: Market,
    desk: Desk,
    desk_port: PortEnd,
    demo: Demo,
    view: View,
    /// Whether trader and market still act.
    open: bool,
}

impl Platform {
    /// A platform at the beginning of a trading day. It comes to life by being polled.
    pub fn new(now: Timestamp, reference: Arc<RefData>, settings: PlatformSettings) -> Platform {
        let shards = settings.shards;
        let (ports, ends) = mesh(&PORTS, shards, settings.depths);
        let [control, desk_port, feed_port] =
            <[PortEnd; PORTS.len()]>::try_from(ports).expect("the mesh has an end for each port");
        let mut shard_settings = ShardSettings::default();
        shard_settings.venue.seed = settings.seed;
        let work = |end: ShardEnd| {
            Worker::new(Shard::new(end.id(), shards, reference.clone(), shard_settings.clone()), end)
        };
        Platform {
            workers: ends.into_iter().map(work).collect(),
            control: Control::new(control, now, &reference),
            market: Market::new(feed_port, &reference, &settings),
            desk: Desk::new(desk_settings(shards, settings.seed), NUMBERS),
            desk_port,
            demo: Demo::new(&reference, settings.seed),
            view: View::new(shards, ViewSettings { seed: settings.seed, ..ViewSettings::default() }),
            open: true,
            reference,
        }
    }

    pub fn reference(&self) -> &RefData {
        &self.reference
    }

    pub fn view(&self) -> &View {
        &self.view
    }

    /// From now on no new orders and prices come in; what is under way is done.
    pub fn wind_down(&mut self) {
        self.open = false;
    }

    /// Does a bounded amount of work and says how much. `hear` is told every event, after the view.
    pub fn poll(&mut self, now: Timestamp, mut hear: impl FnMut(&View, &RefData, &Event)) -> usize {
        let mut work = self.control.poll(now);
        if self.open {
            work += self.market.poll(now);
        }
        work += self.workers.iter_mut().map(|worker| worker.poll(now)).sum::<usize>();
        work += self.poll_view(now, &mut hear);
        work += self.poll_desk();
        if self.open {
            work += self.demo.poll(now, &mut self.desk, &mut self.desk_port, &self.view, &self.reference);
        }
        work
    }

    fn poll_view(&mut self, now: Timestamp, hear: &mut impl FnMut(&View, &RefData, &Event)) -> usize {
        for heard in 0..EVENTS_PER_POLL_MAX {
            let Some((shard, event)) = self.control.poll_event() else { return heard };
            self.view.apply(shard, &event);
            self.control.handle_event(shard, &event);
            if let Body::Subscription { security, subscribers, .. } = event.body {
                self.market.set_on(security, subscribers > 0, now);
            }
            hear(&self.view, &self.reference, &event);
        }
        EVENTS_PER_POLL_MAX
    }

    fn poll_desk(&mut self) -> usize {
        let mut work = 0;
        while work < EVENTS_PER_POLL_MAX
            && let Some((_, event)) = self.desk_port.poll_event()
        {
            // The trader does not mind what a cancel came to.
            let _ = self.desk.handle_event(&event);
            work += 1;
        }
        work + self.desk.poll(&mut self.desk_port)
    }
}

fn desk_settings(shards: u8, seed: u64) -> DeskSettings {
    DeskSettings {
        port: DESK,
        shards,
        orders_max: 10_000,
        ids_max: 40_000,
        finished_max: 1_000,
        prefix: b'd',
        seed,
    }
}
