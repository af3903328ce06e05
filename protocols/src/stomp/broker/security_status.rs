//! Trading status of securities: the session of their exchange, and halts. Every shard reports the
//! session of an exchange; it is published once.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::command::TradingSession;
use pitlane_engine::id::{ExchangeId, SecurityId};
use pitlane_engine::time::Timestamp;

use super::StompBroker;
use crate::sbe;
use crate::stomp::payload::EventStamp;
use crate::stomp::payload::market_data::{self, SecurityStatusPayload};
use crate::stomp::topic::Topic;

/// What is known since the start of the broker; bounded by the reference data.
#[derive(Debug, Default)]
pub(super) struct SecurityStatuses {
    sessions: BTreeMap<ExchangeId, TradingSession>,
    halted: BTreeSet<SecurityId>,
}

impl StompBroker {
    /// Publishes the status of every security of an exchange that enters another session.
    pub(super) fn publish_session_change(
        &mut self,
        now: Timestamp,
        stamp: EventStamp,
        exchange: ExchangeId,
        session: TradingSession,
    ) {
        if self.statuses.sessions.insert(exchange, session) == Some(session) || self.index.is_empty() {
            return;
        }
        let reference = self.reference.clone();
        for row in reference.securities().iter().filter(|row| reference.exchange_of(row).id == exchange) {
            self.publish_status(now, stamp, row.id);
        }
    }

    pub(super) fn publish_halt(&mut self, now: Timestamp, stamp: EventStamp, security: SecurityId, on: bool) {
        let is_new = match on {
            true => self.statuses.halted.insert(security),
            false => self.statuses.halted.remove(&security),
        };
        if is_new {
            self.publish_status(now, stamp, security);
        }
    }

    fn publish_status(&mut self, now: Timestamp, stamp: EventStamp, security: SecurityId) {
        let reference = self.reference.clone();
        let exchange = reference.security(security).map(|row| reference.exchange_of(row).id);
        let session = exchange.and_then(|exchange| self.statuses.sessions.get(&exchange).copied());
        let status =
            SecurityStatusPayload { security, session, is_halted: self.statuses.halted.contains(&security) };
        self.publish_forms(
            now,
            &Topic::SecurityStatus(security),
            stamp.at,
            |out| market_data::security_status(out, stamp, &status, &reference),
            |out| sbe::security_status(out, stamp, &status),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pitlane_engine::refdata::{RefData, sample};

    use super::*;
    use crate::stomp::session::Transport;
    use crate::stomp::settings::BrokerSettings;

    #[test]
    fn a_session_that_every_shard_reports_is_published_once() {
        let (now, stamp) = (Timestamp(1), EventStamp { seq: 1, at: Timestamp(1) });
        let reference = Arc::new(RefData::check(sample::sound()).unwrap());
        let mut broker = StompBroker::new(BrokerSettings::default(), reference);
        let client = broker.open(now, Transport::Tcp).unwrap();
        broker.handle_bytes(now, client, b"CONNECT\naccept-version:1.2\n\n\0");
        broker.handle_bytes(now, client, b"SUBSCRIBE\nid:1\ndestination:/topic/status.*\n\n\0");
        let sessions = [TradingSession::Continuous, TradingSession::Continuous, TradingSession::Closed];
        let counts = sessions.map(|session| {
            broker.publish_session_change(now, stamp, ExchangeId(1), session);
            let bytes = broker.transmit(client).map_or(0, |transmit| transmit.bytes.len());
            broker.handle_transmitted(now, client, bytes);
            bytes
        });
        assert!(counts[0] > 0 && counts[1] == 0 && counts[2] > 0, "{counts:?}");
    }
}
