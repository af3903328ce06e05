//! Messages between an initiator and a venue: requests out (D, F, G, H) and answers in (8, 9, 3,
//! j), and market data in [`prices`]. The session around them is [`super::session`].
//!
//! Nothing is lost and nothing is sent twice, whenever either side is killed:
//!
//! ```text
//! client ─► journal ─► instruction s ─► D saved under number n with s ─► wire ─► venue
//! journal ◄─ report ◄─ number m is not saved before this ◄─ wire ◄─ venue
//! ```
//!
//! | we end before … | then |
//! |---|---|
//! | the journal has the order | no order exists, and no client has a report of one |
//! | the D is saved | the journal has an instruction without a message: the order is rejected, since it never left |
//! | the D is on the wire | the venue misses number n, requests it, and gets it with PossDupFlag; it is new to the venue |
//! | the venue has answered | its answers wait in its own store: our next Logon has the last number we received |
//! | the journal has a report | number m was not saved, and the report is requested again |
//! | number m is saved | the report arrives again: an execution is known by its ExecID, and other reports have no further effect |
//!
//! If the numbers are reset as well, so that nothing can be resent, every open order is requested
//! from the venue; missed fills are made from CumQty and AvgPx.
//!
//! Ids need no table: ClOrdID is made from the order's handle and the request's own id ([`id`]),
//! and both are in the shard. So an answer leads to its order after any number of restarts, and a
//! repeated request has the id that it had.
//!
//! Rules: docs/fix-rules.md#venue-recovery.

pub mod answer;
pub mod request;
pub mod id;
pub mod prices;
pub mod profile;

use pitlane_engine::id::AdapterId;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use self::profile::VenueProfile;

/// Settings of a session with a venue, beside those of every session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitiatorSettings {
    /// `HeartBtInt`, in seconds.
    pub heart_bt_int_s: u64,
    /// `ReconnectInterval`, in seconds: from the end of a connection to the next attempt.
    pub reconnect_s: u64,
    /// Username and password for the Logon.
    pub login: Option<VenueLogin>,
    /// The venue's name of our account (1); `None` means that it is not sent.
    pub account: Option<String>,
    /// Whether the venue answers Order Status Request (H).
    pub supports_status_request: bool,
    /// Adapter whose market data is requested; `None` if the venue provides none.
    pub market_data_adapter: Option<AdapterId>,
    /// MarketDepth (264) of its requests: 1 for the best prices, 0 for all levels.
    pub market_depth: u16,
    /// Id made once for each data folder, so that ids of different folders differ.
    pub folder_id: u64,
    /// Dialect of the venue.
    pub profile: VenueProfile,
}

impl InitiatorSettings {
    pub fn new(folder_id: u64) -> InitiatorSettings {
        InitiatorSettings {
            heart_bt_int_s: 30,
            reconnect_s: 5,
            login: None,
            account: None,
            supports_status_request: false,
            market_data_adapter: None,
            market_depth: 1,
            folder_id,
            profile: VenueProfile::default(),
        }
    }

    pub fn next_attempt(&self, now: Timestamp) -> Timestamp {
        now.plus(self.reconnect_s * NS_PER_S)
    }
}

/// Username and Password (553, 554). They are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct VenueLogin {
    pub username: String,
    /// None: a signature takes its place.
    pub password: Option<String>,
}

impl std::fmt::Debug for VenueLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VenueLogin").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_never_shown() {
        let login = VenueLogin { username: "me".to_string(), password: Some("secret".to_string()) };
        assert_eq!(format!("{login:?}"), "VenueLogin { .. }");
    }
}
