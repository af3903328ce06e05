//! The end of the thread: whether it stops, and what it tells main.

use tokio::sync::Notify;

use super::http_event::HttpEvent;
use super::remote::Remote;

pub struct Lifecycle {
    remote: Remote,
    send_event: Box<dyn Fn(HttpEvent) + Send>,
    /// Notified when connections are to finish.
    pub stopping: Notify,
}

impl Lifecycle {
    pub fn new(remote: Remote, send_event: Box<dyn Fn(HttpEvent) + Send>) -> Lifecycle {
        Lifecycle { remote, send_event, stopping: Notify::new() }
    }

    pub fn is_stopping(&self) -> bool {
        self.remote.is_closing()
    }

    /// Wakes this thread to poll now.
    pub fn wake(&self) {
        self.remote.wakeup().call();
    }

    /// Sends an event to main.
    pub fn send_event(&self, event: HttpEvent) {
        (self.send_event)(event);
    }
}
