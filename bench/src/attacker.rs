//! Misbehaving clients, each kind on its own, at a bounded rate, so that the cost they cause on
//! their own core is not mistaken for the cost they cause to others.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pitlane_engine::index::index_usize;
use pitlane_sys::affinity::pin_current_thread;

use crate::fix::append_message;
use crate::rng::Xoshiro256;

/// Connections that an attack keeps open, for the kinds that hold some.
const HELD_CONNECTIONS: usize = 100;
/// Bytes of one read.
const READ_BYTES: usize = 64 * 1_024;
/// Timeout for connects, reads and writes.
const TIMEOUT: Duration = Duration::from_secs(2);
const GET: &[u8] = b"GET /rest/position HTTP/1.1\r\nHost: localhost\r\n\r\n";
const CONNECT: &[u8] = b"CONNECT\naccept-version:1.2\nhost:localhost\n\n\0";
/// Subscribes to prices only. With order topics, every order of the measured client would be sent a
/// hundred times, which is no bounded attack.
const SUBSCRIBE: &[u8] = b"SUBSCRIBE\nid:1\ndestination:/topic/tick.*\n\n\0";
const UPGRADE: &[u8] =
    b"GET /stomp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Addresses of the service under attack.
#[derive(Clone, Copy, Debug)]
pub struct AttackTargets {
    pub fix: SocketAddr,
    pub stomp: SocketAddr,
    pub http: SocketAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    FixGarbage,
    FixLogons,
    StompSlowReaders,
    StompSubscribers,
    StompMalformed,
    HttpSlowHeads,
    RestFlood,
    Connections,
    WebSocketJunk,
}

impl Attack {
    pub const ALL: [Attack; 9] = [
        Attack::FixGarbage,
        Attack::FixLogons,
        Attack::StompSlowReaders,
        Attack::StompSubscribers,
        Attack::StompMalformed,
        Attack::HttpSlowHeads,
        Attack::RestFlood,
        Attack::Connections,
        Attack::WebSocketJunk,
    ];

    pub fn description(self) -> &'static str {
        match self {
            Attack::FixGarbage => "FIX connections that send garbage",
            Attack::FixLogons => "FIX logons that disconnect at once",
            Attack::StompSlowReaders => "100 STOMP subscribers of prices that do not read",
            Attack::StompSubscribers => "100 STOMP subscribers of prices that read everything",
            Attack::StompMalformed => "malformed STOMP frames",
            Attack::HttpSlowHeads => "100 HTTP heads, one byte at a time",
            Attack::RestFlood => "REST requests",
            Attack::Connections => "connections to every listener, closed at once",
            Attack::WebSocketJunk => "WebSockets that send junk",
        }
    }

    /// Returns whether the attack keeps connections open, beside what it does at its rate.
    fn keeps_connections(self) -> bool {
        matches!(self, Attack::StompSlowReaders | Attack::StompSubscribers | Attack::HttpSlowHeads)
    }
}

/// One attack, running in a thread of its own on one core.
pub struct Attacker {
    stop: Arc<AtomicBool>,
    actions: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Attacker {
    pub fn start(attack: Attack, targets: AttackTargets, rate: u64, core: Option<usize>) -> Attacker {
        let (stop, actions) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counter) = (stop.clone(), actions.clone());
        let thread = thread::spawn(move || {
            core.into_iter().for_each(|core| _ = pin_current_thread(core));
            let mut client = AttackClient::new(attack, targets);
            let begin = Instant::now();
            let gap = Duration::from_nanos(1_000_000_000 / rate.max(1));
            let mut nth = 0;
            while !stopped.load(Ordering::Relaxed) {
                // The rate is an upper bound: missed acts are not made up for.
                client.perform(nth);
                counter.fetch_add(1, Ordering::Relaxed);
                nth += 1;
                thread::sleep(
                    (begin + gap * u32::try_from(nth).unwrap_or(u32::MAX))
                        .saturating_duration_since(Instant::now()),
                );
            }
        });
        Attacker { stop, actions, thread: Some(thread) }
    }

