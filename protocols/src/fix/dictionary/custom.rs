//! Fields that an operator adds to the dictionary: tags of a bilateral agreement, further values of
//! an enumerated tag of FIX 4.4, and tags that FIX 4.4 does not have in a message.

use std::fmt;

use super::field_rules::FieldType;
use super::messages::rule_of;
use crate::fix::tag;
use crate::fix::version::FixVersion;

/// A field that an operator adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomField {
    pub tag: u32,
    /// Type of the values. A tag of FIX 4.4 keeps its own type.
    pub field_type: FieldType,
    /// Permitted values; empty means any. They come in addition to those of FIX 4.4.
    pub values: Vec<String>,
    /// MsgTypes of the messages that may have the tag, and whether they must.
    pub messages: Vec<(String, bool)>,
}

impl CustomField {
    /// Reads a field: tag, type, messages, and values if they are enumerated, such as
    /// `9001 INT D,G`, `9002 STRING D!,F RED,BLUE` (required in D), or `167 STRING - CRYPTO` (in no
    /// further message).
    pub fn parse(text: &str) -> Result<CustomField, String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (number, type_name, messages, values) = match words[..] {
            [number, type_name, messages] => (number, type_name, messages, ""),
            [number, type_name, messages, values] => (number, type_name, messages, values),
            _ => return Err(format!("it must be tag, type, messages and values, not {text:?}")),
        };
        let tag = number.parse().ok().filter(|tag| (1..=tag::TAG_MAX).contains(tag));
        let tag = tag.ok_or_else(|| format!("{number:?} is not a tag"))?;
        if tag::class(tag) & !tag::SPECIAL_TERM != 0 {
            return Err(format!("{tag} is a tag of the header, the trailer, raw data or a group"));
        }
        let field_type =
            FieldType::from_name(type_name).ok_or_else(|| format!("{type_name:?} is not a type of FIX"))?;
        let messages = messages.split(',').filter(|message| *message != "-").map(|message| {
            let (name, is_required) = message.strip_suffix('!').map_or((message, false), |name| (name, true));
            match rule_of(FixVersion::Fix44, name.as_bytes()) {
                Some(_) => Ok((name.to_string(), is_required)),
                None => Err(format!("{name:?} is not the MsgType of a message that a client may send")),
            }
        });
        let values: Vec<String> = match values {
            "" => Vec::new(),
            values => values.split(',').map(str::to_string).collect(),
        };
        if values.iter().any(String::is_empty) {
            return Err(format!("an empty value is none, in {text:?}"));
        }
        Ok(CustomField { tag, field_type, values, messages: messages.collect::<Result<_, _>>()? })
    }

    fn is_in(&self, msg_type: &[u8]) -> bool {
        self.messages.iter().any(|(message, _)| message.as_bytes() == msg_type)
    }

    fn is_required_in(&self, msg_type: &[u8]) -> bool {
        self.messages.iter().any(|(message, is_required)| *is_required && message.as_bytes() == msg_type)
    }
}

impl fmt::Display for CustomField {
    /// Writes the field as [`CustomField::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = |(name, is_required): &(String, bool)| {
            if *is_required { format!("{name}!") } else { name.clone() }
        };
        let messages: Vec<String> = self.messages.iter().map(message).collect();
        let messages = if messages.is_empty() { "-".to_string() } else { messages.join(",") };
        write!(f, "{} {} {messages}", self.tag, self.field_type.name())?;
        if self.values.is_empty() {
            return Ok(());
        }
        write!(f, " {}", self.values.join(","))
    }
}

/// What a session's operator adds to the dictionary, and what it leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictionarySettings {
    /// In the order of their tags.
    fields: Vec<CustomField>,
    /// `ValidateUserDefinedFields`: whether a tag from 5000 must be in the dictionary.
    user_defined: bool,
}

impl Default for DictionarySettings {
    fn default() -> DictionarySettings {
        DictionarySettings::new(Vec::new(), true)
    }
}

impl DictionarySettings {
    /// A tag may occur in several fields, with other messages in each.
    pub fn new(mut fields: Vec<CustomField>, user_defined: bool) -> DictionarySettings {
        fields.sort_by_key(|field| field.tag);
        DictionarySettings { fields, user_defined }
    }

    pub(super) fn checks_user_defined(&self) -> bool {
        self.user_defined
    }

    /// Returns the fields with this tag.
    #[inline]
    pub(super) fn fields(&self, tag: u32) -> &[CustomField] {
        if self.fields.is_empty() { &[] } else { self.find_fields(tag) }
    }

    fn find_fields(&self, tag: u32) -> &[CustomField] {
        let start = self.fields.partition_point(|field| field.tag < tag);
        let count = self.fields[start..].partition_point(|field| field.tag == tag);
        &self.fields[start..start + count]
    }

    /// Returns whether a message may have the tag.
    pub(super) fn has_in(&self, tag: u32, msg_type: &[u8]) -> bool {
        self.fields(tag).iter().any(|field| field.is_in(msg_type))
    }

    /// Returns whether the value is one that the operator lists.
    pub(super) fn lists(&self, tag: u32, value: &[u8]) -> bool {
        let mut values = self.fields(tag).iter().flat_map(|field| &field.values);
        values.any(|listed| listed.as_bytes() == value)
    }

    /// Returns the tags that a message must have.
    pub(super) fn required<'a>(&'a self, msg_type: &'a [u8]) -> impl Iterator<Item = u32> + 'a {
        let required = self.fields.iter().filter(move |field| field.is_required_in(msg_type));
        required.map(|field| field.tag)
    }
}
