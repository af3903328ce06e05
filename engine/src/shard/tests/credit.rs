//! The credit of an account: a function of its positions and open orders, independent of their
//! history.

use super::*;
use crate::command::BudgetKind;
use crate::event::BudgetUse;

const ME: AccountId = AccountId(1);

fn used(bench: &Bench) -> Money {
    let used = bench.shard.credit_used(ME).unwrap();
    Money::from_raw(i64::try_from(used).unwrap())
}

fn set_credit(bench: &mut Bench, credit: &str) {
    let limits = RiskLimits { credit: money(credit), credit_currency: usd(), ..RiskLimits::default() };
    bench.send(CommandKind::Limits { scope: Scope::Account(ME), limits });
}

/// Returns a bench whose first account has a credit, in a market that last traded at 100.
fn credited(credit: &str) -> Bench {
    let mut bench = Bench::new();
    set_credit(&mut bench, credit);
    set_last(&mut bench, "100");
    bench
}

fn set_last(bench: &mut Bench, last: &str) {
    let trade = Trade { price: price(last), size: qty("1"), at: Timestamp(1) };
    bench.send(CommandKind::Trade { security: SIM_STOCK, trade });
}

/// Trades between the first account and the second one.
fn trade(bench: &mut Bench, side: Side, q: &str, p: &str) {
    let other = if side == Side::Buy { Side::Sell } else { Side::Buy };
    bench.submit(limit(other, 2, q, p));
    let (_, events) = bench.submit(limit(side, 1, q, p));
    assert!(
        reports(&events).iter().any(|(what, ..)| *what == ExecType::Filled),
        "{side:?} {q} at {p}: {events:?}"
    );
}

fn by_hand(bench: &mut Bench, kind: MovementKind, q: &str, p: &str) -> Vec<EventKind> {
    bench.send(CommandKind::Transaction(Movement {
        kind,
        strategy: StrategyId(0),
        account: ME,
        security: Some(SIM_STOCK),
        qty: qty(q),
        price: price(p),
        commission: Money::ZERO,
        currency: Currency::default(),
        uuid: Uuid(0),
    }))
}

/// Each sale used to add its proceeds to what the account might spend.
#[test]
fn naked_sales_use_credit_like_buys_and_add_no_buying_power() {
    let mut bench = credited("1000");
    trade(&mut bench, Side::Sell, "6", "100");
    assert_eq!(used(&bench), money("600.006"));
    assert_eq!(reason(&bench.submit(limit(Side::Sell, 1, "4", "100")).1), Reason::InsufficientFunds);
    assert_eq!(reason(&bench.submit(limit(Side::Sell, 1, "3", "100")).1), Reason::None);
    assert_eq!(used(&bench), money("900.009"));
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "9", "50")).1), Reason::InsufficientFunds);
    // Six of them buy the short position back, and only the rest opens a long one.
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "7", "50")).1), Reason::None);
    assert_eq!(used(&bench), money("950.010"));
}

#[test]
fn a_sale_frees_credit_as_far_as_it_reduces_and_a_profit_is_free_to_use() {
    let mut bench = credited("1000");
    trade(&mut bench, Side::Buy, "5", "100");
    assert_eq!(used(&bench), money("500.005"));
    // Reduces: no reserve that counts.
    let (order, _) = bench.submit(limit(Side::Sell, 1, "5", "150"));
    assert_eq!(used(&bench), money("500.005"));
    bench.cancel(order);
    trade(&mut bench, Side::Sell, "2", "120");
    assert_eq!(used(&bench), money("260.007"), "300 of cost, 40 earned, 7 units of commission");
    trade(&mut bench, Side::Sell, "5", "110");
    assert_eq!(used(&bench), money("150.012"), "220 of a short position, 70 earned");
    trade(&mut bench, Side::Buy, "2", "130");
    assert_eq!(used(&bench), money("-29.986"), "30 earned in all, less commission");
}

#[test]
fn a_short_position_that_is_bought_back_gives_its_credit_back_and_keeps_the_loss() {
    let mut bench = credited("1000");
    trade(&mut bench, Side::Sell, "5", "100");
    trade(&mut bench, Side::Buy, "5", "130");
    assert_eq!(used(&bench), money("150.01"));
}

