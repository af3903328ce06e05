//! A message that must not be lost, rendered once and shared by all its subscribers. Only the
//! destination differs between them: by version and by the subscribed name.

use std::sync::Arc;

use pitlane_engine::time::Timestamp;

use super::body_format::BodyFormat;
use super::encode;
use super::escape;
use super::frame::Escaping;
use super::topic::{Naming, Topic};

/// How a subscriber's destinations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    pub alias: Option<u8>,
    pub escaping: Escaping,
    pub format: BodyFormat,
}

#[derive(Debug, Default)]
pub struct Rendered {
    name: Vec<u8>,
    /// Length of the name's first segment.
    first: usize,
    is_plain: bool,
    is_order_status: bool,
    at: Timestamp,
    body: Vec<u8>,
    /// The same in binary; empty if the topic has no template, or no subscriber wants it.
    binary: Vec<u8>,
    /// The first `made` tails belong to this message; the others only keep their memory.
    tails: Vec<MessageTail>,
    made: usize,
}

#[derive(Debug)]
pub struct MessageTail {
    variant: Variant,
    bytes: Vec<u8>,
    /// Shared copy, made when the first subscriber must queue the message.
    shared: Option<Arc<[u8]>>,
}

impl MessageTail {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn share(&mut self) -> Arc<[u8]> {
        self.shared.get_or_insert_with(|| self.bytes.as_slice().into()).clone()
    }
}

impl Rendered {
    /// Begins a message. Its name is known at once, so that a topic without subscribers is never
    /// rendered.
    pub fn begin(&mut self, topic: &Topic, naming: &Naming, at: Timestamp) {
        self.name.clear();
        topic.push_name(naming, &mut self.name);
        self.first = self.name.iter().position(|octet| *octet == b'.').unwrap_or(self.name.len());
        self.is_plain = escape::is_plain(&self.name);
        self.is_order_status = matches!(topic, Topic::OrderStatus { .. });
        self.at = at;
        self.body.clear();
        self.binary.clear();
        self.made = 0;
    }

    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.name).expect("names are made of texts")
    }

    /// Returns the buffer for the body, which is written once.
    pub fn body(&mut self) -> &mut Vec<u8> {
        &mut self.body
    }

    /// Returns the buffer for the binary body.
    pub fn binary_body(&mut self) -> &mut Vec<u8> {
        &mut self.binary
    }

    pub fn tail(&mut self, variant: Variant, naming: &Naming) -> &mut MessageTail {
        let alias = variant.alias.filter(|_| self.is_order_status).and_then(|alias| naming.alias(alias));
        let is_plain = self.is_plain && alias.is_none_or(|alias| escape::is_plain(alias.as_bytes()));
        let variant = Variant {
            alias: variant.alias.filter(|_| alias.is_some()),
            escaping: if is_plain { Escaping::None } else { variant.escaping },
            format: if self.binary.is_empty() { BodyFormat::Json } else { variant.format },
        };
        if let Some(at) = self.tails[..self.made].iter().position(|tail| tail.variant == variant) {
            return &mut self.tails[at];
        }
        if self.made == self.tails.len() {
            self.tails.push(MessageTail { variant, bytes: Vec::new(), shared: None });
        }
        let first = alias.map_or(&self.name[..self.first], str::as_bytes);
        let tail = &mut self.tails[self.made];
        self.made += 1;
        (tail.variant, tail.shared) = (variant, None);
        tail.bytes.clear();
        let name = [first, &self.name[self.first..]];
        let body = match variant.format {
            BodyFormat::Json => &self.body,
            BodyFormat::Sbe => &self.binary,
        };
        encode::message_tail(&mut tail.bytes, name, self.at, (variant.format, body), variant.escaping);
        tail
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::IntId;

    use super::*;

    #[test]
    fn a_message_has_one_tail_for_each_form_of_its_destination() {
        let naming = Naming::default();
        let mut rendered = Rendered::default();
        let order = IntId::parse(b"a:b").unwrap();
        rendered.begin(&Topic::OrderStatus { strategy: "S", order }, &naming, Timestamp::ZERO);
        rendered.body().extend_from_slice(b"{}");
        let variants = [
            (None, Escaping::None, "/topic/pitlane.S.a:b\n"),
            (None, Escaping::V12, "/topic/pitlane.S.a\\cb\n"),
            (Some(0), Escaping::V12, "/topic/the service.S.a\\cb\n"),
            (None, Escaping::V12, "/topic/pitlane.S.a\\cb\n"),
        ];
        for (alias, escaping, destination) in variants {
            let tail = rendered.tail(Variant { alias, escaping, format: BodyFormat::Json }, &naming);
            let text = String::from_utf8(tail.bytes().to_vec()).unwrap();
            assert!(text.contains(destination), "{text}");
            assert_eq!(*tail.share(), *tail.bytes());
        }
        assert_eq!(rendered.made, 3);
        rendered.begin(&Topic::LogEvent("warn"), &naming, Timestamp::ZERO);
        for escaping in [Escaping::None, Escaping::V11, Escaping::V12] {
            // A topic without a template stays JSON.
            rendered.tail(Variant { alias: Some(0), escaping, format: BodyFormat::Sbe }, &naming);
        }
        assert_eq!((rendered.made, rendered.name()), (1, "log-event.warn"));
    }
}
