//! A FIX venue that answers, hangs, floods or dies on command.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pitlane_testkit::fix_client::{now, sealed};

/// What the venue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Conduct {
    /// Takes every order.
    Answer,
    /// Reads nothing and sends nothing, with the connection open.
    Hang,
    /// Sends reports about orders that do not exist as fast as they are read, and reads nothing.
    Flood,
    /// Ends every connection at once.
    Die,
}

/// Interval in which the venue looks whether its conduct has changed.
const LOOK: Duration = Duration::from_millis(5);
/// Reports of one write of a flood.
const REPORTS_PER_WRITE: usize = 200;

/// A running venue. Its threads end with the process.
pub(crate) struct HostileVenue {
    pub port: u16,
    shared: Arc<VenueState>,
}

struct VenueState {
    name: &'static str,
    conduct: AtomicU8,
    /// How often the venue has acted so: writes of a flood, ended connections, looks
    /// while it hangs.
    acts: AtomicU64,
}

impl HostileVenue {
    pub(crate) fn start(name: &'static str) -> HostileVenue {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let (conduct, acts) = (AtomicU8::new(Conduct::Answer as u8), AtomicU64::new(0));
        let shared = Arc::new(VenueState { name, conduct, acts });
        let state = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The next connection follows only when this one has ended.
                let _ = VenueConnection { stream, state: &state, number: 0, input: Vec::new() }.serve();
            }
        });
        HostileVenue { port, shared }
    }

    /// Changes the conduct. Returns the number of acts before.
    pub(crate) fn begin(&self, conduct: Conduct) -> u64 {
        self.shared.conduct.store(conduct as u8, Ordering::SeqCst);
        self.shared.acts.load(Ordering::SeqCst)
    }

    /// Waits until the venue has done something since. Only a failing test waits for long.
    pub(crate) fn await_acts(&self, before: u64) {
        while self.shared.acts.load(Ordering::SeqCst) == before {
            thread::yield_now();
        }
    }
}

struct VenueConnection<'a> {
    stream: TcpStream,
    state: &'a VenueState,
    number: u64,
    input: Vec<u8>,
}

impl VenueConnection<'_> {
    fn is(&self, conduct: Conduct) -> bool {
        self.state.conduct.load(Ordering::SeqCst) == conduct as u8
    }

    fn act(&self) {
        self.state.acts.fetch_add(1, Ordering::SeqCst);
    }

    fn serve(mut self) -> io::Result<()> {
        self.stream.set_read_timeout(Some(LOOK))?;
        self.stream.set_write_timeout(Some(LOOK))?;
        loop {
            if self.is(Conduct::Die) {
                self.act();
                return Ok(());
            }
            while self.is(Conduct::Hang) {
                self.act();
                thread::sleep(LOOK);
            }
            if self.is(Conduct::Flood) {
                // A part of a message may be lost with the rest of a write, so the connection ends
                // with the flood.
                return self.flood();
            }
            let mut buffer = [0; 16_384];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) => return Err(error),
            }
            while let Some(end) = self.input.windows(4).position(|window| window == b"\x0110=") {
                if self.input.len() < end + 8 {
                    break;
                }
                let message: Vec<u8> = self.input.drain(..end + 8).collect();
                self.answer(&String::from_utf8_lossy(&message))?;
            }
        }
    }

    fn flood(&mut self) -> io::Result<()> {
        // A venue on another host would not use the processors of this one.
        let _ = rustix::process::nice(19);
        while self.is(Conduct::Flood) {
            let mut wire = Vec::new();
            for _ in 0..REPORTS_PER_WRITE {
                let id = format!("X{}", self.number);
                wire.extend(self.frame("8", &report(&id, "0", "1")));
            }
            let mut rest = &wire[..];
            while !rest.is_empty() && self.is(Conduct::Flood) {
                match self.stream.write(rest) {
                    Ok(count) => rest = &rest[count..],
                    // The service reads as fast as it wants.
                    Err(error)
                        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                    Err(error) => return Err(error),
                }
            }
            self.act();
        }
        Ok(())
    }

    fn answer(&mut self, message: &str) -> io::Result<()> {
        let get = |tag: &str| message.split('\u{1}').find_map(|field| field.strip_prefix(tag)).unwrap_or("");
        let frame = match get("35=") {
            "A" => {
                self.number = 0;
                self.frame("A", "98=0|108=30|141=Y|")
            }
            "1" => self.frame("0", &format!("112={}|", get("112="))),
            "D" => self.frame("8", &report(get("11="), "0", get("38="))),
            "5" => self.frame("5", ""),
            _ => return Ok(()),
        };
        self.stream.set_write_timeout(None)?;
        self.stream.write_all(&frame)?;
        self.stream.set_write_timeout(Some(LOOK))
    }

    fn frame(&mut self, msg_type: &str, body: &str) -> Vec<u8> {
        self.number += 1;
        let (name, number) = (self.state.name, self.number);
        sealed(&format!("35={msg_type}|34={number}|49={name}|56=US|52={}|{body}", now()))
    }
}

/// Returns the body of a report that an order is accepted.
fn report(id: &str, exec_type: &str, qty: &str) -> String {
    format!("37=V{id}|11={id}|17=E{id}|150={exec_type}|39=0|55=BETA|54=1|38={qty}|14=0|151={qty}|6=0|")
}
