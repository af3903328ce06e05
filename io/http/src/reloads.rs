//! Reloads of the reference data: main reads them from disk, and this thread passes them on to the
//! gateways.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use pitlane_gateway::reload::ReloadedRefData;
use pitlane_runtime::mailbox::{MailboxFull, MailboxReceiver, MailboxSender};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::http_event::HttpEvent;
use super::lifecycle::Lifecycle;
use super::problem::Problem;

/// Source of the reference data that main has reloaded, and the gateways that receive them.
#[derive(Debug)]
pub struct RefDataReloads {
    answers: MailboxReceiver<Result<ReloadedRefData, String>>,
    gateways: Vec<GatewayReloads>,
}

#[derive(Debug)]
struct GatewayReloads {
    mailbox: MailboxSender<ReloadedRefData>,
    /// The newest data, if there was no room for them yet.
    waiting: Option<ReloadedRefData>,
}

impl RefDataReloads {
    pub fn new(
        answers: MailboxReceiver<Result<ReloadedRefData, String>>,
        gateways: Vec<MailboxSender<ReloadedRefData>>,
    ) -> RefDataReloads {
        let reloads = |mailbox| GatewayReloads { mailbox, waiting: None };
        RefDataReloads { answers, gateways: gateways.into_iter().map(reloads).collect() }
    }
}

impl GatewayReloads {
    /// Sends the waiting data, if there is room. Returns how many were sent.
    fn poll(&mut self) -> usize {
        let Some(reloaded) = self.waiting.take() else { return 0 };
        match self.mailbox.send(reloaded) {
            Ok(()) => 1,
            Err(MailboxFull(reloaded)) => {
                self.waiting = Some(reloaded);
                0
            }
        }
    }
}

/// Reloads one at a time; a request during a reload is refused.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    reloads: RefCell<Option<RefDataReloads>>,
    answer: RefCell<Option<Result<ReloadedRefData, String>>>,
    arrived: Notify,
    is_busy: Cell<bool>,
}

impl Reloads {
    pub(crate) fn new(reloads: Option<RefDataReloads>) -> Reloads {
        Reloads { reloads: RefCell::new(reloads), ..Reloads::default() }
    }

    /// Takes data that main has read, and passes waiting data on.
    pub(crate) fn poll(&self) -> usize {
        let mut reloads = self.reloads.borrow_mut();
        let Some(RefDataReloads { answers, gateways }) = reloads.as_mut() else { return 0 };
        let forwarded: usize = gateways.iter_mut().map(GatewayReloads::poll).sum();
        let Some(answer) = answers.poll() else { return forwarded };
        *self.answer.borrow_mut() = Some(answer);
        self.arrived.notify_one();
        forwarded + 1
    }

    /// Begins a reload. No other can begin until the guard is dropped.
    pub(crate) fn begin(&self) -> Result<ReloadGuard<'_>, Problem> {
        if self.reloads.borrow().is_none() {
            return Err(Problem::unprocessable(
                "no-reference-files",
                "there are no reference files to reload",
            ));
        }
        if self.is_busy.replace(true) {
            return Err(Problem::conflict("cache-busy", "the reference data are being reloaded already"));
        }
        Ok(ReloadGuard(&self.is_busy))
    }

    /// Has main read the data, and waits for them.
    pub(crate) async fn reload(
        &self,
        lifecycle: &Lifecycle,
        answer_timeout: Duration,
    ) -> Result<ReloadedRefData, Problem> {
        // The result of an earlier request that timed out is not ours.
        self.answer.take();
        lifecycle.send_event(HttpEvent::ReloadRequested);
        let arrived = async {
            loop {
                if let Some(answer) = self.answer.take() {
                    return answer;
                }
                self.arrived.notified().await;
            }
        };
        let answer = timeout(answer_timeout, arrived).await.map_err(|_| Problem::no_answer())?;
        answer.map_err(|faults| {
            let lines: Vec<_> = faults.lines().map(str::to_string).collect();
            Problem::unprocessable("bad-reference-data", faults.clone()).with("faults", lines)
        })
    }

    /// Sends the data to every gateway; all shards have them already. A gateway without room
    /// receives the newest data in a later cycle.
    pub(crate) fn forward(&self, reloaded: &ReloadedRefData) {
        let mut reloads = self.reloads.borrow_mut();
        let Some(RefDataReloads { gateways, .. }) = reloads.as_mut() else { return };
        for gateway in gateways {
            gateway.waiting = Some(reloaded.clone());
            gateway.poll();
        }
    }
}

/// Allows the next request when the reload ends, successfully or not.
pub(crate) struct ReloadGuard<'a>(&'a Cell<bool>);

impl Drop for ReloadGuard<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pitlane_engine::refdata::{RefData, RefDataRows};
    use pitlane_gateway::control::ControlSettings;
    use pitlane_gateway::reload::RELOADS_MAX;
    use pitlane_runtime::mailbox::mailbox;
    use pitlane_runtime::wakeup::Wakeup;

    use super::*;

    #[test]
    fn a_gateway_without_room_receives_the_newest_data_later() {
        let reference = Arc::new(RefData::check(RefDataRows::default()).unwrap());
        let reloaded = |name| ReloadedRefData {
            name,
            reference: reference.clone(),
            control_settings: Arc::<ControlSettings>::default(),
        };
        let (_answered, answers) = mailbox(RELOADS_MAX, Wakeup::new(|| {}));
        let (gateway, mut received) = mailbox(RELOADS_MAX, Wakeup::new(|| {}));
        let reloads = Reloads::new(Some(RefDataReloads::new(answers, vec![gateway])));
        let last = RELOADS_MAX as u64 + 2;
        (1..=last).for_each(|name| reloads.forward(&reloaded(name)));
        let mut taken = Vec::new();
        for _ in 0..last {
            taken.extend(received.poll().map(|reloaded| reloaded.name));
            reloads.poll();
        }
        assert_eq!(taken, [1, 2, last], "of those that waited the newest");
        assert_eq!(reloads.poll(), 0);
    }
}
