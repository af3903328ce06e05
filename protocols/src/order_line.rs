//! One readable line about one change of an order's status.
//!
//! ```text
//! 2026-11-14T09:30:00.000007Z n17 AAPL BUY STOP_LIMIT 100@187.25 stop 187 PARTIALLY_FILLED filled 40 …
//! ```
//!
//! A line is a value that implements `Display` exactly and without memory of its own: a caller can
//! `write!` it into a reused string.

use std::fmt;

use pitlane_engine::event::{Event, OrderReport};
use pitlane_engine::id::IntId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{OrderKind, Side, Status, Terms};
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::OrderView;

use crate::codes::{ReasonText, WireName};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLine<'a> {
    pub at: Timestamp,
    pub id: IntId,
    pub symbol: &'a str,
    pub side: Side,
    pub kind: OrderKind,
    pub qty: Qty,
    /// Limit price, if known; a market order has none.
    pub limit: Option<Price>,
    pub stop: Option<Price>,
    pub status: Status,
    pub cum_qty: Qty,
    pub avg_price: Price,
    pub reason: Reason,
    pub in_doubt: bool,
}

impl<'a> OrderLine<'a> {
    /// Returns the line of an order in the read model after its last change.
    pub fn of_order(order: &OrderView, symbol: &'a str) -> OrderLine<'a> {
        OrderLine {
            at: order.updated,
            id: order.id,
            symbol,
            side: order.terms.side,
            kind: order.terms.kind,
            qty: order.terms.qty,
            limit: limit_of(&order.terms),
            stop: stop_of(&order.terms),
            status: order.status,
            cum_qty: order.cum_qty,
            avg_price: order.avg_price,
            reason: order.reason,
            in_doubt: order.in_doubt,
        }
    }

    /// Returns the line of an event, or `None` if the event is not about an order. Only some events
    /// carry the terms with the prices; the caller gives them for the others if it knows them.
    pub fn of_event(event: &Event, terms: Option<&Terms>, symbol: &'a str) -> Option<OrderLine<'a>> {
        let OrderReport { id, side, kind, qty, status, cum_qty, avg_price, reason, in_doubt, .. } =
            event.report()?;
        let (limit, stop) = (terms.and_then(limit_of), terms.and_then(stop_of));
        let at = event.at;
        Some(OrderLine {
            at,
            id,
            symbol,
            side,
            kind,
            qty,
            limit,
            stop,
            status,
            cum_qty,
            avg_price,
            reason,
            in_doubt,
        })
    }
}

fn limit_of(terms: &Terms) -> Option<Price> {
    terms.kind.has_limit().then_some(terms.limit)
}

fn stop_of(terms: &Terms) -> Option<Price> {
    terms.kind.has_stop().then_some(terms.stop)
}

impl fmt::Display for OrderLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OrderLine { at, id, symbol, side, kind, qty, status, cum_qty, .. } = self;
        write!(f, "{at} {id} {symbol} {} {} {qty}", side.wire_name(), kind.wire_name())?;
        if let Some(limit) = self.limit {
            write!(f, "@{limit}")?;
        }
        if let Some(stop) = self.stop {
            write!(f, " stop {stop}")?;
        }
        write!(f, " {} filled {cum_qty}", status.wire_name())?;
        if !cum_qty.is_zero() {
            write!(f, " avg {}", self.avg_price)?;
        }
        if self.reason != Reason::None {
            write!(f, " ({})", ReasonText(self.reason))?;
        }
        if self.in_doubt { f.write_str(" in doubt") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use pitlane_engine::event::{EventKind, ExecType, OrderTerms};
    use pitlane_engine::id::{OrderHandle, ShardId, Source};
    use pitlane_engine::time::Day;
    use pitlane_engine::view::{View, ViewSettings};

    use super::*;

    const AT: Timestamp = Timestamp(1_794_648_600_000_007_000);

    fn order(kind: OrderKind) -> OrderTerms {
        OrderTerms {
            order: OrderHandle::new(ShardId(0), 0, 0),
            id: IntId::parse(b"n17").unwrap(),
            orig_id: IntId::NONE,
            source: Source::default(),
            what: ExecType::Entered,
            status: Status::PendingNew,
            reason: Reason::None,
            sender: Default::default(),
            terms: Terms {
                qty: Qty::parse(b"100").unwrap(),
                limit: Price::parse(b"187.25").unwrap(),
                stop: Price::parse(b"0.00000001").unwrap(),
                kind,
                ..Terms::default()
            },
        }
    }

    fn event(body: EventKind) -> Event {
        Event { seq: 1, at: AT, body }
    }

    #[test]
    fn a_line_shows_the_prices_its_type_has() {
        let line = |kind| {
            let order_terms = order(kind);
            OrderLine::of_event(&event(EventKind::Order(order_terms)), Some(&order_terms.terms), "AAPL")
                .unwrap()
                .to_string()
        };
        let time = AT.to_string();
        assert_eq!(line(OrderKind::Market), format!("{time} n17 AAPL BUY MARKET 100 PENDING_NEW filled 0"));
        assert!(line(OrderKind::Limit).contains(" LIMIT 100@187.25 PENDING_NEW"));
        assert!(line(OrderKind::Stop).contains(" STOP 100 stop 0.00000001 PENDING_NEW"));
        assert!(line(OrderKind::StopLimit).contains(" STOP_LIMIT 100@187.25 stop 0.00000001 PENDING_NEW"));
    }

    #[test]
    fn a_status_shows_fills_reason_and_doubt() {
        let order_terms = order(OrderKind::Limit);
        let mut report = event(EventKind::Order(order_terms)).report().unwrap();
        report.status = Status::Expired;
        report.cum_qty = Qty::parse(b"40").unwrap();
        report.avg_price = Price::parse(b"187.24").unwrap();
        report.reason = Reason::ExpiredDay;
        report.in_doubt = true;
        let line = OrderLine::of_event(&event(EventKind::Status(report)), None, "AAPL").unwrap().to_string();
        let end = "BUY LIMIT 100 EXPIRED filled 40 avg 187.24 (expired-day: expired at the end of the session) in doubt";
        assert!(line.ends_with(end), "{line}");
    }

    #[test]
    fn an_event_that_is_not_about_an_order_has_no_line() {
        assert_eq!(OrderLine::of_event(&event(EventKind::TradingDay { day: Day(1) }), None, ""), None);
    }

    #[test]
    fn a_reused_string_is_not_reallocated() {
        let mut view = View::new(1, ViewSettings::default());
        view.apply(ShardId(0), &event(EventKind::Order(order(OrderKind::Limit))));
        let order = view.open_orders().next().unwrap();
        let mut out = String::with_capacity(256);
        let before = out.as_ptr();
        for _ in 0..3 {
            out.clear();
            write!(out, "{}", OrderLine::of_order(&order, "AAPL")).unwrap();
        }
        assert_eq!(out, format!("{AT} n17 AAPL BUY LIMIT 100@187.25 PENDING_NEW filled 0"));
        assert_eq!(before, out.as_ptr());
    }
}
