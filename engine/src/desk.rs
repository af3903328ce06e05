//! The desk: the order bookkeeping of one source thread (a FIX gateway, the http thread, a strategy
//! runner). It owns the ids of its orders: it knows which ids are used, finds the order of each,
//! and sends every request to the right shard.
//!
//! ```text
//!            submit, close, modify, cancel ─► Desk ─► PortEnd ─► shard
//!                                              ▲
//!                              handle_event ───┘◄── PortEnd ◄── shard
//! ```
//!
//! An id is unique within its source, which is the port and the session; the http threads of all
//! servers of a cluster count as one port, see [`PortId::id_scope`]. It finds its order until
//! the desk forgets that order: at the end of the trading day if the order is finished, or earlier
//! when more than `finished_max` orders are finished. The id stays used until the end of the
//! trading day, across restarts, within the bound of [`crate::used_ids`]; then it may be used
//! again. A request that the desk declines leaves no trace.

mod events;
mod ids;
mod names;
mod order_table;

use std::cell::Cell;
use std::collections::VecDeque;

use self::names::{NIL, NameTable};
use self::order_table::{DeskEntry, OrderStage, OrderTable};
use crate::command::{CancelFilter, Command, CommandKind};
use crate::id::{AccountId, IntId, OrderHandle, PortId, SecurityId, ShardId, Source, StrategyId};
use crate::index::index_u8;
use crate::lane::LaneFull;
use crate::mesh::PortEnd;
use crate::number::Qty;
use crate::pages::LargePages;
use crate::reason::Reason;
use crate::sender::SenderId;
use crate::shard::{route, shard_of};
use crate::terms::{Changes, SpecialTerms, Status, Terms};
use crate::time::Day;
use crate::used_ids::{USED_IDS_MAX, UsedIdSet};

/// Ids by which one order is found. When a client modifies an order without end, the desk forgets
/// the oldest id except the first, rather than fill the table for all clients. A forgotten id stays
/// used.
pub const NAMES_PER_ORDER_MAX: u32 = 64;

/// Cancels that wait for a handle or for room in a lane. Normal operation never has this many in
/// flight; the next cancel is declined with a request to try again.
pub const HELD_MAX: usize = 1_024;

/// Ids of the desk's own form, one after the other, that one search for a new id skips because the
/// session has used them.
const MADE_ID_TRIES_MAX: u32 = 64;

/// Ids that stay used, for each id by which the desk can find an order: a small desk needs no large
/// table.
const USED_IDS_PER_ID: usize = 16;

/// Orders forgotten in one poll after the end of a day, so that the poll takes no longer than
/// others.
pub const FORGET_PER_POLL_MAX: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeskSettings {
    pub port: PortId,
    pub shards: u8,
    /// Orders known at once, including finished ones; the next order is refused. 1 million orders
    /// and their ids take about 220 MB.
    pub orders_max: u32,
    /// Ids remembered at once, of orders and of requests.
    pub ids_max: u32,
    /// Finished orders known; the desk forgets the oldest beyond it.
    pub finished_max: u32,
    /// First letter of the ids that the desk generates.
    pub prefix: u8,
    /// Seed of the hash over the ids. Clients should not know it.
    pub seed: u64,
    /// Page hook for the tables of orders and ids.
    pub pages: LargePages,
}

/// Numbers for generated ids, given to no other desk: `next` up to but not including `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdBlock {
    pub next: u64,
    pub end: u64,
}

/// Data that comes with every request: source, token, the id given to it and the sender. Without an
/// id the desk generates one. The desk records the sender but does not interpret it.
///
/// The token distinguishes the requests that a session has in flight: it identifies a command that
/// is refused without an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    pub source: Source,
    pub token: u32,
    pub id: IntId,
    pub sender: SenderId,
}

/// A request to close a position, see [`crate::command::CommandKind::Close`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloseRequest {
    pub strategy: StrategyId,
    pub account: AccountId,
    pub security: SecurityId,
    pub qty: Qty,
}

/// What the desk knows about an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownOrder {
    /// None while in flight, and after the shard has forgotten the order.
    pub order: OrderHandle,
    /// The first id, which never changes (FIX 37). After a restart: the earliest id that the shard
    /// still knows.
    pub root: IntId,
    /// The current id.
    pub id: IntId,
    pub status: Status,
    pub finished: bool,
    /// Token of the command that entered the order; zero if that was before a restart.
    pub token: u32,
}

/// The desk sent nothing, for this reason. `order` is set if the request was about a known order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declined {
    pub reason: Reason,
    pub order: Option<KnownOrder>,
}

impl From<Reason> for Declined {
    fn from(reason: Reason) -> Declined {
        Declined { reason, order: None }
    }
}