    /// Returns the number of acts so far.
    pub fn actions(&self) -> u64 {
        self.actions.load(Ordering::Relaxed)
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

struct AttackClient {
    attack: Attack,
    targets: AttackTargets,
    held: Vec<TcpStream>,
    rng: Xoshiro256,
    buffer: Vec<u8>,
}

impl AttackClient {
    fn new(attack: Attack, targets: AttackTargets) -> AttackClient {
        let mut client = AttackClient {
            attack,
            targets,
            held: Vec::new(),
            rng: Xoshiro256::seeded(1),
            buffer: vec![0; READ_BYTES],
        };
        if attack.keeps_connections() {
            client.held = (0..HELD_CONNECTIONS).filter_map(|_| client.open_held().ok()).collect();
        }
        client
    }

    /// Performs one act. A client that was disconnected or rejected tries again with the next act,
    /// as real attackers do, so errors are ignored.
    fn perform(&mut self, nth: u64) {
        let AttackTargets { fix, stomp, http } = self.targets;
        let _ = match self.attack {
            Attack::FixGarbage => {
                let noise: Vec<u8> = (0..200).map(|_| self.rng.byte()).collect();
                send_once(fix, &noise)
            }
            Attack::FixLogons => send_once(fix, &logon(nth)),
            Attack::StompMalformed => {
                send_once(stomp, b"CONNECT\naccept-version:1.2\nhost:x\n\n\0SEND\nno header\n\n\0")
            }
            Attack::WebSocketJunk => {
                let noise: Vec<u8> = (0..100).map(|_| self.rng.byte()).collect();
                send_once(http, &[UPGRADE, &noise].concat())
            }
            Attack::Connections => connect([fix, stomp, http][index_usize(nth) % 3]).map(drop),
            Attack::RestFlood => self.send_request(),
            Attack::StompSlowReaders | Attack::StompSubscribers | Attack::HttpSlowHeads => {
                self.advance_held(nth)
            }
        };
    }

    /// Sends one request on the connection that stays open.
    fn send_request(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            self.held.push(connect(self.targets.http)?);
        }
        let response = (|| {
            self.held[0].write_all(GET)?;
            self.held[0].read(&mut self.buffer)
        })();
        if !response.is_ok_and(|count| count > 0) {
            self.held.clear();
        }
        Ok(())
    }

    /// Advances one of the held connections, and reopens it if the service closed it.
    fn advance_held(&mut self, nth: u64) -> io::Result<()> {
        let at = index_usize(nth) % HELD_CONNECTIONS;
        if at >= self.held.len() {
            let connection = self.open_held()?;
            self.held.push(connection);
            return Ok(());
        }
        let is_open = match self.attack {
            Attack::HttpSlowHeads => self.held[at].write_all(b"x").is_ok(),
            // Its receive window stays full; only a write shows whether the connection is still
            // open.
            Attack::StompSlowReaders => self.held[at].write_all(b"\n").is_ok(),
            Attack::StompSubscribers
            | Attack::FixGarbage
            | Attack::FixLogons
            | Attack::StompMalformed
            | Attack::RestFlood
            | Attack::Connections
            | Attack::WebSocketJunk => match self.held[at].read(&mut self.buffer) {
                Ok(count) => count > 0,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            },
        };
        if !is_open {
            self.held[at] = self.open_held()?;
        }
        Ok(())
    }

    /// Opens a connection of the kind that stays open.
    fn open_held(&self) -> io::Result<TcpStream> {
        let (address, payload) = if self.attack == Attack::HttpSlowHeads {
            (self.targets.http, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ".to_vec())
        } else {
            (self.targets.stomp, [CONNECT, SUBSCRIBE].concat())
        };
        let mut stream = connect(address)?;
        stream.write_all(&payload)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// Connects, sends the bytes and disconnects.
fn send_once(address: SocketAddr, payload: &[u8]) -> io::Result<()> {
    connect(address)?.write_all(payload)
}

/// Returns a Logon under one of eight names, none of which is the measured client's.
fn logon(nth: u64) -> Vec<u8> {
    let time = crate::fix_wire::fix_timestamp();
    let name = 100 + nth % 8;
    let body =
        format!("35=A\x0134=1\x0149=BENCH{name}\x0156=PITLANE\x0152={time}\x0198=0\x01108=30\x01141=Y\x01");
    let mut bytes = Vec::new();
    append_message(&body, &mut bytes);
    bytes
}
