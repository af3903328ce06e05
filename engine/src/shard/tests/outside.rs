//! Late reports of outside venues: busts and their credit, reports after the rollover, and closing
//! a position there.

use super::bench::kinds;
use super::*;
use crate::command::{BudgetKind, ExecRef, VenueFee, VenueState};
use crate::event::{Alert, Instruction};
use crate::sender::SenderId;
use crate::shard::order_entry::FINISHED_OUTSIDE_DAYS;
use crate::time::NS_PER_DAY;

pub(super) fn filled(exec: u128, q: &str, p: &str) -> VenueReport {
    VenueReport::Filled { exec: ExecRef(exec), qty: qty(q), price: price(p) }
}

pub(super) fn busted(exec_ref: u128, exec: u128, is_open: bool) -> VenueReport {
    let (exec_ref, exec) = (ExecRef(exec_ref), ExecRef(exec));
    VenueReport::Amended { exec_ref, exec, qty: Qty::ZERO, price: Price::ZERO, is_open }
}

fn credit_used(bench: &Bench) -> Money {
    let guard = &bench.shard.directory.accounts.iter().find(|entry| entry.id == AccountId(3)).unwrap().guard;
    Money::from_raw(guard.share(BudgetKind::Credit).used)
}

pub(super) fn alerts(events: &[EventKind]) -> Vec<Alert> {
    events
        .iter()
        .filter_map(|body| if let EventKind::Alert { alert, .. } = body { Some(*alert) } else { None })
        .collect()
}

pub(super) fn instructions(events: &[EventKind]) -> Vec<Instruction> {
    events
        .iter()
        .filter_map(
            |body| if let EventKind::ToVenue(instructions) = body { Some(*instructions) } else { None },
        )
        .collect()
}

#[test]
fn a_bust_releases_credit_and_reserves_it_for_the_reopened_quantity() {
    let mut bench = Bench::new();
    let limits = RiskLimits { credit: money("1000"), credit_currency: usd(), ..RiskLimits::default() };
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(3)), limits });
    let (order, _) = bench.submit(outside("10"));
    let whole = credit_used(&bench);
    assert_eq!(whole, money("100.01"));
    bench.report(order, filled(1, "4", "9"));
    bench.report(order, filled(2, "6", "8"));
    assert_eq!(credit_used(&bench), money("84.01"));
    // The order continues to work: the fill costs nothing, and the rest is reserved as for a new
    // order.
    let events = bench.report(order, busted(2, 3, true));
    assert_eq!(reports(&events), [(ExecType::Corrected, Status::PartiallyFilled, qty("4"))]);
    assert_eq!(credit_used(&bench), money("96.01"), "36.004 spent, 60.006 reserved");
    bench.report(order, busted(1, 4, true));
    assert_eq!(credit_used(&bench), whole);
    bench.cancel(order);
    bench.report(order, VenueReport::Canceled(Reason::Requested));
    assert_eq!(credit_used(&bench), Money::ZERO);
}

/// The venue ends the order, since it has filled more than the modification asks for.
#[test]
fn a_modification_that_fills_have_overtaken_keeps_no_credit() {
    let mut bench = Bench::new();
    let limits = RiskLimits { credit: money("1000"), credit_currency: usd(), ..RiskLimits::default() };
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(3)), limits });
    let (order, _) = bench.submit(outside("10"));
    bench.report(order, filled(1, "4", "10"));
    let before = credit_used(&bench);
    bench.modify(order, Changes::default().with_qty(qty("7")).with_limit(price("30")));
    assert_eq!(
        credit_used(&bench).checked_sub(before),
        Some(money("29.997")),
        "3 for 30, no longer 6 for 10"
    );
    bench.report(order, filled(2, "4", "10"));
    let events = bench.report(order, VenueReport::Canceled(Reason::VenueCancelled));
    assert_eq!(reports(&events).last(), Some(&(ExecType::Replaced, Status::Filled, qty("8"))));
    assert_eq!(credit_used(&bench), money("80.008"), "only what it has bought");
}

fn filled_with_fee(exec: u128, q: &str, cum: &str, amount: &str, currency: &str) -> VenueReport {
    let fee = VenueFee { amount: money(amount), currency: Currency::parse(currency.as_bytes()).unwrap() };
    VenueReport::FilledWithFee { exec: ExecRef(exec), qty: qty(q), price: price("9"), cum: qty(cum), fee }
}

