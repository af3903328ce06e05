//! A FIX client with the standard library alone: logs on, rests a limit order, replaces it, cancels
//! it, buys at market, and logs out. It prints each report.
//!
//! `cargo run -- [127.0.0.1:9880] [CLIENT1] [PITLANE]`

mod message;
mod utc;

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, SystemTimeError, UNIX_EPOCH};

use message::{Fields, take, text};

type Failure = Box<dyn Error>;

const PATIENCE: Duration = Duration::from_secs(10);

struct Session {
    socket: TcpStream,
    /// CompIDs of the client and of the service.
    sender: String,
    target: String,
    next_number: u64,
    received: Vec<u8>,
}

impl Session {
    /// Sends a message; `body` has its fields as `tag=value|…`.
    fn send(&mut self, kind: &str, body: &str) -> Result<(), Failure> {
        let Session { sender, target, next_number, .. } = self;
        let time = utc::timestamp(now()?);
        let fields = format!("35={kind}|49={sender}|56={target}|34={next_number}|52={time}|{body}");
        self.socket.write_all(message::frame(&fields).as_bytes())?;
        self.next_number += 1;
        Ok(())
    }

    /// Returns the next message. It answers test requests itself.
    fn receive(&mut self) -> Result<Fields, Failure> {
        loop {
            let Some(fields) = take(&mut self.received)? else {
                let mut block = [0; 4096];
                match self.socket.read(&mut block)? {
                    0 => {
                        return Err(
                            "the service closed the connection: are the CompIDs known and free?".into()
                        );
                    }
                    count => self.received.extend_from_slice(&block[..count]),
                }
                continue;
            };
            match text(&fields, 35) {
                "0" => {}
                "1" => self.send("0", &format!("112={}|", text(&fields, 112)))?,
                "3" => return Err(format!("the service rejected a message: {}", text(&fields, 58)).into()),
                _ => return Ok(fields),
            }
        }
    }

    fn log_on(&mut self) -> Result<(), Failure> {
        self.send("A", "98=0|108=30|141=Y|")?;
        let answer = self.receive()?;
        if text(&answer, 35) != "A" {
            return Err(format!("the Logon was refused: {}", text(&answer, 58)).into());
        }
        println!("logged on as {}", self.sender);
        Ok(())
    }

    /// Prints reports until the order has the status. Any other answer is an error.
    fn wait_for(&mut self, id: &str, status: &str) -> Result<(), Failure> {
        loop {
            let report = self.receive()?;
            let field = |tag| text(&report, tag);
            if field(35) != "8" {
                return Err(format!("the service answered {}: {}", field(35), field(58)).into());
            }
            let reported = status_name(field(39));
            let (filled, quantity, price) = (field(14), field(38), field(6));
            println!("{} {reported} filled {filled} of {quantity} at {price} {}", field(11), field(58));
            match field(11) == id {
                true if reported == status => return Ok(()),
                true if reported == "REJECTED" => return Err(format!("{id} was rejected").into()),
                _ => {}
            }
        }
    }

    fn log_out(&mut self) -> Result<(), Failure> {
        self.send("5", "")?;
        while text(&self.receive()?, 35) != "5" {}
        println!("logged out");
        Ok(())
    }
}

fn status_name(code: &str) -> &str {
    match code {
        "0" => "NEW",
        "1" => "PARTIALLY_FILLED",
        "2" => "FILLED",
        "4" => "CANCELED",
        "6" => "PENDING_CANCEL",
        "8" => "REJECTED",
        "A" => "PENDING_NEW",
        "E" => "PENDING_REPLACE",
        other => other,
    }
}

fn now() -> Result<Duration, SystemTimeError> {
    SystemTime::now().duration_since(UNIX_EPOCH)
}

fn trade(session: &mut Session) -> Result<(), Failure> {
    // An id may be used once a day, so it begins with the time.
    let ids = now()?.as_nanos();
    let order = format!("55=AAPL|54=1|60={}|", utc::timestamp(now()?));
    session.send("D", &format!("11={ids}-1|{order}38=5|40=2|44=200.25|"))?;
    session.wait_for(&format!("{ids}-1"), "NEW")?;
    session.send("G", &format!("11={ids}-2|41={ids}-1|{order}38=10|40=2|44=200.5|"))?;
    session.wait_for(&format!("{ids}-2"), "NEW")?;
    session.send("F", &format!("11={ids}-3|41={ids}-2|{order}"))?;
    session.wait_for(&format!("{ids}-3"), "CANCELED")?;
    session.send("D", &format!("11={ids}-4|{order}38=3|40=1|"))?;
    session.wait_for(&format!("{ids}-4"), "FILLED")
}

fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |default: &str| arguments.next().unwrap_or_else(|| default.to_string());
    let (address, sender, target) = (argument("127.0.0.1:9880"), argument("CLIENT1"), argument("PITLANE"));
    let socket = TcpStream::connect(&address).map_err(|error| format!("{address}: {error}"))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut session = Session { socket, sender, target, next_number: 1, received: Vec::new() };
    session.log_on()?;
    trade(&mut session)?;
    session.log_out()
}

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}
