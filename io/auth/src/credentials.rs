//! The files of users and tokens, one entry per line, parsed strictly.
//!
//! ```text
//! # name   role    strategies       proof
//! alice    admin   *                $argon2id$v=19$m=19456,t=2,p=1$…$…      users: the hash of a password
//! robot    trade   PAIRS,MOMENTUM   9f86d081884c7d65…                      tokens: the SHA-256 of a token
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use pitlane_config::diagnostics::suggestion;
use pitlane_config::refdata::RefDataFaults;

use super::password::Hash;
use super::token::Sum;
use super::writable;
use super::{Identity, Role, Strategies};

/// Maximum number of entries in one file. A larger organisation has a directory service.
pub const ENTRIES_MAX: usize = 10_000;
/// Maximum size of a file in bytes: every entry with a line of maximum length, and comments.
const FILE_BYTES_MAX: u64 = 8 << 20;
/// Maximum length in bytes of the name of a user or token.
pub const NAME_BYTES_MAX: usize = 64;
/// Maximum number of strategies in one list; a longer list should be `*`.
const STRATEGIES_MAX: usize = 256;

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Users,
    Tokens,
}

impl Kind {
    fn column(self) -> &'static str {
        match self {
            Kind::Users => "password",
            Kind::Tokens => "token",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialEntry {
    pub identity: Identity,
    pub proof: Proof,
    /// Line number in the file, from 1.
    pub line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    Password(Hash),
    Token(Sum),
}

/// All entries of one file, each name once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialStore {
    pub entries: Vec<CredentialEntry>,
}

impl CredentialStore {
    /// Reads this file, or returns all of its faults.
    pub fn open(kind: Kind, path: &Path) -> Result<CredentialStore, RefDataFaults> {
        writable::check(path)?;
        CredentialStore::parse(kind, &path.display().to_string(), &text_of(path)?)
    }

    /// Parses this text, or returns all of its faults under the name of the file.
    pub fn parse(kind: Kind, file: &str, text: &str) -> Result<CredentialStore, RefDataFaults> {
        let mut reader =
            CredentialReader { kind, file, faults: RefDataFaults::default(), names: BTreeSet::new() };
        let mut entries = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if entries.len() == ENTRIES_MAX {
                reader.fault(at + 1, "", format!("there may be {ENTRIES_MAX} entries"));
                break;
            }
            entries.extend(reader.entry(at + 1, line));
        }
        if reader.faults.is_empty() { Ok(CredentialStore { entries }) } else { Err(reader.faults) }
    }

    pub fn find(&self, name: &str) -> Option<&CredentialEntry> {
        self.entries.iter().find(|entry| &*entry.identity.name == name)
    }

    /// Describes the differences to a newer file, a few words per name, without secrets.
    pub fn changes_to(&self, what: &str, newer: &CredentialStore) -> Vec<String> {
        let by_name = |store: &CredentialStore| -> BTreeMap<Arc<str>, CredentialEntry> {
            store.entries.iter().map(|entry| (entry.identity.name.clone(), entry.clone())).collect()
        };
        let (known, kept) = (by_name(self), by_name(newer));
        let mut changes = Vec::new();
        for entry in &newer.entries {
            let Identity { name, role, strategies } = &entry.identity;
            match known.get(name) {
                None => changes.push(format!("{what} {name} added: {role} {strategies}")),
                Some(old) if old.identity != entry.identity => {
                    changes.push(format!("{what} {name} changed: {role} {strategies}"))
                }
                Some(old) if old.proof != entry.proof => {
                    changes.push(format!("{what} {name} has another secret"))
                }
                Some(_) => {}
            }
        }
        let gone = self.entries.iter().filter(|entry| !kept.contains_key(&entry.identity.name));
        changes.extend(gone.map(|entry| format!("{what} {} removed", entry.identity.name)));
        changes
    }

    /// Adds a fault for each strategy that does not exist.
    pub fn check_strategies(&self, file: &str, known: &[String], faults: &mut RefDataFaults) {
        let tokens: Vec<&str> = known.iter().map(String::as_str).collect();
        for entry in &self.entries {
            let Strategies::Only(names) = &entry.identity.strategies else { continue };
            for name in names.iter().filter(|name| !tokens.contains(&&***name)) {
                let problem = format!("there is no strategy {name}{}", suggestion(name, &tokens));
                faults.add(file, entry.line, "strategies", problem);
            }
        }
    }
}

