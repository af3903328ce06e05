//! A thread's connection to the authenticator: questions go one way, verdicts come back, and each
//! side wakes the other.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pitlane_engine::time::Timestamp;
use pitlane_runtime::mailbox::{MailboxReceiver, MailboxSender, mailbox};
use pitlane_runtime::wakeup::Wakeup;

use super::cache::{self, CredentialCache, CredentialHash};
use super::credentials::NAME_BYTES_MAX;
use super::lockout::network;
use super::queue::{PasswordQueue, QueueShare};
use super::{AuthShared, Credentials, Identity, Refusal, RevocationWatch, Verdict};

/// Questions of one thread in the mailboxes to the authenticator and back: the one being verified
/// and the next. The others wait in the queue, where each address has a share.
const IN_FLIGHT_MAX: usize = 2;

/// Too many questions are waiting: try again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

#[derive(Debug)]
pub(crate) struct Question {
    pub ticket: u64,
    pub mark: CredentialHash,
    pub credentials: Credentials,
}

#[derive(Debug)]
pub(crate) struct AuthAnswer {
    pub ticket: u64,
    pub mark: CredentialHash,
    pub verdict: Verdict,
    /// Time of the verdict; `generation` is that of the credentials it was based on.
    pub given: Timestamp,
    pub generation: u64,
}

/// One thread's end.
#[derive(Debug)]
pub struct AuthClient {
    default_identity: Option<Identity>,
    shared: Arc<AuthShared>,
    questions: MailboxSender<Question>,
    answers: MailboxReceiver<AuthAnswer>,
    cache: CredentialCache,
    /// Verdicts that did not require verifying a password: at most one per waiting client.
    ready: VecDeque<(u64, Verdict)>,
    /// Passwords that wait to be sent.
    queue: PasswordQueue<Question>,
    /// Questions sent and answers not yet polled, at most [`IN_FLIGHT_MAX`].
    in_flight: usize,
}

/// The authenticator's end.
#[derive(Debug)]
pub(crate) struct AuthServerPort {
    pub questions: MailboxReceiver<Question>,
    /// Holds the answers to all questions in flight.
    pub answers: MailboxSender<AuthAnswer>,
}

pub(super) fn pair(
    default_identity: Option<Identity>,
    shared: Arc<AuthShared>,
    authenticator: Wakeup,
    client: Wakeup,
) -> (AuthClient, AuthServerPort) {
    let (questions, asked) = mailbox(IN_FLIGHT_MAX, authenticator);
    let (sender, answers) = mailbox(IN_FLIGHT_MAX, client);
    let (cache, ready, queue) = (CredentialCache::default(), VecDeque::new(), PasswordQueue::default());
    let auth_client =
        AuthClient { default_identity, shared, questions, answers, cache, ready, queue, in_flight: 0 };
    (auth_client, AuthServerPort { questions: asked, answers: sender })
}

impl AuthClient {
    /// Returns the identity of every client where no login is required. Then there is nothing to
    /// ask.
    pub fn default_identity(&self) -> Option<&Identity> {
        self.default_identity.as_ref()
    }

    /// Returns the identity if no password must be verified to know it: the token is valid, or the
    /// password was verified before. Other clients delay neither, except by guessing at the same
    /// login from the same address.
    pub fn recall(&mut self, now: Timestamp, credentials: &Credentials) -> Option<Identity> {
        if let Some(identity) = self.shared.find_token(credentials) {
            return Some(identity);
        }
        let login = credentials.login.as_deref()?;
        let mark = cache::mark(&self.shared.key, credentials);
        let generation = self.generation();
        let known = self.cache.recall(now, generation, &mark).cloned();
        // Called for unknown credentials too, so that guesses are counted.
        let may = self.shared.lockout().may_recall(now, login, credentials.peer);
        known.filter(|_| may)
    }

    /// Returns the verdict if no password must be verified for it.
    pub fn judge_at_once(&mut self, now: Timestamp, credentials: &Credentials) -> Option<Verdict> {
        if let Some(identity) = self.default_identity.clone().or_else(|| self.recall(now, credentials)) {
            return Some(Ok(identity));
        }
        // An unknown token. It is not counted, because 256 random bits cannot be guessed.
        if credentials.login.is_none() {
            return Some(Err(Refusal::Wrong));
        }
        let checked = self.shared.lockout().check(now, login_of(credentials), credentials.peer);
        checked.err().map(|wait_s| Err(Refusal::Locked { wait_s }))
    }

    /// Asks for the identity of these credentials. [`AuthClient::poll`] returns the verdict under
    /// the same ticket, whatever it is.
    pub fn ask(&mut self, now: Timestamp, ticket: u64, credentials: Credentials) -> Result<(), Busy> {
        if let Some(verdict) = self.judge_at_once(now, &credentials) {
            self.ready.push_back((ticket, verdict));
            return Ok(());
        }
        let address = network(credentials.peer);
        let is_known = |login: &&str| self.shared.lockout().is_known(login, address);
        let share = match login_of(&credentials).filter(is_known) {
            Some(login) => QueueShare::Known(address, login.into()),
            None => QueueShare::Address(address),
        };
        let mark = cache::mark(&self.shared.key, &credentials);
        let evicted = self.queue.push(share, Question { ticket, mark, credentials }).map_err(|_| Busy)?;
        self.ready.extend(evicted.map(|question| (question.ticket, Err(Refusal::Busy))));
        self.send();
        Ok(())
    }

    /// Counts a password that the caller has compared itself, such as that of a FIX session in the
    /// config, under the same limits as the others.
    pub fn admit(
        &mut self,
        now: Timestamp,
        login: &str,
        peer: IpAddr,
        is_right: bool,
    ) -> Result<(), Refusal> {
        let mut lockout = self.shared.lockout();
        if let Err(wait_s) = lockout.check(now, Some(login), peer) {
            return Err(Refusal::Locked { wait_s });
        }
        if is_right {
            lockout.succeeded(now, login, peer);
            return Ok(());
        }
        let wait_s = lockout.failed(now, Some(login), peer);
        drop(lockout);
        self.shared.note_failure(now, Some(login), peer, wait_s);
        Err(Refusal::Wrong)
    }

    /// Returns the next verdict.
    pub fn poll(&mut self) -> Option<(u64, Verdict)> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        let AuthAnswer { ticket, mark, verdict, given, generation } = self.answers.poll()?;
        self.in_flight -= 1;
        if let Ok(identity) = &verdict {
            self.cache.learn(given, generation, mark, identity.clone());
        }
        self.send();
        Some((ticket, verdict))
    }

    /// Sends waiting questions while they may be in flight.
    fn send(&mut self) {
        while self.in_flight < IN_FLIGHT_MAX
            && let Some(question) = self.queue.pop()
        {
            self.questions.send(question).expect("the mailbox has room for all that are in flight");
            self.in_flight += 1;
        }
    }

    /// Returns a watch for threads that keep sessions open.
    pub fn revocations(&self) -> RevocationWatch {
        RevocationWatch::new(self.shared.clone(), self.default_identity.is_some())
    }

    /// Returns the generation of the credentials, which is incremented when they change.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }
}

/// Returns the login if it is short enough to be valid. A longer text belongs to no user and takes
/// no slot in a table.
pub(super) fn login_of(credentials: &Credentials) -> Option<&str> {
    credentials.login.as_deref().filter(|login| login.len() <= NAME_BYTES_MAX)
}
