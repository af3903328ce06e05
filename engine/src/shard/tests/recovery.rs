//! State kept over a restart, and the changes of a new start. The simulation checks that a loaded
//! shard continues as before for all commands.

use super::*;
use crate::codec::{Codec, DecodeProblem};
use crate::command::{ExecRef, VenueFee};
use crate::sender::{Protocol, SenderAddress, SenderId, SenderPart, SenderText};
use crate::settings::{SelfTrade, VenueSettings};
use crate::terms::{ExecInst, SpecialTerms};

impl Bench {
    pub(super) fn begin(&mut self, settings: ShardSettings) -> Vec<EventKind> {
        let reference = self.shard.reference().clone();
        self.now += 1;
        let mut events = Vec::new();
        self.shard.begin(Timestamp(self.now), reference, settings, &mut self.out);
        loop {
            events.extend(self.out.waiting().iter().map(|(_, event)| event.body));
            self.out.clear();
            if !self.shard.has_work() {
                self.shard.assert_consistent();
                return events;
            }
            self.shard.resume(&mut self.out);
        }
    }

    pub(super) fn snapshot_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.shard.save(&mut bytes);
        bytes
    }

    pub(super) fn load(&self, bytes: &[u8]) -> Result<Shard, crate::codec::DecodeError> {
        let (reference, settings) = (self.shard.reference().clone(), self.shard.settings().clone());
        Shard::load(bytes, ShardId(0), 1, reference, settings)
    }
}

/// Returns a shard with one of everything: resting orders in a queue, a waiting market order,
/// parked ones, stops, requests, former ids, executions, transactions, dates, limits, switches.
fn busy() -> Bench {
    let mut bench = Bench::new();
    for (side, p) in [(Side::Buy, "9"), (Side::Buy, "9"), (Side::Sell, "11"), (Side::Sell, "5000")] {
        bench.submit(limit(side, 1, "3", p));
    }
    bench.submit(Terms { limit: price("11"), ..limit(Side::Buy, 2, "1", "11") });
    let parked = Terms { tif: Tif::Atc, security: SIM_OTHER, ..limit(Side::Buy, 1, "1", "9") };
    bench.submit(parked);
    let market = Terms { kind: OrderKind::Market, limit_given: false, limit: Price::ZERO, ..parked };
    bench.submit(Terms { tif: Tif::Day, ..market });
    for stop in ["20", "20", "30"] {
        let terms = limit(Side::Buy, 2, "1", "40");
        let (kind, stop) = (OrderKind::StopLimit, price(stop));
        bench.submit(Terms { kind, stop, stop_given: true, ..terms });
    }
    let (dated, _) = bench.submit(Terms {
        tif: Tif::Gtd,
        tif_date: Timestamp(1_000_000),
        ..limit(Side::Buy, 2, "1", "8")
    });
    bench.modify(dated, Changes::default().with_qty(qty("2")));
    let (order, _) = bench.submit(outside("10"));
    bench.report(order, VenueReport::Accepted);
    bench.report(order, VenueReport::Filled { exec: ExecRef(5), qty: qty("2"), price: price("10") });
    bench.modify(order, Changes::default().with_qty(qty("7")));
    bench.submit(outside("1"));
    bench.submit(limit(Side::Buy, 1, "1", "0.001"));
    bench.send(CommandKind::Quote {
        security: SIM_OTHER,
        quote: Quote { bid: price("9"), bid_size: qty("5"), ..Quote::default() },
    });
    let limits = RiskLimits { max_open_orders: 50, duplicate_window_ms: 9, ..RiskLimits::default() };
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(1)), limits });
    bench.submit(limit(Side::Buy, 1, "2", "7"));
    bench.send(CommandKind::Kill { scope: Scope::Security(SIM_OTHER), on: true });
    bench
}

#[test]
fn a_saved_shard_loads_to_the_same_shard() {
    let mut bench = busy();
    let bytes = bench.snapshot_bytes();
    let loaded = bench.load(&bytes).unwrap();
    assert_eq!(loaded.digest(), bench.shard.digest());
    loaded.assert_consistent();
    bench.shard = loaded;
    assert_eq!(bench.snapshot_bytes(), bytes);
    assert_eq!(bench.shard.applied(), bench.now);
}

/// An execution with a fee, if the venue reports fees.
const EXECUTION: ExecRef = ExecRef(9);

fn special(max_floor: &str) -> SpecialTerms {
    let exec_inst = ExecInst::parse(b"G 1").unwrap();
    SpecialTerms { exec_inst, min_qty: Some(qty("2")), max_floor: Some(qty(max_floor)) }
}

