//! `pitlane user` and `pitlane token`: changes the files of users and tokens. Comments and the
//! order of lines stay as they are; a file is replaced atomically, and only its owner may read it.
//! A running service reads it again on SIGHUP.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use pitlane_config::refdata::RefDataFaults;

use super::credentials::{CredentialStore, Kind, check_name, check_role, line_of, text_of};
use super::password::Hash;
use super::token::{self, Sum};
use super::{Role, Strategies, prompt, random};

const HEAD_USERS: &str = "# name role strategies password; changed by `pitlane user`, read again on SIGHUP\n";
const HEAD_TOKENS: &str = "# name role strategies token; changed by `pitlane token`, read again on SIGHUP\n";

/// The reason why a file was not changed.
#[derive(Debug)]
pub enum CredentialCliError {
    /// The existing file cannot be read.
    Faults(RefDataFaults),
    Refused(String),
    Io(PathBuf, io::Error),
    Password(io::Error),
    Output(io::Error),
}

impl fmt::Display for CredentialCliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CredentialCliError::Faults(faults) => faults.fmt(f),
            CredentialCliError::Refused(why) => f.write_str(why),
            CredentialCliError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            CredentialCliError::Password(error) | CredentialCliError::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CredentialCliError {}

impl From<io::Error> for CredentialCliError {
    fn from(error: io::Error) -> CredentialCliError {
        CredentialCliError::Output(error)
    }
}

pub fn add_user(
    path: &Path,
    name: &str,
    role: Role,
    strategies: &Strategies,
) -> Result<(), CredentialCliError> {
    check_role(Kind::Users, role, strategies).map_err(CredentialCliError::Refused)?;
    let file = CredentialFileEdit::open(Kind::Users, path)?;
    file.must_lack(name)?;
    file.add(&line_of(name, role, strategies, &ask_password(name)?))
}

pub fn change_password(path: &Path, name: &str) -> Result<(), CredentialCliError> {
    let file = CredentialFileEdit::open(Kind::Users, path)?;
    let identity = &file.store.entries[file.index_of(name)?].identity;
    let line = line_of(name, identity.role, &identity.strategies, &ask_password(name)?);
    file.replace(name, Some(&line))
}

/// Adds a token and returns it. The token itself is stored nowhere.
pub fn create_token(
    path: &Path,
    name: &str,
    role: Role,
    strategies: &Strategies,
) -> Result<String, CredentialCliError> {
    check_role(Kind::Tokens, role, strategies).map_err(CredentialCliError::Refused)?;
    let file = CredentialFileEdit::open(Kind::Tokens, path)?;
    file.must_lack(name)?;
    let token = token::show(random());
    file.add(&line_of(name, role, strategies, &Sum::of(&token).to_string()))?;
    Ok(token)
}

pub fn remove(kind: Kind, path: &Path, name: &str) -> Result<(), CredentialCliError> {
    CredentialFileEdit::open(kind, path)?.replace(name, None)
}

/// Lists all entries of the file without their secrets.
pub fn list(kind: Kind, path: &Path, out: &mut impl Write) -> Result<(), CredentialCliError> {
    let store = CredentialStore::open(kind, path).map_err(CredentialCliError::Faults)?;
    for entry in &store.entries {
        let identity = &entry.identity;
        writeln!(out, "{:<24} {:<8} {}", identity.name, identity.role, identity.strategies)?;
    }
    Ok(())
}

fn ask_password(name: &str) -> Result<String, CredentialCliError> {
    let password = prompt::new_password(name).map_err(CredentialCliError::Password)?;
    Ok(Hash::make(password.as_bytes(), random()).to_string())
}

/// A file that is being changed under a lock.
struct CredentialFileEdit<'a> {
    path: &'a Path,
    text: String,
    store: CredentialStore,
    /// The lock is on the folder, because the file itself is replaced.
    _lock: File,
}

impl CredentialFileEdit<'_> {
    /// Opens the file under a lock. A missing file counts as empty.
    fn open(kind: Kind, path: &Path) -> Result<CredentialFileEdit<'_>, CredentialCliError> {
        let folder = folder_of(path);
        let lock = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
        let lock = lock.map_err(|error| CredentialCliError::Io(folder.to_path_buf(), error))?;
        let text = match path.try_exists() {
            Ok(true) => text_of(path).map_err(CredentialCliError::Faults)?,
            Ok(false) => match kind {
                Kind::Users => HEAD_USERS.to_string(),
                Kind::Tokens => HEAD_TOKENS.to_string(),
            },
            Err(error) => return Err(CredentialCliError::Io(path.to_path_buf(), error)),
        };
        let store = CredentialStore::parse(kind, &path.display().to_string(), &text)
            .map_err(CredentialCliError::Faults)?;
        Ok(CredentialFileEdit { path, text, store, _lock: lock })
    }

    fn must_lack(&self, name: &str) -> Result<(), CredentialCliError> {
        check_name(name).map_err(|problem| CredentialCliError::Refused(format!("the name: {problem}")))?;
        match self.store.find(name) {
            None => Ok(()),
            Some(entry) => Err(CredentialCliError::Refused(format!(
                "{}:{}: {name} is there",
                self.path.display(),
                entry.line
            ))),
        }
    }

    fn index_of(&self, name: &str) -> Result<usize, CredentialCliError> {
        let found = self.store.entries.iter().position(|entry| &*entry.identity.name == name);
        found.ok_or_else(|| {
            CredentialCliError::Refused(format!("{}: there is no {name}", self.path.display()))
        })
    }

    fn add(&self, line: &str) -> Result<(), CredentialCliError> {
        let mut text = self.text.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        self.write(&format!("{text}{line}\n"))
    }

    /// Replaces the line of a name, or removes it.
    fn replace(&self, name: &str, line: Option<&str>) -> Result<(), CredentialCliError> {
        let at = self.store.entries[self.index_of(name)?].line;
        let mut text = String::with_capacity(self.text.len());
        for (number, old) in self.text.lines().enumerate() {
            let kept = if number + 1 == at { line } else { Some(old) };
            if let Some(kept) = kept {
                text.push_str(kept);
                text.push('\n');
            }
        }
        self.write(&text)
    }

    fn write(&self, text: &str) -> Result<(), CredentialCliError> {
        replace_file(self.path, text).map_err(|error| CredentialCliError::Io(self.path.to_path_buf(), error))
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Replaces a file: writes a new one beside it, syncs it, and renames it. The owner is kept, so
/// that the service can still read the file.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_os_string();
    name.push(".new");
    let fresh = path.with_file_name(name);
    // A leftover of an interrupted change may have any mode.
    let _ = fs::remove_file(&fresh);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    if let Ok(before) = fs::metadata(path) {
        let now = file.metadata()?;
        if (before.uid(), before.gid()) != (now.uid(), now.gid()) {
            fchown(&file, Some(before.uid()), Some(before.gid()))?;
        }
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    File::open(folder_of(path))?.sync_all()
}
