//! Memory limit of all sessions together. Each session has limits of its own, but thousands of
//! clients that do not read would still hold gigabytes within them. Above the common limit the
//! broker first frees spare memory, and then ends sessions, those with the most waiting octets
//! first.

use std::cmp::Reverse;

use pitlane_engine::index::index_u32;
use pitlane_engine::time::Timestamp;

use super::StompBroker;
use crate::stomp::session::Transport;

/// Share of the limit that is freed when it is reached, as a divisor, so that the sessions are not
/// searched again for every message.
const ROOM_SHARE: usize = 16;

impl StompBroker {
    /// Returns the memory for the waiting output of all sessions, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.held
    }

    /// Updates the memory count of one session.
    pub(super) fn account(&mut self, slot: u32) {
        let Some(connection) = self.connections.at_mut(slot as usize) else { return };
        let copied = match connection.transport {
            Transport::Tcp => 0,
            // Output being written is also held in WebSocket messages.
            Transport::WebSocket => {
                connection.session.fill().out_bytes.min(self.settings.limits.turn_bytes_max)
            }
        };
        let held = connection.session.held_bytes() + copied;
        self.held = self.held - connection.held + held;
        connection.held = held;
    }

    /// Frees memory if all sessions together hold too much.
    pub(super) fn enforce_memory_limit(&mut self, now: Timestamp) {
        let max = self.settings.limits.total_bytes_max;
        if self.held <= max {
            return;
        }
        let target = max - max / ROOM_SHARE;
        let mut worst = Vec::new();
        for slot in 0..index_u32(self.connections.slot_count()) {
            let Some(connection) = self.connections.at_mut(slot as usize) else { continue };
            connection.session.shrink();
            let waiting = connection.session.waiting_bytes();
            if waiting > 0 {
                worst.push((Reverse(waiting), connection.session.progress_at(), slot));
            }
            self.account(slot);
        }
        worst.sort_unstable();
        for (_, _, slot) in worst {
            if self.held <= target {
                return;
            }
            self.connection(slot).session.drop_output(now);
            self.settle(now, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pitlane_engine::refdata::{RefData, RefDataRows};

    use super::*;
    use crate::stomp::broker::SessionId;
    use crate::stomp::close_reason::StompCloseReason;
    use crate::stomp::session::StompClose;
    use crate::stomp::settings::{BrokerSettings, StompLimits};

    const NOW: Timestamp = Timestamp(1);
    const TOTAL: usize = 1 << 20;

    fn broker() -> StompBroker {
        let limits = StompLimits { total_bytes_max: TOTAL, mark_bytes: 64 * 1_024, ..StompLimits::default() };
        let reference = Arc::new(RefData::check(RefDataRows::default()).unwrap());
        StompBroker::new(BrokerSettings { limits, ..BrokerSettings::default() }, reference)
    }

    fn subscriber(broker: &mut StompBroker, transport: Transport) -> SessionId {
        let session = broker.open(NOW, transport).unwrap();
        broker.handle_bytes(NOW, session, b"CONNECT\naccept-version:1.2\nhost:x\n\n\0");
        broker.handle_bytes(NOW, session, b"SUBSCRIBE\nid:1\ndestination:/topic/generic-event.*\n\n\0");
        session
    }

    /// Takes everything that can be written.
    fn read(broker: &mut StompBroker, session: SessionId) {
        loop {
            let count = broker.transmit(session).map_or(0, |transmit| transmit.bytes.len());
            if count == 0 {
                return;
            }
            broker.handle_transmitted(NOW, session, count);
        }
    }

    #[test]
    fn stalled_readers_hold_at_most_the_total_limit_and_free_it() {
        for transport in [Transport::Tcp, Transport::WebSocket] {
            let mut broker = broker();
            let good = subscriber(&mut broker, transport);
            let idle: Vec<_> = (0..100).map(|_| subscriber(&mut broker, transport)).collect();
            let body = [&b"\""[..], &[b'x'; 1_000], b"\""].concat();
            for _ in 0..2_000 {
                let before = broker.held_bytes();
                broker.publish_generic_event(NOW, "a", &body);
                let held = broker.held_bytes();
                // What is freed makes room for a while.
                let most = if held < before { TOTAL - TOTAL / ROOM_SHARE } else { TOTAL };
                assert!(held > 0 && held <= most, "{before} {held}");
                read(&mut broker, good);
            }
            assert_eq!(broker.poll_close(NOW, good), None, "a reader that reads stays");
            let shed = |broker: &StompBroker, session: &SessionId| {
                broker.poll_close(NOW, *session)
                    == Some(StompClose::Immediate(StompCloseReason::SlowConsumer))
            };
            assert!(idle.iter().any(|session| shed(&broker, session)));
            idle.into_iter().for_each(|session| broker.close(session));
            broker.close(good);
            assert_eq!(broker.held_bytes(), 0);
        }
    }

    #[test]
    fn the_session_with_most_waiting_output_is_ended_first() {
        let mut broker = broker();
        let worst = subscriber(&mut broker, Transport::Tcp);
        let body = [&b"\""[..], &[b'x'; 1_000], b"\""].concat();
        (0..200).for_each(|_| broker.publish_generic_event(NOW, "a", &body));
        let others: Vec<_> = (0..10).map(|_| subscriber(&mut broker, Transport::Tcp)).collect();
        while broker.poll_close(NOW, worst).is_none() {
            let late = others.iter().all(|session| broker.poll_close(NOW, *session).is_none());
            assert!(late, "it is the first");
            broker.publish_generic_event(NOW, "a", &body);
        }
    }

    #[test]
    fn spare_memory_is_freed_before_a_session_is_ended() {
        let mut broker = broker();
        let sessions: Vec<_> = (0..40).map(|_| subscriber(&mut broker, Transport::Tcp)).collect();
        let body = [&b"\""[..], &[b'x'; 2_000], b"\""].concat();
        for round in 0..400 {
            broker.publish_generic_event(NOW, "a", &body);
            if round % 8 == 0 {
                sessions.iter().for_each(|session| read(&mut broker, *session));
            }
        }
        assert!(sessions.iter().all(|session| broker.poll_close(NOW, *session).is_none()));
    }
}
