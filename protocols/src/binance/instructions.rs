//! Instructions of the shards as requests to the venue.
//!
//! A quantity is reduced in place (`order.amend.keepPriority`). Any other change is a new order in
//! place of the old one (`order.cancelReplace`), which is safe only while nothing is filled: the
//! venue is told to cancel an order without fills only, and to place nothing if it cannot.

use pitlane_engine::command::VenueReport;
use pitlane_engine::event::Instruction;
use pitlane_engine::id::{OrderHandle, SecurityId};
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{OrderKind, Side, SpecialTerms, Terms, Tif};
use pitlane_engine::time::Timestamp;

use super::held::{HeldOrder, IdRole, PendingChange};
use super::limits::RequestCost;
use super::request::RequestDraft;
use super::session::{BinanceSession, RequestKind, RequestTime, cost};

const GOOD_TILL_CANCELLED: &str = "GTC";

impl BinanceSession {
    pub(super) fn send_order(
        &mut self,
        now: Timestamp,
        instruction: &Instruction,
        special: Option<&SpecialTerms>,
    ) {
        let Instruction { order, terms, .. } = instruction;
        let checked = self.check_order(now, terms).and_then(|()| shown_qty(terms, special));
        let shown = match checked {
            Ok(shown) => shown,
            Err(reason) => return self.refuse(*order, VenueReport::Rejected(reason)),
        };
        let Some(symbol) = self.symbol(terms.security) else {
            return self.refuse(*order, VenueReport::Rejected(Reason::UnknownSecurity));
        };
        let id = self.ids().id(*order, IdRole::Live);
        self.send(now, RequestKind::Place(*order), cost::PLACE, "order.place", |draft, time| {
            if let Some(shown) = shown {
                draft.decimal("icebergQty", shown.raw());
            }
            write_order(draft, time, &id, &symbol, terms);
        });
        let (day_ends, is_iceberg) = (self.day_ends(terms, now), shown.is_some());
        let held = HeldOrder::new(terms.security, terms.qty, terms.limit);
        self.held.insert(*order, HeldOrder { day_ends, is_iceberg, ..held });
        self.counts.orders_out += 1;
    }

    /// Sends a cancel. Without a connection it does nothing: the shard asks again after the next
    /// synchronization.
    pub(super) fn send_cancel(&mut self, now: Timestamp, instruction: &Instruction) {
        let Instruction { order, terms, .. } = *instruction;
        let change = self.held.get(order).and_then(|held| held.change);
        let is_pending = matches!(change, Some(PendingChange::Cancel | PendingChange::DayEnd));
        if !self.is_ready() || is_pending {
            return;
        }
        if let Err(reason) = self.check_request(now, cost::CANCEL) {
            return self.refuse(order, VenueReport::CancelRefused(reason));
        }
        let Some(symbol) = self.symbol(terms.security) else {
            return self.refuse(order, VenueReport::CancelRefused(Reason::UnknownSecurity));
        };
        self.send_cancel_as(now, RequestKind::Cancel(order), order, &symbol, IdRole::Canceled);
        if let Some(held) = self.held.get_mut(order) {
            held.change = Some(PendingChange::Cancel);
        }
    }

    /// Writes a cancel, by which the order gets the id of this role.
    pub(super) fn send_cancel_as(
        &mut self,
        now: Timestamp,
        kind: RequestKind,
        order: OrderHandle,
        symbol: &str,
        role: IdRole,
    ) {
        let (id, renamed) = (self.ids().id(order, IdRole::Live), self.ids().id(order, role));
        self.send(now, kind, cost::CANCEL, "order.cancel", |draft, time| {
            draft.text("newClientOrderId", &renamed);
            draft.text("origClientOrderId", &id);
            time.write_window(draft);
            draft.text("symbol", symbol);
            time.write_time(draft);
        });
    }

