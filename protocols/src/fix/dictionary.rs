//! FIX's rules for the messages that a client may send: tags of each message, required tags,
//! formats and permitted values, repeating groups. A session that validates uses all of them
//! (`UseDataDictionary` with `ValidateIncomingMessage`); the others use those of the groups.
//!
//! ```text
//! field_rules      data type and values of each tag      ┐
//! version_values   values of FIX 4.2 and FIX 5.0 SP2     │
//! messages         tags of each message                  ├─► check ─► first fault
//! messages42       the same of FIX 4.2                   │
//! groups           members of each repeating group       │
//! custom           what an operator adds                 ┘
//! ```
//!
//! The tables are constants: a message costs no allocation, and a session that does not validate
//! pays nothing for them.
//!
//! Rules: docs/fix-rules.md#session-rejects.

mod custom;
mod field_rules;
mod messages;
mod messages42;
mod version_values;
#[cfg(test)]
mod tests;

use pitlane_engine::text::parse_u64;

pub use self::custom::{CustomField, DictionarySettings};
pub use self::field_rules::FieldType;
use self::field_rules::{enumeration_of, type_of};
pub use self::messages::is_msg_type;
use self::messages::{HEADER_REQUIRED, MessageRule, TagSet, is_required, rule_of};
use self::version_values::FIX42_TAG_LAST;
use super::fields::{FieldFault, FixMessage, SessionRejectReason};
use super::groups::{self, DEPTH_MAX, Group};
use super::tag;
use super::version::FixVersion;

/// First tag that users define among themselves.
const USER_TAG_FIRST: u32 = 5_000;

/// First tag that only FIX 5.0 has. Such tags are in no table.
const FIX50_TAG_FIRST: u32 = 957;

/// Returns the first violation in field order, else the first missing field. A message that the
/// dictionary does not have violates nothing.
pub fn check(message: &FixMessage, version: FixVersion, settings: &DictionarySettings) -> Option<FieldFault> {
    let rule = rule_of(version, message.msg_type)?;
    let mut walk = GroupWalk::default();
    let mut seen = TagSet::default();
    for (at, (tag, value)) in message.iter().enumerate() {
        let in_group = match walk.enter(at, tag) {
            Ok(in_group) => in_group,
            Err(fault) => return Some(fault),
        };
        // The reader has reported a tag that is no number, and a value that is missing.
        if tag != 0 && !value.is_empty() {
            let reason = check_value(settings, version, tag, value)
                .or_else(|| match in_group {
                    true => None,
                    false => check_tag(settings, (version, rule), message.msg_type, tag),
                })
                .or_else(|| {
                    let twice = !in_group && !seen.add(tag);
                    twice.then_some(SessionRejectReason::TagTwice)
                });
            if let Some(reason) = reason {
                return Some(FieldFault { reason, tag, at });
            }
        }
        if let Err(fault) = walk.open(at, tag, value) {
            return Some(fault);
        }
    }
    if let Some(fault) = walk.finish() {
        return Some(fault);
    }
    let of_rule = rule.required.iter().filter(|&&tag| is_required(version, message.msg_type, tag));
    let required = HEADER_REQUIRED.iter().chain(of_rule).copied();
    let missing = required.chain(settings.required(message.msg_type)).find(|&tag| message.get(tag).is_none());
    let reason = SessionRejectReason::RequiredTagMissing;
    missing.map(|tag| FieldFault { reason, tag, at: message.len() })
}

/// Returns whether FIX 4.4 lists this value of an enumerated tag.
pub fn is_listed(tag: u32, value: &[u8]) -> bool {
    enumeration_of(tag).is_some_and(|listed| listed.permits(value))
}

/// Returns the first group with wrong members. The caller calls it for a message with groups: a
/// wrong count may mean that a part of the message was lost, so it is checked in every mode.
#[cold]
pub fn check_groups(message: &FixMessage) -> Option<FieldFault> {
    let mut walk = GroupWalk::default();
    for (at, (tag, value)) in message.iter().enumerate() {
        if let Err(fault) = walk.enter(at, tag).and_then(|_| walk.open(at, tag, value)) {
            return Some(fault);
        }
    }
    walk.finish()
}

