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
use pitlane_gateway::notifications::Notification;
use pitlane_net::tls::Tls;
use pitlane_protocols::rest::{ConfirmationVO, SwitchStateVO};
use pitlane_runtime::clock::Clock;
use pitlane_runtime::metrics::{Registry, StageSummary};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::admission::Admission;
use super::audit::AuditActs;
use super::cache::Cache;
use super::cached_list::{CachedList, ListVersion};
use super::cluster::ClusterNode;
use super::guard::RequestRules;
use super::login::LoginQueue;
use super::meter::Meter;
use super::notification_hub::NotificationHub;
use super::openapi;
use super::page::WebPage;
use super::problem::Problem;
use super::rate_limit::Limit;
use super::readers::ListReaders;
use super::reference::RefDataCache;
use super::remote::Remote;
use super::remote_strategies::RemoteStrategies;
use super::response::HttpResponse;
use super::routes::Routes;
use super::settings::HttpSettings;
use super::shard_client::{CommandOutcome, PREFIX, PendingResponse, ShardClient, ShardClientSettings};
use super::status::ServiceStatus;
use super::streamed_list::RenderTurns;
use super::websocket_broker::WebSocketBroker;
use super::{HttpEvent, HttpParts};

/// The session of commands that no order desk sends.
const SESSION: u16 = 0;

pub struct AppState {
    pub settings: HttpSettings,
    pub shard_client: ShardClient,
    pub ws_broker: Rc<WebSocketBroker>,
    pub notification_hub: NotificationHub,
    /// Strategies in processes of their own; `None` if there are none.
    pub remote_strategies: Option<Rc<RemoteStrategies>>,
    /// The other servers; `None` if this server is alone.
    pub cluster: Option<Rc<ClusterNode>>,
    pub rules: RequestRules,
    pub routes: Routes,
    pub page: WebPage,
    pub admission: Admission,
    pub login_queue: LoginQueue,
    /// The response of `/openapi.json`.
    pub description: Bytes,
    pub acts: AuditActs,
    pub peers: RefCell<Limit<IpAddr>>,
    pub logins: RefCell<Limit<Arc<str>>>,
    pub meter: Meter,
    pub registry: Arc<Registry>,
    pub service_status: Arc<ServiceStatus>,
    pub tls: Option<Arc<Tls>>,
    pub send_event: Box<dyn Fn(HttpEvent) + Send>,
    stages: RefCell<Box<dyn FnMut() -> Vec<StageSummary> + Send>>,
    clock: RefCell<Clock>,
    remote: Remote,
    /// Whether this thread is in low-power mode and polls events only now and then.
    pub is_low_power: Cell<bool>,
    /// Notified when connections are to finish.
    pub stopping: Notify,
    requests: Cell<u64>,
    request_prefix: String,
    ref_data_cache: RefCell<Rc<RefDataCache>>,
    pub cache: Cache,
    /// The cached list of all open orders, where they are few.
    pub open_orders: CachedList,
    /// Turns of the readers of long lists.
    pub turns: RenderTurns,
    pub readers: ListReaders,
}

