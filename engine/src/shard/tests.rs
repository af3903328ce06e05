//! The shard as a whole: few tests, one for each road through it. Every rule in detail, with a naive twin, is in `tests/`.

mod calendar;
mod credit;
mod depth;
mod found;
mod kept;
mod money;
mod outside;

use super::*;
use crate::command::{Limits, Movement, MovementKind, Quote, Report, Scope, Session, Trade, Watch};
use crate::event::{OrderReport, VenueRequest};
use crate::id::{AccountId, Currency, ExchangeId, FamilyId, OrderHandle, Origin, PortId, Uuid};
use crate::number::{ContractSize, Money};
use crate::refdata::{Account, Exchange, Family, Rows, Security, SecurityKind, Strategy};
use crate::terms::{Changes, OrderKind, Side, Status, Terms, Tif};
use crate::time::{Day, TimeOfDay};

const SIM_STOCK: SecurityId = SecurityId(1);
const OUTSIDE: SecurityId = SecurityId(2);
const SIM_OTHER: SecurityId = SecurityId(3);
const ADAPTER: AdapterId = AdapterId(1);
const CLIENT: Source = Source { origin: Origin::Fix, port: PortId(0), session: 7 };

fn rows() -> Rows {
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
    let family = |id: u32| Family {
        id: FamilyId(id),
        name: format!("F{id}"),
        symbol_root: String::new(),
        exchange: ExchangeId(id as u16),
        currency: usd(),
        contract_size: ContractSize::ONE,
        tick_size: price("0.01"),
        lot_size: qty("1"),
        commission: money("0.001"),
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
    let account = |id: u16, adapter_type: &str| Account {
        id: AccountId(id),
        name: format!("A{id}"),
        active: true,
        adapter_type: adapter_type.into(),
        exchanges: Vec::new(),
        strategies: Vec::new(),
    };
    Rows {
        exchanges: vec![exchange(1, AdapterId::SIM, "SIM"), exchange(2, ADAPTER, "FIX")],
        families: vec![family(1), family(2)],
        securities: vec![security(1, 1), security(2, 2), security(3, 1)],
        accounts: vec![account(1, "SIM"), account(2, "SIM"), account(3, "FIX")],
        strategies: vec![Strategy { id: StrategyId(0), name: "SERVER".into(), auto_activate: true }],
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

/// A shard alone, with everything it says in the order it said it.
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
        bench.send(CommandKind::Watch { port: PortId(0), what: Watch::Everything, on: true });
        bench.send(CommandKind::Watch { port: PortId(0), what: Watch::Venue(ADAPTER), on: true });
        bench.send(CommandKind::Watch { port: PortId(0), what: Watch::Budgets, on: true });
        bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
        bench
    }

    fn send(&mut self, body: CommandKind) -> Vec<EventKind> {
        self.now += 1;
        let mut said = Vec::new();
        self.shard.apply(Timestamp(self.now), &Command::new(CLIENT, 5, body), &mut self.out);
        loop {
            said.extend(self.out.waiting().iter().map(|(_, event)| event.body));
            self.out.clear();
            if !self.shard.has_work() && !self.shard.has_background() {
                break;
            }
            self.shard.resume(&mut self.out);
        }
        self.shard.assert_consistent();
        said
    }

    fn id(&mut self) -> IntId {
        self.ids += 1;
        IntId::numbered(b'o', self.ids)
    }

    fn submit(&mut self, terms: Terms) -> (OrderHandle, Vec<EventKind>) {
        let id = self.id();
        let said = self.send(CommandKind::Submit { id, terms });
        let order = said.iter().find_map(|body| match body {
            EventKind::Order(order) if order.id == id => Some(order.order),
            _ => None,
        });
        (order.unwrap(), said)
    }

    fn modify(&mut self, order: OrderHandle, changes: Changes) -> Vec<EventKind> {
        let id = self.id();
        self.send(CommandKind::Modify { order, id, changes })
    }

    fn cancel(&mut self, order: OrderHandle) -> Vec<EventKind> {
        let id = self.id();
        self.send(CommandKind::Cancel { order, id })
    }

    fn report(&mut self, order: OrderHandle, report: Report) -> Vec<EventKind> {
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

/// What was reported of orders: what happened, status, filled.
fn story(said: &[EventKind]) -> Vec<(ExecType, Status, Qty)> {
    let reports =
        said.iter().filter_map(|&body| crate::event::Event { seq: 0, at: Timestamp(0), body }.report());
    reports.map(|OrderReport { what, status, cum_qty, .. }| (what, status, cum_qty)).collect()
}

fn reason(said: &[EventKind]) -> Reason {
    said.iter()
        .find_map(|body| match body {
            EventKind::Order(order) => Some(order.reason),
            EventKind::Refused(refusal) => Some(refusal.reason),
            EventKind::Done { reason, .. } => Some(*reason),
            _ => None,
        })
        .unwrap()
}

#[test]
fn two_orders_meet_and_everybody_is_told() {
    let mut bench = Bench::new();
    let (_, said) = bench.submit(limit(Side::Sell, 1, "5", "10"));
    assert_eq!(
        story(&said),
        [(ExecType::Entered, Status::PendingNew, Qty::ZERO), (ExecType::Accepted, Status::New, Qty::ZERO)]
    );
    let (_, said) = bench.submit(limit(Side::Buy, 2, "3", "11"));
    let expected = [
        (ExecType::Entered, Status::PendingNew, Qty::ZERO),
        (ExecType::Accepted, Status::New, Qty::ZERO),
        (ExecType::Filled, Status::Filled, qty("3")),
        (ExecType::Filled, Status::PartiallyFilled, qty("3")),
    ];
    assert_eq!(story(&said), expected);
    let booked: Vec<_> =
        said.iter().filter_map(|body| if let EventKind::Booked(b) = body { Some(b) } else { None }).collect();
    assert_eq!(booked.len(), 2);
    assert_eq!((booked[0].qty, booked[0].price, booked[0].cash), (qty("3"), price("10"), money("-30.003")));
    // The same strategy on both sides: flat again, poorer by two commissions.
    assert_eq!((booked[1].position.qty, booked[1].cash), (Qty::ZERO, money("-0.006")));
}

#[test]
fn a_cancel_and_a_modification_are_asked_and_answered() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(limit(Side::Sell, 1, "5", "10"));
    let said = bench.modify(order, Changes::default().with_qty(qty("4")));
    assert_eq!(story(&said)[0].0, ExecType::ReplacePending);
    assert_eq!(story(&said).last(), Some(&(ExecType::Replaced, Status::New, Qty::ZERO)));
    let said = bench.cancel(order);
    assert_eq!(
        story(&said),
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
fn a_stop_waits_with_us_and_trades_when_its_price_is_reached() {
    let mut bench = Bench::new();
    let stop = Terms {
        kind: OrderKind::Stop,
        limit_given: false,
        stop: price("11"),
        stop_given: true,
        ..limit(Side::Buy, 1, "5", "0")
    };
    let (_, said) = bench.submit(stop);
    assert_eq!(story(&said).last(), Some(&(ExecType::Accepted, Status::New, Qty::ZERO)));
    bench.send(CommandKind::Quote {
        security: SIM_STOCK,
        quote: Quote { ask: price("11.5"), ask_size: qty("100"), ..Quote::default() },
    });
    let trade = Trade { price: price("11"), size: qty("1"), at: Timestamp(1) };
    let said = bench.send(CommandKind::Trade { security: SIM_STOCK, trade });
    assert_eq!(
        story(&said),
        [(ExecType::Triggered, Status::New, Qty::ZERO), (ExecType::Filled, Status::Filled, qty("5"))]
    );
}

#[test]
fn a_large_order_takes_several_steps_and_loses_nothing() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        bench.submit(limit(Side::Sell, 1, "1", "10"));
    }
    let (_, said) = bench.submit(limit(Side::Buy, 2, "100", "10"));
    assert_eq!(story(&said).iter().filter(|(what, ..)| *what == ExecType::Filled).count(), 200);
}

#[test]
fn an_outside_venue_is_asked_and_heard() {
    let mut bench = Bench::new();
    let (order, said) = bench.submit(outside("10"));
    assert!(said.iter().any(|body| matches!(body, EventKind::ToVenue(ask) if ask.ask == VenueRequest::New)));
    assert_eq!(reason(&bench.modify(order, Changes::default())), Reason::NotAcknowledged);
    bench.report(order, Report::Accepted);
    let exec = |n| crate::command::ExecRef(n);
    let said = bench.report(order, Report::Filled { exec: exec(1), qty: qty("4"), price: price("10") });
    assert_eq!(story(&said), [(ExecType::Filled, Status::PartiallyFilled, qty("4"))]);
    let again = bench.report(order, Report::Filled { exec: exec(1), qty: qty("4"), price: price("10") });
    assert_eq!(story(&again), []);
    let said = bench.modify(order, Changes::default().with_qty(qty("12")));
    assert!(
        said.iter().any(|body| matches!(body, EventKind::ToVenue(ask) if ask.ask == VenueRequest::Replace))
    );
    let said = bench.cancel(order);
    assert_eq!(story(&said), [(ExecType::CancelPending, Status::PendingCancel, qty("4"))]);
    assert!(
        !said.iter().any(|body| matches!(body, EventKind::ToVenue(_))),
        "a cancel waits behind a replace"
    );
    let said = bench.report(order, Report::Replaced);
    assert!(
        said.iter().any(|body| matches!(body, EventKind::ToVenue(ask) if ask.ask == VenueRequest::Cancel))
    );
    let said = bench.report(order, Report::Canceled(Reason::Requested));
    assert_eq!(story(&said), [(ExecType::Canceled, Status::Canceled, qty("4"))]);
    let said = bench.report(order, Report::Filled { exec: exec(2), qty: qty("8"), price: price("10") });
    assert_eq!(story(&said), [(ExecType::Filled, Status::Filled, qty("12"))]);
    let said = bench.report(order, Report::Busted { exec: exec(2) });
    assert_eq!(story(&said), [(ExecType::Corrected, Status::Filled, qty("4"))]);
    let said = bench.report(order, Report::Corrected { exec: exec(1), qty: qty("3"), price: price("9") });
    let last =
        said.iter().rev().find_map(|body| if let EventKind::Booked(b) = body { Some(b) } else { None });
    assert_eq!(last.unwrap().position.qty, qty("3"));
}

#[test]
fn what_was_under_way_when_the_connection_broke_is_in_doubt_until_the_venue_has_spoken() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    let in_doubt = |said: &[EventKind]| {
        said.iter()
            .find_map(|body| if let EventKind::Status(report) = body { Some(report.in_doubt) } else { None })
    };
    let said = bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: false });
    assert_eq!(in_doubt(&said), Some(true));
    assert_eq!(reason(&bench.submit(outside("1")).1), Reason::VenueUnavailable);
    let said = bench.cancel(order);
    assert_eq!(story(&said)[0].1, Status::PendingCancel);
    let said = bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
    assert!(
        said.iter().any(|body| matches!(body, EventKind::ToVenue(ask) if ask.ask == VenueRequest::Query))
    );
    bench.report(order, Report::Accepted);
    let said = bench.report(order, Report::Reconciled);
    assert_eq!(in_doubt(&said), Some(false));
    assert!(
        said.iter().any(|body| matches!(body, EventKind::ToVenue(ask) if ask.ask == VenueRequest::Cancel))
    );
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
        let said = bench.send(CommandKind::Kill { scope, on: true });
        let ended = story(&said).iter().filter(|(_, status, _)| *status == Status::Canceled).count();
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
    let said = bench.send(CommandKind::Session { exchange: ExchangeId(1), session: Session::Closed });
    assert_eq!(story(&said), [(ExecType::Expired, Status::Expired, Qty::ZERO)]);
    assert_eq!(bench.shard.open_orders(Scope::Global), 2);
    assert_eq!(bench.shard.deadline(), Some(Timestamp(1_000)));
    bench.now = 2_000;
    let said = bench.send(CommandKind::Timer);
    assert_eq!(story(&said), [(ExecType::Expired, Status::Expired, Qty::ZERO)]);
    let said = bench.send(CommandKind::TradingDay { day: Day(3) });
    let forgotten = said.iter().filter(|body| matches!(body, EventKind::Forgotten { .. })).count();
    assert_eq!(forgotten, 2);
    assert!(said.contains(&EventKind::TradingDay { day: Day(3) }));
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
    let said = bench.send(close(id, "0"));
    let last = story(&said).last().copied();
    assert_eq!(last, Some((ExecType::Accepted, Status::New, Qty::ZERO)), "it waits for liquidity");
    let id = bench.id();
    assert_eq!(reason(&bench.send(close(id, "0"))), Reason::CloseInProgress);
    let id = bench.id();
    assert_eq!(reason(&bench.send(close(id, "1"))), Reason::PositionTooSmall);
    let quote = Quote { bid: price("10"), bid_size: qty("100"), ..Quote::default() };
    let said = bench.send(CommandKind::Quote { security: SIM_STOCK, quote });
    assert_eq!(story(&said), [(ExecType::Filled, Status::Filled, qty("10"))]);
    let id = bench.id();
    assert_eq!(reason(&bench.send(close(id, "0"))), Reason::PositionFlat);
}

