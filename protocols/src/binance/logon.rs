//! The phases of a connection: the venue's time, the logon, the subscription to the events of the
//! account and the limits of the account; and the messages that concern the connection as a whole.

use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};
use serde_json::value::RawValue;

use super::UNKNOWN_MARGIN_NS;
use super::answers::code;
use super::message::{EventHead, Inbound, RateLimit, ServerTime, for_each};
use super::session::{
    ANSWER_NS_MAX, BinanceSession, Phase, RequestKind, SentRequest, TIME_INTERVAL_NS, cost,
    reconnect_delay_ns,
};
use crate::websocket::client::ClientFault;

impl BinanceSession {
    /// Handles one message of the venue.
    pub(super) fn handle_message(&mut self, now: Timestamp, message: &[u8]) {
        self.messages_in += 1;
        let Ok(inbound) = serde_json::from_slice::<Inbound<'_>>(message) else {
            self.counts.unknown_values += 1;
            return;
        };
        if let Some(event) = inbound.event {
            return match serde_json::from_str::<EventHead<'_>>(event.get()).map(|head| head.kind) {
                Ok("executionReport") => self.handle_execution(now, event),
                Ok("serverShutdown") => self.close("the venue announces its shutdown"),
                Ok("eventStreamTerminated") => self.close("the venue has ended the account events"),
                // Balances are not ours to keep.
                Ok("outboundAccountPosition" | "balanceUpdate" | "externalLockUpdate" | "listStatus") => {}
                _ => self.counts.unknown_values += 1,
            };
        }
        let sent = inbound.id.and_then(|id| self.requests.remove(&id));
        let at = self.venue_time(now);
        if let Some(sent) = &sent {
            self.limits.handle_answered(at, sent.cost);
        }
        if let Some(list) = inbound.rate_limits {
            self.read_limits(now, list);
        }
        self.note_error(now, &inbound);
        let Some(sent) = sent else {
            self.counts.unknown_orders += u64::from(inbound.error.is_none());
            return;
        };
        match sent.kind {
            RequestKind::Time => self.handle_time(now, &sent, &inbound),
            RequestKind::Logon if inbound.error.is_none() => self.subscribe(now),
            RequestKind::Subscribe if inbound.error.is_none() => self.read_order_limits(now),
            RequestKind::OrderLimits if inbound.error.is_none() => {
                if let Some(list) = inbound.result {
                    self.read_limits(now, list);
                }
                self.become_ready(now);
            }
            RequestKind::Logon | RequestKind::Subscribe | RequestKind::OrderLimits => {
                self.close_refused("the venue refuses the logon", &inbound);
            }
            RequestKind::Place(_)
            | RequestKind::Cancel(_)
            | RequestKind::EndDay(_)
            | RequestKind::Amend(_)
            | RequestKind::Replace(_)
            | RequestKind::Status(_)
            | RequestKind::Trades(_)
            | RequestKind::Snapshot(_) => self.handle_answer(now, &sent, &inbound),
        }
    }

    fn close_refused(&mut self, what: &str, inbound: &Inbound<'_>) {
        let text = inbound.error.as_ref().map_or("", |error| &error.msg);
        self.close(&format!("{what}: {text}"));
    }

    fn read_limits<'a>(&mut self, now: Timestamp, list: &'a RawValue) {
        let at = self.venue_time(now);
        let limits = &mut self.limits;
        for_each(list, |reported: RateLimit<'a>| {
            limits.handle_reported(at, &reported);
        });
    }

    /// Notes what an error says about the whole connection.
    fn note_error(&mut self, now: Timestamp, inbound: &Inbound<'_>) {
        let Some(error) = &inbound.error else { return };
        self.record_error(format!("{} ({})", error.msg, error.code));
        let status = inbound.status.unwrap_or(0);
        if matches!(status, 418 | 429) || matches!(error.code, -1003 | -1015) {
            let retry_after_ms = error.data.as_ref().and_then(|data| data.retry_after);
            self.limits.handle_ban(self.venue_time(now), retry_after_ms);
        }
        if error.code == code::TIMESTAMP && self.phase == Phase::Ready {
            // The clocks have moved apart.
            self.ask_time(now);
        }
        if status == 401 && inbound.id.is_none() {
            self.close("the venue has revoked the key");
        }
    }

    /// Asks for the venue's time, at the end of a ban if there is one: each request during a ban
    /// makes it longer.
    pub(super) fn ask_time(&mut self, now: Timestamp) {
        let banned_until = self.limits.banned_until();
        if self.venue_time(now) < banned_until {
            self.time_at = self.own_time(banned_until);
            return;
        }
        self.time_at = now.plus(TIME_INTERVAL_NS);
        self.send_public(now, RequestKind::Time, cost::TIME, "time");
    }

    /// Takes the venue's time, in the middle of the round trip. An answer that took longer than a
    /// request is valid says nothing, so it is asked for again.
    fn handle_time(&mut self, now: Timestamp, sent: &SentRequest, inbound: &Inbound<'_>) {
        let answer = inbound.result.and_then(|result| serde_json::from_str::<ServerTime>(result.get()).ok());
        let Some(answer) = answer else {
            return self.close_refused("the venue does not tell its time", inbound);
        };
        let round_trip_ns = now.0.saturating_sub(sent.at.0);
        if round_trip_ns > self.settings.receive_window_ns() {
            return self.ask_time(now);
        }
        let middle = sent.at.plus(round_trip_ns / 2);
        let theirs = Timestamp(answer.server_time.saturating_mul(NS_PER_MS));
        self.offset_ns = i64::try_from(i128::from(theirs.0) - i128::from(middle.0)).unwrap_or(0);
        self.round_trip_ns = Some(round_trip_ns);
        if self.phase == Phase::Synchronizing {
            self.log_on(now);
        }
    }

    fn log_on(&mut self, now: Timestamp) {
        if !self.signer.can_log_on() {
            return self.subscribe(now);
        }
        self.phase = Phase::LoggingOn;
        self.send(now, RequestKind::Logon, cost::LOGON, "session.logon", |draft, time| {
            time.write_window(draft);
            time.write_time(draft);
        });
    }

    fn subscribe(&mut self, now: Timestamp) {
        self.phase = Phase::Subscribing;
        if self.signer.can_log_on() {
            return self.send_public(now, RequestKind::Subscribe, cost::LOGON, "userDataStream.subscribe");
        }
        self.send(
            now,
            RequestKind::Subscribe,
            cost::LOGON,
            "userDataStream.subscribe.signature",
            |draft, time| {
                time.write_window(draft);
                time.write_time(draft);
            },
        );
    }

    fn read_order_limits(&mut self, now: Timestamp) {
        self.phase = Phase::ReadingLimits;
        self.send(
            now,
            RequestKind::OrderLimits,
            cost::ORDER_LIMITS,
            "account.rateLimits.orders",
            |draft, time| {
                time.write_window(draft);
                time.write_time(draft);
            },
        );
    }

    fn become_ready(&mut self, now: Timestamp) {
        self.phase = Phase::Ready;
        self.failures = 0;
        self.synchronizations += 1;
        let window_ns = self.settings.receive_window_ns() + UNKNOWN_MARGIN_NS;
        // Nothing that an earlier connection sent arrives after this.
        self.lookups.handle_connect(now.plus(window_ns));
    }

    /// Delays the next attempt, longer with each failure. A ban is waited for.
    pub(super) fn delay_connection(&mut self, now: Timestamp) {
        let delay_ns = reconnect_delay_ns(self.settings.reconnect_s, self.failures);
        self.failures = self.failures.saturating_add(1);
        self.connect_at = now.plus(delay_ns).max(self.own_time(self.limits.banned_until()));
    }

    /// Returns when the oldest request counts as lost.
    pub(super) fn answer_deadline(&self) -> Timestamp {
        let window_ns = self.settings.receive_window_ns() + ANSWER_NS_MAX;
        self.requests.values().map(|sent| sent.at.plus(window_ns)).next().unwrap_or(Timestamp::MAX)
    }

    pub(super) fn is_connected(&self) -> bool {
        !matches!(self.phase, Phase::Disconnected | Phase::Closing)
    }

    pub(super) fn handle_fault(&mut self, now: Timestamp, fault: &ClientFault) {
        if let ClientFault::Refused { status: 418 | 429, retry_after_s } = fault {
            let at = self.venue_time(now);
            let until = retry_after_s.map(|seconds| at.plus(seconds.saturating_mul(NS_PER_S)).0 / NS_PER_MS);
            self.limits.handle_ban(at, until);
        }
        self.close(&format!("the connection has ended: {fault:?}"));
    }
}
