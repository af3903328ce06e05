//! Orders, what happened to them, their senders, and the profit they made.

use pitlane_engine::command::{ExecRef, MovementKind};
use pitlane_engine::event::{ExecType, OrderReport, OrderTerms, RequestKind};
use pitlane_engine::id::{
    AccountId, Currency, IntId, OrderHandle, SecurityId, Source, StrategyId, TransactionId,
};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::{Protocol, Sender, SenderAddress, SenderId, SenderText, SentBy};
use pitlane_engine::terms::Status;
use pitlane_engine::time::{Day, Timestamp};
use pitlane_engine::view::{DayResult, TransactionView};

use super::*;
use crate::rest::{
    ConvertedResult, OrderChangesVO, OrderVO, ProfitDayVO, ProfitSums, ProfitVO, SenderVO, SentByVO,
    TransactionVO, protocol_name,
};

fn usd() -> Currency {
    Currency::parse(b"USD").expect("a currency")
}

/// Returns a report of a fill: 4 of 10 at 10.25.
fn filled(source: Source) -> OrderReport {
    let (qty, price) = (Qty::whole(4).expect("it fits"), Price::parse(b"10.25").expect("a price"));
    OrderReport {
        cum_qty: qty,
        avg_price: price,
        last_qty: qty,
        last_price: price,
        status: Status::PartiallyFilled,
        ..test_reports::report(source, ExecType::Filled)
    }
}

/// Returns the read model of an order after its entry and these events.
fn view_of_order(events: impl IntoIterator<Item = EventKind>) -> View {
    let entry = EventKind::Order(test_reports::entered(Source::default()));
    view_of(std::iter::once(entry).chain(events).map(|body| (0, body)))
}

fn order_json(view: &View) -> String {
    let order = view.order(test_reports::handle(1)).expect("the order");
    json(&OrderVO::of(&order, None, SentByVO::default(), &reference()))
}

#[test]
fn an_order_shows_a_fill_after_it_had_one() {
    let before = order_json(&view_of_order([]));
    for name in ["avgPrice", "lastQuantity", "lastPrice", "origIntId", "reason"] {
        assert!(!before.contains(name), "{before}");
    }
    let status = EventKind::Status(filled(Source::default()));
    let after = order_json(&view_of_order([status]));
    let fill =
        r#""filledQuantity":4,"remainingQuantity":6,"avgPrice":10.25,"lastQuantity":4,"lastPrice":10.25,"#;
    assert!(after.contains(fill), "{after}");
    let replaced = OrderReport {
        id: test_reports::id(2),
        orig_id: test_reports::id(1),
        ..test_reports::report(Source::default(), ExecType::Replaced)
    };
    let modified = order_json(&view_of_order([EventKind::Status(replaced)]));
    let [old, new] = [1, 2].map(test_reports::id);
    assert!(modified.starts_with(&format!("{{\"intId\":\"{}\"", new.as_str())), "{modified}");
    assert!(modified.contains(&format!("\"origIntId\":\"{}\"", old.as_str())), "{modified}");
}

#[test]
fn the_changes_of_an_order_are_told_with_their_causes() {
    let source = Source::default();
    let view = view_of_order([
        EventKind::Status(test_reports::report(source, ExecType::Accepted)),
        EventKind::Refused(test_reports::refused(source, RequestKind::Cancel)),
        EventKind::Refused(test_reports::refused(source, RequestKind::Replace)),
        EventKind::Status(filled(source)),
    ]);
    let order = view.order(test_reports::handle(1)).expect("the order");
    let (changes, is_complete) = view.changes_of(&order, 10);
    let vo = OrderChangesVO::of(&order, &changes, is_complete);
    let told: Vec<_> = vo.changes.iter().map(|change| (change.exec_type, change.reason)).collect();
    let refused = Some(Reason::OrderFinished.code());
    assert_eq!(
        told,
        [
            ("PENDING_NEW", None),
            ("NEW", None),
            ("CANCEL_REJECTED", refused),
            ("REPLACE_REJECTED", refused),
            ("TRADE", None),
        ]
    );
    let fills: Vec<bool> = vo.changes.iter().map(|change| change.last_quantity.is_some()).collect();
    assert_eq!(fills, [false, false, false, false, true]);
    assert!(vo.changes.iter().all(|change| change.last_price.is_some() == change.last_quantity.is_some()));
    assert!(vo.changes.iter().all(|change| change.limit.is_some() && change.stop.is_none()));
}

