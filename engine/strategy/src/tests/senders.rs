//! Whose orders a runner reports to its strategies, and as whose it sends them.

use super::*;
use pitlane_engine::command::WatchTarget;
use pitlane_engine::event::EventKind;
use pitlane_engine::id::{OrderHandle, Origin};
use pitlane_engine::sender::{Protocol, Sender, SenderText};
use pitlane_engine::terms::{OrderKind, Terms};

/// Orders when it has a tick, and reports each event of an order.
fn reporting() -> StrategyFactory {
    script(|script, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => context.subscribe(STOCK)?,
            ScriptEvent::Tick => {
                script.order = Some(context.limit(STOCK, Side::Buy, qty(1), price("9.90"))?);
            }
            ScriptEvent::Status(id, report) => print_line(context, format!("{id} {:?}", report.what)),
            ScriptEvent::Refused(refused) => print_line(context, format!("{refused:?}")),
            _ => {}
        }
        Ok(())
    })
}

#[test]
fn reports_about_the_orders_of_others_do_not_reach_a_strategy() {
    let mut rig = RunnerRig::new(vec![host(FIRST, reporting())], Operation::RealTime);
    let reference = reference();
    let exchange = reference.exchange_of(reference.security(STOCK).unwrap());
    let terms = Terms {
        security: STOCK,
        strategy: FIRST,
        account: reference.default_account(exchange).unwrap().id,
        side: Side::Buy,
        qty: qty(1),
        kind: OrderKind::Limit,
        limit: price("9.90"),
        limit_given: true,
        ..Terms::default()
    };
    // A strategy with the same number in another process.
    let source = Source { origin: Origin::Strategy, port: rig.feed.id(), session: FIRST.0 };
    let id = IntId::numbered(b'r', 1);
    let order = OrderHandle::new(shard_of(STOCK, 2), 9, 9);
    for body in [CommandKind::Submit { id, terms }, CommandKind::Cancel { order, id }] {
        rig.feed.send(shard_of(STOCK, 2), Command::new(source, 0, body)).unwrap();
        rig.pump();
    }
    assert_eq!(rig.output(), [""; 0]);
    assert_eq!(rig.runner.hosts()[0].book.orders.open(), []);
    let others = rig.order_events();
    assert!(others.iter().any(|line| line.starts_with("r1 Accepted")), "listeners hear of it: {others:?}");
    rig.quote(STOCK, "10.00", "10.02");
    assert_eq!(rig.output(), ["s1 Entered", "s1 Accepted"]);
}

#[test]
fn orders_are_sent_in_the_name_of_their_strategy() {
    let hosts = vec![host(FIRST, reporting()), host(SECOND, reporting())];
    let mut rig = RunnerRig::new(hosts, Operation::RealTime);
    for ask in ["10.02", "10.03"] {
        rig.quote(STOCK, "10.00", ask);
    }
    let port = rig.feed.id();
    let shard = shard_of(STOCK, 2);
    let source = Source { port, ..Source::default() };
    for body in
        [CommandKind::Watch { port, what: WatchTarget::Orders, on: true }, CommandKind::Snapshot { port }]
    {
        rig.feed.send(shard, Command::new(source, 0, body)).unwrap();
    }
    let mut senders = BTreeMap::new();
    let (mut strategies, mut sent_by) = (BTreeMap::new(), BTreeMap::new());
    loop {
        let work: usize = rig.workers.iter_mut().map(|worker| worker.poll(rig.now)).sum();
        while let Some((_, event)) = rig.feed.poll_event() {
            match event.body {
                EventKind::Sender { id, sender } => _ = senders.insert(id, sender),
                EventKind::Order(terms) => _ = strategies.insert(terms.order, terms.terms.strategy),
                EventKind::Sent { order, sent } => _ = sent_by.insert(order, sent.submitted),
                _ => {}
            }
        }
        if work == 0 {
            break;
        }
    }
    assert_eq!(strategies.len(), 4);
    for (order, strategy) in strategies {
        let login = SenderText::new(if strategy == FIRST { "momentum" } else { "second" });
        let expected = Sender { protocol: Protocol::Strategy, login, ..Sender::default() };
        assert_eq!(sent_by.get(&order).and_then(|sender| senders.get(sender)), Some(&expected));
    }
    assert_eq!(senders.len(), 2, "each strategy is one sender");
}
