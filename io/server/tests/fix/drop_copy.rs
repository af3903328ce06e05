//! Drop-copy sessions: copies of the Execution Reports of all interfaces, by account, strategy and
//! session, however often either side is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pitlane_engine::index::index_usize;
use pitlane_engine::rng::Rng;
use pitlane_testkit::fix_client::{FixClient, ReceivedFix, now};
use pitlane_testkit::known_orders::KnownOrders;
use pitlane_testkit::quickfix::QuickFixProcess;
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};

use crate::cluster::{AAPL, fix_client, order, submit};
use crate::kills::{act, must};
use crate::others::ask;
use crate::quickfix::quickfix;
use crate::{CONFIG, begin, command_with, fix, start_with};

const COPIES: &str = r#"
[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "COPY"
purpose = "drop-copy"
ResetOnLogon = "N"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "COPYSESSION"
purpose = "drop-copy"
copy_sessions = ["CLIENT1", "KEEP7"]
ResetOnLogon = "N"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "COPYSTRATEGY"
purpose = "drop-copy"
copy_strategies = ["MARKET_MAKER"]
ResetOnLogon = "N"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "COPYACCOUNT"
purpose = "drop-copy"
copy_accounts = ["GLOBAL"]
ResetOnLogon = "N"

[[strategy]]
name = "MARKET_MAKER"
kind = "market-maker"
securities = ["NVDA"]
start = true
"#;

/// Kills in the short form, and in the full form (`make faults`).
const ROUNDS: u64 = 3;
const ROUNDS_FULL: u64 = 100;
/// Rounds of Test Requests after which nothing can be on its way any more.
const SETTLED_MAX: usize = 1_000;

fn start(data: &TestFolder, settings: &[&str]) -> ServiceProcess {
    start_with(data, &format!("{CONFIG}{COPIES}"), settings)
}

/// Returns the fields of a report without those of the session.
fn content(report: &ReceivedFix) -> BTreeMap<u32, String> {
    let of_session = [8, 9, 10, 34, 43, 49, 52, 56, 115, 116, 122, 797];
    report.0.iter().filter(|(tag, _)| !of_session.contains(tag)).cloned().collect()
}

#[test]
fn reports_of_every_interface_are_copied_to_the_sessions_that_want_them() {
    let data = folder("drop-copy");
    let service = start(&data, &[]);
    let mut clients = ["CLIENT1", "KEEP1", "KEEP7"].map(|name| fix_client(&service, name));
    for (at, client) in clients.iter_mut().enumerate() {
        let (id, replaced, canceled) = (format!("o{at}"), format!("r{at}"), format!("c{at}"));
        client.order(&id, "AAPL", 1, 10, "1.5");
        assert!(client.receive(2));
        let stamp = now();
        client.send("G", &format!("11={replaced}|41={id}|55=AAPL|54=1|38=12|40=2|44=1.25|59=1|60={stamp}|"));
        assert!(client.receive(4));
        client.send("F", &format!("11={canceled}|41={replaced}|55=AAPL|54=1|60={stamp}|"));
        assert!(client.receive(6));
        client.order(&format!("bad{at}"), "AAPL", 1, 10, "1.503");
        assert!(client.receive(7));
    }
    assert_eq!(submit(&service, AAPL, "rest").status, 200);
    assert_eq!(ask(&service, "DELETE", "/rest/execution/order/rest", "", "").status, 200);

    // The clients of the copies connect only now.
    let [mut all, mut by_session, mut by_strategy, mut by_account] =
        ["COPY", "COPYSESSION", "COPYSTRATEGY", "COPYACCOUNT"].map(|name| fix_client(&service, name));
    let end = |copy: &ReceivedFix| copy.get(37) == "rest" && copy.get(39) == "4";
    while !all.received.iter().any(end) {
        assert!(all.next_message().is_some());
    }
    for (at, client) in clients.iter().enumerate() {
        for report in &client.received {
            let found = all.received.iter().find(|copy| copy.get(17) == report.get(17));
            let copy = found.unwrap_or_else(|| panic!("there is no copy of {}", report.text()));
            assert_eq!((copy.get(35), copy.get(797)), ("8", "Y"));
            assert_eq!(copy.get(115), ["CLIENT1", "KEEP1", "KEEP7"][at]);
            assert_eq!(content(copy), content(report), "client {at}");
        }
    }
    let rest: Vec<_> = all.received.iter().filter(|copy| copy.get(37) == "rest").collect();
    assert_eq!(rest.iter().map(|copy| copy.get(39)).collect::<Vec<_>>(), ["A", "0", "6", "4"]);
    assert!(rest.iter().all(|copy| (copy.get(115), copy.get(116)) == ("REST", "local")));

    assert!(by_session.receive(clients[0].received.len() + clients[2].received.len()));
    by_session.settle();
    let roots: BTreeSet<&str> = by_session.received.iter().map(|copy| copy.get(37)).collect();
    assert_eq!(roots, ["bad0", "bad2", "o0", "o2"].into(), "two of the three sessions");

    // The market maker quotes as soon as there are prices.
    assert!(by_strategy.receive(2));
    assert!(by_strategy.received.iter().all(|copy| copy.get(48) == "3" && copy.get(797) == "Y"));
    by_account.settle();
    assert_eq!(by_account.received, [], "no order is in the account GLOBAL");

    // It takes no orders itself.
    all.order("mine", "AAPL", 1, 10, "1.5");
    loop {
        let message = all.next_message().expect("an answer");
        if message.get(35) == "j" {
            break assert_eq!(message.get(380), "6");
        }
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn nothing_is_missing_and_nothing_doubled_whenever_either_side_is_killed() {
    let full = std::env::var("PITLANE_FAULTS").is_ok_and(|part| part == "full");
    let rounds = if full { ROUNDS_FULL } else { ROUNDS };
    let data = folder("drop-copy-kills");
    let settings = ["topology.shards=2"];
    let mut dice = Rng::new(11);
    let (mut trader, mut copy) = (FixClient::new("KEEP1"), FixClient::new("COPY"));
    let (mut orders, mut rest) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let service = start(&data, &settings);
        trader.connect(fix(&service));
        trader.log_on(false);
        // Now and then the client of the copies is away for the whole life of a process.
        let is_away = dice.below(4) == 0;
        if !is_away {
            copy.connect(fix(&service));
            copy.log_on(false);
        }
        let acts = 1 + dice.below(30);
        for at in 0..acts {
            act(&mut trader, &mut dice, &mut orders, round);
            if dice.below(5) == 0 {
                let id = format!("R{round}-{at}");
                assert_eq!(submit(&service, AAPL, &id).status, 200);
                rest.push(id);
            }
            // The client vanishes without a word and returns.
            if !is_away && dice.below(10) == 0 {
                reconnect(&mut copy, &service);
            }
        }
        // Before anything is received, in between, or after all of it.
        let (reported, copied) = (trader.received.len(), copy.received.len());
        trader.receive(reported + index_usize(dice.below(acts + 1)));
        if !is_away {
            copy.receive(copied + dice.index(trader.received.len() - reported + 1));
        }
        service.signal("KILL");
        for client in [&mut trader, &mut copy] {
            while client.next_message().is_some() {}
            client.disconnect();
        }
        service.end();
    }
    let service = start(&data, &["topology.shards=2", "feed.on=false"]);
    for client in [&mut trader, &mut copy] {
        client.connect(fix(&service));
        client.log_on(false);
        client.settle();
    }
    // The trader sends again what no process has read, and its reports and their copies follow.
    for _ in 0..SETTLED_MAX {
        if exec_ids(&trader.received) == exec_ids(of_trader(&copy)) {
            break;
        }
        trader.settle();
        copy.settle();
    }
    check(&service, &trader, &copy, &rest);
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
}

/// Connects again. The service may notice the end of the first connection after the second one, and
/// refuse that one.
fn reconnect(client: &mut FixClient, service: &ServiceProcess) {
    client.disconnect();
    loop {
        client.connect(fix(service));
        if client.try_log_on(false).is_ok_and(|answer| answer.get(35) == "A") {
            return;
        }
    }
}

fn exec_ids<'a>(reports: impl IntoIterator<Item = &'a ReceivedFix>) -> BTreeSet<&'a str> {
    let reports = reports.into_iter().filter(|report| report.get(35) == "8");
    reports.map(|report| report.get(17)).collect()
}

