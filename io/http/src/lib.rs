//! The http thread: REST, the web page, health and metrics, on one tokio runtime that belongs to
//! this thread alone. It owns the read model.
//!
//! ```text
//! socket ─► listen ─► connection ─► hyper ─► service: guard ─► routes ─► handler ─► answer
//!             │           └ framing, deadlines                              │
//!             └ admission                                                   │
//!                  events of all shards ──► ShardClient: View, lanes, pending responses
//! ```
//!
//! Handlers run on this thread only, so they share plain memory without locks. `async` ends here:
//! below are lanes and pure functions.

mod about;
mod audit;
mod admission;
mod response;
mod request_context;
mod body;
mod cache;
mod caller;
mod calls;
mod client_stream;
mod cluster;
mod cluster_members;
mod cluster_wire;
mod connection;
mod connection_info;
mod connection_progress;
mod cors;
mod order_entry;
mod shard_client;
mod framing;
mod guard;
mod websocket_broker;
mod health;
mod app_state;
mod cached_list;
mod latency;
mod rate_limit;
mod listen;
mod login;
mod meter;
mod openapi;
mod operator;
mod orders;
mod remote_strategies;
mod page;
mod streamed_list;
mod position;
mod problem;
mod readers;
mod reference;
mod remote;
mod risk;
mod routes;
mod service;
mod sessions;
mod settings;
mod schema_set;
mod scope;
mod status;
mod strategy_processes;
mod strategy_snapshot;
mod subscription;
mod notification_hub;
mod transaction;
mod event_loop;
mod portfolio;
mod websocket;

use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;

use pitlane_auth::AuthClient;
use pitlane_auth::audit::AuditClient;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_gateway::notifications::NotificationChannel;
use pitlane_gateway::report::OrderReportPrinter;
use pitlane_net::listener::BoundAddress;
use pitlane_net::tls::Tls;
use pitlane_runtime::clock::Clock;
use pitlane_runtime::log::Events;
use pitlane_runtime::metrics::{Registry, StageSummary};
use pitlane_runtime::stages::LatencyRecorder;
use pitlane_runtime::wakeup::Wakeup;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use self::app_state::AppState;
pub use self::cache::RefDataReloads;
pub use self::cluster::ClusterParts;
pub use self::cluster::incarnations::next_incarnation;
pub use self::remote::Remote;
pub use self::remote_strategies::RemoteStrategiesParts;
pub use self::routes::table;
pub use self::settings::HttpSettings;
pub use self::shard_client::Numbers;
pub use self::status::{Journaling, ServicePhase, ServiceStatus};

/// What the http thread receives from the rest of the process.
pub struct HttpParts {
    /// Its lanes to and from every shard. It receives the events of all shards.
    pub port: PortEnd,
    /// Wakes the thread of each shard; indexed by shard.
    pub wakeups: Vec<Wakeup>,
    pub reference: Arc<RefData>,
    /// Handle by which other threads reach this one. A sender of events on the port's lanes wakes
    /// [`Remote::wakeup`].
    pub remote: Remote,
    pub registry: Arc<Registry>,
    pub service_status: Arc<ServiceStatus>,
    /// Returns the newest percentiles of every thread; called when they are requested.
    pub stages: Box<dyn FnMut() -> Vec<StageSummary> + Send>,
    /// Prints events; `None`: nothing is printed.
    pub report: Option<OrderReportPrinter>,
    /// Client of the `auth` thread, which verifies logins. Its wake-up is [`Remote::wakeup`].
    pub auth_client: AuthClient,
    /// Notification channels to the gateways, in their order.
    pub notification_channels: Vec<NotificationChannel>,
    /// Warnings and errors of the whole process; `None`: they are not published.
    pub log: Option<Events>,
    /// Client that records administrative acts; `None`: there is no audit log.
    pub audit: Option<AuditClient>,
    /// Numbers for the ids of orders that come over REST.
    pub numbers: Numbers,
    /// Reloaded reference data; `None`: they are never reloaded.
    pub reloads: Option<RefDataReloads>,
    /// Needed where there is an HTTPS listener.
    pub tls: Option<Arc<Tls>>,
    /// Clock that serves the clients of its broker.
    pub clock: Clock,
    /// Records the latency of its broker; `None`: nothing is stamped.
    pub recorder: Option<LatencyRecorder>,
    /// Strategies in processes of their own; `None`: they run here, or use another protocol.
    pub remote_strategies: Option<RemoteStrategiesParts>,
    /// The other servers; `None`: this one is alone.
    pub cluster: Option<ClusterParts>,
    /// Sends events of this thread to main.
    pub send_event: Box<dyn Fn(HttpEvent) + Send>,
}

