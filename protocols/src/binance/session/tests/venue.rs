//! An adapter and its venue, whose messages the tests write.

use pitlane_engine::command::VenueState;
use pitlane_engine::event::{Instruction, VenueRequest};
use pitlane_engine::id::IntId;
use pitlane_engine::terms::{OrderKind, Terms, Tif};

use super::super::super::held::IdRole;
use super::*;

pub(super) fn order() -> OrderHandle {
    OrderHandle::new(ShardId(0), 1, 1)
}

pub(super) struct Venue {
    pub(super) now: Timestamp,
    pub(super) session: BinanceSession,
}

pub(super) fn qty(units: i64) -> Qty {
    Qty::whole(units).unwrap()
}

pub(super) fn price(units: i64) -> Price {
    Price::whole(units).unwrap()
}

pub(super) fn terms(tif: Tif, units: i64, limit: i64) -> Terms {
    let (security, kind) = (SecurityId(1), OrderKind::Limit);
    Terms { qty: qty(units), limit: price(limit), security, kind, tif, ..Terms::default() }
}

impl Venue {
    /// Returns an adapter that is logged on.
    pub(super) fn ready() -> Venue {
        let mut venue = Venue { now: NOW, session: connected() };
        venue.log_on();
        assert_eq!(venue.reports(), []);
        venue
    }

    pub(super) fn log_on(&mut self) {
        let time = format!(r#""result":{{"serverTime":{}}}"#, self.now.0 / 1_000_000);
        self.answer(RequestKind::Time, &time);
        self.answer(RequestKind::Logon, r#""result":{}"#);
        self.answer(RequestKind::Subscribe, r#""result":{}"#);
        self.answer(RequestKind::OrderLimits, r#""result":[]"#);
        assert!(self.session.is_ready());
    }

    pub(super) fn reconnect(&mut self) {
        self.session.handle_disconnect(ORDERS, self.now);
        self.session.handle_connect(ORDERS, self.now, handshake::random());
        self.session.handle_bytes(ORDERS, self.now, &mut handshake::answer());
        self.log_on();
    }

    /// Returns an adapter with an order that the venue has taken.
    pub(super) fn with_order(terms: Terms) -> Venue {
        let mut venue = Venue::ready();
        venue.instruct(VenueRequest::New, terms);
        venue.answer(RequestKind::Place(order()), r#""result":{"orderId":1}"#);
        assert_eq!(venue.reports(), [VenueReport::Accepted]);
        venue
    }

    /// Returns an adapter with an order of ten units at a price of 100 until it is cancelled.
    pub(super) fn with_gtc() -> Venue {
        Venue::with_order(terms(Tif::Gtc, 10, 100))
    }

    pub(super) fn instruct_for(&mut self, order: OrderHandle, request: VenueRequest, terms: Terms) {
        let (adapter, id) = (AdapterId(3), IntId::NONE);
        let instruction = Instruction { adapter, order, request, id, request_id: id, terms };
        self.session.handle_instruction(self.now, ShardId(0), 1, &instruction, None);
    }

    pub(super) fn instruct(&mut self, request: VenueRequest, terms: Terms) {
        self.instruct_for(order(), request, terms);
    }

    /// Returns what the venue is asked and has not answered.
    pub(super) fn asked(&self) -> Vec<RequestKind> {
        self.session.requests.values().map(|sent| sent.kind).collect()
    }

    /// Answers the oldest request of this kind.
    pub(super) fn answer(&mut self, kind: RequestKind, body: &str) {
        let found = self.session.requests.iter().find(|(_, sent)| sent.kind == kind);
        let (id, _) = found.unwrap_or_else(|| panic!("{kind:?} is not asked, but {:?}", self.asked()));
        let message = format!(r#"{{"id":{id},{body}}}"#);
        self.session.handle_message(self.now, message.as_bytes());
    }

    pub(super) fn refuse(&mut self, kind: RequestKind, status: u16, code: i64, text: &str) {
        let error = format!(r#""status":{status},"error":{{"code":{code},"msg":"{text}"}}"#);
        self.answer(kind, &error);
    }

    /// Sends the event of an execution, with the quantity and price of this one, the quantity of
    /// all, and the id of the trade.
    pub(super) fn execute(
        &mut self,
        role: IdRole,
        kind: &str,
        status: &str,
        [last, px, cum]: [&str; 3],
        trade: i64,
    ) {
        let id = self.session.ids().id(order(), role);
        let event = format!(
            r#"{{"event":{{"e":"executionReport","s":"ACME","c":"{id}","x":"{kind}","X":"{status}","f":"IOC",
                "o":"LIMIT","l":"{last}","L":"{px}","z":"{cum}","Z":"0","t":{trade},"n":"0"}}}}"#
        );
        self.session.handle_message(self.now, event.as_bytes());
    }

    pub(super) fn trade(&mut self, trade: i64, last: &str, cum: &str) {
        let status = if cum == "10" { "FILLED" } else { "PARTIALLY_FILLED" };
        self.execute(IdRole::Live, "TRADE", status, [last, "100", cum], trade);
    }

    pub(super) fn reports(&mut self) -> Vec<VenueReport> {
        std::iter::from_fn(|| self.session.poll_report(self.now)).map(|inbound| inbound.report).collect()
    }

    /// Returns the executed quantities of the reports, and whether the order is looked up.
    pub(super) fn fills(&mut self) -> (Vec<Qty>, bool) {
        let reports = self.reports();
        let fills = reports.iter().filter_map(|report| match report {
            VenueReport::FilledWithFee { qty, .. } => Some(*qty),
            _ => None,
        });
        (fills.collect(), reports.contains(&VenueReport::Unsure))
    }

    pub(super) fn is_held(&self) -> bool {
        self.session.held.get(order()).is_some()
    }
}

pub(super) fn standing(cum: i64, state: VenueState) -> VenueReport {
    VenueReport::Standing { cum: qty(cum), average: Price::ZERO, state }
}