fn of_trader(copy: &FixClient) -> impl Iterator<Item = &ReceivedFix> {
    copy.received.iter().filter(|report| report.get(37).starts_with('L'))
}

/// Compares the copies with what the trader received and with what REST shows.
fn check(service: &ServiceProcess, trader: &FixClient, copy: &FixClient, rest: &[String]) {
    let mut known = KnownOrders::default();
    copy.received.iter().for_each(|message| must(known.take(message)));
    assert_eq!(exec_ids(of_trader(copy)), exec_ids(&trader.received));
    for id in rest {
        let last = known.last.get(id).unwrap_or_else(|| panic!("{id} was never copied"));
        let shown = order(service, id);
        let filled = shown["filledQuantity"].to_string();
        assert_eq!(last.get(14), filled, "{}\n{shown}", last.text());
        let is_open = shown["status"] == "NEW";
        assert_eq!(last.get(39) == "0", is_open, "{}\n{shown}", last.text());
    }
}

/// QuickFIX keeps the numbers of its session in files; it requests what it missed by itself.
#[test]
fn quickfix_receives_every_copy_once_although_either_side_is_killed() {
    let data = folder("drop-copy-quickfix");
    let config = format!("{CONFIG}{COPIES}");
    let settings = ["feed.on=false"];
    let service = start_with(&data, &config, &settings);
    let port = fix(&service).port();
    let store = data.join("copy");
    let mut copy = log_on(port, &store);
    let mut trader = fix_client(&service, "KEEP1");
    trader.order("a", "AAPL", 1, 10, "1.5");
    copy.wait(&["app", "35=8", "|11=a|", "|150=0|", "|797=Y|"]);

    // Copies are made while the client is dead.
    let mut lines = copy.kill();
    trader.order("b", "AAPL", 1, 10, "1.5");
    assert!(trader.receive(4));
    let mut copy = log_on(port, &store);
    copy.wait(&["app", "35=8", "|11=b|", "|150=0|", "|797=Y|"]);

    // The service is killed with reports in flight, and restarts on the same port.
    trader.order("c", "AAPL", 1, 10, "1.5");
    service.signal("KILL");
    service.end();
    trader.disconnect();
    let listen = format!("fix.listen=127.0.0.1:{port}");
    let service = begin(&data, command_with(&data, &config, &[settings[0], &listen]));
    trader.connect(fix(&service));
    trader.log_on(false);
    trader.settle();
    trader.order("d", "AAPL", 1, 10, "1.5");
    copy.wait(&["app", "35=8", "|11=d|", "|150=0|", "|797=Y|"]);
    lines.extend(copy.received.iter().cloned());
    copy.quit();
    trader.settle();
    let part = |line: &str, tag: &str| {
        let at = line.find(tag).map(|at| at + tag.len());
        at.and_then(|at| line[at..].split('|').next()).unwrap_or_default().to_string()
    };
    // The same number may arrive twice, with PossDupFlag; the same report has one number.
    let copies = lines.iter().filter(|line| line.starts_with("app 8=") && line.contains("|797=Y|"));
    let numbers: BTreeSet<_> = copies.map(|line| (part(line, "|17="), part(line, "|34="))).collect();
    let ids: BTreeSet<_> = numbers.iter().map(|(exec_id, _)| exec_id.as_str()).collect();
    assert_eq!(ids.len(), numbers.len(), "a report has two numbers: {numbers:?}");
    assert!(exec_ids(&trader.received).is_subset(&ids), "{numbers:?}");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

fn log_on(port: u16, store: &Path) -> QuickFixProcess {
    let mut copy = quickfix(port, "COPY", store, false);
    copy.wait(&["logon"]);
    copy
}
