//! State of the cluster's members, for operators: `GET /rest/ext/cluster`, and a part of
//! `/health/ready`.

use pitlane_engine::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::cluster::{ClusterNode, MemberState, PeerPhase};
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::schema_set::SchemaSet;
use super::trading::Trading;

/// Lists the other servers; empty if this server is alone.
pub(crate) fn all(trading: &Trading, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let members = trading.cluster.as_ref().map(|cluster| members(trading.now(), cluster));
    Ok(HttpResponse::list(members.unwrap_or_default().into_iter()))
}

pub(crate) fn members(now: Timestamp, cluster: &ClusterNode) -> Vec<MemberVO> {
    cluster.members(now).into_iter().map(MemberVO::of).collect()
}

/// Adds the schema of this response.
pub(crate) fn describe(schemas: &mut SchemaSet) {
    schemas.add_response::<MemberVO>();
}

/// Another server of the cluster, as this one sees it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemberVO {
    name: String,
    /// Numbers of the shards that it owns.
    shards: Vec<u8>,
    /// UP, JOINING, DOWN, or INCOMPATIBLE for one of another build or with other settings or
    /// reference data.
    state: &'static str,
    /// Milliseconds since its last message; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_ms: Option<u64>,
    /// Commands that were sent to it and not answered.
    in_doubt: usize,
    /// Ids of the orders and requests among them, the first hundred.
    doubts: Vec<String>,
    /// Commands sent to it.
    routed: u64,
    /// Commands refused because it was down.
    refused: u64,
    /// Events received from it.
    events: u64,
    /// Times that missing events were requested.
    gaps: u64,
    /// Snapshots taken.
    snapshots: u64,
}

impl MemberVO {
    fn of(member: MemberState) -> MemberVO {
        let state = match member.phase {
            _ if member.is_incompatible => "INCOMPATIBLE",
            PeerPhase::Up => "UP",
            PeerPhase::Joining => "JOINING",
            PeerPhase::Down => "DOWN",
        };
        MemberVO {
            name: member.name,
            shards: member.shards.iter().map(|shard| shard.0).collect(),
            state,
            age_ms: member.age_ms,
            in_doubt: member.in_doubt,
            doubts: member.doubts.iter().map(ToString::to_string).collect(),
            routed: member.counts.routed,
            refused: member.counts.refused,
            events: member.counts.events,
            gaps: member.counts.gaps,
            snapshots: member.counts.snapshots,
        }
    }
}