#[test]
fn an_expired_security_leaves_neither_orders_nor_positions() {
    let mut bench = Bench::new();
    let (_, _) = bench.submit(limit(Side::Sell, 1, "4", "12"));
    bench.submit(limit(Side::Buy, 2, "3", "12"));
    let said = bench.send(CommandKind::Expire { security: SIM_STOCK, price: price("11") });
    assert!(story(&said).contains(&(ExecType::Expired, Status::Expired, qty("3"))));
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 2, "3", "12")).1), Reason::ExpiredSecurity);
}

#[test]
fn resets_find_nothing_to_change_and_say_so() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Sell, 1, "4", "12"));
    bench.submit(limit(Side::Buy, 2, "3", "12"));
    for body in [CommandKind::ResetPositions, CommandKind::ResetCash] {
        let said = bench.send(body);
        assert_eq!(said, [EventKind::Done { source: CLIENT, token: 5, reason: Reason::None }]);
    }
}

#[test]
fn a_snapshot_tells_everything_and_moves_no_number() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Sell, 1, "4", "12"));
    bench.submit(limit(Side::Buy, 2, "3", "12"));
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(1)), limits: Limits::default() });
    bench.send(CommandKind::Subscribe { strategy: StrategyId(0), security: SIM_STOCK, on: true });
    let seq = bench.out.seq();
    let said = bench.send(CommandKind::Snapshot { port: PortId(0) });
    // One for the answer that the snapshot has begun.
    assert_eq!(bench.out.seq(), seq + 1);
    let count = |is: fn(&EventKind) -> bool| said.iter().filter(|body| is(body)).count();
    assert_eq!(count(|body| matches!(body, EventKind::Order(_))), 2);
    assert_eq!(count(|body| matches!(body, EventKind::Booked(_))), 2);
    assert_eq!(count(|body| matches!(body, EventKind::Subscription { .. })), 1);
    assert_eq!(said.last(), Some(&EventKind::SnapshotEnd { port: PortId(0) }));
}

