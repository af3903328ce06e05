use super::*;

#[test]
fn the_lowest_shard_that_knows_decides() {
    let mut bench = ViewBench::new(3);
    let exchange = ExchangeId(1);
    assert_eq!(bench.view.session(exchange), None);
    bench.emit(2, EventKind::Session { exchange, session: TradingSession::Continuous });
    assert_eq!(bench.view.session(exchange), Some(TradingSession::Continuous));
    bench.emit(1, EventKind::Session { exchange, session: TradingSession::Closed });
    assert_eq!(bench.view.session(exchange), Some(TradingSession::Closed));
    assert_eq!(bench.view.session(ExchangeId(0)), None);
    let strategy = StrategyId(4);
    bench.emit(1, EventKind::Phase { strategy, phase: StrategyPhase::Start });
    assert_eq!(
        (bench.view.phase(strategy), bench.view.phase(StrategyId(3))),
        (Some(StrategyPhase::Start), None)
    );
    let limits = RiskLimits { max_open_orders: 5, ..RiskLimits::default() };
    for shard in [0, 1] {
        bench.emit(shard, EventKind::Limits { scope: Scope::Global, limits });
    }
    assert_eq!(bench.view.limits(Scope::Global), Some(&limits));
    assert_eq!(bench.view.all_limits().collect::<Vec<_>>(), [(Scope::Global, &limits)]);
}

#[test]
fn a_switch_is_on_if_it_is_on_anywhere_an_adapter_is_connected_if_it_is_everywhere() {
    let mut bench = ViewBench::new(2);
    let scope = Scope::Account(AccountId(1));
    let adapter = AdapterId(1);
    for shard in [0, 1] {
        bench.emit(shard, EventKind::Kill { scope, on: true });
        bench.emit(shard, EventKind::Restrict { scope, security: SecurityId(5), on: true });
        bench.emit(shard, EventKind::Adapter { adapter, connected: true });
    }
    assert_eq!(bench.view.adapter(adapter), Some(true));
    bench.emit(0, EventKind::Kill { scope, on: false });
    bench.emit(0, EventKind::Restrict { scope, security: SecurityId(5), on: false });
    bench.emit(1, EventKind::Adapter { adapter, connected: false });
    assert_eq!(bench.view.kills().collect::<Vec<_>>(), [scope]);
    assert_eq!(bench.view.restrictions().collect::<Vec<_>>(), [(scope, SecurityId(5))]);
    assert_eq!((bench.view.adapter(adapter), bench.view.adapter(AdapterId(0))), (Some(false), None));
    bench.emit(1, EventKind::Kill { scope, on: false });
    assert_eq!(bench.view.kills().count(), 0);
}

#[test]
fn the_last_alerts_are_kept() {
    let mut bench = ViewBench::with(1, ViewSettings { alerts_max: 2, ..ViewSettings::default() });
    for (slot, alert) in [Alert::Overfill, Alert::InDoubt, Alert::LateFill].into_iter().enumerate() {
        let order = handle(0, 0, slot as u32);
        bench.emit(0, EventKind::Alert { alert, order, security: SecurityId(1), reason: Reason::Overfill });
    }
    let alerts: Vec<_> = bench.view.alerts().map(|record| record.alert).collect();
    assert_eq!(alerts, [Alert::LateFill, Alert::InDoubt]);
    assert_eq!(bench.view.alerts_seen(), 3);
}

#[test]
fn events_for_other_readers_change_only_the_number() {
    let mut bench = ViewBench::new(1);
    bench.emit(0, EventKind::Done { source: Source::default(), token: 1, reason: Reason::None });
    bench.emit(
        0,
        EventKind::ToVenue(Instruction {
            adapter: AdapterId(1),
            order: handle(0, 0, 0),
            request: VenueRequest::New,
            id: id("a"),
            request_id: IntId::NONE,
            terms: Terms::default(),
        }),
    );
    bench.emit(
        0,
        EventKind::Budget(BudgetUse {
            scope: Scope::Global,
            kind: crate::command::BudgetKind::Credit,
            granted: 0,
            used: 0,
            returned: 0,
            wanting: 0,
        }),
    );
    assert_eq!((bench.view.seq(ShardId(0)), bench.open().len()), (9, 0));
}
