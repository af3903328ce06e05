//! Binance Spot as a venue: orders and account events over one connection of its WebSocket API, and
//! market data over another one ([`market_stream`], and [`books`] for the levels).
//!
//! ```text
//! Disconnected ─► Connecting ─► Synchronizing ─► LoggingOn ─► Subscribing ─► ReadingLimits ─► Ready
//!      ▲              time ────────┘    session.logon ┘   userDataStream ┘  account.rateLimits ┘ │
//!      └── silence, close, serverShutdown, 24 hours, eventStreamTerminated, a ban ◄──────────────┘
//! ```
//!
//! The venue does not resend what was missed, so everything is looked up: after each connection the
//! shards query their open orders, and the adapter reads the state and the trades of each
//! ([`lookup`]). No store is needed: the client order id is made from the handle of the order and
//! the id of the data folder, and stays the same for the life of the order.
//!
//! | order at the venue | client order id |
//! |---|---|
//! | works, is filled, or was ended by the venue | twenty characters, from the handle |
//! | was cancelled on our request | the same after `C` |
//! | was replaced by a new order | the same after `R` |
//! | was cancelled because its trading day is over ([`day_end`]) | the same after `D` |
//!
//! A request that got lost must not arrive later, when the order is given up. Each request has a
//! time and a receive window, after which the venue refuses it; so "no such order" ends an order
//! only when that window has passed ([`UNKNOWN_MARGIN_NS`]).
//!
//! The facts are those of <https://github.com/binance/binance-spot-api-docs>: `web-socket-api.md`,
//! `user-data-stream.md`, `web-socket-streams.md`, `errors.md` and `enums.md`. The rules for users
//! are in `docs/guide/venues.md`.

mod adapter;
mod answers;
mod books;
mod day_end;
mod events;
pub mod exchange_info;
mod fees;
mod held;
mod instructions;
pub mod limits;
mod logon;
mod lookup;
mod market_stream;
mod message;
mod request;
mod session;
mod socket;

use std::fmt;

use pitlane_engine::id::AdapterId;
use pitlane_engine::time::{NS_PER_MS, NS_PER_S};

pub use self::books::BUFFERED_LEVELS_MAX;
pub use self::fees::FEE_ASSETS_MAX;
pub use self::held::HELD_ORDERS_MAX;
pub use self::lookup::LOOKUPS_IN_FLIGHT_MAX;
pub use self::market_stream::STREAMS_MAX;
pub use self::session::{BinanceSession, REQUESTS_MAX};

/// Time beyond the receive window until "no such order" is believed: the venue may check the window
/// before its matching engine has the order.
pub const UNKNOWN_MARGIN_NS: u64 = NS_PER_S;

/// Signs requests. The keys are outside, so that this crate holds no secret and no cryptography.
pub trait Signer: fmt::Debug + Send {
    /// Appends the signature of the payload, as the venue expects it in a request.
    fn sign(&self, payload: &[u8], out: &mut Vec<u8>);

    /// Returns whether one logon authenticates the connection, so that requests need no signature.
    /// The venue offers that for Ed25519 keys only.
    fn can_log_on(&self) -> bool;
}

/// Settings of the adapter. The key is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct BinanceSettings {
    /// Adapter that exchanges of the reference data name.
    pub adapter: AdapterId,
    /// Host and port for the handshake, and the path of the WebSocket API.
    pub host: String,
    pub path: String,
    pub api_key: String,
    /// Time for which a request is valid, in milliseconds.
    pub receive_window_ms: u64,
    /// Time to the first new attempt after a connection, in seconds; it doubles with each failure.
    pub reconnect_s: u64,
    /// Id made once for each data folder, so that ids of different folders differ.
    pub folder_id: u64,
    /// Where market data come from; `None`: nowhere.
    pub market_data: Option<StreamAddress>,
    /// Levels of each side that are published: 1 for the best prices only, 0 for as many as there
    /// can be.
    pub market_depth: u16,
}

/// Address of the market streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamAddress {
    pub host: String,
    pub path: String,
}

impl fmt::Debug for BinanceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BinanceSettings { adapter, host, path, .. } = self;
        f.debug_struct("BinanceSettings")
            .field("adapter", adapter)
            .field("host", host)
            .field("path", path)
            .finish_non_exhaustive()
    }
}

impl BinanceSettings {
    pub fn receive_window_ns(&self) -> u64 {
        self.receive_window_ms * NS_PER_MS
    }
}
