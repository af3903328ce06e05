//! Positions, cash and recounts, booking by booking.

use super::*;
use crate::terms::Side;

fn qty(text: &str) -> Qty {
    Qty::parse(text.as_bytes()).unwrap()
}

fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).unwrap()
}

fn money(text: &str) -> Money {
    Money::parse(text.as_bytes()).unwrap()
}

impl Ledger {
    /// Changes a balance as no booking does, which a recount corrects.
    pub(crate) fn change_cash(&mut self, at: usize, by: Money) {
        self.cash[at].amount = self.cash[at].amount.checked_add(by).unwrap();
    }
}

fn instrument() -> Instrument {
    Instrument {
        security: SecurityId(7),
        local: 0,
        currency: Currency::parse(b"USD").unwrap(),
        size: ContractSize::whole(50).unwrap(),
    }
}

fn deal(q: &str, p: &str) -> SecurityTransaction {
    let qty = qty(q);
    let kind = if qty.is_negative() { MovementKind::Sell } else { MovementKind::Buy };
    SecurityTransaction {
        kind,
        account: AccountId(1),
        qty,
        price: price(p),
        commission: money("0.5"),
        order: OrderHandle::NONE,
        order_id: IntId::NONE,
        exec: ExecRef(0),
        exposure: None,
    }
}

fn state(q: &str, cost: &str, realized: &str) -> PositionState {
    PositionState { qty: qty(q), cost: money(cost), realized: money(realized) }
}

#[test]
fn a_position_follows_average_cost() {
    let mut held = PositionState::default();
    let trades = [
        ("10", "100", state("10", "50000", "0")),
        ("10", "110", state("20", "105000", "0")),
        ("-5", "120", state("15", "78750", "3750")),
        // Through zero: 15 closed at 100, five opened short.
        ("-20", "100", state("-5", "-25000", "0")),
        ("-5", "90", state("-10", "-47500", "0")),
        ("4", "80", state("-6", "-28500", "3000")),
        ("6", "80", state("0", "0", "7500")),
    ];
    for (q, p, expected) in trades {
        held = after(&held, qty(q), price(p), ContractSize::whole(50).unwrap()).unwrap();
        assert_eq!(held, expected, "{q}@{p}");
    }
}

#[test]
fn a_flat_position_has_no_cost_after_rounding() {
    let mut held =
        after(&PositionState::default(), qty("3"), price("0.00000001"), ContractSize::from_raw(33_333_333));
    held = after(&held.unwrap(), qty("4"), price("0.33333333"), ContractSize::from_raw(33_333_333));
    let mut held = held.unwrap();
    for _ in 0..7 {
        held = after(&held, qty("-1"), price("0.1"), ContractSize::from_raw(33_333_333)).unwrap();
    }
    assert_eq!((held.qty, held.cost), (Qty::ZERO, Money::ZERO));
}

#[test]
fn a_booking_that_cannot_be_counted_changes_nothing() {
    let mut ledger = Ledger::new(1, 8, LargePages::NONE);
    let at = ledger.position_index(StrategyId(1), &instrument());
    let mut huge = deal("90000000000", "90000000000");
    assert!(ledger.book(Timestamp(1), &instrument(), at, &huge, false).is_none());
    huge = deal("1000", "1000000");
    for _ in 0..3 {
        // 50,000,000,000 each: the second does not fit.
        ledger.book(Timestamp(1), &instrument(), at, &huge, false);
    }
    assert_eq!(ledger.position(0, at).state.qty, qty("1000"));
    assert_eq!(ledger.transactions().len(), 1);
    assert!(ledger.is_balanced());
}

