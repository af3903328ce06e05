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

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::wildcard_enum_match_arm,
        reason = "the numbers of a test are small, and a test looks at one variant at a time"
    )
)]

mod about;
mod audit;
mod admission;
mod response;
mod request_context;
mod request_ids;
mod body;
mod bulk_cancel;
mod cache;
mod caller;
mod calls;
mod client_stream;
mod cluster;
mod cluster_members;
mod cluster_wire;
mod compressed_body;
mod compression;
mod connection;
mod connection_info;
mod connection_progress;
mod content_coding;
mod cors;
mod credit_use;
mod deposit;
mod order_entry;
mod shard_client;
mod fix_queries;
mod framing;
mod guard;
mod websocket_broker;
mod health;
mod history;
mod http_event;
mod alerts;
mod api_call;
mod app_state;
mod cached_list;
mod latency;
mod rate_limit;
mod lifecycle;
mod listen;
mod log_history;
mod login;
mod meter;
mod monitoring;
mod notifications;
mod openapi;
mod operator;
mod parts;
mod order_changes;
mod order_lists;
mod orders;
mod remote_strategies;
mod page;
mod streamed_list;
mod position;
mod problem;
mod readers;
mod ref_data_cache;
mod reference;
mod reloads;
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
mod thread_clock;
mod trading;
mod transaction;
mod depth;
mod depth_watches;
mod event_loop;
mod portfolio;
mod portfolio_file;
mod portfolio_history;
mod portfolio_sample;
mod profit;
mod profit_file;
mod profit_history;
mod report;
mod report_page;
mod report_sums;
mod websocket;

use std::io;
use std::net::TcpListener;
use std::rc::Rc;

use pitlane_net::listener::BoundAddress;
use pitlane_runtime::thread_class::ThreadClass;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use self::app_state::AppState;
pub use self::cluster::ClusterParts;
pub use self::cluster::incarnations::next_incarnation;
use self::compression::COMPRESS_THREADS_MAX;
pub use self::http_event::HttpEvent;
pub use self::parts::HttpParts;
pub use self::reloads::RefDataReloads;
pub use self::remote::Remote;
pub use self::remote_strategies::RemoteStrategiesParts;
pub use self::routes::table;
pub use self::settings::HttpSettings;
pub use self::shard_client::Numbers;
pub use self::status::{Journaling, ServicePhase, ServiceStatus};
use self::strategy_processes::direct::{self, LinkListeners};

/// An http thread that is bound to its addresses and waits to be run.
pub struct HttpServer {
    settings: HttpSettings,
    parts: HttpParts,
    plain: Option<TcpListener>,
    tls: Option<TcpListener>,
    strategies: LinkListeners,
    listeners: Vec<BoundAddress>,
    runtime: Runtime,
}

impl HttpServer {
    /// Binds the listeners, so that a port in use is reported before anything runs. Port 0 takes
    /// any that is free. An error carries the config key.
    pub fn bind(settings: HttpSettings, parts: HttpParts) -> Result<HttpServer, (&'static str, io::Error)> {
        let (http_key, https_key) = ("http.listen", "https.listen");
        if settings.https.is_some() && parts.tls.is_none() {
            let problem = "an HTTPS listener needs a certificate";
            return Err((https_key, io::Error::new(io::ErrorKind::InvalidInput, problem)));
        }
        let bind =
            |key, address: Option<_>| address.map(listen::bind).transpose().map_err(|error| (key, error));
        let (plain, tls) = (bind(http_key, settings.http)?, bind(https_key, settings.https)?);
        let mut listeners = Vec::new();
        for (key, name, listener) in [(http_key, "http", &plain), (https_key, "https", &tls)] {
            if let Some(listener) = listener {
                let address = listener.local_addr().map_err(|error| (key, error))?;
                listeners.push(BoundAddress { name, address });
            }
        }
        let strategies = match &parts.remote_strategies {
            Some(remote_strategies) => LinkListeners::bind(remote_strategies, parts.tls.as_deref())?,
            None => LinkListeners::default(),
        };
        listeners.extend(strategies.address().map_err(|error| (direct::KEY, error))?);
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .thread_name("http-compress")
            .on_thread_start(|| ThreadClass::Housekeeping.apply())
            .max_blocking_threads(COMPRESS_THREADS_MAX)
            .build();
        let runtime = runtime.map_err(|error| (http_key, error))?;
        Ok(HttpServer { settings, parts, plain, tls, strategies, listeners, runtime })
    }

    /// Returns the addresses of the listeners `http`, `https` and `strategies`.
    pub fn listeners(&self) -> &[BoundAddress] {
        &self.listeners
    }

    /// Serves until [`Remote::end`], and handles all events sent until then. Nothing is left
    /// unprocessed when it returns.
    pub fn run(self) -> io::Result<()> {
        let HttpServer { settings, parts, plain, tls, strategies, runtime, .. } = self;
        let acceptor = parts.tls.as_ref().map(|tls| tls.config());
        let remote = parts.remote.clone();
        let local = LocalSet::new();
        let app = {
            let description = openapi::document(parts.auth_client.default_identity().is_none());
            Rc::new(AppState::new(settings, parts, description))
        };
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
            tokio::task::spawn_local(event_loop::collect_stages(app.clone(), remote.clone()));
            tokio::task::spawn_local(event_loop::keep_profit(app.clone()));
            let portfolios = app.clone();
            tokio::task::spawn_local(async {
                // The first sample includes the deposits.
                deposit::run(portfolios.clone()).await;
                event_loop::sample_portfolios(portfolios).await;
            });
            tokio::task::spawn_local(websocket_broker::run_timers(app.notifications.ws_broker.clone()));
            if let Some(remote_strategies) = &app.notifications.remote_strategies {
                tokio::task::spawn_local(strategy_processes::serve(
                    app.clone(),
                    remote_strategies.clone(),
                    strategies,
                ));
            }
            if let Some(cluster) = &app.trading.cluster {
                tokio::task::spawn_local(cluster_wire::serve(app.clone(), cluster.clone()));
            }
            remote.closing().await;
            listener_tasks.iter().for_each(|task| task.abort());
            app.drain_connections().await;
            remote.ended().await;
            event_loop.abort();
            app.trading.shard_client.end();
            if let Some(history) = &app.history {
                history.end();
            }
            Ok(())
        })
    }
}
