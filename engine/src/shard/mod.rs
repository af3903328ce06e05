//! The shard: a function with memory. It owns a disjoint set of securities with everything that
//! belongs to them: orders, stops, books of the simulated venue, positions, transactions, and its
//! parts of cash and limits.
//!
//! ```text
//!            ┌ entry ───► gate ──► route ─┐          ┌► reports ─► ledger
//!  apply ────┼ requests ──────────────────┼► venue ──┤
//!            ├ market ────────────────────┘          └► stops ──► route
//!            └ control, books, snapshot      continuation: what is left goes on in the next step
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
mod order_entry;
mod expiry;
mod risk_gate;
mod codec;
mod market;
mod reconcile;
mod reports;
mod requests;
mod snapshot;
mod stops;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::command::{AuditAnchor, Command, CommandKind};
use crate::directive::Directives;
use crate::directory::Directory;
use crate::event::{EVENTS_PER_COMMAND_MAX, EventKind, ExecType, OrderReport, OrderTerms};
use crate::id::{AdapterId, IntId, PortMask, SecurityId, ShardId, Source, StrategyId};
use crate::ledger::Ledger;
use crate::number::{Price, Qty};
use crate::orders::Orders;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::refdata::RefData;
use crate::sender::{SenderId, SenderTable};
use crate::settings::{Delays, ShardSettings};
use crate::terms::Status;
use crate::time::{Day, Timestamp};
use crate::timers::{DelayLine, Timers};
use crate::used_ids::{USED_IDS_MAX, UsedIdLog};
use crate::venue::{BookSpec, Venue};

use closing::PendingClose;
use continuation::Continuation;
pub use control::SessionState;
use depth::DepthWatches;
use snapshot::Snapshots;
use stops::Stops;

/// Returns the shard that owns a security. Unknown securities have an owner too: one shard must
/// refuse them.
pub fn shard_of(security: SecurityId, shards: u8) -> ShardId {
    ShardId((security.0 % shards as u32) as u8)
}

/// Returns the shard that books a strategy's movements of cash.
pub fn shard_of_cash(strategy: StrategyId, shards: u8) -> ShardId {
    ShardId((strategy.0 % shards as u16) as u8)
}

/// Destination of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    One(ShardId),
    /// Every shard applies it.
    All,
}

