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
//! This module holds the state and dispatches commands; each kind of work has its own file.
//!
//! Rules: docs/engine-rules.md#commands-and-events.

mod continuation;
mod consistency;
mod recovery;
mod bookkeeping;
mod closing;
mod control;
mod credit;
pub mod depth;
mod emit;
mod order_entry;
mod expiry;
mod risk_gate;
mod codec;
mod market;
mod reconcile;
mod reports;
mod requests;
mod routing;
mod snapshot;
mod stops;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::command::{AuditAnchor, Command, CommandKind};
use crate::directive::Directives;
use crate::directory::Directory;
use crate::event::{EVENTS_PER_COMMAND_MAX, EventKind};
use crate::id::{AdapterId, PortMask, ShardId};
use crate::index::index_u32;
use crate::ledger::Ledger;
use crate::orders::Orders;
use crate::outbox::Outbox;
use crate::refdata::RefData;
use crate::sender::{SenderId, SenderTable};
use crate::settings::{Delays, ShardSettings};
use crate::time::{Day, Timestamp};
use crate::timers::{DelayLine, Timers};
use crate::used_ids::{USED_IDS_MAX, UsedIdLog};
use crate::venue::{BookSpec, Venue};

use closing::PendingClose;
use continuation::Continuation;
pub use control::SessionState;
use depth::DepthWatches;
pub use routing::{CommandRoute, route, shard_of, shard_of_cash};
use snapshot::Snapshots;
use stops::Stops;

#[derive(Debug)]
pub struct Shard {
    id: ShardId,
    shards: u8,
    settings: ShardSettings,
    /// Number of commands applied, including starts.
    applied: u64,
    /// Time of the current command.
    now: Timestamp,
    /// The trading day that was started last.
    day: Option<Day>,
    /// The trading day last published to readers, and the number of days published. The number
    /// wraps around, but no order is kept that long.
    published_day: Option<Day>,
    era: u8,
    directory: Directory,
    orders: Orders,
    ledger: Ledger,
    /// Its books have the same indices as the directory's securities.
    venue: Venue,
    stops: Stops,
    timers: Timers,
    /// By security: the transit to and from the venue.
    delay_lines: Vec<[DelayLine; 2]>,
    /// Whether any transit takes time.
    delayed: bool,
    /// Number of open GTD orders.
    dated: usize,
    adapters: [AdapterState; 256],
    killed: bool,
    directives: Directives,
    watching: EventWatchers,
    continuation: Continuation,
    /// Positions that wait to be closed, at most [`closing::PENDING_CLOSES_MAX`].
    pending_closes: Vec<PendingClose>,
    snapshots: Snapshots,
    depths: DepthWatches,
    /// Reference data for the next [`CommandKind::Reference`]; not part of the state.
    staged: Option<(u64, Arc<RefData>)>,
    used_ids: UsedIdLog,
    /// Newest anchor of the audit log known to this shard.
    audit_anchor: Option<AuditAnchor>,
    senders: SenderTable,
    /// Sender of the current command.
    sender: SenderId,
}

#[derive(Clone, Copy, Debug, Default)]
struct AdapterState {
    connected: bool,
    killed: bool,
    /// The port of its adapter.
    ports: PortMask,
}

/// Ports that watch each kind of event; ticks are watched per security.
#[derive(Clone, Copy, Debug, Default)]
struct EventWatchers {
    everything: PortMask,
    orders: PortMask,
    budgets: PortMask,
}

impl Shard {
    pub fn new(id: ShardId, shards: u8, reference: Arc<RefData>, settings: ShardSettings) -> Shard {
        assert!(id.0 < shards, "a shard is one of its number");
        let directory = Directory::new(id, shards, reference);
        let mut adapters = [AdapterState::default(); 256];
        adapters[AdapterId::SIM.0 as usize].connected = true;
        let mut shard = Shard {
            id,
            shards,
            applied: 0,
            now: Timestamp::ZERO,
            day: None,
            published_day: None,
            era: 0,
            orders: Orders::new(id, settings.orders_max, settings.executions_max, settings.pages),
            ledger: Ledger::new(0, settings.transactions_max, settings.pages),
            venue: Venue::new(Vec::new(), settings.orders_max as usize, settings.pages),
            stops: Stops::default(),
            timers: Timers::default(),
            delay_lines: Vec::new(),
            delayed: false,
            dated: 0,
            adapters,
            killed: false,
            directives: Directives::default(),
            watching: EventWatchers::default(),
            continuation: Continuation::default(),
            pending_closes: Vec::new(),
            snapshots: Snapshots::default(),
            depths: DepthWatches::default(),
            staged: None,
            used_ids: UsedIdLog::new(USED_IDS_MAX),
            audit_anchor: None,
            senders: SenderTable::default(),
            sender: SenderId::INTERNAL,
            settings,
            directory,
        };
        shard.open_books();
        shard
    }

    pub fn id(&self) -> ShardId {
        self.id
    }

    pub fn reference(&self) -> &Arc<RefData> {
        &self.directory.reference
    }

    pub fn settings(&self) -> &ShardSettings {
        &self.settings
    }

