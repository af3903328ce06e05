//! What the http thread receives from the rest of the process.

use std::sync::Arc;

use pitlane_auth::AuthClient;
use pitlane_auth::audit::AuditClient;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::view::EndedDay;
use pitlane_gateway::notifications::NotificationChannel;
use pitlane_gateway::report::OrderReportPrinter;
use pitlane_history::{HistoryClient, HistoryRecorder};
use pitlane_net::tls::Tls;
use pitlane_runtime::clock::Clock;
use pitlane_runtime::log::Events;
use pitlane_runtime::metrics::{Registry, StageReport};
use pitlane_runtime::stages::LatencyRecorder;
use pitlane_runtime::wakeup::Wakeup;

use super::cluster::ClusterParts;
use super::http_event::HttpEvent;
use super::reloads::RefDataReloads;
use super::remote::Remote;
use super::remote_strategies::RemoteStrategiesParts;
use super::shard_client::Numbers;
use super::status::ServiceStatus;

pub struct HttpParts {
    /// The trading day of each shard of this process as it was before the start.
    pub running_days: Vec<EndedDay>,
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
    pub stages: Box<dyn FnMut() -> StageReport + Send>,
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
    /// The two ends of the history of the market; `None`: none is kept.
    pub history: Option<(HistoryRecorder, HistoryClient)>,
    /// Sends events of this thread to main.
    pub send_event: Box<dyn Fn(HttpEvent) + Send>,
}
