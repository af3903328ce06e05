//! Identity of a client.

use serde::Serialize;
use utoipa::ToSchema;

/// The client of the request, and its role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityVO<'a> {
    /// `local` if no login is required; empty for a client without a required login.
    pub name: &'a str,
    /// `read`, `trade` or `admin`; each includes the permissions of the one before.
    pub role: String,
}
