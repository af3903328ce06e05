//! The service manager that started this process: it is told when the service is ready, stops, and
//! is alive. The protocol is that of sd_notify(3): lines of text in a datagram.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::time::{Duration, Instant};

/// Part of the watchdog's time after which the next sign of life is sent.
const PINGS_PER_TIMEOUT: u32 = 3;

/// The connection to the service manager; without one, every call does nothing.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<UnixDatagram>,
    /// Interval of the signs of life, if the manager wants any.
    ping_interval: Option<Duration>,
    pinged_at: Option<Instant>,
}

impl ServiceManager {
    /// Connects to the manager that the environment names.
    pub fn from_environment() -> ServiceManager {
        let text = |name| env::var(name).ok();
        ServiceManager::of(env::var_os("NOTIFY_SOCKET"), text("WATCHDOG_USEC"), text("WATCHDOG_PID"))
    }

    fn of(socket: Option<OsString>, watchdog_us: Option<String>, pid: Option<String>) -> ServiceManager {
        let Some(name) = socket.filter(|name| !name.is_empty()) else { return ServiceManager::default() };
        let socket = match connect(&name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(%error, "the service manager at NOTIFY_SOCKET cannot be reached");
                None
            }
        };
        // The manager names the process that it watches; another one inherited the variables.
        let is_ours = pid.is_none_or(|pid| pid.parse() == Ok(process::id()));
        let timeout_us = watchdog_us.filter(|_| is_ours).and_then(|text| text.parse().ok());
        let timeout = timeout_us.filter(|us| *us > 0).map(Duration::from_micros);
        let ping_interval = timeout.map(|timeout| timeout / PINGS_PER_TIMEOUT);
        ServiceManager { socket, ping_interval, pinged_at: None }
    }

    /// Reports that the service is ready; the status is one line for people.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}\n", status.trim_end().replace('\n', " ")));
    }

    /// Reports that the service stops.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=stopping\n");
    }

    /// Returns the interval of the signs of life; None if the manager wants none.
    pub fn ping_interval(&self) -> Option<Duration> {
        self.ping_interval
    }

    /// Returns whether it is time for a sign of life.
    pub fn is_ping_due(&self) -> bool {
        let elapsed = |interval| self.pinged_at.is_none_or(|at| at.elapsed() >= interval);
        self.ping_interval.is_some_and(elapsed)
    }

    /// Sends a sign of life if it is time for one.
    pub fn ping(&mut self) {
        if self.is_ping_due() {
            self.pinged_at = Some(Instant::now());
            self.send("WATCHDOG=1\n");
        }
    }

    fn send(&self, text: &str) {
        if let Some(socket) = &self.socket {
            // A manager that does not read must not stop the service.
            let _ = socket.send(text.as_bytes());
        }
    }
}

/// Connects to a path, or to an abstract name, which begins with `@`.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    socket.connect_addr(&address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 512];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn the_manager_receives_readiness_signs_of_life_and_the_stop() {
        let name = format!("pitlane-notify-{}", process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let usec = Some("30000000".to_string());
        let pid = Some(process::id().to_string());
        let mut manager = ServiceManager::of(Some(format!("@{name}").into()), usec, pid);
        assert_eq!(manager.ping_interval(), Some(Duration::from_secs(10)));
        manager.ready("ready http=127.0.0.1:1\nand more\n");
        assert_eq!(received(&socket), "READY=1\nSTATUS=ready http=127.0.0.1:1 and more\n");
        assert!(manager.is_ping_due());
        manager.ping();
        assert_eq!(received(&socket), "WATCHDOG=1\n");
        assert!(!manager.is_ping_due());
        manager.ping();
        manager.stopping();
        assert_eq!(received(&socket), "STOPPING=1\nSTATUS=stopping\n", "a ping that is not due is not sent");
    }

    #[test]
    fn without_a_manager_nothing_is_sent_and_nothing_fails() {
        let nowhere = Some(OsString::from("/nowhere/notify"));
        for socket in [None, Some(OsString::new()), nowhere] {
            let mut manager = ServiceManager::of(socket, None, None);
            manager.ready("ready");
            manager.ping();
            assert!(!manager.is_ping_due());
        }
        let usec = Some("5000000".to_string());
        let other = Some("1".to_string());
        let name = Some(OsString::from("@pitlane-absent"));
        assert_eq!(
            ServiceManager::of(name.clone(), usec, other).ping_interval(),
            None,
            "another process is watched"
        );
        assert_eq!(ServiceManager::of(name, Some("soon".to_string()), None).ping_interval(), None);
    }
}
