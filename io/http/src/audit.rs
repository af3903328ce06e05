//! Records administrative acts before they are executed: see [`pitlane_auth::audit`]. An act that
//! cannot be recorded is not executed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use hyper::StatusCode;
use hyper::http::request::Parts as Head;
use pitlane_auth::audit::{Act, Anchor, AuditClient, Noted};
use pitlane_engine::command::{AuditAnchor, CommandKind};
use pitlane_engine::id::ShardId;
use tokio::sync::oneshot;

use super::caller::RequestCaller;
use super::connection_info::ConnectionInfo;
use super::problem::Problem;
use super::shard_client::ShardClient;

/// If one of these keywords occurs in a body, nothing of the body is recorded.
const SECRETS: [&str; 4] = ["password", "passcode", "secret", "token"];

/// This thread's audit client, and the requests that wait for a record.
#[derive(Debug)]
pub(crate) struct AuditActs {
    /// `None` if there is no audit log.
    client: Option<RefCell<AuditClient>>,
    /// Waiting requests by ticket; never more than the client has records in flight.
    waiting: RefCell<BTreeMap<u64, oneshot::Sender<Noted>>>,
    tickets: Cell<u64>,
    /// The anchor that is to be written to the journal.
    anchor: Cell<Option<Anchor>>,
}

/// An act that was recorded and is being executed.
pub(crate) struct RecordedAct {
    acts: Rc<AuditActs>,
    seq: u64,
    outcome: String,
}

impl RecordedAct {
    pub(crate) fn end(mut self, status: StatusCode) {
        self.outcome = status.as_u16().to_string();
    }
}

impl Drop for RecordedAct {
    fn drop(&mut self) {
        if let Some(client) = &self.acts.client {
            client.borrow_mut().conclude(self.seq, std::mem::take(&mut self.outcome));
        }
    }
}

/// Records what is about to be done; `None` if no record is needed.
pub(crate) async fn record(
    acts: &Rc<AuditActs>,
    connection: &ConnectionInfo,
    head: &Head,
    caller: &RequestCaller,
    body: &[u8],
) -> Result<Option<RecordedAct>, Problem> {
    let (Some(client), RequestCaller::Known(identity)) = (&acts.client, caller) else { return Ok(None) };
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    let act = Act {
        who: identity.name.clone(),
        role: identity.role,
        from: connection.peer.ip().to_canonical(),
        via: "REST",
        what: format!("{} {target}", head.method),
        body: recordable(body),
    };
    let (reply_to, noted) = oneshot::channel();
    let ticket = acts.tickets.get();
    acts.tickets.set(ticket + 1);
    client.borrow_mut().note(ticket, act).map_err(|_busy| Problem::busy())?;
    acts.waiting.borrow_mut().insert(ticket, reply_to);
    match noted.await {
        // If the client disconnects meanwhile, the outcome stays unknown.
        Ok(Ok(seq)) => Ok(Some(RecordedAct { acts: acts.clone(), seq, outcome: "unknown".to_string() })),
        Ok(Err(_)) | Err(_) => Err(audit_failed()),
    }
}

/// Returns the body, as far as it may be recorded. No call takes a secret today; a future one must
/// not be recorded here.
fn recordable(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body).into_owned();
    let lower = text.to_ascii_lowercase();
    let has_secret = SECRETS.iter().any(|keyword| lower.contains(keyword));
    if has_secret { "***".to_string() } else { text }
}

fn audit_failed() -> Problem {
    let detail = "the audit log cannot be written, so nothing was done";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "audit-failed", detail).with_retry_after(60)
}

impl AuditActs {
    pub(crate) fn new(client: Option<AuditClient>) -> AuditActs {
        AuditActs {
            client: client.map(RefCell::new),
            waiting: RefCell::default(),
            tickets: Cell::new(0),
            anchor: Cell::new(None),
        }
    }

    /// Returns whether the audit log has a position that the journal does not have.
    pub(crate) fn has_anchor(&self) -> bool {
        if let Some(newest) = self.client.as_ref().and_then(|client| client.borrow_mut().poll_anchor()) {
            self.anchor.set(Some(newest));
        }
        self.anchor.get().is_some()
    }

    /// Writes the position of the audit log to the journal of a shard. If there is no room, it is
    /// tried again.
    pub(crate) fn anchor(&self, shard_client: &ShardClient, shard: ShardId) {
        let Some(Anchor { log, line, hash }) = self.anchor.get() else { return };
        let anchor = AuditAnchor { log, line, hash: hash.0 };
        if shard_client.send_to_shard(shard, CommandKind::AuditAnchor(anchor)).is_ok() {
            self.anchor.set(None);
        }
    }

    /// Completes the waiting requests, and returns how many results there were.
    pub(crate) fn poll(&self) -> usize {
        let Some(client) = &self.client else { return 0 };
        let mut work = 0;
        loop {
            let Some((ticket, noted)) = client.borrow_mut().poll() else { return work };
            work += 1;
            let reply_to = self.waiting.borrow_mut().remove(&ticket);
            let is_abandoned = reply_to.is_none_or(|reply_to| reply_to.send(noted).is_err());
            if is_abandoned && let Ok(seq) = noted {
                client.borrow_mut().conclude(seq, "not done: the client had disconnected");
            }
        }
    }
}