/// Reads a file of at most [`FILE_BYTES_MAX`].
pub fn text_of(path: &Path) -> Result<String, RefDataFaults> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    let mut faults = RefDataFaults::default();
    let mut fault = |problem: String| faults.add(&path.display().to_string(), 0, "", problem);
    match read {
        Ok(_) if text.len() as u64 <= FILE_BYTES_MAX => return Ok(text),
        Ok(_) => fault(format!("it may have {FILE_BYTES_MAX} bytes")),
        Err(error) => fault(error.to_string()),
    }
    Err(faults)
}

/// Checks the name of a user or token. It has no colon, because HTTP Basic puts one after the name.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte));
    if is_plain && (1..=NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(format!("it must be 1 to {NAME_BYTES_MAX} letters, digits, -, _, . or @, not {name:?}"))
}

pub fn parse_role(word: &str) -> Result<Role, String> {
    let tokens = Role::WORDS.map(|(word, _)| word);
    let found = Role::WORDS.iter().find(|(other, _)| *other == word);
    found.map(|(_, role)| *role).ok_or_else(|| {
        format!("it must be one of {}, not {word:?}{}", tokens.join(", "), suggestion(word, &tokens))
    })
}

/// Checks that a login of a strategy's process is a token and names its strategies: a process that
/// is taken over must not reach the others.
pub fn check_role(kind: Kind, role: Role, strategies: &Strategies) -> Result<(), String> {
    match (role, kind, strategies) {
        (Role::Strategy, Kind::Users, _) => Err("the role strategy is for tokens, not for users".to_string()),
        (Role::Strategy, Kind::Tokens, Strategies::All) => {
            Err("a token with the role strategy must name its strategies, not *".to_string())
        }
        (Role::Strategy, Kind::Tokens, Strategies::Only(_)) => Ok(()),
        (Role::Read | Role::Trade | Role::Admin, _, _) => Ok(()),
    }
}

/// Parses `*`, or names separated by commas.
pub fn parse_strategies(text: &str) -> Result<Strategies, String> {
    if text == "*" {
        return Ok(Strategies::All);
    }
    let names: Vec<Box<str>> = text.split(',').map(Box::from).collect();
    if names.len() > STRATEGIES_MAX {
        return Err(format!("there may be {STRATEGIES_MAX}"));
    }
    if names.iter().any(|name| name.is_empty() || name.contains(['*', ' ', '\t'])) {
        return Err(format!("it must be * or names with commas between, not {text:?}"));
    }
    Ok(Strategies::Only(names.into()))
}

/// Formats one line of a file.
pub fn line_of(name: &str, role: Role, strategies: &Strategies, proof: &str) -> String {
    format!("{name} {role} {strategies} {proof}")
}

struct CredentialReader<'a> {
    kind: Kind,
    file: &'a str,
    faults: RefDataFaults,
    names: BTreeSet<String>,
}