/// Returns what was booked: currency, change of the fee, and cash after it.
fn booked(events: &[EventKind]) -> Vec<(String, Money, Money)> {
    let line = |body: &EventKind| {
        let EventKind::Booked(booking) = body else { return None };
        let apart = Money::from_raw(-booking.price.raw());
        let fee = if booking.security.is_some() { booking.commission } else { apart };
        Some((booking.currency.to_string(), fee, booking.cash))
    };
    events.iter().filter_map(line).collect()
}

fn line(currency: &str, fee: &str, cash: &str) -> (String, Money, Money) {
    (currency.to_string(), money(fee), money(cash))
}

/// The family's commission would be 0.001 per unit.
#[test]
fn a_bust_returns_the_fee_that_the_venue_has_charged() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("20"));
    let fill = |exec, cum, amount, currency| filled_with_fee(exec, "4", cum, amount, currency);
    assert_eq!(booked(&bench.report(order, fill(1, "4", "0.5", "USD"))), [line("USD", "0.5", "-36.5")]);
    assert_eq!(
        booked(&bench.report(order, fill(2, "8", "0.02", "BNB"))),
        [line("USD", "0", "-72.5"), line("BNB", "0.02", "-0.02")]
    );
    assert_eq!(booked(&bench.report(order, filled(3, "4", "9"))), [line("USD", "0.004", "-108.504")]);
    // A correction has no fee of its own: the old one stays.
    let corrected = VenueReport::Corrected { exec: ExecRef(1), qty: qty("4"), price: price("8") };
    assert_eq!(
        booked(&bench.report(order, corrected)),
        [line("USD", "-0.5", "-72.004"), line("USD", "0.5", "-104.504")]
    );
    let bytes = {
        let mut bytes = Vec::new();
        bench.shard.save(&mut bytes);
        bytes
    };
    let (reference, settings) = (bench.shard.reference().clone(), bench.shard.settings().clone());
    bench.shard = Shard::load(&bytes, ShardId(0), 1, reference, settings).unwrap();
    assert_eq!(booked(&bench.report(order, busted(3, 13, true))), [line("USD", "-0.004", "-68.5")]);
    assert_eq!(
        booked(&bench.report(order, busted(2, 12, true))),
        [line("USD", "0", "-32.5"), line("BNB", "-0.02", "0")]
    );
    assert_eq!(booked(&bench.report(order, busted(1, 11, true))), [line("USD", "-0.5", "0")]);
    assert!(booked(&bench.report(order, busted(1, 21, true))).is_empty(), "it is taken back once");
}

#[test]
fn a_bust_returns_the_commission_and_the_fee_of_a_fill_that_was_known_before_its_fee() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("20"));
    bench.report(order, VenueReport::Accepted);
    let standing = VenueReport::Standing { cum: qty("4"), average: price("9"), state: VenueState::Open };
    assert_eq!(booked(&bench.report(order, standing)), [line("USD", "0.004", "-36.004")]);
    let fill = filled_with_fee(1, "4", "4", "0.5", "USD");
    assert_eq!(booked(&bench.report(order, fill)), [line("USD", "0.5", "-36.504")]);
    assert_eq!(
        booked(&bench.report(order, busted(1, 2, true))),
        [line("USD", "-0.004", "-0.5"), line("USD", "-0.5", "0")]
    );
}

#[test]
fn a_bust_of_a_finished_order_that_does_not_work_on_leaves_it_finished() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    bench.report(order, filled(1, "10", "9"));
    let events = bench.report(order, busted(1, 2, false));
    assert_eq!(reports(&events), [(ExecType::Corrected, Status::Filled, Qty::ZERO)]);
    assert_eq!(reason(&bench.cancel(order)), Reason::OrderFinished);
}

