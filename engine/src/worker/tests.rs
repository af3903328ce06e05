use std::sync::Arc;

use super::*;
use crate::command::{BudgetAct, BudgetChange, BudgetKind, Scope, VenueLevels, WatchTarget};
use crate::event::{EventKind, ExecType};
use crate::id::{AccountId, SecurityId, ShardId, StrategyId, Uuid};
use crate::mesh::{Depths, PortClass, PortEnd, mesh};
use crate::number::Qty;
use crate::outbox::EVENTS_WAITING_MAX;
use crate::refdata::{RefData, RefDataRows, sample};
use crate::settings::ShardSettings;
use crate::terms::{OrderKind, Tif};

fn platform(ports: usize, depths: Depths) -> (Vec<PortEnd>, Worker) {
    platform_of(RefDataRows::default(), ports, depths)
}

fn platform_of(rows: RefDataRows, ports: usize, depths: Depths) -> (Vec<PortEnd>, Worker) {
    let (ports, mut shards) = mesh(&vec![PortClass::Client; ports], 1, depths);
    (ports, Worker::new(shard_of(rows), shards.remove(0)))
}

fn shard() -> Shard {
    shard_of(RefDataRows::default())
}

fn shard_of(rows: RefDataRows) -> Shard {
    let reference = RefData::check(rows).unwrap();
    Shard::new(ShardId(0), 1, Arc::new(reference), ShardSettings::default())
}

fn depths(commands: usize, events: usize) -> Depths {
    Depths { commands, events }
}

/// Returns a command whose only answer is that it is done.
fn command(port: u8, token: u32) -> Command {
    let port = PortId(port);
    let source = Source { port, ..Source::default() };
    Command::new(source, token, CommandKind::Watch { port, what: WatchTarget::Budgets, on: false })
}

fn send(port: &mut PortEnd, tokens: std::ops::Range<u32>) {
    for token in tokens {
        port.send(ShardId(0), command(port.id().0, token)).unwrap();
    }
}