#[test]
fn delays_keep_the_order_of_things() {
    let mut settings = ShardSettings::default();
    settings.venue.delays =
        Delays { entry_ns: 100, entry_jitter_ns: 50, response_ns: 200, response_jitter_ns: 50, feed_ns: 10 };
    let mut bench = Bench::with(settings);
    let (order, said) = bench.submit(limit(Side::Sell, 1, "4", "12"));
    assert_eq!(story(&said), [(ExecType::Entered, Status::PendingNew, Qty::ZERO)]);
    let said = bench.cancel(order);
    assert_eq!(story(&said), [(ExecType::CancelPending, Status::PendingCancel, Qty::ZERO)]);
    let mut told = Vec::new();
    while let Some(deadline) = bench.shard.deadline() {
        bench.now = deadline.0;
        told.extend(story(&bench.send(CommandKind::Timer)));
    }
    assert_eq!(
        told,
        [
            (ExecType::Accepted, Status::PendingCancel, Qty::ZERO),
            (ExecType::Canceled, Status::Canceled, Qty::ZERO)
        ]
    );
    assert!(bench.now > 300);
}

#[test]
fn credit_is_set_aside_spent_and_given_back() {
    let mut bench = Bench::new();
    let limits = Limits { credit: money("100"), credit_currency: usd(), ..Limits::default() };
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(2)), limits });
    let (first, _) = bench.submit(limit(Side::Buy, 2, "9", "10"));
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 2, "1", "10")).1), Reason::InsufficientFunds);
    let said = bench.modify(first, Changes::default().with_qty(qty("10")));
    assert_eq!(reason(&said), Reason::InsufficientFunds);
    bench.cancel(first);
    bench.submit(limit(Side::Sell, 1, "9", "5"));
    let (_, said) = bench.submit(limit(Side::Buy, 2, "9", "10"));
    assert_eq!(story(&said)[2], (ExecType::Filled, Status::Filled, qty("9")));
    // Bought at 5: 45.009 is spent, and the rest of what was set aside is free again.
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 2, "5", "10")).1), Reason::None);
}

#[test]
fn routes_lead_to_the_owner() {
    let body = CommandKind::Halt { security: SecurityId(9), on: true };
    assert_eq!(route(&body, 4), Route::One(ShardId(1)));
    assert_eq!(route(&CommandKind::Timer, 4), Route::All);
    let order = OrderHandle::new(ShardId(3), 0, 0);
    assert_eq!(route(&CommandKind::Cancel { order, id: IntId::NONE }, 4), Route::One(ShardId(3)));
}
