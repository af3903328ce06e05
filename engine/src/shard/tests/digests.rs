//! What a saved state and its checksum contain, and states that contradict themselves.

use super::bench::stop;
use super::*;
use crate::codec::DecodeProblem;
use crate::event::Tick;
use crate::order::Base;
use crate::sender::{Protocol, SenderAddress, SenderId, SenderPart, SenderText};
use crate::shard::closing::{PENDING_CLOSES_MAX, PendingClose, PendingCloses};
use crate::shard::continuation::Continuation;
use crate::terms::SpecialTerms;
use crate::timers::Timed;

fn pending_close(local: u32) -> PendingClose {
    let terms = Terms { strategy: StrategyId(9), security: OUTSIDE, ..Terms::default() };
    let (id, sender, refused) = (IntId::numbered(b'w', 1), SenderId::NONE, Reason::None);
    PendingClose { local, source: CLIENT, id, terms, sender, refused }
}

#[test]
fn every_part_of_the_state_changes_its_digest() {
    let changes: [fn(&mut Shard); 3] = [
        |shard| shard.closes.push(pending_close(1)),
        |shard| {
            let (protocol, address, login) = (Protocol::Fix, SenderAddress::NONE, SenderText::new("desk"));
            let id = SenderId(100 + u32::try_from(shard.senders().len()).unwrap());
            shard.requests.senders.apply_part(id, SenderPart::Login { protocol, address, login });
        },
        |shard| shard.deadlines.push(Timestamp(99), Timed::Shown(Tick::default())),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut shard = Bench::new().shard;
        let mut digests = vec![shard.digest()];
        for _ in 0..2 {
            change(&mut shard);
            digests.push(shard.digest());
        }
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 3, "change {number}");
    }
}

/// A part that no earlier version had changes the digest only where there is something of it:
/// otherwise the journals of earlier versions would be refused.
#[test]
fn a_new_shard_has_the_digest_of_earlier_versions() {
    let reference = Arc::new(RefData::check(rows()).unwrap());
    let shard = Shard::new(ShardId(0), 1, reference, ShardSettings::default());
    assert_eq!(shard.digest(), 3_937_747_332_784_743_542);
}

#[test]
fn what_has_ended_does_not_rest_at_the_venue() {
    let resting = || {
        let mut bench = Bench::new();
        let (order, _) = bench.submit(limit(Side::Buy, 1, "1", "9"));
        bench.shard.verify().unwrap();
        (bench.shard, order)
    };
    let (mut shard, order) = resting();
    shard.orders.get_mut(order.slot()).base = Base::Canceled;
    let problem = shard.verify().unwrap_err();
    assert!(problem.starts_with("nothing that has ended is at the venue"), "{problem}");
    let (mut shard, order) = resting();
    shard.orders.get_mut(order.slot()).set_at_venue(false);
    assert_eq!(shard.verify().unwrap_err(), "an order is where it was sent");
    let (mut shard, order) = resting();
    let report = VenueReport::Canceled(Reason::Requested);
    shard.deadlines.push(Timestamp(99), Timed::FromVenue { order, report });
    assert_eq!(shard.verify().unwrap_err(), "an order that the venue has ended is not there");
}

#[test]
fn waiting_closes_are_valid_up_to_their_bound_and_in_known_securities() {
    let are_valid = |count: usize, local: u32| {
        let mut closes = PendingCloses::default();
        (0..count).for_each(|_| closes.push(pending_close(local)));
        closes.are_valid(3)
    };
    assert!(are_valid(0, 0) && are_valid(1, 0) && are_valid(1, 2) && are_valid(PENDING_CLOSES_MAX, 2));
    assert!(!are_valid(1, 3) && !are_valid(1, 4) && !are_valid(PENDING_CLOSES_MAX + 1, 2));
}

/// A fill may leave work in its security and reduce-only orders to cancel.
#[test]
fn two_kinds_of_work_at_once_are_work() {
    let mut work = Continuation::default();
    assert!(!work.has_work());
    work.set_busy(1);
    work.reduce_later(1, StrategyId(0));
    assert!(work.has_work());
}

#[test]
fn special_terms_that_were_only_announced_are_saved() {
    let special = SpecialTerms { max_floor: Some(qty("1")), ..SpecialTerms::default() };
    let mut bench = Bench::new();
    bench.send(CommandKind::SpecialTerms(special));
    bench.reload();
    let (order, _) = bench.submit(Terms { special: true, ..outside("10") });
    assert_eq!(bench.shard.orders.special.current(order.slot()), Some(special));
    // Now an order has some, and none are announced.
    bench.reload();
    assert_eq!(bench.shard.orders.special.current(order.slot()), Some(special));
}

