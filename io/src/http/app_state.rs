//! State that all handlers share: one per http thread, in plain memory.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use pitlane_engine::command::CommandKind;
use pitlane_engine::directive::Directive;
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::text::write_u64;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::rest::{ConfirmationVO, SwitchStateVO};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::admission::Admission;
use super::audit::AuditActs;
use super::cache::Cache;
use super::cached_list::{CachedList, Version};
use super::cluster::Cluster;
use super::guard::Rules;
use super::login::LoginQueue;
use super::meter::Meter;
use super::notification_hub::NotificationHub;
use super::openapi;
use super::page::Page;
use super::problem::Problem;
use super::rate_limit::Limit;
use super::readers::ListReaders;
use super::reference::RefDataCache;
use super::remote::Remote;
use super::remote_strategies::RemoteStrategies;
use super::response::Answer;
use super::routes::Routes;
use super::settings::HttpSettings;
use super::shard_client::{Outcome, PREFIX, Pending, ShardClient, ShardClientSettings};
use super::status::ServiceStatus;
use super::streamed_list::Turns;
use super::websocket_broker::WebSocketBroker;
use super::{HttpEvent, Parts};
use crate::clock::Clock;
use crate::metrics::{Registry, StageSummary};
use crate::notifications::Notification;
use crate::tls::Tls;

/// The session of commands that no order desk sends.
const SESSION: u16 = 0;

pub struct AppState {
    pub settings: HttpSettings,
    pub floor: ShardClient,
    pub hall: Rc<WebSocketBroker>,
    pub switchboard: NotificationHub,
    /// Strategies in processes of their own; `None` if there are none.
    pub outposts: Option<Rc<RemoteStrategies>>,
    /// The other servers; `None` if this server is alone.
    pub cluster: Option<Rc<Cluster>>,
    pub rules: Rules,
    pub routes: Routes,
    pub page: Page,
    pub admission: Admission,
    pub reception: LoginQueue,
    /// The response of `/openapi.json`.
    pub description: Bytes,
    pub acts: AuditActs,
    pub peers: RefCell<Limit<IpAddr>>,
    pub logins: RefCell<Limit<Arc<str>>>,
    pub meter: Meter,
    pub registry: Arc<Registry>,
    pub standing: Arc<ServiceStatus>,
    pub tls: Option<Arc<Tls>>,
    pub tell: Box<dyn Fn(HttpEvent) + Send>,
    stages: RefCell<Box<dyn FnMut() -> Vec<StageSummary> + Send>>,
    clock: RefCell<Clock>,
    remote: Remote,
    /// Whether this thread is in low-power mode and polls events only now and then.
    pub rests: Cell<bool>,
    /// Notified when connections are to finish.
    pub leaving: Notify,
    requests: Cell<u64>,
    request_prefix: String,
    shelf: RefCell<Rc<RefDataCache>>,
    pub cache: Cache,
    /// The cached list of all open orders, where they are few.
    pub open_orders: CachedList,
    /// Turns of the readers of long lists.
    pub turns: Turns,
    pub readers: ListReaders,
}

