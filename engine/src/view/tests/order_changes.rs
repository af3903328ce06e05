use super::*;

const ORDER: fn() -> OrderHandle = || handle(0, 1, 5);

impl ViewBench {
    fn small(changes_max: u32) -> ViewBench {
        ViewBench::with(1, ViewSettings { changes_max, ..ViewSettings::default() })
    }

    fn modify(&mut self, order: OrderHandle, text: &str, limit: &str) {
        let entered = entered(order, text);
        let terms = Terms { limit: price(limit), ..entered.terms };
        let what = ExecType::Replaced;
        self.emit(
            order.shard().0,
            EventKind::Order(OrderTerms { what, status: Status::New, terms, ..entered }),
        );
        self.report(order, what, Status::New);
    }

    fn refuse(&mut self, order: OrderHandle, request: RequestKind, reason: Reason) {
        let refusal = RequestRefusal {
            order,
            id: id("a"),
            request_id: id("r"),
            source: Source::default(),
            request,
            status: Status::New,
            reason,
        };
        self.emit(order.shard().0, EventKind::Refused(refusal));
    }

    fn changes(&self, order: OrderHandle) -> (Vec<StatusChange>, bool) {
        self.view.changes_of(&self.view.order(order).unwrap(), usize::MAX)
    }

    fn causes(&self, order: OrderHandle) -> (Vec<ChangeCause>, bool) {
        let (changes, is_complete) = self.changes(order);
        (changes.iter().map(|change| change.cause).collect(), is_complete)
    }
}

fn reports(what: &[ExecType]) -> Vec<ChangeCause> {
    what.iter().copied().map(ChangeCause::Report).collect()
}

fn limits(changes: &[StatusChange]) -> Vec<Option<Price>> {
    changes.iter().map(|change| change.prices.map(|prices| prices.limit)).collect()
}

#[test]
fn each_change_has_its_time_its_cause_and_the_prices_of_that_time() {
    let mut bench = ViewBench::new(2);
    let order = handle(1, 0, 3);
    bench.enter(order, "a");
    bench.report(order, ExecType::Accepted, Status::New);
    bench.enter(handle(1, 0, 4), "other");
    bench.modify(order, "b", "11");
    bench.refuse(order, RequestKind::Cancel, Reason::VenueUnavailable);
    let fill = OrderReport {
        what: ExecType::Filled,
        status: Status::Filled,
        cum_qty: qty("100"),
        last_qty: qty("60"),
        last_price: price("11"),
        ..report_of(&entered(order, "b"))
    };
    bench.emit_at(9_000, 1, EventKind::Status(fill));
    // The shard forgets the order; it and its changes stay readable.
    let view = bench.view.order(order).unwrap();
    bench.emit(1, EventKind::Forgotten { order, source: Source::default(), id: id("b") });
    let (changes, is_complete) = bench.view.changes_of(&view, usize::MAX);
    assert!(is_complete);
    let causes: Vec<_> = changes.iter().map(|change| change.cause).collect();
    let before = reports(&[ExecType::Entered, ExecType::Accepted, ExecType::Replaced]);
    assert_eq!(causes[..3], before);
    assert_eq!(causes[3], ChangeCause::Refusal(RequestKind::Cancel));
    assert_eq!(changes[3].reason, Reason::VenueUnavailable);
    assert_eq!((changes[3].qty, changes[3].status), (qty("100"), Status::New));
    let (old, new) = (Some(price("10.5")), Some(price("11")));
    assert_eq!(limits(&changes), [old, old, new, new, new]);
    let last = changes[4];
    assert_eq!((last.at, last.cum_qty, last.last_qty), (Timestamp(9_000), qty("100"), qty("60")));
    assert_eq!((last.last_price, last.status), (price("11"), Status::Filled));
}

#[test]
fn a_limit_selects_the_newest_changes() {
    let mut bench = ViewBench::new(1);
    bench.enter(ORDER(), "a");
    bench.report(ORDER(), ExecType::Accepted, Status::New);
    bench.modify(ORDER(), "b", "11");
    let view = bench.view.order(ORDER()).unwrap();
    let (changes, is_complete) = bench.view.changes_of(&view, 2);
    assert_eq!((changes.len(), is_complete), (2, false));
    // The prices before the modification were those of the entry, which is not read.
    assert_eq!(limits(&changes), [None, Some(price("11"))]);
    assert_eq!(bench.view.changes_of(&view, 3), bench.changes(ORDER()));
    assert!(bench.changes(ORDER()).1);
}

#[test]
fn the_oldest_changes_go_first_when_the_ring_is_full() {
    let mut bench = ViewBench::small(4);
    let other = handle(0, 0, 1);
    bench.enter(ORDER(), "a");
    bench.report(ORDER(), ExecType::Accepted, Status::New);
    bench.enter(other, "other");
    bench.report(other, ExecType::Accepted, Status::New);
    assert!(bench.changes(ORDER()).1);
    bench.report(ORDER(), ExecType::Filled, Status::PartiallyFilled);
    assert_eq!(bench.causes(ORDER()), (reports(&[ExecType::Accepted, ExecType::Filled]), false));
    // Its prices have not changed since.
    assert_eq!(limits(&bench.changes(ORDER()).0), [Some(price("10.5")); 2]);
    assert_eq!(bench.causes(other), (reports(&[ExecType::Entered, ExecType::Accepted]), true));
}

#[test]
fn zero_keeps_no_changes() {
    let mut bench = ViewBench::small(0);
    bench.enter(ORDER(), "a");
    assert_eq!(bench.changes(ORDER()), (vec![], false));
}

