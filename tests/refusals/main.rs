//! Every reason that a command can be rejected with is produced by a real shard, and no other
//! reason comes with it.

mod commands;
mod endings;
mod entry;
mod trading;

use std::collections::BTreeMap;

use pitlane_engine::command::CommandKind;
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock, Ticket};
use pitlane_engine::id::{IntId, PortId};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::pages::LargePages;
use pitlane_engine::reason::Reason;
use pitlane_engine::settings::Delays;
use pitlane_engine::terms::{Terms, Tif};
use pitlane_tests::shard_harness::reasons;
use pitlane_tests::test_market;

use self::commands::{RefusalCase, good, rejecting, submit};
use self::endings::{BOOKKEEPER, ENDS};
use self::entry::{FORM, IDENTITY, LIMITS, REFERENCE};
use self::trading::{RISK, VENUE};

const TABLES: [&[RefusalCase]; 8] = [REFERENCE, FORM, LIMITS, IDENTITY, RISK, VENUE, ENDS, BOOKKEEPER];

/// Reasons that no command can produce here, and where they come from.
const ELSEWHERE: &[(Reason, &str)] = &[
    (Reason::None, "nothing to explain"),
    (Reason::DuplicateId, "the desk's, see the test below"),
    (Reason::LaneFull, "the desk's, see the test below"),
    (Reason::Adjusted, "a reset finds nothing wrong unless we are wrong"),
    (Reason::Halted, "a word for gateways: the shard lets orders collect"),
    (Reason::StorageFailed, "the worker's, when the journal takes nothing more; see its tests"),
    (Reason::UnknownPosition, "the REST interface's: it finds positions by id"),
    (
        Reason::BrokerLost,
        "of a strategy in a process of its own, whose server is away; see the tests of strategies",
    ),
    (
        Reason::OwnerAway,
        "of a server of a cluster, when another owns the security; see the tests of clusters",
    ),
    (Reason::MissedFill, "no refusal: a fill that was missed, counted from the order status of the venue"),
    (Reason::ReportLost, "no refusal: of a server of a cluster, when the owner no longer has what it sent"),
    (Reason::VenueRate, "of an adapter; see the tests of venues"),
];

#[test]
fn each_rejection_has_its_own_reason() {
    let mut failures = Vec::new();
    for (reason, story, case) in TABLES.into_iter().flatten() {
        let outcome = std::panic::catch_unwind(case).map(|events| (reasons(&events), events));
        match outcome {
            Ok((given, _)) if given == [*reason] => {}
            // A stop triggers, then finds no liquidity; a late fill is reported and alerted alike.
            Ok((given, events)) => failures.push(format!("{reason:?}, {story}: {given:?} {events:#?}")),
            Err(_) => failures.push(format!("{reason:?}, {story}: panic")),
        }
    }
    assert!(failures.is_empty(), "{} cases differ\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_reason_is_covered_or_produced_elsewhere() {
    let mut covered: BTreeMap<Reason, usize> = BTreeMap::new();
    for (reason, _, _) in TABLES.into_iter().flatten() {
        *covered.entry(*reason).or_default() += 1;
    }
    let missing: Vec<&Reason> = Reason::ALL
        .iter()
        .filter(|reason| {
            !covered.contains_key(reason) && !ELSEWHERE.iter().any(|(other, _)| other == *reason)
        })
        .collect();
    assert!(missing.is_empty(), "no test gives {missing:?}");
    let both: Vec<&Reason> =
        ELSEWHERE.iter().map(|(reason, _)| reason).filter(|reason| covered.contains_key(reason)).collect();
    assert!(both.is_empty(), "covered after all: {both:?}");
}

/// Returns a desk before one shard that is never polled, with lanes of this depth.
fn desk(depth: usize) -> (Desk, PortEnd, Ticket) {
    let (mut ports, _) = mesh(&[PortClass::Client], 1, Depths { commands: depth, events: depth });
    let settings = DeskSettings {
        port: PortId(0),
        shards: 1,
        orders_max: 8,
        ids_max: 16,
        finished_max: 8,
        prefix: b'd',
        seed: 1,
        pages: LargePages::NONE,
    };
    let desk = Desk::new(settings, IdBlock { next: 1, end: 100 });
    let id = IntId::parse(b"mine").expect("a good id");
    (desk, ports.remove(0), Ticket { source: test_market::source(0, 1), token: 1, id, ..Ticket::default() })
}

#[test]
fn the_desk_declines_a_duplicate_id() {
    let (mut desk, mut port, ticket) = desk(4);
    assert!(desk.submit(&mut port, ticket, good()).is_ok());
    let declined = desk.submit(&mut port, ticket, good()).map_err(|declined| declined.reason);
    assert_eq!(declined, Err(Reason::DuplicateId));
    let other = Ticket { source: test_market::source(0, 2), ..ticket };
    assert!(desk.submit(&mut port, other, good()).is_ok(), "ids are unique within their source");
}

#[test]
fn the_desk_declines_when_the_lane_is_full_and_keeps_nothing() {
    let (mut desk, mut port, ticket) = desk(1);
    let next = Ticket { id: IntId::NONE, ..ticket };
    assert!(desk.submit(&mut port, ticket, good()).is_ok());
    for _ in 0..3 {
        let declined = desk.submit(&mut port, next, good()).map_err(|declined| declined.reason);
        assert_eq!(declined, Err(Reason::LaneFull));
    }
    assert_eq!(desk.len(), 1);
}

/// The date of an order may pass while the order is on its way to the venue.
#[test]
fn a_gtd_order_in_flight_ends_at_its_date() {
    let mut harness = rejecting(|settings| settings.venue.delays.entry_ns = 10_000_000);
    let tif_date = harness.now.plus(5_000_000);
    let (order, _) = harness.submit(Terms { tif: Tif::Gtd, tif_date, ..good() });
    let mut events = Vec::new();
    while let Some(deadline) = harness.shard.deadline() {
        harness.now = deadline;
        events.extend(harness.send_command(CommandKind::Timer));
    }
    assert!(reasons(&events).contains(&Reason::ExpiredGtd), "{events:?}");
    assert_eq!(reasons(&harness.cancel(order)), [Reason::OrderFinished]);
}

#[test]
fn a_good_order_is_accepted() {
    let events = submit(good());
    assert_eq!(reasons(&events), []);
    assert_eq!(Delays::default().entry_ns, 0, "the venue answers at once");
}