#[derive(Debug)]
pub struct Desk {
    settings: DeskSettings,
    names: NameTable,
    /// Ids of this day that no longer name an order, were used before a restart, or belong to REST
    /// orders of other servers.
    used: UsedIdSet,
    order_table: OrderTable,
    numbers: IdBlock,
    spare: IdBlock,
    /// Cancels in entries that wait for their handle.
    held: usize,
    /// Cancels whose handle has arrived. `held + ready.len() <= HELD_MAX`.
    ready: VecDeque<(ShardId, Command)>,
    /// The newest trading day of any shard.
    day: Option<Day>,
    /// The trading day of each shard.
    days: Vec<Option<Day>>,
    /// Finished orders of a day that is over and that are still to be forgotten, counted from the
    /// oldest.
    stale: u32,
    untracked: u64,
    /// Entry of the last report. The next report is usually about the same entry.
    last: Cell<u32>,
}

fn used_ids_max(settings: &DeskSettings) -> usize {
    (settings.ids_max as usize).saturating_mul(USED_IDS_PER_ID).clamp(1, USED_IDS_MAX)
}

/// What becomes of the ids of an order that is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdUse {
    /// They cannot be used again today.
    StayUsed,
    /// The day is over, or the order never existed.
    Free,
}

/// Requests.
impl Desk {
    pub fn new(settings: DeskSettings, numbers: IdBlock) -> Desk {
        assert!(settings.ids_max >= settings.orders_max, "an order has an id");
        Desk {
            settings,
            names: NameTable::new(settings.ids_max, settings.seed, settings.pages),
            used: UsedIdSet::new(used_ids_max(&settings), settings.seed),
            order_table: OrderTable::new(settings.orders_max, settings.pages),
            numbers,
            spare: IdBlock::default(),
            held: 0,
            ready: VecDeque::with_capacity(HELD_MAX),
            day: None,
            days: vec![None; settings.shards as usize],
            stale: 0,
            untracked: 0,
            last: Cell::new(NIL),
        }
    }

    /// Sends a new order and returns its id.
    pub fn submit(&mut self, port: &mut PortEnd, ticket: Ticket, terms: Terms) -> Result<IntId, Declined> {
        let shard = shard_of(terms.security, self.settings.shards);
        self.enter(port, ticket, shard, |id| CommandKind::Submit { id, terms })
    }

    /// Sends a new order with special terms and returns its id. The terms say that it has some.
    pub fn submit_special(
        &mut self,
        port: &mut PortEnd,
        ticket: Ticket,
        terms: Terms,
        special: SpecialTerms,
    ) -> Result<IntId, Declined> {
        announce(port, shard_of(terms.security, self.settings.shards), &ticket, special)?;
        self.submit(port, ticket, terms)
    }

    /// Sends an order that closes a position and returns its id.
    pub fn close(
        &mut self,
        port: &mut PortEnd,
        ticket: Ticket,
        closing: CloseRequest,
    ) -> Result<IntId, Declined> {
        let CloseRequest { strategy, account, security, qty } = closing;
        let shard = shard_of(security, self.settings.shards);
        self.enter(port, ticket, shard, |id| CommandKind::Close { id, strategy, account, security, qty })
    }

    /// Requests a modification of an order, known by any of its ids. Returns the id of the request,
    /// which becomes the order's id.
    pub fn modify(
        &mut self,
        port: &mut PortEnd,
        ticket: Ticket,
        order: &IntId,
        changes: Changes,
    ) -> Result<IntId, Declined> {
        let number = self.open_order(ticket.source.session, order)?;
        let id = self.new_id(&ticket, Some(number)).map_err(|reason| self.declined(number, reason))?;
        let DeskEntry { handle, stage, .. } = *self.order_table.at(number);
        if stage == OrderStage::InFlight {
            return Err(self.declined(number, Reason::NotAcknowledged));
        }
        self.request(port, number, &ticket, CommandKind::Modify { order: handle, id, changes })?;
        self.add_name(number, id, false);
        Ok(id)
    }

    /// Requests a modification that replaces the special terms of an order by these. The changes
    /// say that there are some.
    pub fn modify_special(
        &mut self,
        port: &mut PortEnd,
        ticket: Ticket,
        order: &IntId,
        changes: Changes,
        special: SpecialTerms,
    ) -> Result<IntId, Declined> {
        let number = self.open_order(ticket.source.session, order)?;
        let DeskEntry { handle, stage, .. } = *self.order_table.at(number);
        if stage != OrderStage::InFlight {
            announce(port, handle.shard(), &ticket, special)
                .map_err(|declined| self.declined(number, declined.reason))?;
        }
        self.modify(port, ticket, order, changes)
    }

    /// Requests the cancellation of an order, known by any of its ids. Returns the id of the
    /// request. An order in flight is cancelled as soon as its handle is known.
    pub fn cancel(&mut self, port: &mut PortEnd, ticket: Ticket, order: &IntId) -> Result<IntId, Declined> {
        let number = self.open_order(ticket.source.session, order)?;
        let id = self.new_id(&ticket, None).map_err(|reason| self.declined(number, reason))?;
        let DeskEntry { handle, stage, .. } = *self.order_table.at(number);
        if stage == OrderStage::InFlight {
            self.hold(number, &ticket, id).map_err(|reason| self.declined(number, reason))?;
            return Ok(id);
        }
        self.request(port, number, &ticket, CommandKind::Cancel { order: handle, id })?;
        self.add_name(number, id, true);
        Ok(id)
    }

