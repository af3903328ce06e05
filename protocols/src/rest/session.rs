//! Connected clients, and the rate of their market data.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Decimal, Moment};
use crate::venue::LimitUse;

/// A FIX, STOMP or WebSocket client, or a venue. Values that a protocol does not have are absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionVO {
    pub id: String,
    /// FIX, STOMP, WEBSOCKET, or VENUE for a venue that we connect to.
    pub kind: &'static str,
    /// A login, or the names of a FIX session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Address of the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    pub since: Moment,
    pub state: &'static str,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub messages_in: u64,
    pub messages_out: u64,
    /// Bytes of output that the connection has not taken yet.
    pub queue_bytes: u64,
    /// Market data events replaced by newer ones before they were sent.
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
    /// The next sequence numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_out: Option<u64>,
    /// Newest round trip to a venue, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u64>,
    /// Time of the venue less our time, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_offset_us: Option<i64>,
    /// Last refusal of the venue, or why its last connection ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Limits of the venue, and how much of each is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<VenueLimitVO>>,
}

/// A limit of a venue: requests or orders in an interval of the venue's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VenueLimitVO {
    /// `weight` of requests, or `orders`.
    pub name: &'static str,
    pub interval_s: u64,
    pub used: u64,
    pub allowed: u64,
}

impl From<&LimitUse> for VenueLimitVO {
    fn from(limit: &LimitUse) -> VenueLimitVO {
        let LimitUse { name, interval_s, used, allowed } = *limit;
        VenueLimitVO { name, interval_s, used, allowed }
    }
}

/// Rates of market data over WebSocket, in events per second. In a request, absent values stay
/// unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct RatesVO {
    /// Over one connection; zero or less: no limit.
    pub max_rate_per_connection: Option<Decimal>,
    /// Instruments with fewer events are not throttled; zero or less: all are.
    pub min_rate_per_consumer: Option<Decimal>,
}
