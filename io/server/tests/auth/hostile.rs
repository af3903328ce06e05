//! Many hostile sessions of every protocol at once, with and without credentials, beside a
//! well-behaved client of each protocol: none of its requests is refused. `PITLANE_HOSTILE=1000`
//! makes it a thousand of each kind, as `make campaign` does.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pitlane_engine::index::index_u8;
use pitlane_testkit::loopback::connect_from;
use pitlane_testkit::secured_service::{PASSWORD, SecuredService, basic, bearer};

use crate::guesses::{http, over_fix, over_stomp, over_websocket};

/// Sessions of each kind in the daily run.
const SESSIONS: u64 = 60;
/// Connections of one attacker that stay open while it opens the next.
const HELD_MAX: usize = 100;
/// The attack and the time without it take turns so often: what else disturbs the machine then
/// disturbs both alike.
const TURNS: u64 = 10;
/// Least number of rounds of the well-behaved clients in a turn without an attack.
const QUIET_ROUNDS_MIN: u64 = 10;
/// After an attack, until the service has closed its sessions.
const SETTLING: Duration = Duration::from_millis(50);
/// Between two rounds. Without a pause the clients would use up the ports of their address.
const ROUND_PAUSE: Duration = Duration::from_millis(2);
/// Added to the nice values of the well-behaved clients and, beyond the limit, of the attackers.
const GOOD_PRIORITY: i32 = -10;
const LEAST_PRIORITY: i32 = 40;
/// The last part of 127.0.0.x: the well-behaved clients, and the first of the attackers.
const GOOD: u8 = 1;
const FIRST_ATTACKER: u8 = 20;

/// Bytes of one hostile session; it reads nothing until it is closed.
struct HostileSession {
    listener: &'static str,
    text: fn(&SecuredService, u64) -> Vec<u8>,
}

const ATTACKS: [HostileSession; 10] = [
    HostileSession { listener: "fix", text: |_, _| Vec::new() },
    HostileSession { listener: "fix", text: |_, nth| logon("CLIENT1", "admin", &format!("guess {nth}")) },
    HostileSession { listener: "fix", text: |_, nth| logon(&format!("STRANGER{nth}"), "admin", PASSWORD) },
    HostileSession { listener: "stomp", text: |_, nth| connect("trade", &format!("guess {nth}")) },
    HostileSession { listener: "stomp", text: |secured, _| watch_all(&secured.token[0]) },
    HostileSession { listener: "stomp", text: |_, nth| vec![(nth & 0xff) as u8; 300] },
    HostileSession {
        listener: "http",
        text: |_, _| b"GET /rest/position HTTP/1.1\r\nHost: x\r\nX-Slow: ".to_vec(),
    },
    HostileSession { listener: "http", text: |_, nth| get(&basic("admin", &format!("guess {nth}"))) },
    HostileSession { listener: "http", text: |secured, _| get(&bearer(&secured.token[0])).repeat(20) },
    HostileSession { listener: "http", text: |_, _| upgrade() },
];

fn logon(sender: &str, login: &str, password: &str) -> Vec<u8> {
    use pitlane_testkit::fix_client::{now, sealed};
    let head = format!("35=A|34=1|49={sender}|56=PITLANE|52={}|", now());
    sealed(&format!("{head}98=0|108=30|141=Y|553={login}|554={password}|"))
}

fn connect(login: &str, passcode: &str) -> Vec<u8> {
    format!("CONNECT\naccept-version:1.2\nhost:x\nlogin:{login}\npasscode:{passcode}\n\n\0").into_bytes()
}

fn watch_all(token: &str) -> Vec<u8> {
    let subscribe = b"SUBSCRIBE\nid:1\ndestination:/topic/>\n\n\0";
    [&connect("read-robot", token)[..], subscribe].concat()
}

fn get(headers: &str) -> Vec<u8> {
    format!("GET /rest/execution/order HTTP/1.1\r\nHost: x\r\n{headers}\r\n").into_bytes()
}

fn upgrade() -> Vec<u8> {
    let head = "GET /stomp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
    let key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    [head.as_bytes(), key.as_bytes(), &[0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]].concat()
}

impl HostileSession {
    /// Opens so many sessions from its own address, to the service or to `sink`. A refused
    /// connection is expected.
    fn run(&self, secured: &SecuredService, sink: Option<SocketAddr>, address: u8, sessions: u64) {
        let target = sink.unwrap_or_else(|| secured.at(self.listener));
        let mut held: VecDeque<TcpStream> = VecDeque::new();
        for nth in 0..sessions {
            let mut socket = connect_from(address, target);
            let _ = socket.write_all(&(self.text)(secured, nth));
            held.push_back(socket);
            if held.len() > HELD_MAX
                && let Some(mut oldest) = held.pop_front()
            {
                let _ = oldest.set_nonblocking(true);
                let _ = oldest.read(&mut [0; 4096]);
            }
        }
    }
}