    /// Requests the cancellation of all orders that the filter selects, from the shards that have
    /// them. Returns the id of the command, which the desk makes; the ticket's id is used up too.
    pub fn cancel_orders(
        &mut self,
        port: &mut PortEnd,
        ticket: Ticket,
        filter: CancelFilter,
    ) -> Result<IntId, Declined> {
        let Ticket { source, token, sender, id } = ticket;
        assert_eq!(source.port, self.settings.port, "a desk serves its own port");
        if !id.is_none() && self.is_used(source.session, &id) {
            return Err(Reason::DuplicateId.into());
        }
        let made = self.make_id(source.session).ok_or(Reason::LaneFull)?;
        let body = CommandKind::CancelOrders { id: made, filter };
        port.send_routed(Command { source, token, sender, body }).map_err(|LaneFull| Reason::LaneFull)?;
        for id in [id, made].iter().filter(|id| !id.is_none()) {
            self.note_used(source.session, id);
        }
        Ok(made)
    }

    /// Returns the number of shards that answer a cancel of many orders.
    pub fn shards_asked(&self, filter: CancelFilter) -> u8 {
        let shards = self.settings.shards;
        index_u8(route(&CommandKind::CancelOrders { id: IntId::NONE, filter }, shards).shards(shards).len())
    }

    /// Enters an order under a new id and sends it. It checks for room before it changes anything.
    /// Only this thread writes to the lane, so the room is still there when it sends the command.
    fn enter(
        &mut self,
        port: &mut PortEnd,
        ticket: Ticket,
        shard: ShardId,
        body: impl FnOnce(IntId) -> CommandKind,
    ) -> Result<IntId, Declined> {
        let Ticket { source, token, sender, .. } = ticket;
        assert_eq!(source.port, self.settings.port, "a desk serves its own port");
        let id = self.new_id(&ticket, None)?;
        if !port.has_room(shard) {
            return Err(Reason::LaneFull.into());
        }
        if !self.make_room(true) {
            return Err(Reason::ShardFull.into());
        }
        let number = self.order_table.add(source, token);
        self.add_name(number, id, false);
        let command = Command { source, token, sender, body: body(id) };
        port.send(shard, command).expect("there was room and no other thread writes");
        Ok(id)
    }

    /// Sends a request about an order, if there is room for it and for its id.
    fn request(
        &mut self,
        port: &mut PortEnd,
        number: u32,
        ticket: &Ticket,
        body: CommandKind,
    ) -> Result<(), Declined> {
        let Ticket { source, token, sender, .. } = *ticket;
        assert_eq!(source.port, self.settings.port, "a desk serves its own port");
        let shard = self.order_table.at(number).handle.shard();
        if !port.has_room(shard) {
            return Err(self.declined(number, Reason::LaneFull));
        }
        if !self.make_room(false) {
            return Err(self.declined(number, Reason::ShardFull));
        }
        let command = Command { source, token, sender, body };
        port.send(shard, command).expect("there was room and no other thread writes");
        Ok(())
    }

    /// Holds a cancel until the handle of its order is known.
    fn hold(&mut self, number: u32, ticket: &Ticket, id: IntId) -> Result<(), Reason> {
        if self.order_table.at(number).held != NIL {
            return Err(Reason::RequestPending);
        }
        if self.held + self.ready.len() == HELD_MAX {
            return Err(Reason::LaneFull);
        }
        if !self.make_room(false) {
            return Err(Reason::ShardFull);
        }
        self.held += 1;
        let name = self.add_name(number, id, true);
        let entry = self.order_table.at_mut(number);
        (entry.held, entry.held_token, entry.held_sender) = (name, ticket.token, ticket.sender);
        Ok(())
    }

    /// Returns the order that a request is about, or declines unless the order is known and open.
    fn open_order(&self, session: u16, id: &IntId) -> Result<u32, Declined> {
        let number = self.number_of(session, id).ok_or(Reason::UnknownOrder)?;
        if self.order_table.at(number).stage == OrderStage::Finished {
            return Err(self.declined(number, Reason::OrderFinished));
        }
        Ok(number)
    }

    fn declined(&self, number: u32, reason: Reason) -> Declined {
        Declined { reason, order: Some(self.known(number)) }
    }
}

/// Sends the special terms of the request that follows with this ticket, if there is room for both.
/// Terms whose request the desk declines have no effect.
fn announce(
    port: &mut PortEnd,
    shard: ShardId,
    ticket: &Ticket,
    special: SpecialTerms,
) -> Result<(), Declined> {
    let Ticket { source, token, sender, .. } = *ticket;
    if !port.has_room_for(shard, 2) {
        return Err(Reason::LaneFull.into());
    }
    let command = Command { source, token, sender, body: CommandKind::SpecialTerms(special) };
    port.send(shard, command).map_err(|LaneFull| Reason::LaneFull.into())
}

#[cfg(test)]
mod tests;
