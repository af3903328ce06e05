//! The real http thread with real shards, which a thread steps; and a client that sends exact
//! bytes.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};

use pitlane_auth::{Auth, AuthSettings};
use pitlane_config::Durability;
use pitlane_config::refdata;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, ShardEnd, mesh};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::worker::Worker;
use pitlane_http::{
    HttpEvent, HttpParts, HttpServer, HttpSettings, Numbers, Remote, ServicePhase, ServiceStatus,
};
use pitlane_net::tls::Tls;
use pitlane_runtime::clock::Clock;
use pitlane_runtime::latency_buckets::LatencyBuckets;
use pitlane_runtime::metrics::{Registry, StageReport, StageSummary, StageTotal};
use pitlane_runtime::wakeup::Wakeup;
pub(crate) use pitlane_testkit::http_client::{HttpClient, Response};

pub(crate) const SHARDS: u8 = 2;

pub(crate) struct ServerPlan {
    pub settings: HttpSettings,
    pub tls: Option<Arc<Tls>>,
    pub depths: Depths,
    /// Whether the shards are polled.
    pub alive: bool,
}

impl Default for ServerPlan {
    fn default() -> ServerPlan {
        let settings =
            HttpSettings { http: Some(([127, 0, 0, 1], 0).into()), https: None, ..HttpSettings::default() };
        ServerPlan { settings, tls: None, depths: Depths::default(), alive: true }
    }
}

pub(crate) struct HttpTestServer {
    pub http: SocketAddr,
    pub https: Option<SocketAddr>,
    pub remote: Remote,
    pub service_status: Arc<ServiceStatus>,
    pub news: Receiver<HttpEvent>,
    /// A second port, for orders of the test.
    pub trader: PortEnd,
    pub shard_wakeup: Wakeup,
    threads: Vec<JoinHandle<()>>,
    over: Arc<AtomicBool>,
}

impl HttpTestServer {
    pub(crate) fn start() -> HttpTestServer {
        HttpTestServer::with(ServerPlan::default())
    }

    /// Starts a server that is ready, if its shards are polled.
    pub(crate) fn with(plan: ServerPlan) -> HttpTestServer {
        let reference = Arc::new(refdata::shipped().unwrap());
        let (mut ports, ends) = mesh(&[PortClass::Control, PortClass::Client], SHARDS, plan.depths);
        let work = |end: ShardEnd| {
            Worker::new(Shard::new(end.id(), SHARDS, reference.clone(), ShardSettings::default()), end)
        };
        let workers: Vec<_> = ends.into_iter().map(work).collect();
        let (shards, shard_wakeup) = thread_wakeup();
        let remote = Remote::new();
        let registry = Arc::new(Registry::new(SHARDS));
        let service_status =
            Arc::new(ServiceStatus::new(Clock::new().now(), Durability::None, vec![("journal", 1)]));
        let (event_sender, news) = mpsc::channel();
        let trader = ports.pop().unwrap();
        let parts = HttpParts {
            running_days: Vec::new(),
            port: ports.pop().unwrap(),
            wakeups: vec![shard_wakeup.clone(); SHARDS as usize],
            reference,
            remote: remote.clone(),
            registry: registry.clone(),
            service_status: service_status.clone(),
            stages: Box::new(|| StageReport { summaries: vec![stage()], totals: vec![stage_total()] }),
            report: None,
            auth_client: Auth::open(AuthSettings::off()).unwrap().client(remote.wakeup().clone()),
            notification_channels: Vec::new(),
            log: None,
            audit: None,
            numbers: Numbers::only(IdBlock { next: 1, end: 1 << 32 }),
            reloads: None,
            tls: plan.tls,
            clock: Clock::new(),
            recorder: None,
            remote_strategies: None,
            cluster: None,
            history: None,
            send_event: Box::new(move |news| event_sender.send(news).unwrap_or_default()),
        };
        let http = HttpServer::bind(plan.settings, parts).unwrap();
        let address =
            |name| http.listeners().iter().find(|listener| listener.name == name).map(|found| found.address);
        let (plain, tls) = (address("http"), address("https"));
        service_status.set_listeners(http.listeners().to_vec());
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = vec![thread::spawn(move || http.run().unwrap())];
        if plan.alive {
            let (over, wakeup) = (over.clone(), shard_wakeup.clone());
            let http_wakeup = remote.wakeup().clone();
            threads
                .push(thread::spawn(move || step(workers, &shards, &wakeup, &http_wakeup, &registry, &over)));
        }
        let server = HttpTestServer {
            http: plain.expect("every server of these tests has it"),
            https: tls,
            remote,
            service_status,
            news,
            trader,
            shard_wakeup,
            threads,
            over,
        };
        if plan.alive {
            assert_eq!(server.news.recv(), Ok(HttpEvent::Complete));
            server.service_status.set_phase(ServicePhase::Running);
        }
        server
    }

