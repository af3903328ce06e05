//! What operators and their monitoring observe: counters, the state of the service, latencies.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use pitlane_net::tls::Tls;
use pitlane_runtime::metrics::{Registry, StageReport};

use super::meter::Meter;
use super::status::ServiceStatus;
use super::websocket_broker::WebSocketBroker;

pub(crate) struct Monitoring {
    pub meter: Rc<Meter>,
    pub registry: Arc<Registry>,
    pub service_status: Arc<ServiceStatus>,
    pub tls: Option<Arc<Tls>>,
    ws_broker: Rc<WebSocketBroker>,
    stages: RefCell<Box<dyn FnMut() -> StageReport + Send>>,
}

impl Monitoring {
    pub(crate) fn new(
        meter: Rc<Meter>,
        registry: Arc<Registry>,
        service_status: Arc<ServiceStatus>,
        tls: Option<Arc<Tls>>,
        ws_broker: Rc<WebSocketBroker>,
        stages: Box<dyn FnMut() -> StageReport + Send>,
    ) -> Monitoring {
        Monitoring { meter, registry, service_status, tls, ws_broker, stages: RefCell::new(stages) }
    }

    /// Returns the latencies of every thread.
    pub(crate) fn stages(&self) -> StageReport {
        self.ws_broker.poll_stages();
        (self.stages.borrow_mut())()
    }
}
