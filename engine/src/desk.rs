//! The desk: where the thread of a source stands (a FIX gateway, the http thread, a runner of strategies). It owns the
//! ids of its orders: knows which are used, finds the order of each, and sends every request to the right shard.
//!
//! ```text
//!            submit, close, modify, cancel ─► Desk ─► PortEnd ─► shard
//!                                              ▲
//!                              handle_event ───┘◄── PortEnd ◄── shard
//! ```
//!
//! An id is unique within its source: the port and the session. It finds its order until the desk forgets that one: at the
//! end of the trading day if the order is finished, or earlier when more than `finished_max` are. It stays used to the end of
//! the trading day, across restarts, within the bound of [`crate::used_ids`]; then it may be used again. A request that is
//! declined here leaves no trace.

mod events;
mod names;
mod order_table;

use std::cell::Cell;
use std::collections::VecDeque;

use self::events::ReportRef;
use self::names::{NIL, Name, Names};
use self::order_table::{DeskEntry, OrderStage, OrderTable};
use crate::command::{Command, CommandKind};
use crate::event::OrderReport;
use crate::id::{AccountId, IntId, OrderHandle, PortId, SecurityId, ShardId, Source, StrategyId};
use crate::mesh::PortEnd;
use crate::number::Qty;
use crate::pages::LargePages;
use crate::reason::Reason;
use crate::sender::SenderId;
use crate::shard::shard_of;
use crate::terms::{Changes, Status, Terms};
use crate::time::Day;
use crate::used_ids::{USED_IDS_MAX, UsedIdSet};

/// Ids by which one order is found; a client that modifies without end makes the desk forget the oldest but the first,
/// rather than fill the table for everybody. What is forgotten stays used.
pub const NAMES_PER_ORDER_MAX: u32 = 64;

/// Cancels that wait for a handle or for room in a lane. More than ever are in flight in good order; the next is
/// asked to try again.
pub const HELD_MAX: usize = 1_024;

/// Ids of our own shape that a session may have used before us, one after the other, in one search for a new one.
const MADE_ID_TRIES_MAX: u32 = 64;

/// Ids that stay used, for each that a desk can find an order by: a small desk needs no large table.
const USED_IDS_PER_ID: usize = 16;

/// Orders forgotten in one poll after the end of a day, so that it takes no longer than others.
pub const FORGET_PER_POLL_MAX: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeskSettings {
    pub port: PortId,
    pub shards: u8,
    /// Orders known at once, finished ones included; the next is refused. 1 million and their ids take about 220 MB.
    pub orders_max: u32,
    /// Ids remembered at once: of orders and of requests.
    pub ids_max: u32,
    /// Finished orders known; the oldest are forgotten.
    pub finished_max: u32,
    /// First letter of the ids made here.
    pub prefix: u8,
    /// Of the hash over the ids; nobody outside should know it.
    pub seed: u64,
    /// Where the tables of orders and ids lie.
    pub pages: LargePages,
}

/// Numbers for ids made here, never given to anybody else: `next` up to but not including `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdBlock {
    pub next: u64,
    pub end: u64,
}

/// What comes with every request: who asks, their mark, and the id they give it; none, and the desk makes one. The sender is
/// recorded, and means nothing to the desk.
///
/// The token tells apart what a session has in flight: a command that is refused without an order is known by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    pub source: Source,
    pub token: u32,
    pub id: IntId,
    pub sender: SenderId,
}

/// A position to be closed, see [`crate::command::CommandKind::Close`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloseRequest {
    pub strategy: StrategyId,
    pub account: AccountId,
    pub security: SecurityId,
    pub qty: Qty,
}

/// What the desk knows of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownOrder {
    /// None while in flight, and once the shard has forgotten the order.
    pub order: OrderHandle,
    /// The first id, which stays for life (FIX 37). After a restart: the earliest that the shard still knows.
    pub root: IntId,
    /// The id now.
    pub id: IntId,
    pub status: Status,
    pub finished: bool,
    /// Of the command that entered it; zero if that was before a restart.
    pub token: u32,
}

