//! All clients of the platform at once: a FIX client that keeps its sequence numbers, a REST client
//! that repeats a request until it is answered, and STOMP subscribers. Each has its own thread for
//! a process, and remembers across processes what it received.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::ears::{Ear, Over};
use crate::findings::{Findings, Kind};
use crate::fix_trader::FixTrader;
use crate::rest_trader::RestTrader;
use crate::service::Service;
use crate::told::Told;

/// Time without a message after which a client opens a new connection.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Addresses of a service.
#[derive(Clone, Copy, Debug)]
pub struct Doors {
    pub http: SocketAddr,
    pub stomp: SocketAddr,
    pub fix: SocketAddr,
}

impl Doors {
    pub fn of(service: &Service) -> Doors {
        let address = |name: &str| {
            let word =
                service.ready.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            word.unwrap_or_else(|| panic!("there is no {name} in {}", service.ready))
                .parse()
                .expect("an address")
        };
        Doors { http: address("http"), stomp: address("stomp"), fix: address("fix") }
    }
}

pub fn wire(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, SILENCE_MAX)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

pub struct People {
    pub fix: FixTrader,
    pub rest: RestTrader,
    pub ears: Vec<Ear>,
}

impl People {
    pub fn new(seed: u64) -> People {
        People {
            fix: FixTrader::new(seed),
            rest: RestTrader::new(seed),
            ears: vec![Ear::new(Over::Tcp), Ear::new(Over::WebSocket)],
        }
    }

    /// Returns what each client received.
    pub fn told(&self) -> Vec<&Told> {
        let mut told = vec![&self.rest.told, &self.fix.told];
        told.extend(self.ears.iter().map(|ear| &ear.told));
        told
    }

    /// Marks everything they received as checked.
    pub fn are_known(&mut self) {
        self.rest.told.is_known();
        self.fix.told.is_known();
        self.ears.iter_mut().for_each(|ear| ear.told.is_known());
    }

    /// Starts all clients; each action is reported to the owner of the crowd.
    pub fn go(self, doors: Doors) -> Crowd {
        let over = Arc::new(AtomicBool::new(false));
        let (bell, acts) = channel();
        let People { mut fix, mut rest, ears } = self;
        let (fix_over, fix_bell) = (over.clone(), bell.clone());
        let fix = thread::spawn(move || {
            again(&fix_over, || fix.session(&doors, &fix_bell));
            fix
        });
        let rest_over = over.clone();
        let rest = thread::spawn(move || {
            again(&rest_over, || rest.session(&doors, &bell));
            rest
        });
        let ears = ears.into_iter().map(|mut ear| {
            let over = over.clone();
            thread::spawn(move || {
                again(&over, || ear.session(&doors));
                ear
            })
        });
        Crowd { fix, rest, ears: ears.collect(), acts, over }
    }
}

/// Opens connection after connection until the process is over or the service is down.
fn again(over: &AtomicBool, mut session: impl FnMut() -> io::Result<()>) {
    loop {
        let ended = session();
        let is_gone = ended.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if is_gone || over.load(Ordering::Acquire) {
            return;
        }
    }
}

/// Clients at work.
pub struct Crowd {
    fix: JoinHandle<FixTrader>,
    rest: JoinHandle<RestTrader>,
    ears: Vec<JoinHandle<Ear>>,
    acts: Receiver<()>,
    over: Arc<AtomicBool>,
}

impl Crowd {
    /// Waits until they have done so many more actions. False: they ended before.
    pub fn wait(&self, acts: u64) -> bool {
        (0..acts).all(|_| self.acts.recv().is_ok())
    }

    /// Waits for a time.
    pub fn idle(&self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if self.acts.recv_timeout(left).is_err() {
                return;
            }
        }
    }

    /// From now on a connection that ends is the last.
    pub fn is_over(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Waits for all clients to end.
    pub fn home(self, seed: u64, findings: &mut Findings) -> People {
        let mut people = People::new(seed);
        let mut failed = |who: &str| findings.add(Kind::Broken, format!("{who} gave up, see above"));
        match self.fix.join() {
            Ok(fix) => people.fix = fix,
            Err(_) => failed("the FIX client"),
        }
        match self.rest.join() {
            Ok(rest) => people.rest = rest,
            Err(_) => failed("the REST client"),
        }
        for (at, ear) in self.ears.into_iter().enumerate() {
            match ear.join() {
                Ok(ear) => people.ears[at] = ear,
                Err(_) => failed("a listener"),
            }
        }
        for ear in &mut people.ears {
            for frame in ear.twice.drain(..) {
                findings.add(Kind::Doubled, format!("heard twice by STOMP: {frame}"));
            }
        }
        people
    }
}