#[test]
fn a_loaded_shard_counts_the_dates_and_delays_of_open_orders_only() {
    let mut settings = ShardSettings::default();
    settings.venue.delays.entry_ns = 100;
    let mut bench = Bench::with(settings);
    let dated = Terms { tif: Tif::Gtd, tif_date: Timestamp(1_000_000), ..limit(Side::Buy, 1, "1", "9") };
    let (order, _) = bench.submit(dated);
    bench.now += 1_000;
    bench.send(CommandKind::Timer);
    bench.cancel(order);
    bench.now += 1_000;
    assert_eq!(bench.shard.open_orders(Scope::Global), 1);
    bench.send(CommandKind::Timer);
    assert_eq!(bench.shard.open_orders(Scope::Global), 0);
    bench.reload();
    assert_eq!(bench.shard.now(), Timestamp(bench.now));
    let (_, events) = bench.submit(dated);
    assert_eq!(reports(&events).len(), 1, "it is still in transit: {events:?}");
    assert_eq!(bench.shard.open_orders(Scope::Global), 1);
}

#[test]
fn a_loaded_shard_triggers_its_stops() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench.submit(stop(Side::Buy, 1, "11"));
    }
    bench.reload();
    let events = bench.last(SIM_STOCK, "11");
    let triggered = reports(&events).iter().filter(|(what, ..)| *what == ExecType::Triggered).count();
    assert_eq!(triggered, 2);
}

/// Returns how a state is read in which one order was changed.
fn problem(change: impl Fn(&mut Shard, OrderHandle)) -> Option<DecodeProblem> {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(limit(Side::Buy, 1, "1", "9"));
    bench.submit(stop(Side::Buy, 1, "20"));
    let (ended, _) = bench.submit(stop(Side::Buy, 1, "20"));
    bench.cancel(ended);
    let (refused, _) = bench.submit(Terms { security: SecurityId(99), ..limit(Side::Buy, 1, "1", "9") });
    assert_eq!(refused.slot(), 3);
    bench.submit(limit(Side::Buy, 1, "0", "9"));
    change(&mut bench.shard, order);
    bench.load(&bench.snapshot_bytes()).err().map(|error| error.problem)
}

/// The slot of a stop that was cancelled, so that only the check of indices concerns it.
const ENDED: u32 = 2;

#[test]
fn orders_whose_places_do_not_exist_are_not_read() {
    assert_eq!(problem(|_, _| ()), None, "refused orders have no place, which is no problem");
    let wrong = Some(DecodeProblem::Contradiction);
    let positions = |shard: &Shard| u16::try_from(shard.ledger.positions(0).len()).unwrap();
    let exposures = |shard: &Shard| u16::try_from(shard.ledger.exposures(0).len()).unwrap();
    assert_eq!(problem(|shard, _| shard.orders.get_mut(ENDED).position = positions(shard)), wrong);
    assert_eq!(problem(|shard, _| shard.orders.get_mut(ENDED).exposure = exposures(shard)), wrong);
    assert_eq!(problem(|shard, _| shard.orders.get_mut(ENDED).local = 3), wrong);
    assert_eq!(problem(|shard, _| shard.orders.get_mut(ENDED).local = crate::order::NIL), wrong);
    // An order that its venue has refused may be reported as filled.
    let refused_by_venue = |shard: &mut Shard, _| {
        let ended = shard.orders.get_mut(ENDED);
        (ended.base, ended.position) = (Base::Rejected, 99);
        ended.set_at_venue(true);
    };
    assert_eq!(problem(refused_by_venue), wrong);
}

#[test]
fn orders_that_contradict_their_place_in_a_book_are_not_read() {
    let wrong = Some(DecodeProblem::Contradiction);
    assert_eq!(problem(|shard, order| shard.orders.get_mut(order.slot()).terms.side = Side::Sell), wrong);
    assert_eq!(problem(|shard, order| shard.orders.get_mut(order.slot()).base = Base::Canceled), wrong);
    assert_eq!(problem(|shard, order| shard.orders.get_mut(order.slot()).local = 2), wrong);
}

#[test]
#[should_panic(expected = "what reduces a position")]
fn an_inconsistent_shard_is_noticed() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Buy, 1, "1", "9"));
    bench.shard.ledger.position_mut(0, 0).reducing = qty("1");
    bench.shard.assert_consistent();
}
