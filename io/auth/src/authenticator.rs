//! Verifies credentials against the files of users and tokens. A duty of the thread `auth`.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use pitlane_config::refdata::RefDataFaults;
use pitlane_engine::time::Timestamp;

use super::client::{AuthAnswer, AuthServerPort, Question, login_of};
use super::credentials::{CredentialStore, Kind, Proof};
use super::password::Hash;
use super::revocation;
use super::token::Sum;
use super::tokens::Tokens;
use super::{AuthSettings, AuthShared, Credentials, Identity, Refusal, Role, Verdict, random};
use crate::audit::{Act, AuditClient, Busy};

#[derive(Debug)]
pub struct Authenticator {
    settings: AuthSettings,
    files: CredentialFiles,
    ports: Vec<AuthServerPort>,
    /// A hash that is verified for users that do not exist, so that the answer takes equally long.
    decoy: Hash,
    shared: Arc<AuthShared>,
    /// Client of the audit log, which records changes of the credentials; `None` without an audit
    /// log.
    audit: Option<AuditClient>,
    /// Credentials that were read and become effective when the audit log has recorded the change.
    next: Option<CredentialFiles>,
}

/// A constant ticket: there is one reload at a time.
const TICKET: u64 = 0;

#[derive(Debug, Default)]
struct CredentialFiles {
    users: CredentialStore,
    tokens: CredentialStore,
}

impl Authenticator {
    pub(super) fn new(
        settings: AuthSettings,
        shared: Arc<AuthShared>,
    ) -> Result<Authenticator, RefDataFaults> {
        let files = CredentialFiles::open(&settings)?;
        if settings.required && files.is_empty() {
            let mut faults = RefDataFaults::default();
            let paths = [&settings.users, &settings.tokens].into_iter().flatten();
            let file = paths.map(|path| path.display().to_string()).next().unwrap_or("auth".to_string());
            faults.add(
                &file,
                0,
                "",
                "it has no entries, so no user can log in: pitlane user add".to_string(),
            );
            return Err(faults);
        }
        files.publish(&CredentialFiles::default(), &shared, 0);
        let decoy = Hash::make(&random::<32>(), random());
        Ok(Authenticator { settings, files, ports: Vec::new(), decoy, shared, audit: None, next: None })
    }

    /// Enables auditing: from now on every change of the credentials is recorded before it is
    /// effective.
    pub fn set_audit(&mut self, audit: AuditClient) {
        self.audit = Some(audit);
    }

    pub(super) fn add(&mut self, port: AuthServerPort) {
        self.ports.push(port);
    }

    /// Answers one question per client, so that a thread with many questions does not delay the
    /// others.
    pub fn poll(&mut self, now: Timestamp) -> usize {
        let work = usize::from(self.reload_if_asked()) + usize::from(self.apply_if_noted());
        self.shared.log_failures(now);
        work + self.answer(now, Authenticator::judge)
    }

    /// Refuses the questions instead, when the service stops: verifying a long queue of passwords
    /// would exceed the time for the shutdown, and no login is needed any more.
    pub fn close(&mut self, now: Timestamp) -> usize {
        self.answer(now, |_, _, _| Err(Refusal::Ending))
    }

    fn answer(
        &mut self,
        now: Timestamp,
        judge: impl Fn(&mut Authenticator, Timestamp, &Credentials) -> Verdict,
    ) -> usize {
        let mut work = 0;
        for at in 0..self.ports.len() {
            let Some(question) = self.ports[at].questions.poll() else { continue };
            let Question { ticket, mark, credentials } = question;
            let verdict = judge(self, now, &credentials);
            let generation = self.shared.generation.load(Ordering::Relaxed);
            let port = &mut self.ports[at];
            let answer = AuthAnswer { ticket, mark, verdict, given: now, generation };
            port.answers.send(answer).expect("a client has no more questions in flight than fit");
            work += 1;
        }
        work
    }

    pub fn judge(&mut self, now: Timestamp, credentials: &Credentials) -> Verdict {
        let (login, peer) = (login_of(credentials), credentials.peer);
        // Checked once more, because questions that were ahead in the queue may have failed.
        let checked = self.shared.lockout().check(now, login, peer);
        checked.map_err(|wait_s| Refusal::Locked { wait_s })?;
        // The table is not locked here: this takes 20 ms.
        let found = self.find(credentials.login.as_deref(), credentials.secret.reveal());
        match (&found, login) {
            (Some(_), Some(login)) => self.shared.lockout().succeeded(now, login, peer),
            (Some(_), None) => {}
            (None, _) => {
                let wait_s = self.shared.lockout().failed(now, login, peer);
                self.shared.note_failure(now, login, peer, wait_s);
            }
        }
        found.ok_or(Refusal::Wrong)
    }

