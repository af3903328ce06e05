//! A platform in one thread: the shards' workers, the feed, a desk with its trader and the view, stepped in turn.
//!
//! ```text
//!            ┌── control ──► workers ──► control: View, and whoever listens
//!   poll ────┼── feed ─────►    │
//!            └── desk ─────►    └──────► desk
//! ```
//!
//! It is told the time, so it runs on the real clock as on a virtual one.

use std::collections::VecDeque;
use std::sync::Arc;

use pitlane_engine::command::{Body, Command, Phase, Watch};
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock};
use pitlane_engine::event::{Body as Said, Event};
use pitlane_engine::feed::{Feed, FeedSettings};
use pitlane_engine::id::{Origin, PortId, ShardId, Source, StrategyId};
use pitlane_engine::lane::Full;
use pitlane_engine::mesh::{Broadcast, Depths, PortClass, PortEnd, ShardEnd, mesh};
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::{Shard, shard_of};
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::{View, ViewSettings};
use pitlane_engine::worker::Worker;

use crate::demo::Demo;

/// Market events sent in one poll: the others want their turn too.
const FEED_PER_POLL_MAX: usize = 256;
/// Events heard in one poll, by port.
const EVENTS_PER_POLL_MAX: usize = 4_096;
/// Numbers for order ids; without a journal they begin anew with each start.
const NUMBERS: IdBlock = IdBlock { next: 1, end: 1 << 48 };

/// The ports of the mesh. Operator, clock and view are one of them.
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
    feed: Market,
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
            feed: Market::new(feed_port, &reference, &settings),
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
    pub fn poll(&mut self, now: Timestamp, mut hear: impl FnMut(&View, ShardId, &Event)) -> usize {
        let mut work = self.control.poll();
        if self.open {
            work += self.feed.poll(now);
        }
        work += self.workers.iter_mut().map(|worker| worker.poll(now)).sum::<usize>();
        work += self.poll_view(now, &mut hear);
        work += self.poll_desk();
        if self.open {
            work += self.demo.poll(now, &mut self.desk, &mut self.desk_port, &self.view, &self.reference);
        }
        work
    }

    fn poll_view(&mut self, now: Timestamp, hear: &mut impl FnMut(&View, ShardId, &Event)) -> usize {
        for heard in 0..EVENTS_PER_POLL_MAX {
            let Some((shard, event)) = self.control.port.poll_event() else { return heard };
            self.view.apply(shard, &event);
            if let Said::Subscription { security, subscribers, .. } = event.body {
                self.feed.feed.set_on(security, subscribers > 0, now);
            }
            hear(&self.view, shard, &event);
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

/// The operator and the clock: what is said to the shards at the start, and in which order.
#[derive(Debug)]
struct Control {
    port: PortEnd,
    waiting: VecDeque<Order>,
}

/// A command on its way: to every shard, or to one.
#[derive(Debug)]
enum Order {
    All(Broadcast),
    One(ShardId, Command),
}

impl Control {
    fn new(port: PortEnd, now: Timestamp, reference: &RefData) -> Control {
        let source = Source { origin: Origin::Server, port: CONTROL, session: 0 };
        let command = |body| Command { source, token: 0, body };
        let shards = port.shards();
        let mut waiting = VecDeque::new();
        let mut tell = |body| waiting.push_back(Order::All(Broadcast::new(command(body))));
        tell(Body::Watch { port: CONTROL, what: Watch::Everything, on: true });
        tell(Body::Snapshot { port: CONTROL });
        tell(Body::TradingDay { day: now.day() });
        for strategy in reference.strategies().iter().filter(|row| row.auto_activate).map(|row| row.id) {
            for phase in [Phase::Init, Phase::Prefeed, Phase::Start, Phase::Running] {
                tell(Body::Phase { strategy, phase });
            }
        }
        for security in reference.securities().iter().map(|row| row.id) {
            let body = Body::Subscribe { strategy: StrategyId::SERVER, security, on: true };
            waiting.push_back(Order::One(shard_of(security, shards), command(body)));
        }
        Control { port, waiting }
    }

    /// Sends what has room, in order.
    fn poll(&mut self) -> usize {
        let mut sent = 0;
        while let Some(order) = self.waiting.front_mut() {
            let through = match order {
                Order::All(broadcast) => self.port.send_all(broadcast),
                Order::One(shard, command) => self.port.send(*shard, *command).is_ok(),
            };
            if !through {
                break;
            }
            self.waiting.pop_front();
            sent += 1;
        }
        sent
    }
}

/// The simulated market, and the event that found no room.
#[derive(Debug)]
struct Market {
    feed: Feed,
    port: PortEnd,
    slot: Option<(ShardId, Command)>,
}

impl Market {
    fn new(port: PortEnd, reference: &RefData, settings: &PlatformSettings) -> Market {
        let feed = FeedSettings {
            seed: settings.seed,
            interval_ns: settings.interval_ns,
            // After a sleep the market goes on from here rather than make up for it.
            lag_ns_max: 1_000_000_000,
            source: Source { origin: Origin::Server, port: FEED, session: 0 },
            ..FeedSettings::default()
        };
        Market { feed: Feed::new(reference, feed), port, slot: None }
    }

    fn poll(&mut self, now: Timestamp) -> usize {
        let mut sent = 0;
        // Nobody answers a price, but a shard that does must not find its lane full.
        while sent < EVENTS_PER_POLL_MAX && self.port.poll_event().is_some() {
            sent += 1;
        }
        for _ in 0..FEED_PER_POLL_MAX {
            let Some((shard, command)) = self.slot.take().or_else(|| self.next(now)) else { break };
            if let Err(Full) = self.port.send(shard, command) {
                self.slot = Some((shard, command));
                break;
            }
            sent += 1;
        }
        sent
    }

    fn next(&mut self, now: Timestamp) -> Option<(ShardId, Command)> {
        let command = self.feed.poll(now)?;
        let (Body::Quote { security, .. } | Body::Trade { security, .. } | Body::Tick { security, .. }) =
            command.body
        else {
            unreachable!("a feed tells prices");
        };
        Some((shard_of(security, self.port.shards()), command))
    }
}