/// Returns the destination of a command.
pub fn route(body: &CommandKind, shards: u8) -> Route {
    match body {
        CommandKind::Submit { terms, .. } | CommandKind::Validate { terms } => {
            Route::One(shard_of(terms.security, shards))
        }
        CommandKind::Modify { order, .. }
        | CommandKind::Cancel { order, .. }
        | CommandKind::Report { order, .. } => Route::One(order.shard()),
        CommandKind::Close { security, .. }
        | CommandKind::Subscribe { security, .. }
        | CommandKind::Quote { security, .. }
        | CommandKind::Trade { security, .. }
        | CommandKind::Tick { security, .. }
        | CommandKind::Expire { security, .. }
        | CommandKind::Halt { security, .. } => Route::One(shard_of(*security, shards)),
        CommandKind::Transaction(movement) => Route::One(match movement.security {
            Some(security) => shard_of(security, shards),
            None => shard_of_cash(movement.strategy, shards),
        }),
        CommandKind::Adapter { .. }
        | CommandKind::ResetPositions
        | CommandKind::ResetCash
        | CommandKind::Limits { .. }
        | CommandKind::Restrict { .. }
        | CommandKind::Kill { .. }
        | CommandKind::Direct { .. }
        | CommandKind::Phase { .. }
        | CommandKind::Budget(_)
        | CommandKind::Session { .. }
        | CommandKind::TradingDay { .. }
        | CommandKind::Schedule { .. }
        | CommandKind::Expiry { .. }
        | CommandKind::Timer
        | CommandKind::Watch { .. }
        | CommandKind::Snapshot { .. }
        | CommandKind::Reference { .. }
        | CommandKind::Sender { .. }
        | CommandKind::AuditAnchor(_) => Route::All,
    }
}

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
    pub fn adopt(&mut self, reference: Arc<RefData>) {
        self.directory.adopt(self.id, self.shards, reference);
        for (book, local) in self.directory.locals.iter().enumerate().take(self.delay_lines.len()) {
            let place = &self.directory.exchanges[local.exchange as usize];
            self.venue.set_auctions(book as u32, place.auctions);
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
        match &command.body {
            CommandKind::Modify { order, .. } | CommandKind::Cancel { order, .. } => {
                self.orders.fetch(order.slot());
                self.venue.nodes().fetch(order.slot());
            }
            CommandKind::Submit { terms, .. } if terms.kind.has_limit() => {
                if let Some(local) = self.directory.local(terms.security)
                    && let Some(ticks) = self.directory.locals[local as usize].ticks.steps(terms.limit.raw())
                {
                    self.venue.fetch_level(local, terms.side, ticks);
                }
            }
            _ => {}
        }
    }

    /// Prefetches memory for the next command: what requires a look at memory that
    /// [`Shard::prefetch_far`] has prefetched.
    #[inline]
    pub fn prefetch_near(&self, command: &Command) {
        match &command.body {
            CommandKind::Modify { order, .. } | CommandKind::Cancel { order, .. } => {
                self.venue.prefetch_near(order.slot());
                if let Some(order) = self.orders.at(order.slot()) {
                    self.ledger.fetch(order.local);
                }
            }
            CommandKind::Submit { terms, .. } => {
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
            _ => {}
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
            let said = out.waiting().len() - before;
            self.snapshot_step(
                snapshot::SNAPSHOT_EVENTS_PER_STEP_MAX.min(EVENTS_PER_COMMAND_MAX.saturating_sub(said)),
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

    /// Emits an event that belongs to no order to all its watchers.
    fn emit(&self, body: EventKind, out: &mut Outbox) {
        out.emit(self.watching.everything.with(self.watching.orders), self.now, body);
    }

    /// Returns the ports that receive the events of an order of this source.
    #[inline]
    fn recipients(&self, source: Source) -> PortMask {
        self.watching.everything.with(self.watching.orders).with(PortMask::one(source.port))
    }

    /// Emits the current terms of an order.
    #[inline(never)]
    fn emit_terms(&mut self, slot: u32, what: ExecType, reason: Reason, out: &mut Outbox) {
        self.orders.set_updated(slot, self.now, reason);
        let source = self.orders.get(slot).source;
        out.emit(self.recipients(source), self.now, EventKind::Order(self.order_terms(slot, what, reason)));
    }

    /// Republishes a finished order before a late event about it: readers archive it with its day.
    #[cold]
    fn republish_if_past(&mut self, slot: u32, out: &mut Outbox) {
        let era = std::mem::replace(&mut self.orders.get_mut(slot).era, self.era);
        if era != self.era {
            self.emit_terms_snapshot(slot, out);
        }
    }

    /// Emits the terms of an order to readers that may have archived it, at the time it was
    /// submitted.
    fn emit_terms_snapshot(&mut self, slot: u32, out: &mut Outbox) {
        let (source, submitted) = (self.orders.get(slot).source, self.orders.get(slot).submitted);
        let image = self.order_terms(slot, ExecType::Snapshot, Reason::None);
        out.emit(self.recipients(source), submitted, EventKind::Order(image));
        let sent = self.orders.sent(slot);
        if !sent.is_empty() {
            out.emit(
                self.recipients(source),
                submitted,
                EventKind::Sent { order: self.orders.handle(slot), sent },
            );
        }
    }

    #[inline(always)]
    fn order_terms(&self, slot: u32, what: ExecType, reason: Reason) -> OrderTerms {
        let order = self.orders.get(slot);
        OrderTerms {
            order: self.orders.handle(slot),
            id: order.id,
            orig_id: *self.orders.orig_id(slot),
            source: order.source,
            what,
            status: self.orders.status(slot),
            reason,
            sender: SenderId::NONE,
            terms: order.terms,
        }
    }

    /// Emits a status report about an order, under its own ids.
    #[inline]
    fn emit_status(&mut self, slot: u32, what: ExecType, reason: Reason, out: &mut Outbox) {
        self.emit_fill_status(slot, what, reason, (Qty::ZERO, Price::ZERO), out);
    }

    /// Emits a status report with the quantity and price of a fill.
    #[inline(never)]
    fn emit_fill_status(
        &mut self,
        slot: u32,
        what: ExecType,
        reason: Reason,
        last: (Qty, Price),
        out: &mut Outbox,
    ) {
        self.orders.set_updated(slot, self.now, reason);
        let order = self.orders.get(slot);
        let state = (what, self.orders.status(slot), reason);
        let names = (&order.id, self.orders.orig_id(slot));
        let report = self.order_report(slot, state, names, last, SenderId::NONE);
        out.emit(self.recipients(order.source), self.now, EventKind::Status(report));
    }

    /// Emits a status report about a request: under the request's id if it has one, with the
    /// order's own id as the previous one.
    fn emit_request_status(
        &mut self,
        slot: u32,
        what: ExecType,
        reason: Reason,
        id: &IntId,
        asker: Source,
        out: &mut Outbox,
    ) {
        self.emit_request_status_as(slot, what, self.orders.status(slot), reason, id, asker, out);
    }

    /// Emits a status report about a request, with the given status.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "they are what a report is about")]
    fn emit_request_status_as(
        &mut self,
        slot: u32,
        what: ExecType,
        status: Status,
        reason: Reason,
        id: &IntId,
        asker: Source,
        out: &mut Outbox,
    ) {
        self.orders.set_updated(slot, self.now, reason);
        let order = self.orders.get(slot);
        let none = (Qty::ZERO, Price::ZERO);
        let names = match id.is_none() {
            true => (&order.id, self.orders.orig_id(slot)),
            false => (id, &order.id),
        };
        let report = self.order_report(slot, (what, status, reason), names, none, self.sender);
        let to = self.recipients(order.source).with(PortMask::one(asker.port));
        out.emit(to, self.now, EventKind::Status(report));
        match what {
            ExecType::CancelPending => self.orders.get_mut(slot).canceled_by = self.sender,
            ExecType::ReplacePending => self.orders.set_modified_by(slot, self.sender),
            _ => {}
        }
    }

    #[inline(always)]
    fn order_report(
        &self,
        slot: u32,
        (what, status, reason): (ExecType, Status, Reason),
        (id, orig_id): (&IntId, &IntId),
        (last_qty, last_price): (Qty, Price),
        sender: SenderId,
    ) -> OrderReport {
        let order = self.orders.get(slot);
        OrderReport {
            order: self.orders.handle(slot),
            id: *id,
            orig_id: *orig_id,
            qty: order.terms.qty,
            cum_qty: order.cum,
            // The first fill is its own average.
            avg_price: match what {
                ExecType::Filled if order.cum == last_qty => last_price,
                _ => order.avg_price(),
            },
            last_qty,
            last_price,
            source: order.source,
            sender,
            security: order.terms.security,
            strategy: order.terms.strategy,
            account: order.terms.account,
            what,
            status,
            reason,
            side: order.terms.side,
            kind: order.terms.kind,
            tif: order.terms.tif,
            // There is no doubt about how an order ended: the venue, or the shard, has decided it.
            in_doubt: order.in_doubt() && !order.base.is_finished(),
        }
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