/// Nothing was sent, and why. The order is there if the request was about one we know.
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
    names: Names,
    /// Ids of this day that are no names any more, or were used before a restart.
    used: UsedIdSet,
    order_table: OrderTable,
    numbers: IdBlock,
    spare: IdBlock,
    /// Cancels in entries that wait for their handle.
    held: usize,
    /// Cancels whose handle has come. `held + ready.len() <= HELD_MAX`.
    ready: VecDeque<(ShardId, Command)>,
    day: Option<Day>,
    /// Finished orders of a day that is over, still to be forgotten: so many from the oldest.
    stale: u32,
    untracked: u64,
    /// The entry that was told of last: what follows is about the same, as a rule.
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
    /// The day is over, or there never was an order.
    Free,
}

/// Requests.
impl Desk {
    pub fn new(settings: DeskSettings, numbers: IdBlock) -> Desk {
        assert!(settings.ids_max >= settings.orders_max, "an order has an id");
        Desk {
            settings,
            names: Names::new(settings.ids_max, settings.seed, settings.pages),
            used: UsedIdSet::new(used_ids_max(&settings), settings.seed),
            order_table: OrderTable::new(settings.orders_max, settings.pages),
            numbers,
            spare: IdBlock::default(),
            held: 0,
            ready: VecDeque::with_capacity(HELD_MAX),
            day: None,
            stale: 0,
            untracked: 0,
            last: Cell::new(NIL),
        }
    }

    /// Sends a new order. Gives its id.
    pub fn submit(&mut self, port: &mut PortEnd, ticket: Ticket, terms: Terms) -> Result<IntId, Declined> {
        let shard = shard_of(terms.security, self.settings.shards);
        self.enter(port, ticket, shard, |id| CommandKind::Submit { id, terms })
    }

    /// Sends an order that closes a position. Gives its id.
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

    /// Asks to modify an order, known by any of its ids. Gives the id of the request, which becomes the order's.
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

    /// Asks to cancel an order, known by any of its ids. Gives the id of the request. An order in flight is cancelled
    /// as soon as it has arrived.
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

    /// Enters an order under a new id and sends it. Room is looked for before anything is noted, and since only this
    /// thread writes to the lane, the room is still there when the command is sent.
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
        port.send(shard, command).expect("there was room and nobody else writes");
        Ok(id)
    }

    /// Sends a request about an order, where there is room for it and for its id.
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
        port.send(shard, command).expect("there was room and nobody else writes");
        Ok(())
    }

    /// Keeps a cancel until the handle of its order is known.
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

    /// The order that a request is about; declined unless we know it and it is open.
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

/// Ids.
impl Desk {
    /// What is known of an order by any of its ids.
    pub fn order(&self, session: u16, id: &IntId) -> Option<KnownOrder> {
        self.number_of(session, id).map(|number| self.known(number))
    }

    /// What is known of the order that a report is about.
    pub fn order_of(&self, report: &OrderReport) -> Option<KnownOrder> {
        self.find(&ReportRef::of_status(report)).map(|number| self.known(number))
    }

    /// Has memory brought near for a new order of this id.
    pub fn prefetch(&self, session: u16, id: &IntId) {
        self.names.prefetch(session, id);
        self.used.prefetch(session, id);
    }

    /// An id made here that nobody in the session has used, for a request that is sent past the desk. None when the
    /// numbers have run out, or the session has used too many of their like: the next try goes on from there.
    pub fn make_id(&mut self, session: u16) -> Option<IntId> {
        for _ in 0..MADE_ID_TRIES_MAX {
            if self.numbers.next >= self.numbers.end {
                self.numbers = std::mem::take(&mut self.spare);
            }
            if self.numbers.next >= self.numbers.end {
                return None;
            }
            let id = IntId::numbered(self.settings.prefix, self.numbers.next);
            self.numbers.next += 1;
            if !self.is_used(session, &id) {
                return Some(id);
            }
        }
        None
    }

    /// Numbers left for ids. When they run low the caller gives a new block.
    pub fn numbers_left(&self) -> u64 {
        let left = |block: &IdBlock| block.end.saturating_sub(block.next);
        left(&self.numbers) + left(&self.spare)
    }

    /// More numbers, for when those at hand are used up.
    pub fn give_numbers(&mut self, block: IdBlock) {
        assert!(self.spare.next >= self.spare.end, "one block in use and one in spare");
        self.spare = block;
    }

    /// Whether an id was used in this trading day, as far back as the bound of [`crate::used_ids`] reaches.
    pub fn is_used(&self, session: u16, id: &IntId) -> bool {
        self.names.find(session, id).is_some() || self.used.contains(session, id)
    }

