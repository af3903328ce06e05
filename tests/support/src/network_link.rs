//! A separate network namespace for one process, connected to ours by a link that can be cut.

use std::net::TcpListener;
use std::process::{Command, Output};
use std::time::Duration;

use crate::service::ServiceProcess;

pub struct NetworkLink {
    space: String,
    own_address: String,
    end: String,
}

impl NetworkLink {
    /// Creates a link to a new network, or returns why that is not possible: usually since it needs
    /// root, or since only loopback traffic is permitted here.
    pub fn create(name: &str) -> Result<NetworkLink, String> {
        let process = std::process::id();
        let wire = NetworkLink {
            space: format!("{name}-{process}"),
            end: format!("{name}{}", process % 100_000_000),
            own_address: format!("10.77.{}.{}", process / 64 % 256, process % 64 * 4 + 1),
        };
        let there = format!("10.77.{}.{}/30", process / 64 % 256, process % 64 * 4 + 2);
        let NetworkLink { space, end, own_address } = &wire;
        let (inner, address) = (format!("{end}i"), format!("{own_address}/30"));
        ip(&["netns", "add", space])?;
        ip(&["link", "add", end, "type", "veth", "peer", "name", &inner, "netns", space])?;
        ip(&["addr", "add", &address, "dev", end])?;
        ip(&["link", "set", end, "up"])?;
        for link in ["lo", &inner] {
            ip(&["-n", space, "link", "set", link, "up"])?;
        }
        ip(&["-n", space, "addr", "add", &there, "dev", &inner])?;
        wire.probe()?;
        Ok(wire)
    }

    /// Checks whether traffic passes.
    fn probe(&self) -> Result<(), String> {
        let listener = TcpListener::bind((self.own_address(), 0)).map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let mut knock = Command::new("timeout");
        knock.args(["5", "bash", "-c", &format!("exec 3<>/dev/tcp/{}/{port}", self.own_address())]);
        let knocked = self.beyond(&knock).output().map_err(|error| error.to_string())?;
        match knocked.status.success() {
            true => Ok(()),
            false => Err("it is laid, and nothing comes through".to_string()),
        }
    }

    /// Returns our address on the link.
    pub fn own_address(&self) -> &str {
        &self.own_address
    }

    /// Returns the same command, at the other end.
    pub fn beyond(&self, command: &Command) -> Command {
        let mut beyond = Command::new("ip");
        beyond.args(["netns", "exec", &self.space]).arg(command.get_program()).args(command.get_args());
        beyond
    }

    pub fn cut(&self) {
        ip(&["link", "set", &self.end, "down"]).expect("it is ours");
    }

    pub fn restore(&self) {
        ip(&["link", "set", &self.end, "up"]).expect("it is ours");
    }

    /// Returns status and body of a request to a service there, whether the link is cut or not. 0:
    /// there was no response within `limit`, in whole seconds.
    pub fn ask(
        &self,
        service: &ServiceProcess,
        method: &str,
        path: &str,
        json: &str,
        limit: Duration,
    ) -> (u16, String) {
        let url = format!("http://{}{path}", service.address());
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", &limit.as_secs().to_string(), "--write-out", "\n%{http_code}"]);
        curl.args(["--request", method, "--header", "Content-Type: application/json"]);
        curl.args(["--data-binary", json, &url]);
        let output = self.beyond(&curl).output().expect("curl: apt install curl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, status) = text.rsplit_once('\n').expect("a status behind the body");
        (status.parse().expect("a number"), body.to_string())
    }
}

impl Drop for NetworkLink {
    fn drop(&mut self) {
        let _ = ip(&["link", "del", &self.end]);
        let _ = ip(&["netns", "del", &self.space]);
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let Output { status, stderr, .. } =
        Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&stderr).trim().to_string()),
    }
}