    fn find(&self, login: Option<&str>, secret: &str) -> Option<Identity> {
        let sum = Sum::of(secret);
        let is_it = |proof: &Proof| matches!(proof, Proof::Token(kept) if kept.is_same(&sum));
        let token = self.files.tokens.entries.iter().find(|entry| is_it(&entry.proof));
        let Some(login) = login else { return token.map(|entry| entry.identity.clone()) };
        if let Some(entry) = token.filter(|entry| &*entry.identity.name == login) {
            return Some(entry.identity.clone());
        }
        let user = self.files.users.find(login);
        let hash = match user.map(|user| &user.proof) {
            Some(Proof::Password(hash)) => hash,
            Some(Proof::Token(_)) | None => &self.decoy,
        };
        let is_right = hash.is_of(secret.as_bytes());
        user.filter(|_| is_right).map(|user| user.identity.clone())
    }

    /// Reads the files again if requested. If a file has a fault, the current credentials remain.
    fn reload_if_asked(&mut self) -> bool {
        // A request that arrives while a reload is being recorded is served after it.
        if self.next.is_some() || !self.shared.reload.swap(false, Ordering::Acquire) {
            return false;
        }
        match CredentialFiles::open(&self.settings) {
            Ok(files) => self.note(files),
            Err(faults) => tracing::error!(%faults, "users and tokens stay as they were"),
        }
        true
    }

    fn note(&mut self, files: CredentialFiles) {
        let Some(audit) = &mut self.audit else { return self.apply(files) };
        let body = [("user", &self.files.users, &files.users), ("token", &self.files.tokens, &files.tokens)]
            .map(|(what, old, new)| old.changes_to(what, new))
            .concat()
            .join("; ");
        let act = Act {
            // A process that may send signals to this one belongs to the operator.
            who: "local".into(),
            role: Role::Admin,
            from: Ipv4Addr::LOCALHOST.into(),
            via: "SIGNAL",
            what: "users, tokens and certificate are read again".to_string(),
            body,
        };
        match audit.note(TICKET, act) {
            Ok(()) => self.next = Some(files),
            Err(Busy) => tracing::error!("users and tokens stay as they were: the audit log is busy"),
        }
    }

    fn apply_if_noted(&mut self) -> bool {
        let Some((_, noted)) = self.audit.as_mut().and_then(AuditClient::poll) else { return false };
        let files = self.next.take();
        match (noted, files) {
            (Ok(seq), Some(files)) => {
                self.apply(files);
                if let Some(audit) = &mut self.audit {
                    audit.conclude(seq, "done");
                }
            }
            _ => tracing::error!("users and tokens stay as they were: the audit log cannot be written"),
        }
        true
    }

    fn apply(&mut self, files: CredentialFiles) {
        let (users, tokens) = (files.users.entries.len(), files.tokens.entries.len());
        let generation = self.shared.generation.load(Ordering::Relaxed) + 1;
        files.publish(&self.files, &self.shared, generation);
        self.files = files;
        // The credentials are published first: a verdict by the old ones is never taken for one by
        // the new.
        self.shared.generation.store(generation, Ordering::Release);
        // An identity that was revoked may have an open session.
        self.ports.iter().for_each(|port| port.answers.wake());
        tracing::info!(users, tokens, "users and tokens read again");
    }
}

impl CredentialFiles {
    fn open(settings: &AuthSettings) -> Result<CredentialFiles, RefDataFaults> {
        let mut faults = RefDataFaults::default();
        let mut read = |kind: Kind, path: Option<&Path>| {
            let Some(path) = path else { return CredentialStore::default() };
            match CredentialStore::open(kind, path) {
                Ok(store) => {
                    store.check_strategies(&path.display().to_string(), &settings.strategies, &mut faults);
                    store
                }
                Err(found) => {
                    found.reported().iter().cloned().for_each(|fault| faults.push(fault));
                    CredentialStore::default()
                }
            }
        };
        let users = read(Kind::Users, settings.users.as_deref());
        let tokens = read(Kind::Tokens, settings.tokens.as_deref());
        if faults.is_empty() { Ok(CredentialFiles { users, tokens }) } else { Err(faults) }
    }

    /// Publishes the names and tokens to the other threads.
    fn publish(&self, before: &CredentialFiles, shared: &AuthShared, generation: u64) {
        let mut names = shared.names.write().unwrap_or_else(PoisonError::into_inner);
        let (old, new) = ([&before.users, &before.tokens], [&self.users, &self.tokens]);
        *names = Arc::new(revocation::names(old, &names, new, generation));
        drop(names);
        let mut tokens = shared.tokens.write().unwrap_or_else(PoisonError::into_inner);
        *tokens = Arc::new(Tokens::of(&self.tokens));
    }

    fn is_empty(&self) -> bool {
        self.users.entries.is_empty() && self.tokens.entries.is_empty()
    }
}
