//! Ways to venues.

use serde::Serialize;
use utoipa::ToSchema;

/// A way to a venue, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdapterVO<'a> {
    pub id: u8,
    /// As exchanges and accounts name it in `adapterType`.
    pub name: &'a str,
    /// The simulated venue always is.
    pub connected: bool,
    /// Whether its kill switch is on.
    pub killed: bool,
    /// MICs of the exchanges it leads to.
    pub exchanges: Vec<&'a str>,
}