#[test]
fn a_sender_is_shown_as_far_as_it_is_known() {
    let id = SenderId(5 << 24 | 77);
    let sender = Sender {
        protocol: Protocol::Fix,
        address: SenderAddress([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 7]),
        login: SenderText::new("desk"),
        session: SenderText::new("CLIENT1"),
    };
    let shown = |id, sender| json(&SenderVO::of(id, sender));
    assert_eq!(shown(SenderId::NONE, None), "null");
    assert_eq!(shown(SenderId::INTERNAL, None), r#"{"protocol":"INTERNAL"}"#);
    assert_eq!(shown(SenderId::UNLISTED, None), r#"{"protocol":"UNLISTED"}"#);
    let anonymous = Sender { protocol: Protocol::Rest, ..Sender::default() };
    assert_eq!(shown(id, Some(&anonymous)), r#"{"protocol":"REST"}"#);
    let whole = r#"{"login":"desk","address":"10.0.0.7","protocol":"FIX","session":"CLIENT1"}"#;
    assert_eq!(shown(id, Some(&sender)), whole);
    let view = view_of([(0, EventKind::Sender { id, sender })]);
    let sent = SentBy { submitted: id, modified: SenderId::NONE, canceled: SenderId::INTERNAL };
    let SentByVO { submitted, modified, canceled } = SentByVO::of(&sent, &view);
    assert_eq!(
        [json(&submitted), json(&modified), json(&canceled)],
        [whole, "null", r#"{"protocol":"INTERNAL"}"#]
    );
    let protocols = [Protocol::Internal, Protocol::Rest, Protocol::Fix, Protocol::Stomp, Protocol::Strategy];
    assert_eq!(protocols.map(protocol_name), ["INTERNAL", "REST", "FIX", "STOMP", "STRATEGY"]);
}

fn transaction() -> TransactionView {
    TransactionView {
        id: TransactionId(1),
        at: Timestamp(1),
        shard: ShardId(0),
        seq: 1,
        order: OrderHandle::NONE,
        order_id: IntId::NONE,
        exec: ExecRef(0),
        kind: MovementKind::Sell,
        strategy: StrategyId(1),
        account: AccountId(1),
        security: Some(SecurityId(1)),
        qty: Qty::whole(-3).expect("it fits"),
        price: Price::parse(b"10.25").expect("a price"),
        commission: Money::ZERO,
        currency: usd(),
    }
}

#[test]
fn a_transaction_is_described_in_words() {
    let reference = reference();
    let description = |row: &TransactionView| TransactionVO::of(row, 1, &reference).description;
    let trade = transaction();
    assert_eq!(description(&trade), "SELL 3 ACME at 10.25 USD");
    let cash = TransactionView { kind: MovementKind::Credit, security: None, ..trade };
    assert_eq!(description(&cash), "CREDIT 10.25 USD");
}

/// Returns the result of a strategy in the first security, and its amounts in the base currency.
fn result(strategy: u16, base: Option<(i64, i64)>) -> ConvertedResult {
    let result = DayResult {
        strategy: StrategyId(strategy),
        security: SecurityId(1),
        currency: usd(),
        qty: Qty::whole(2).expect("it fits"),
        price: None,
        trades: 4,
        gross: Some(Money::from_raw(500_000_000)),
        fees: Some(Money::from_raw(100_000_000)),
        net: Some(Money::from_raw(400_000_000)),
    };
    let whole = |amount: i64| Money::from_raw(amount * 100_000_000);
    ConvertedResult { result, base: base.map(|(gross, fees)| (whole(gross), whole(fees))) }
}

#[test]
fn profits_are_added_by_strategy_and_unknown_ones_are_counted() {
    let results =
        [result(1, Some((10, 3))), result(0, Some((-4, 1))), result(1, None), result(1, Some((5, 2)))];
    let vo = ProfitVO::of(Some(Day(20_000)), &results, usd(), &reference());
    assert_eq!(json(&vo.total), r#"{"grossPL":11,"fees":6,"netPL":5,"missing":1}"#);
    assert_eq!(
        json(&vo.strategies),
        concat!(
            r#"[{"strategyName":"SERVER","grossPL":-4,"fees":1,"netPL":-5,"missing":0},"#,
            r#"{"strategyName":"momentum","grossPL":15,"fees":5,"netPL":10,"missing":1}]"#,
        )
    );
    let row = concat!(
        r#"{"strategyId":1,"strategyName":"momentum","securityId":1,"symbol":"ACME","currency":"USD","#,
        r#""quantity":2,"trades":4,"grossPL":5,"fees":1,"netPL":4}"#,
    );
    assert_eq!(json(&vo.rows[0]), row);
    let day = ProfitDayVO::of(Day(20_000), &results, usd());
    assert_eq!((day.total, day.trading_day), (vo.total, vo.trading_day.expect("a day")));
}

#[test]
fn a_sum_that_overflows_is_absent() {
    let mut sums = ProfitSums::default();
    for _ in 0..2 {
        sums.add(Some((Money::from_raw(i64::MAX), Money::from_raw(1))));
    }
    assert_eq!((sums.gross, sums.fees, sums.net()), (2 * i64::MAX as i128, 2, 2 * i64::MAX as i128 - 2));
    let most = ConvertedResult { base: Some((Money::from_raw(i64::MAX), Money::ZERO)), ..result(1, None) };
    let vo = ProfitDayVO::of(Day(1), &[most, most], usd());
    assert_eq!(json(&vo.total), r#"{"fees":0,"missing":0}"#);
}

#[test]
fn an_order_that_was_refused_says_why() {
    let refused = OrderTerms {
        what: ExecType::Rejected,
        status: Status::Rejected,
        reason: Reason::OrderFinished,
        ..test_reports::entered(Source::default())
    };
    let view = view_of([(0, EventKind::Order(refused))]);
    let rows: Vec<String> = view
        .finished_orders()
        .map(|order| json(&OrderVO::of(&order, None, SentByVO::default(), &reference())))
        .collect();
    let reason = format!("\"reason\":\"{}\"", Reason::OrderFinished.code());
    assert!(matches!(&rows[..], [row] if row.contains(&reason)), "{rows:?}");
    assert!(!rows[0].contains("execInst"), "it has no instructions");
}