    /// Sends a replacement, as [`BinanceSession::send_cancel`] does.
    pub(super) fn send_replacement(
        &mut self,
        now: Timestamp,
        instruction: &Instruction,
        special: Option<&SpecialTerms>,
    ) {
        let Instruction { order, terms, .. } = *instruction;
        if !self.is_ready() {
            return;
        }
        let refused = VenueReport::ReplaceRefused;
        let Some(&held) = self.held.get(order) else {
            return self.refuse(order, refused(Reason::VenueUnavailable));
        };
        // The venue documents no change of what an order shows.
        match shown_qty(&terms, special) {
            Ok(None) if !held.is_iceberg => {}
            Ok(_) => return self.refuse(order, refused(Reason::VenueUnsupported)),
            Err(reason) => return self.refuse(order, refused(reason)),
        }
        // The day of an order does not begin again when it is changed.
        let day_ends = self.day_ends(&terms, now).min(match terms.tif {
            Tif::Day => held.day_ends,
            Tif::Gtc | Tif::Ato | Tif::Ioc | Tif::Fok | Tif::Gtd | Tif::Atc => Timestamp::MAX,
        });
        match held.change {
            // The venue has the request already, and its answer will come.
            Some(PendingChange::Replace { qty, limit, .. }) if (qty, limit) == (terms.qty, terms.limit) => {
                return;
            }
            Some(PendingChange::DayEnd) => return self.refuse(order, refused(Reason::ExpiredDay)),
            Some(PendingChange::Cancel | PendingChange::Replace { .. }) | None => {}
        }
        if (held.qty, held.limit) == (terms.qty, terms.limit) {
            // The answer to an earlier request was lost, and a lookup has found what it did, or
            // only the time in force is another one.
            self.set_day_end(order, day_ends);
            return self.queue_report(order, VenueReport::Replaced);
        }
        let wanted = PendingChange::Replace { qty: terms.qty, limit: terms.limit, day_ends };
        let is_reduction = held.limit == terms.limit && terms.qty < held.qty;
        let cost = if is_reduction { cost::AMEND } else { cost::PLACE };
        let checked =
            if is_reduction { self.check_request(now, cost) } else { self.check_order(now, &terms) };
        if let Err(reason) = checked {
            return self.refuse(order, refused(reason));
        }
        if !is_reduction && held.cum.is_positive() {
            return self.refuse(order, refused(Reason::VenueUnsupported));
        }
        let Some(symbol) = self.symbol(terms.security) else {
            return self.refuse(order, refused(Reason::UnknownSecurity));
        };
        match is_reduction {
            true => self.send_reduction(now, order, &symbol, terms.qty),
            false => self.send_new_in_place(now, order, &symbol, &terms),
        }
        if let Some(held) = self.held.get_mut(order) {
            held.change = Some(wanted);
        }
    }

    fn send_reduction(&mut self, now: Timestamp, order: OrderHandle, symbol: &str, qty: Qty) {
        let id = self.ids().id(order, IdRole::Live);
        self.send(now, RequestKind::Amend(order), cost::AMEND, "order.amend.keepPriority", |draft, time| {
            draft.text("newClientOrderId", &id);
            draft.decimal("newQty", qty.raw());
            draft.text("origClientOrderId", &id);
            time.write_window(draft);
            draft.text("symbol", symbol);
            time.write_time(draft);
        });
    }

    fn send_new_in_place(&mut self, now: Timestamp, order: OrderHandle, symbol: &str, terms: &Terms) {
        let (id, replaced) = (self.ids().id(order, IdRole::Live), self.ids().id(order, IdRole::Replaced));
        self.send(now, RequestKind::Replace(order), cost::PLACE, "order.cancelReplace", |draft, time| {
            draft.text("cancelNewClientOrderId", &replaced);
            draft.text("cancelOrigClientOrderId", &id);
            draft.text("cancelReplaceMode", "STOP_ON_FAILURE");
            draft.text("cancelRestrictions", "ONLY_NEW");
            write_order(draft, time, &id, symbol, terms);
        });
    }

    pub(super) fn set_day_end(&mut self, order: OrderHandle, day_ends: Timestamp) {
        if let Some(held) = self.held.get_mut(order) {
            held.day_ends = day_ends;
            self.held.check_day_at(day_ends);
        }
    }

