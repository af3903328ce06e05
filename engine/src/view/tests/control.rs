use super::*;
use crate::directive::{Directive, DirectiveKey, DirectiveVersion};

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
    assert_eq!(bench.view.switch(scope), SwitchState::All);
    bench.emit(0, EventKind::Kill { scope, on: false });
    assert_eq!(bench.view.switch(scope), SwitchState::Some);
    bench.emit(0, EventKind::Restrict { scope, security: SecurityId(5), on: false });
    bench.emit(1, EventKind::Adapter { adapter, connected: false });
    assert_eq!(bench.view.kills().collect::<Vec<_>>(), [scope]);
    assert_eq!(bench.view.restrictions().collect::<Vec<_>>(), [(scope, SecurityId(5))]);
    assert_eq!((bench.view.adapter(adapter), bench.view.adapter(AdapterId(0))), (Some(false), None));
    bench.emit(1, EventKind::Kill { scope, on: false });
    assert_eq!(bench.view.kills().count(), 0);
    assert_eq!(bench.view.switch(scope), SwitchState::None);
}

#[test]
fn the_newest_directive_of_any_shard_counts_and_the_others_have_not_confirmed_it() {
    let mut bench = ViewBench::new(3);
    let kill = |scope, on| Directive::Kill { scope, on };
    let key = DirectiveKey::Kill(Scope::Global);
    let mut direct = |shard, directive, version| {
        bench.emit(shard, EventKind::Directed { directive, version: DirectiveVersion(version) });
        let unconfirmed: Vec<u8> = bench.view.unconfirmed(key).map(|shard| shard.0).collect();
        (bench.view.directive(key), unconfirmed)
    };
    // Other scopes, before and after it in the table.
    let other = Scope::Account(AccountId(1));
    assert_eq!(direct(0, kill(other, true), 9), (None, vec![]));
    assert_eq!(
        direct(0, Directive::Limits { scope: Scope::Global, limits: RiskLimits::default() }, 9).0,
        None
    );
    let shown = |on, version| Some((kill(Scope::Global, on), DirectiveVersion(version)));
    assert_eq!(direct(1, kill(Scope::Global, true), 5), (shown(true, 5), vec![0, 2]));
    assert_eq!(direct(2, kill(Scope::Global, false), 6), (shown(false, 6), vec![0, 1]));
    assert_eq!(direct(0, kill(Scope::Global, true), 5), (shown(false, 6), vec![0, 1]));
    for shard in [0, 1] {
        direct(shard, kill(Scope::Global, false), 6);
    }
    assert_eq!(bench.view.unconfirmed(key).count(), 0);
    assert_eq!(bench.view.directives().count(), 3);
}

#[test]
fn the_number_of_directives_seen_rises_with_each_and_with_each_snapshot() {
    let mut bench = ViewBench::new(1);
    let mut seen = vec![bench.view.directives_seen()];
    for _ in 0..2 {
        let directive = Directive::Kill { scope: Scope::Global, on: true };
        bench.emit(0, EventKind::Directed { directive, version: DirectiveVersion(5) });
        seen.push(bench.view.directives_seen());
        bench.begin(0);
        bench.end(0);
        seen.push(bench.view.directives_seen());
    }
    assert!(seen.is_sorted_by(|before, after| before < after), "{seen:?}");
    // A snapshot alone, at the begin.
    let mut fresh = ViewBench::new(1);
    fresh.begin(0);
    fresh.end(0);
    assert!(fresh.view.directives_seen() > seen[0]);
}

#[test]
fn a_sender_is_known_once_its_shard_has_described_it() {
    let mut bench = ViewBench::new(1);
    let sender = Sender { login: crate::sender::SenderText::new("anna"), ..Sender::default() };
    assert_eq!(bench.view.sender(SenderId(1_000)), None);
    bench.emit(0, EventKind::Sender { id: SenderId(1_000), sender });
    assert_eq!(bench.view.sender(SenderId(1_000)), Some(&sender));
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
