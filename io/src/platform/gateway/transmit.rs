//! What a FIX session has said, on its way to the system and into the session's log: of those who call us, and of venues that we call.

use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::session::FixSession;

use crate::fix::message_log::{self, Way};
use crate::net::ConnectionId;
use crate::net::sockets::Sockets;

/// One write. Says how many bytes the system has taken. `log` has the number under which the session's messages are logged, if they are.
pub fn transmit(
    now: Timestamp,
    session: &mut FixSession,
    id: ConnectionId,
    sockets: &mut Sockets,
    clerk: &mut message_log::FixLogHandle,
    log: Option<u16>,
) -> usize {
    let bytes = session.poll_transmit();
    if bytes.is_empty() {
        return 0;
    }
    // One who is gone will be told of.
    let taken = sockets.write(id, bytes).unwrap_or(0);
    if let Some(number) = log.filter(|_| taken > 0) {
        clerk.log(number, Way::Out, now, &bytes[..taken]);
    }
    session.handle_transmitted(now, taken);
    taken
}
