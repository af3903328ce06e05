//! The receivers of notifications: the clients of this thread, the gateways and the strategies in
//! processes of their own.

use std::rc::Rc;

use pitlane_gateway::notifications::Notification;

use super::notification_hub::NotificationHub;
use super::remote_strategies::RemoteStrategies;
use super::websocket_broker::WebSocketBroker;

pub(crate) struct Notifications {
    pub ws_broker: Rc<WebSocketBroker>,
    pub hub: NotificationHub,
    /// Strategies in processes of their own; `None` if there are none.
    pub remote_strategies: Option<Rc<RemoteStrategies>>,
}

impl Notifications {
    /// Sends a notification of this thread to all threads with clients.
    pub(crate) fn announce(&self, notification: Notification) {
        self.hub.announce(&self.ws_broker, notification);
    }

    /// Forwards notifications, serves the clients of the broker, and returns the amount of work
    /// done.
    pub(crate) fn poll(&self) -> usize {
        let remote_strategies = self.remote_strategies.as_deref();
        let work = self.hub.poll(&self.ws_broker, remote_strategies)
            + self.ws_broker.poll_timeout()
            + self.ws_broker.revoke();
        if let Some(remote_strategies) = remote_strategies {
            remote_strategies.poll_pace();
        }
        work
    }
}
