//! State of the order lists: what they are rendered from, and the clients that read long ones.

use std::rc::Rc;

use super::cached_list::{CachedList, ListVersion};
use super::notifications::Notifications;
use super::readers::ListReaders;
use super::ref_data_cache::CurrentRefData;
use super::trading::Trading;

pub(crate) struct OrderLists {
    pub trading: Rc<Trading>,
    pub notifications: Rc<Notifications>,
    ref_data: Rc<CurrentRefData>,
    /// The cached list of all open orders, where they are few.
    pub open_orders: CachedList,
    pub readers: ListReaders,
}

impl OrderLists {
    pub(crate) fn new(
        trading: Rc<Trading>,
        notifications: Rc<Notifications>,
        ref_data: Rc<CurrentRefData>,
    ) -> OrderLists {
        OrderLists {
            trading,
            notifications,
            ref_data,
            open_orders: CachedList::default(),
            readers: ListReaders::default(),
        }
    }

    /// Returns the version of everything but prices.
    pub(crate) fn version(&self) -> ListVersion {
        let events = self.trading.shard_client.changes();
        let names = self.notifications.hub.names().changes();
        ListVersion { events, names, reference: self.ref_data.cache().name }
    }
}
