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

use pitlane_testkit::service::ServiceProcess;

use crate::findings::{ChaosFindings, FindingKind};
use crate::fix_trader::FixTrader;
use crate::received::ReceivedState;
use crate::rest_trader::RestTrader;
use crate::subscribers::{StatusSubscriber, SubscriberTransport};

/// Time without a message after which a client opens a new connection.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Addresses of a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceAddresses {
    pub http: SocketAddr,
    pub stomp: SocketAddr,
    pub fix: SocketAddr,
}

impl ServiceAddresses {
    pub(crate) fn of(service: &ServiceProcess) -> ServiceAddresses {
        let address = |name: &str| {
            let part =
                service.ready.split_whitespace().find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            part.unwrap_or_else(|| panic!("there is no {name} in {}", service.ready))
                .parse()
                .expect("an address")
        };
        ServiceAddresses { http: address("http"), stomp: address("stomp"), fix: address("fix") }
    }
}

pub(crate) fn wire(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, SILENCE_MAX)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

pub(crate) struct Traders {
    pub fix: FixTrader,
    pub rest: RestTrader,
    pub subscribers: Vec<StatusSubscriber>,
}

impl Traders {
    pub(crate) fn new(seed: u64) -> Traders {
        Traders {
            fix: FixTrader::new(seed),
            rest: RestTrader::new(seed),
            subscribers: vec![
                StatusSubscriber::new(SubscriberTransport::Tcp),
                StatusSubscriber::new(SubscriberTransport::WebSocket),
            ],
        }
    }

    /// Returns what each client received.
    pub(crate) fn received(&self) -> Vec<&ReceivedState> {
        let mut received = vec![&self.rest.received, &self.fix.received];
        received.extend(self.subscribers.iter().map(|subscriber| &subscriber.received));
        received
    }

    /// Marks everything they received as checked.
    pub(crate) fn are_known(&mut self) {
        self.rest.received.is_known();
        self.fix.received.is_known();
        self.subscribers.iter_mut().for_each(|subscriber| subscriber.received.is_known());
    }

    /// Starts all clients; each action is reported to the owner of the crowd.
    pub(crate) fn go(self, addresses: ServiceAddresses) -> RunningClients {
        let over = Arc::new(AtomicBool::new(false));
        let (stop_wakeup, acts) = channel();
        let Traders { mut fix, mut rest, subscribers } = self;
        let (fix_over, fix_wakeup) = (over.clone(), stop_wakeup.clone());
        let fix = thread::spawn(move || {
            again(&fix_over, || fix.session(&addresses, &fix_wakeup));
            fix
        });
        let rest_over = over.clone();
        let rest = thread::spawn(move || {
            again(&rest_over, || rest.session(&addresses, &stop_wakeup));
            rest
        });
        let subscribers = subscribers.into_iter().map(|mut subscriber| {
            let over = over.clone();
            thread::spawn(move || {
                again(&over, || subscriber.session(&addresses));
                subscriber
            })
        });
        RunningClients { fix, rest, subscribers: subscribers.collect(), acts, over }
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
pub(crate) struct RunningClients {
    fix: JoinHandle<FixTrader>,
    rest: JoinHandle<RestTrader>,
    subscribers: Vec<JoinHandle<StatusSubscriber>>,
    acts: Receiver<()>,
    over: Arc<AtomicBool>,
}

impl RunningClients {
    /// Waits until they have done so many more actions. False: they ended before.
    pub(crate) fn wait(&self, acts: u64) -> bool {
        (0..acts).all(|_| self.acts.recv().is_ok())
    }

    /// Waits for a time.
    pub(crate) fn idle(&self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if self.acts.recv_timeout(left).is_err() {
                return;
            }
        }
    }

    /// From now on a connection that ends is the last.
    pub(crate) fn is_over(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Waits for all clients to end.
    pub(crate) fn home(self, seed: u64, findings: &mut ChaosFindings) -> Traders {
        let mut traders = Traders::new(seed);
        let mut failed = |who: &str| findings.add(FindingKind::Broken, format!("{who} gave up, see above"));
        match self.fix.join() {
            Ok(fix) => traders.fix = fix,
            Err(_) => failed("the FIX client"),
        }
        match self.rest.join() {
            Ok(rest) => traders.rest = rest,
            Err(_) => failed("the REST client"),
        }
        for (at, subscriber) in self.subscribers.into_iter().enumerate() {
            match subscriber.join() {
                Ok(subscriber) => traders.subscribers[at] = subscriber,
                Err(_) => failed("a listener"),
            }
        }
        for subscriber in &mut traders.subscribers {
            for frame in subscriber.twice.drain(..) {
                findings.add(FindingKind::Doubled, format!("received twice over STOMP: {frame}"));
            }
        }
        traders
    }
}
