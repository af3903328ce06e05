//! Orders of REST clients on their way to the shards: through the desk if they are its own, past it if they are another
//! source's. Nothing here waits; each gives what will be the answer.

use pitlane_engine::cluster::owner_of_port;
use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::desk::{CloseRequest, Declined, Ticket};
use pitlane_engine::id::{AdapterId, IntId, Origin, ShardId, Source, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::{Sender, SenderId};
use pitlane_engine::shard::{Route, route};
use pitlane_engine::terms::{Changes, Terms};
use pitlane_engine::view::Order;

use super::waiting::{Awaited, NOBODY, Pending, Waiting};
use super::{Asked, Busy, Receipt, ShardClient};
use crate::platform::HTTP;

/// The session of what the server itself does here, and of ids that are made before their strategy is known.
const SESSION: u16 = 0;

/// Order ids over REST belong to their strategy: within it an id makes one order, and whoever trades for another strategy can
/// neither take an id nor learn that it was used.
fn session_of(strategy: StrategyId) -> u16 {
    strategy.0
}

impl ShardClient {
    /// Sends a new order, under its own id or under one we make.
    pub fn submit(&self, sender: SenderId, id: IntId, terms: Terms) -> Result<(IntId, Pending), Declined> {
        if self.is_taken_elsewhere(terms.strategy, &id) {
            return Err(Reason::DuplicateId.into());
        }
        let session = session_of(terms.strategy);
        let pending = Waiting::admit(&self.waiting).ok_or(Reason::LaneFull)?;
        let ticket = self.ticket(&pending, session, id, sender);
        let made = self.desk.borrow_mut().submit(&mut self.port.borrow_mut(), ticket, terms)?;
        self.expect_order(&pending, session, made);
        if !id.is_none() {
            self.receipts.borrow_mut().asked(session, id, Asked::Submit(terms));
        }
        Ok((made, pending))
    }

    /// Sends an order that closes a position, or a part of it.
    pub fn close(&self, sender: SenderId, closing: CloseRequest) -> Result<(IntId, Pending), Declined> {
        let pending = Waiting::admit(&self.waiting).ok_or(Reason::LaneFull)?;
        let session = session_of(closing.strategy);
        let ticket = self.ticket(&pending, session, IntId::NONE, sender);
        let made = self.desk.borrow_mut().close(&mut self.port.borrow_mut(), ticket, closing)?;
        self.expect_order(&pending, session, made);
        Ok((made, pending))
    }

    /// Asks to modify an order, which then has this id or one we make. With the simulated venue the answer is that it has been
    /// replaced, so that the order is found under its new id; a venue elsewhere may take its time, and the answer is that it was asked.
    pub fn modify(
        &self,
        sender: SenderId,
        order: &Order,
        id: IntId,
        changes: Changes,
    ) -> Result<(IntId, Pending), Declined> {
        if self.is_taken_elsewhere(order.terms.strategy, &id) {
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
            self.receipts.borrow_mut().asked(session, id, Asked::Modify(order.handle, changes));
        }
        Ok((made, pending))
    }

    /// Asks to cancel an order, whoever sent it.
    pub fn cancel(&self, sender: SenderId, order: &Order) -> Result<Pending, Declined> {
        let pending = Waiting::admit(&self.waiting).ok_or(Reason::LaneFull)?;
        let ticket = self.ticket(&pending, self.session_for(order), IntId::NONE, sender);
        let made = match self.is_ours(order) {
            true => self.desk.borrow_mut().cancel(&mut self.port.borrow_mut(), ticket, &order.id)?,
            false => self.request(order, ticket, |id| CommandKind::Cancel { order: order.handle, id })?,
        };
        self.expect_request(&pending, order, made, false);
        Ok(pending)
    }

    /// Tells one shard something whose answer is not awaited.
    pub fn tell(&self, shard: ShardId, body: CommandKind) -> Result<(), Busy> {
        let source = Source { origin: Origin::Server, port: self.port.borrow().id(), session: SESSION };
        let command = Command::new(source, NOBODY, body);
        self.port.borrow_mut().send(shard, command).map_err(|_full| Busy)?;
        self.ring();
        Ok(())
    }

    /// Sends a command of somebody elsewhere to its shard, or to all; says to how many. What comes of it he hears among the events.
    pub fn forward(&self, command: Command) -> Result<u8, Busy> {
        let shards = match route(&command.body, self.shards()) {
            Route::One(shard) => shard.0..shard.0 + 1,
            Route::All => 0..self.shards(),
        };
        let mut port = self.port.borrow_mut();
        // Nobody else writes to these lanes, so room once seen stays.
        if shards.end > self.shards() || !shards.clone().all(|shard| port.has_room(ShardId(shard))) {
            return Err(Busy);
        }
        for shard in shards.clone() {
            port.send(ShardId(shard), command).expect("there was room and nobody else writes");
            self.bells[shard as usize].wake();
        }
        Ok(shards.len() as u8)
    }

    /// The number of a sender for its orders, modifications and cancels.
    pub fn register_sender(&self, sender: Sender) -> SenderId {
        self.port.borrow_mut().register_sender(sender)
    }

    /// An id that nobody has used and nobody else will be given; None: later.
    pub fn make_id(&self) -> Option<IntId> {
        self.desk.borrow_mut().make_id(SESSION)
    }

    /// Whether a strategy has used an id today.
    pub fn knows(&self, strategy: StrategyId, id: &IntId) -> bool {
        self.desk.borrow().is_used(session_of(strategy), id) || self.is_taken_elsewhere(strategy, id)
    }

    /// Ids of the trading day that were forgotten for want of room.
    pub fn ids_forgotten(&self) -> u64 {
        self.desk.borrow().ids_dropped()
    }

    /// Whether a REST client of another server has used an id for the strategy, as far as is known here.
    fn is_taken_elsewhere(&self, strategy: StrategyId, id: &IntId) -> bool {
        if id.is_none() {
            return false;
        }
        // The desk knows those from here, unless they are of a version that gave all strategies one session.
        let is_desks =
            |order: &Order| self.is_from_here(order) && order.source.session == session_of(strategy);
        let is_other =
            |order: &Order| is_of_rest(order) && order.terms.strategy == strategy && !is_desks(order);
        self.is_on_its_way(strategy, id) || self.view().orders_with_id(id).iter().any(is_other)
    }

    /// Whether an order of this id was sent to a shard of ours by another server; the read model may not show it yet.
    pub fn is_on_its_way(&self, strategy: StrategyId, id: &IntId) -> bool {
        self.elsewhere.borrow().contains(strategy, id)
    }

    /// Takes an id for an order that another server sends to a shard of ours. False: it has been used.
    pub fn claim(&self, strategy: StrategyId, id: &IntId) -> bool {
        let is_same = |order: &Order| is_of_rest(order) && order.terms.strategy == strategy;
        let is_used = self.knows(strategy, id) || self.view().orders_with_id(id).iter().any(is_same);
        if !is_used {
            self.elsewhere.borrow_mut().add(strategy, *id);
        }
        !is_used
    }

    /// What was asked for a strategy under an id that a client gave.
    pub fn receipt(&self, strategy: StrategyId, id: &IntId) -> Option<Receipt> {
        self.receipts.borrow().get(session_of(strategy), id)
    }

    /// The asker of a request was told what came of it.
    pub fn told(&self, strategy: StrategyId, id: &IntId, reason: Reason) {
        self.receipts.borrow_mut().told(session_of(strategy), id, reason);
    }

    /// Whether an order came over REST, at this server.
    pub fn is_from_here(&self, order: &Order) -> bool {
        order.source.port == self.port.borrow().id() && order.source.origin == Origin::Rest
    }

    /// Whether it did, and the desk still knows it.
    fn is_ours(&self, order: &Order) -> bool {
        self.is_from_here(order)
            && self
                .desk
                .borrow()
                .order(order.source.session, &order.id)
                .is_some_and(|known| known.order == order.handle)
    }

    /// The session of a request about an order: its own, by which the desk knows it (of an earlier version that may be another
    /// than its strategy's), or that of its strategy.
    fn session_for(&self, order: &Order) -> u16 {
        if self.is_ours(order) { order.source.session } else { session_of(order.terms.strategy) }
    }

    fn ticket(&self, pending: &Pending, session: u16, id: IntId, sender: SenderId) -> Ticket {
        let source = Source { origin: Origin::Rest, port: self.port.borrow().id(), session };
        Ticket { source, token: pending.token(), id, sender }
    }

    /// Sends a request about an order that is not the desk's.
    fn request(
        &self,
        order: &Order,
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

    fn expect_order(&self, pending: &Pending, session: u16, id: IntId) {
        pending.expect(Awaited::Order { session, id });
        self.ring();
    }

    fn expect_request(&self, pending: &Pending, order: &Order, id: IntId, to_its_end: bool) {
        pending.expect(Awaited::Request { order: order.handle, id, to_its_end });
        self.ring();
    }

    /// Whether its venue is the one inside the shard, which does at once what it is asked for.
    fn is_simulated(&self, order: &Order) -> bool {
        let reference = self.reference.borrow();
        let security = reference.security(order.terms.security);
        security.is_some_and(|row| reference.exchange_of(row).adapter == AdapterId::SIM)
    }

    /// Wakes the shards that were sent something.
    fn ring(&self) {
        let called = self.port.borrow_mut().take_wakeups();
        called.shards().for_each(|shard| self.bells[shard.0 as usize].wake());
    }
}

/// Whether an order came over REST, at whichever server.
pub fn is_of_rest(order: &Order) -> bool {
    let Source { origin, port, .. } = order.source;
    let port = owner_of_port(port).map_or(port, |(_, port)| port);
    origin == Origin::Rest && port == HTTP
}
