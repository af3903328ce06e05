//! Writes the output of a FIX session to its socket and its message log: for client and venue
//! sessions.

use pitlane_engine::time::Timestamp;
use pitlane_net::ConnectionId;
use pitlane_net::sockets::Sockets;
use pitlane_protocols::fix::session::FixSession;

use crate::fix::message_log::{self, MessageDirection};

/// Writes once. Returns the number of bytes that the socket took. `log` is the number under which
/// the session's messages are logged, if they are.
pub(super) fn transmit(
    now: Timestamp,
    session: &mut FixSession,
    id: ConnectionId,
    sockets: &mut Sockets,
    fix_log: &mut message_log::FixLogHandle,
    log: Option<u16>,
) -> usize {
    let bytes = session.poll_transmit();
    if bytes.is_empty() {
        return 0;
    }
    // The socket reports a connection that is gone with an event of its own.
    let taken = sockets.write(id, bytes).unwrap_or(0);
    if let Some(number) = log.filter(|_| taken > 0) {
        fix_log.log(number, MessageDirection::Out, now, &bytes[..taken]);
    }
    session.handle_transmitted(now, taken);
    taken
}
