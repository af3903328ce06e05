//! `pitlane standby`: the operator's decision when a folder and the stream have diverged.

use std::io;
use std::path::Path;

use super::node::{FolderRole, GroupMember};
use super::verdict::Choice;

/// Makes the next start lead with this folder, and restore the stream from it.
pub fn lead(data: &Path) -> io::Result<&'static str> {
    decide(data, Choice::Lead)?;
    Ok("the next start of this server leads with this folder, if no other server leads by then")
}

/// Makes the next start move this folder to `standby/before`, and follow the stream.
pub fn follow(data: &Path) -> io::Result<&'static str> {
    decide(data, Choice::Follow)?;
    Ok("the next start of this server moves its folder to standby/before, and follows the stream")
}

fn decide(data: &Path, choice: Choice) -> io::Result<()> {
    if !data.join("standby").join("member").exists() {
        return Err(io::Error::other(format!(
            "{}: no server of a standby group has used it",
            data.display()
        )));
    }
    let member = GroupMember::open(data)?;
    match member.role {
        FolderRole::New => {
            Err(io::Error::other("this folder never belonged to a group: there is nothing to decide"))
        }
        FolderRole::Leads { .. } | FolderRole::Follows => member.set_choice(choice),
    }
}
