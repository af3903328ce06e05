//! The real binary, and requests to it.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pitlane_testkit::http_client::{HttpClient, Response};
use pitlane_testkit::service::{ServiceProcess, TestFolder, command, command_with_limits};
use serde_json::Value;

/// Time limit; a later result never comes.
const PATIENCE: Duration = Duration::from_secs(120);

/// No market activity, and no limit that tests would reach.
const SETTINGS: [&str; 6] = [
    "fix.listen=",
    "feed.on=false",
    "shard.orders_max=200000",
    "risk.strategies.max_orders_per_s=0",
    "risk.strategies.max_open_orders=0",
    "venue.self_trade=allow",
];

/// Returns an empty data folder for one test.
pub(crate) fn folder(name: &str) -> TestFolder {
    TestFolder::new("rest", name)
}

pub(crate) struct RestService {
    process: ServiceProcess,
    client: HttpClient,
}

impl RestService {
    pub(crate) fn start(name: &str) -> RestService {
        RestService::with(&folder(name), &[])
    }

    /// Starts on a data folder, with further settings.
    pub(crate) fn with(data: &TestFolder, settings: &[&str]) -> RestService {
        RestService::on(data, command(data, &[&SETTINGS, settings].concat()))
    }

    /// Starts with an injected fault, see `io/runtime/src/fault_injection.rs`.
    pub(crate) fn with_fault(data: &TestFolder, settings: &[&str], fault: &str) -> RestService {
        let mut command = command(data, &[&SETTINGS, settings].concat());
        command.env("PITLANE_FAULT", fault);
        RestService::on(data, command)
    }

    /// Starts with a live market and the limits of the built-in settings, or of a preset.
    pub(crate) fn with_limits(data: &TestFolder, preset: Option<&str>) -> RestService {
        let mut command = command_with_limits(data, &["fix.listen="]);
        command.args(preset.iter().flat_map(|preset| ["--config", preset]));
        RestService::on(data, command)
    }

    fn on(data: &TestFolder, mut command: Command) -> RestService {
        command.arg("--quiet");
        let process = ServiceProcess::on(data, command);
        if !process.is_ready() {
            panic!("it did not start: {}", process.end().log_text);
        }
        let client = HttpClient::new(TcpStream::connect(process.address()).unwrap());
        RestService { process, client }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.process.address()
    }

    /// Returns its first line.
    pub(crate) fn ready(&self) -> &str {
        &self.process.ready
    }

    pub(crate) fn connect(&self) -> HttpClient {
        HttpClient::new(TcpStream::connect(self.address()).unwrap())
    }

    /// Sends one request on the connection that stays open.
    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        ask(&mut self.client, method, path, headers, body)
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.ask("GET", path, "", "")
    }

    /// Returns the JSON of a GET that must succeed.
    pub(crate) fn read(&mut self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "{path}");
        answer.json()
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Response {
        self.ask("POST", path, "", body)
    }

    pub(crate) fn put(&mut self, path: &str, body: &str) -> Response {
        self.ask("PUT", path, "", body)
    }

    pub(crate) fn delete(&mut self, path: &str) -> Response {
        self.ask("DELETE", path, "", "")
    }

    /// Sends a write that must succeed.
    pub(crate) fn must_post(&mut self, path: &str, body: &str) -> Response {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{path} {body}: {answer:?}");
        assert_eq!((answer.header("content-length"), answer.body.as_str()), (Some("0"), ""), "{path}");
        answer
    }

    /// Turns the kill switch on, in every shard.
    pub(crate) fn stop_trading(&mut self) {
        let answer = self.post("/rest/ext/kill-switch", "");
        let all = serde_json::json!({ "confirmed": "ALL", "unconfirmedShards": [] });
        assert_eq!((answer.status, answer.json()), (200, all));
    }

    /// Sends a write that must be refused with this status and code.
    pub(crate) fn refuse(&mut self, method: &str, path: &str, body: &str, status: u16, code: &str) -> Value {
        let answer = self.ask(method, path, "", body);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{method} {path} {body}: {answer:?}"
        );
        answer.json()
    }

    /// Repeats a request until a condition holds: the work of other threads takes time.
    pub(crate) fn until(&mut self, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let value = self.read(path);
            if holds(&value) {
                return value;
            }
            assert!(Instant::now() < end, "{path}: {value}");
        }
    }

    /// Returns the order with this id, which must be the only one.
    pub(crate) fn order(&mut self, id: &str) -> Value {
        let found = self.read(&format!("/rest/execution/order/{id}"));
        assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
        found[0].clone()
    }

    /// Buys and sells so that SERVER's position in a security changes by a quantity, at a price.
    pub(crate) fn trade(&mut self, security: u32, side: &str, quantity: &str, price: &str) {
        // PAIRS takes the other side; both are limit orders at the same price.
        let other = if side == "BUY" { "SELL" } else { "BUY" };
        let order = |side: &str, strategy: &str| {
            format!(
                r#"{{"securityId":{security},"side":"{side}","quantity":{quantity},"limit":{price},"strategyName":"{strategy}"}}"#
            )
        };
        let first = self.must_post("/rest/execution/order/limit", &order(other, "PAIRS"));
        self.must_post("/rest/execution/order/limit", &order(side, "SERVER"));
        let path = first.header("location").unwrap().to_string();
        self.until(&path, |found| found[0]["status"] == "FILLED");
    }

    /// Ends it, and returns its standard error.
    pub(crate) fn complaints_at_end(self) -> String {
        self.process.signal("TERM");
        self.process.end().log_text
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    pub(crate) fn kill(self) {
        self.process.signal("KILL");
        self.process.end();
    }

    /// Waits for the end and returns whether it was in order.
    pub(crate) fn ends_well(self) -> bool {
        self.process.end().is_orderly()
    }
}

/// Starts a process whose wall clock shows this time.
pub(crate) fn at(data: &TestFolder, wall_s: u64, settings: &[&str]) -> RestService {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    RestService::with_fault(data, settings, &format!("clock:0:{}", wall_s as i64 - now_s as i64))
}

/// Sends a request; a body is JSON.
pub(crate) fn ask(client: &mut HttpClient, method: &str, path: &str, headers: &str, body: &str) -> Response {
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let length = body.len();
    client.send(&format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}{headers}Content-Length: {length}\r\n\r\n{body}"
    ));
    client.receive(method == "HEAD")
}

/// Returns the texts under a name in each row of a list.
pub(crate) fn column<'a>(rows: &'a Value, name: &str) -> Vec<&'a str> {
    rows.as_array().unwrap().iter().map(|row| row[name].as_str().unwrap()).collect()
}
