//! The shard as a whole: few tests, one for each path through it. The detailed rules, with a naive
//! twin, are tested in `tests/`.

mod bench;
mod book_orders;
mod book_steps;
mod messages;
mod calendar;
mod credit;
mod damage;
mod depth;
mod digests;
mod gate;
mod levels;
mod many;
mod operator;
mod recipients;
mod reconciliation;
mod regressions;
mod requests;
mod snapshots;
mod recovery;
mod money;
mod outside;
mod trades;
mod transit;
mod venue_books;

use super::*;
use crate::command::{
    Movement, MovementKind, Quote, RiskLimits, Scope, Trade, TradingSession, VenueReport, WatchTarget,
};
use crate::event::{ExecType, OrderReport, VenueRequest};
use crate::id::{
    AccountId, AdapterId, Currency, ExchangeId, FamilyId, IntId, OrderHandle, Origin, PortId, SecurityId,
    Source, StrategyId, Uuid,
};
use crate::number::{ContractSize, Money, Price, Qty};
use crate::reason::Reason;
use crate::refdata::{
    Exchange, OrderLimits, RefDataRows, Security, SecurityFamily, SecurityKind, StrategyInfo, TradingAccount,
};
use crate::terms::{Changes, OrderKind, Side, Status, Terms, Tif};
use crate::time::{Day, TimeOfDay};

const SIM_STOCK: SecurityId = SecurityId(1);
const OUTSIDE: SecurityId = SecurityId(2);
const SIM_OTHER: SecurityId = SecurityId(3);
const ADAPTER: AdapterId = AdapterId(1);
const CLIENT: Source = Source { origin: Origin::Fix, port: PortId(0), session: 7 };

fn rows() -> RefDataRows {
    let exchange = |id: u16, adapter: AdapterId, adapter_type: &str| Exchange {
        id: ExchangeId(id),
        name: format!("X{id}"),
        mic: format!("XX0{id}"),
        time_zone: "UTC".into(),
        open: TimeOfDay(0),
        close: TimeOfDay(86_400),
        auctions: true,
        adapter,
        adapter_type: adapter_type.into(),
    };
    let family = |id: u32| SecurityFamily {
        id: FamilyId(id),
        name: format!("F{id}"),
        symbol_root: String::new(),
        exchange: ExchangeId(id as u16),
        currency: usd(),
        contract_size: ContractSize::ONE,
        tick_size: price("0.01"),
        lot_size: qty("1"),
        commission: money("0.001"),
        limits: OrderLimits::NONE,
        tradeable: true,
        expirable: false,
    };
    let security = |id: u32, family: u32| Security {
        id: SecurityId(id),
        symbol: format!("S{id}"),
        description: String::new(),
        kind: SecurityKind::Stock,
        family: FamilyId(family),
        isin: None,
        underlying: None,
        expiration: None,
        strike: None,
        option: None,
        base_currency: None,
        start_price: None,
        tradeable: true,
    };
    let account = |id: u16, adapter_type: &str| TradingAccount {
        id: AccountId(id),
        name: format!("A{id}"),
        active: true,
        adapter_type: adapter_type.into(),
        exchanges: Vec::new(),
        strategies: Vec::new(),
    };
    RefDataRows {
        exchanges: vec![exchange(1, AdapterId::SIM, "SIM"), exchange(2, ADAPTER, "FIX")],
        families: vec![family(1), family(2)],
        securities: vec![security(1, 1), security(2, 2), security(3, 1)],
        accounts: vec![account(1, "SIM"), account(2, "SIM"), account(3, "FIX")],
        strategies: vec![StrategyInfo { id: StrategyId(0), name: "SERVER".into(), auto_activate: true }],
    }
}

fn usd() -> Currency {
    Currency::parse(b"USD").unwrap()
}

fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).unwrap()
}

fn qty(text: &str) -> Qty {
    Qty::parse(text.as_bytes()).unwrap()
}

fn money(text: &str) -> Money {
    Money::parse(text.as_bytes()).unwrap()
}

