//! State on which several servers must agree although one of them was away: switches and limits,
//! order ids, which start of a server is the newest, and the status of a FIX client's orders. The
//! real binary twice, as in `cluster`.

use std::thread;

use pitlane_testkit::http_client::Response;
use pitlane_testkit::service::ServiceProcess;
use serde_json::{Value, json};

use crate::cluster::{AAPL, ClusterPair, LIMIT, MSFT, OPEN, fix_client, get, order, submit, until};
use crate::fix;
use crate::others::ask;

const SWITCH: &str = "/rest/ext/kill-switch";
const RISK: &str = "/rest/ext/risk";

fn ready(service: &ServiceProcess) -> Value {
    get(service, "/health/ready").json()
}

/// Returns where the kill switch is on as a server sees it, and which shards have not confirmed it.
fn switch(service: &ServiceProcess) -> (String, Value) {
    let ready = ready(service);
    (ready["killSwitchState"].as_str().expect("a state").to_string(), ready["killSwitchUnconfirmed"].clone())
}

fn is(service: &ServiceProcess, state: &str) -> bool {
    switch(service) == (state.to_string(), json!([]))
}

/// Pauses a server and waits until the other one has detected it.
fn pause(pair: &ClusterPair, at: usize) {
    pair.at(at).pause();
    until(|| pair.state(1 - at) == "DOWN");
}

fn resume(pair: &ClusterPair, at: usize) {
    pair.at(at).signal("CONT");
    pair.join();
}

#[test]
fn an_owner_that_was_paused_comes_back_with_the_kill_switch_and_its_orders_cancelled() {
    let pair = ClusterPair::start("paused");
    let [a, b] = [pair.at(0), pair.at(1)];
    for (security, id) in [(MSFT, "a-open"), (AAPL, "b-open")] {
        assert_eq!(submit(a, security, id).status, 200);
    }
    pause(&pair, 1);
    let answer = ask(a, "POST", SWITCH, "", "");
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.json(), json!({ "confirmed": "SOME", "unconfirmedShards": [1] }));
    assert_eq!(switch(a), ("SOME".to_string(), json!([1])));
    let risk = get(a, RISK).json();
    assert_eq!((&risk["killSwitch"], &risk["killSwitchState"]), (&json!(true), &json!("SOME")));
    assert_eq!(risk["unconfirmed"], json!([{ "directive": "KILL_SWITCH", "shards": [1] }]));
    resume(&pair, 1);
    until(|| [a, b].into_iter().all(|service| is(service, "ALL")));
    until(|| [a, b].into_iter().all(|service| order(service, "b-open")["status"] == "CANCELED"));
    assert_eq!(order(a, "a-open")["status"], "CANCELED");
    assert_eq!((submit(b, AAPL, "").code(), submit(a, AAPL, "").code()), both("kill-switch"));
    // It is turned off at the other server while this one is away.
    pause(&pair, 0);
    let answer = ask(b, "DELETE", SWITCH, "", "");
    assert_eq!((answer.status, &answer.json()["unconfirmedShards"]), (202, &json!([0])));
    resume(&pair, 0);
    until(|| [a, b].into_iter().all(|service| is(service, "NONE")));
    assert_eq!((submit(b, MSFT, "").status, submit(a, AAPL, "").status), (200, 200));
    let whole = ask(a, "POST", SWITCH, "", "");
    let all = json!({ "confirmed": "ALL", "unconfirmedShards": [] });
    assert_eq!((whole.status, whole.json()), (200, all), "when all are here it is done at once");
}

fn both(code: &str) -> (String, String) {
    (code.to_string(), code.to_string())
}

#[test]
fn a_directive_survives_its_server_and_reaches_an_owner_that_was_down() {
    let mut pair = ClusterPair::start("down");
    assert_eq!(submit(pair.at(1), AAPL, "b-open").status, 200);
    pair.kill(1);
    until(|| pair.state(0) == "DOWN");
    let a = pair.at(0);
    let limits = r#"{"strategyName":"SERVER","maxOrderQty":3}"#;
    assert_eq!(ask(a, "PUT", RISK, "", limits).status, 202);
    assert_eq!(get(a, RISK).json()["unconfirmed"][0]["directive"], "LIMITS");
    assert_eq!(ask(a, "POST", SWITCH, "", "").status, 202);
    // Only the journal still has the directive.
    pair.kill(0);
    pair.spawn(1);
    assert_eq!(switch(pair.at(1)).0, "NONE", "it cannot know yet");
    pair.spawn(0);
    pair.join();
    let [a, b] = [pair.at(0), pair.at(1)];
    until(|| [a, b].into_iter().all(|service| is(service, "ALL")));
    until(|| order(a, "b-open")["status"] == "CANCELED");
    until(|| get(a, RISK).json()["unconfirmed"] == json!([]));
    assert_eq!(ask(b, "DELETE", SWITCH, "", "").status, 200);
    assert_eq!(submit(b, AAPL, "").code(), "max-order-qty", "the limit has come as well");
}

