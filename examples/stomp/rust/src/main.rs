//! A STOMP consumer with the standard library alone: prints each event for some seconds.
//!
//! `cargo run -- [127.0.0.1:61613] [SECONDS] [TOPIC ...]`
//!
//! Without topics it subscribes to `tick.*` and `pitlane.>` (the status changes of all orders).

use std::error::Error;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

type Failure = Box<dyn Error>;

/// Largest body that is accepted, in bytes: far above any event.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Longest line of a head that is accepted, in bytes; the broker's own limit is lower.
const LINE_BYTES_MAX: u64 = 65_536;
/// Time for a frame to be complete, and for CONNECTED to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

struct Frame {
    command: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Frame {
    /// Returns the value of a header; empty if it is absent.
    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

struct Connection {
    input: BufReader<TcpStream>,
    output: TcpStream,
}

impl Connection {
    fn open(address: &str) -> Result<Connection, Failure> {
        let output = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
        output.set_read_timeout(Some(PATIENCE))?;
        let mut connection = Connection { input: BufReader::new(output.try_clone()?), output };
        // Zero milliseconds in both directions: neither side sends heart-beats.
        connection.send("CONNECT", &["accept-version:1.2", "host:pitlane", "heart-beat:0,0"])?;
        match connection.receive()? {
            frame if frame.command == "CONNECTED" => Ok(connection),
            frame => Err(format!("{}: {}", frame.command, frame.header("message")).into()),
        }
    }

    fn send(&mut self, command: &str, headers: &[&str]) -> io::Result<()> {
        write!(self.output, "{command}\n{}\n\n\0", headers.join("\n"))
    }

    /// Waits until a frame begins; returns false if none does until the deadline.
    fn has_frame(&mut self, deadline: Instant) -> io::Result<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        self.output.set_read_timeout(Some(left))?;
        let result = self.input.fill_buf().map(|_| true);
        self.output.set_read_timeout(Some(PATIENCE))?;
        match result {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(false),
            other => other,
        }
    }

    fn receive(&mut self) -> Result<Frame, Failure> {
        // Line ends between frames are heart-beats.
        let mut command = self.line()?;
        while command.is_empty() {
            command = self.line()?;
        }
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_string(), unescape(value)));
        }
        let mut frame = Frame { command, headers, body: String::new() };
        let length: Option<usize> = frame.header("content-length").parse().ok();
        let mut body = Vec::new();
        match length {
            Some(length) if length > BODY_BYTES_MAX => return Err("a body that is too large".into()),
            // The NUL after the body is read with it.
            Some(length) => {
                body.resize(length + 1, 0);
                self.input.read_exact(&mut body)?;
            }
            None => {
                (&mut self.input).take(BODY_BYTES_MAX as u64).read_until(0, &mut body)?;
            }
        }
        if body.pop() != Some(0) {
            return Err("a frame without its end".into());
        }
        frame.body = String::from_utf8(body)?;
        Ok(frame)
    }

    /// Reads a line of a head.
    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        (&mut self.input).take(LINE_BYTES_MAX).read_line(&mut line)?;
        if !line.ends_with('\n') {
            return Err("the broker closed the connection".into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_string())
    }
}

/// Returns a header as it was before STOMP 1.2 escaped it.
fn unescape(value: &str) -> String {
    let mut parts =
        value.split("\\\\").map(|part| part.replace("\\n", "\n").replace("\\r", "\r").replace("\\c", ":"));
    let first = parts.next().unwrap_or_default();
    parts.fold(first, |text, part| text + "\\" + &part)
}

fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:61613".to_string());
    let seconds = arguments.next().unwrap_or_else(|| "10".to_string());
    let duration =
        Duration::from_secs(seconds.parse().map_err(|_| format!("{seconds} is not a number of seconds"))?);
    let mut topics: Vec<String> = arguments.collect();
    if topics.is_empty() {
        topics = vec!["tick.*".to_string(), "pitlane.>".to_string()];
    }
    let mut connection = Connection::open(&address)?;
    for (number, topic) in topics.iter().enumerate() {
        connection.send("SUBSCRIBE", &[&format!("id:{number}"), &format!("destination:/topic/{topic}")])?;
    }
    let deadline = Instant::now() + duration;
    let mut count = 0_u64;
    while connection.has_frame(deadline)? {
        let frame = connection.receive()?;
        if frame.command != "MESSAGE" {
            return Err(format!("{}: {}", frame.command, frame.header("message")).into());
        }
        println!("{} {}", frame.header("destination").trim_start_matches("/topic/"), frame.body);
        count += 1;
    }
    connection.send("DISCONNECT", &["receipt:last"])?;
    while connection.receive()?.header("receipt-id") != "last" {}
    println!("{count} events");
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}
