//! Stop orders that wait for their price, and their triggering. They are on ladders like those of a
//! book: buy stops lowest first, sell stops highest first; equal prices in order of arrival.
//!
//! Rules: docs/engine-rules.md#stops.

use super::Shard;
use crate::command::TradingSession;
use crate::event::{ExecType, VenueRequest};
use crate::ladder::{Direction, Ladder};
use crate::number::Price;
use crate::order::{Base, Step};
use crate::order_nodes::{Node, NodePlace, Nodes};
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::settings::TriggerBy;
use crate::terms::Side;

/// By security: none until the first stop.
#[derive(Debug, Default)]
pub(super) struct Stops(Vec<Option<Box<[Ladder; 2]>>>);

impl Stops {
    pub(super) fn add_security(&mut self) {
        self.0.push(None);
    }

    pub(super) fn push(&mut self, nodes: &mut Nodes, local: u32, slot: u32, side: Side, ticks: i64) -> bool {
        let ladders = self.0[local as usize].get_or_insert_with(|| {
            Box::new([Ladder::new(Direction::LowestFirst), Ladder::new(Direction::HighestFirst)])
        });
        // Quantities do not matter here, so no sum can be too large.
        nodes.set(slot, Node::new(NodePlace::Stop, side));
        ladders[side as usize].push_back(nodes, slot, ticks)
    }

    /// Returns whether a stop waits at exactly this price.
    pub(super) fn is_occupied(&self, nodes: &Nodes, local: u32, side: Side, ticks: i64) -> bool {
        let ladders = self.0.get(local as usize).and_then(Option::as_ref);
        ladders.is_some_and(|ladders| ladders[side as usize].front(nodes, ticks).is_some())
    }

    fn remove(&mut self, nodes: &mut Nodes, local: u32, slot: u32, side: Side) {
        if let Some(ladders) = &mut self.0[local as usize] {
            ladders[side as usize].remove(nodes, slot);
        }
        nodes.set(slot, Node::default());
    }

    #[inline]
    fn nearest(&self, nodes: &Nodes, local: u32, side: Side) -> Option<(i64, u32)> {
        let ladder = &self.0[local as usize].as_ref()?[side as usize];
        Some((ladder.best()?, ladder.best_front(nodes)?))
    }

    #[inline]
    fn is_empty(&self, local: u32) -> bool {
        self.0[local as usize].is_none()
    }
}

impl Shard {
    /// Accepts a new stop order: the shard acknowledges it, since the shard holds it.
    pub(super) fn await_trigger(&mut self, slot: u32, out: &mut Outbox) {
        self.orders.get_mut(slot).base = Base::Working;
        self.emit_status(slot, ExecType::Accepted, Reason::None, out);
        self.watch_stop(slot, out);
    }

    /// Adds a stop to its ladder; the continuation triggers it at once if its price is reached.
    pub(super) fn watch_stop(&mut self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get(slot);
        let (local, side) = (order.local, order.terms.side);
        let grid = &self.directory.locals[local as usize].ticks;
        let ticks = grid.steps(order.terms.stop.raw()).expect("the gate admits prices on the grid only");
        if !self.stops.push(self.venue.nodes_mut(), local, slot, side, ticks) {
            self.venue.nodes_mut().set(slot, Node::default());
            // It is on no ladder, and `at_venue` prevents its removal from one.
            self.orders.get_mut(slot).set_at_venue(true);
            return self.ended(slot, Step::Cancel, Reason::Overflow, out);
        }
        self.continuation.set_busy(local);
    }

    /// Removes a waiting stop from its ladder.
    pub(super) fn drop_stop(&mut self, slot: u32) {
        let order = self.orders.get(slot);
        let (local, side) = (order.local, order.terms.side);
        if self.venue.nodes().is_stop(slot) {
            self.stops.remove(self.venue.nodes_mut(), local, slot, side);
        }
    }

    /// Returns the next stop of a security whose price is reached.
    #[inline]
    pub(super) fn reached_stop(&self, local: u32) -> Option<u32> {
        if self.stops.is_empty(local) {
            return None;
        }
        let security = &self.directory.locals[local as usize];
        let continuous =
            self.directory.exchanges[security.exchange as usize].session == TradingSession::Continuous;
        // A stop whose venue is disconnected continues to wait: it cannot be sent.
        let is_connected = self.adapters.is_connected(security.adapter);
        if !continuous || security.halted || !is_connected || security.suspect {
            return None;
        }
        let price = |ticks| Price::from_ticks(ticks, security.tick);
        let reached = |side: Side| {
            let (ticks, slot) = self.stops.nearest(self.venue.nodes(), local, side)?;
            let (stop, market) = (price(ticks)?, self.trigger_price(local, side)?);
            let is_reached = match side {
                Side::Buy => market >= stop,
                Side::Sell => market <= stop,
            };
            is_reached.then_some(slot)
        };
        reached(Side::Buy).or_else(|| reached(Side::Sell))
    }

    /// Returns the price that triggers stops of a side.
    fn trigger_price(&self, local: u32, side: Side) -> Option<Price> {
        let quote = &self.venue.market(local).quote;
        match (self.settings.trigger, side) {
            (TriggerBy::Last, _) => self.venue.last_price(local),
            (TriggerBy::Quote, Side::Buy) => quote.ask_size.is_positive().then_some(quote.ask),
            (TriggerBy::Quote, Side::Sell) => quote.bid_size.is_positive().then_some(quote.bid),
        }
    }

    /// Triggers a stop: it becomes a market order, a stop limit becomes a limit order.
    pub(super) fn trigger(&mut self, slot: u32, out: &mut Outbox) {
        self.drop_stop(slot);
        let order = self.orders.get_mut(slot);
        order.set_triggered(true);
        order.set_acknowledged(false);
        self.emit_status(slot, ExecType::Triggered, Reason::Triggered, out);
        self.send_to_venue(slot, VenueRequest::New, out);
    }

    /// Lets a stop wait again that was triggered at the moment its venue disconnected, and never
    /// arrived. It is triggered again when the venue is back and its price is reached then.
    /// Requests that came meanwhile are done, since the shard holds the stop.
    pub(super) fn rearm_stop(&mut self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get_mut(slot);
        order.set_triggered(false);
        order.set_at_venue(false);
        order.set_in_doubt(false);
        order.set_unsure(false);
        let requests = self.orders.requests(slot).copied().unwrap_or_default();
        if requests.cancel.is_some() {
            return self.ended(slot, Step::Cancel, Reason::Requested, out);
        }
        self.emit_status(slot, ExecType::Snapshot, Reason::VenueUnavailable, out);
        if requests.replace.is_some() {
            self.replaced(slot, out);
        }
        self.watch_stop(slot, out);
        self.expire_overdue(slot, out);
    }
}
