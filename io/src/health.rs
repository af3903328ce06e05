//! Asks a service on this machine whether it is ready, for whoever has no client for HTTP at hand: systemd, a container's health check, a script.
//!
//! It asks where `http.listen` says, without a login: `/health/ready` is open to everybody and tells a stranger nothing else.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::config::Config;

/// For a connection, and for each part of an answer. A service that is well answers in a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two questions while we wait.
const PAUSE: Duration = Duration::from_millis(50);
/// As much of an answer as is looked at: its first line says it.
const ANSWER_BYTES_MAX: u64 = 256;

const QUESTION: &[u8] = b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Why it does not count as ready.
#[derive(Debug)]
pub enum HealthError {
    /// There is no plain listener whose address is known beforehand.
    Nowhere(&'static str),
    /// Nobody is there, or nobody who answers.
    Silent(SocketAddr, io::Error),
    /// The answer is another one than 200.
    NotReady(SocketAddr, String),
}

impl fmt::Display for HealthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HealthError::Nowhere(why) => write!(f, "http.listen: {why}"),
            HealthError::Silent(address, error) => write!(f, "{address}: {error}"),
            HealthError::NotReady(address, said) => write!(f, "{address}: not ready: {said}"),
        }
    }
}

/// Asks until it is ready or the time is up; with no time, once.
pub fn ask(config: &Config, wait: Duration) -> Result<SocketAddr, HealthError> {
    let address = address(config.http.listen)?;
    let start = Instant::now();
    loop {
        match ask_once(address) {
            Ok(()) => return Ok(address),
            Err(unwell) if start.elapsed() >= wait => return Err(unwell),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn ask_once(address: SocketAddr) -> Result<(), HealthError> {
    let line = first_line(address).map_err(|error| HealthError::Silent(address, error))?;
    if line.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(HealthError::NotReady(address, line)) }
}

fn first_line(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(QUESTION)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(line.escape_ascii().to_string())
}

/// Where to ask. A listener on every address is reached on loopback too.
fn address(listen: Option<SocketAddr>) -> Result<SocketAddr, HealthError> {
    let Some(mut address) = listen else {
        return Err(HealthError::Nowhere("it is switched off, and nothing else is asked; loopback would do"));
    };
    if address.port() == 0 {
        return Err(HealthError::Nowhere("its port is 0, so that nobody knows beforehand where it is"));
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

    /// What the one answer is taken for.
    fn told(answer: &'static [u8]) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = vec![0; QUESTION.len()];
            stream.read_exact(&mut question).unwrap();
            assert_eq!(question, QUESTION);
            // Who has heard enough may be gone before the end.
            let _ = stream.write_all(answer);
        });
        let told = ask_once(address).map_err(|unwell| unwell.to_string());
        server.join().unwrap();
        told.map_err(|words| words.replace(&address.to_string(), "there"))
    }

    #[test]
    fn only_the_answer_200_is_ready() {
        assert_eq!(told(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"ready\":true}"), Ok(()));
        let refused = "there: not ready: HTTP/1.1 503 Service Unavailable";
        assert_eq!(told(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"), Err(refused.to_string()));
        assert_eq!(told(b"SSH-2.0\x1b[2J\r\n"), Err("there: not ready: SSH-2.0\\x1b[2J".to_string()));
        assert_eq!(told(b""), Err("there: not ready: ".to_string()));
        let beginning = "x".repeat(ANSWER_BYTES_MAX as usize);
        assert_eq!(
            told(&[b'x'; 4_096]),
            Err(format!("there: not ready: {beginning}")),
            "it is not read to its end"
        );
    }
}
