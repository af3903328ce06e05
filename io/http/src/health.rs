//! Health, version and metrics: what operators and their monitoring request first.

mod exposition;

use std::collections::BTreeMap;

use hyper::StatusCode;
use pitlane_cluster::standby::state::StandbyVO;
use pitlane_engine::command::Scope;
use pitlane_engine::directive::DirectiveKey;
use pitlane_engine::id::{AdapterId, ShardId};
use pitlane_engine::reason::Reason;
use pitlane_engine::time::NS_PER_MS;
use pitlane_protocols::rest::SwitchStateVO;
use serde::Serialize;
use utoipa::ToSchema;

use super::app_state::AppState;
use super::caller::RequestCaller;
use super::cluster_members::{self, MemberVO};
use super::remote_strategies::RemoteStrategies;
use super::response::{HttpResponse, ResponseKind};
use super::schema_set::SchemaSet;
use super::shard_client::ShardClient;
use super::status::{Journaling, ServicePhase, ServiceStatus};

/// Commit of the build, or `unknown`.
const COMMIT: &str = env!("BUILT_FROM_COMMIT");

/// Returns 200 while the process serves; this does not mean that it is ready.
pub(crate) fn live() -> HttpResponse {
    HttpResponse::json(&Live { status: "LIVE" })
}

/// Returns 200 when orders would be accepted, 503 otherwise. The body gives the details, to clients
/// with a login.
pub(crate) fn ready(app: &AppState, caller: &RequestCaller) -> HttpResponse {
    let ready = is_ready(app);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let answer = match caller {
        RequestCaller::Known(_) => HttpResponse::json(&Readiness::of(app, ready)),
        RequestCaller::Anonymous => HttpResponse::json(&Brief { ready }),
    };
    answer.with_status(status)
}

pub(crate) fn version(service_status: &ServiceStatus) -> HttpResponse {
    let formats = service_status.formats().iter().copied().collect();
    HttpResponse::json(&BuildInfo {
        name: "pitlane",
        version: env!("CARGO_PKG_VERSION"),
        commit: COMMIT,
        formats,
    })
}

pub(crate) fn metrics(app: &AppState) -> HttpResponse {
    HttpResponse::text(ResponseKind::Metrics, exposition::all(app))
}

fn is_ready(app: &AppState) -> bool {
    app.monitoring.service_status.phase() == ServicePhase::Running
        && app.monitoring.service_status.journaling() == Journaling::Sound
        && app.trading.shard_client.is_complete()
        && !app.lifecycle.is_stopping()
}

/// Adds the schemas of these responses.
pub(crate) fn describe(schemas: &mut SchemaSet) {
    schemas.add_response::<Live>();
    schemas.add_response::<Readiness>();
    schemas.add_response::<Brief>();
    schemas.add_response::<BuildInfo>();
}

/// The process serves.
#[derive(Serialize, ToSchema)]
struct Live {
    status: &'static str,
}

/// Whether orders would be accepted.
#[derive(Serialize, ToSchema)]
struct Brief {
    ready: bool,
}

/// Version of the build.
#[derive(Serialize, ToSchema)]
#[schema(as = Version)]
struct BuildInfo {
    name: &'static str,
    version: &'static str,
    /// Commit of the build; `unknown` where it was built without git's files.
    commit: &'static str,
    formats: BTreeMap<&'static str, u32>,
}

/// Whether orders would be accepted, and the state of all parts.
#[derive(Serialize, ToSchema)]
#[schema(as = Ready)]
#[serde(rename_all = "camelCase")]
struct Readiness {
    ready: bool,
    phase: &'static str,
    durability: DurabilityVO,
    /// Whether any kill switch is on anywhere.
    kill_switch: bool,
    /// In which shards the kill switch of the whole platform is on: `ALL`, `SOME` or `NONE`.
    kill_switch_state: SwitchStateVO,
    /// Shards that have not applied the newest directive for that switch, as their servers were
    /// away.
    kill_switch_unconfirmed: Vec<u8>,
    shards: Vec<ShardVO>,
    adapters: Vec<AdapterHealthVO>,
    listeners: Vec<ListenerVO>,
    /// The link to strategies in processes of their own; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<BrokerVO>,
    /// The other servers of the cluster; absent where this one is alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<MemberVO>>,
    /// State of the server in its standby group; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    standby: Option<StandbyVO>,
    uptime_ms: u64,
}

