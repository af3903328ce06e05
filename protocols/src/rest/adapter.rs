//! Adapters of venues.

use serde::Serialize;
use utoipa::ToSchema;

/// An adapter of a venue, and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdapterVO<'a> {
    pub id: u8,
    /// Its name in `adapterType` of exchanges and accounts.
    pub name: &'a str,
    /// Always true for the simulated venue.
    pub connected: bool,
    /// Whether its kill switch is on.
    pub killed: bool,
    /// MICs of its exchanges.
    pub exchanges: Vec<&'a str>,
}