impl CredentialReader<'_> {
    fn fault(&mut self, line: usize, column: &str, problem: String) {
        self.faults.add(self.file, line, column, problem);
    }

    fn entry(&mut self, line: usize, text: &str) -> Option<CredentialEntry> {
        let tokens: Vec<&str> = text.split_ascii_whitespace().collect();
        let [name, role, strategies, proof] = tokens[..] else {
            let problem = format!("it must be name, role, strategies and {}", self.kind.column());
            self.fault(line, "", problem);
            return None;
        };
        let once =
            if self.names.insert(name.to_string()) { Ok(()) } else { Err("it is there twice".to_string()) };
        let name_ok = self.report(line, "name", check_name(name).and(once));
        let role = self.report(line, "role", parse_role(role));
        let strategies = self.report(line, "strategies", parse_strategies(strategies));
        let proof = match self.kind {
            Kind::Users => Hash::parse(proof).map(Proof::Password),
            Kind::Tokens => Sum::parse(proof).map(Proof::Token),
        };
        let proof = self.report(line, self.kind.column(), proof.map_err(str::to_string))?;
        name_ok?;
        let (role, strategies) = (role?, strategies?);
        self.report(line, "role", check_role(self.kind, role, &strategies))?;
        let identity = Identity { name: Arc::from(name), role, strategies };
        Some(CredentialEntry { identity, proof, line })
    }

    fn report<T>(&mut self, line: usize, column: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|problem| self.fault(line, column, problem)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const HASH: &str =
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

    fn faults_in(kind: Kind, text: &str) -> String {
        CredentialStore::parse(kind, "f", text).expect_err("something is wrong").to_string()
    }

    #[test]
    fn a_line_is_one_identity() {
        let text = format!("# ours\n\nalice  admin * {HASH}\nb.o-b@x trade\tPAIRS,SERVER {HASH}\r\n");
        let store = CredentialStore::parse(Kind::Users, "f", &text).unwrap();
        let [alice, bob] = &store.entries[..] else { panic!() };
        assert_eq!((&*alice.identity.name, alice.identity.role, alice.line), ("alice", Role::Admin, 3));
        assert!(alice.identity.strategies.sees("anything"));
        assert!(bob.identity.strategies.sees("PAIRS") && !bob.identity.strategies.sees("MOMENTUM"));
        assert_eq!(store.find("b.o-b@x"), Some(bob));
        let again = line_of("alice", Role::Admin, &Strategies::All, HASH);
        assert_eq!(again, format!("alice admin * {HASH}"));
        assert_eq!(bob.identity.strategies.to_string(), "PAIRS,SERVER");
        let tokens = CredentialStore::parse(Kind::Tokens, "f", &format!("robot read * {SUM}")).unwrap();
        assert_eq!(tokens.entries[0].proof, Proof::Token(Sum::of("abc")));
    }

    #[test]
    fn every_fault_is_reported_with_line_and_column() {
        let text = format!("a read *\nb: raed ,x {SUM}\nc read * {SUM}\nc read * {SUM}x\n");
        assert_eq!(
            faults_in(Kind::Tokens, &text),
            "f:1: it must be name, role, strategies and token\n\
             f:2: name: it must be 1 to 64 letters, digits, -, _, . or @, not \"b:\"\n\
             f:2: role: it must be one of strategy, read, trade, admin, not \"raed\" (did you mean read?)\n\
             f:2: strategies: it must be * or names with commas between, not \",x\"\n\
             f:4: name: it is there twice\n\
             f:4: token: it must be a SHA-256: 64 digits of 0-9 and a-f"
        );
        assert!(faults_in(Kind::Users, &format!("a read * {SUM}")).contains("f:1: password: it must begin"));
        assert!(faults_in(Kind::Tokens, &format!(" a read * {SUM} x")).starts_with("f:1: it must be name"));
        let many = format!("a read {} {SUM}", vec!["x"; STRATEGIES_MAX + 1].join(","));
        assert!(faults_in(Kind::Tokens, &many).contains("there may be 256"));
    }

    #[test]
    fn a_login_of_a_process_is_a_token_for_named_strategies() {
        assert!(CredentialStore::parse(Kind::Tokens, "f", &format!("a strategy PAIRS {SUM}")).is_ok());
        let all = faults_in(Kind::Tokens, &format!("a strategy * {SUM}"));
        assert_eq!(all, "f:1: role: a token with the role strategy must name its strategies, not *");
        let user = faults_in(Kind::Users, &format!("a strategy PAIRS {HASH}"));
        assert_eq!(user, "f:1: role: the role strategy is for tokens, not for users");
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let text: String = (0..=ENTRIES_MAX).map(|n| format!("a{n} read * {SUM}\n")).collect();
        assert_eq!(faults_in(Kind::Tokens, &text), "f:10001: there may be 10000 entries");
    }

    #[test]
    fn strategies_must_exist() {
        let store =
            CredentialStore::parse(Kind::Tokens, "f", &format!("a read PAIRS,MOMENTM {SUM}")).unwrap();
        let mut faults = RefDataFaults::default();
        store.check_strategies("f", &["PAIRS".to_string(), "MOMENTUM".to_string()], &mut faults);
        assert_eq!(
            faults.to_string(),
            "f:1: strategies: there is no strategy MOMENTM (did you mean MOMENTUM?)"
        );
    }
}