    /// From now on no shard takes a command.
    pub(crate) fn stop_shards(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.shard_wakeup.wake();
        let shards = self.threads.pop().expect("the shards live");
        shards.join().unwrap();
    }

    pub(crate) fn connect(&self) -> HttpClient {
        HttpClient::new(TcpStream::connect(self.http).unwrap())
    }

    /// Sends one request on its own connection.
    pub(crate) fn ask(&self, request: &str) -> Response {
        let mut client = self.connect();
        client.send(request);
        client.receive(request.starts_with("HEAD"))
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }
}

impl Drop for HttpTestServer {
    fn drop(&mut self) {
        self.remote.end();
        self.over.store(true, Ordering::Relaxed);
        self.shard_wakeup.wake();
        self.threads
            .drain(..)
            .for_each(|thread| thread.join().unwrap_or_else(|_| eprintln!("a thread failed")));
    }
}

pub(crate) fn stage() -> StageSummary {
    let thread = "shard-0".to_string();
    StageSummary { thread, stage: "apply", count: 9, p50: 1, p90: 2, p99: 3, p999: 4, max: 1_000_000_007 }
}

/// Returns the total of the same stage.
fn stage_total() -> StageTotal {
    let mut buckets = LatencyBuckets::default();
    buckets.add(400, 7);
    StageTotal { thread: "shard-0".to_string(), stage: "apply", buckets }
}

/// A wake-up for the thread that binds to it.
fn thread_wakeup() -> (Arc<OnceLock<Thread>>, Wakeup) {
    let place = Arc::new(OnceLock::<Thread>::new());
    let sleeper = place.clone();
    let wakeup = Wakeup::new(move || {
        if let Some(thread) = sleeper.get() {
            thread.unpark();
        }
    });
    (place, wakeup)
}

fn step(
    mut workers: Vec<Worker>,
    place: &OnceLock<Thread>,
    wakeup: &Wakeup,
    http: &Wakeup,
    registry: &Registry,
    over: &AtomicBool,
) {
    let mut clock = Clock::new();
    place.set(thread::current()).unwrap();
    let mut work = |workers: &mut Vec<Worker>| {
        let now = clock.now();
        let mut work = 0;
        for (worker, meter) in workers.iter_mut().zip(&registry.shards) {
            work += worker.poll(now);
            meter.publish(&worker.counts());
        }
        if work > 0 {
            http.wake();
        }
        work
    };
    while !over.load(Ordering::Relaxed) {
        if work(&mut workers) > 0 {
            continue;
        }
        wakeup.prepare_sleep();
        // A stalled shard has work that it cannot do; then the thread polls again instead of
        // parking.
        let stalled = workers.iter().any(Worker::has_work);
        if work(&mut workers) == 0 && !over.load(Ordering::Relaxed) && !stalled {
            thread::park();
        }
        wakeup.finish_sleep();
    }
}