#[test]
fn of_two_directives_from_separated_servers_the_later_one_applies() {
    let pair = ClusterPair::start("apart");
    pause(&pair, 1);
    assert_eq!(ask(pair.at(0), "POST", SWITCH, "", "").status, 202);
    // Now in the other direction: this server has received it or not; in either case it is
    // overruled.
    pair.at(0).pause();
    pair.at(1).signal("CONT");
    until(|| pair.state(1) == "DOWN");
    assert_eq!(ask(pair.at(1), "DELETE", SWITCH, "", "").status, 202);
    resume(&pair, 0);
    until(|| [0, 1].into_iter().all(|at| is(pair.at(at), "NONE")));
    for at in [0, 1] {
        assert_eq!((submit(pair.at(at), MSFT, "").status, submit(pair.at(at), AAPL, "").status), (200, 200));
    }
}

#[test]
fn directives_of_a_server_whose_clock_was_set_back_apply_after_its_restart() {
    let mut pair = ClusterPair::start("set-back");
    assert_eq!(submit(pair.at(0), AAPL, "before").status, 200);
    pair.kill(1);
    until(|| pair.state(0) == "DOWN");
    pair.fault = Some("clock:1:-7200");
    pair.spawn(1);
    pair.join();
    assert_eq!(order(pair.at(1), "before")["status"], "NEW");
    assert_eq!(ask(pair.at(0), "DELETE", &format!("{OPEN}/before"), "", "").status, 200);
}

/// Returns all orders of an id, as a server sees them.
fn orders(service: &ServiceProcess, id: &str) -> Vec<Value> {
    get(service, &format!("{OPEN}/{id}")).json().as_array().cloned().unwrap_or_default()
}

#[test]
fn an_id_is_used_once_at_whichever_server_it_is_sent() {
    let pair = ClusterPair::start("ids");
    let [a, b] = [pair.at(0), pair.at(1)];
    for (security, id) in [(AAPL, "far"), (MSFT, "near")] {
        assert_eq!(submit(a, security, id).status, 200);
        until(|| get(b, &format!("{OPEN}/{id}")).status == 200);
        let again = submit(b, security, id);
        assert_eq!((again.status, &again.json()["intId"]), (200, &json!(id)), "the same is answered alike");
        let other = if security == AAPL { MSFT } else { AAPL };
        assert_eq!(submit(b, other, id).code(), "duplicate-order-id", "and anything else is refused");
        assert_eq!([a, b].map(|service| orders(service, id).len()), [1, 1]);
    }
    // At both servers at once: the owner of the security decides.
    for round in 0..30 {
        let (security, id) = ([AAPL, MSFT][round % 2], format!("race-{round}"));
        let answers: Vec<Response> = thread::scope(|scope| {
            let ask_both = [a, b].map(|service| scope.spawn(|| submit(service, security, &id)));
            ask_both.map(|asked| asked.join().expect("an answer")).into()
        });
        assert!(answers.iter().any(|answer| answer.status == 200), "{answers:?}");
        let is_right = |answer: &Response| answer.status == 200 || answer.code() == "duplicate-order-id";
        assert!(answers.iter().all(is_right), "{answers:?}");
        until(|| [a, b].into_iter().all(|service| !orders(service, &id).is_empty()));
        assert_eq!([a, b].map(|service| orders(service, &id).len()), [1, 1]);
        assert_eq!(ask(b, "DELETE", &format!("{OPEN}/{id}"), "", "").status, 200);
    }
}

#[test]
fn orders_that_share_an_id_are_cancelled_by_their_handles() {
    let pair = ClusterPair::start("handles");
    let [a, b] = [pair.at(0), pair.at(1)];
    // Each FIX session has separate ids.
    for service in [a, b] {
        let mut client = fix_client(service, "KEEP1");
        client.order("same", "AAPL", 1, 10, "1.5");
        assert!(client.receive(2));
    }
    until(|| orders(a, "same").len() == 2 && orders(b, "same").len() == 2);
    let path = format!("{OPEN}/same");
    let answer = ask(a, "DELETE", &path, "", "");
    assert_eq!(answer.code(), "ambiguous-order-id");
    let candidates = answer.json()["candidates"].as_array().cloned().expect("a list");
    assert_eq!(candidates.len(), 2);
    for candidate in candidates {
        let handle = candidate["handle"].as_str().expect("a handle");
        assert_eq!(ask(a, "DELETE", &format!("{path}?handle={handle}"), "", "").status, 200);
    }
    until(|| orders(b, "same").iter().all(|order| order["status"] == "CANCELED"));
    assert_eq!(ask(a, "DELETE", &format!("{path}?handle=7"), "", "").code(), "unknown-order");
    assert_eq!(ask(a, "DELETE", &format!("{path}?handle=x"), "", "").code(), "bad-query");
}