/// Returns a shard with an order at an outside venue, which is partly filled and has a pending
/// modification. The venue reports fees or not; the order has special terms or not, and then others
/// are announced for the next request.
fn outside_order(has_fees: bool, has_special: bool) -> (Bench, OrderHandle) {
    let mut bench = busy();
    let announce = |bench: &mut Bench, max_floor: &str| {
        if has_special {
            bench.send(CommandKind::SpecialTerms(special(max_floor)));
        }
    };
    announce(&mut bench, "4");
    let (order, _) = bench.submit(Terms { special: has_special, ..outside("10") });
    bench.report(order, VenueReport::Accepted);
    let (exec, filled, at) = (EXECUTION, qty("2"), price("10"));
    let fee = VenueFee { amount: money("0.5"), currency: usd() };
    bench.report(
        order,
        match has_fees {
            true => VenueReport::FilledWithFee { exec, qty: filled, price: at, cum: filled, fee },
            false => VenueReport::Filled { exec, qty: filled, price: at },
        },
    );
    announce(&mut bench, "5");
    let changes = Changes::default().with_qty(qty("7"));
    bench.modify(order, if has_special { changes.with_special(true) } else { changes });
    announce(&mut bench, "6");
    (bench, order)
}

/// Returns the bytes behind what every saved state has.
fn rare_bytes(shard: &Shard) -> Vec<u8> {
    let mut bytes = Vec::new();
    shard.orders.save_fees(&mut bytes);
    shard.orders.special.encode(&mut bytes);
    shard.requests.announced.encode(&mut bytes);
    bytes
}

#[test]
fn fees_and_special_terms_are_saved_together_and_each_alone() {
    for (has_fees, has_special) in [(false, false), (true, false), (false, true), (true, true)] {
        let (mut bench, order) = outside_order(has_fees, has_special);
        let (bytes, digest) = (bench.snapshot_bytes(), bench.shard.digest());
        bench.shard = bench.load(&bytes).unwrap();
        let case = format!("fees {has_fees}, special terms {has_special}");
        assert_eq!((bench.shard.digest(), bench.snapshot_bytes()), (digest, bytes), "{case}");
        let (orders, slot) = (&bench.shard.orders, order.slot());
        let given = |max_floor| has_special.then(|| special(max_floor));
        assert_eq!(orders.fee(slot, EXECUTION).is_some(), has_fees, "{case}");
        let kept = (orders.special.current(slot), orders.special.requested(slot));
        assert_eq!(kept, (given("4"), given("5")), "{case}");
        // The next request gets what was announced for it.
        let (next, _) = bench.submit(Terms { special: has_special, ..outside("10") });
        assert_eq!(bench.shard.orders.special.current(next.slot()), given("6"), "{case}");
    }
}

#[test]
fn a_state_from_before_fees_and_special_terms_is_read_without_them() {
    for (has_fees, has_special) in [(false, false), (true, false), (false, true), (true, true)] {
        let (bench, order) = outside_order(has_fees, has_special);
        let (bytes, rare) = (bench.snapshot_bytes(), rare_bytes(&bench.shard));
        let case = format!("fees {has_fees}, special terms {has_special}");
        if !has_fees && !has_special {
            // A state without them has the bytes that it had before, and only these.
            assert_eq!(bench.load(&[&bytes[..], &rare].concat()).unwrap_err().problem, DecodeProblem::Value);
            continue;
        }
        let before = bytes.strip_suffix(&rare[..]).expect("it ends with them");
        match bench.load(before) {
            Ok(loaded) => {
                assert!(!has_special && loaded.orders.fee(order.slot(), EXECUTION).is_none(), "{case}");
                loaded.assert_consistent();
            }
            // An order whose special terms are missing is no state of any build.
            Err(error) => {
                assert_eq!((has_special, error.problem), (true, DecodeProblem::Contradiction), "{case}");
            }
        }
        for cut in before.len() + 1..bytes.len() {
            assert!(bench.load(&bytes[..cut]).is_err(), "{case}, {cut} bytes");
        }
    }
}

#[test]
fn saved_bytes_load_only_as_their_own_shard() {
    let bench = busy();
    let bytes = bench.snapshot_bytes();
    let (reference, settings) = (bench.shard.reference().clone(), bench.shard.settings().clone());
    let refused = |id, shards, reference: &Arc<RefData>, settings: &ShardSettings| {
        let loaded = Shard::load(&bytes, ShardId(id), shards, reference.clone(), settings.clone());
        loaded.unwrap_err().problem
    };
    assert_eq!(refused(1, 2, &reference, &settings), DecodeProblem::Contradiction);
    assert_eq!(refused(0, 2, &reference, &settings), DecodeProblem::Contradiction);
    let other = ShardSettings { finished_max: 7, ..settings.clone() };
    assert_eq!(refused(0, 1, &reference, &other), DecodeProblem::Contradiction);
    let mut rows = rows();
    rows.securities[0].description = "another".into();
    let other = Arc::new(RefData::check(rows).unwrap());
    assert_eq!(refused(0, 1, &other, &settings), DecodeProblem::Contradiction);
}

