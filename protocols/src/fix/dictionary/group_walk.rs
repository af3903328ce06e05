//! Follows the repeating groups of a message: which are open at a field, and whether their members
//! are complete.

use pitlane_engine::text::parse_u64;

use crate::fix::fields::{FieldFault, SessionRejectReason};
use crate::fix::fix50::{self, Fix50Group, MEMBER_TAGS_MAX};
use crate::fix::groups::{self, DEPTH_MAX, Group};
use crate::fix::tag;
use crate::fix::version::FixVersion;

const NO_TAG: [u64; MEMBER_TAGS_MAX / 64] = [0; MEMBER_TAGS_MAX / 64];

/// The groups that are open at a field: each one is inside of the one before.
pub(super) struct GroupWalk {
    version: FixVersion,
    open: [Option<OpenGroup>; DEPTH_MAX],
    depth: usize,
}

/// A group of which not all members may have been read.
#[derive(Clone, Copy)]
struct OpenGroup {
    group: GroupRule,
    /// Index of the field with the count.
    at: usize,
    count: u64,
    found: u64,
    /// Tags of the current member, a bit for each place in it.
    seen: [u64; MEMBER_TAGS_MAX / 64],
}

/// Tags of a group's members.
#[derive(Clone, Copy)]
enum GroupRule {
    Listed(&'static Group),
    Fix50(Fix50Group),
}

impl GroupRule {
    /// Returns the group whose members a tag counts in a version.
    fn of(version: FixVersion, tag: u32) -> Option<GroupRule> {
        if version == FixVersion::Fix50Sp2 {
            return fix50::group(tag).map(GroupRule::Fix50);
        }
        if tag::class(tag) & tag::COUNT == 0 {
            return None;
        }
        groups::counted_by(tag).map(GroupRule::Listed)
    }

    /// Returns the place of a tag among those of a member. The first tag has the place zero.
    fn place(&self, tag: u32) -> Option<usize> {
        match self {
            GroupRule::Listed(group) => group.members.iter().position(|&member| member == tag),
            GroupRule::Fix50(group) => group.place(tag),
        }
    }

    /// Returns the tag with the number of members.
    fn count(&self) -> u32 {
        match self {
            GroupRule::Listed(group) => group.count,
            GroupRule::Fix50(group) => group.count,
        }
    }
}

impl GroupWalk {
    pub(super) fn new(version: FixVersion) -> GroupWalk {
        GroupWalk { version, open: [None; DEPTH_MAX], depth: 0 }
    }

    /// Takes a field into the innermost group that has its tag, and closes the groups inside of
    /// that. Returns whether there is such a group.
    #[inline]
    pub(super) fn enter(&mut self, at: usize, tag: u32) -> Result<bool, FieldFault> {
        // Most messages have no groups.
        if self.depth == 0 { Ok(false) } else { self.enter_open(at, tag) }
    }

    fn enter_open(&mut self, at: usize, tag: u32) -> Result<bool, FieldFault> {
        while let Some(open) = self.innermost() {
            if let Some(place) = open.group.place(tag) {
                return open.take(at, tag, place).map(|()| true);
            }
            open.close()?;
            self.depth -= 1;
        }
        Ok(false)
    }

    /// Opens the group that a tag counts. A group without members is not opened.
    pub(super) fn open(&mut self, at: usize, tag: u32, value: &[u8]) -> Result<(), FieldFault> {
        let Some(group) = GroupRule::of(self.version, tag) else { return Ok(()) };
        let reason = SessionRejectReason::IncorrectFormat;
        let count = parse_u64(value).map_err(|_| FieldFault { reason, tag, at })?;
        if count > 0 {
            // The tables have no deeper groups.
            if let Some(place) = self.open.get_mut(self.depth) {
                *place = Some(OpenGroup { group, at, count, found: 0, seen: NO_TAG });
                self.depth += 1;
            }
        }
        Ok(())
    }

    /// Closes all groups at the end of the message.
    pub(super) fn finish(&mut self) -> Option<FieldFault> {
        while let Some(open) = self.innermost() {
            if let Err(fault) = open.close() {
                return Some(fault);
            }
            self.depth -= 1;
        }
        None
    }

    fn innermost(&mut self) -> Option<&mut OpenGroup> {
        self.open.get_mut(self.depth.checked_sub(1)?)?.as_mut()
    }
}

impl OpenGroup {
    /// Takes a field of a member; `place` is that of its tag.
    fn take(&mut self, at: usize, tag: u32, place: usize) -> Result<(), FieldFault> {
        if place == 0 {
            (self.found, self.seen) = (self.found + 1, NO_TAG);
            return Ok(());
        }
        let (word, bit) = (&mut self.seen[place / 64], 1 << (place % 64));
        // Each member begins with the first tag, so this field belongs to none.
        if self.found == 0 || *word & bit != 0 {
            let reason = SessionRejectReason::GroupOutOfOrder;
            return Err(match self.found {
                0 => FieldFault { reason, tag: self.group.count(), at: self.at },
                _ => FieldFault { reason, tag, at },
            });
        }
        *word |= bit;
        Ok(())
    }

    /// Checks the number of members.
    fn close(&self) -> Result<(), FieldFault> {
        if self.found == self.count {
            return Ok(());
        }
        let reason = SessionRejectReason::GroupCount;
        Err(FieldFault { reason, tag: self.group.count(), at: self.at })
    }
}
