//! Publishes the single orders of the simulated venue's books as a snapshot and updates
//! ([`crate::event::OrderChanges`]). Like depth they are not part of the history and not stored. A
//! book without watchers costs nothing.
//!
//! ```text
//! fills ──────────► trades ─┐
//! touched book ─────────────┴► script: TRADE, REMOVE and CHANGE, ADD ─► parts, over several steps
//! snapshot request ──────────► script: ADD ─────────────────────────────┘
//! ```
//!
//! A message is made at once and sent in as many steps as it needs, so it is the book of one
//! moment, however large it is.

use std::collections::{BTreeMap, VecDeque};

use super::Shard;
use crate::book_orders::{BookOrders, is_better};
use crate::event::{
    BookOrder, EVENTS_PER_COMMAND_MAX, EventKind, LevelsKind, ORDER_CHANGES_MAX, ORDER_TRADES_MAX,
    ORDERS_PER_SIDE_MAX, OrderAction, OrderChange, OrderChanges, OrderNumber,
};
use crate::id::{PortId, PortMask, SecurityId};
use crate::number::Qty;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::terms::Side;
use crate::venue::{RestingOwner, VenueOutcome};

/// Messages begun in one call, each some 10 µs for a large book.
const MESSAGES_PER_GO_MAX: usize = 8;

/// Ports that watch the orders of each book, and what waits to be sent to them.
#[derive(Debug, Default)]
pub(super) struct OrderWatches {
    /// By the index of the security.
    books: BTreeMap<u32, WatchedOrders>,
    /// Books that may have changed, each once.
    touched: VecDeque<u32>,
    /// Ports that wait for a snapshot of a book.
    requests: VecDeque<(u32, PortId)>,
    /// Trades of watched books since these were published, at most [`ORDER_TRADES_MAX`].
    trades: Vec<OrderTrade>,
    message: OutgoingMessage,
    /// Whether the last step was used for orders: other market data is next.
    had_turn: bool,
    /// Reused buffers for one side of a book, and for orders that are added to it.
    current: Vec<BookOrder>,
    added: Vec<OrderChange>,
}

#[derive(Debug)]
struct WatchedOrders {
    ports: PortMask,
    /// Number of the last command that the published picture includes.
    seq: u64,
    is_touched: bool,
    /// The orders as all ports know them.
    published: BookOrders,
}

/// A fill of a client's order.
#[derive(Clone, Copy, Debug)]
struct OrderTrade {
    local: u32,
    number: OrderNumber,
    side: Side,
    qty: Qty,
}

/// The message that is being sent.
#[derive(Debug)]
struct OutgoingMessage {
    to: PortMask,
    local: u32,
    /// Part without changes, from which the others are made.
    part: OrderChanges,
    script: Vec<OrderChange>,
    /// Number of changes that were sent.
    sent: usize,
    is_open: bool,
}

impl Default for OutgoingMessage {
    fn default() -> OutgoingMessage {
        let part = OrderChanges::new(SecurityId::default(), LevelsKind::Snapshot, 0, 0);
        OutgoingMessage { to: PortMask::NONE, local: 0, part, script: Vec::new(), sent: 0, is_open: false }
    }
}

impl OutgoingMessage {
    /// Begins a message with the changes that are already in the script.
    fn begin(&mut self, to: PortMask, local: u32, part: OrderChanges) {
        (self.to, self.local, self.part) = (to, local, part);
        (self.sent, self.is_open) = (0, true);
    }

    fn next_part(&mut self) -> Option<OrderChanges> {
        if !self.is_open {
            return None;
        }
        let mut part = self.part;
        let rest = &self.script[self.sent..];
        rest.iter().take(ORDER_CHANGES_MAX).for_each(|change| part.push(change));
        part.is_first = self.sent == 0;
        part.is_last = rest.len() <= ORDER_CHANGES_MAX;
        self.sent += rest.len().min(ORDER_CHANGES_MAX);
        if part.is_last {
            self.is_open = false;
            self.script.clear();
        }
        Some(part)
    }
}

impl OrderWatches {
    pub(super) fn contains(&self, local: u32) -> bool {
        self.books.contains_key(&local)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.books.is_empty()
    }

    /// Records that the orders of a book may have changed.
    pub(super) fn touch(&mut self, local: u32) {
        if let Some(watched) = self.books.get_mut(&local).filter(|watched| !watched.is_touched) {
            watched.is_touched = true;
            self.touched.push_back(local);
        }
    }

