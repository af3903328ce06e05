//! What an initiator and a venue say to each other about orders: requests out (D, F, G, H), answers in (8, 9, 3, j); and about [`prices`].
//! The session around it is [`super::session`], with us as the one who calls.
//!
//! Nothing is lost and nothing sent twice, whenever either side is killed:
//!
//! ```text
//! client ─► shard's journal ─► instruction s ─► D kept under number n, with s ─► wire ─► venue
//! shard's journal ◄─ report ◄─ the number m is not behind us before this ◄─ wire ◄─ venue
//! ```
//!
//! | we end… | and then |
//! |---|---|
//! | before the journal has the order | there is no order, and nobody was told of one |
//! | before the D is kept | the journal has an instruction that the store has no message of: the order is rejected, since it never left |
//! | before the D is on the wire | the venue misses number n, asks for it, and gets it with PossDupFlag; to the venue it is new |
//! | before the venue has answered | its answers wait in its own store: our next Logon has the number we heard last |
//! | before the journal has a report | the number m was not kept, and the report is asked for again |
//! | before the number m is kept | the report comes again: an execution is known by its ExecID, and what is done stays done |
//! | and the numbers are reset, so that nothing can be said again | every open order is asked for; fills that were missed are made of CumQty and AvgPx |
//!
//! Ids need no memory: ClOrdID is made of the order's handle and the request's own id ([`id`]), and both are in the shard. So an answer
//! leads to its order after any number of restarts, and a request that is made again has the id that it had.

pub mod answer;
pub mod ask;
pub mod id;
pub mod prices;

use pitlane_engine::id::AdapterId;
use pitlane_engine::time::{NS_PER_S, Timestamp};

/// How we stand with a venue, beside what every session has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitiatorSettings {
    /// `HeartBtInt`, in seconds.
    pub heart_bt_int_s: u64,
    /// `ReconnectInterval`, in seconds: from the end of a connection to the next attempt.
    pub reconnect_s: u64,
    /// Name and password for the Logon.
    pub login: Option<VenueLogin>,
    /// What the venue calls our account (1); none: it is not told.
    pub account: Option<String>,
    /// Whether the venue answers Order Status Request (H).
    pub supports_status_request: bool,
    /// Whose prices are asked for; none: the venue gives no market data.
    pub market_data_adapter: Option<AdapterId>,
    /// Made once for each data folder: ids of one life are not those of another.
    pub folder_id: u64,
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
            folder_id,
        }
    }

    pub fn next_attempt(&self, now: Timestamp) -> Timestamp {
        now.plus(self.reconnect_s * NS_PER_S)
    }
}

/// Username and Password (553, 554). Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct VenueLogin {
    pub username: String,
    pub password: String,
}

impl std::fmt::Debug for VenueLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VenueLogin").field("username", &self.username).finish_non_exhaustive()
    }
}
