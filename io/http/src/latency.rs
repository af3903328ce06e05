//! `GET /rest/ext/latency`: percentiles of each stage in each thread, over its last second with any
//! work.

use pitlane_runtime::metrics::StageSummary;
use serde::Serialize;
use utoipa::ToSchema;

use super::monitoring::Monitoring;
use super::response::HttpResponse;
use super::schema_set::SchemaSet;

pub(crate) fn stages(monitoring: &Monitoring) -> HttpResponse {
    let stages: Vec<_> = monitoring.stages().summaries.into_iter().map(StageVO::of).collect();
    HttpResponse::json(&stages)
}

/// Adds the schema of this response.
pub(crate) fn describe(schemas: &mut SchemaSet) {
    schemas.add_response::<StageVO>();
}

/// Duration of one stage in one thread, in nanoseconds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct StageVO {
    thread: String,
    stage: &'static str,
    count: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    max_ns: u64,
}

impl StageVO {
    fn of(summary: StageSummary) -> StageVO {
        let StageSummary { thread, stage, count, p50, p90, p99, p999, max } = summary;
        StageVO { thread, stage, count, p50_ns: p50, p90_ns: p90, p99_ns: p99, p999_ns: p999, max_ns: max }
    }
}