#[test]
fn a_fill_after_the_rollover_is_booked_for_as_many_days_as_orders_are_kept() {
    let mut bench = Bench::new();
    bench.send(CommandKind::TradingDay { day: Day(1) });
    let (order, _) = bench.submit(outside("10"));
    bench.report(order, VenueReport::Canceled(Reason::VenueCancelled));
    bench.now += NS_PER_DAY;
    bench.send(CommandKind::TradingDay { day: Day(2) });
    let events = bench.report(order, filled(1, "4", "9"));
    assert!(events.iter().any(|body| matches!(body, EventKind::Booked(_))), "{events:?}");
    assert!(
        matches!(events[0], EventKind::Order(reported) if reported.what == ExecType::Snapshot),
        "readers have put it away: {events:?}"
    );
    assert_eq!(alerts(&events), [Alert::LateFill]);
    bench.now += FINISHED_OUTSIDE_DAYS * NS_PER_DAY + 10;
    bench.send(CommandKind::TradingDay { day: Day(9) });
    let events = bench.report(order, filled(2, "6", "9"));
    assert_eq!(alerts(&events), [Alert::UnknownReport]);
}

fn close(bench: &mut Bench) -> Vec<EventKind> {
    let id = bench.id();
    let (strategy, account) = (StrategyId(0), AccountId(3));
    bench.send(CommandKind::Close { id, strategy, account, security: OUTSIDE, qty: Qty::ZERO })
}

/// Returns a position of ten, and an order to sell six.
fn position_and_order(bench: &mut Bench) -> OrderHandle {
    let (bought, _) = bench.submit(outside("10"));
    bench.report(bought, filled(1, "10", "9"));
    let (sale, _) = bench.submit(Terms { side: Side::Sell, limit: price("12"), ..outside("6") });
    bench.report(sale, VenueReport::Accepted);
    sale
}

#[test]
fn a_close_leaves_when_the_cancels_are_confirmed_with_the_size_of_the_position() {
    let mut bench = Bench::new();
    let sale = position_and_order(&mut bench);
    let events = close(&mut bench);
    assert!(
        instructions(&events).iter().all(|instruction| instruction.request == VenueRequest::Cancel),
        "{events:?}"
    );
    assert_eq!(reason(&close(&mut bench)), Reason::CloseInProgress);
    assert_eq!(reason(&bench.submit(outside("1")).1), Reason::CloseInProgress);
    // The order fills a part before it is cancelled.
    bench.report(sale, filled(2, "4", "12"));
    let events = bench.report(sale, VenueReport::Canceled(Reason::Requested));
    let instructions = instructions(&events);
    assert_eq!(instructions.len(), 1, "{events:?}");
    assert_eq!(
        (instructions[0].request, instructions[0].terms.qty, instructions[0].terms.side),
        (VenueRequest::New, qty("6"), Side::Sell)
    );
}

#[test]
fn a_close_whose_cancel_is_refused_or_whose_venue_is_lost_is_refused() {
    let mut bench = Bench::new();
    let sale = position_and_order(&mut bench);
    close(&mut bench);
    let events = bench.report(sale, VenueReport::CancelRefused(Reason::VenueRejected));
    assert!(
        events.iter().any(|body| matches!(body, EventKind::Order(o) if o.reason == Reason::VenueRejected)),
        "{events:?}"
    );
    close(&mut bench);
    let events = bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: false });
    assert!(
        events.iter().any(|body| matches!(body, EventKind::Order(o) if o.reason == Reason::VenueUnavailable)),
        "{events:?}"
    );
}

#[test]
fn a_close_whose_position_was_sold_by_the_other_order_is_refused_as_flat() {
    let mut bench = Bench::new();
    let (bought, _) = bench.submit(outside("6"));
    bench.report(bought, filled(1, "6", "9"));
    let (sale, _) = bench.submit(Terms { side: Side::Sell, limit: price("12"), ..outside("6") });
    bench.report(sale, VenueReport::Accepted);
    close(&mut bench);
    let events = bench.report(sale, filled(2, "6", "12"));
    assert!(
        events.iter().any(|body| matches!(body, EventKind::Order(o) if o.reason == Reason::PositionFlat)),
        "{events:?}"
    );
}

#[test]
fn a_reduce_only_order_is_cancelled_when_others_fill_first() {
    let mut bench = Bench::new();
    let sale = position_and_order(&mut bench);
    let id = bench.id();
    let (strategy, account) = (StrategyId(0), AccountId(3));
    let events = bench.send(CommandKind::Close { id, strategy, account, security: OUTSIDE, qty: qty("8") });
    assert_eq!(instructions(&events).len(), 1);
    let events = bench.report(sale, filled(2, "2", "12"));
    assert!(instructions(&events).is_empty(), "eight are left: {events:?}");
    let events = bench.report(sale, filled(3, "1", "12"));
    assert!(reports(&events).iter().any(|(what, ..)| *what == ExecType::CancelPending), "{events:?}");
}

