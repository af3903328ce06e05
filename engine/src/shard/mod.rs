//! The shard: a function with memory. It owns a disjoint set of securities with everything that
//! belongs to them: orders, stops, books of the simulated venue, positions, transactions, and its
//! parts of cash and limits.
//!
//! ```text
//!            ┌ entry ───► gate ──► route ─┐          ┌► reports ─► ledger
//!  apply ────┼ requests ──────────────────┼► venue ──┤
//!            ├ market ────────────────────┘          └► stops ──► route
//!            └ control, bookkeeping, snapshot   continuation: remaining work, done in the next step
//! ```
//!
//! This module dispatches commands. The state is in parts with methods of their own:
//!
//! | part | content |
//! |---|---|
//! | `Directory`, `Orders`, `Ledger`, `Venue` | modules of the crate, usable without a shard |
//! | `stops::Stops` | stops that wait for their price |
//! | `deadlines::Deadlines` | dates of orders, and what is in transit to or from the venue |
//! | `closing::PendingCloses` | positions that wait to be closed |
//! | `adapters::Adapters` | connections and kill switches of venues |
//! | `trading_days::TradingDays` | the current and the published day |
//! | `request_log::RequestLog` | senders, ids of the day, audit anchor |
//! | `watchers::EventWatchers`, `depth::DepthWatches`, `levels::LevelWatches`, `book_orders::OrderWatches`, `trades::TradeWatches`, `snapshot::Snapshots` | ports that receive events |
//! | `venue_books::VenueBooks` | books of outside venues, for publication only |
//! | `continuation::Continuation` | work that the last command has left |
//!
//! `impl Shard` has what concerns several of them, with a file for each kind of work.
//!
//! Rules: docs/engine-rules.md#commands-and-events.

mod adapters;
mod continuation;
mod consistency;
mod recovery;
mod book_orders;
mod bookkeeping;
mod closing;
mod control;
mod credit;
mod deadlines;
pub mod depth;
mod levels;
mod emit;
mod order_entry;
mod order_filter;
mod expiry;
mod risk_gate;
mod codec;
mod market;
mod reconcile;
mod reports;
mod request_log;
mod requests;
mod routing;
mod snapshot;
mod stops;
mod trades;
mod trading_days;
mod venue_books;
mod watchers;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::command::{AuditAnchor, Command, CommandKind};
use crate::directive::Directives;
use crate::directory::Directory;
use crate::event::{EVENTS_PER_COMMAND_MAX, EventKind};
use crate::id::{OrderHandle, PortMask, ShardId};
use crate::index::index_u32;
use crate::ledger::Ledger;
use crate::orders::Orders;
use crate::outbox::Outbox;
use crate::refdata::RefData;
use crate::sender::SenderTable;
use crate::settings::{DelayTable, Delays, ShardSettings};
use crate::time::Timestamp;
use crate::venue::{BookSpec, Venue};

use adapters::Adapters;
use book_orders::OrderWatches;
use closing::PendingCloses;
use continuation::Continuation;
pub use control::SessionState;
use deadlines::Deadlines;
use depth::DepthWatches;
use levels::LevelWatches;
use request_log::RequestLog;
pub use routing::{CommandRoute, route, shard_of, shard_of_cash};
use snapshot::Snapshots;
use stops::Stops;
use trades::TradeWatches;
use trading_days::TradingDays;
use venue_books::VenueBooks;
use watchers::EventWatchers;

#[derive(Debug)]
pub struct Shard {
    id: ShardId,
    shards: u8,
    settings: ShardSettings,
    /// Number of commands applied, including starts.
    applied: u64,
    /// Time of the current command.
    now: Timestamp,
    days: TradingDays,
    directory: Directory,
    orders: Orders,
    ledger: Ledger,
    /// Its books have the same indices as the directory's securities.
    venue: Venue,
    stops: Stops,
    /// DAY stops that were presumed to be at their outside venue when their day ended.
    overdue_stops: BTreeSet<OrderHandle>,
    deadlines: Deadlines,
    adapters: Adapters,
    killed: bool,
    directives: Directives,
    watchers: EventWatchers,
    continuation: Continuation,
    closes: PendingCloses,
    snapshots: Snapshots,
    depths: DepthWatches,
    levels: LevelWatches,
    venue_books: VenueBooks,
    book_orders: OrderWatches,
    trade_watches: TradeWatches,
    requests: RequestLog,
}

