//! Tests of a `ShardClient` with real shards, stepped by hand.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use pitlane_engine::command::{Scope, StrategyPhase};
use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::ExecType;
use pitlane_engine::id::{AccountId, IntId, SecurityId, StrategyId};
use pitlane_engine::mesh::{Depths, PortClass, mesh};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::SenderId;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{OrderKind, Terms};
use pitlane_engine::time::{Day, Timestamp};
use pitlane_engine::worker::Worker;

use super::waiting::WAITING_MAX;
use super::*;

pub(crate) const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);
const SHARDS: u8 = 3;

pub(crate) struct TestApp {
    pub shard_client: ShardClient,
    pub workers: Vec<Worker>,
}

impl TestApp {
    fn new(depths: Depths) -> TestApp {
        let reference = Arc::new(pitlane_config::refdata::shipped().unwrap());
        let (mut ports, ends) = mesh(&[PortClass::Control], SHARDS, depths);
        let work = |end: pitlane_engine::mesh::ShardEnd| {
            Worker::new(Shard::new(end.id(), SHARDS, reference.clone(), ShardSettings::default()), end)
        };
        let workers = ends.into_iter().map(work).collect();
        let wakeups = vec![Wakeup::new(|| {}); SHARDS as usize];
        let settings =
            ShardClientSettings { view: ViewSettings::default(), orders_max: 1_000, prefix: PREFIX };
        let numbers = Numbers::only(IdBlock { next: 1, end: 1_000 });
        let shard_client = ShardClient::new(ports.remove(0), wakeups, reference, settings, numbers);
        TestApp { shard_client, workers }
    }

    /// Polls all parts until none has work left.
    pub(crate) fn run_until_idle(&mut self) {
        while self.shard_client.poll() + self.workers.iter_mut().map(|worker| worker.poll(NOW)).sum::<usize>()
            > 0
        {}
    }

    pub(crate) fn started(depths: Depths) -> TestApp {
        let mut app = TestApp::new(depths);
        app.run_until_idle();
        assert!(app.shard_client.is_complete());
        app
    }

    /// Returns the response once everything has settled.
    pub(crate) fn send_and_run(&mut self, body: CommandKind) -> CommandOutcome {
        let mut pending = pin!(self.shard_client.send(0, body).unwrap());
        assert_eq!(poll_once(pending.as_mut()), None, "no shard has received it yet");
        self.run_until_idle();
        poll_once(pending).expect("an answer")
    }
}

