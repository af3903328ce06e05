//! FIX's rules for the messages that a client may send: tags of each message, required tags,
//! formats and permitted values, repeating groups. A session that validates uses all of them
//! (`UseDataDictionary` with `ValidateIncomingMessage`); the others use those of the groups.
//!
//! ```text
//! field_rules      data type and values of each tag      ┐
//! version_values   values of FIX 4.2                     │
//! messages         tags of each message                  ├─► check ─► first fault
//! messages42       the same of FIX 4.2                   │
//! groups           members of each repeating group       │
//! fix50            all of these for FIX 5.0 SP2          │
//! custom           what an operator adds                 ┘
//! ```
//!
//! The tables are constants: a message costs no allocation, and a session that does not validate
//! pays nothing for them.
//!
//! Rules: docs/fix-rules.md#session-rejects.

mod custom;
mod field_rules;
mod group_walk;
mod messages;
mod messages42;
mod version_values;
#[cfg(test)]
mod tests;

pub use self::custom::{CustomField, DictionarySettings};
pub use self::field_rules::FieldType;
use self::field_rules::{enumeration_of, type_of};
use self::group_walk::GroupWalk;
pub use self::messages::is_msg_type;
use self::messages::{HEADER_REQUIRED, MessageRule, TagSet, rule_of};
use self::version_values::FIX44_TAG_FIRST;
use super::fields::{FieldFault, FixMessage, SessionRejectReason};
use super::tag;
use super::version::FixVersion;

/// First tag that users define among themselves.
const USER_TAG_FIRST: u32 = 5_000;

/// Classes of the tags that may stand in every message.
const OUTER: u8 = tag::HEADER | tag::TRAILER;

/// Returns the first violation in field order, else the first missing field. A message that the
/// dictionary does not have violates nothing.
pub fn check(message: &FixMessage, version: FixVersion, settings: &DictionarySettings) -> Option<FieldFault> {
    let rule = rule_of(version, message.msg_type)?;
    let mut walk = GroupWalk::new(version);
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
                    false => check_tag(settings, (version, &rule), message.msg_type, tag),
                })
                .or_else(|| {
                    let mut is_first = || match tag::slot(tag) {
                        Some(_) => seen.add(tag),
                        None => message.find(tag).is_none_or(|(first, _)| first == at),
                    };
                    let is_twice = !in_group && !is_first();
                    is_twice.then_some(SessionRejectReason::TagTwice)
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
    let required = HEADER_REQUIRED.iter().copied().chain(rule.required());
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
pub fn check_groups(message: &FixMessage, version: FixVersion) -> Option<FieldFault> {
    let mut walk = GroupWalk::new(version);
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
    let field_type = type_of(version, tag).or_else(|| Some(custom.first()?.field_type))?;
    if !field_type.permits(value) {
        return Some(SessionRejectReason::IncorrectFormat);
    }
    let is_listed = |value: &[u8], standard| standard == Some(true) || settings.lists(tag, value);
    let standard = version_values::permits(version, tag, value);
    let is_enumerated = standard.is_some() || custom.iter().any(|field| !field.values.is_empty());
    if !is_enumerated {
        return None;
    }
    let is_permitted = match field_type == FieldType::Codes {
        true => {
            let mut codes = value.split(|&byte| byte == b' ');
            codes.all(|code| is_listed(code, version_values::permits(version, tag, code)))
        }
        false => is_listed(value, standard),
    };
    (!is_permitted).then_some(SessionRejectReason::ValueIncorrect)
}

/// Checks that a tag outside of groups exists and may stand in this message.
fn check_tag(
    settings: &DictionarySettings,
    (version, rule): (FixVersion, &MessageRule),
    msg_type: &[u8],
    tag: u32,
) -> Option<SessionRejectReason> {
    let class = match version {
        FixVersion::Fix42 | FixVersion::Fix44 => tag::slot(tag).map_or(0, tag::slot_class),
        FixVersion::Fix50Sp2 => tag::class(tag),
    };
    if rule.has(tag) || class & OUTER != 0 {
        return None;
    }
    let is_ignored = tag >= USER_TAG_FIRST && !settings.checks_user_defined();
    if is_ignored || settings.has_in(tag, msg_type) {
        return None;
    }
    let is_later = version == FixVersion::Fix42 && (FIX44_TAG_FIRST..USER_TAG_FIRST).contains(&tag);
    let is_defined = !is_later && rule.is_defined(version, tag) || !settings.fields(tag).is_empty();
    Some(if is_defined { SessionRejectReason::TagNotForMessage } else { SessionRejectReason::InvalidTag })
}