    /// Remembers the id of a request that is sent past the desk.
    pub fn note_used(&mut self, session: u16, id: &IntId) {
        self.used.insert(session, id);
    }

    /// Ids of this trading day that were forgotten for want of room since the start: they could be used again.
    pub fn ids_dropped(&self) -> u64 {
        self.used.dropped()
    }

    /// Orders known, finished ones included.
    pub fn len(&self) -> usize {
        self.order_table.len() as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a cancel waits here for the handle of its order, or for room.
    pub fn has_requests(&self) -> bool {
        self.held > 0 || !self.ready.is_empty()
    }

    /// Orders and ids of ours that a shard told of and the tables had no room for: they cannot be found by id.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    /// The id of a request: the one given if it is new, else one we make. A modification is the next version of the
    /// order's id.
    fn new_id(&mut self, ticket: &Ticket, modified: Option<u32>) -> Result<IntId, Reason> {
        let session = ticket.source.session;
        if !ticket.id.is_none() {
            let is_used = self.is_used(session, &ticket.id);
            return if is_used { Err(Reason::DuplicateId) } else { Ok(ticket.id) };
        }
        let version = modified.and_then(|number| self.next_version(number));
        version.or_else(|| self.make_id(session)).ok_or(Reason::LaneFull)
    }

    fn next_version(&self, number: u32) -> Option<IntId> {
        let name = self.names.at(self.order_table.at(number).current);
        let mut id = name.id.next_version()?;
        // Refused modifications have used up some versions.
        for _ in 0..NAMES_PER_ORDER_MAX {
            if !self.is_used(name.session, &id) {
                return Some(id);
            }
            id = id.next_version()?;
        }
        None
    }

    fn number_of(&self, session: u16, id: &IntId) -> Option<u32> {
        let name = self.names.at(self.names.find(session, id)?);
        (!name.spent).then_some(name.order)
    }

    fn known(&self, number: u32) -> KnownOrder {
        let entry = self.order_table.at(number);
        KnownOrder {
            order: entry.handle,
            root: self.names.at(entry.root).id,
            id: self.names.at(entry.current).id,
            status: entry.status,
            finished: entry.stage == OrderStage::Finished,
            token: entry.token,
        }
    }

    /// Gives an order one more name, the first of all becomes its root. There is room.
    fn add_name(&mut self, number: u32, id: IntId, spent: bool) -> u32 {
        let entry = self.order_table.at_mut(number);
        let session = entry.source.session;
        let name = self.names.add(Name { id, session, spent, order: number, next: NIL });
        let before = std::mem::replace(&mut entry.youngest, name);
        entry.names += 1;
        if before == NIL {
            (entry.root, entry.current) = (name, name);
        } else {
            self.names.at_mut(before).next = name;
        }
        if entry.names > NAMES_PER_ORDER_MAX {
            self.drop_oldest_name(number);
        }
        name
    }

    /// Forgets the oldest name but the root and the one now.
    fn drop_oldest_name(&mut self, number: u32) {
        let entry = self.order_table.at_mut(number);
        let mut before = entry.root;
        if self.names.at(before).next == entry.current {
            before = entry.current;
        }
        let Name { id, session, .. } = *self.names.at(self.names.at(before).next);
        self.used.insert(session, &id);
        let next = self.names.remove(self.names.at(before).next);
        self.names.at_mut(before).next = next;
        entry.names -= 1;
    }

    /// Makes room for a name, and for an entry if asked, by forgetting finished orders. Answers whether there is.
    fn make_room(&mut self, entry: bool) -> bool {
        while !self.names.has_room() || entry && !self.order_table.has_room() {
            let Some(oldest) = self.order_table.finished_first() else { return false };
            self.forget(oldest, IdUse::StayUsed);
        }
        true
    }

    /// Removes an order and all its names.
    fn forget(&mut self, number: u32, ids: IdUse) {
        let mut name = self.order_table.at(number).root;
        while name != NIL {
            // Of a day that is over no id is remembered.
            if ids == IdUse::StayUsed && self.stale == 0 {
                let Name { id, session, .. } = *self.names.at(name);
                self.used.insert(session, &id);
            }
            name = self.names.remove(name);
        }
        if self.order_table.at(number).stage == OrderStage::Finished {
            // It was the oldest.
            self.stale = self.stale.saturating_sub(1);
        }
        self.order_table.remove(number);
    }
}

#[cfg(test)]
mod tests;
