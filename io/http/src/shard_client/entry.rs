//! Sends orders of REST clients to the shards: through the desk if they are its own, past it if
//! they belong to another source. Nothing here waits; each function returns a pending response.

use pitlane_engine::command::{CancelFilter, Command, CommandKind};
use pitlane_engine::desk::{CloseRequest, Declined, Ticket};
use pitlane_engine::id::{AdapterId, IntId, Origin, ShardId, Source, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::{Sender, SenderId};
use pitlane_engine::terms::{Changes, Terms};
use pitlane_engine::view::OrderView;
use pitlane_gateway::HTTP;
use pitlane_protocols::remote::cluster::owner_of_port;

use super::waiting::{Awaited, NO_TOKEN, PendingResponse, Waiting};
use super::{Receipt, RestRequest, ShardClient, ShardsBusy};

/// The session of the server's own commands, and of ids that are made before their strategy is
/// known.
const SESSION: u16 = 0;

/// Returns the session of a strategy. Order ids over REST belong to their strategy: within it an id
/// makes one order, and a client that trades for another strategy can neither take an id nor learn
/// that it was used.
fn session_of(strategy: StrategyId) -> u16 {
    strategy.0
}

impl ShardClient {
    /// Sends a new order, under the given id or under one made here.
    pub(crate) fn submit(
        &self,
        sender: SenderId,
        id: IntId,
        terms: Terms,
    ) -> Result<(IntId, PendingResponse), Declined> {
        if self.is_used_elsewhere(terms.strategy, &id) {
            return Err(Reason::DuplicateId.into());
        }
        let session = session_of(terms.strategy);
        let pending = Waiting::admit(&self.waiting).ok_or(Reason::LaneFull)?;
        let ticket = self.ticket(&pending, session, id, sender);
        let made = self.desk.borrow_mut().submit(&mut self.port.borrow_mut(), ticket, terms)?;
        self.expect_order(&pending, session, made);
        if !id.is_none() {
            self.receipts.borrow_mut().record_request(session, id, RestRequest::Submit(terms));
        }
        Ok((made, pending))
    }

    /// Sends an order that closes a position, or a part of it.
    pub(crate) fn close(
        &self,
        sender: SenderId,
        closing: CloseRequest,
    ) -> Result<(IntId, PendingResponse), Declined> {
        let pending = Waiting::admit(&self.waiting).ok_or(Reason::LaneFull)?;
        let session = session_of(closing.strategy);
        let ticket = self.ticket(&pending, session, IntId::NONE, sender);
        let made = self.desk.borrow_mut().close(&mut self.port.borrow_mut(), ticket, closing)?;
        self.expect_order(&pending, session, made);
        Ok((made, pending))
    }

    /// Sends a modification of an order, which then has this id or one made here. With the
    /// simulated venue the response is that the order has been replaced, so that it is found under
    /// its new id. An external venue may take its time, so there the response is that the venue was
    /// asked.
    pub(crate) fn modify(
        &self,
        sender: SenderId,
        order: &OrderView,
        id: IntId,
        changes: Changes,
    ) -> Result<(IntId, PendingResponse), Declined> {
        if self.is_used_elsewhere(order.terms.strategy, &id) {
            return Err(Reason::DuplicateId.into());
        }
        let pending = Waiting::admit(&self.waiting).ok_or(Reason::LaneFull)?;
        let ticket = self.ticket(&pending, self.session_for(order), id, sender);
        let made = match self.is_ours(order) {
            true => {
                let port = &mut self.port.borrow_mut();
                self.desk.borrow_mut().modify(port, ticket, &order.id, changes)?
            }
            false => {
                self.request(order, ticket, |id| CommandKind::Modify { order: order.handle, id, changes })?
            }
        };
        self.expect_request(&pending, order, made, self.is_simulated(order));
        if !id.is_none() {
            let session = session_of(order.terms.strategy);
            self.receipts.borrow_mut().record_request(
                session,
                id,
                RestRequest::Modify(order.handle, changes),
            );
        }
        Ok((made, pending))
    }

    /// Sends a cancel of an order from any source.
    pub(crate) fn cancel(&self, sender: SenderId, order: &OrderView) -> Result<PendingResponse, Declined> {
        let pending = Waiting::admit(&self.waiting).ok_or(Reason::LaneFull)?;
        let ticket = self.ticket(&pending, self.session_for(order), IntId::NONE, sender);
        let made = match self.is_ours(order) {
            true => self.desk.borrow_mut().cancel(&mut self.port.borrow_mut(), ticket, &order.id)?,
            false => self.request(order, ticket, |id| CommandKind::Cancel { order: order.handle, id })?,
        };
        self.expect_request(&pending, order, made, false);
        Ok(pending)
    }

    /// Sends a cancel of all orders that the filter selects, from any source.
    pub(crate) fn cancel_orders(
        &self,
        sender: SenderId,
        filter: CancelFilter,
    ) -> Result<PendingResponse, Declined> {
        let pending = Waiting::admit(&self.waiting).ok_or(Reason::LaneFull)?;
        let ticket = self.ticket(&pending, SESSION, IntId::NONE, sender);
        let mut desk = self.desk.borrow_mut();
        let id = desk.cancel_orders(&mut self.port.borrow_mut(), ticket, filter)?;
        pending.expect(Awaited::Cancels { id, left: desk.shards_asked(filter) });
        self.wake_shards();
        Ok(pending)
    }

    /// Sends a command to one shard without awaiting a response.
    pub(crate) fn send_to_shard(&self, shard: ShardId, body: CommandKind) -> Result<(), ShardsBusy> {
        let source = Source { origin: Origin::Server, port: self.port.borrow().id(), session: SESSION };
        let command = Command::new(source, NO_TOKEN, body);
        self.port.borrow_mut().send(shard, command).map_err(|_full| ShardsBusy)?;
        self.wake_shards();
        Ok(())
    }

    /// Sends a command to its shard, or to all, and returns the number of shards. The sender
    /// receives the result among the events.
    pub(crate) fn forward(&self, command: Command) -> Result<u8, ShardsBusy> {
        let sent = self.port.borrow_mut().send_routed(command).map_err(|_full| ShardsBusy)?;
        self.wake_shards();
        Ok(sent)
    }

    /// Returns the number of a sender for its orders, modifications and cancels.
    pub(crate) fn register_sender(&self, sender: Sender) -> SenderId {
        self.port.borrow_mut().register_sender(sender)
    }

    /// Returns an id that is unused and is never given out again; `None` if there is none at
    /// present.
    pub(crate) fn make_id(&self) -> Option<IntId> {
        self.desk.borrow_mut().make_id(SESSION)
    }

    /// Returns whether a strategy has used an id today.
    pub(crate) fn knows(&self, strategy: StrategyId, id: &IntId) -> bool {
        self.desk.borrow().is_used(session_of(strategy), id) || self.is_used_elsewhere(strategy, id)
    }

    /// Returns the number of ids of the trading day that were forgotten for lack of room.
    pub(crate) fn ids_forgotten(&self) -> u64 {
        self.desk.borrow().ids_dropped()
    }

    /// Returns whether the view shows an order of another server's REST client under an id of the
    /// strategy. The desk has the ids of the trading day; an open order may be older.
    fn is_used_elsewhere(&self, strategy: StrategyId, id: &IntId) -> bool {
        if id.is_none() {
            return false;
        }
        // The desk knows the orders from here, unless they come from a version that gave all
        // strategies one session.
        let is_desks =
            |order: &OrderView| self.is_from_here(order) && order.source.session == session_of(strategy);
        let is_other =
            |order: &OrderView| is_rest_order(order) && order.terms.strategy == strategy && !is_desks(order);
        self.view().orders_with_id(id).iter().any(is_other)
    }

    /// Returns whether another server has sent an order of this id to a shard of ours; the read
    /// model may not show it yet.
    pub(crate) fn is_in_flight(&self, strategy: StrategyId, id: &IntId) -> bool {
        self.elsewhere.borrow().contains(strategy, id)
    }

    /// Takes an id for an order that another server sends to a shard of ours. Returns false if it
    /// has been used.
    pub(crate) fn claim(&self, strategy: StrategyId, id: &IntId) -> bool {
        let is_same = |order: &OrderView| is_rest_order(order) && order.terms.strategy == strategy;
        let is_used = self.knows(strategy, id) || self.view().orders_with_id(id).iter().any(is_same);
        if !is_used {
            self.desk.borrow_mut().note_used(session_of(strategy), id);
            self.elsewhere.borrow_mut().add(strategy, *id);
        }
        !is_used
    }

    /// Returns what was requested for a strategy under an id that a client gave.
    pub(crate) fn receipt(&self, strategy: StrategyId, id: &IntId) -> Option<Receipt> {
        self.receipts.borrow().get(session_of(strategy), id)
    }

    /// Records the result that the client of a request has received.
    pub(crate) fn record_result(&self, strategy: StrategyId, id: &IntId, reason: Reason) {
        self.receipts.borrow_mut().record_result(session_of(strategy), id, reason);
    }

    /// Returns whether an order came over REST, at this server.
    pub(crate) fn is_from_here(&self, order: &OrderView) -> bool {
        order.source.port == self.port.borrow().id() && order.source.origin == Origin::Rest
    }

    /// Returns whether an order came over REST, at this server, and the desk still knows it.
    fn is_ours(&self, order: &OrderView) -> bool {
        self.is_from_here(order)
            && self
                .desk
                .borrow()
                .order(order.source.session, &order.id)
                .is_some_and(|known| known.order == order.handle)
    }

    /// Returns the session of a request about an order: the order's own, by which the desk knows it
    /// (which differs from that of its strategy for orders of an earlier version), or that of its
    /// strategy.
    fn session_for(&self, order: &OrderView) -> u16 {
        if self.is_ours(order) { order.source.session } else { session_of(order.terms.strategy) }
    }

    fn ticket(&self, pending: &PendingResponse, session: u16, id: IntId, sender: SenderId) -> Ticket {
        let source = Source { origin: Origin::Rest, port: self.port.borrow().id(), session };
        Ticket { source, token: pending.token(), id, sender }
    }

    /// Sends a request about an order that is not the desk's.
    fn request(
        &self,
        order: &OrderView,
        ticket: Ticket,
        body: impl FnOnce(IntId) -> CommandKind,
    ) -> Result<IntId, Declined> {
        let Ticket { source, token, id, sender } = ticket;
        let id = match id.is_none() {
            true => self.desk.borrow_mut().make_id(source.session).ok_or(Reason::LaneFull)?,
            false if self.knows(order.terms.strategy, &id) => return Err(Reason::DuplicateId.into()),
            false => id,
        };
        let command = Command { source, token, sender, body: body(id) };
        let sent = self.port.borrow_mut().send(order.handle.shard(), command);
        sent.map_err(|_full| Reason::LaneFull)?;
        self.desk.borrow_mut().note_used(source.session, &id);
        Ok(id)
    }

    fn expect_order(&self, pending: &PendingResponse, session: u16, id: IntId) {
        pending.expect(Awaited::Order { session, id });
        self.wake_shards();
    }

    fn expect_request(&self, pending: &PendingResponse, order: &OrderView, id: IntId, until_executed: bool) {
        pending.expect(Awaited::Request { order: order.handle, id, until_executed });
        self.wake_shards();
    }

    /// Returns whether the order's venue is the simulated one inside the shard, which executes
    /// requests immediately.
    fn is_simulated(&self, order: &OrderView) -> bool {
        let reference = self.reference.borrow();
        let security = reference.security(order.terms.security);
        security.is_some_and(|row| reference.exchange_of(row).adapter == AdapterId::SIM)
    }

    /// Wakes the shards that were sent something.
    fn wake_shards(&self) {
        let to_wake = self.port.borrow_mut().take_wakeups();
        to_wake.shards().for_each(|shard| self.wakeups[shard.0 as usize].wake());
    }
}

/// Returns whether an order came over REST, at whichever server.
pub(crate) fn is_rest_order(order: &OrderView) -> bool {
    let Source { origin, port, .. } = order.source;
    let port = owner_of_port(port).map_or(port, |(_, port)| port);
    origin == Origin::Rest && port == HTTP
}
