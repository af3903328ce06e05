//! The end of connections: lost ones, and those that remain when the service stops.

use pitlane_engine::time::Timestamp;
use pitlane_net::ConnectionId;
use pitlane_net::sockets::Sockets;
use pitlane_protocols::fix::session::FixSessionState;

use super::{FixEndpoint, WIND_DOWN_NS_MAX, client_of};

impl FixEndpoint {
    /// Handles a lost connection; the session remains.
    pub(super) fn handle_disconnect(&mut self, now: Timestamp, id: ConnectionId) {
        if self.pending_logons.leave(id).is_some() || self.remove_challenger(id) {
            return;
        }
        let Some(number) = self.number_of(id) else { return };
        self.session_numbers.remove(id);
        if let Some(client) = client_of(&mut self.clients, number) {
            let lost = (client.session.state() != FixSessionState::Closing).then(|| client.name.clone());
            client.disconnect(now);
            self.notifications.extend(client.take_state_change());
            self.deadline = self.deadline.min(client.session.poll_timeout().unwrap_or(Timestamp::MAX));
            if let Some(name) = lost.filter(|_| self.may_log(now)) {
                tracing::info!(session = name, "FIX connection lost");
            }
        }
        self.apply_market_interests(now, number);
    }

    /// Closes the connections that have not answered the Logout in time.
    pub(super) fn close_remaining(&mut self, now: Timestamp, sockets: &mut Sockets) {
        let Some(since) = self.ending_since else { return };
        self.close_challengers(sockets);
        for id in self.pending_logons.drain() {
            sockets.close(id);
        }
        if now < since.plus(WIND_DOWN_NS_MAX) {
            return;
        }
        for id in self.session_numbers.keys() {
            sockets.close(id);
            self.handle_disconnect(now, id);
        }
    }
}
