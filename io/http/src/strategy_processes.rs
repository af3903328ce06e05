//! The processes of remote strategies: connects to their broker, answers their requests, and
//! watches which of them are connected. What they receive and have requested is in
//! [`super::remote_strategies`].
//!
//! ```text
//! ShardClient ◄─ handle ◄─ RemoteRequest ◄─ wire ◄─ broker
//!                  └─► RemoteStrategies ─ take ─► wire ─► broker: events.<strategy>, market, replies
//! ```
//!
//! **Failure.** A process that is silent for a lease has its strategy stopped. While the broker is
//! away no process can be received, and none counts as silent. A process that returns finds its
//! strategy stopped, or the strategy is started again: see `watch`.

mod messages;
mod pace;
mod watch;
pub(crate) mod wire;