/// The link to strategies in processes of their own.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BrokerVO {
    /// `direct`: strategies connect to this server; `nats`: through a broker.
    transport: &'static str,
    /// Whether the broker is connected; without a broker always true.
    connected: bool,
    /// Why strategies cannot send orders; absent while they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    strategies: Vec<RemoteStrategyVO>,
    /// Permissions that the login of the server lacks, as the broker reports them.
    missing_rights: Vec<String>,
    /// Strategies whose login may publish on subjects of the server; `SERVERS` if servers and
    /// strategies share an account.
    wide_logins: Vec<String>,
}

#[derive(Serialize, ToSchema)]
struct RemoteStrategyVO {
    name: String,
    /// Whether its process is connected.
    present: bool,
    /// Host and process id of the last process.
    host: String,
}

#[derive(Serialize, ToSchema)]
struct DurabilityVO {
    level: &'static str,
    journal: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShardVO {
    shard: u8,
    complete: bool,
    /// Sequence number of the last event applied.
    seq: u64,
}

#[derive(Serialize, ToSchema)]
struct AdapterHealthVO {
    id: u8,
    name: String,
    connected: bool,
}

#[derive(Serialize, ToSchema)]
struct ListenerVO {
    name: &'static str,
    address: String,
}

impl Readiness {
    fn of(app: &AppState, ready: bool) -> Readiness {
        let (service_status, view) = (&app.monitoring.service_status, app.trading.shard_client.view());
        let shards = (0..app.trading.shard_client.shards()).map(|shard| ShardVO {
            shard,
            complete: view.is_complete(ShardId(shard)),
            seq: view.seq(ShardId(shard)),
        });
        let listeners = service_status.listeners().iter();
        let phase = if app.lifecycle.is_stopping() { ServicePhase::Stopping } else { service_status.phase() };
        Readiness {
            ready,
            phase: phase.name(),
            durability: DurabilityVO {
                level: service_status.durability().word(),
                journal: service_status.journaling().name(),
            },
            kill_switch: view.kills().next().is_some(),
            kill_switch_state: view.switch(Scope::Global).into(),
            kill_switch_unconfirmed: view
                .unconfirmed(DirectiveKey::Kill(Scope::Global))
                .map(|shard| shard.0)
                .collect(),
            shards: shards.collect(),
            adapters: adapters(&app.trading.shard_client),
            listeners: listeners
                .map(|listener| ListenerVO { name: listener.name, address: listener.address.to_string() })
                .collect(),
            broker: app.notifications.remote_strategies.as_deref().map(broker),
            members: app.trading.cluster.as_ref().map(|cluster| cluster_members::members(app.now(), cluster)),
            standby: service_status.standby().map(StandbyVO::of),
            uptime_ms: app.now().since(service_status.started()) / NS_PER_MS,
        }
    }
}

fn broker(remote_strategies: &RemoteStrategies) -> BrokerVO {
    let connected = remote_strategies.up.get();
    let mut strategies = Vec::new();
    remote_strategies.for_each(|name, present, host| {
        strategies.push(RemoteStrategyVO { name: name.to_string(), present, host: host.to_string() });
    });
    BrokerVO {
        transport: remote_strategies.link.transport.word(),
        connected,
        reason: (!connected).then(|| Reason::BrokerLost.code()),
        strategies,
        missing_rights: remote_strategies.violations(),
        wide_logins: remote_strategies.wide_logins(),
    }
}

/// Lists the adapters that the reference data use. The simulated venue is part of the shards and
/// always connected.
fn adapters(shard_client: &ShardClient) -> Vec<AdapterHealthVO> {
    let view = shard_client.view();
    let reference = shard_client.reference();
    let names: BTreeMap<_, _> = reference
        .exchanges()
        .iter()
        .map(|exchange| (exchange.adapter, exchange.adapter_type.as_str()))
        .collect();
    let adapter = |(id, name): (AdapterId, &str)| AdapterHealthVO {
        id: id.0,
        name: name.to_string(),
        connected: id == AdapterId::SIM || view.adapter(id).unwrap_or(false),
    };
    names.into_iter().map(adapter).collect()
}
