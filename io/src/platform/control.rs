//! Operator, clock and treasury as a port: what the shards are told at the start, and the parts of limits they have.

use std::collections::VecDeque;

use pitlane_engine::command::{Body, Command, Limits, Phase, Scope, Watch};
use pitlane_engine::event::Event;
use pitlane_engine::id::{Origin, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{Broadcast, PortEnd};
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::shard_of;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_engine::treasury::Treasury;

use super::CONTROL;

/// Limits of each strategy: far above what the demo trader does, near enough to stop one that runs wild.
const OPEN_ORDERS_MAX: u32 = 1_000;
const ORDERS_PER_S_MAX: u32 = 100;
/// How often the treasury asks again for what it lent.
const REMIND_NS: u64 = NS_PER_S;

#[derive(Debug)]
pub struct Control {
    port: PortEnd,
    treasury: Treasury,
    remind: Timestamp,
    /// What waits for room, in order: a few commands for each strategy and security at the start, later a few of the
    /// treasury's for each limit.
    waiting: VecDeque<Order>,
}

/// A command on its way: to every shard, or to one.
#[derive(Debug)]
enum Order {
    All(Broadcast),
    One(ShardId, Command),
}

impl Control {
    pub fn new(port: PortEnd, now: Timestamp, reference: &RefData) -> Control {
        let treasury =
            Treasury::new(port.shards(), Source { origin: Origin::Server, port: CONTROL, session: 1 });
        let mut control = Control { port, treasury, remind: now.plus(REMIND_NS), waiting: VecDeque::new() };
        control.tell_all(Body::Watch { port: CONTROL, what: Watch::Everything, on: true });
        control.tell_all(Body::Watch { port: CONTROL, what: Watch::Budgets, on: true });
        control.tell_all(Body::Snapshot { port: CONTROL });
        control.tell_all(Body::TradingDay { day: now.day() });
        for row in reference.strategies() {
            control.limit(Scope::Strategy(row.id));
        }
        for row in reference.strategies().iter().filter(|row| row.auto_activate) {
            for phase in [Phase::Init, Phase::Prefeed, Phase::Start, Phase::Running] {
                control.tell_all(Body::Phase { strategy: row.id, phase });
            }
        }
        for row in reference.securities() {
            let body = Body::Subscribe { strategy: StrategyId::SERVER, security: row.id, on: true };
            let shard = shard_of(row.id, control.port.shards());
            control.waiting.push_back(Order::One(shard, command(body)));
        }
        control
    }

    pub fn poll_event(&mut self) -> Option<(ShardId, Event)> {
        self.port.poll_event()
    }

    pub fn handle_event(&mut self, shard: ShardId, event: &Event) {
        let waiting = &mut self.waiting;
        self.treasury
            .handle_event(shard, event, |shard, command| waiting.push_back(Order::One(shard, command)));
    }

    /// Sends what has room, in order.
    pub fn poll(&mut self, now: Timestamp) -> usize {
        if now >= self.remind {
            self.remind = now.plus(REMIND_NS);
            let waiting = &mut self.waiting;
            self.treasury.remind(|shard, command| waiting.push_back(Order::One(shard, command)));
        }
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

    fn tell_all(&mut self, body: Body) {
        self.waiting.push_back(Order::All(Broadcast::new(command(body))));
    }

    /// Tells the shards a limit and gives each its part.
    fn limit(&mut self, scope: Scope) {
        let limits = Limits {
            max_open_orders: OPEN_ORDERS_MAX,
            max_orders_per_s: ORDERS_PER_S_MAX,
            ..Limits::default()
        };
        self.tell_all(Body::Limits { scope, limits });
        let waiting = &mut self.waiting;
        self.treasury
            .set_limits(scope, &limits, |shard, command| waiting.push_back(Order::One(shard, command)));
    }
}

fn command(body: Body) -> Command {
    Command { source: Source { origin: Origin::Server, port: CONTROL, session: 0 }, token: 0, body }
}
