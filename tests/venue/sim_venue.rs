//! The simulated venue as a rig: its actions follow from the market data that it gets.

use std::collections::BTreeMap;

use pitlane_engine::command::{Command, CommandKind, Quote, StrategyPhase, WatchTarget};
use pitlane_engine::event::OrderReport;
use pitlane_engine::id::{OrderHandle, Origin, PortId, SecurityId, ShardId, Source};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{Changes, OrderKind, Side, Status, Terms, Tif};
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::Worker;
use pitlane_tests::venue::int_id;
use pitlane_tests::world;

use super::conformance::{Act, Rig};

/// A share with a lot of 1.
const SECURITY: SecurityId = SecurityId(2);

pub struct SimVenue {
    worker: Worker,
    port: PortEnd,
    now: Timestamp,
    orders: BTreeMap<String, (OrderReport, usize)>,
}

impl SimVenue {
    /// Creates the rig. With `rejects`, the venue's random rejects hit every order.
    pub fn new(rejects: bool) -> SimVenue {
        let (mut ports, mut ends) = mesh(&[PortClass::Client], 1, Depths::default());
        let mut settings = ShardSettings::default();
        settings.venue.reject_permille = if rejects { 1_000 } else { 0 };
        let shard = Shard::new(ShardId(0), 1, world::reference(), settings);
        let mut rig = SimVenue {
            worker: Worker::new(shard, ends.remove(0)),
            port: ports.remove(0),
            now: world::start(),
            orders: BTreeMap::new(),
        };
        rig.tell(CommandKind::Watch { port: PortId(0), what: WatchTarget::Everything, on: true });
        rig.tell(CommandKind::Phase { strategy: world::STRATEGIES[1], phase: StrategyPhase::Running });
        rig.quote("110", 0);
        rig
    }

    /// Sets the market: this quantity is offered at this price.
    fn quote(&mut self, ask: &str, size: u32) {
        let quote = Quote {
            bid: world::price("90"),
            bid_size: world::qty("100"),
            ask: world::price(ask),
            ask_size: world::qty(&size.to_string()),
            at: self.now,
        };
        self.tell(CommandKind::Quote { security: SECURITY, quote });
    }

    fn tell(&mut self, body: CommandKind) {
        let source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };
        self.port.send(ShardId(0), Command::new(source, 1, body)).expect("the lane has room");
        self.now = self.now.plus(1_000);
        while self.worker.poll(self.now) > 0 {
            while let Some((_, event)) = self.port.poll_event() {
                let Some(told) = event.report() else { continue };
                let fill = usize::from(told.last_qty.is_positive());
                let known = self.orders.values_mut().find(|known| known.0.order == told.order);
                match known {
                    Some(known) => *known = (told, known.1 + fill),
                    None => _ = self.orders.insert(told.id.to_string(), (told, fill)),
                }
            }
        }
    }

    fn handle(&self, id: &str) -> OrderHandle {
        self.orders[id].0.order
    }
}

impl Rig for SimVenue {
    fn submit(&mut self, id: &str, qty: u32) {
        let terms = Terms {
            security: SECURITY,
            strategy: world::STRATEGIES[1],
            account: world::HOME_ACCOUNTS[0],
            side: Side::Buy,
            kind: OrderKind::Limit,
            qty: world::qty(&qty.to_string()),
            limit: world::price("100"),
            limit_given: true,
            tif: Tif::Gtc,
            ..Terms::default()
        };
        self.tell(CommandKind::Submit { id: int_id(id), terms });
    }

    fn cancel(&mut self, id: &str, order: &str) {
        let order = self.handle(order);
        self.tell(CommandKind::Cancel { order, id: int_id(id) });
    }

    fn replace(&mut self, id: &str, order: &str, qty: u32) {
        let (order, changes) =
            (self.handle(order), Changes::default().with_qty(world::qty(&qty.to_string())));
        self.tell(CommandKind::Modify { order, id: int_id(id), changes });
    }

    fn act(&mut self, order: &str, act: Act) -> bool {
        match act {
            // The venue has accepted, rejected or granted by itself.
            Act::Accept => self.orders[order].0.status == Status::New,
            Act::Reject => self.orders[order].0.status == Status::Rejected,
            Act::Grant => true,
            Act::Fill(_) if self.orders[order].0.status.is_finished() => false,
            Act::Fill(qty) => {
                // Offers below the order's price, this quantity and no more.
                self.quote("99", qty);
                self.quote("110", 0);
                true
            }
            Act::FillAgain
            | Act::Refuse
            | Act::Disconnect
            | Act::Reconnect
            | Act::ReconnectWithReset
            | Act::Bust
            | Act::Babble => false,
        }
    }

    fn order(&self, id: &str) -> (OrderReport, usize) {
        self.orders[id]
    }
}
