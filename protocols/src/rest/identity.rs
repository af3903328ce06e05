//! Who a client is to the service.

use serde::Serialize;
use utoipa::ToSchema;

/// Who asks, and what he may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityVO<'a> {
    /// `local` where nobody must log in; empty for whoever did not, where one must.
    pub name: &'a str,
    /// `read`, `trade` or `admin`; each may all that the one before may.
    pub role: String,
}