impl AppState {
    pub fn new(settings: HttpSettings, parts: HttpParts) -> AppState {
        let HttpParts {
            port,
            wakeups,
            reference,
            remote,
            registry,
            service_status,
            stages,
            report,
            auth_client,
            notification_channels,
            log,
            audit,
            numbers,
            reloads,
            tls,
            clock,
            recorder,
            remote_strategies,
            cluster,
            send_event,
        } = parts;
        let request_prefix = format!("{:x}-", service_status.started().0 / NS_PER_MS);
        let ref_data_cache = RefCell::new(Rc::new(RefDataCache::new(reference.clone())));
        let prefix = cluster.as_ref().map_or(PREFIX, |cluster| cluster.id_prefix());
        let client_settings =
            ShardClientSettings { view: settings.view, orders_max: settings.orders_max, prefix };
        let (broker, wakeup) = (settings.broker.clone(), remote.wakeup().clone());
        let began = clock.started_at();
        let ws_broker = Rc::new(WebSocketBroker::new(
            broker,
            reference.clone(),
            wakeup,
            clock,
            recorder,
            auth_client.revocations(),
        ));
        if let Some(log) = &log {
            log.set_wakeup(remote.wakeup().clone());
        }
        let remote_strategies = remote_strategies.map(|parts| {
            Rc::new(RemoteStrategies::new(
                parts,
                port.id(),
                port.shards(),
                service_status.started(),
                &reference,
            ))
        });
        let mut shard_client = ShardClient::new(port, wakeups, reference, client_settings, numbers);
        if let Some(remote_strategies) = &remote_strategies {
            shard_client.set_remote_strategies(remote_strategies.clone());
        }
        shard_client.set_ws_broker(ws_broker.clone());
        shard_client.set_report(report);
        AppState {
            shard_client,
            ws_broker,
            notification_hub: NotificationHub::new(notification_channels, log),
            remote_strategies,
            cluster: cluster.map(|parts| Rc::new(ClusterNode::new(parts, service_status.started()))),
            rules: RequestRules::new(&settings),
            routes: Routes::new(),
            page: WebPage::new(),
            admission: Admission::new(settings.connection_limits()),
            description: openapi::document(auth_client.default_identity().is_none()),
            login_queue: LoginQueue::new(auth_client),
            acts: AuditActs::new(audit),
            peers: RefCell::new(Limit::new(settings.rate_per_peer)),
            logins: RefCell::new(Limit::new(settings.rate_per_login)),
            meter: Meter::default(),
            registry,
            service_status,
            tls,
            send_event,
            stages: RefCell::new(stages),
            clock: RefCell::new(Clock::starting_at(began)),
            remote,
            is_low_power: Cell::new(false),
            stopping: Notify::new(),
            requests: Cell::new(0),
            request_prefix,
            ref_data_cache,
            cache: Cache::new(reloads),
            open_orders: CachedList::default(),
            turns: RenderTurns::new(),
            readers: ListReaders::default(),
            settings,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.borrow_mut().now()
    }

    pub fn stages(&self) -> Vec<StageSummary> {
        self.ws_broker.poll_stages();
        (self.stages.borrow_mut())()
    }

    pub fn is_stopping(&self) -> bool {
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
        let remote_strategies = self.remote_strategies.as_deref();
        let received = self.notification_hub.poll(&self.ws_broker, remote_strategies)
            + self.ws_broker.poll_timeout()
            + self.ws_broker.revoke();
        if let Some(remote_strategies) = remote_strategies {
            remote_strategies.poll_pace();
        }
        let forwarded =
            self.cluster.as_ref().map_or(0, |cluster| cluster.poll(self.now(), &self.shard_client));
        if self.acts.has_anchor() && self.check_open().is_ok() {
            self.acts.anchor(&self.shard_client, self.settings.anchor_shard);
        }
        forwarded
            + self.shard_client.poll()
            + self.login_queue.poll()
            + self.acts.poll()
            + self.cache.poll()
            + received
    }

    /// Wakes this thread to poll now.
    pub fn wake(&self) {
        self.remote.wakeup().call();
    }

    /// Returns whether a client at another server, or here, waits for what this thread forwards.
    pub fn is_forwarding(&self) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.is_expecting(self.now()))
    }

    /// Returns whether there is no subscriber and no pending response here.
    pub fn has_no_receivers(&self) -> bool {
        self.remote_strategies.is_none()
            && self.cluster.is_none()
            && !self.ws_broker.has_clients()
            && self.shard_client.waiting_len() == 0
    }

    /// Drains pending events before a new request if the thread is in low-power mode, so that the
    /// response is current.
    pub fn drain_pending_events(&self) {
        if self.is_low_power.replace(false) {
            self.shard_client.poll();
            self.wake();
        }
    }

    /// Sends a notification of this thread to all threads with clients.
    pub fn announce(&self, notification: Notification) {
        self.notification_hub.announce(&self.ws_broker, notification);
    }

    /// Returns the version of everything but prices.
    pub fn version(&self) -> ListVersion {
        let (events, names) = (self.shard_client.changes(), self.notification_hub.names().changes());
        ListVersion { events, names, reference: self.ref_data_cache.borrow().name }
    }

    /// Returns the rendered reference data.
    pub fn ref_data_cache(&self) -> Rc<RefDataCache> {
        self.ref_data_cache.borrow().clone()
    }

    /// Replaces the reference data by data that is in force in all shards.
    pub fn set_reference(&self, reference: Arc<RefData>) {
        self.ws_broker.set_reference(&reference);
        self.shard_client.set_reference(reference.clone());
        *self.ref_data_cache.borrow_mut() = Rc::new(RefDataCache::new(reference));
    }

    /// Returns the address of a listener by its name.
    pub fn listener(&self, name: &str) -> Option<SocketAddr> {
        let bound = self.service_status.listeners().iter().find(|listener| listener.name == name);
        bound.map(|listener| listener.address)
    }

    /// Checks whether commands are accepted at all.
    pub fn check_open(&self) -> Result<(), Problem> {
        if self.is_stopping() {
            return Err(Problem::stopping());
        }
        if !self.shard_client.is_complete() {
            return Err(Problem::starting());
        }
        Ok(())
    }

    /// Sends a command and waits for its result. When this returns, the view includes it.
    pub async fn send_command(&self, body: CommandKind) -> Result<CommandOutcome, Problem> {
        self.check_open()?;
        let pending = self.shard_client.send(SESSION, body).map_err(|_busy| Problem::busy())?;
        self.await_outcome(pending).await
    }

    /// Waits for a response of the shards.
    pub async fn await_outcome(&self, pending: PendingResponse) -> Result<CommandOutcome, Problem> {
        timeout(self.settings.answer_timeout, pending).await.map_err(|_elapsed| Problem::no_answer())
    }

    /// Sends a command that is about no order, and answers when all shards have executed it.
    pub async fn execute(&self, body: CommandKind) -> Result<HttpResponse, Problem> {
        match self.send_command(body).await? {
            CommandOutcome::Done(Reason::None) => Ok(HttpResponse::empty()),
            CommandOutcome::Done(reason) => Err(Problem::refused(reason)),
            CommandOutcome::Order(_) | CommandOutcome::Refused(_) => unreachable!("it is about no order"),
        }
    }

    /// Sends an operator's directive to all shards. It stays in force where a shard cannot be
    /// reached: the response names such shards, and they apply it when their servers are back.
    pub async fn send_directive(&self, directive: Directive) -> Result<HttpResponse, Problem> {
        let Some(cluster) = &self.cluster else {
            self.execute(unversioned_command(&directive)).await?;
            let whole = ConfirmationVO { confirmed: SwitchStateVO::All, unconfirmed_shards: Vec::new() };
            return Ok(HttpResponse::json(&whole));
        };
        let version = cluster.next_version(self.now(), &self.shard_client.view());
        // A shard that does not answer in time may still be reached: the response lists it as
        // unconfirmed.
        let outcome = match self.send_command(CommandKind::Direct { version, directive }).await {
            Ok(CommandOutcome::Done(reason)) => Ok(reason),
            Ok(CommandOutcome::Order(_) | CommandOutcome::Refused(_)) => unreachable!("it is about no order"),
            Err(problem) => Err(problem),
        };
        let view = self.shard_client.view();
        let is_known = view.directive(directive.key()).is_some_and(|(_, newest)| newest >= version);
        match outcome {
            Err(problem) if !is_known => return Err(problem),
            Ok(reason) if !is_known && reason != Reason::None => return Err(Problem::refused(reason)),
            _ => {}
        }
        let confirmation = ConfirmationVO::of(&view, self.shard_client.shards(), directive.key());
        let status = if confirmation.is_whole() { StatusCode::OK } else { StatusCode::ACCEPTED };
        Ok(HttpResponse::json(&confirmation).with_status(status))
    }

    /// Lets connections finish; each ends by itself, in time or at its deadline. Then main receives
    /// `HttpEvent::Quiet`.
    pub async fn drain_connections(&self) {
        self.stopping.notify_waiters();
        self.admission.all_free().await;
        (self.send_event)(HttpEvent::Quiet);
    }
}

/// Returns the command for a single server, which needs no versions.
fn unversioned_command(directive: &Directive) -> CommandKind {
    match *directive {
        Directive::Kill { scope, on } => CommandKind::Kill { scope, on },
        Directive::Limits { scope, limits } => CommandKind::Limits { scope, limits },
        Directive::Restrict { scope, security, on } => CommandKind::Restrict { scope, security, on },
    }
}