impl Shard {
    pub fn new(id: ShardId, shards: u8, reference: Arc<RefData>, settings: ShardSettings) -> Shard {
        assert!(id.0 < shards, "a shard is one of its number");
        let directory = Directory::new(id, shards, reference);
        let mut shard = Shard {
            id,
            shards,
            applied: 0,
            now: Timestamp::ZERO,
            days: TradingDays::default(),
            orders: Orders::new(id, settings.orders_max, settings.executions_max, settings.pages),
            ledger: Ledger::new(0, settings.transactions_max, settings.pages),
            venue: Venue::new(Vec::new(), settings.orders_max as usize, settings.pages),
            stops: Stops::default(),
            overdue_stops: BTreeSet::new(),
            deadlines: Deadlines::default(),
            adapters: Adapters::default(),
            killed: false,
            directives: Directives::default(),
            watchers: EventWatchers::default(),
            continuation: Continuation::default(),
            closes: PendingCloses::default(),
            snapshots: Snapshots::default(),
            depths: DepthWatches::default(),
            levels: LevelWatches::default(),
            venue_books: VenueBooks::default(),
            book_orders: OrderWatches::default(),
            trade_watches: TradeWatches::default(),
            requests: RequestLog::new(settings.pages),
            settings,
            directory,
        };
        shard.open_books();
        shard
    }

    pub fn id(&self) -> ShardId {
        self.id
    }

    /// Sets the ports that receive the events of every order from now on, beside those that ask for
    /// them by a command.
    pub fn set_copies(&mut self, ports: PortMask) {
        self.watchers.copies = ports;
    }

    pub fn reference(&self) -> &Arc<RefData> {
        &self.directory.reference
    }

    pub fn settings(&self) -> &ShardSettings {
        &self.settings
    }

    /// Returns the newest anchor of the audit log, if this shard knows one.
    pub fn audit_anchor(&self) -> Option<AuditAnchor> {
        self.requests.audit_anchor
    }

    /// Returns the known senders.
    pub fn senders(&self) -> &SenderTable {
        &self.requests.senders
    }

    /// Returns the number of commands applied, including starts: the number of the last.
    #[inline]
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Stages reference data, fit to follow those in force (see [`RefData::succeed`]), under the
    /// name that [`CommandKind::Reference`] will use. The journal stores them under it, so that a
    /// replay does the same.
    pub fn stage(&mut self, name: u64, reference: Arc<RefData>) {
        self.directory.stage(name, reference);
    }

    /// Returns whether the reference data of this name are staged.
    pub fn has_staged(&self, name: u64) -> bool {
        self.directory.has_staged(name)
    }

    /// Applies new reference data. Orders and positions stay; securities that have disappeared can
    /// no longer be traded.
    pub fn set_reference(&mut self, reference: Arc<RefData>) {
        self.directory.set_reference(self.id, self.shards, reference);
        for (book, local) in self.directory.locals.iter().enumerate().take(self.deadlines.securities()) {
            let place = &self.directory.exchanges[local.exchange as usize];
            self.venue.set_auctions(index_u32(book), place.auctions);
        }
        self.open_books();
    }

    /// Applies one command at one instant, and emits every consequence that fits a step; see
    /// [`Shard::resume`].
    pub fn apply(&mut self, now: Timestamp, command: &Command, out: &mut Outbox) {
        assert!(!self.has_work(), "a shard with work left takes no command");
        let before = out.waiting_count();
        self.applied += 1;
        self.now = now;
        let source = command.source;
        self.requests.begin_internal();
        if let CommandKind::Submit { id, terms } = &command.body {
            self.requests.begin_request(command.sender, source, id);
            match terms.special {
                true => self.submit_special(command, id, terms, out),
                false => self.submit(source, id, terms, out),
            }
        } else if let CommandKind::Cancel { order, id } = &command.body {
            self.requests.begin_request(command.sender, source, id);
            self.cancel(source, *order, id, out)
        } else {
            self.apply_other(command, out);
        }
        self.end_step(before, out);
    }

