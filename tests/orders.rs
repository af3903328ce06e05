//! The life cycle of an order at an external venue: each transition as a dialogue in
//! `data/orders.txt`, and every pair of state and event compared with the twin.

use pitlane_engine::command::{CommandKind, ExecRef, Trade, VenueReport};
use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, RequestKind};
use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::reason::Reason;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::terms::{Changes, OrderKind, Side, Terms};
use pitlane_tests::shard_and_twin::ShardAndTwin;
use pitlane_tests::shard_harness::{ShardHarness, limit};
use pitlane_tests::test_market;
use pitlane_tests::workload::{Action, ActionGenerator};

#[test]
fn every_transition_of_an_order_holds() {
    let mut failures = Vec::new();
    for dialogue in include_str!("data/orders.txt").split("\n# ").skip(1) {
        let (rule, lines) = dialogue.split_once('\n').unwrap_or((dialogue, ""));
        if lines.contains('>') {
            failures.extend(check(rule, lines));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Plays one dialogue, and returns the first difference.
fn check(rule: &str, lines: &str) -> Option<String> {
    let mut harness = ShardHarness::new(ShardSettings::default());
    let mut order = OrderHandle::NONE;
    let mut command_line = String::new();
    let mut output: Vec<String> = Vec::new();
    for line in lines.lines().chain(["> end"]) {
        if let Some(expected) = line.strip_prefix("< ") {
            if output.first().is_none_or(|line| line != expected) {
                return Some(format!(
                    "{rule}\n  after `{command_line}` expected `{expected}`\n  got {output:?}"
                ));
            }
            output.remove(0);
        } else if let Some(command) = line.strip_prefix("> ") {
            if !output.is_empty() {
                return Some(format!("{rule}\n  after `{command_line}` not expected: {output:?}"));
            }
            command_line = command.to_string();
            if command != "end" {
                output = perform(&mut harness, &mut order, command);
            }
        }
    }
    None
}

fn perform(harness: &mut ShardHarness, order: &mut OrderHandle, command: &str) -> Vec<String> {
    let fields: Vec<&str> = command.split(' ').collect();
    let exec = |text: &str| ExecRef(text.trim_start_matches('e').parse().expect("a number"));
    let price = |text: &str| test_market::price(text.trim_start_matches('@'));
    let events = match fields[..] {
        ["submit", qty, at] => {
            let (handle, events) = harness.submit(terms(qty, at));
            *order = handle;
            events
        }
        ["cancel"] => harness.cancel(*order),
        ["modify", ref changes @ ..] => harness.modify(*order, changes_of(changes)),
        ["lost"] => harness
            .send_command(CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected: false }),
        ["connected"] => harness
            .send_command(CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected: true }),
        ["trade", at] => {
            let trade = Trade { price: price(at), size: test_market::qty("1"), at: harness.now };
            harness.send_command(CommandKind::Trade { security: test_market::ABROAD[0], trade })
        }
        ["fill", e, qty, at] => {
            let report = VenueReport::Filled { exec: exec(e), qty: test_market::qty(qty), price: price(at) };
            harness.report(*order, report)
        }
        [keyword] => harness.report(*order, report_of(keyword)),
        _ => panic!("not a command: {command}"),
    };
    render(&events)
}

fn terms(qty: &str, at: &str) -> Terms {
    let security = test_market::ABROAD[0];
    match at.strip_prefix("stop=") {
        Some(stop) => Terms {
            kind: OrderKind::Stop,
            limit_given: false,
            limit: pitlane_engine::number::Price::ZERO,
            stop: test_market::price(stop),
            stop_given: true,
            ..limit(security, Side::Buy, qty, "0")
        },
        None => limit(security, Side::Buy, qty, at.trim_start_matches('@')),
    }
}

fn changes_of(fields: &[&str]) -> Changes {
    fields.iter().fold(Changes::default(), |changes, keyword| match keyword.split_once('=') {
        Some(("qty", qty)) => changes.with_qty(test_market::qty(qty)),
        Some(("limit", price)) => changes.with_limit(test_market::price(price)),
        Some(("stop", price)) => changes.with_stop(test_market::price(price)),
        _ => panic!("not a change: {keyword}"),
    })
}

fn report_of(keyword: &str) -> VenueReport {
    match keyword {
        "accepted" => VenueReport::Accepted,
        "rejected" => VenueReport::Rejected(Reason::VenueRejected),
        "confirmed" => VenueReport::Canceled(Reason::Requested),
        "canceled" => VenueReport::Canceled(Reason::VenueCancelled),
        "expired" => VenueReport::Expired(Reason::ExpiredDay),
        "cancel-refused" => VenueReport::CancelRefused(Reason::VenueRejected),
        "replaced" => VenueReport::Replaced,
        "replace-refused" => VenueReport::ReplaceRefused(Reason::VenueRejected),
        "reconciled" => VenueReport::Reconciled,
        _ => panic!("not a report: {keyword}"),
    }
}

/// Renders events, one line each: reports and rejections as they came, then bookings, alerts,
/// instructions.
fn render(events: &[Event]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = Vec::new();
    for event in events {
        match &event.body {
            EventKind::Order(order) if order.what == ExecType::Replaced => {}
            EventKind::Order(_) | EventKind::Status(_) => {
                lines.push(line(&event.report().expect("an order event")))
            }
            EventKind::Refused(r) => {
                let request = match r.request {
                    RequestKind::Cancel => "cancel",
                    RequestKind::Replace => "replace",
                };
                lines.push(format!("refused {request} {} {:?} {}", r.request_id, r.status, r.reason.code()));
            }
            EventKind::Booked(b) => rest.push((0, format!("booked {}@{}", b.qty, b.price))),
            EventKind::Alert { alert, .. } => rest.push((1, format!("alert {alert:?}"))),
            EventKind::ToVenue(i) => rest.push((2, format!("venue {:?} {}", i.request, i.id))),
            EventKind::Forgotten { .. }
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_)
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. } => {}
        }
    }
    rest.sort_by_key(|(rank, _)| *rank);
    lines.extend(rest.into_iter().map(|(_, line)| line));
    lines
}

