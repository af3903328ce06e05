//! Settings of the dialect of a FIX venue, and the key with which venues are convinced who sends.

use std::path::PathBuf;

use pitlane_protocols::fix::venue::profile::{ExtraField, OMITTED_TAGS, SIGNED_TAGS, VenueProfile};

use super::section::{Section, text_of};
use super::words::Secret;

/// How a secret is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretEncoding {
    Text,
    Base64,
}

/// The secret of an account: itself, or the file that has it or an Ed25519 key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueKeyConfig {
    pub secret: Option<Secret>,
    pub secret_file: Option<PathBuf>,
    pub secret_encoding: SecretEncoding,
}

impl VenueKeyConfig {
    pub(super) fn read(section: &mut Section<'_>) -> VenueKeyConfig {
        VenueKeyConfig {
            secret: section.secret("secret"),
            secret_file: section.path("secret_file"),
            secret_encoding: section.word(
                "secret_encoding",
                &[("text", SecretEncoding::Text), ("base64", SecretEncoding::Base64)],
            ),
        }
    }

    /// Returns whether there is exactly one of both.
    pub fn is_given(&self) -> bool {
        self.secret.is_some() != self.secret_file.is_some()
    }
}

/// The dialect of a FIX venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueProfileConfig {
    pub logon_signed_tags: Vec<u32>,
    pub logon_fields: Vec<ExtraField>,
    pub order_fields: Vec<ExtraField>,
    pub omit_tags: Vec<u32>,
}

impl VenueProfileConfig {
    pub(super) fn read(section: &mut Section<'_>) -> VenueProfileConfig {
        let tags = |section: &mut Section<'_>, key, allowed: &'static [u32]| {
            section
                .numbers(key, 1..=999_999)
                .into_iter()
                .inspect(|tag| {
                    if !allowed.contains(tag) {
                        let listed: Vec<String> = allowed.iter().map(u32::to_string).collect();
                        section.fault(key, &format!("{tag} is not one of {}", listed.join(", ")));
                    }
                })
                .collect::<Vec<u32>>()
        };
        let fields = |section: &mut Section<'_>, key| {
            section.items(key, |value| ExtraField::parse(text_of(value)?), ExtraField::to_string)
        };
        VenueProfileConfig {
            logon_signed_tags: tags(section, "logon_signed_tags", &SIGNED_TAGS),
            logon_fields: fields(section, "logon_fields"),
            order_fields: fields(section, "order_fields"),
            omit_tags: tags(section, "omit_tags", &OMITTED_TAGS),
        }
    }

    pub fn is_signed(&self) -> bool {
        !self.logon_signed_tags.is_empty()
    }

    pub fn profile(&self) -> VenueProfile {
        let VenueProfileConfig { logon_signed_tags, logon_fields, order_fields, omit_tags } = self;
        VenueProfile::new(logon_signed_tags, logon_fields, order_fields, omit_tags)
    }
}
