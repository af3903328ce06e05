//! Everybody who uses the platform at once: a FIX client that keeps its numbers, a REST client that asks again until it is answered,
//! and those who listen. Each has a thread of its own for a life, and remembers over lives what it was told.

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

/// Who hears nothing for so long begins a new connection.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Where a service listens.
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

    /// What anybody was told.
    pub fn told(&self) -> Vec<&Told> {
        let mut told = vec![&self.rest.told, &self.fix.told];
        told.extend(self.ears.iter().map(|ear| &ear.told));
        told
    }

    /// All that they were told was looked at.
    pub fn are_known(&mut self) {
        self.rest.told.is_known();
        self.fix.told.is_known();
        self.ears.iter_mut().for_each(|ear| ear.told.is_known());
    }

    /// All of them begin; each act is told to whoever holds the crowd.
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

/// Connection after connection until the life is over or nobody listens any more.
fn again(over: &AtomicBool, mut session: impl FnMut() -> io::Result<()>) {
    loop {
        let ended = session();
        let is_gone = ended.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if is_gone || over.load(Ordering::Acquire) {
            return;
        }
    }
}

/// People at work.
pub struct Crowd {
    fix: JoinHandle<FixTrader>,
    rest: JoinHandle<RestTrader>,
    ears: Vec<JoinHandle<Ear>>,
    acts: Receiver<()>,
    over: Arc<AtomicBool>,
}

impl Crowd {
    /// Waits until they have done so much more. False: they have ended before.
    pub fn wait(&self, acts: u64) -> bool {
        (0..acts).all(|_| self.acts.recv().is_ok())
    }

    /// Lets so much time pass.
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

    /// Waits for everybody.
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