#[test]
fn decoding_survives_every_cut_and_every_changed_byte() {
    let settings = ShardSettings { orders_max: 1_000, ..ShardSettings::default() };
    let mut bench = busy();
    bench.begin(settings);
    let bytes = bench.snapshot_bytes();
    for cut in 0..bytes.len() {
        assert!(bench.load(&bytes[..cut]).is_err());
    }
    let mut read = 0;
    for at in 0..bytes.len() {
        for value in [0, 1, bytes[at] ^ 1, bytes[at].wrapping_add(7), 0xff] {
            let mut changed = bytes.clone();
            changed[at] = value;
            let Ok(loaded) = bench.load(&changed) else { continue };
            // Decoded bytes encode to the same bytes.
            let mut again = Vec::new();
            loaded.save(&mut again);
            assert!(again == changed, "byte {at} as {value} is read as something else");
            read += 1;
        }
    }
    assert!(read > 100, "amounts may have any value");
}

#[test]
fn a_restart_forgets_ports_and_marks_pending_orders_in_doubt() {
    let mut bench = busy();
    let subscribe = CommandKind::Subscribe { strategy: StrategyId::SERVER, security: SIM_STOCK, on: true };
    bench.send(subscribe);
    let reported = bench.shard.applied();
    let events = bench.begin(ShardSettings::default());
    assert_eq!(bench.shard.applied(), reported + 1);
    let in_doubt = events.iter().filter(|body| matches!(body, EventKind::Status(report) if report.in_doubt));
    assert_eq!(in_doubt.count(), 2, "one was never acknowledged, one is being changed: {events:?}");
    assert!(
        !events.iter().any(|body| matches!(body, EventKind::Alert { .. })),
        "no port watches: {events:?}"
    );
    // No port receives ticks any more, and nothing is sent to a venue that is not connected.
    let trade = Trade { price: price("10"), size: qty("1"), at: Timestamp(1) };
    assert_eq!(bench.send(CommandKind::Trade { security: SIM_OTHER, trade }), []);
    assert_eq!(reason(&bench.submit(outside("1")).1), Reason::VenueUnavailable);
    // Orders that the shard holds continue.
    assert_eq!(reports(&bench.submit(limit(Side::Sell, 2, "1", "9")).1).last().unwrap().0, ExecType::Filled);
    bench.send(CommandKind::Watch { port: PortId(0), what: WatchTarget::Ticks(SIM_STOCK), on: true });
    let events = bench.send(CommandKind::Trade { security: SIM_STOCK, trade });
    assert!(events.iter().any(|body| matches!(body, EventKind::Tick(_))), "a strategy is still subscribed");
}

#[test]
fn smaller_bounds_drop_nothing_and_accept_nothing_new() {
    let mut bench = Bench::new();
    let orders: Vec<_> = (0..5).map(|_| bench.submit(limit(Side::Buy, 1, "1", "9")).0).collect();
    bench.begin(ShardSettings { orders_max: 3, transactions_max: 1, ..ShardSettings::default() });
    assert_eq!(bench.shard.open_orders(Scope::Global), 5);
    let id = bench.id();
    let events = bench.send(CommandKind::Submit { id, terms: limit(Side::Buy, 1, "1", "9") });
    assert_eq!(reason(&events), Reason::ShardFull);
    // An order that could be forgotten makes no room while there are still too many.
    for order in &orders[..2] {
        bench.cancel(*order);
        let events = bench.send(CommandKind::Submit { id, terms: limit(Side::Buy, 1, "1", "9") });
        assert_eq!(events.last().map(|body| matches!(body, EventKind::Order(_))), Some(true));
        assert_eq!(reason(&events), Reason::ShardFull);
    }
    bench.cancel(orders[2]);
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "1", "9")).1), Reason::None);
    let bytes = bench.snapshot_bytes();
    bench.shard = bench.load(&bytes).unwrap();
    assert_eq!(bench.snapshot_bytes(), bytes);
}