/// Checks how a value is written, and whether it is one of the permitted ones.
fn check_value(
    settings: &DictionarySettings,
    version: FixVersion,
    tag: u32,
    value: &[u8],
) -> Option<SessionRejectReason> {
    let custom = settings.fields(tag);
    let field_type = type_of(tag).or_else(|| Some(custom.first()?.field_type))?;
    if !field_type.permits(value) {
        return Some(SessionRejectReason::IncorrectFormat);
    }
    let standard = |value: &[u8]| version_values::permits(version, tag, value);
    let is_listed = |value: &[u8]| standard(value) == Some(true) || settings.lists(tag, value);
    let is_enumerated = standard(value).is_some() || custom.iter().any(|field| !field.values.is_empty());
    let is_permitted = match field_type == FieldType::Codes {
        true => value.split(|&byte| byte == b' ').all(is_listed),
        false => is_listed(value),
    };
    (is_enumerated && !is_permitted).then_some(SessionRejectReason::ValueIncorrect)
}

/// Checks that a tag outside of groups exists and may stand in this message.
fn check_tag(
    settings: &DictionarySettings,
    (version, rule): (FixVersion, &MessageRule),
    msg_type: &[u8],
    tag: u32,
) -> Option<SessionRejectReason> {
    let is_of_fix50 = (FIX50_TAG_FIRST..USER_TAG_FIRST).contains(&tag);
    if is_of_fix50 && version == FixVersion::Fix50Sp2 {
        return None;
    }
    let is_outer = tag::class(tag) & (tag::HEADER | tag::TRAILER) != 0 && !is_of_fix50;
    if rule.tags.has(tag) || is_outer {
        return None;
    }
    let is_ignored = tag >= USER_TAG_FIRST && !settings.checks_user_defined();
    if is_ignored || settings.has_in(tag, msg_type) {
        return None;
    }
    let is_later = version == FixVersion::Fix42 && (FIX42_TAG_LAST + 1..USER_TAG_FIRST).contains(&tag);
    let is_defined = !is_later && type_of(tag).is_some() || !settings.fields(tag).is_empty();
    Some(if is_defined { SessionRejectReason::TagNotForMessage } else { SessionRejectReason::InvalidTag })
}

/// The groups that are open at a field: each one is inside of the one before.
#[derive(Default)]
struct GroupWalk {
    open: [Option<OpenGroup>; DEPTH_MAX],
    depth: usize,
}

/// A group of which not all members may have been read.
#[derive(Clone, Copy)]
struct OpenGroup {
    group: &'static Group,
    /// Index of the field with the count.
    at: usize,
    count: u64,
    found: u64,
    /// Tags of the current member, a bit for each place in [`Group::members`].
    seen: u64,
}

impl GroupWalk {
    /// Takes a field into the innermost group that has its tag, and closes the groups inside of
    /// that. Returns whether there is such a group.
    fn enter(&mut self, at: usize, tag: u32) -> Result<bool, FieldFault> {
        while let Some(open) = self.innermost() {
            if let Some(place) = open.group.members.iter().position(|&member| member == tag) {
                return open.take(at, tag, place).map(|()| true);
            }
            open.close()?;
            self.depth -= 1;
        }
        Ok(false)
    }

    /// Opens the group that a tag counts. A group without members is not opened.
    fn open(&mut self, at: usize, tag: u32, value: &[u8]) -> Result<(), FieldFault> {
        if tag::class(tag) & tag::COUNT == 0 {
            return Ok(());
        }
        let Some(group) = groups::counted_by(tag) else { return Ok(()) };
        let reason = SessionRejectReason::IncorrectFormat;
        let count = parse_u64(value).map_err(|_| FieldFault { reason, tag, at })?;
        if count > 0 {
            // The tables have no deeper groups.
            if let Some(place) = self.open.get_mut(self.depth) {
                *place = Some(OpenGroup { group, at, count, found: 0, seen: 0 });
                self.depth += 1;
            }
        }
        Ok(())
    }

    /// Closes all groups at the end of the message.
    fn finish(&mut self) -> Option<FieldFault> {
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
        let bit = 1 << place;
        if place == 0 {
            (self.found, self.seen) = (self.found + 1, bit);
            return Ok(());
        }
        // Each member begins with the first tag, so this field belongs to none.
        if self.found == 0 || self.seen & bit != 0 {
            let reason = SessionRejectReason::GroupOutOfOrder;
            return Err(match self.found {
                0 => FieldFault { reason, tag: self.group.count, at: self.at },
                _ => FieldFault { reason, tag, at },
            });
        }
        self.seen |= bit;
        Ok(())
    }

    /// Checks the number of members.
    fn close(&self) -> Result<(), FieldFault> {
        if self.found == self.count {
            return Ok(());
        }
        let reason = SessionRejectReason::GroupCount;
        Err(FieldFault { reason, tag: self.group.count, at: self.at })
    }
}