    pub(super) fn has_waiting(&self) -> bool {
        self.message.is_open || !self.requests.is_empty() || !self.touched.is_empty()
    }

    /// Returns whether the next step is for orders; `others_wait` says whether other market data
    /// waits, which then has every second step.
    pub(super) fn takes_turn(&mut self, others_wait: bool) -> bool {
        self.had_turn = self.has_waiting() && !(others_wait && self.had_turn);
        self.had_turn
    }

    fn remove(&mut self, local: u32, port: PortId) {
        let one = PortMask::one(port);
        self.requests.retain(|request| *request != (local, port));
        if self.message.local == local {
            self.message.to = self.message.to.without(one);
        }
        let is_requested = self.requests.iter().any(|(requested, _)| *requested == local);
        let Some(watched) = self.books.get_mut(&local) else { return };
        watched.ports = watched.ports.without(one);
        if watched.ports.is_empty() && !is_requested {
            self.books.remove(&local);
            self.touched.retain(|touched| *touched != local);
            self.trades.retain(|trade| trade.local != local);
        }
    }

    /// Writes the trades of a book to the script and applies them to what is published.
    fn take_trades(&mut self, local: u32) {
        let Some(watched) = self.books.get_mut(&local) else { return };
        let script = &mut self.message.script;
        self.trades.retain(|trade| {
            if trade.local != local {
                return true;
            }
            if let Some(&order) = watched.published.with_number(trade.side, trade.number) {
                let order = BookOrder { qty: trade.qty, ..order };
                let change = OrderChange { action: OrderAction::Trade, side: trade.side, order };
                if watched.published.apply(&change) {
                    script.push(change);
                }
            }
            false
        });
    }
}

impl Shard {
    /// Starts or stops watching the orders of a book. A port that starts, or starts again, gets a
    /// snapshot.
    pub(super) fn watch_book_orders(
        &mut self,
        port: PortId,
        security: SecurityId,
        on: bool,
    ) -> Result<(), Reason> {
        let local = self.directory.local(security).ok_or(Reason::UnknownSecurity)?;
        if !on {
            self.book_orders.remove(local, port);
            self.unfollow(local);
            return Ok(());
        }
        if !self.book_orders.contains(local) {
            self.venue.follow(local, true);
            let mut published = BookOrders::with_room();
            for side in Side::BOTH {
                let mut orders = Vec::with_capacity(ORDERS_PER_SIDE_MAX);
                self.collect_orders(local, side, &mut orders);
                published.swap(side, &mut orders);
            }
            let (ports, seq) = (PortMask::NONE, self.applied);
            let watched = WatchedOrders { ports, seq, is_touched: false, published };
            let watches = &mut self.book_orders;
            watches.books.insert(local, watched);
            watches.touched.reserve(watches.books.len());
            watches.current.reserve(ORDERS_PER_SIDE_MAX);
            watches.trades.reserve(ORDER_TRADES_MAX);
        }
        let requests = &mut self.book_orders.requests;
        if !requests.contains(&(local, port)) {
            requests.push_back((local, port));
        }
        Ok(())
    }

    pub(super) fn forget_book_orders(&mut self) {
        self.book_orders = OrderWatches::default();
    }

    /// Records the fills among the outcomes of the venue.
    #[cold]
    pub(super) fn note_order_trades(&mut self) {
        for &(slot, outcome) in self.venue.outcomes() {
            let VenueOutcome::Filled { qty, .. } = outcome else { continue };
            let order = self.orders.get(slot);
            let (local, side) = (order.local, order.terms.side);
            let OrderWatches { books, trades, .. } = &mut self.book_orders;
            let Some(watched) = books.get(&local).filter(|_| trades.len() < ORDER_TRADES_MAX) else {
                continue;
            };
            // An order that was never shown, such as most that take, shows no trade either.
            let number = OrderNumber::of_client(self.orders.handle(slot));
            if watched.published.with_number(side, number).is_some() {
                trades.push(OrderTrade { local, number, side, qty });
            }
        }
    }

    /// Sends what waits for the watchers of orders, as far as one step goes.
    pub(super) fn emit_book_orders(&mut self, out: &mut Outbox) {
        let (mut events, mut messages) = (0, 0);
        while events < EVENTS_PER_COMMAND_MAX {
            let Some(part) = self.book_orders.message.next_part() else {
                if messages == MESSAGES_PER_GO_MAX || !self.begin_orders_message() {
                    return;
                }
                messages += 1;
                continue;
            };
            let to = self.book_orders.message.to;
            if !to.is_empty() {
                out.emit_unnumbered(to, self.now, EventKind::BookOrders(part));
                events += 1;
            }
        }
    }