    /// Returns the newest anchor of the audit log, if this shard knows one.
    pub fn audit_anchor(&self) -> Option<AuditAnchor> {
        self.audit_anchor
    }

    /// Returns the known senders.
    pub fn senders(&self) -> &SenderTable {
        &self.senders
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
        self.staged = Some((name, reference));
    }

    /// Returns whether the reference data of this name are staged.
    pub fn has_staged(&self, name: u64) -> bool {
        self.staged.as_ref().is_some_and(|(staged, _)| *staged == name)
    }

    /// Applies new reference data. Orders and positions stay; securities that have disappeared can
    /// no longer be traded.
    pub fn set_reference(&mut self, reference: Arc<RefData>) {
        self.directory.set_reference(self.id, self.shards, reference);
        for (book, local) in self.directory.locals.iter().enumerate().take(self.delay_lines.len()) {
            let place = &self.directory.exchanges[local.exchange as usize];
            self.venue.set_auctions(index_u32(book), place.auctions);
        }
        self.open_books();
    }

    /// Applies one command at one instant, and emits every consequence that fits a step; see
    /// [`Shard::resume`].
    pub fn apply(&mut self, now: Timestamp, command: &Command, out: &mut Outbox) {
        assert!(!self.has_work(), "a shard with work left takes no command");
        let before = out.waiting().len();
        self.applied += 1;
        self.now = now;
        let source = command.source;
        self.sender = SenderId::INTERNAL;
        match &command.body {
            CommandKind::Submit { id, terms } => {
                self.sender = command.sender;
                self.used_ids.push(source, id);
                self.submit(source, id, terms, out)
            }
            CommandKind::Modify { order, id, changes } => {
                self.sender = command.sender;
                self.used_ids.push(source, id);
                self.modify(source, *order, id, changes, out)
            }
            CommandKind::Cancel { order, id } => {
                self.sender = command.sender;
                self.used_ids.push(source, id);
                self.cancel(source, *order, id, out)
            }
            CommandKind::Close { id, strategy, account, security, qty } => {
                self.sender = command.sender;
                self.used_ids.push(source, id);
                self.close(source, id, *strategy, *account, *security, *qty, out)
            }
            CommandKind::Quote { security, quote } => self.tick(*security, Some(quote), None),
            CommandKind::Trade { security, trade } => self.tick(*security, None, Some(trade)),
            CommandKind::Tick { security, quote, trade } => self.tick(*security, Some(quote), Some(trade)),
            CommandKind::Report { order, report } => self.venue_report(*order, report, out),
            CommandKind::Timer => self.continuation.begin_timers(),
            CommandKind::Sender { id, part } => {
                let sender = self.senders.apply_part(*id, *part);
                self.emit(EventKind::Sender { id: *id, sender }, out);
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
        self.end_step(before, out);
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
        let before = out.waiting().len();
        if self.has_work() {
            self.work(out);
        }
        self.end_step(before, out);
    }

    /// Returns the time at which a [`CommandKind::Timer`] is due.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.timers.deadline()
    }

    /// Ends a step. Most commands leave nothing: no outcome of the venue, no security in progress,
    /// no report.
    #[inline]
    fn end_step(&mut self, before: usize, out: &mut Outbox) {
        if !self.venue.outcomes().is_empty() || self.continuation.is_begun() || self.snapshots.is_running() {
            self.end_busy_step(before, out);
        }
        assert!(out.waiting().len() - before <= EVENTS_PER_COMMAND_MAX, "a step has its bound");
    }

    #[inline(never)]
    fn end_busy_step(&mut self, before: usize, out: &mut Outbox) {
        self.handle_outcomes(out);
        self.finish_step(out);
        if self.snapshots.is_running() {
            let emitted = out.waiting().len() - before;
            self.snapshot_step(
                snapshot::SNAPSHOT_EVENTS_PER_STEP_MAX.min(EVENTS_PER_COMMAND_MAX.saturating_sub(emitted)),
                out,
            );
        }
    }

    /// Creates books, ledger entries and delay lines for securities that have none yet.
    fn open_books(&mut self) {
        self.venue.reserve_books(self.directory.locals.len(), self.settings.pages);
        for at in self.delay_lines.len()..self.directory.locals.len() {
            let spec = book_spec(&self.directory, &self.settings, at);
            let seed = spec.settings.seed ^ (spec.security.0 as u64) << 32;
            self.delayed |= spec.settings.delays != Delays::default();
            self.delay_lines.push([DelayLine::new(seed ^ 1), DelayLine::new(seed ^ 2)]);
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

    /// Returns the transit times to and from a security's venue.
    #[inline]
    fn delays(&self, local: u32) -> Delays {
        if !self.delayed {
            return Delays::default();
        }
        let exchange = self.directory.locals[local as usize].exchange;
        let place = &self.directory.exchanges[exchange as usize];
        self.settings.venue_of(place.id).delays
    }

    /// Returns whether its orders go to the venue inside this shard.
    #[inline]
    fn is_simulated(&self, local: u32) -> bool {
        self.directory.locals[local as usize].adapter == AdapterId::SIM
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