/// Sum and order of prices do not matter: only what is held and open.
#[test]
fn orders_of_a_side_share_what_they_reduce() {
    let mut bench = credited("5000");
    trade(&mut bench, Side::Buy, "10", "100");
    let cost = used(&bench);
    let (first, _) = bench.submit(limit(Side::Sell, 1, "10", "100"));
    assert_eq!(used(&bench), cost);
    let (_, events) = bench.submit(limit(Side::Sell, 1, "10", "200"));
    assert_eq!(reason(&events), Reason::None);
    // 1000.01 and 2000.01 are reserved, and half of it opens something.
    let both = used(&bench).checked_sub(cost).unwrap();
    assert_eq!(both, money("1500.01"));
    bench.cancel(first);
    assert_eq!(used(&bench), cost, "the other one reduces now");
}

/// The limit of a sale is the least it may bring: a sale far below the market used to need almost
/// no credit.
#[test]
fn a_sale_below_the_market_is_priced_at_the_last_price() {
    let mut bench = credited("1000");
    bench.submit(limit(Side::Buy, 2, "50", "100"));
    assert_eq!(reason(&bench.submit(limit(Side::Sell, 1, "11", "1")).1), Reason::InsufficientFunds);
    let stop = Terms {
        kind: OrderKind::StopLimit,
        stop: price("90"),
        stop_given: true,
        ..limit(Side::Sell, 1, "2", "1")
    };
    let (order, _) = bench.submit(stop);
    assert_eq!(used(&bench), money("180.002"));
    bench.cancel(order);
    let (order, _) = bench.submit(limit(Side::Sell, 1, "4", "200"));
    assert_eq!(used(&bench), money("800.004"));
    // What the modification makes cheaper is free when it takes effect, at the price it was checked
    // with.
    bench.modify(order, Changes::default().with_limit(price("110")));
    assert_eq!(used(&bench), money("440.004"));
    bench.modify(order, Changes::default().with_qty(qty("1")));
    assert_eq!(used(&bench), money("110.001"));
}

/// They used to bypass the credit.
#[test]
fn manual_trades_and_rebalances_count_and_are_never_refused() {
    let mut bench = credited("1000");
    by_hand(&mut bench, MovementKind::Buy, "15", "100");
    assert_eq!(used(&bench), money("1500"));
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "1", "1")).1), Reason::InsufficientFunds);
    // A reduction passes, and an order that turns the position does not.
    assert_eq!(reason(&bench.submit(limit(Side::Sell, 1, "16", "100")).1), Reason::InsufficientFunds);
    let (order, events) = bench.submit(limit(Side::Sell, 1, "15", "100"));
    assert_eq!(reason(&events), Reason::None);
    bench.cancel(order);
    by_hand(&mut bench, MovementKind::Rebalance, "-20", "100");
    assert_eq!(used(&bench), money("500"));
    by_hand(&mut bench, MovementKind::Sell, "-5", "100");
    assert_eq!(used(&bench), money("1000"));
}

#[test]
fn manual_trades_beyond_half_of_the_budget_are_reported() {
    let mut bench = credited("1000");
    let events = by_hand(&mut bench, MovementKind::Buy, "6", "100");
    let reported =
        events.iter().find_map(|body| if let EventKind::Budget(usage) = body { Some(*usage) } else { None });
    let raw = |text: &str| money(text).raw();
    assert!(
        matches!(reported, Some(BudgetUse { granted, used, .. }) if (granted, used) == (raw("1000"), raw("600")))
    );
}

#[test]
fn an_expiry_closes_what_every_account_holds() {
    let mut bench = credited("1000");
    trade(&mut bench, Side::Buy, "5", "100");
    // The strategy is flat, since both accounts belong to it: there is nothing to book.
    let events = bench.send(CommandKind::Expire { security: SIM_STOCK, price: price("80") });
    assert!(!events.iter().any(|body| matches!(body, EventKind::Booked(_))));
    let flat = EventKind::Exposure { account: None, security: SIM_STOCK, qty: Qty::ZERO };
    assert!(events.contains(&flat), "readers learn of it: {events:?}");
    assert_eq!(used(&bench), money("100.005"), "the loss, and the commission");
    assert!(bench.shard.ledger.exposures(0).iter().all(|held| held.net.is_zero() && held.cost.is_zero()));
}

