//! Two servers of one group.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use pitlane_testkit::http_client::{HttpClient, Response};
use pitlane_testkit::patience::until_ok;
use pitlane_testkit::service::{ServiceProcess, TestFolder, command};
use serde_json::Value;

/// Short, so that a take-over is fast; long enough for a busy machine.
const LEASE: &str = "standby.lease_ms=1500";

const CONFIG: &str = r#"
[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "KEEP*"
ResetOnLogon = "N"
"#;

/// Open orders by id, with their filled quantity.
pub(crate) type OrderQuantities = Vec<(String, u64)>;
/// Quantities by security.
pub(crate) type Positions = Vec<(u64, i64)>;

pub(crate) struct StandbyPair {
    pub place: TestFolder,
    pub url: String,
    /// Further settings of both, and further sections of their file.
    pub settings: Vec<String>,
    pub sections: String,
    pub servers: [Option<ServiceProcess>; 2],
}

impl StandbyPair {
    /// Starts both: the first leads, and the second has everything it needs to take over.
    pub(crate) fn start(place: &TestFolder, url: &str) -> StandbyPair {
        let mut pair = StandbyPair::at(place, url);
        pair.begin();
        pair
    }

    /// Returns a pair that is not yet started.
    pub(crate) fn at(place: &TestFolder, url: &str) -> StandbyPair {
        let (settings, sections) = (Vec::new(), String::new());
        StandbyPair { place: place.clone(), url: url.to_string(), settings, sections, servers: [None, None] }
    }

    pub(crate) fn begin(&mut self) {
        self.launch(0);
        self.lead(0);
        self.launch(1);
        self.follow(1);
    }

    pub(crate) fn command(&self, at: usize) -> Command {
        let file = self.place.join("settings.toml");
        std::fs::write(&file, format!("{}{CONFIG}", self.sections)).unwrap();
        let url = format!("nats.url={}", self.url);
        let settings = [
            "standby.group=pair",
            LEASE,
            &url,
            "feed.rate=200",
            "demo.on=false",
            "risk.strategies.max_orders_per_s=0",
            "risk.strategies.max_open_orders=0",
            "fix.store_bytes=1048576",
            "log.level=warn",
        ];
        let settings: Vec<&str> =
            settings.into_iter().chain(self.settings.iter().map(String::as_str)).collect();
        let mut command = command(&self.place.join(format!("server-{at}")), &settings);
        command.arg("--config").arg(file).arg("--quiet");
        command
    }

    /// Starts a server; it first prints that it stands by.
    pub(crate) fn launch(&mut self, at: usize) {
        let service = ServiceProcess::on(&self.place, self.command(at));
        assert!(
            service.ready.starts_with("standby group=pair"),
            "{}\n{}",
            service.ready.clone(),
            service.end().log_text
        );
        self.servers[at] = Some(service);
    }

    pub(crate) fn server(&self, at: usize) -> &ServiceProcess {
        self.servers[at].as_ref().unwrap()
    }

    /// Waits until this server leads.
    pub(crate) fn lead(&mut self, at: usize) {
        self.wait_for_line(at, "ready ");
    }

    /// Waits until this server prints that it stands by, as it does at each start.
    pub(crate) fn stand_by(&mut self, at: usize) {
        self.wait_for_line(at, "standby ");
    }

    fn wait_for_line(&mut self, at: usize, prefix: &str) {
        let service = self.servers[at].as_mut().unwrap();
        while !service.ready.starts_with(prefix) {
            service.ready = service.line();
            if service.ready.is_empty() {
                let log_text = self.servers[at].take().unwrap().end().log_text;
                panic!("server {at} ended and did not print {prefix:?}: {log_text}");
            }
        }
    }

    /// Waits until this server follows and has everything.
    pub(crate) fn follow(&self, at: usize) {
        let service = self.server(at);
        until_ok("it follows", || {
            let (status, body) = service.try_ask("GET /health/ready").map_err(|error| error.to_string())?;
            let state: Value = serde_json::from_str(&body).unwrap();
            let standby = &state["standby"];
            let follows = status == 503 && standby["stand"] == "FOLLOWING" && standby["complete"] == true;
            if follows { Ok(()) } else { Err(body) }
        });
        assert_eq!(service.ask("GET /health/live").0, 200);
    }

    pub(crate) fn kill(&mut self, at: usize) {
        let service = self.servers[at].take().unwrap();
        service.signal("KILL");
        service.end();
    }

    pub(crate) fn fix(&self, at: usize) -> SocketAddr {
        let words = &self.server(at).ready;
        words.split_whitespace().find_map(|prefix| prefix.strip_prefix("fix=")).unwrap().parse().unwrap()
    }

    /// Returns the state of this server.
    pub(crate) fn known(&self, at: usize) -> (OrderQuantities, Positions) {
        let orders = get(self.server(at), "/rest/execution/order");
        let order = |row: &Value| {
            (row["intId"].as_str().unwrap().to_string(), row["filledQuantity"].as_u64().unwrap())
        };
        let mut orders: Vec<_> = orders.as_array().unwrap().iter().map(order).collect();
        orders.sort();
        let positions = get(self.server(at), "/rest/position");
        let position = |row: &Value| (row["securityId"].as_u64().unwrap(), row["quantity"].as_i64().unwrap());
        let mut positions: Vec<_> = positions.as_array().unwrap().iter().map(position).collect();
        positions.sort_unstable();
        (orders, positions)
    }
}

pub(crate) fn get(service: &ServiceProcess, path: &str) -> Value {
    let answer = look(service, path);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Returns any response.
pub(crate) fn look(service: &ServiceProcess, path: &str) -> Response {
    let mut client = HttpClient::new(TcpStream::connect(service.address()).unwrap());
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", service.address()));
    client.receive(false)
}