/// A single shard, with all its events in order.
struct Bench {
    shard: Shard,
    out: Outbox,
    now: u64,
    ids: u64,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(ShardSettings::default())
    }

    fn with(settings: ShardSettings) -> Bench {
        let reference = Arc::new(RefData::check(rows()).unwrap());
        let shard = Shard::new(ShardId(0), 1, reference, settings);
        let mut bench = Bench { shard, out: Outbox::new(0), now: 0, ids: 0 };
        bench.send(CommandKind::Watch { port: PortId(0), what: WatchTarget::Everything, on: true });
        bench.send(CommandKind::Watch { port: PortId(0), what: WatchTarget::Venue(ADAPTER), on: true });
        bench.send(CommandKind::Watch { port: PortId(0), what: WatchTarget::Budgets, on: true });
        bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
        bench
    }

    fn send(&mut self, body: CommandKind) -> Vec<EventKind> {
        self.now += 1;
        let mut events = Vec::new();
        self.shard.apply(Timestamp(self.now), &Command::new(CLIENT, 5, body), &mut self.out);
        loop {
            events.extend(self.out.waiting().iter().map(|(_, event)| event.body));
            self.out.clear();
            if !self.shard.has_work() && !self.shard.has_background() {
                break;
            }
            self.shard.resume(&mut self.out);
        }
        self.shard.assert_consistent();
        events
    }

    fn id(&mut self) -> IntId {
        self.ids += 1;
        IntId::numbered(b'o', self.ids)
    }

    fn submit(&mut self, terms: Terms) -> (OrderHandle, Vec<EventKind>) {
        let id = self.id();
        let events = self.send(CommandKind::Submit { id, terms });
        let order = events.iter().find_map(|body| match body {
            EventKind::Order(order) if order.id == id => Some(order.order),
            _ => None,
        });
        (order.unwrap(), events)
    }

    fn modify(&mut self, order: OrderHandle, changes: Changes) -> Vec<EventKind> {
        let id = self.id();
        self.send(CommandKind::Modify { order, id, changes })
    }

    fn cancel(&mut self, order: OrderHandle) -> Vec<EventKind> {
        let id = self.id();
        self.send(CommandKind::Cancel { order, id })
    }

    fn report(&mut self, order: OrderHandle, report: VenueReport) -> Vec<EventKind> {
        self.send(CommandKind::Report { order, report })
    }
}

fn limit(side: Side, account: u16, q: &str, p: &str) -> Terms {
    Terms {
        qty: qty(q),
        limit: price(p),
        limit_given: true,
        kind: OrderKind::Limit,
        side,
        security: SIM_STOCK,
        account: AccountId(account),
        ..Terms::default()
    }
}

fn outside(q: &str) -> Terms {
    Terms { security: OUTSIDE, account: AccountId(3), ..limit(Side::Buy, 3, q, "10") }
}

/// Returns the order reports: type, status, filled quantity.
fn reports(events: &[EventKind]) -> Vec<(ExecType, Status, Qty)> {
    let reports =
        events.iter().filter_map(|&body| crate::event::Event { seq: 0, at: Timestamp(0), body }.report());
    reports.map(|OrderReport { what, status, cum_qty, .. }| (what, status, cum_qty)).collect()
}

fn reason(events: &[EventKind]) -> Reason {
    events
        .iter()
        .find_map(|body| match body {
            EventKind::Order(order) => Some(order.reason),
            EventKind::Refused(refusal) => Some(refusal.reason),
            EventKind::Done { reason, .. } => Some(*reason),
            _ => None,
        })
        .unwrap()
}