    /// Applies a command that is neither a new order nor a cancel. Not part of [`Shard::apply`],
    /// which would need more room on the stack for it.
    #[inline(never)]
    fn apply_other(&mut self, command: &Command, out: &mut Outbox) {
        let source = command.source;
        match &command.body {
            CommandKind::Submit { .. } | CommandKind::Cancel { .. } => {
                unreachable!("new orders and cancels are applied before")
            }
            CommandKind::Modify { order, id, changes } => {
                self.requests.begin_request(command.sender, source, id);
                if changes.special() == Some(true) {
                    self.requests.take_special(source, command.token);
                }
                self.modify(source, *order, id, changes, out)
            }
            CommandKind::Close { id, strategy, account, security, qty } => {
                self.requests.begin_request(command.sender, source, id);
                self.close(source, id, *strategy, *account, *security, *qty, out)
            }
            CommandKind::CancelOrders { id, .. } => {
                self.requests.begin_request(command.sender, source, id);
                self.administer(command, out)
            }
            CommandKind::Quote { security, quote } => self.tick(*security, Some(quote), None),
            CommandKind::Trade { security, trade } => self.tick(*security, None, Some(trade)),
            CommandKind::Tick { security, quote, trade } => self.tick(*security, Some(quote), Some(trade)),
            CommandKind::Level { security, level } => self.level(*security, level),
            CommandKind::VenueLevels(part) => self.receive_venue_levels(part),
            CommandKind::VenueBook { security, is_known } => self.complete_venue_book(*security, *is_known),
            CommandKind::Report { order, report } => self.venue_report(*order, report, out),
            CommandKind::Timer => self.continuation.begin_timers(),
            CommandKind::SpecialTerms(special) => {
                self.requests.announced.put(source, command.token, *special)
            }
            CommandKind::Sender { id, part } => {
                let sender = self.requests.senders.apply_part(*id, *part);
                let to = self.watchers.of_shard().with(self.watchers.copies);
                out.emit(to, self.now, EventKind::Sender { id: *id, sender });
            }
            CommandKind::Subscribe { .. }
            | CommandKind::Adapter { .. }
            | CommandKind::Transaction(_)
            | CommandKind::Expire { .. }
            | CommandKind::ResetPositions
            | CommandKind::ResetCash
            | CommandKind::Limits { .. }
            | CommandKind::Restrict { .. }
            | CommandKind::Kill { .. }
            | CommandKind::Direct { .. }
            | CommandKind::Phase { .. }
            | CommandKind::Halt { .. }
            | CommandKind::Budget(_)
            | CommandKind::Session { .. }
            | CommandKind::TradingDay { .. }
            | CommandKind::Watch { .. }
            | CommandKind::Snapshot { .. }
            | CommandKind::Reference { .. }
            | CommandKind::Validate { .. }
            | CommandKind::AuditAnchor(_)
            | CommandKind::Schedule { .. }
            | CommandKind::Expiry { .. } => self.administer(command, out),
        }
    }

    /// Prefetches memory for a command that waits behind others: what the command alone determines.
    #[inline]
    pub fn prefetch_far(&self, command: &Command) {
        // Other commands are rare, or need only memory that is in the cache anyway.
        if let CommandKind::Modify { order, .. } | CommandKind::Cancel { order, .. } = &command.body {
            self.orders.fetch(order.slot());
            self.venue.nodes().fetch(order.slot());
        } else if let CommandKind::Submit { terms, .. } = &command.body
            && terms.kind.has_limit()
            && let Some(local) = self.directory.local(terms.security)
            && let Some(ticks) = self.directory.locals[local as usize].ticks.steps(terms.limit.raw())
        {
            self.venue.fetch_level(local, terms.side, ticks);
        }
    }