    /// Makes the next message: a snapshot before an update. Returns false if nothing waits.
    fn begin_orders_message(&mut self) -> bool {
        if let Some((local, port)) = self.book_orders.requests.pop_front() {
            self.begin_orders_snapshot(local, port);
            return true;
        }
        let Some(local) = self.book_orders.touched.pop_front() else { return false };
        self.begin_orders_update(local);
        true
    }

    fn begin_orders_snapshot(&mut self, local: u32, port: PortId) {
        let security = self.directory.locals[local as usize].instrument.security;
        let OrderWatches { books, message, .. } = &mut self.book_orders;
        let Some(watched) = books.get_mut(&local) else { return };
        watched.ports = watched.ports.with(PortMask::one(port));
        for side in Side::BOTH {
            let orders = watched.published.orders(side).iter();
            message.script.extend(orders.map(|&order| OrderChange { action: OrderAction::Add, side, order }));
        }
        let part = OrderChanges::new(security, LevelsKind::Snapshot, watched.seq, watched.seq);
        message.begin(PortMask::one(port), local, part);
    }

    /// Makes the update of a book, if there is something to tell. A book that is not published any
    /// more is empty.
    fn begin_orders_update(&mut self, local: u32) {
        self.book_orders.take_trades(local);
        let mut current = std::mem::take(&mut self.book_orders.current);
        for side in Side::BOTH {
            current.clear();
            self.collect_orders(local, side, &mut current);
            let OrderWatches { books, message, added, .. } = &mut self.book_orders;
            let Some(watched) = books.get_mut(&local) else { continue };
            compare(side, watched.published.orders(side), &current, &mut message.script, added);
            watched.published.swap(side, &mut current);
        }
        self.book_orders.current = current;
        let security = self.directory.locals[local as usize].instrument.security;
        let OrderWatches { books, message, added, .. } = &mut self.book_orders;
        let Some(watched) = books.get_mut(&local) else { return };
        watched.is_touched = false;
        message.script.append(added);
        if !message.script.is_empty() {
            let part = OrderChanges::new(security, LevelsKind::Update, watched.seq, self.applied);
            watched.seq = self.applied;
            message.begin(watched.ports, local, part);
        }
    }

    /// Collects the orders of a side that are published, the first one to trade first.
    fn collect_orders(&self, local: u32, side: Side, orders: &mut Vec<BookOrder>) {
        // Outside venues give levels, not orders.
        if !self.directory.is_simulated(local) || !self.publishes_depth(local) {
            return;
        }
        orders.extend(self.venue.book_orders(local, side).take(ORDERS_PER_SIDE_MAX).map(|order| {
            let number = match order.owner {
                RestingOwner::Client(slot) => OrderNumber::of_client(self.orders.handle(slot)),
                RestingOwner::Feed(ticks) => OrderNumber::of_feed(side, ticks),
            };
            BookOrder { number, price: order.price, qty: order.qty }
        }));
    }
}

/// Writes what changes the old orders of a side into the new ones. At each price the orders that
/// are still at the beginning of the queue keep their place; all others are removed, and added
/// again if they are still there. So the result is right for every change of the queue. Additions
/// come after all removals, so that no number is there twice.
fn compare(
    side: Side,
    old: &[BookOrder],
    new: &[BookOrder],
    script: &mut Vec<OrderChange>,
    added: &mut Vec<OrderChange>,
) {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        let price = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(only), None) | (None, Some(only)) => only.price,
            (Some(a), Some(b)) if is_better(side, b.price, a.price) => b.price,
            (Some(a), Some(_)) => a.price,
        };
        while let Some(before) = old.next_if(|order| order.price == price) {
            let kept = new.next_if(|order| order.price == price && order.number == before.number);
            match kept {
                Some(after) if after.qty != before.qty => {
                    script.push(OrderChange { action: OrderAction::Change, side, order: *after })
                }
                Some(_) => {}
                None => {
                    let order = BookOrder { qty: Qty::ZERO, ..*before };
                    script.push(OrderChange { action: OrderAction::Remove, side, order });
                }
            }
        }
        while let Some(&order) = new.next_if(|order| order.price == price) {
            added.push(OrderChange { action: OrderAction::Add, side, order });
        }
    }
}