#[test]
fn two_orders_trade_and_all_recipients_get_reports() {
    let mut bench = Bench::new();
    let (_, events) = bench.submit(limit(Side::Sell, 1, "5", "10"));
    assert_eq!(
        reports(&events),
        [(ExecType::Entered, Status::PendingNew, Qty::ZERO), (ExecType::Accepted, Status::New, Qty::ZERO)]
    );
    let (_, events) = bench.submit(limit(Side::Buy, 2, "3", "11"));
    let expected = [
        (ExecType::Entered, Status::PendingNew, Qty::ZERO),
        (ExecType::Accepted, Status::New, Qty::ZERO),
        (ExecType::Filled, Status::Filled, qty("3")),
        (ExecType::Filled, Status::PartiallyFilled, qty("3")),
    ];
    assert_eq!(reports(&events), expected);
    let booked: Vec<_> = events
        .iter()
        .filter_map(|body| if let EventKind::Booked(b) = body { Some(b) } else { None })
        .collect();
    assert_eq!(booked.len(), 2);
    assert_eq!((booked[0].qty, booked[0].price, booked[0].cash), (qty("3"), price("10"), money("-30.003")));
    // The same strategy on both sides: flat again, with two commissions less.
    assert_eq!((booked[1].position.qty, booked[1].cash), (Qty::ZERO, money("-0.006")));
}

#[test]
fn a_cancel_and_a_modification_are_asked_and_answered() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(limit(Side::Sell, 1, "5", "10"));
    let events = bench.modify(order, Changes::default().with_qty(qty("4")));
    assert_eq!(reports(&events)[0].0, ExecType::ReplacePending);
    assert_eq!(reports(&events).last(), Some(&(ExecType::Replaced, Status::New, Qty::ZERO)));
    let events = bench.cancel(order);
    assert_eq!(
        reports(&events),
        [
            (ExecType::CancelPending, Status::PendingCancel, Qty::ZERO),
            (ExecType::Canceled, Status::Canceled, Qty::ZERO)
        ]
    );
    assert_eq!(reason(&bench.cancel(order)), Reason::OrderFinished);
    assert_eq!(reason(&bench.modify(order, Changes::default())), Reason::OrderFinished);
    assert_eq!(reason(&bench.cancel(OrderHandle::NONE)), Reason::UnknownOrder);
}

#[test]
fn a_stop_waits_in_the_shard_and_trades_when_its_price_is_reached() {
    let mut bench = Bench::new();
    let stop = Terms {
        kind: OrderKind::Stop,
        limit_given: false,
        stop: price("11"),
        stop_given: true,
        ..limit(Side::Buy, 1, "5", "0")
    };
    let (_, events) = bench.submit(stop);
    assert_eq!(reports(&events).last(), Some(&(ExecType::Accepted, Status::New, Qty::ZERO)));
    bench.send(CommandKind::Quote {
        security: SIM_STOCK,
        quote: Quote { ask: price("11.5"), ask_size: qty("100"), ..Quote::default() },
    });
    let trade = Trade { price: price("11"), size: qty("1"), at: Timestamp(1) };
    let events = bench.send(CommandKind::Trade { security: SIM_STOCK, trade });
    assert_eq!(
        reports(&events),
        [(ExecType::Triggered, Status::New, Qty::ZERO), (ExecType::Filled, Status::Filled, qty("5"))]
    );
}

#[test]
fn a_large_order_takes_several_steps_and_loses_nothing() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        bench.submit(limit(Side::Sell, 1, "1", "10"));
    }
    let (_, events) = bench.submit(limit(Side::Buy, 2, "100", "10"));
    assert_eq!(reports(&events).iter().filter(|(what, ..)| *what == ExecType::Filled).count(), 200);
}

