//! What the sessions of this thread learn from the http thread, which has the state of all shards:
//! trading sessions of the exchanges, and positions on request.
//!
//! ```text
//! http ─ Notification::TradingSession ─► FixEndpoint ─► each session
//! FixSession ─ PositionQuery ─► http ─ Notification::Positions ─► FixSession
//! ```
//!
//! A gateway without STOMP receives no such events of the shards beside its snapshot.

use std::sync::Arc;

use pitlane_engine::command::TradingSession;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::ExchangeId;
use pitlane_protocols::fix::positions::PositionRow;

use super::{FixEndpoint, client_of, numbers_of};
use crate::notifications::Notification;

impl FixEndpoint {
    /// Takes the trading session of an exchange from a snapshot at the start, before a client can
    /// ask. Later ones come from the http thread.
    pub(super) fn handle_early_session(&mut self, event: &Event) {
        if let EventKind::Session { exchange, session } = event.body {
            self.set_trading_session(exchange, session);
        }
    }

    /// Handles the answers and news of the http thread. Returns whether the notification was one.
    pub(super) fn handle_answer(&mut self, notification: &Notification) -> bool {
        if let Notification::TradingSession { exchange, session } = *notification {
            self.set_trading_session(exchange, session);
        } else if let Notification::Positions { session, token, rows } = notification {
            self.pass_positions(*session, *token, rows);
        } else {
            return false;
        }
        true
    }

    fn set_trading_session(&mut self, exchange: ExchangeId, session: TradingSession) {
        self.trading_sessions.insert(exchange, session);
        for number in numbers_of(&self.clients) {
            if let Some(client) = client_of(&mut self.clients, number) {
                client.session.handle_trading_session(exchange, session);
                self.wake(number);
            }
        }
    }

    fn pass_positions(&mut self, number: u16, token: u32, rows: &Arc<[PositionRow]>) {
        if let Some(client) = client_of(&mut self.clients, number) {
            client.session.handle_positions(token, rows.clone());
            self.wake(number);
        }
    }

    /// Asks the http thread for the positions that a session wants.
    pub(super) fn pass_position_query(&mut self, number: u16) {
        let Some(client) = client_of(&mut self.clients, number) else { return };
        if let Some(query) = client.session.poll_position_query() {
            self.notifications.push(Notification::PositionQuery { session: number, query });
        }
    }
}