    /// Prefetches memory for the next command: what requires a look at memory that
    /// [`Shard::prefetch_far`] has prefetched.
    #[inline]
    pub fn prefetch_near(&self, command: &Command) {
        if let CommandKind::Modify { order, .. } | CommandKind::Cancel { order, .. } = &command.body {
            self.venue.prefetch_near(order.slot());
            if let Some(order) = self.orders.at(order.slot()) {
                self.ledger.fetch(order.local);
            }
        } else if let CommandKind::Submit { terms, .. } = &command.body {
            self.venue.nodes().fetch(self.orders.fetch_free());
            if let Some(local) = self.directory.local(terms.security) {
                self.directory.fetch(local);
                self.ledger.fetch(local);
                self.venue.fetch(local);
                let grid = &self.directory.locals[local as usize].ticks;
                let limit = terms.kind.has_limit().then(|| grid.steps(terms.limit.raw())).flatten();
                if let Some(maker) = self.venue.expect(local, terms.side, limit) {
                    self.orders.fetch(maker);
                }
            }
        }
    }

    /// Returns whether the last command left work. Until it is done no command may be applied.
    pub fn has_work(&self) -> bool {
        self.continuation.has_work()
    }

    /// Returns whether there is work that other commands may overtake: a snapshot in progress.
    pub fn has_background(&self) -> bool {
        self.snapshots.is_running()
    }

    /// Continues the remaining work for one step.
    pub fn resume(&mut self, out: &mut Outbox) {
        let before = out.waiting_count();
        if self.has_work() {
            self.work(out);
        }
        self.end_step(before, out);
    }

    /// Returns the time at which a [`CommandKind::Timer`] is due.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadlines.next()
    }

    /// Ends a step. Most commands leave nothing: no outcome of the venue, no security in progress,
    /// no report.
    #[inline]
    fn end_step(&mut self, before: usize, out: &mut Outbox) {
        if !self.venue.outcomes().is_empty() || self.continuation.is_begun() || self.snapshots.is_running() {
            self.end_busy_step(before, out);
        }
        if self.venue.has_trades() {
            self.emit_trades(out);
        }
        assert!(out.waiting_count() - before <= EVENTS_PER_COMMAND_MAX, "a step has its bound");
    }

    #[inline(never)]
    fn end_busy_step(&mut self, before: usize, out: &mut Outbox) {
        self.handle_outcomes(out);
        self.finish_step(out);
        if self.snapshots.is_running() {
            let emitted = out.waiting_count() - before;
            self.snapshot_step(
                snapshot::SNAPSHOT_EVENTS_PER_STEP_MAX.min(EVENTS_PER_COMMAND_MAX.saturating_sub(emitted)),
                out,
            );
        }
    }

    /// Creates books, ledger entries and delay lines for securities that have none yet.
    fn open_books(&mut self) {
        self.venue.reserve_books(self.directory.locals.len(), self.settings.pages);
        for at in self.deadlines.securities()..self.directory.locals.len() {
            let spec = book_spec(&self.directory, &self.settings, at);
            let seed = spec.settings.seed ^ (spec.security.0 as u64) << 32;
            self.deadlines.add_security(seed, spec.settings.delays);
            let place = &self.directory.exchanges[self.directory.locals[at].exchange as usize];
            let book = self.venue.add_book(spec);
            assert!(book as usize == at, "books and securities have the same indices");
            if place.session != Default::default() {
                self.venue.session(book, place.session);
            }
            self.ledger.add_security();
            self.stops.add_security();
        }
    }

    /// Sets the distributions of the transit times to and from the simulated venues, for a
    /// simulation; the settings must allow for the longest of them. They are not part of snapshots.
    pub fn draw_delays(&mut self, entry: Option<Arc<DelayTable>>, response: Option<Arc<DelayTable>>) {
        self.deadlines.set_tables(entry, response);
    }

    /// Returns the transit times to and from a security's venue.
    #[inline]
    fn delays(&self, local: u32) -> Delays {
        if !self.deadlines.is_delayed() {
            return Delays::default();
        }
        let exchange = self.directory.locals[local as usize].exchange;
        let place = &self.directory.exchanges[exchange as usize];
        self.settings.venue_of(place.id).delays
    }
}

/// Returns the specification of a security's book.
fn book_spec(directory: &Directory, settings: &ShardSettings, local: usize) -> BookSpec {
    let local = &directory.locals[local];
    let place = &directory.exchanges[local.exchange as usize];
    BookSpec {
        security: local.instrument.security,
        tick_size: local.tick,
        lot: local.lot,
        auctions: place.auctions,
        settings: settings.venue_of(place.id).clone(),
    }
}