#[test]
fn an_outside_venue_gets_instructions_and_sends_reports() {
    let mut bench = Bench::new();
    let (order, events) = bench.submit(outside("10"));
    assert!(events.iter().any(
        |body| matches!(body, EventKind::ToVenue(instruction) if instruction.request == VenueRequest::New)
    ));
    assert_eq!(reason(&bench.modify(order, Changes::default())), Reason::NotAcknowledged);
    bench.report(order, VenueReport::Accepted);
    let exec = |n| crate::command::ExecRef(n);
    let events =
        bench.report(order, VenueReport::Filled { exec: exec(1), qty: qty("4"), price: price("10") });
    assert_eq!(reports(&events), [(ExecType::Filled, Status::PartiallyFilled, qty("4"))]);
    let again = bench.report(order, VenueReport::Filled { exec: exec(1), qty: qty("4"), price: price("10") });
    assert_eq!(reports(&again), []);
    let events = bench.modify(order, Changes::default().with_qty(qty("12")));
    assert!(events.iter().any(
        |body| matches!(body, EventKind::ToVenue(instruction) if instruction.request == VenueRequest::Replace)
    ));
    let events = bench.cancel(order);
    assert_eq!(reports(&events), [(ExecType::CancelPending, Status::PendingCancel, qty("4"))]);
    assert!(
        !events.iter().any(|body| matches!(body, EventKind::ToVenue(_))),
        "a cancel waits behind a replace"
    );
    let events = bench.report(order, VenueReport::Replaced);
    assert!(events.iter().any(
        |body| matches!(body, EventKind::ToVenue(instruction) if instruction.request == VenueRequest::Cancel)
    ));
    let events = bench.report(order, VenueReport::Canceled(Reason::Requested));
    assert_eq!(reports(&events), [(ExecType::Canceled, Status::Canceled, qty("4"))]);
    let events =
        bench.report(order, VenueReport::Filled { exec: exec(2), qty: qty("8"), price: price("10") });
    assert_eq!(reports(&events), [(ExecType::Filled, Status::Filled, qty("12"))]);
    let events = bench.report(order, VenueReport::Busted { exec: exec(2) });
    assert_eq!(reports(&events), [(ExecType::Corrected, Status::Filled, qty("4"))]);
    let events =
        bench.report(order, VenueReport::Corrected { exec: exec(1), qty: qty("3"), price: price("9") });
    let last =
        events.iter().rev().find_map(|body| if let EventKind::Booked(b) = body { Some(b) } else { None });
    assert_eq!(last.unwrap().position.qty, qty("3"));
}

#[test]
fn pending_requests_are_in_doubt_after_a_disconnect_until_the_venue_reports() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    let in_doubt = |events: &[EventKind]| {
        events
            .iter()
            .find_map(|body| if let EventKind::Status(report) = body { Some(report.in_doubt) } else { None })
    };
    let events = bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: false });
    assert_eq!(in_doubt(&events), Some(true));
    assert_eq!(reason(&bench.submit(outside("1")).1), Reason::VenueUnavailable);
    let events = bench.cancel(order);
    assert_eq!(reports(&events)[0].1, Status::PendingCancel);
    let events = bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
    assert!(events.iter().any(
        |body| matches!(body, EventKind::ToVenue(instruction) if instruction.request == VenueRequest::Query)
    ));
    bench.report(order, VenueReport::Accepted);
    let events = bench.report(order, VenueReport::Reconciled);
    assert_eq!(in_doubt(&events), Some(false));
    assert!(events.iter().any(
        |body| matches!(body, EventKind::ToVenue(instruction) if instruction.request == VenueRequest::Cancel)
    ));
}

#[test]
fn the_kill_switch_cancels_and_refuses_until_it_is_lifted() {
    for scope in [
        Scope::Global,
        Scope::Strategy(StrategyId(0)),
        Scope::Account(AccountId(1)),
        Scope::Security(SIM_STOCK),
        Scope::Adapter(AdapterId::SIM),
    ] {
        let mut bench = Bench::new();
        for _ in 0..20 {
            bench.submit(limit(Side::Sell, 1, "1", "10"));
        }
        let events = bench.send(CommandKind::Kill { scope, on: true });
        let ended = reports(&events).iter().filter(|(_, status, _)| *status == Status::Canceled).count();
        assert_eq!(ended, 20, "{scope:?}");
        assert_eq!(bench.shard.open_orders(Scope::Global), 0);
        assert_eq!(reason(&bench.submit(limit(Side::Sell, 1, "1", "10")).1), Reason::KillSwitch);
        bench.send(CommandKind::Kill { scope, on: false });
        assert_eq!(reason(&bench.submit(limit(Side::Sell, 1, "1", "10")).1), Reason::None);
    }
}