/// Events that main receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpEvent {
    /// The view has the complete state of every shard. Sent once.
    Complete,
    /// A client has requested an orderly shutdown.
    ExitRequested,
    /// A client has requested a reload of the reference data.
    ReloadRequested,
    /// After [`Remote::close`]: every connection is closed and no response is pending; nothing is
    /// sent any more. Sent once.
    Quiet,
}

/// An http thread that is bound to its addresses and waits to be run.
pub struct HttpServer {
    settings: HttpSettings,
    parts: HttpParts,
    plain: Option<TcpListener>,
    tls: Option<TcpListener>,
    listeners: Vec<BoundAddress>,
    runtime: Runtime,
}

impl HttpServer {
    /// Binds the listeners, so that a port in use is reported before anything runs. Port 0 takes
    /// any that is free.
    pub fn bind(settings: HttpSettings, parts: HttpParts) -> io::Result<HttpServer> {
        if settings.https.is_some() && parts.tls.is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an HTTPS listener needs a certificate"));
        }
        let bind = |address: Option<_>| address.map(listen::bind).transpose();
        let (plain, tls) = (bind(settings.http)?, bind(settings.https)?);
        let mut listeners = Vec::new();
        for (name, listener) in [("http", &plain), ("https", &tls)] {
            if let Some(listener) = listener {
                listeners.push(BoundAddress { name, address: listener.local_addr()? });
            }
        }
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        Ok(HttpServer { settings, parts, plain, tls, listeners, runtime })
    }

    /// Returns the addresses of the listeners `http` and `https`.
    pub fn listeners(&self) -> &[BoundAddress] {
        &self.listeners
    }

    /// Serves until [`Remote::end`], and handles all events sent until then. Nothing is left
    /// unprocessed when it returns.
    pub fn run(self) -> io::Result<()> {
        let HttpServer { settings, parts, plain, tls, runtime, .. } = self;
        let acceptor = parts.tls.as_ref().map(|tls| tls.config());
        let remote = parts.remote.clone();
        let local = LocalSet::new();
        let app = Rc::new(AppState::new(settings, parts));
        local.block_on(&runtime, async {
            let mut listener_tasks = Vec::new();
            if let Some(listener) = plain {
                listener_tasks.push(tokio::task::spawn_local(listen::accept(app.clone(), listener, None)?));
            }
            if let Some((listener, acceptor)) = tls.zip(acceptor) {
                listener_tasks.push(tokio::task::spawn_local(listen::accept(
                    app.clone(),
                    listener,
                    Some(acceptor),
                )?));
            }
            let event_loop = tokio::task::spawn_local(event_loop::run(app.clone(), remote.clone()));
            tokio::task::spawn_local(event_loop::collect_stages(app.clone()));
            tokio::task::spawn_local(websocket_broker::run_timers(app.ws_broker.clone()));
            if let Some(remote_strategies) = &app.remote_strategies {
                tokio::task::spawn_local(strategy_processes::wire::serve(
                    app.clone(),
                    remote_strategies.clone(),
                ));
            }
            if let Some(cluster) = &app.cluster {
                tokio::task::spawn_local(cluster_wire::serve(app.clone(), cluster.clone()));
            }
            remote.closing().await;
            listener_tasks.iter().for_each(|task| task.abort());
            app.drain_connections().await;
            remote.ended().await;
            event_loop.abort();
            app.shard_client.end();
            Ok(())
        })
    }
}
