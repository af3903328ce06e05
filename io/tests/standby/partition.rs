//! The leader is cut off from the broker: it lives in a network namespace of its own, and the way out of that is taken away.

use std::process::Command;

use serde_json::Value;

use super::broker::Broker;
use super::pair::{Pair, until};
use super::service::{Service, folder};

/// The namespace and its two ends; gone when this is dropped.
struct Cell {
    name: String,
    outside: String,
}

/// Four addresses between the two, of those that nobody routes: others for every run.
fn address(last: u32) -> String {
    let run = std::process::id() % 16_384;
    format!("10.213.{}.{}", run / 64, run % 64 * 4 + last)
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

impl Cell {
    fn build() -> Result<Cell, String> {
        let name = format!("standby{}", std::process::id());
        // Names of links have at most fifteen letters.
        let (outside, inside) = (format!("sbo{}", std::process::id()), format!("sbi{}", std::process::id()));
        ip(&format!("netns add {name}"))?;
        let cell = Cell { name, outside };
        let Cell { name, outside } = &cell;
        let (out, within) = (address(1), address(2));
        ip(&format!("link add {outside} type veth peer name {inside}"))?;
        ip(&format!("link set {inside} netns {name}"))?;
        ip(&format!("addr add {out}/30 dev {outside}"))?;
        ip(&format!("link set {outside} up"))?;
        ip(&format!("-n {name} addr add {within}/30 dev {inside}"))?;
        ip(&format!("-n {name} link set {inside} up"))?;
        ip(&format!("-n {name} link set lo up"))?;
        Ok(cell)
    }

    fn way(&self, state: &str) {
        ip(&format!("link set {} {state}", self.outside)).unwrap();
    }

    /// The same command in here.
    fn enclose(&self, command: &Command) -> Command {
        let mut enclosed = Command::new("ip");
        enclosed.args(["netns", "exec", &self.name]).arg(command.get_program()).args(command.get_args());
        enclosed
    }

    /// Status and body of a request to somebody in here, asked in here; 0: no answer in these seconds.
    fn ask(&self, service: &Service, path: &str, body: Option<&str>, seconds: &str) -> (u16, String) {
        let mut command = Command::new("curl");
        command.args(["--silent", "--max-time", seconds, "--write-out", "\n%{http_code}"]);
        if let Some(body) = body {
            command.args(["--header", "Content-Type: application/json", "--data", body]);
        }
        command.arg(format!("http://{}{path}", service.address()));
        let output = self.enclose(&command).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (body, status) = text.rsplit_once('\n').unwrap_or(("", "0"));
        (status.parse().unwrap(), body.to_string())
    }

    fn order(&self, service: &Service, id: &str, seconds: &str) -> u16 {
        let body = format!(
            r#"{{"intId":"{id}","securityId":1,"side":"BUY","quantity":1,"limit":1.25,"tif":"GTC"}}"#
        );
        self.ask(service, "/rest/execution/order/limit", Some(&body), seconds).0
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        let _ = ip(&format!("link del {}", self.outside));
        let _ = ip(&format!("netns del {}", self.name));
    }
}

#[test]
fn a_leader_that_is_cut_off_answers_nothing_and_follows_when_it_is_back() {
    let cell = match Cell::build() {
        Ok(cell) => cell,
        Err(why) => return println!("SKIPPED: no network namespace can be made here: {why}"),
    };
    let place = folder("standby-partition");
    let broker = Broker::start_at(&place, &address(1));
    let mut pair = Pair { place: place.clone(), url: broker.url(), servers: [None, None] };
    pair.servers[0] = Some(Service::on(&place, cell.enclose(&pair.command(0))));
    pair.lead(0);
    pair.launch(1);
    pair.follow(1);
    for id in ["a", "b", "c"] {
        assert_eq!(cell.order(pair.server(0), id, "20"), 200);
    }
    cell.way("down");
    assert_eq!(cell.order(pair.server(0), "late", "1"), 0, "nobody is told what the broker has not");
    pair.lead(1);
    let (orders, _) = pair.known(1);
    let ids: Vec<&str> = orders.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    // It has noticed by itself, and serves no longer.
    pair.stand_by(0);
    cell.way("up");
    until("it follows", || {
        let (status, body) = cell.ask(pair.server(0), "/health/ready", None, "5");
        let state: Value = serde_json::from_str(&body).unwrap_or_default();
        status == 503 && state["standby"]["stand"] == "FOLLOWING" && state["standby"]["epoch"] == 2
    });
    // And takes over again, without what it never acknowledged.
    pair.kill(1);
    pair.lead(0);
    let (status, body) = cell.ask(pair.server(0), "/rest/execution/order", None, "20");
    assert_eq!(status, 200);
    let orders: Value = serde_json::from_str(&body).unwrap();
    let mut ids: Vec<&str> =
        orders.as_array().unwrap().iter().map(|order| order["intId"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "b", "c"]);
}