impl AppState {
    pub fn new(settings: HttpSettings, parts: Parts) -> AppState {
        let Parts {
            port,
            bells,
            reference,
            remote,
            registry,
            standing,
            stages,
            report,
            seat,
            posts,
            log,
            pen,
            numbers,
            rereads,
            tls,
            clock,
            recorder,
            outposts,
            cluster,
            tell,
        } = parts;
        let request_prefix = format!("{:x}-", standing.started().0 / NS_PER_MS);
        let shelf = RefCell::new(Rc::new(RefDataCache::new(reference.clone())));
        let prefix = cluster.as_ref().map_or(PREFIX, |cluster| cluster.id_prefix());
        let room = ShardClientSettings { view: settings.view, orders_max: settings.orders_max, prefix };
        let (broker, bell) = (settings.broker.clone(), remote.bell().clone());
        let began = clock.started_at();
        let hall =
            Rc::new(WebSocketBroker::new(broker, reference.clone(), bell, clock, recorder, seat.roll()));
        if let Some(log) = &log {
            log.set_bell(remote.bell().clone());
        }
        let outposts = outposts.map(|parts| {
            Rc::new(RemoteStrategies::new(parts, port.id(), port.shards(), standing.started(), &reference))
        });
        let mut floor = ShardClient::new(port, bells, reference, room, numbers);
        if let Some(outposts) = &outposts {
            floor.set_outposts(outposts.clone());
        }
        floor.set_hall(hall.clone());
        floor.set_report(report);
        AppState {
            floor,
            hall,
            switchboard: NotificationHub::new(posts, log),
            outposts,
            cluster: cluster.map(|parts| Rc::new(Cluster::new(parts, standing.started()))),
            rules: Rules::new(&settings),
            routes: Routes::new(),
            page: Page::new(),
            admission: Admission::new(settings.connection_limits()),
            description: openapi::document(seat.anybody().is_none()),
            reception: LoginQueue::new(seat),
            acts: AuditActs::new(pen),
            peers: RefCell::new(Limit::new(settings.rate_per_peer)),
            logins: RefCell::new(Limit::new(settings.rate_per_login)),
            meter: Meter::default(),
            registry,
            standing,
            tls,
            tell,
            stages: RefCell::new(stages),
            clock: RefCell::new(Clock::starting_at(began)),
            remote,
            rests: Cell::new(false),
            leaving: Notify::new(),
            requests: Cell::new(0),
            request_prefix,
            shelf,
            cache: Cache::new(rereads),
            open_orders: CachedList::default(),
            turns: Turns::new(),
            readers: ListReaders::default(),
            settings,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.borrow_mut().now()
    }

    pub fn stages(&self) -> Vec<StageSummary> {
        self.hall.poll_stages();
        (self.stages.borrow_mut())()
    }

    pub fn is_leaving(&self) -> bool {
        self.remote.is_closing()
    }

    /// Returns an id for the next request: the start time of the process, and a number.
    pub fn next_request_id(&self) -> HeaderValue {
        self.requests.set(self.requests.get() + 1);
        let mut digits = [0; 20];
        let count = write_u64(self.requests.get(), &mut digits);
        let mut id = Vec::with_capacity(self.request_prefix.len() + count);
        id.extend_from_slice(self.request_prefix.as_bytes());
        id.extend_from_slice(&digits[..count]);
        HeaderValue::from_maybe_shared(Bytes::from(id)).expect("digits belong into a header")
    }

    /// Handles what other threads have sent, up to a bound, and returns the amount of work done.
    pub fn poll(&self) -> usize {
        let outposts = self.outposts.as_deref();
        let told =
            self.switchboard.poll(&self.hall, outposts) + self.hall.poll_timeout() + self.hall.revoke();
        if let Some(outposts) = outposts {
            outposts.stir();
        }
        let far = self.cluster.as_ref().map_or(0, |cluster| cluster.poll(self.now(), &self.floor));
        if self.acts.has_anchor() && self.is_open().is_ok() {
            self.acts.anchor(&self.floor, self.settings.anchor_shard);
        }
        far + self.floor.poll() + self.reception.poll() + self.acts.poll() + self.cache.poll() + told
    }

    /// Wakes this thread to poll now.
    pub fn ring(&self) {
        self.remote.bell().call();
    }

    /// Returns whether a client at another server, or here, waits for what this thread forwards.
    pub fn is_between_servers(&self) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.is_expecting(self.now()))
    }

    /// Returns whether there is no subscriber and no pending response here.
    pub fn is_alone(&self) -> bool {
        self.outposts.is_none()
            && self.cluster.is_none()
            && !self.hall.has_guests()
            && self.floor.waiting_len() == 0
    }

    /// Drains pending events before a new request if the thread is in low-power mode, so that the
    /// response is current.
    pub fn receive(&self) {
        if self.rests.replace(false) {
            self.floor.poll();
            self.ring();
        }
    }

    /// Sends a notification of this thread to all threads with clients.
    pub fn announce(&self, note: Notification) {
        self.switchboard.announce(&self.hall, note);
    }

    /// Returns the version of everything but prices.
    pub fn version(&self) -> Version {
        let (events, names) = (self.floor.changes(), self.switchboard.names().changes());
        Version { events, names, reference: self.shelf.borrow().name }
    }

    /// Returns the rendered reference data.
    pub fn shelf(&self) -> Rc<RefDataCache> {
        self.shelf.borrow().clone()
    }

    /// Replaces the reference data by data that is in force in all shards.
    pub fn adopt(&self, reference: Arc<RefData>) {
        self.hall.adopt(&reference);
        self.floor.adopt(reference.clone());
        *self.shelf.borrow_mut() = Rc::new(RefDataCache::new(reference));
    }

    /// Returns the address of a listener by its name.
    pub fn listener(&self, name: &str) -> Option<SocketAddr> {
        let bound = self.standing.listeners().iter().find(|listener| listener.name == name);
        bound.map(|listener| listener.address)
    }

    /// Checks whether commands are accepted at all.
    pub fn is_open(&self) -> Result<(), Problem> {
        if self.is_leaving() {
            return Err(Problem::stopping());
        }
        if !self.floor.is_complete() {
            return Err(Problem::starting());
        }
        Ok(())
    }

    /// Sends a command and waits for its result. When this returns, the view includes it.
    pub async fn ask(&self, body: CommandKind) -> Result<Outcome, Problem> {
        self.is_open()?;
        let pending = self.floor.send(SESSION, body).map_err(|_busy| Problem::busy())?;
        self.hear(pending).await
    }

    /// Waits for a response of the shards.
    pub async fn hear(&self, pending: Pending) -> Result<Outcome, Problem> {
        timeout(self.settings.answer_timeout, pending).await.map_err(|_elapsed| Problem::no_answer())
    }

    /// Sends a command that is about no order, and answers when all shards have executed it.
    pub async fn execute(&self, body: CommandKind) -> Result<Answer, Problem> {
        match self.ask(body).await? {
            Outcome::Done(Reason::None) => Ok(Answer::empty()),
            Outcome::Done(reason) => Err(Problem::refused(reason)),
            Outcome::Order(_) | Outcome::Refused(_) => unreachable!("it is about no order"),
        }
    }

    /// Sends an operator's directive to all shards. It stays in force where a shard cannot be
    /// reached: the response names such shards, and they apply it when their servers are back.
    pub async fn direct(&self, directive: Directive) -> Result<Answer, Problem> {
        let Some(cluster) = &self.cluster else {
            self.execute(plain_body(&directive)).await?;
            let whole = ConfirmationVO { confirmed: SwitchStateVO::All, unconfirmed_shards: Vec::new() };
            return Ok(Answer::json(&whole));
        };
        let version = cluster.next_version(self.now(), &self.floor.view());
        // A shard that does not answer in time may still be reached: the response lists it as
        // unconfirmed.
        let outcome = match self.ask(CommandKind::Direct { version, directive }).await {
            Ok(Outcome::Done(reason)) => Ok(reason),
            Ok(Outcome::Order(_) | Outcome::Refused(_)) => unreachable!("it is about no order"),
            Err(problem) => Err(problem),
        };
        let view = self.floor.view();
        let is_known = view.directive(directive.key()).is_some_and(|(_, newest)| newest >= version);
        match outcome {
            Err(problem) if !is_known => return Err(problem),
            Ok(reason) if !is_known && reason != Reason::None => return Err(Problem::refused(reason)),
            _ => {}
        }
        let confirmation = ConfirmationVO::of(&view, self.floor.shards(), directive.key());
        let status = if confirmation.is_whole() { StatusCode::OK } else { StatusCode::ACCEPTED };
        Ok(Answer::json(&confirmation).with_status(status))
    }

    /// Lets connections finish; each ends by itself, in time or at its deadline. Then main receives
    /// `HttpEvent::Quiet`.
    pub async fn wind_down(&self) {
        self.leaving.notify_waiters();
        self.admission.all_free().await;
        (self.tell)(HttpEvent::Quiet);
    }
}

/// Returns the command for a single server, which needs no versions.
fn plain_body(directive: &Directive) -> CommandKind {
    match *directive {
        Directive::Kill { scope, on } => CommandKind::Kill { scope, on },
        Directive::Limits { scope, limits } => CommandKind::Limits { scope, limits },
        Directive::Restrict { scope, security, on } => CommandKind::Restrict { scope, security, on },
    }
}
