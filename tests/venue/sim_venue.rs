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
use pitlane_tests::test_market;
use pitlane_tests::venue_shard::int_id;

use super::conformance::{VenueAction, VenueRig};

/// A share with a lot of 1.
const SECURITY: SecurityId = SecurityId(2);

pub(crate) struct SimVenue {
    worker: Worker,
    port: PortEnd,
    now: Timestamp,
    orders: BTreeMap<String, (OrderReport, usize)>,
}

impl SimVenue {
    /// Creates the rig. With `rejects`, the venue's random rejects hit every order.
    pub(crate) fn new(rejects: bool) -> SimVenue {
        let (mut ports, mut ends) = mesh(&[PortClass::Client], 1, Depths::default());
        let mut settings = ShardSettings::default();
        settings.venue.reject_permille = if rejects { 1_000 } else { 0 };
        let shard = Shard::new(ShardId(0), 1, test_market::reference(), settings);
        let mut rig = SimVenue {
            worker: Worker::new(shard, ends.remove(0)),
            port: ports.remove(0),
            now: test_market::start(),
            orders: BTreeMap::new(),
        };
        rig.send_command(CommandKind::Watch { port: PortId(0), what: WatchTarget::Everything, on: true });
        rig.send_command(CommandKind::Phase {
            strategy: test_market::STRATEGIES[1],
            phase: StrategyPhase::Running,
        });
        rig.quote("110", 0);
        rig
    }

    /// Sets the market: this quantity is offered at this price.
    fn quote(&mut self, ask: &str, size: u32) {
        let quote = Quote {
            bid: test_market::price("90"),
            bid_size: test_market::qty("100"),
            ask: test_market::price(ask),
            ask_size: test_market::qty(&size.to_string()),
            at: self.now,
        };
        self.send_command(CommandKind::Quote { security: SECURITY, quote });
    }

    fn send_command(&mut self, body: CommandKind) {
        let source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };
        self.port.send(ShardId(0), Command::new(source, 1, body)).expect("the lane has room");
        self.now = self.now.plus(1_000);
        while self.worker.poll(self.now) > 0 {
            while let Some((_, event)) = self.port.poll_event() {
                let Some(report) = event.report() else { continue };
                let fill = usize::from(report.last_qty.is_positive());
                let known = self.orders.values_mut().find(|known| known.0.order == report.order);
                match known {
                    Some(known) => *known = (report, known.1 + fill),
                    None => _ = self.orders.insert(report.id.to_string(), (report, fill)),
                }
            }
        }
    }

    fn handle(&self, id: &str) -> OrderHandle {
        self.orders[id].0.order
    }
}

impl VenueRig for SimVenue {
    fn submit(&mut self, id: &str, qty: u32) {
        let terms = Terms {
            security: SECURITY,
            strategy: test_market::STRATEGIES[1],
            account: test_market::HOME_ACCOUNTS[0],
            side: Side::Buy,
            kind: OrderKind::Limit,
            qty: test_market::qty(&qty.to_string()),
            limit: test_market::price("100"),
            limit_given: true,
            tif: Tif::Gtc,
            ..Terms::default()
        };
        self.send_command(CommandKind::Submit { id: int_id(id), terms });
    }

    fn cancel(&mut self, id: &str, order: &str) {
        let order = self.handle(order);
        self.send_command(CommandKind::Cancel { order, id: int_id(id) });
    }

    fn replace(&mut self, id: &str, order: &str, qty: u32) {
        let (order, changes) =
            (self.handle(order), Changes::default().with_qty(test_market::qty(&qty.to_string())));
        self.send_command(CommandKind::Modify { order, id: int_id(id), changes });
    }

    fn act(&mut self, order: &str, act: VenueAction) -> bool {
        match act {
            // The venue has accepted, rejected or granted by itself.
            VenueAction::Accept => self.orders[order].0.status == Status::New,
            VenueAction::Reject => self.orders[order].0.status == Status::Rejected,
            VenueAction::Grant => true,
            VenueAction::Fill(_) if self.orders[order].0.status.is_finished() => false,
            VenueAction::Fill(qty) => {
                // Offers below the order's price, this quantity and no more.
                self.quote("99", qty);
                self.quote("110", 0);
                true
            }
            VenueAction::FillAgain
            | VenueAction::Refuse
            | VenueAction::Disconnect
            | VenueAction::Reconnect
            | VenueAction::ReconnectWithReset
            | VenueAction::Restart
            | VenueAction::Close
            | VenueAction::Bust
            | VenueAction::Babble => false,
        }
    }

    fn order(&self, id: &str) -> (OrderReport, usize) {
        self.orders[id]
    }
}