/// Returns the tokens of all completed commands, with their event numbers and times.
fn done(port: &mut PortEnd) -> Vec<(u32, u64, u64)> {
    let events = std::iter::from_fn(|| port.poll_event());
    events
        .filter_map(|(_, event)| match event.body {
            EventKind::Done { token, .. } => Some((token, event.seq, event.at.0)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_command_is_answered_in_the_poll_that_takes_it() {
    let (mut ports, mut worker) = platform(2, Depths::default());
    assert_eq!(worker.poll(Timestamp(5)), 0);
    send(&mut ports[1], 7..9);
    assert_eq!(worker.poll(Timestamp(5)), 4);
    assert_eq!(done(&mut ports[1]), [(7, 1, 5), (8, 2, 5)]);
    assert_eq!(done(&mut ports[0]), []);
    assert_eq!(worker.counts(), WorkerCounts { commands: 2, events: 2, ..WorkerCounts::default() });
    assert_eq!((worker.seq(), worker.has_work(), worker.shard().id()), (2, false, ShardId(0)));
}

#[test]
fn a_poll_takes_no_more_than_its_bound() {
    let (mut ports, mut worker) = platform(1, depths(1_000, 1_000));
    send(&mut ports[0], 0..1_000);
    let mut steps = Vec::new();
    while steps.last() != Some(&0) {
        steps.push(worker.poll(Timestamp(1)) / 2);
    }
    assert_eq!(steps[..15], [STEPS_PER_POLL_MAX; 15]);
    assert_eq!(steps[15..], [1_000 - 15 * STEPS_PER_POLL_MAX, 0]);
    assert_eq!(done(&mut ports[0]).len(), 1_000);
}

#[test]
fn a_full_lane_stops_the_shard_and_loses_nothing() {
    for depth in [1, 2, 3, 7] {
        let (mut ports, mut worker) = platform(2, depths(16, depth));
        send(&mut ports[0], 0..16);
        send(&mut ports[1], 100..116);
        let mut received = Vec::new();
        // No port reads at first: the worker stalls at the full lane.
        while worker.poll(Timestamp(1)) > 0 {}
        let taken = worker.counts().commands;
        assert!(worker.has_work());
        assert!(taken <= 2 * depth as u64 + 1, "{taken} taken at depth {depth}");
        assert_eq!(worker.poll(Timestamp(1)), 0);
        assert!(worker.counts().stalls >= 2);
        for _ in 0..100 {
            for port in &mut ports {
                received.extend(port.poll_event().map(|(_, event)| event.seq));
            }
            worker.poll(Timestamp(1));
        }
        received.sort_unstable();
        assert!(received.iter().copied().eq(1..=32), "every event once at depth {depth}");
        assert!(!worker.has_work());
    }
}

#[test]
fn a_port_with_room_does_not_wait_for_one_without_but_for_the_order() {
    let (mut ports, mut worker) = platform(2, depths(4, 1));
    let day = EventKind::TradingDay { day: crate::time::Day(1) };
    let both = PortMask::one(PortId(0)).with(PortMask::one(PortId(1)));
    worker.outbox.emit(PortMask::one(PortId(0)), Timestamp(1), day);
    worker.outbox.emit(both, Timestamp(1), day);
    worker.outbox.emit(PortMask::one(PortId(1)), Timestamp(1), day);
    worker.outbox.end_step(0, 0);
    assert_eq!(worker.poll(Timestamp(1)), 2);
    assert_eq!(ports[1].poll_event().unwrap().1.seq, 2);
    assert_eq!(worker.poll(Timestamp(1)), 0);
    assert!(ports[1].poll_event().is_none(), "the third waits behind the second");
    assert_eq!(ports[0].poll_event().unwrap().1.seq, 1);
    assert_eq!(worker.poll(Timestamp(1)), 2);
    assert_eq!(ports[0].poll_event().unwrap().1.seq, 2);
    assert_eq!(ports[1].poll_event().unwrap().1.seq, 3);
    assert!(worker.outbox.is_empty());
}

#[test]
fn the_journal_gets_each_command_before_its_events_are_delivered() {
    let (mut ports, mut worker) = platform(2, Depths::default());
    send(&mut ports[1], 0..3);
    let listener = &mut ports[1];
    let mut journal = Vec::new();
    worker.poll_with(Timestamp(9), ALL_STORED, |number, now, command, shard| {
        let received = std::iter::from_fn(|| listener.poll_event()).last();
        let received = received.map(|(_, event)| event.seq);
        assert_eq!(shard.applied() + 1, number);
        journal.push((number, now, command.token, received));
        JournalOutcome::Accepted
    });
    let at = Timestamp(9);
    assert_eq!(journal, [(1, at, 0, None), (2, at, 1, Some(1)), (3, at, 2, Some(2))]);
}

#[test]
fn events_of_unstored_commands_are_held_while_work_continues() {
    let (mut ports, mut worker) = platform(1, Depths::default());
    let poll = |worker: &mut Worker, stored| {
        let mut numbers = Vec::new();
        worker.poll_with(Timestamp(1), stored, |number, _, _, _| {
            numbers.push(number);
            JournalOutcome::Accepted
        });
        numbers
    };
    send(&mut ports[0], 0..3);
    assert_eq!(poll(&mut worker, 0), [1, 2, 3]);
    assert_eq!(done(&mut ports[0]), []);
    assert!(worker.has_work());
    send(&mut ports[0], 3..5);
    assert_eq!(poll(&mut worker, 2), [4, 5]);
    assert_eq!(done(&mut ports[0]).iter().map(|done| done.0).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(poll(&mut worker, 5), []);
    assert_eq!(done(&mut ports[0]).iter().map(|done| done.0).collect::<Vec<_>>(), [2, 3, 4]);
    assert!(!worker.has_work());
}

#[test]
fn a_worker_takes_no_more_commands_when_too_much_waits() {
    let (mut ports, mut worker) = platform(1, depths(1_000, EVENTS_WAITING_MAX));
    let mut token = 0;
    while worker.counts().waits == 0 {
        let _ = ports[0].send(ShardId(0), command(0, token));
        token += 1;
        worker.poll_with(Timestamp(1), 0, |_, _, _, _| JournalOutcome::Accepted);
        assert!(token < 2 * EVENTS_WAITING_MAX as u32, "there is a bound");
    }
    let taken = worker.counts().commands;
    assert_eq!(taken as usize, EVENTS_WAITING_MAX - EVENTS_PER_COMMAND_MAX + 1);
    assert_eq!(worker.poll_with(Timestamp(1), 0, |_, _, _, _| JournalOutcome::Accepted), 0);
    while worker.poll(Timestamp(1)) > 0 {}
    assert_eq!(done(&mut ports[0]).len(), token as usize);
}

fn command_with(port: u8, token: u32, body: CommandKind) -> Command {
    Command::new(Source { port: PortId(port), ..Source::default() }, token, body)
}

fn events(port: &mut PortEnd) -> Vec<Event> {
    std::iter::from_fn(|| port.poll_event()).map(|(_, event)| event).collect()
}

#[test]
fn a_closed_journal_refuses_without_changing_the_shard() {
    let (mut ports, mut worker) = platform(2, Depths::default());
    send(&mut ports[0], 0..1);
    worker.poll(Timestamp(1));
    done(&mut ports[0]);
    let (digest, seq) = (worker.shard().digest(), worker.seq());
    let id = IntId::numbered(b'o', 1);
    let (order, changes) = (OrderHandle::from_raw(7), Default::default());
    let (strategy, account, security) = Default::default();
    let bodies = [
        CommandKind::Submit { id, terms: Terms::default() },
        CommandKind::Close { id, strategy, account, security, qty: Default::default() },
        CommandKind::Modify { order, id, changes },
        CommandKind::Cancel { order, id },
        CommandKind::ResetCash,
        CommandKind::Quote { security, quote: Default::default() },
        CommandKind::SpecialTerms(Default::default()),
        CommandKind::Timer,
    ];
    for (token, body) in bodies.into_iter().enumerate() {
        ports[0].send(ShardId(0), command_with(0, token as u32, body)).unwrap();
    }
    let mut offered = 0;
    worker.poll_with(Timestamp(2), ALL_STORED, |number, _, _, _| {
        offered += 1;
        assert_eq!(number, 2, "the number of the next command that is taken");
        JournalOutcome::Refused
    });
    assert_eq!(offered, bodies.len());
    let answers = events(&mut ports[0]);
    assert!(answers.iter().all(|event| event.seq == seq && event.at == Timestamp(2)));
    let failed = Reason::StorageFailed;
    let refused = |event: &Event| match &event.body {
        EventKind::Order(order) => {
            (order.order, order.id) == (OrderHandle::NONE, id) && order.reason == failed
        }
        EventKind::Refused(refusal) => refusal.request_id == id && refusal.reason == failed,
        EventKind::Done { reason, .. } => *reason == failed,
        _ => false,
    };
    assert_eq!(
        answers.iter().filter(|event| refused(event)).count(),
        6,
        "all but the price and the special terms: {answers:?}"
    );
    assert_eq!(answers.len(), 6);
    assert_ne!(answers[0].exec_id(0, ShardId(0)), Uuid::derived(0, 0, seq), "it is no other event's");
    assert_eq!((worker.shard().digest(), worker.seq()), (digest, seq));
    let counts = worker.counts();
    assert_eq!((counts.commands, counts.refused, counts.dropped), (1, 6, 2));
    // Open again, everything continues with the next number.
    send(&mut ports[0], 9..10);
    worker.poll(Timestamp(3));
    assert_eq!(done(&mut ports[0]), [(9, seq + 1, 3)]);
}

#[test]
fn facts_are_queued_while_the_journal_is_closed() {
    let (mut ports, mut worker) = platform(2, depths(16, 16));
    let adapter = |connected| CommandKind::Adapter { adapter: crate::id::AdapterId(1), connected };
    for token in 0..3 {
        ports[1].send(ShardId(0), command_with(1, token, adapter(token % 2 == 0))).unwrap();
    }
    // A budget that the pool has taken from one shard and gives to another must arrive.
    let budget =
        BudgetChange { scope: Scope::Global, kind: BudgetKind::OpenOrders, act: BudgetAct::Grant(1) };
    ports[1].send(ShardId(0), command_with(1, 3, CommandKind::Budget(budget))).unwrap();
    let mut offered = 0;
    let mut deferred = |worker: &mut Worker| {
        worker.poll_with(Timestamp(1), ALL_STORED, |_, _, _, _| {
            offered += 1;
            JournalOutcome::Refused
        })
    };
    deferred(&mut worker);
    // A client is still answered, and the oldest queued fact is offered once in a poll.
    send(&mut ports[0], 5..6);
    deferred(&mut worker);
    assert_eq!(offered, 1 + 2);
    assert_eq!(done(&mut ports[0]).len(), 1);
    assert_eq!(done(&mut ports[1]), []);
    assert!(worker.has_work());
    worker.poll(Timestamp(2));
    let tokens: Vec<_> = done(&mut ports[1]).iter().map(|done| done.0).collect();
    assert_eq!(tokens, [0, 1, 2, 3]);
    assert!(!worker.has_work());
}

/// An answer that exposes nothing unstored does not wait; one that exposes an order's status does.
#[test]
fn a_journal_that_asks_to_retry_is_offered_the_same_command_again() {
    let (mut ports, mut worker) = platform(1, Depths::default());
    send(&mut ports[0], 1..4);
    let mut offered = Vec::new();
    for patience in [0, 2, 0, 9] {
        worker.poll_with(Timestamp(1), ALL_STORED, |number, _, command, _| {
            offered.push((number, command.token));
            if offered.len() % 10 > patience { JournalOutcome::Retry } else { JournalOutcome::Accepted }
        });
    }
    assert_eq!(offered, [(1, 1), (1, 1), (2, 2), (2, 2), (2, 2), (3, 3)]);
    assert_eq!(done(&mut ports[0]).iter().map(|done| done.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(worker.counts().waits, 3);
    assert!(!worker.has_work());
}

#[test]
fn a_refusal_waits_only_for_what_it_exposes() {
    let (mut ports, mut worker) = platform(1, Depths::default());
    send(&mut ports[0], 0..1);
    worker.poll_with(Timestamp(1), 0, |_, _, _, _| JournalOutcome::Accepted);
    let (order, id) = (OrderHandle::from_raw(7), IntId::numbered(b'o', 1));
    ports[0].send(ShardId(0), command_with(0, 1, CommandKind::Cancel { order, id })).unwrap();
    ports[0].send(ShardId(0), command_with(0, 2, CommandKind::ResetCash)).unwrap();
    worker.poll_with(Timestamp(1), 0, |_, _, _, _| JournalOutcome::Refused);
    let received = events(&mut ports[0]);
    assert!(matches!(received[..], [Event { body: EventKind::Done { token: 2, .. }, .. }]), "{received:?}");
    worker.poll_with(Timestamp(1), 1, |_, _, _, _| JournalOutcome::Refused);
    let received = events(&mut ports[0]);
    let [Event { body: EventKind::Done { token: 0, .. }, .. }, Event { body: EventKind::Refused(_), .. }] =
        received[..]
    else {
        panic!("{received:?}");
    };
}

#[test]
fn a_removed_port_receives_no_events() {
    let (mut ports, mut worker) = platform(1, Depths::default());
    let day = EventKind::TradingDay { day: crate::time::Day(1) };
    let both = PortMask::one(PortId(0)).with(PortMask::one(PortId(9)));
    worker.outbox.emit(both, Timestamp(1), day);
    worker.outbox.emit(PortMask::one(PortId(31)), Timestamp(1), day);
    worker.outbox.end_step(0, 0);
    worker.poll(Timestamp(1));
    assert_eq!(events(&mut ports[0]).len(), 1);
    assert!(!worker.has_work());
}

#[test]
fn time_never_goes_back() {
    let (mut ports, mut worker) = platform(1, Depths::default());
    for now in [5, 3, 6] {
        send(&mut ports[0], 0..1);
        worker.poll(Timestamp(now));
    }
    let times: Vec<_> = done(&mut ports[0]).into_iter().map(|(_, _, at)| at).collect();
    assert_eq!(times, [5, 5, 6]);
}

#[test]
fn a_restored_worker_continues_from_number_and_time() {
    let (mut ports, mut shards) = mesh(&[PortClass::Client], 1, Depths::default());
    let mut worker = Worker::restored(shard(), shards.remove(0), 41, Timestamp(8));
    send(&mut ports[0], 0..1);
    worker.poll(Timestamp(2));
    assert_eq!(done(&mut ports[0]), [(0, 42, 8)]);
    assert_eq!(worker.deadline(), None);
}

/// A full lane keeps an event in the outbox, so that its address can be observed: it is the same
/// after a thousand polls as after the first, so the outbox never allocated again.
#[test]
fn polling_does_not_allocate() {
    let (mut ports, mut worker) = platform(1, depths(1, 1));
    let mut place = None;
    for token in 0..1_000 {
        let _ = ports[0].send(ShardId(0), command(0, token));
        worker.poll(Timestamp(1));
        if worker.outbox.is_empty() {
            continue;
        }
        let here = worker.outbox.waiting().as_ptr();
        assert_eq!(*place.get_or_insert(here), here);
        ports[0].poll_event();
    }
    assert!(place.is_some());
}

#[test]
fn levels_of_a_venue_are_not_offered_to_the_journal() {
    let (mut ports, mut worker) = platform(1, Depths::default());
    let source = Source { port: PortId(0), ..Source::default() };
    let security = SecurityId(1);
    let commands = [
        CommandKind::VenueLevels(VenueLevels::new(security, true)),
        CommandKind::VenueLevels(VenueLevels::new(security, false)),
        CommandKind::VenueBook { security, is_known: true },
        CommandKind::VenueBook { security, is_known: false },
    ];
    for body in commands {
        ports[0].send(ShardId(0), Command::new(source, 0, body)).unwrap();
    }
    let mut offered = Vec::new();
    worker.poll_with(Timestamp(1), ALL_STORED, |number, _, command, _| {
        offered.push((number, command.body));
        JournalOutcome::Accepted
    });
    assert_eq!(offered, [(1, commands[2]), (2, commands[3])]);
    // A closed journal drops a change, but not the loss of a book.
    ports[0].send(ShardId(0), Command::new(source, 0, commands[2])).unwrap();
    ports[0].send(ShardId(0), Command::new(source, 0, commands[3])).unwrap();
    worker.poll_with(Timestamp(2), ALL_STORED, |_, _, _, _| JournalOutcome::Refused);
    assert_eq!((worker.counts().dropped, worker.has_work()), (1, true));
    worker.poll(Timestamp(3));
    assert_eq!((worker.shard().applied(), worker.has_work()), (3, false));
}

/// Returns an order that rests in the book of a security of the sample.
fn resting(tif: Tif, tif_date: Timestamp) -> CommandKind {
    let terms = Terms {
        qty: Qty::whole(1).unwrap(),
        limit: sample::price("9"),
        limit_given: true,
        kind: OrderKind::Limit,
        security: SecurityId(1),
        account: AccountId(1),
        tif,
        tif_date,
        ..Terms::default()
    };
    CommandKind::Submit { id: IntId::numbered(b'o', 1), terms }
}

#[test]
fn a_worker_names_the_ports_that_received_something_once() {
    let (mut ports, mut worker) = platform_of(sample::sound(), 3, Depths::default());
    worker.set_copies(PortMask::one(PortId(2)));
    ports[1].send(ShardId(0), command_with(1, 1, resting(Tif::Day, Timestamp::ZERO))).unwrap();
    worker.poll(Timestamp(1));
    assert_eq!(worker.take_wakeups().ports().collect::<Vec<_>>(), [PortId(1), PortId(2)]);
    assert!(worker.take_wakeups().is_empty());
    let received = ports.iter_mut().map(|port| events(port).len()).collect::<Vec<_>>();
    assert!(received[0] == 0 && received[1] > 0 && received[1] == received[2], "{received:?}");
}

#[test]
fn a_due_date_ends_its_order_without_a_command() {
    let (mut ports, mut worker) = platform_of(sample::sound(), 1, Depths::default());
    ports[0].send(ShardId(0), command_with(0, 1, resting(Tif::Gtd, Timestamp(50)))).unwrap();
    worker.poll(Timestamp(1));
    assert_eq!((worker.deadline(), worker.counts().timers), (Some(Timestamp(50)), 0));
    events(&mut ports[0]);
    assert_eq!(worker.poll(Timestamp(49)), 0);
    // A closed journal is offered the timer once in a poll.
    let mut offered = 0;
    worker.poll_with(Timestamp(50), ALL_STORED, |_, _, _, _| {
        offered += 1;
        JournalOutcome::Refused
    });
    assert_eq!((offered, events(&mut ports[0]).len()), (1, 0));
    worker.poll(Timestamp(50));
    assert_eq!((worker.deadline(), worker.counts().timers), (None, 1));
    let ended = events(&mut ports[0]);
    assert!(ended.iter().any(|event| event.report().is_some_and(|report| report.what == ExecType::Expired)));
}

#[test]
fn a_refused_close_is_an_order_that_only_reduces() {
    let (strategy, account, security) = (StrategyId(3), AccountId(4), SecurityId(5));
    let (id, qty) = (IntId::numbered(b'c', 1), Qty::from_raw(6));
    let close = command_with(0, 1, CommandKind::Close { id, strategy, account, security, qty });
    let EventKind::Order(order) = refusal(&close, Reason::LaneFull) else { panic!("it is an order") };
    let expected = Terms { qty, security, strategy, account, reduce_only: true, ..Terms::default() };
    assert_eq!((order.id, order.terms, order.reason), (id, expected, Reason::LaneFull));
}