#[test]
fn a_bust_and_a_correction_count() {
    let mut bench = Bench::new();
    let limits = RiskLimits { credit: money("1000"), credit_currency: usd(), ..RiskLimits::default() };
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(3)), limits });
    let used = |bench: &Bench| Money::from_raw(bench.shard.credit_used(AccountId(3)).unwrap() as i64);
    let (order, _) = bench.submit(outside("10"));
    assert_eq!(used(&bench), money("100.01"));
    bench.report(order, VenueReport::Accepted);
    let fill =
        |exec, q| VenueReport::Filled { exec: crate::command::ExecRef(exec), qty: qty(q), price: price("9") };
    bench.report(order, fill(1, "4"));
    assert_eq!(used(&bench), money("96.01"), "36 and commission, and 60.006 reserved");
    bench.report(order, fill(2, "6"));
    assert_eq!(used(&bench), money("90.01"));
    bench.report(
        order,
        VenueReport::Corrected { exec: crate::command::ExecRef(1), qty: qty("2"), price: price("9") },
    );
    assert_eq!(used(&bench), money("72.008"));
}

/// Two histories with the same positions and orders, one of them from before the credit was set.
#[test]
fn a_credit_that_is_set_later_counts_existing_positions() {
    let mut early = credited("5000");
    let mut late = Bench::new();
    set_last(&mut late, "100");
    for bench in [&mut early, &mut late] {
        trade(bench, Side::Buy, "5", "100");
        trade(bench, Side::Sell, "9", "110");
    }
    assert_eq!(late.shard.credit_used(ME), Some(0));
    set_credit(&mut late, "5000");
    assert_eq!(used(&late), used(&early));
    // Another currency counts other securities, and none of these.
    let eur = Currency::parse(b"EUR").unwrap();
    let limits = RiskLimits { credit: money("5000"), credit_currency: eur, ..RiskLimits::default() };
    late.send(CommandKind::Limits { scope: Scope::Account(ME), limits });
    assert_eq!(used(&late), Money::ZERO);
    set_credit(&mut late, "5000");
    assert_eq!(used(&late), used(&early));
}

#[test]
fn without_a_price_only_what_reduces_passes() {
    let mut bench = Bench::new();
    set_credit(&mut bench, "1000");
    let market = |side, q| Terms {
        kind: OrderKind::Market,
        limit: Price::ZERO,
        limit_given: false,
        ..limit(side, 1, q, "1")
    };
    assert_eq!(reason(&bench.submit(market(Side::Sell, "1")).1), Reason::NoReferencePrice);
    by_hand(&mut bench, MovementKind::Buy, "3", "10");
    assert_eq!(reason(&bench.submit(market(Side::Sell, "4")).1), Reason::NoReferencePrice);
    assert_eq!(reason(&bench.submit(market(Side::Sell, "3")).1), Reason::None);
    assert_eq!(reason(&bench.submit(market(Side::Sell, "1")).1), Reason::NoReferencePrice);
}

#[test]
fn credit_survives_save_and_load() {
    let mut bench = credited("5000");
    trade(&mut bench, Side::Sell, "5", "100");
    bench.submit(limit(Side::Sell, 1, "7", "101"));
    let mut bytes = Vec::new();
    bench.shard.save(&mut bytes);
    let (reference, settings) = (bench.shard.reference().clone(), bench.shard.settings().clone());
    let again = Shard::load(&bytes, ShardId(0), 1, reference, settings).unwrap();
    assert_eq!(again.credit_used(ME), bench.shard.credit_used(ME));
    assert_eq!(again.digest(), bench.shard.digest());
}

/// Returns how much more of a budget the refusal of an order wants.
fn wanting(events: &[EventKind]) -> Vec<(BudgetKind, i64)> {
    let budgets = events.iter().filter_map(|body| match body {
        EventKind::Budget(usage) if usage.wanting > 0 => Some((usage.kind, usage.wanting)),
        _ => None,
    });
    budgets.collect()
}

#[test]
fn a_refused_order_wants_the_credit_it_needs_and_one_of_what_is_counted() {
    let mut bench = credited("1000");
    let (_, events) = bench.submit(limit(Side::Buy, 1, "20", "100"));
    assert_eq!(wanting(&events), [(BudgetKind::Credit, money("2000.02").raw())], "with the commission");
    let limits = RiskLimits { max_open_orders: 1, ..RiskLimits::default() };
    bench.send(CommandKind::Limits { scope: Scope::Account(ME), limits });
    bench.submit(limit(Side::Buy, 1, "1", "90"));
    let (_, events) = bench.submit(limit(Side::Buy, 1, "20", "90"));
    assert_eq!(wanting(&events), [(BudgetKind::OpenOrders, 1)]);
}
