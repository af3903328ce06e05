//! The end of the thread: whether it stops, and what it tells main.

use tokio::sync::Notify;

use super::http_event::HttpEvent;
use super::remote::Remote;

pub(crate) struct Lifecycle {
    remote: Remote,
    send_event: Box<dyn Fn(HttpEvent) + Send>,
    /// Notified when connections are to finish.
    pub stopping: Notify,
}

impl Lifecycle {
    pub(crate) fn new(remote: Remote, send_event: Box<dyn Fn(HttpEvent) + Send>) -> Lifecycle {
        Lifecycle { remote, send_event, stopping: Notify::new() }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.remote.is_closing()
    }

    /// Wakes this thread to poll now.
    pub(crate) fn wake(&self) {
        self.remote.wakeup().call();
    }

    /// Sends an event to main.
    pub(crate) fn send_event(&self, event: HttpEvent) {
        (self.send_event)(event);
    }
}