#[test]
fn the_day_of_a_shard_ends_for_its_own_orders() {
    let mut bench = ViewBench::new(2);
    let (here, there) = (handle(0, 0, 1), handle(1, 0, 1));
    for shard in [0, 1] {
        bench.emit(shard, EventKind::TradingDay { day: Day(1) });
    }
    bench.enter(here, "a");
    bench.enter(there, "b");
    bench.emit(0, EventKind::TradingDay { day: Day(2) });
    assert_eq!(bench.changes(here), (vec![], false));
    assert_eq!(bench.causes(there), (reports(&[ExecType::Entered]), true));
    bench.report(here, ExecType::Canceled, Status::Canceled);
    assert_eq!(bench.causes(here), (reports(&[ExecType::Canceled]), false));
}

#[test]
fn after_a_restart_an_order_has_only_its_later_changes() {
    let mut bench = ViewBench::new(1);
    bench.begin(0);
    let image = OrderTerms { what: ExecType::Snapshot, status: Status::New, ..entered(ORDER(), "a") };
    bench.emit_at(100, 0, EventKind::Order(image));
    bench.emit_at(200, 0, EventKind::Status(report_of(&image)));
    bench.end(0);
    assert_eq!(bench.changes(ORDER()), (vec![], false));
    bench.report(ORDER(), ExecType::CancelPending, Status::PendingCancel);
    assert_eq!(bench.causes(ORDER()), (reports(&[ExecType::CancelPending]), false));
}

#[test]
fn a_later_snapshot_shows_whether_changes_are_missing() {
    let mut bench = ViewBench::new(1);
    bench.begin(0);
    bench.end(0);
    bench.emit_at(1_000, 0, EventKind::Order(entered(ORDER(), "a")));
    let image = OrderTerms { what: ExecType::Snapshot, ..entered(ORDER(), "a") };
    let snapshot = |bench: &mut ViewBench, updated: u64| {
        bench.begin(0);
        bench.emit_at(1_000, 0, EventKind::Order(image));
        bench.emit_at(updated, 0, EventKind::Status(report_of(&image)));
        bench.end(0);
    };
    snapshot(&mut bench, 1_000);
    assert_eq!(bench.causes(ORDER()), (reports(&[ExecType::Entered]), true));
    snapshot(&mut bench, 1_500);
    assert_eq!(bench.causes(ORDER()), (reports(&[ExecType::Entered]), false));
    bench.report(ORDER(), ExecType::Filled, Status::PartiallyFilled);
    let (changes, is_complete) = bench.changes(ORDER());
    // The prices may have changed meanwhile.
    assert_eq!((limits(&changes), is_complete), (vec![Some(price("10.5")), None], false));
}

#[test]
fn the_next_order_in_a_slot_has_its_own_changes() {
    let mut bench = ViewBench::new(1);
    bench.enter(ORDER(), "a");
    bench.report(ORDER(), ExecType::Filled, Status::Filled);
    let first = bench.view.order(ORDER()).unwrap();
    let next = handle(0, 2, 5);
    bench.enter(next, "b");
    bench.report(next, ExecType::Accepted, Status::New);
    assert_eq!(bench.causes(next), (reports(&[ExecType::Entered, ExecType::Accepted]), true));
    let (changes, is_complete) = bench.view.changes_of(&first, usize::MAX);
    assert_eq!((changes.len(), is_complete), (2, true));
    assert_eq!(changes[1].status, Status::Filled);
}

#[test]
fn requests_about_unknown_orders_are_no_changes() {
    let mut bench = ViewBench::new(1);
    bench.refuse(ORDER(), RequestKind::Replace, Reason::OrderFinished);
    bench.report(ORDER(), ExecType::Filled, Status::Filled);
    bench.enter(ORDER(), "a");
    assert_eq!(bench.causes(ORDER()), (reports(&[ExecType::Entered]), true));
}

/// Random events, compared with a list of all of them of which the newest are read.
#[test]
fn the_ring_has_what_a_list_has() {
    const MAX: usize = 1_500;
    let mut rng = Rng::new(7);
    let mut bench = ViewBench::small(MAX as u32);
    let mut list: Vec<(OrderHandle, bool, Option<ExecType>)> = Vec::new();
    let (mut entered, mut day, mut is_overwritten) = ([false; 8], Day(1), false);
    bench.emit(0, EventKind::TradingDay { day });
    for _ in 0..12_000 {
        let slot = rng.index(entered.len());
        let order = handle(0, 0, slot as u32);
        if !std::mem::replace(&mut entered[slot], true) {
            bench.enter(order, "x");
            list.push((order, true, Some(ExecType::Entered)));
            continue;
        }
        match rng.below(8) {
            0 => {
                bench.modify(order, "x", "12");
                list.push((order, false, None));
                list.push((order, false, Some(ExecType::Replaced)));
            }
            1 if rng.below(400) == 0 => {
                day = Day(day.0 + 1);
                bench.emit(0, EventKind::TradingDay { day });
                list.clear();
            }
            _ => {
                bench.report(order, ExecType::Filled, Status::PartiallyFilled);
                list.push((order, false, Some(ExecType::Filled)));
            }
        }
        is_overwritten |= list.len() > MAX;
        if rng.below(50) > 0 {
            continue;
        }
        let kept = &list[list.len().saturating_sub(MAX)..];
        for slot in (0..entered.len()).filter(|slot| entered[*slot]) {
            let order = handle(0, 0, slot as u32);
            let own = kept.iter().filter(|(of, ..)| *of == order);
            let wanted: Vec<ExecType> = own.clone().filter_map(|(_, _, what)| *what).collect();
            let is_complete = own.clone().any(|(_, is_entry, _)| *is_entry);
            assert_eq!(bench.causes(order), (reports(&wanted), is_complete));
        }
    }
    assert!(is_overwritten && day > Day(1));
}