fn poll_once(pending: Pin<&mut PendingResponse>) -> Option<CommandOutcome> {
    match pending.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

fn id(text: &str) -> IntId {
    IntId::parse(text.as_bytes()).unwrap()
}

const KILL: CommandKind = CommandKind::Kill { scope: Scope::Global, on: true };

#[test]
fn the_view_is_complete_when_every_shard_has_sent_its_snapshot_at_any_lane_depth() {
    for depth in [1, 2, 1_000] {
        let mut app = TestApp::new(Depths { commands: depth, events: depth });
        assert!(!app.shard_client.is_complete());
        app.run_until_idle();
        assert!(app.shard_client.is_complete(), "depth {depth}");
    }
}

#[test]
fn a_response_comes_after_every_shard_has_answered_and_the_view_is_updated() {
    let mut app = TestApp::started(Depths::default());
    let mut pending = pin!(app.shard_client.send(0, KILL).unwrap());
    for shard in 0..SHARDS as usize {
        assert_eq!(poll_once(pending.as_mut()), None);
        app.workers[shard].poll(NOW);
        app.shard_client.poll();
    }
    assert_eq!(poll_once(pending), Some(CommandOutcome::Done(Reason::None)));
    assert!(app.shard_client.view().kills().eq([Scope::Global]));
}

#[test]
fn a_refusal_by_any_shard_is_the_response() {
    let mut app = TestApp::started(Depths::default());
    let unknown = CommandKind::Kill { scope: Scope::Strategy(StrategyId(999)), on: true };
    assert_eq!(app.send_and_run(unknown), CommandOutcome::Done(Reason::UnknownScope));
    assert_eq!(app.shard_client.waiting_len(), 0);
}

#[test]
fn an_order_is_answered_by_the_first_report_of_its_id() {
    let mut app = TestApp::started(Depths::default());
    for phase in [StrategyPhase::Init, StrategyPhase::Prefeed, StrategyPhase::Start, StrategyPhase::Running] {
        app.send_and_run(CommandKind::Phase { strategy: StrategyId::SERVER, phase });
    }
    let reference = app.shard_client.reference().clone();
    let stock = reference.security(SecurityId(1)).unwrap();
    let account = reference.default_account(reference.exchange_of(stock)).unwrap().id;
    let terms = Terms {
        security: stock.id,
        account,
        qty: Qty::whole(100).unwrap(),
        kind: OrderKind::Limit,
        limit: Price::parse(b"1").unwrap(),
        limit_given: true,
        ..Terms::default()
    };
    let CommandOutcome::Order(entered) = app.send_and_run(CommandKind::Submit { id: id("a"), terms }) else {
        panic!()
    };
    assert_eq!((entered.id, entered.what, entered.reason), (id("a"), ExecType::Entered, Reason::None));
    assert_eq!(
        app.shard_client.view().orders_with_id(&id("a")).len(),
        1,
        "a client that was answered reads it"
    );

    let bad = Terms { account: AccountId(999), ..terms };
    let CommandOutcome::Order(rejected) = app.send_and_run(CommandKind::Submit { id: id("b"), terms: bad })
    else {
        panic!()
    };
    assert_eq!((rejected.what, rejected.reason), (ExecType::Rejected, Reason::UnknownAccount));

    let CommandOutcome::Order(report) =
        app.send_and_run(CommandKind::Cancel { order: entered.order, id: id("c") })
    else {
        panic!()
    };
    assert_eq!(report.id, id("c"));
    assert_eq!(app.shard_client.view().open_orders_len(), 0);
    let CommandOutcome::Refused(refusal) =
        app.send_and_run(CommandKind::Cancel { order: entered.order, id: id("d") })
    else {
        panic!()
    };
    assert_eq!((refusal.request_id, refusal.reason), (id("d"), Reason::OrderFinished));
    let counts = app.shard_client.event_counts();
    assert_eq!((counts.orders, counts.rejected, counts.refusals), (1, 1, 1));
}

#[test]
fn an_id_taken_for_another_server_is_used_until_the_trading_day_ends() {
    let mut app = TestApp::started(Depths::default());
    let own = StrategyId(1);
    app.send_and_run(CommandKind::TradingDay { day: Day(1) });
    assert!(app.shard_client.claim(own, &id("a")));
    assert!(!app.shard_client.claim(own, &id("a")) && app.shard_client.knows(own, &id("a")));
    let terms = Terms { strategy: own, ..Terms::default() };
    let declined = app.shard_client.submit(SenderId::NONE, id("a"), terms).unwrap_err();
    assert_eq!(declined.reason, Reason::DuplicateId);
    assert!(app.shard_client.claim(StrategyId(2), &id("a")), "another strategy has ids of its own");
    app.send_and_run(CommandKind::TradingDay { day: Day(2) });
    assert!(app.shard_client.claim(own, &id("a")), "tomorrow it may be used again");
}

#[test]
fn a_full_lane_sends_nothing_at_all() {
    let mut app = TestApp::started(Depths { commands: 1, events: 64 });
    let halt = CommandKind::Halt { security: SecurityId(1), on: true };
    let first = app.shard_client.send(0, halt).unwrap();
    assert_eq!(app.shard_client.send(0, KILL).unwrap_err(), ShardsBusy);
    assert_eq!(app.shard_client.waiting_len(), 1);
    app.run_until_idle();
    assert!(app.shard_client.view().kills().next().is_none());
    drop(first);
    assert_eq!(app.send_and_run(KILL), CommandOutcome::Done(Reason::None));
}

#[test]
fn the_number_of_pending_responses_is_bounded() {
    let app = TestApp::new(Depths { commands: 2 * WAITING_MAX, events: 64 });
    let some: Vec<_> = (0..WAITING_MAX).map(|_| app.shard_client.send(0, KILL).unwrap()).collect();
    assert_eq!(app.shard_client.send(0, KILL).unwrap_err(), ShardsBusy);
    drop(some);
    assert_eq!(app.shard_client.waiting_len(), 0);
    app.shard_client.send(0, KILL).unwrap();
}

#[test]
fn a_response_to_a_dropped_request_is_not_given_to_the_next_one() {
    let mut app = TestApp::started(Depths::default());
    drop(
        app.shard_client
            .send(0, CommandKind::Kill { scope: Scope::Strategy(StrategyId(999)), on: true })
            .unwrap(),
    );
    // The same slot, another generation: the refusal above must not reach it.
    assert_eq!(app.send_and_run(KILL), CommandOutcome::Done(Reason::None));
    assert_eq!(app.shard_client.waiting_len(), 0);
}

#[test]
fn a_cycle_handles_a_bounded_number_of_events() {
    let mut app = TestApp::started(Depths { commands: 4_096, events: 65_536 });
    for _ in 0..2_000 {
        drop(app.shard_client.send(0, KILL).unwrap());
    }
    while app.workers.iter_mut().map(|worker| worker.poll(NOW)).sum::<usize>() > 0 {}
    assert_eq!(app.shard_client.poll(), EVENTS_PER_CYCLE_MAX);
}