/// A well-behaved client: its name, and one request on a connection of its own, which must succeed.
type GoodClient = (&'static str, fn(&SecuredService) -> bool);

const GOOD_CLIENTS: [GoodClient; 7] = [
    ("REST with a token", |secured| is_answered(secured, &bearer(&secured.token[2]))),
    ("REST with a password", |secured| is_answered(secured, &basic("trade", PASSWORD))),
    ("STOMP with a password", |secured| over_stomp(secured, GOOD, "trade", PASSWORD)),
    ("STOMP with a token", |secured| over_stomp(secured, GOOD, "trade-robot", &secured.token[1])),
    ("STOMP over WebSocket", |secured| over_websocket(secured, GOOD, "read", PASSWORD)),
    ("FIX", |secured| over_fix(secured, GOOD, "trade", PASSWORD)),
    ("health without a login", |secured| http(secured, GOOD, "GET", "/health/ready", "").status == 200),
];

fn is_answered(secured: &SecuredService, headers: &str) -> bool {
    http(secured, GOOD, "GET", "/rest/execution/order", headers).status == 200
}

/// Durations of each well-behaved client.
#[derive(Default)]
struct GoodRounds([Vec<Duration>; GOOD_CLIENTS.len()]);

impl GoodRounds {
    /// Sends one request of each client, then pauses.
    fn add(&mut self, secured: &SecuredService) {
        for ((name, request), durations) in GOOD_CLIENTS.iter().zip(&mut self.0) {
            let begun = Instant::now();
            assert!(request(secured), "{name}");
            durations.push(begun.elapsed());
        }
        std::thread::sleep(ROUND_PAUSE);
    }

    /// Returns the 99th percentile of each client.
    fn worst(mut self) -> [Duration; GOOD_CLIENTS.len()] {
        self.0.each_mut().map(|durations| {
            durations.sort();
            durations[(durations.len() - 1) * 99 / 100]
        })
    }
}

/// Sends requests of the well-behaved clients while all attackers run.
fn add_under_attack(
    rounds: &mut GoodRounds,
    secured: &SecuredService,
    sink: Option<SocketAddr>,
    sessions: u64,
) {
    let running = AtomicU64::new(ATTACKS.len() as u64);
    std::thread::scope(|scope| {
        for (nth, attack) in ATTACKS.iter().enumerate() {
            let running = &running;
            scope.spawn(move || {
                // An attacker on another host would not use the processors of this one.
                let _ = rustix::process::nice(LEAST_PRIORITY);
                attack.run(secured, sink, FIRST_ATTACKER + index_u8(nth), sessions);
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        loop {
            rounds.add(secured);
            if running.load(Ordering::Relaxed) == 0 {
                break;
            }
        }
    });
    std::thread::sleep(SETTLING);
}

/// Accepts connections and closes them, on a thread that lasts as long as the process.
fn start_sink() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    address
}

#[test]
fn hostile_sessions_of_every_protocol_keep_no_good_client_out() {
    let sessions = std::env::var("PITLANE_HOSTILE").map_or(SESSIONS, |text| text.parse().unwrap());
    let secured = SecuredService::start("hostile-crowd", &[]);
    // A client on another host would not wait for the processors of this one. Where this is not
    // allowed, the durations contain these waits.
    let _ = rustix::process::nice(GOOD_PRIORITY);
    let sink = start_sink();
    let [mut quiet, mut elsewhere, mut attacked] = [(); 3].map(|()| GoodRounds::default());
    for _ in 0..TURNS {
        let sessions = sessions.div_ceil(TURNS);
        for _ in 0..sessions.max(QUIET_ROUNDS_MIN) {
            quiet.add(&secured);
        }
        // The same attackers at another port, which shows what they cost as programs on this host.
        add_under_attack(&mut elsewhere, &secured, Some(sink), sessions);
        add_under_attack(&mut attacked, &secured, None, sessions);
    }
    println!("{sessions} hostile sessions of each of {} kinds; 99th percentiles:", ATTACKS.len());
    println!("{:24} {:>12} {:>12} {:>12}", "", "quiet", "elsewhere", "attacked");
    let columns = GOOD_CLIENTS.iter().zip(quiet.worst()).zip(elsewhere.worst()).zip(attacked.worst());
    for ((((name, _), quiet), elsewhere), attacked) in columns {
        println!("{name:24} {quiet:>12.1?} {elsewhere:>12.1?} {attacked:>12.1?}");
    }
    secured.end();
}
