//! Strategies.

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::refdata::StrategyInfo;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::NamedValue;
use super::schema::PhaseSchema;

/// A strategy. The server itself is the one named `SERVER`, with id 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrategyVO<'a> {
    pub id: u16,
    pub name: &'a str,
    /// Whether it starts by itself.
    pub auto_activate: bool,
    /// Its phase in the life cycle.
    #[schema(value_type = PhaseSchema)]
    pub phase: NamedValue<StrategyPhase>,
    /// REAL_TIME or SIMULATION.
    pub mode: &'static str,
    /// Why it was stopped, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl<'a> StrategyVO<'a> {
    /// Returns the value object. `failure` is the last failure; it is shown while the strategy is
    /// stopped.
    pub fn of(
        row: &'a StrategyInfo,
        phase: StrategyPhase,
        is_simulation: bool,
        failure: Option<&str>,
    ) -> StrategyVO<'a> {
        StrategyVO {
            id: row.id.0,
            name: &row.name,
            auto_activate: row.auto_activate,
            phase: NamedValue(phase),
            mode: if is_simulation { "SIMULATION" } else { "REAL_TIME" },
            reason: failure.filter(|_| phase == StrategyPhase::Stop).map(str::to_string),
        }
    }
}

/// The phase that a strategy must enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PhaseVO {
    #[schema(value_type = PhaseSchema)]
    pub phase: NamedValue<StrategyPhase>,
}
