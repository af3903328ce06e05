//! Who this server is among those of its group, and what its folder is worth: a small file beside the journal.
//!
//! ```text
//! DATA/standby/member     node, epoch, whether it leads or follows
//!              lock       held while a process has the folder
//!              before/    what the folder held before it began to follow: never acknowledged, or a journal of others
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::journal::disk::Disk;

/// What a stream makes a copy of.
pub const REPLICATED: [&str; 4] = ["journal", "notes", "fix", "venue"];

#[derive(Debug)]
pub struct Member {
    data: PathBuf,
    pub node: u128,
    pub role: Role,
    _lock: fs::File,
}

/// What the folder is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It never belonged to a group.
    New,
    /// Its journal was the one that counts, from this epoch on.
    Leads { epoch: u64 },
    /// It is a copy of what the stream held, not necessarily whole.
    Follows,
}

impl Member {
    pub fn open(data: &Path) -> io::Result<Member> {
        let folder = data.join("standby");
        Disk::Real.make_folder(&folder)?;
        let lock = fs::File::create(folder.join("lock"))?;
        lock.try_lock().map_err(|_| io::Error::other("another process has this data folder"))?;
        let path = folder.join("member");
        let (node, role) = match fs::read_to_string(&path) {
            Ok(text) => parse(&text).ok_or_else(|| {
                io::Error::other(format!(
                    "{}: it is damaged; remove it to let this server begin anew",
                    path.display()
                ))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Disk::Real.random(), Role::New),
            Err(error) => return Err(error),
        };
        Ok(Member { data: data.to_path_buf(), node, role, _lock: lock })
    }

    /// Safe when this returns.
    pub fn set_role(&mut self, role: Role) -> io::Result<()> {
        let words = match role {
            Role::New => "new 0".to_string(),
            Role::Leads { epoch } => format!("leads {epoch}"),
            Role::Follows => "follows 0".to_string(),
        };
        let text = format!("node {:032x}\n{words}\n", self.node);
        Disk::Real.put(&self.path(), text.as_bytes())?;
        self.role = role;
        Ok(())
    }

    pub fn path(&self) -> PathBuf {
        self.data.join("standby").join("member")
    }

    /// Whether there is a journal.
    pub fn has_journal(&self) -> bool {
        self.data.join("journal").join("identity").exists()
    }

    /// An empty folder to follow into. What a leader had is put aside, once: another server has led since, so it was never acknowledged
    /// as far as it is not in the stream.
    pub fn clear(&mut self) -> io::Result<()> {
        let aside = self.data.join("standby").join("before");
        if self.role != Role::Follows {
            // One that was interrupted goes on.
            if self.data.join(REPLICATED[0]).exists() {
                remove_folder(&aside)?;
            }
            Disk::Real.make_folder(&aside)?;
            for name in REPLICATED {
                match fs::rename(self.data.join(name), aside.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            self.set_role(Role::Follows)?;
        }
        REPLICATED.iter().try_for_each(|name| remove_folder(&self.data.join(name)))
    }
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn parse(text: &str) -> Option<(u128, Role)> {
    let (first, second) = text.split_once('\n')?;
    let node = u128::from_str_radix(first.strip_prefix("node ")?, 16).ok()?;
    let (word, epoch) = second.trim_end().split_once(' ')?;
    let epoch = epoch.parse().ok()?;
    let role = match word {
        "new" => Role::New,
        "leads" => Role::Leads { epoch },
        "follows" => Role::Follows,
        _ => return None,
    };
    Some((node, role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_stays_who_it_is_and_what_it_had_is_put_aside_once() {
        let data = std::env::temp_dir().join(format!("pitlane-member-{}", std::process::id()));
        let put = |text: &str| {
            fs::create_dir_all(data.join("journal")).unwrap();
            fs::write(data.join("journal/identity"), text).unwrap();
        };
        put("led");
        let mut member = Member::open(&data).unwrap();
        assert_eq!(member.role, Role::New);
        assert!(Member::open(&data).is_err(), "the folder is taken");
        member.set_role(Role::Leads { epoch: 7 }).unwrap();
        let node = member.node;
        drop(member);
        let mut member = Member::open(&data).unwrap();
        assert_eq!((member.node, member.role), (node, Role::Leads { epoch: 7 }));
        for copy in ["one", "two"] {
            member.clear().unwrap();
            assert!(!member.has_journal());
            assert_eq!(member.role, Role::Follows);
            put(copy);
        }
        assert_eq!(fs::read_to_string(data.join("standby/before/journal/identity")).unwrap(), "led");
        fs::remove_dir_all(&data).unwrap();
    }
}