/// Returns what the account of both securities uses of its limits, as a server sees it.
fn account_use(service: &ServiceProcess) -> Value {
    let uses = get(service, "/rest/ext/risk/use").json();
    let row = uses.as_array().expect("a list").iter().find(|row| row["accountName"] == "NEWYORK");
    row.expect("it has limits").clone()
}

/// Returns whether both shards have told what they use: five at 1.25 each, and the commissions.
fn is_whole(account: &Value) -> bool {
    account["credit"] == json!(12.55) && account["unansweredShards"] == Value::Null
}

#[test]
fn the_credit_in_use_names_the_shards_of_a_server_that_does_not_answer() {
    let mut pair = ClusterPair::start("credit");
    let credit = r#"{"accountName":"NEWYORK","credit":100000,"creditCurrency":"USD"}"#;
    assert_eq!(ask(pair.at(0), "PUT", RISK, "", credit).status, 200);
    // One order in a shard of each server, both through the same server.
    for (security, id) in [(MSFT, "a-open"), (AAPL, "b-open")] {
        assert_eq!(submit(pair.at(0), security, id).status, 200);
    }
    // The limit reaches the other server a moment later, and a use may be a second old.
    until(|| [0, 1].into_iter().all(|at| is_whole(&account_use(pair.at(at)))));
    // The server does not answer, and the other one does not know it yet: the answer comes while
    // the server is still paused.
    pair.at(1).pause();
    let is_partial = |account: &Value| {
        account["credit"] == Value::Null
            && account["unansweredShards"] == json!([1])
            && account["openOrders"] == json!(2)
    };
    until(|| is_partial(&account_use(pair.at(0))));
    until(|| pair.state(0) == "DOWN");
    assert!(is_partial(&account_use(pair.at(0))), "it is known to be away");
    resume(&pair, 1);
    until(|| [0, 1].into_iter().all(|at| is_whole(&account_use(pair.at(at)))));
    // After its restart, the server has its order and the limit again.
    pair.kill(1);
    until(|| is_partial(&account_use(pair.at(0))));
    pair.spawn(1);
    pair.join();
    until(|| [0, 1].into_iter().all(|at| is_whole(&account_use(pair.at(at)))));
    for security in [MSFT, AAPL] {
        let body = format!(r#"{{"securityId":{security},"side":"BUY","quantity":90000,"limit":1.25}}"#);
        let answer = ask(pair.at(0), "POST", LIMIT, "", &body);
        assert_eq!(answer.code(), "insufficient-funds", "the limit holds in both servers");
    }
}

/// Orders that end while their server is away. Each end causes two events, so the owner keeps only
/// the last of them.
const ENDS: usize = 600;

#[test]
fn a_fix_client_that_missed_more_than_is_stored_gets_the_status_of_its_orders() {
    let mut pair = ClusterPair::start_with("missed", "cluster.events_kept=1024");
    let mut client = fix_client(pair.at(0), "KEEP1");
    for id in ["stays", "ends"] {
        client.order(id, "AAPL", 1, 10, "1.5");
    }
    assert!(client.receive(4));
    for at in 0..ENDS {
        assert_eq!(submit(pair.at(0), AAPL, &format!("other-{at}")).status, 200);
    }
    pair.kill(0);
    while client.next_message().is_some() {}
    client.disconnect();
    until(|| pair.state(1) == "DOWN");
    let others = (0..ENDS).map(|at| format!("other-{at}"));
    for id in ["ends".to_string()].into_iter().chain(others) {
        assert_eq!(ask(pair.at(1), "DELETE", &format!("{OPEN}/{id}"), "", "").status, 200);
    }
    pair.spawn(0);
    pair.join();
    client.connect(fix(pair.at(0)));
    let message = client.received.len();
    client.log_on(false);
    assert!(client.receive(message + 2), "it gets the status of its orders instead of the missed reports");
    client.settle();
    let reported = client.received[message..].iter();
    let mut reported: Vec<_> =
        reported.map(|report| (report.get(37), report.get(150), report.get(39))).collect();
    reported.sort_unstable();
    assert_eq!(reported, [("ends", "I", "4"), ("stays", "I", "0")]);
}
