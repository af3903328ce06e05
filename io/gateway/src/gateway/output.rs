//! The end of a cycle: each endpoint sends its output, in the order of `net.send_first`.

use pitlane_config::SendFirst;
use pitlane_engine::time::Timestamp;
use pitlane_net::sockets::Sockets;
use pitlane_runtime::lifecycle::LifecyclePhase;

use super::{Gateway, announce};

impl Gateway {
    /// Sends the output of this cycle, after all socket events have been handled.
    pub(super) fn flush_endpoints(
        &mut self,
        now: Timestamp,
        phase: LifecyclePhase,
        sockets: &mut Sockets,
    ) -> usize {
        if phase >= LifecyclePhase::Closing {
            sockets.stop_accepting();
        }
        let takes_commands = phase <= LifecyclePhase::Closing;
        let Gateway { venue, port, .. } = self;
        let mut work = 0;
        if let Some(venue) = venue {
            work += venue.poll(now, sockets, takes_commands.then_some(port), phase == LifecyclePhase::Open);
        }
        match self.send_first {
            SendFirst::Fix => {
                work += self.flush_fix(now, phase, sockets);
                work + self.flush_stomp(now, phase, sockets)
            }
            SendFirst::Stomp => {
                work += self.flush_stomp(now, phase, sockets);
                work + self.flush_fix(now, phase, sockets)
            }
        }
    }

    /// Sends the output of the FIX sessions, and passes on what concerns STOMP. Where STOMP comes
    /// first, the next cycle sends that; it follows at once, because all of it counts as work.
    fn flush_fix(&mut self, now: Timestamp, phase: LifecyclePhase, sockets: &mut Sockets) -> usize {
        self.pass_deferred(now);
        let Gateway { stomp, fix: Some(fix), port, notifications, recorder, .. } = self else { return 0 };
        let takes_commands = phase <= LifecyclePhase::Closing;
        fix.set_ready(phase == LifecyclePhase::Open);
        let mut work = fix.poll(now, sockets, takes_commands.then_some(&mut *port), recorder.as_mut());
        work += fix.pass_market_changes(stomp.as_mut(), takes_commands.then_some(port));
        for notification in fix.take_notifications() {
            work += 1;
            announce(stomp.as_mut(), notifications.as_mut(), now, notification);
        }
        work
    }

    /// Sends the output of the STOMP sessions.
    fn flush_stomp(&mut self, now: Timestamp, phase: LifecyclePhase, sockets: &mut Sockets) -> usize {
        let Gateway { stomp: Some(stomp), stomp_latency, port, notifications, recorder, runner, .. } = self
        else {
            return 0;
        };
        let takes_commands = phase <= LifecyclePhase::Closing;
        let work = stomp.poll(now, sockets, takes_commands.then_some(port), |notification| {
            if let Some(runner) = runner {
                runner.handle_notification(now, &notification);
            }
            if let Some(notifications) = notifications {
                notifications.send(notification);
            }
        });
        stomp_latency.wrote(recorder.as_mut());
        work
    }
}
