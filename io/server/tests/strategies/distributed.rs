//! Strategies in their own processes: the real binary twice, over each link: a real broker, a Unix
//! socket, and TCP.

use std::fs;

use pitlane_testkit::nats_server::{NatsBroker, StrategyProcess, serve, serve_over};
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};
use pitlane_testkit::strategy_link::TestLink;
use serde_json::Value;

use super::data::{MAKER, MOMENTUM, file, rows};
use super::embedded::{get, open_orders, phases_until, put, strategy, subscriber, until};
use super::replay::{simulated, traded};
use super::simulation::{report, simulate};

const PHASE: &str = "/rest/ext/strategy/MARKET_MAKER/phase";

/// Creates the link of a test.
type MakeLink = (&'static str, fn(&TestFolder) -> TestLink);

const NATS: MakeLink = ("nats", TestLink::nats);
const UNIX: MakeLink = ("unix", TestLink::unix);
const TCP: MakeLink = ("tcp", TestLink::tcp);

fn folder_of(test: &str, link: MakeLink) -> TestFolder {
    folder(&format!("{test}-{}", link.0))
}

/// Runs each test over several links.
macro_rules! over_links {
    ($($test:ident: $($name:ident = $link:expr),+;)+) => {
        $(mod $test {
            $(#[test]
            fn $name() {
                super::$test($link);
            })+
        })+
    };
}

over_links! {
    a_remote_strategy_acts_as_in_simulation: over_nats = super::NATS, over_a_unix_socket = super::UNIX;
    the_server_changes_the_phase_of_a_remote_strategy: over_nats = super::NATS, over_a_unix_socket = super::UNIX;
    a_strategy_whose_process_dies_is_stopped_with_the_reason_and_resumes_when_it_is_back: over_nats = super::NATS, over_a_unix_socket = super::UNIX;
    a_strategy_whose_process_was_silent_stays_stopped_and_says_so_until_it_is_started: over_nats = super::NATS, over_a_unix_socket = super::UNIX;
    a_strategy_whose_process_was_silent_is_started_again_where_the_settings_say_so: over_nats = super::NATS, over_a_unix_socket = super::UNIX;
    a_strategy_outlives_its_server_and_its_connection: over_nats = super::NATS, over_tcp = super::TCP;
}

pub(crate) fn is_present(service: &ServiceProcess, name: &str) -> bool {
    let ready = get(service, "/health/ready");
    let rows = ready["broker"]["strategies"].as_array().unwrap();
    rows.iter().any(|row| row["name"] == name && row["present"] == true)
}

pub(crate) fn is_connected(service: &ServiceProcess) -> bool {
    get(service, "/health/ready")["broker"]["connected"] == true
}

fn a_remote_strategy_acts_as_in_simulation(link: MakeLink) {
    let place = folder_of("distributed-same", link);
    let files = [("aapl.csv", file(&rows("AAPL", 1_500, 5)))];
    let settings = MOMENTUM.replace("[\"AAPL\", 2]", "[\"AAPL\"]");
    let (code, text, log_text) = simulate(&place, &files, &settings, &[]);
    assert_eq!(code, Some(0), "{text}{log_text}");
    let expected = simulated(&report(&place));
    assert!(expected.len() > 20, "{text}");

    let link = (link.1)(&place);
    let data = format!("replay.data={}", place.join("aapl.csv").display());
    let live = ["replay.speed=0", &data, "risk.strategies.max_orders_per_s=0", "topology.shards=2"];
    let service = serve_over(&place, &link, &settings, &live);
    let process = StrategyProcess::over(&place, &link, "MOMENTUM");
    let all = || get(&service, "/rest/transaction/daily?strategy=MOMENTUM");
    until(|| all().as_array().unwrap().len() >= expected.len());
    assert_eq!(traded(&all()), expected);
    assert_eq!(strategy(&service, "MOMENTUM")["phase"], "RUNNING");
    assert_eq!(process.end(), Some(0));
    until(|| strategy(&service, "MOMENTUM")["phase"] == "EXIT");
}

fn the_server_changes_the_phase_of_a_remote_strategy(link: MakeLink) {
    let place = folder_of("distributed-led", link);
    let link = (link.1)(&place);
    let service = serve_over(&place, &link, MAKER, &["feed.rate=2000"]);
    let process = StrategyProcess::over(&place, &link, "MARKET_MAKER");
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    assert!(is_present(&service, "MARKET_MAKER") && is_connected(&service));
    assert_eq!(service.metric("pitlane_broker_connected"), 1);
    let mut client = subscriber(&service, "lifecycle.MARKET_MAKER");
    assert_eq!(put(&service, PHASE, r#"{"phase":"STOP"}"#).0, 200);
    assert_eq!(phases_until(&mut client, "STOP"), ["STOP"]);
    until(|| open_orders(&service, "MARKET_MAKER") == 0);
    assert_eq!(put(&service, PHASE, r#"{"phase":"RUNNING"}"#).0, 200);
    assert_eq!(phases_until(&mut client, "RUNNING"), ["INIT", "PREFEED", "START", "RUNNING"]);
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    // At an orderly stop it cancels its quotes and disconnects.
    assert_eq!(process.end(), Some(0));
    until(|| open_orders(&service, "MARKET_MAKER") == 0);
    until(|| !is_present(&service, "MARKET_MAKER"));
    assert_eq!(strategy(&service, "MARKET_MAKER")["phase"], "EXIT");
    // A strategy that the server does not know gets an error.
    assert_eq!(StrategyProcess::over(&place, &link, "PAIRS").wait(), Some(1));
    assert!(fs::read_to_string(place.join("PAIRS.log")).unwrap().contains("no such [[strategy]]"));
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

fn a_strategy_whose_process_dies_is_stopped_with_the_reason_and_resumes_when_it_is_back(link: MakeLink) {
    let place = folder_of("distributed-death", link);
    let link = (link.1)(&place);
    let service = serve_over(&place, &link, MAKER, &["feed.rate=2000"]);
    let process = StrategyProcess::over(&place, &link, "MARKET_MAKER");
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    process.kill();
    until(|| strategy(&service, "MARKET_MAKER")["phase"] == "STOP");
    until(|| strategy(&service, "MARKET_MAKER")["reason"].as_str().is_some_and(|why| why.contains("silent")));
    until(|| open_orders(&service, "MARKET_MAKER") == 0);
    let _process = StrategyProcess::over(&place, &link, "MARKET_MAKER");
    until(|| strategy(&service, "MARKET_MAKER")["phase"] == "RUNNING");
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
}

/// Returns a market maker whose process was silent until its strategy was stopped, and is back.
fn silenced(place: &TestFolder, link: &TestLink, settings: &[&str]) -> (ServiceProcess, StrategyProcess) {
    let settings: Vec<&str> = ["feed.rate=2000"].iter().chain(settings).copied().collect();
    let service = serve_over(place, link, MAKER, &settings);
    let process = StrategyProcess::over(place, link, "MARKET_MAKER");
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    process.signal("STOP");
    until(|| strategy(&service, "MARKET_MAKER")["phase"] == "STOP");
    until(|| open_orders(&service, "MARKET_MAKER") == 0);
    process.signal("CONT");
    until(|| is_present(&service, "MARKET_MAKER"));
    (service, process)
}

fn a_strategy_whose_process_was_silent_stays_stopped_and_says_so_until_it_is_started(link: MakeLink) {
    let place = folder_of("distributed-back", link);
    let link = (link.1)(&place);
    let (service, _process) = silenced(&place, &link, &[]);
    let why = || strategy(&service, "MARKET_MAKER")["reason"].as_str().unwrap_or_default().to_string();
    until(|| why().contains("the process is back, and the strategy stays stopped until it is started"));
    assert_eq!(strategy(&service, "MARKET_MAKER")["phase"], "STOP");
    assert_eq!(open_orders(&service, "MARKET_MAKER"), 0);
    assert_eq!(put(&service, PHASE, r#"{"phase":"RUNNING"}"#).0, 200);
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
}

fn a_strategy_whose_process_was_silent_is_started_again_where_the_settings_say_so(link: MakeLink) {
    let place = folder_of("distributed-again", link);
    let link = (link.1)(&place);
    let (service, _process) = silenced(&place, &link, &["remote_strategies.on_return=start"]);
    until(|| strategy(&service, "MARKET_MAKER")["phase"] == "RUNNING");
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
}

fn a_strategy_outlives_its_server_and_its_connection(link: MakeLink) {
    let place = folder_of("distributed-outlives", link);
    let mut link = (link.1)(&place);
    let settings = ["feed.rate=2000", "risk.strategies.max_orders_per_s=0"];
    let service = serve_over(&place, &link, MAKER, &settings);
    let _process = StrategyProcess::over(&place, &link, "MARKET_MAKER");
    let trades = |service: &ServiceProcess| {
        get(service, "/rest/transaction/daily?strategy=MARKET_MAKER").as_array().unwrap().len()
    };
    until(|| trades(&service) > 3);
    service.signal("KILL");
    service.end();
    let service = serve_over(&place, &link, MAKER, &settings);
    until(|| is_present(&service, "MARKET_MAKER"));
    let before = trades(&service);
    until(|| trades(&service) > before + 3);
    assert_eq!(strategy(&service, "MARKET_MAKER")["phase"], "RUNNING");

    let before = trades(&service);
    link.interrupt();
    until(|| is_connected(&service) && is_present(&service, "MARKET_MAKER"));
    until(|| trades(&service) > before + 3);
    assert_eq!(strategy(&service, "MARKET_MAKER")["phase"], "RUNNING");
    // It is one process all the time: it started once.
    let text = fs::read_to_string(place.join("told/MARKET_MAKER.told")).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("L ")).count(), 1);
}

/// The loss of a broker is reported to the operator and to clients.
#[test]
fn a_lost_broker_is_reported() {
    let place = folder("distributed-broker");
    let mut broker = NatsBroker::start(&place);
    let service = serve(&place, &broker, MAKER, &["feed.rate=2000"]);
    until(|| is_connected(&service));
    let mut client = subscriber(&service, "session.NATS");
    broker.kill();
    let event: Value =
        serde_json::from_str(pitlane_testkit::stomp_client::body(&client.receive_until("MESSAGE"))).unwrap();
    assert_eq!(event["state"], "DISCONNECTED", "{event}");
    until(|| !is_connected(&service));
    assert_eq!(get(&service, "/health/ready")["broker"]["reason"], "broker-lost");
    assert_eq!(service.metric("pitlane_broker_connected"), 0);
    broker.restart();
    until(|| is_connected(&service));
}