#[test]
fn everything_in_transit_arrives_when_delays_change() {
    let delays = Delays { entry_ns: 100, response_ns: 1_000_000, ..Delays::default() };
    let venue = VenueSettings { delays, ..VenueSettings::default() };
    let mut bench = Bench::with(ShardSettings { venue, ..ShardSettings::default() });
    bench.submit(limit(Side::Sell, 1, "4", "10"));
    bench.now += 200;
    // The first order has arrived, and its acknowledgement is in transit; the second order itself
    // is in transit.
    bench.send(CommandKind::Timer);
    bench.submit(limit(Side::Buy, 2, "3", "10"));
    let events = bench.begin(ShardSettings::default());
    let reported: Vec<_> = reports(&events).into_iter().map(|(what, status, _)| (what, status)).collect();
    assert_eq!(
        reported,
        [
            (ExecType::Accepted, Status::New),
            (ExecType::Accepted, Status::New),
            (ExecType::Filled, Status::Filled),
            (ExecType::Filled, Status::PartiallyFilled),
        ]
    );
    assert_eq!(bench.shard.deadline(), None);
}

#[test]
fn books_continue_under_new_settings() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Sell, 1, "4", "10"));
    let allow = VenueSettings { self_trade: SelfTrade::Allow, ..VenueSettings::default() };
    bench.begin(ShardSettings { venue: allow, ..ShardSettings::default() });
    let (_, events) = bench.submit(limit(Side::Buy, 1, "4", "10"));
    assert_eq!(reports(&events).last().unwrap().1, Status::Filled, "an account may now meet itself");
}

/// Returns the number of ids sent to a port after a restart.
fn used_ids(events: &[EventKind]) -> usize {
    let reported =
        events.iter().map(|body| if let EventKind::UsedIds(used) = body { used.hashes().len() } else { 0 });
    reported.sum()
}

#[test]
fn used_ids_and_first_ids_are_sent_after_a_restart() {
    let mut bench = Bench::with(ShardSettings { finished_max: 2, ..ShardSettings::default() });
    bench.send(CommandKind::TradingDay { day: Day(1) });
    let (order, _) = bench.submit(limit(Side::Buy, 1, "3", "9"));
    for p in ["8", "7", "6"] {
        bench.modify(order, Changes::default().with_limit(price(p)));
    }
    for _ in 0..50 {
        let (done, _) = bench.submit(limit(Side::Buy, 1, "1", "5"));
        bench.cancel(done);
    }
    bench.shard = bench.load(&bench.snapshot_bytes()).unwrap();
    bench.begin(bench.shard.settings().clone());
    let events = bench.send(CommandKind::Snapshot { port: PortId(0) });
    assert_eq!(used_ids(&events), 104, "an order, three modifications, fifty orders with their cancels");
    let ids: Vec<(String, String)> = events
        .iter()
        .filter_map(|body| match body {
            EventKind::Order(reported) if reported.order == order => {
                Some((reported.id.to_string(), reported.orig_id.to_string()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(ids, [("o3".into(), "o1".into()), ("o4".into(), "o3".into())]);
    assert_eq!(
        used_ids(&bench.send(CommandKind::Snapshot { port: PortId(3) })),
        0,
        "no source there has used one"
    );
    // The same day again ends nothing, the next one does.
    bench.send(CommandKind::TradingDay { day: Day(1) });
    assert_eq!(used_ids(&bench.send(CommandKind::Snapshot { port: PortId(0) })), 104);
    bench.send(CommandKind::TradingDay { day: Day(2) });
    assert_eq!(used_ids(&bench.send(CommandKind::Snapshot { port: PortId(0) })), 0);
}

/// A start forgets the numbers of senders that no table names; the numbers with a fixed meaning are
/// in no table.
#[test]
fn a_start_keeps_the_senders_that_are_never_registered() {
    let mut bench = Bench::new();
    let [known, gone] = [SenderId(100), SenderId(101)];
    let (protocol, address, login) = (Protocol::Fix, SenderAddress::NONE, SenderText::new("desk"));
    bench.send(CommandKind::Sender { id: known, part: SenderPart::Login { protocol, address, login } });
    let senders = [known, gone, SenderId::INTERNAL, SenderId::UNLISTED];
    let orders = senders.map(|sender| {
        let (id, terms) = (bench.id(), limit(Side::Buy, 1, "1", "9"));
        bench.now += 1;
        let command = Command { sender, ..Command::new(CLIENT, 5, CommandKind::Submit { id, terms }) };
        bench.shard.apply(Timestamp(bench.now), &command, &mut bench.out);
        let body = bench.out.waiting()[0].1.body;
        bench.out.clear();
        let EventKind::Order(order) = body else { panic!("{body:?}") };
        order.order
    });
    bench.begin(ShardSettings::default());
    let kept = orders.map(|order| {
        let slot = bench.shard.orders.find(order).unwrap();
        bench.shard.orders.sent(slot).submitted
    });
    assert_eq!(kept, [known, SenderId::NONE, SenderId::INTERNAL, SenderId::UNLISTED]);
}