fn line(r: &OrderReport) -> String {
    let mut line = format!("{:?} {:?} {}", r.what, r.status, r.id);
    if !r.orig_id.is_none() {
        line += &format!("<{}", r.orig_id);
    }
    line += &format!(" {}/{}", r.cum_qty, r.qty);
    if r.what == ExecType::Filled {
        line += &format!(" {}@{}", r.last_qty, r.last_price);
    }
    if r.reason != Reason::None {
        line += &format!(" {}", r.reason.code());
    }
    line
}

/// Events of the table below that bring an order into each state.
const STATES: [(&str, &[&str]); 13] = [
    ("pending new", &[]),
    ("new", &["accepted"]),
    ("partially filled", &["accepted", "fill 1 4"]),
    ("pending cancel before the acknowledgement", &["cancel"]),
    ("pending cancel", &["accepted", "cancel"]),
    ("pending cancel, partially filled", &["accepted", "fill 1 4", "cancel"]),
    ("pending replace", &["accepted", "modify"]),
    ("pending replace, partially filled", &["accepted", "fill 1 4", "modify"]),
    ("pending replace with a cancel behind it", &["accepted", "fill 1 4", "modify", "cancel"]),
    ("filled", &["accepted", "fill 1 4", "fill 2 6"]),
    ("canceled", &["accepted", "fill 1 4", "canceled"]),
    ("rejected", &["rejected"]),
    ("expired", &["accepted", "expired"]),
];

const EVENTS: [&str; 20] = [
    "accepted",
    "rejected",
    "fill 9 3",
    "fill 9 6",
    "fill 9 10",
    "fill 9 50",
    "fill 1 4",
    "canceled",
    "expired",
    "cancel-refused",
    "replaced",
    "replace-refused",
    "bust 1",
    "correct 1",
    "reconciled",
    "cancel",
    "modify",
    "modify-less",
    "lost",
    "closed",
];

#[test]
fn every_pair_of_state_and_event_agrees_with_the_twin() {
    let mut failures = Vec::new();
    for (state, way) in STATES {
        for first in EVENTS {
            // One more step shows what the first event left behind.
            for second in EVENTS {
                if let Err(problem) = walk(way, &[first, second]) {
                    failures.push(format!("{state}, then {first}, then {second}: {problem}"));
                    break;
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} pairs differ\n{}",
        failures.len(),
        failures[..failures.len().min(400)].join("\n")
    );
}

fn walk(way: &[&str], events: &[&str]) -> Result<(), String> {
    let mut pair = ShardAndTwin::new(test_market::reference(), ShardSettings::default());
    for action in ActionGenerator::opening() {
        pair.step(&action)?;
    }
    let terms = limit(test_market::ABROAD[0], Side::Sell, "10", "100");
    pair.step(&Action::Plain(CommandKind::Submit { id: IntId::numbered(b'o', 1), terms }))?;
    for (count, event) in way.iter().chain(events).enumerate() {
        pair.step(&deed_of(event, IntId::numbered(b'r', count as u64)))?;
    }
    Ok(())
}

fn deed_of(event: &str, id: IntId) -> Action {
    let fields: Vec<&str> = event.split(' ').collect();
    let exec = |text: &str| ExecRef(text.parse().expect("a number"));
    let (qty, price) = (test_market::qty("2"), test_market::price("101"));
    let report = match fields[..] {
        ["cancel"] => return Action::Cancel { nth: 0, id },
        ["modify"] => {
            return Action::Modify {
                nth: 0,
                id,
                changes: Changes::default().with_qty(test_market::qty("8")),
            };
        }
        ["modify-less"] => {
            return Action::Modify {
                nth: 0,
                id,
                changes: Changes::default().with_qty(test_market::qty("3")),
            };
        }
        ["lost"] => {
            return Action::Plain(CommandKind::Adapter {
                adapter: test_market::OUTSIDE_ADAPTER,
                connected: false,
            });
        }
        ["closed"] => {
            let session = pitlane_engine::command::TradingSession::Closed;
            return Action::Plain(CommandKind::Session { exchange: test_market::OUTSIDE, session });
        }
        ["fill", e, qty] => VenueReport::Filled {
            exec: exec(e),
            qty: test_market::qty(qty),
            price: test_market::price("100"),
        },
        ["bust", e] => VenueReport::Busted { exec: exec(e) },
        ["correct", e] => VenueReport::Corrected { exec: exec(e), qty, price },
        [keyword] => report_of(keyword),
        _ => panic!("not an event: {event}"),
    };
    Action::Report { nth: 0, report }
}
