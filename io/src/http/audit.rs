//! Administrative acts are noted before they are done: see [`crate::audit`]. What cannot be noted is not done.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use hyper::StatusCode;
use hyper::http::request::Parts as Head;
use pitlane_engine::command::{AuditAnchor, CommandKind};
use pitlane_engine::id::ShardId;
use tokio::sync::oneshot;

use super::app_state::AppState;
use super::connection::ConnectionInfo;
use super::login::Who;
use super::problem::Problem;
use super::shard_client::ShardClient;
use crate::audit::{Act, Anchor, AuditClient, Noted};

/// Where one of these words is in a body, nothing of it is kept.
const SECRETS: [&str; 4] = ["password", "passcode", "secret", "token"];

/// This thread's pen, and who waits for something to be noted.
#[derive(Debug)]
pub struct AuditActs {
    /// None: nobody keeps an audit log.
    pen: Option<RefCell<AuditClient>>,
    /// By ticket; never more than the pen has acts on their way.
    waiting: RefCell<BTreeMap<u64, oneshot::Sender<Noted>>>,
    tickets: Cell<u64>,
    /// On its way to the journal.
    anchor: Cell<Option<Anchor>>,
}

/// An act that was noted and is being done.
pub struct Underway {
    house: Rc<AppState>,
    seq: u64,
    outcome: String,
}

impl Underway {
    pub fn end(mut self, status: StatusCode) {
        self.outcome = status.as_u16().to_string();
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        if let Some(pen) = &self.house.acts.pen {
            pen.borrow_mut().conclude(self.seq, std::mem::take(&mut self.outcome));
        }
    }
}

/// Notes what is about to be done. None: it need not be.
pub async fn note(
    house: &Rc<AppState>,
    visit: &ConnectionInfo,
    head: &Head,
    who: &Who,
    body: &[u8],
) -> Result<Option<Underway>, Problem> {
    let (Some(pen), Who::Known(identity)) = (&house.acts.pen, who) else { return Ok(None) };
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    let act = Act {
        who: identity.name.clone(),
        role: identity.role,
        from: visit.peer.ip().to_canonical(),
        via: "REST",
        what: format!("{} {target}", head.method),
        body: shown(body),
    };
    let (asker, noted) = oneshot::channel();
    let ticket = house.acts.tickets.get();
    house.acts.tickets.set(ticket + 1);
    pen.borrow_mut().note(ticket, act).map_err(|_busy| Problem::busy())?;
    house.acts.waiting.borrow_mut().insert(ticket, asker);
    match noted.await {
        // If the client goes away meanwhile, this is all that is known.
        Ok(Ok(seq)) => Ok(Some(Underway { house: house.clone(), seq, outcome: "unknown".to_string() })),
        Ok(Err(_)) | Err(_) => Err(unkept()),
    }
}

/// What was sent, as far as it may be kept. No call takes a secret today; one that will must not find it here.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body).into_owned();
    let lower = text.to_ascii_lowercase();
    let has_secret = SECRETS.iter().any(|word| lower.contains(word));
    if has_secret { "***".to_string() } else { text }
}

fn unkept() -> Problem {
    let detail = "the audit log cannot be written, so nothing was done";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "audit-failed", detail).later(60)
}

impl AuditActs {
    pub fn new(pen: Option<AuditClient>) -> AuditActs {
        AuditActs {
            pen: pen.map(RefCell::new),
            waiting: RefCell::default(),
            tickets: Cell::new(0),
            anchor: Cell::new(None),
        }
    }

    /// Whether the audit log has come to somewhere that the journal does not know.
    pub fn has_anchor(&self) -> bool {
        if let Some(newest) = self.pen.as_ref().and_then(|pen| pen.borrow_mut().poll_anchor()) {
            self.anchor.set(Some(newest));
        }
        self.anchor.get().is_some()
    }

    /// Takes where the audit log has come to into the journal of a shard. What finds no room is tried again.
    pub fn anchor(&self, floor: &ShardClient, shard: ShardId) {
        let Some(Anchor { log, line, hash }) = self.anchor.get() else { return };
        let anchor = AuditAnchor { log, line, hash: hash.0 };
        if floor.tell(shard, CommandKind::AuditAnchor(anchor)).is_ok() {
            self.anchor.set(None);
        }
    }

    /// Tells those who wait, and says how many there were.
    pub fn poll(&self) -> usize {
        let Some(pen) = &self.pen else { return 0 };
        let mut work = 0;
        loop {
            let Some((ticket, noted)) = pen.borrow_mut().poll() else { return work };
            work += 1;
            let asker = self.waiting.borrow_mut().remove(&ticket);
            let unheard = asker.is_none_or(|asker| asker.send(noted).is_err());
            if unheard && let Ok(seq) = noted {
                pen.borrow_mut().conclude(seq, "not done: the client had gone");
            }
        }
    }
}
