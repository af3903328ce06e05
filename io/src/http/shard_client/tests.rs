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
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{OrderKind, Terms};
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::Worker;

use super::waiting::WAITING_MAX;
use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);
const SHARDS: u8 = 3;

struct AppState {
    floor: ShardClient,
    workers: Vec<Worker>,
}

impl AppState {
    fn new(depths: Depths) -> AppState {
        let reference = Arc::new(crate::refdata::shipped().unwrap());
        let (mut ports, ends) = mesh(&[PortClass::Control], SHARDS, depths);
        let work = |end: pitlane_engine::mesh::ShardEnd| {
            Worker::new(Shard::new(end.id(), SHARDS, reference.clone(), ShardSettings::default()), end)
        };
        let workers = ends.into_iter().map(work).collect();
        let bells = vec![Wakeup::new(|| {}); SHARDS as usize];
        let settings =
            ShardClientSettings { view: ViewSettings::default(), orders_max: 1_000, prefix: PREFIX };
        let numbers = Numbers::only(IdBlock { next: 1, end: 1_000 });
        let floor = ShardClient::new(ports.remove(0), bells, reference, settings, numbers);
        AppState { floor, workers }
    }

    /// Polls all parts until none has work left.
    fn settle(&mut self) {
        while self.floor.poll() + self.workers.iter_mut().map(|worker| worker.poll(NOW)).sum::<usize>() > 0 {}
    }

    fn opened(depths: Depths) -> AppState {
        let mut house = AppState::new(depths);
        house.settle();
        assert!(house.floor.is_complete());
        house
    }

    /// Returns the response once everything has settled.
    fn ask(&mut self, body: CommandKind) -> Outcome {
        let mut pending = pin!(self.floor.send(0, body).unwrap());
        assert_eq!(look(pending.as_mut()), None, "nobody has been asked yet");
        self.settle();
        look(pending).expect("an answer")
    }
}

fn look(pending: Pin<&mut Pending>) -> Option<Outcome> {
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
        let mut house = AppState::new(Depths { commands: depth, events: depth });
        assert!(!house.floor.is_complete());
        house.settle();
        assert!(house.floor.is_complete(), "depth {depth}");
    }
}

#[test]
fn a_response_comes_after_every_shard_has_answered_and_the_view_is_updated() {
    let mut house = AppState::opened(Depths::default());
    let mut pending = pin!(house.floor.send(0, KILL).unwrap());
    for shard in 0..SHARDS as usize {
        assert_eq!(look(pending.as_mut()), None);
        house.workers[shard].poll(NOW);
        house.floor.poll();
    }
    assert_eq!(look(pending), Some(Outcome::Done(Reason::None)));
    assert!(house.floor.view().kills().eq([Scope::Global]));
}

#[test]
fn a_refusal_by_any_shard_is_the_response() {
    let mut house = AppState::opened(Depths::default());
    let unknown = CommandKind::Kill { scope: Scope::Strategy(StrategyId(999)), on: true };
    assert_eq!(house.ask(unknown), Outcome::Done(Reason::UnknownScope));
    assert_eq!(house.floor.waiting_len(), 0);
}

#[test]
fn an_order_is_answered_by_the_first_report_of_its_id() {
    let mut house = AppState::opened(Depths::default());
    for phase in [StrategyPhase::Init, StrategyPhase::Prefeed, StrategyPhase::Start, StrategyPhase::Running] {
        house.ask(CommandKind::Phase { strategy: StrategyId::SERVER, phase });
    }
    let reference = house.floor.reference().clone();
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
    let Outcome::Order(entered) = house.ask(CommandKind::Submit { id: id("a"), terms }) else { panic!() };
    assert_eq!((entered.id, entered.what, entered.reason), (id("a"), ExecType::Entered, Reason::None));
    assert_eq!(house.floor.view().orders_with_id(&id("a")).len(), 1, "whoever was answered reads it");

    let bad = Terms { account: AccountId(999), ..terms };
    let Outcome::Order(rejected) = house.ask(CommandKind::Submit { id: id("b"), terms: bad }) else {
        panic!()
    };
    assert_eq!((rejected.what, rejected.reason), (ExecType::Rejected, Reason::UnknownAccount));

    let Outcome::Order(report) = house.ask(CommandKind::Cancel { order: entered.order, id: id("c") }) else {
        panic!()
    };
    assert_eq!(report.id, id("c"));
    assert_eq!(house.floor.view().open_orders_len(), 0);
    let Outcome::Refused(refusal) = house.ask(CommandKind::Cancel { order: entered.order, id: id("d") })
    else {
        panic!()
    };
    assert_eq!((refusal.request_id, refusal.reason), (id("d"), Reason::OrderFinished));
    let heard = house.floor.heard();
    assert_eq!((heard.orders, heard.rejected, heard.refusals), (1, 1, 1));
}

#[test]
fn a_full_lane_sends_nothing_at_all() {
    let mut house = AppState::opened(Depths { commands: 1, events: 64 });
    let halt = CommandKind::Halt { security: SecurityId(1), on: true };
    let first = house.floor.send(0, halt).unwrap();
    assert_eq!(house.floor.send(0, KILL).unwrap_err(), Busy);
    assert_eq!(house.floor.waiting_len(), 1);
    house.settle();
    assert!(house.floor.view().kills().next().is_none());
    drop(first);
    assert_eq!(house.ask(KILL), Outcome::Done(Reason::None));
}

#[test]
fn the_number_of_pending_responses_is_bounded() {
    let house = AppState::new(Depths { commands: 2 * WAITING_MAX, events: 64 });
    let some: Vec<_> = (0..WAITING_MAX).map(|_| house.floor.send(0, KILL).unwrap()).collect();
    assert_eq!(house.floor.send(0, KILL).unwrap_err(), Busy);
    drop(some);
    assert_eq!(house.floor.waiting_len(), 0);
    house.floor.send(0, KILL).unwrap();
}

#[test]
fn a_response_to_a_dropped_request_is_not_given_to_the_next_one() {
    let mut house = AppState::opened(Depths::default());
    drop(
        house.floor.send(0, CommandKind::Kill { scope: Scope::Strategy(StrategyId(999)), on: true }).unwrap(),
    );
    // The same slot, another generation: the refusal above must not reach it.
    assert_eq!(house.ask(KILL), Outcome::Done(Reason::None));
    assert_eq!(house.floor.waiting_len(), 0);
}

#[test]
fn a_cycle_handles_a_bounded_number_of_events() {
    let mut house = AppState::opened(Depths { commands: 4_096, events: 65_536 });
    for _ in 0..2_000 {
        drop(house.floor.send(0, KILL).unwrap());
    }
    while house.workers.iter_mut().map(|worker| worker.poll(NOW)).sum::<usize>() > 0 {}
    assert_eq!(house.floor.poll(), EVENTS_PER_TURN_MAX);
}