    /// Returns the venue's name of a security.
    pub(super) fn symbol(&self, security: SecurityId) -> Option<String> {
        self.reference.security(security).map(|row| row.symbol.to_string())
    }

    fn check_order(&self, now: Timestamp, terms: &Terms) -> Result<(), Reason> {
        if !self.is_ready() {
            return Err(Reason::VenueUnavailable);
        }
        if time_in_force(terms).is_none() {
            return Err(Reason::VenueUnsupported);
        }
        if !self.has_room() || !self.held.has_room() {
            return Err(Reason::LaneFull);
        }
        let is_allowed = self.limits.allows_order(self.venue_time(now), cost::PLACE);
        if is_allowed { Ok(()) } else { Err(Reason::VenueRate) }
    }

    pub(super) fn check_request(&self, now: Timestamp, cost: RequestCost) -> Result<(), Reason> {
        if !self.has_room() {
            return Err(Reason::LaneFull);
        }
        let is_allowed = self.limits.allows(self.venue_time(now), cost);
        if is_allowed { Ok(()) } else { Err(Reason::VenueRate) }
    }

    fn refuse(&mut self, order: OrderHandle, report: VenueReport) {
        self.counts.refused += 1;
        self.queue_report(order, report);
    }
}

/// Returns the quantity to be shown of an order that hides a part of its quantity. The venue hides
/// a part of limit orders that are good till cancelled, and keeps no other special terms.
fn shown_qty(terms: &Terms, special: Option<&SpecialTerms>) -> Result<Option<Qty>, Reason> {
    let Some(special) = special else { return Ok(None) };
    let can_hide = time_in_force(terms) == Some(Some(GOOD_TILL_CANCELLED));
    let shown = special.max_floor.filter(|shown| can_hide && shown.is_positive() && *shown < terms.qty);
    let rest = if shown.is_some() { SpecialTerms { max_floor: None, ..*special } } else { *special };
    rest.check_plain(terms.qty).map(|()| shown)
}

/// Writes the parameters of a new order, sorted by name.
fn write_order(draft: &mut RequestDraft<'_>, time: &RequestTime, id: &str, symbol: &str, terms: &Terms) {
    let time_in_force = time_in_force(terms).flatten();
    draft.text("newClientOrderId", id);
    // The ids only: what becomes of the order arrives as events.
    draft.text("newOrderRespType", "ACK");
    if time_in_force.is_some() {
        draft.decimal("price", terms.limit.raw());
    }
    draft.decimal("quantity", terms.qty.raw());
    time.write_window(draft);
    draft.text("side", if terms.side == Side::Buy { "BUY" } else { "SELL" });
    draft.text("symbol", symbol);
    if let Some(time_in_force) = time_in_force {
        draft.text("timeInForce", time_in_force);
    }
    time.write_time(draft);
    draft.text("type", if time_in_force.is_some() { "LIMIT" } else { "MARKET" });
}

/// Returns the venue's time in force: `Some(None)` for a market order, which has none, and `None`
/// if the venue has nothing like it.
///
/// Stop orders wait in the engine, so an order that leaves has been triggered. The venue has no
/// session that ends and no date. An order for the day is GTC there until [`super::day_end`].
fn time_in_force(terms: &Terms) -> Option<Option<&'static str>> {
    match (terms.kind, terms.tif) {
        (_, Tif::Ato | Tif::Atc) | (OrderKind::Market | OrderKind::Stop, Tif::Fok) => None,
        (OrderKind::Market | OrderKind::Stop, Tif::Day | Tif::Gtc | Tif::Ioc | Tif::Gtd) => Some(None),
        (OrderKind::Limit | OrderKind::StopLimit, Tif::Ioc) => Some(Some("IOC")),
        (OrderKind::Limit | OrderKind::StopLimit, Tif::Fok) => Some(Some("FOK")),
        (OrderKind::Limit | OrderKind::StopLimit, Tif::Gtc | Tif::Day) => Some(Some(GOOD_TILL_CANCELLED)),
        (OrderKind::Limit | OrderKind::StopLimit, Tif::Gtd) => None,
    }
}