#[test]
fn a_reduce_only_order_is_cancelled_when_a_bust_or_a_correction_lowers_the_position() {
    let corrected = VenueReport::Corrected { exec: ExecRef(2), qty: qty("1"), price: price("9") };
    for amendment in [busted(2, 3, false), corrected] {
        let mut bench = Bench::new();
        let (bought, _) = bench.submit(outside("10"));
        bench.report(bought, filled(1, "6", "9"));
        bench.report(bought, filled(2, "4", "9"));
        let id = bench.id();
        let (strategy, account) = (StrategyId(0), AccountId(3));
        bench.send(CommandKind::Close { id, strategy, account, security: OUTSIDE, qty: qty("7") });
        let events = bench
            .report(bought, VenueReport::Corrected { exec: ExecRef(1), qty: qty("5"), price: price("9") });
        assert!(!reports(&events).iter().any(|(what, ..)| *what == ExecType::CancelPending), "nine are left");
        let events = bench.report(bought, amendment);
        assert!(
            reports(&events).iter().any(|(what, ..)| *what == ExecType::CancelPending),
            "less than seven are left: {events:?}"
        );
    }
}

#[test]
fn a_reduce_only_order_is_cancelled_when_a_manual_trade_lowers_the_position() {
    let mut bench = Bench::new();
    bench.trade_by_hand(0, 3, OUTSIDE, "10");
    let (id, strategy, account) = (bench.id(), StrategyId(0), AccountId(3));
    bench.send(CommandKind::Close { id, strategy, account, security: OUTSIDE, qty: qty("8") });
    let events = bench.trade_by_hand(0, 3, OUTSIDE, "-2");
    assert!(reports(&events).is_empty(), "eight are left: {events:?}");
    let events = bench.trade_by_hand(0, 3, OUTSIDE, "-1");
    assert_eq!(kinds(&events), [ExecType::CancelPending], "seven are left");
}

/// The venue has never heard of it.
#[test]
fn a_report_about_an_order_that_the_shard_refused_is_unexpected() {
    let mut bench = Bench::new();
    let (refused, _) = bench.submit(outside("0.5"));
    let state = VenueState::Open;
    let unexpected = [
        VenueReport::Accepted,
        VenueReport::Rejected(Reason::VenueRejected),
        filled(1, "1", "9"),
        VenueReport::Canceled(Reason::Requested),
        VenueReport::CancelRefused(Reason::VenueRejected),
        VenueReport::Replaced,
        VenueReport::Reconciled,
        VenueReport::Unsure,
        VenueReport::Standing { cum: qty("1"), average: price("9"), state },
    ];
    for report in unexpected {
        let events = bench.report(refused, report);
        assert_eq!((alerts(&events), events.len()), (vec![Alert::UnexpectedReport], 1), "{report:?}");
    }
}

#[test]
fn a_missed_fill_has_the_price_that_makes_the_average_right() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    bench.report(order, filled(1, "2", "8"));
    let state = VenueState::Open;
    let events = bench.report(order, VenueReport::Standing { cum: qty("6"), average: price("9"), state });
    let fill =
        events.iter().find_map(|body| if let EventKind::Booked(b) = body { Some(*b) } else { None }).unwrap();
    assert_eq!((fill.qty, fill.price), (qty("4"), price("9.5")));
    // A price beyond the limit is impossible: then the average is used.
    let events = bench.report(order, VenueReport::Standing { cum: qty("7"), average: price("9.9"), state });
    let fill =
        events.iter().find_map(|body| if let EventKind::Booked(b) = body { Some(*b) } else { None }).unwrap();
    assert_eq!((fill.qty, fill.price), (qty("1"), price("9.9")));
    // A bust that was never reported takes back what was presumed.
    let events = bench.report(order, VenueReport::Standing { cum: qty("6"), average: price("9"), state });
    assert_eq!(reports(&events)[0], (ExecType::Corrected, Status::PartiallyFilled, qty("6")));
    assert!(alerts(&events).is_empty(), "{events:?}");
}