#[test]
fn a_recount_gives_the_same_result_and_corrects_errors() {
    let mut ledger = Ledger::new(1, 4, LargePages::NONE);
    let at = ledger.position_index(StrategyId(1), &instrument());
    for (q, p) in [("10", "100"), ("-3", "101"), ("-9", "99.5"), ("5", "98"), ("1", "97"), ("-2", "96")] {
        ledger.book(Timestamp(1), &instrument(), at, &deal(q, p), false).unwrap();
    }
    let usd = instrument().currency;
    let credit = Movement {
        kind: MovementKind::Credit,
        strategy: StrategyId(1),
        account: AccountId(1),
        security: None,
        qty: Qty::ZERO,
        price: price("1000"),
        commission: Money::ZERO,
        currency: usd,
        uuid: Uuid(9),
    };
    ledger.book_cash(Timestamp(2), &credit, money("1000")).unwrap();
    assert_eq!(ledger.last_booked().id, TransactionId::of_cash(StrategyId(1), 1));
    assert_eq!(ledger.transactions().len(), 4);
    let (right, cash) = (ledger.position(0, at).state, ledger.cash()[0].amount);
    ledger.recount();
    assert_eq!(ledger.adjust_position(0, at), None);
    assert_eq!(ledger.adjust_cash(0), None);
    ledger.position_mut(0, at).state = PositionState::default();
    ledger.cash[0].amount = Money::ZERO;
    assert!(!ledger.is_balanced());
    ledger.recount();
    assert_eq!(ledger.adjust_position(0, at), Some((PositionState::default(), right)));
    assert_eq!(ledger.adjust_cash(0), Some((Money::ZERO, cash)));
    assert!(ledger.is_balanced());
    assert_eq!((ledger.transactions().len(), ledger.folded()), (4, 3));
    ledger.fold_all();
    assert_eq!((ledger.transactions().len(), ledger.folded()), (0, 7));
    ledger.recount();
    assert_eq!(ledger.adjust_position(0, at), None);
    assert_eq!(ledger.adjust_cash(0), None);
    assert!(ledger.transaction(0).is_none());
}

#[test]
fn a_uuid_is_remembered_until_many_came_after_it() {
    let mut ledger = Ledger::new(0, 1, LargePages::NONE);
    for n in 0..=UUIDS_MAX as u128 {
        ledger.remember(Uuid(n), TransactionId(n as u64));
    }
    assert!(!ledger.seen(Uuid(0)));
    assert!(ledger.seen(Uuid(1)) && ledger.seen(Uuid(UUIDS_MAX as u128)));
}

#[test]
fn open_quantities_come_and_go() {
    let mut open = OpenQty::default();
    open.change(Side::Sell, qty("5"));
    open.change(Side::Sell, qty("-3"));
    assert_eq!((open.of(Side::Sell), open.of(Side::Buy)), (qty("2"), Qty::ZERO));
}

#[test]
fn credit_recounted_for_one_side_is_that_of_a_whole_recount() {
    for net in ["-7", "-2", "0", "2", "7"] {
        for side in Side::BOTH {
            let mut exposure = Exposure::new(AccountId(1));
            (exposure.net, exposure.cost, exposure.gain) = (qty(net), money(net), money("3"));
            for other in Side::BOTH {
                exposure.open.change(other, qty("5"));
                exposure.reserve(other, money("11"));
            }
            exposure.recount_credit(true);
            exposure.open.change(side, qty("-2"));
            exposure.reserve(side, money("-4"));
            let mut whole = exposure;
            let change = exposure.recount_reserve(side, money("-4"));
            assert_eq!((change, exposure.used), (whole.recount_credit(true), whole.used), "{net} {side:?}");
        }
    }
}

/// The negative of such a cost has no number, which a recount used to need.
#[test]
fn what_is_booked_can_be_recounted_up_to_the_largest_rebate() {
    let mut ledger = Ledger::new(1, 4, LargePages::NONE);
    let at = ledger.position_index(StrategyId(1), &instrument());
    for commission in [money("0.5"), Money::from_raw(i64::MIN)] {
        let deal = SecurityTransaction { commission, ..deal("1", "0") };
        ledger.book(Timestamp(1), &instrument(), at, &deal, false).unwrap();
    }
    assert!(ledger.agrees_with_recount() && ledger.is_balanced());
    ledger.recount();
    assert_eq!(ledger.adjust_cash(0), None);
}

#[test]
fn a_strategy_has_one_position_in_a_security_and_one_balance_in_a_currency() {
    let mut ledger = Ledger::new(2, 8, LargePages::NONE);
    let other = Instrument { security: SecurityId(8), local: 1, ..instrument() };
    let index = |ledger: &mut Ledger, strategy, instrument: &Instrument| {
        ledger.position_index(StrategyId(strategy), instrument)
    };
    for _ in 0..2 {
        assert_eq!([1, 2, 3].map(|strategy| index(&mut ledger, strategy, &instrument())), [0, 1, 2]);
        assert_eq!([3, 1].map(|strategy| index(&mut ledger, strategy, &other)), [0, 1]);
    }
    assert_eq!(ledger.cash.len(), 3);
    let francs = Instrument { currency: Currency::parse(b"CHF").unwrap(), ..other };
    index(&mut ledger, 2, &francs);
    assert_eq!((ledger.cash.len(), ledger.contras.len()), (4, 2));
    let owners: Vec<StrategyId> = ledger.cash.iter().map(|cash| cash.strategy).collect();
    assert_eq!(owners, [1, 2, 3, 2].map(StrategyId));
}
