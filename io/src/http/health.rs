//! Health, version and metrics: what operators and their monitoring request first.

mod exposition;

use std::collections::BTreeMap;

use hyper::StatusCode;
use pitlane_engine::command::Scope;
use pitlane_engine::directive::DirectiveKey;
use pitlane_engine::id::{AdapterId, ShardId};
use pitlane_engine::reason::Reason;
use pitlane_engine::time::NS_PER_MS;
use pitlane_protocols::rest::SwitchStateVO;
use serde::Serialize;
use utoipa::ToSchema;

use super::app_state::AppState;
use super::cluster::shown::{self, MemberVO};
use super::login::Who;
use super::openapi::Gathered;
use super::remote_strategies::RemoteStrategies;
use super::response::{Answer, Kind};
use super::status::{Journaling, Phase};
use crate::standby::state::StandbyVO;

/// Commit of the build, or `unknown`.
const COMMIT: &str = env!("BUILT_FROM_COMMIT");

/// Returns 200 while the process serves; this does not mean that it is ready.
pub fn live() -> Answer {
    Answer::json(&Live { status: "LIVE" })
}

/// Returns 200 when orders would be accepted, 503 otherwise. The body gives the details, to clients
/// with a login.
pub fn ready(house: &AppState, who: &Who) -> Answer {
    let ready = is_ready(house);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let answer = match who {
        Who::Known(_) => Answer::json(&Ready::of(house, ready)),
        Who::Anybody => Answer::json(&Brief { ready }),
    };
    answer.with_status(status)
}

pub fn version(house: &AppState) -> Answer {
    let formats = house.standing.formats().iter().copied().collect();
    Answer::json(&Version { name: "pitlane", version: env!("CARGO_PKG_VERSION"), commit: COMMIT, formats })
}

pub fn metrics(house: &AppState) -> Answer {
    Answer::text(Kind::Metrics, exposition::all(house))
}

fn is_ready(house: &AppState) -> bool {
    house.standing.phase() == Phase::Running
        && house.standing.journaling() == Journaling::Sound
        && house.floor.is_complete()
        && !house.is_leaving()
}

/// Adds the schemas of these responses.
pub fn describe(gathered: &mut Gathered) {
    gathered.said::<Live>();
    gathered.said::<Ready>();
    gathered.said::<Brief>();
    gathered.said::<Version>();
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
struct Version {
    name: &'static str,
    version: &'static str,
    /// Commit of the build; `unknown` where it was built without git's files.
    commit: &'static str,
    formats: BTreeMap<&'static str, u32>,
}

/// Whether orders would be accepted, and the state of all parts.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Ready {
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
    adapters: Vec<WayVO>,
    listeners: Vec<ListenerVO>,
    /// The broker of strategies in processes of their own; absent where there are none.
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

/// The message broker, and the strategies behind it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BrokerVO {
    connected: bool,
    /// Why strategies cannot send orders; absent while they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    strategies: Vec<OutpostVO>,
    /// Permissions that the login of the server lacks, in the words of the broker.
    missing_rights: Vec<String>,
    /// Strategies whose login may publish on subjects of the server; `SERVERS` if servers and
    /// strategies share an account.
    wide_logins: Vec<String>,
}

#[derive(Serialize, ToSchema)]
struct OutpostVO {
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
struct WayVO {
    id: u8,
    name: String,
    connected: bool,
}

#[derive(Serialize, ToSchema)]
struct ListenerVO {
    name: &'static str,
    address: String,
}

impl Ready {
    fn of(house: &AppState, ready: bool) -> Ready {
        let (standing, view) = (&house.standing, house.floor.view());
        let shards = (0..house.floor.shards()).map(|shard| ShardVO {
            shard,
            complete: view.is_complete(ShardId(shard)),
            seq: view.seq(ShardId(shard)),
        });
        let listeners = standing.listeners().iter();
        let phase = if house.is_leaving() { Phase::Stopping } else { standing.phase() };
        Ready {
            ready,
            phase: phase.word(),
            durability: DurabilityVO {
                level: standing.durability().word(),
                journal: standing.journaling().word(),
            },
            kill_switch: view.kills().next().is_some(),
            kill_switch_state: view.switch(Scope::Global).into(),
            kill_switch_unconfirmed: view
                .unconfirmed(DirectiveKey::Kill(Scope::Global))
                .map(|shard| shard.0)
                .collect(),
            shards: shards.collect(),
            adapters: adapters(house),
            listeners: listeners
                .map(|listener| ListenerVO { name: listener.name, address: listener.address.to_string() })
                .collect(),
            broker: house.outposts.as_deref().map(broker),
            members: house.cluster.as_ref().map(|cluster| shown::members(house, cluster)),
            standby: standing.standby().map(StandbyVO::of),
            uptime_ms: house.now().since(standing.started()) / NS_PER_MS,
        }
    }
}

fn broker(outposts: &RemoteStrategies) -> BrokerVO {
    let connected = outposts.up.get();
    let mut strategies = Vec::new();
    outposts.each(|name, present, host| {
        strategies.push(OutpostVO { name: name.to_string(), present, host: host.to_string() });
    });
    BrokerVO {
        connected,
        reason: (!connected).then(|| Reason::BrokerLost.code()),
        strategies,
        missing_rights: outposts.violations(),
        wide_logins: outposts.wide_logins(),
    }
}

/// Lists the adapters that the reference data use. The simulated venue is part of the shards and
/// always connected.
fn adapters(house: &AppState) -> Vec<WayVO> {
    let view = house.floor.view();
    let reference = house.floor.reference();
    let names: BTreeMap<_, _> = reference
        .exchanges()
        .iter()
        .map(|exchange| (exchange.adapter, exchange.adapter_type.as_str()))
        .collect();
    let adapter = |(id, name): (AdapterId, &str)| WayVO {
        id: id.0,
        name: name.to_string(),
        connected: id == AdapterId::SIM || view.adapter(id).unwrap_or(false),
    };
    names.into_iter().map(adapter).collect()
}
