//! What FIX sessions at the gateways need of the view: positions that a client asks for, and the
//! trading sessions of the exchanges.

use std::cell::RefCell;
use std::collections::BTreeMap;

use pitlane_engine::command::TradingSession;
use pitlane_engine::id::ExchangeId;
use pitlane_gateway::notifications::Notification;

use super::notification_hub::NotificationHub;
use super::shard_client::ShardClient;

/// The trading sessions as last sent to the gateways.
#[derive(Debug, Default)]
pub(crate) struct FixQueries {
    announced: RefCell<BTreeMap<ExchangeId, TradingSession>>,
}

impl FixQueries {
    /// Answers the queries and sends changes of trading sessions. Returns the amount of work done.
    /// The view must have all events that have arrived: a client must find its own fills.
    pub(crate) fn poll(&self, shard_client: &ShardClient, hub: &NotificationHub) -> usize {
        let (reference, view) = (shard_client.reference(), shard_client.view());
        let mut work = hub.answer_positions(|query| query.rows(&view, &reference));
        let mut announced = self.announced.borrow_mut();
        for exchange in reference.exchanges() {
            let Some(session) = view.session(exchange.id) else { continue };
            if announced.insert(exchange.id, session) != Some(session) {
                hub.send_to_gateways(&Notification::TradingSession { exchange: exchange.id, session });
                work += 1;
            }
        }
        work
    }
}
