//! Accounts.

use pitlane_engine::refdata::Account;
use serde::Serialize;
use utoipa::ToSchema;

/// An account at a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountVO<'a> {
    pub id: u16,
    pub name: &'a str,
    /// Whether orders may be sent with it.
    pub active: bool,
    /// The adapter that leads to its venue.
    pub adapter_type: &'a str,
    /// The same under the specification's other name.
    pub broker: &'a str,
}

impl AccountVO<'_> {
    pub fn of(row: &Account) -> AccountVO<'_> {
        AccountVO {
            id: row.id.0,
            name: &row.name,
            active: row.active,
            adapter_type: &row.adapter_type,
            broker: &row.adapter_type,
        }
    }
}