#[test]
fn the_day_ends_what_lives_for_the_day() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Sell, 1, "1", "10"));
    bench.submit(Terms { tif: Tif::Gtc, ..limit(Side::Sell, 1, "1", "10") });
    bench.submit(Terms { tif: Tif::Gtd, tif_date: Timestamp(1_000), ..limit(Side::Sell, 1, "1", "10") });
    let events =
        bench.send(CommandKind::Session { exchange: ExchangeId(1), session: TradingSession::Closed });
    assert_eq!(reports(&events), [(ExecType::Expired, Status::Expired, Qty::ZERO)]);
    assert_eq!(bench.shard.open_orders(Scope::Global), 2);
    assert_eq!(bench.shard.deadline(), Some(Timestamp(1_000)));
    bench.now = 2_000;
    let events = bench.send(CommandKind::Timer);
    assert_eq!(reports(&events), [(ExecType::Expired, Status::Expired, Qty::ZERO)]);
    let events = bench.send(CommandKind::TradingDay { day: Day(3) });
    let forgotten = events.iter().filter(|body| matches!(body, EventKind::Forgotten { .. })).count();
    assert_eq!(forgotten, 2);
    assert!(events.contains(&EventKind::TradingDay { day: Day(3) }));
}

#[test]
fn a_position_is_closed_by_a_reduce_only_order_after_its_others_are_gone() {
    let mut bench = Bench::new();
    let movement = Movement {
        kind: MovementKind::Buy,
        strategy: StrategyId(0),
        account: AccountId(1),
        security: Some(SIM_STOCK),
        qty: qty("10"),
        price: price("9"),
        commission: Money::ZERO,
        currency: Currency::default(),
        uuid: Uuid(77),
    };
    for _ in 0..2 {
        bench.send(CommandKind::Transaction(movement));
    }
    bench.submit(limit(Side::Sell, 1, "4", "12"));
    let id = bench.id();
    let close = |id, q| CommandKind::Close {
        id,
        strategy: StrategyId(0),
        account: AccountId(1),
        security: SIM_STOCK,
        qty: qty(q),
    };
    let events = bench.send(close(id, "0"));
    let last = reports(&events).last().copied();
    assert_eq!(last, Some((ExecType::Accepted, Status::New, Qty::ZERO)), "it waits for liquidity");
    let id = bench.id();
    assert_eq!(reason(&bench.send(close(id, "0"))), Reason::CloseInProgress);
    let id = bench.id();
    assert_eq!(reason(&bench.send(close(id, "1"))), Reason::PositionTooSmall);
    let quote = Quote { bid: price("10"), bid_size: qty("100"), ..Quote::default() };
    let events = bench.send(CommandKind::Quote { security: SIM_STOCK, quote });
    assert_eq!(reports(&events), [(ExecType::Filled, Status::Filled, qty("10"))]);
    let id = bench.id();
    assert_eq!(reason(&bench.send(close(id, "0"))), Reason::PositionFlat);
}

#[test]
fn an_expired_security_leaves_neither_orders_nor_positions() {
    let mut bench = Bench::new();
    let (_, _) = bench.submit(limit(Side::Sell, 1, "4", "12"));
    bench.submit(limit(Side::Buy, 2, "3", "12"));
    let events = bench.send(CommandKind::Expire { security: SIM_STOCK, price: price("11") });
    assert!(reports(&events).contains(&(ExecType::Expired, Status::Expired, qty("3"))));
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 2, "3", "12")).1), Reason::ExpiredSecurity);
}

#[test]
fn resets_without_differences_report_only_completion() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Sell, 1, "4", "12"));
    bench.submit(limit(Side::Buy, 2, "3", "12"));
    for body in [CommandKind::ResetPositions, CommandKind::ResetCash] {
        let events = bench.send(body);
        assert_eq!(events, [EventKind::Done { source: CLIENT, token: 5, reason: Reason::None }]);
    }
}
