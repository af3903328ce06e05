//! Expiry: orders that last until the close, for the day or until a date, and securities that
//! expire.
//!
//! ```text
//! Expiry ─► the date is over at the exchange ─► marked ─► open orders end ─► Alert::Unsettled for each position left
//! Expire ─► the settlement price is known ────► marked ─► open orders end ─► positions are closed at the price
//! ```
//!
//! Other components decide when to send them and at which price: the price of an option depends on
//! its underlying, which may belong to another shard. Both may be repeated, after a restart or with
//! late fills: a settled position is not settled twice, because then no position is left.
//!
//! Rules: docs/engine-rules.md#expiry.

use super::Shard;
use super::continuation::{BulkOperation, ROWS_PER_STEP};
use crate::command::TradingSession;
use crate::event::{Alert, EventKind, VenueRequest};
use crate::id::{ExchangeId, OrderHandle};
use crate::index::{index_u16, index_u32};
use crate::number::Price;
use crate::order::Step;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::terms::Tif;
use crate::time::Day;
use crate::timers::Timed;

impl Shard {
    /// Expires the securities of an exchange whose date is over.
    pub(super) fn expiry(&mut self, exchange: ExchangeId, day: Day) -> Result<(), Reason> {
        let place = self.directory.exchange_index(exchange).ok_or(Reason::UnknownExchange)?;
        let reference = self.directory.reference.clone();
        self.directory.exchanges[place as usize].over = Some(day);
        for local in self.directory.locals.iter_mut().filter(|local| local.exchange == place) {
            let row = reference.security(local.instrument.security);
            local.expired |= row.and_then(|row| row.expiration).is_some_and(|date| date <= day);
        }
        self.continuation.begin_expired(place);
        Ok(())
    }

    /// Reports that an expired security has positions left, of strategies or of accounts: a
    /// strategy may hold nothing through accounts with opposite positions. The port that
    /// distributes limits also settles these, so it receives the alert.
    pub(super) fn emit_unsettled(&self, local: u32, out: &mut Outbox) {
        let is_open = self.ledger.positions(local).iter().any(|held| !held.state.qty.is_zero())
            || self.ledger.exposures(local).iter().any(|held| !held.net.is_zero());
        if !self.directory.is_expired(local) || !is_open {
            return;
        }
        let security = self.directory.locals[local as usize].instrument.security;
        let to = self.watchers.of_shard_and_budgets();
        let (alert, order, reason) = (Alert::Unsettled, OrderHandle::NONE, Reason::ExpiredSecurity);
        out.emit(to, self.now, EventKind::Alert { alert, order, security, reason });
    }

    /// Handles a request that arrives at the simulated venue. An order for a security that expired
    /// meanwhile ends there.
    pub(super) fn arrive(&mut self, slot: u32, request: VenueRequest, out: &mut Outbox) {
        if request == VenueRequest::New && self.directory.is_expired(self.orders.get(slot).local) {
            return self.ended(slot, Step::Expire, Reason::SecurityExpired, out);
        }
        self.reach_venue(slot, request);
    }

    pub(super) fn sweep_session(
        &mut self,
        place: u16,
        session: TradingSession,
        local: u32,
        cursor: u32,
        out: &mut Outbox,
    ) -> Option<BulkOperation> {
        let next = (local..self.directory.local_count())
            .find(|&at| self.directory.locals[at as usize].exchange == place);
        if let Some(local) = next {
            self.enter_session(local, session);
            return Some(BulkOperation::Session { place, session, local: local + 1, cursor });
        }
        if session != TradingSession::Closed {
            return None;
        }
        if cursor == 0 {
            self.drop_settled_stops();
        }
        let cursor = self.visit(
            cursor,
            |shard, order| {
                shard.directory.exchange_of(order.local) == Some(place)
                    && matches!(order.terms.tif, Tif::Day | Tif::Atc)
            },
            |shard, slot, out| {
                let is_auction = shard.orders.get(slot).terms.tif == Tif::Atc;
                let reason = if is_auction { Reason::ExpiredAuction } else { Reason::ExpiredDay };
                shard.expire(slot, reason, out);
            },
            out,
        );
        let local = self.directory.local_count();
        (cursor < self.orders.len()).then_some(BulkOperation::Session { place, session, local, cursor })
    }

    pub(super) fn sweep_day(&mut self, day: Day, cursor: u32, out: &mut Outbox) -> Option<BulkOperation> {
        if cursor == 0 {
            self.drop_settled_stops();
        }
        let cursor = self.visit(
            cursor,
            |shard, order| {
                // An exchange with hours ends them itself, at its close. An exchange that is closed
                // without hours was closed by an older version, whose journal must give the same
                // result again.
                let ends_with_day = shard.directory.exchange_of(order.local).is_some_and(|place| {
                    let place = &shard.directory.exchanges[place as usize];
                    !place.has_hours && place.session != TradingSession::Closed
                });
                ends_with_day && order.terms.tif == Tif::Day
            },
            |shard, slot, out| shard.expire(slot, Reason::ExpiredDay, out),
            out,
        );
        if cursor < self.orders.len() {
            return Some(BulkOperation::Day { day, cursor });
        }
        Some(BulkOperation::Forget { day })
    }

