//! The state of the http thread, which its tasks share. Each part has its own responsibility, and
//! a handler takes only the parts that it needs.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::report::OrderReportPrinter;
use pitlane_history::HistoryClient;
use pitlane_runtime::clock::Clock;

use super::admission::Admission;
use super::audit::AuditActs;
use super::cluster::ClusterNode;
use super::compression::Compression;
use super::credit_use::CreditUse;
use super::fix_queries::FixQueries;
use super::guard::RequestRules;
use super::http_event::HttpEvent;
use super::lifecycle::Lifecycle;
use super::login::{Authorizer, LoginQueue};
use super::meter::Meter;
use super::monitoring::Monitoring;
use super::notification_hub::NotificationHub;
use super::notifications::Notifications;
use super::order_lists::OrderLists;
use super::page::WebPage;
use super::parts::HttpParts;
use super::portfolio_history::PortfolioHistory;
use super::profit_history::ProfitHistory;
use super::ref_data_cache::{CurrentRefData, RefDataCache};
use super::reloads::Reloads;
use super::remote_strategies::RemoteStrategies;
use super::request_ids::RequestIds;
use super::routes::Routes;
use super::settings::HttpSettings;
use super::shard_client::{PREFIX, ShardClient, ShardClientSettings};
use super::streamed_list::RenderTurns;
use super::thread_clock::ThreadClock;
use super::trading::Trading;
use super::websocket_broker::WebSocketBroker;

pub(crate) struct AppState {
    pub settings: HttpSettings,
    pub clock: Rc<ThreadClock>,
    pub lifecycle: Rc<Lifecycle>,
    pub trading: Rc<Trading>,
    pub notifications: Rc<Notifications>,
    pub order_lists: Rc<OrderLists>,
    pub ref_data: Rc<CurrentRefData>,
    pub reloads: Reloads,
    pub access: Access,
    /// The history of the market; `None`: none is kept.
    pub history: Option<HistoryClient>,
    pub portfolio_history: PortfolioHistory,
    pub profit_history: ProfitHistory,
    pub credit_use: CreditUse,
    pub monitoring: Monitoring,
    pub content: Content,
    pub fix_queries: FixQueries,
    /// Turns of the readers of long lists.
    pub turns: RenderTurns,
    pub compression: Compression,
    /// Whether this thread is in low-power mode and polls events only now and then.
    pub is_low_power: Cell<bool>,
}

/// What decides which connections and requests are accepted, and records who made them.
pub(crate) struct Access {
    pub admission: Admission,
    pub rules: RequestRules,
    pub authorizer: Authorizer,
    pub acts: Rc<AuditActs>,
    pub request_ids: RequestIds,
}

/// What is served as it is: the table of paths, and the files.
pub(crate) struct Content {
    pub routes: Routes,
    pub page: WebPage,
    /// The response of `/openapi.json`.
    pub description: Bytes,
}

impl AppState {
    pub(crate) fn new(settings: HttpSettings, parts: HttpParts, description: Bytes) -> AppState {
        let HttpParts {
            running_days,
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
            history,
            send_event,
        } = parts;
        let started = service_status.started();
        let ref_data = Rc::new(CurrentRefData::new(RefDataCache::new(reference.clone())));
        let prefix = cluster.as_ref().map_or(PREFIX, |cluster| cluster.id_prefix());
        let client_settings =
            ShardClientSettings { view: settings.view, orders_max: settings.orders_max, prefix };
        let thread_clock = Rc::new(ThreadClock::new(Clock::starting_at(clock.started_at())));
        let ws_broker = Rc::new(WebSocketBroker::new(
            settings.broker.clone(),
            reference.clone(),
            remote.wakeup().clone(),
            clock,
            recorder,
            auth_client.revocations(),
        ));
        if let Some(log) = &log {
            log.set_wakeup(remote.wakeup().clone());
        }
        let remote_strategies = remote_strategies.map(|parts| {
            Rc::new(RemoteStrategies::new(parts, port.id(), port.shards(), started, &reference))
        });
        let mut shard_client = ShardClient::new(port, wakeups, reference, client_settings, numbers);
        if let Some(remote_strategies) = &remote_strategies {
            shard_client.set_remote_strategies(remote_strategies.clone());
        }
        shard_client.set_ws_broker(ws_broker.clone());
        if report.as_ref().is_some_and(OrderReportPrinter::records_levels) {
            ws_broker.keep_depths();
        }
        shard_client.set_report(report);
        let (history_recorder, history) = history.unzip();
        shard_client.set_history(history_recorder);
        let lifecycle = Rc::new(Lifecycle::new(remote, send_event));
        let trading = Rc::new(Trading::new(
            shard_client,
            cluster.map(|parts| Rc::new(ClusterNode::new(parts, started))),
            settings.answer_timeout,
            lifecycle.clone(),
            thread_clock.clone(),
        ));
        let hub = NotificationHub::new(notification_channels, log);
        let notifications = Rc::new(Notifications { ws_broker: ws_broker.clone(), hub, remote_strategies });
        let meter = Rc::new(Meter::default());
        let login_queue =
            LoginQueue::new(auth_client, thread_clock.clone(), meter.clone(), settings.answer_timeout);
        let access = Access {
            admission: Admission::new(settings.connection_limits()),
            rules: RequestRules::new(&settings),
            authorizer: Authorizer::new(login_queue, &settings, thread_clock.clone()),
            acts: Rc::new(AuditActs::new(audit)),
            request_ids: RequestIds::new(started),
        };
        AppState {
            clock: thread_clock,
            lifecycle,
            order_lists: Rc::new(OrderLists::new(trading.clone(), notifications.clone(), ref_data.clone())),
            trading,
            notifications,
            ref_data,
            reloads: Reloads::new(reloads),
            access,
            history,
            portfolio_history: PortfolioHistory::default(),
            profit_history: ProfitHistory::new(settings.base_currency, running_days),
            credit_use: CreditUse::default(),
            monitoring: Monitoring::new(meter, registry, service_status, tls, ws_broker, stages),
            content: Content { routes: Routes::new(), page: WebPage::new(), description },
            fix_queries: FixQueries::default(),
            turns: RenderTurns::new(),
            compression: Compression::new(),
            is_low_power: Cell::new(false),
            settings,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Drains pending events before a new request if the thread is in low-power mode, so that the
    /// response is current.
    pub(crate) fn drain_pending_events(&self) {
        if self.is_low_power.replace(false) {
            self.trading.shard_client.poll();
            self.lifecycle.wake();
        }
    }

    /// Replaces the reference data by data that is in force in all shards.
    pub(crate) fn set_reference(&self, reference: Arc<RefData>) {
        self.notifications.ws_broker.set_reference(&reference);
        self.trading.shard_client.set_reference(reference.clone());
        if let Some(history) = &self.history
            && history.set_reference(reference.clone()).is_err()
        {
            tracing::warn!(
                "the history is busy: it learns the time zones of new exchanges at the next start"
            );
        }
        self.ref_data.set(RefDataCache::new(reference));
    }

    /// Lets connections finish; each ends by itself, in time or at its deadline. Then main receives
    /// `HttpEvent::Quiet`.
    pub(crate) async fn drain_connections(&self) {
        self.lifecycle.stopping.notify_waiters();
        self.access.admission.all_free().await;
        self.lifecycle.send_event(HttpEvent::Quiet);
    }
}