#[test]
fn a_close_beyond_the_maximum_of_pending_closes_is_refused() {
    use crate::shard::closing::{PENDING_CLOSES_MAX, PendingClose};
    let mut bench = Bench::new();
    position_and_order(&mut bench);
    let terms = Terms { strategy: StrategyId(9), security: OUTSIDE, ..Terms::default() };
    let id = IntId::numbered(b'w', 1);
    let (sender, refused) = (SenderId::NONE, Reason::None);
    let waiting = PendingClose { local: 1, source: CLIENT, id, terms, sender, refused };
    (0..PENDING_CLOSES_MAX).for_each(|_| bench.shard.closes.push(waiting));
    assert_eq!(reason(&close(&mut bench)), Reason::LaneFull);
    assert_eq!(bench.shard.closes.len(), PENDING_CLOSES_MAX);
}

/// Sends a stop that triggers at once.
fn triggered_stop(bench: &mut Bench) -> OrderHandle {
    let trade = Trade { price: price("10"), size: qty("1"), at: Timestamp(1) };
    bench.send(CommandKind::Trade { security: OUTSIDE, trade });
    let stop = Terms { kind: OrderKind::Stop, stop: price("10"), stop_given: true, ..outside("5") };
    let (order, events) = bench.submit(Terms { limit: Price::ZERO, limit_given: false, ..stop });
    assert_eq!(venue_requests(&events), [VenueRequest::New]);
    order
}

/// Two queries were in transit when the venue came back twice. The answer to the first sent the
/// stop, and the answer to the second sent it once more.
#[test]
fn a_stop_is_sent_once_even_if_several_answers_say_it_is_unknown() {
    let mut bench = Bench::new();
    let order = triggered_stop(&mut bench);
    for connected in [false, true, false, true] {
        bench.send(CommandKind::Adapter { adapter: ADAPTER, connected });
    }
    let state = VenueState::Rejected(Reason::UnknownOrder);
    let unknown = VenueReport::Standing { cum: Qty::ZERO, average: Price::ZERO, state };
    assert_eq!(venue_requests(&bench.report(order, unknown)), [VenueRequest::New]);
    assert_eq!(
        venue_requests(&bench.report(order, unknown)),
        [VenueRequest::Status],
        "it is the answer to the earlier question"
    );
    assert_eq!(
        venue_requests(&bench.report(order, unknown)),
        [VenueRequest::New],
        "it is the answer to the later one"
    );
}

/// The adapter refuses a stop before it reports that its connection was lost, and restores the
/// connection at once: then it reports only that it is connected.
#[test]
fn a_stop_that_did_not_leave_is_sent_when_the_adapter_confirms_its_connection() {
    let mut bench = Bench::new();
    let order = triggered_stop(&mut bench);
    let events = bench.report(order, VenueReport::Rejected(Reason::VenueUnavailable));
    assert_eq!(venue_requests(&events), [], "it waits for a report of the adapter");
    let events = bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
    assert_eq!(venue_requests(&events), [VenueRequest::New]);
    let events = bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
    assert_eq!(venue_requests(&events), [], "it is sent once");
}

/// After a restart the adapter says again that the stop never left, and the venue may answer an
/// earlier query.
#[test]
fn a_stop_that_waits_again_is_not_ended_by_a_repeated_answer() {
    let state = VenueState::Rejected(Reason::UnknownOrder);
    let unknown = VenueReport::Standing { cum: Qty::ZERO, average: Price::ZERO, state };
    let mut bench = Bench::new();
    let order = triggered_stop(&mut bench);
    bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: false });
    let never_left = VenueReport::Rejected(Reason::VenueUnavailable);
    assert_eq!(kinds(&bench.report(order, never_left)), [ExecType::Snapshot], "it waits again");
    for report in [never_left, unknown] {
        assert_eq!(bench.report(order, report), [], "{report:?}");
    }
    let events = bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
    assert_eq!(venue_requests(&events), [VenueRequest::New]);
}

pub(super) fn venue_requests(events: &[EventKind]) -> Vec<VenueRequest> {
    instructions(events).iter().map(|instruction| instruction.request).collect()
}
