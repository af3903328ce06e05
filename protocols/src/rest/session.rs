//! Clients that are connected, and how fast market data may go to them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Decimal, Moment};

/// A FIX, STOMP or WebSocket client, or a venue. What a protocol does not have is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionVO {
    pub id: String,
    /// FIX, STOMP, WEBSOCKET, and VENUE for one that we are connected to.
    pub kind: &'static str,
    /// Who: a login, or the names of a FIX session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// From which address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    pub since: Moment,
    pub state: &'static str,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub messages_in: u64,
    pub messages_out: u64,
    /// Bytes said and not yet taken by the connection.
    pub queue_bytes: u64,
    /// Market data events replaced by newer ones before they went out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflated: Option<u64>,
    /// Market data topics that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u64>,
    /// Other messages that wait, and their bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<u64>,
    /// The numbers of the messages that come next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_out: Option<u64>,
}

/// How fast market data goes over WebSocket, in events a second. In a request, what is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct RatesVO {
    /// Over one connection; zero or less: as fast as it comes.
    pub max_rate_per_connection: Option<Decimal>,
    /// Instruments with fewer events are not throttled; zero or less: all are.
    pub min_rate_per_consumer: Option<Decimal>,
}
