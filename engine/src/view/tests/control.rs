use super::*;

#[test]
fn the_lowest_shard_that_knows_has_the_word() {
    let mut desk = Desk::new(3);
    let exchange = ExchangeId(1);
    assert_eq!(desk.view.session(exchange), None);
    desk.say(2, EventKind::Session { exchange, session: Session::Continuous });
    assert_eq!(desk.view.session(exchange), Some(Session::Continuous));
    desk.say(1, EventKind::Session { exchange, session: Session::Closed });
    assert_eq!(desk.view.session(exchange), Some(Session::Closed));
    assert_eq!(desk.view.session(ExchangeId(0)), None);
    let strategy = StrategyId(4);
    desk.say(1, EventKind::Phase { strategy, phase: Phase::Start });
    assert_eq!((desk.view.phase(strategy), desk.view.phase(StrategyId(3))), (Some(Phase::Start), None));
    let limits = Limits { max_open_orders: 5, ..Limits::default() };
    for shard in [0, 1] {
        desk.say(shard, EventKind::Limits { scope: Scope::Global, limits });
    }
    assert_eq!(desk.view.limits(Scope::Global), Some(&limits));
    assert_eq!(desk.view.all_limits().collect::<Vec<_>>(), [(Scope::Global, &limits)]);
}

#[test]
fn a_switch_is_on_if_it_is_on_anywhere_an_adapter_is_connected_if_it_is_everywhere() {
    let mut desk = Desk::new(2);
    let scope = Scope::Account(AccountId(1));
    let adapter = AdapterId(1);
    for shard in [0, 1] {
        desk.say(shard, EventKind::Kill { scope, on: true });
        desk.say(shard, EventKind::Restrict { scope, security: SecurityId(5), on: true });
        desk.say(shard, EventKind::Adapter { adapter, connected: true });
    }
    assert_eq!(desk.view.adapter(adapter), Some(true));
    desk.say(0, EventKind::Kill { scope, on: false });
    desk.say(0, EventKind::Restrict { scope, security: SecurityId(5), on: false });
    desk.say(1, EventKind::Adapter { adapter, connected: false });
    assert_eq!(desk.view.kills().collect::<Vec<_>>(), [scope]);
    assert_eq!(desk.view.restrictions().collect::<Vec<_>>(), [(scope, SecurityId(5))]);
    assert_eq!((desk.view.adapter(adapter), desk.view.adapter(AdapterId(0))), (Some(false), None));
    desk.say(1, EventKind::Kill { scope, on: false });
    assert_eq!(desk.view.kills().count(), 0);
}

#[test]
fn the_last_alerts_are_kept() {
    let mut desk = Desk::with(1, ViewSettings { alerts_max: 2, ..ViewSettings::default() });
    for (slot, alert) in [Alert::Overfill, Alert::InDoubt, Alert::LateFill].into_iter().enumerate() {
        let order = handle(0, 0, slot as u32);
        desk.say(0, EventKind::Alert { alert, order, security: SecurityId(1), reason: Reason::Overfill });
    }
    let alerts: Vec<_> = desk.view.alerts().map(|record| record.alert).collect();
    assert_eq!(alerts, [Alert::LateFill, Alert::InDoubt]);
    assert_eq!(desk.view.alerts_seen(), 3);
}

#[test]
fn what_is_for_others_changes_nothing_but_the_number() {
    let mut desk = Desk::new(1);
    desk.say(0, EventKind::Done { source: Source::default(), token: 1, reason: Reason::None });
    desk.say(
        0,
        EventKind::ToVenue(Instruction {
            adapter: AdapterId(1),
            order: handle(0, 0, 0),
            ask: VenueRequest::New,
            id: id("a"),
            request_id: IntId::NONE,
            terms: Terms::default(),
        }),
    );
    desk.say(
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
    assert_eq!((desk.view.seq(ShardId(0)), desk.open().len()), (9, 0));
}