    pub(super) fn sweep_expire(
        &mut self,
        local: u32,
        price: Price,
        cursor: u32,
        position: u16,
        out: &mut Outbox,
    ) -> Option<BulkOperation> {
        if cursor < self.orders.len() {
            let cursor = self.visit(
                cursor,
                |_, order| order.local == local,
                |shard, slot, out| shard.expire(slot, Reason::SecurityExpired, out),
                out,
            );
            return Some(BulkOperation::Expire { local, price, cursor, position });
        }
        let end = self.ledger.positions(local).len().min(position as usize + ROWS_PER_STEP);
        for at in position as usize..end {
            self.expire_position(local, index_u16(at), price, out);
        }
        (end < self.ledger.positions(local).len()).then(|| BulkOperation::Expire {
            local,
            price,
            cursor,
            position: index_u16(end),
        })
    }

    pub(super) fn sweep_expired(
        &mut self,
        place: u16,
        cursor: u32,
        local: u32,
        out: &mut Outbox,
    ) -> Option<BulkOperation> {
        if cursor < self.orders.len() {
            let cursor = self.visit(
                cursor,
                |shard, order| {
                    shard.directory.exchange_of(order.local) == Some(place)
                        && shard.directory.is_expired(order.local)
                },
                |shard, slot, out| shard.expire(slot, Reason::SecurityExpired, out),
                out,
            );
            return Some(BulkOperation::Expired { place, cursor, local });
        }
        let end = self.directory.local_count().min(local.saturating_add(index_u32(ROWS_PER_STEP)));
        for at in local..end {
            if self.directory.locals[at as usize].exchange == place {
                self.emit_unsettled(at, out);
            }
        }
        let left = (end as usize) < self.directory.locals.len();
        left.then_some(BulkOperation::Expired { place, cursor, local: end })
    }

    /// Expires an order on its date. An order in transit to the simulated venue ends as soon as it
    /// must have arrived.
    pub(super) fn expire_dated(&mut self, slot: u32, handle: OrderHandle, out: &mut Outbox) {
        let order = self.orders.get(slot);
        let here = order.at_venue() || order.waits_for_trigger();
        if order.base.is_finished() || here || !self.directory.is_simulated(order.local) {
            return self.expire(slot, Reason::ExpiredGtd, out);
        }
        let delays = self.delays(order.local);
        let latest = delays.entry_ns.saturating_add(delays.entry_jitter_ns).saturating_add(1);
        self.deadlines.push(self.now.plus(latest), Timed::Date(handle));
    }

    /// Ends a stop that the shard holds again if its time ended while it was presumed to be at its
    /// venue.
    pub(super) fn expire_overdue(&mut self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get(slot);
        let (terms, local) = (&order.terms, order.local);
        let is_overdue = self.overdue_stops.remove(&self.orders.handle(slot));
        let reason = match terms.tif {
            _ if self.directory.is_expired(local) => Reason::SecurityExpired,
            Tif::Gtd if terms.tif_date <= self.now => Reason::ExpiredGtd,
            Tif::Day if is_overdue => Reason::ExpiredDay,
            Tif::Day | Tif::Gtc | Tif::Ato | Tif::Ioc | Tif::Fok | Tif::Gtd | Tif::Atc => return,
        };
        self.expire(slot, reason, out);
    }

    /// Ends an order whose time is over: a stop that the shard holds, or an order at the simulated
    /// venue. Outside venues end their orders themselves.
    fn expire(&mut self, slot: u32, reason: Reason, out: &mut Outbox) {
        let order = self.orders.get(slot);
        if order.base.is_finished() {
            return;
        }
        if order.waits_for_trigger() && !order.at_venue() {
            self.ended(slot, Step::Expire, reason, out);
        } else if self.directory.is_simulated(order.local) {
            self.venue.expire(slot, reason);
        } else if reason == Reason::ExpiredDay && order.is_unsent_stop() {
            // If it never arrived, it waits again, and must not be sent on another day.
            self.overdue_stops.insert(self.orders.handle(slot));
        }
    }

    /// Forgets stops that have arrived at their venue or ended, when the next day ends.
    fn drop_settled_stops(&mut self) {
        let orders = &self.orders;
        self.overdue_stops
            .retain(|&stop| orders.find(stop).is_some_and(|slot| orders.get(slot).is_unsent_stop()));
    }
}
