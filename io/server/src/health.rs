//! Asks a service on this machine whether it is ready, for callers without an HTTP client: systemd,
//! the health check of a container, a script.
//!
//! It uses the address of `http.listen`, without a login: `/health/ready` needs none and reveals
//! nothing else to an unknown client.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use pitlane_config::Config;

/// Time limit of a connect, and of each part of a response. A healthy service responds in a
/// millisecond.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between two requests while waiting.
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes of a response that are read: its first line has the status.
const ANSWER_BYTES_MAX: u64 = 256;

const REQUEST: &[u8] = b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Reason why the service is not considered ready.
#[derive(Debug)]
pub enum HealthError {
    /// There is no plain listener with an address that is known beforehand.
    Nowhere(&'static str),
    /// There is no service, or it does not respond.
    Silent(SocketAddr, io::Error),
    /// The status is not 200.
    NotReady(SocketAddr, String),
}

impl fmt::Display for HealthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HealthError::Nowhere(why) => write!(f, "http.listen: {why}"),
            HealthError::Silent(address, error) => write!(f, "{address}: {error}"),
            HealthError::NotReady(address, status_line) => write!(f, "{address}: not ready: {status_line}"),
        }
    }
}

/// Repeats the request until the service is ready or the time is over; without time, sends it once.
pub fn ask(config: &Config, wait: Duration) -> Result<SocketAddr, HealthError> {
    let address = address(config.http.listen)?;
    let start = Instant::now();
    loop {
        match ask_once(address) {
            Ok(()) => return Ok(address),
            Err(error) if start.elapsed() >= wait => return Err(error),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn ask_once(address: SocketAddr) -> Result<(), HealthError> {
    let line = first_line(address).map_err(|error| HealthError::Silent(address, error))?;
    if line.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(HealthError::NotReady(address, line)) }
}

fn first_line(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(line.escape_ascii().to_string())
}

/// Returns the address to ask. A listener on every address is reached on loopback too.
fn address(listen: Option<SocketAddr>) -> Result<SocketAddr, HealthError> {
    let Some(mut address) = listen else {
        return Err(HealthError::Nowhere("it is switched off, and nothing else is asked; loopback would do"));
    };
    if address.port() == 0 {
        return Err(HealthError::Nowhere("its port is 0, so the address is not known in advance"));
    }
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitlane_engine::index::index_usize;
    use std::net::TcpListener;

    #[test]
    fn health_uses_the_address_of_the_listener() {
        let found = |text: &str| address(Some(text.parse().unwrap())).map(|address| address.to_string()).ok();
        assert_eq!(found("127.0.0.1:9090").as_deref(), Some("127.0.0.1:9090"));
        assert_eq!(found("10.0.0.7:80").as_deref(), Some("10.0.0.7:80"));
        assert_eq!(found("0.0.0.0:9090").as_deref(), Some("127.0.0.1:9090"));
        assert_eq!(found("[::]:9090").as_deref(), Some("[::1]:9090"));
        assert_eq!(found("127.0.0.1:0"), None);
        assert!(address(None).is_err());
    }

    /// Returns how the one response is interpreted.
    fn outcome(answer: &'static [u8]) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; REQUEST.len()];
            stream.read_exact(&mut request).unwrap();
            assert_eq!(request, REQUEST);
            // The client may close before it has read everything.
            let _ = stream.write_all(answer);
        });
        let outcome = ask_once(address).map_err(|error| error.to_string());
        server.join().unwrap();
        outcome.map_err(|message| message.replace(&address.to_string(), "there"))
    }

    #[test]
    fn only_the_answer_200_is_ready() {
        assert_eq!(outcome(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"ready\":true}"), Ok(()));
        let refused = "there: not ready: HTTP/1.1 503 Service Unavailable";
        assert_eq!(outcome(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"), Err(refused.to_string()));
        assert_eq!(outcome(b"SSH-2.0\x1b[2J\r\n"), Err("there: not ready: SSH-2.0\\x1b[2J".to_string()));
        assert_eq!(outcome(b""), Err("there: not ready: ".to_string()));
        let beginning = "x".repeat(index_usize(ANSWER_BYTES_MAX));
        assert_eq!(
            outcome(&[b'x'; 4_096]),
            Err(format!("there: not ready: {beginning}")),
            "it is not read to its end"
        );
    }
}
