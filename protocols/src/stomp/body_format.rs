//! Encoding of the bodies of one subscription, by its header `accept`.

use crate::sbe;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyFormat {
    #[default]
    Json,
    /// Simple Binary Encoding, for the topics that have a template; the others stay JSON.
    Sbe,
}

impl BodyFormat {
    pub const ALL: [BodyFormat; 2] = [BodyFormat::Json, BodyFormat::Sbe];

    /// Reads the header `accept`: the first media type of the list that we know.
    pub fn from_accept(list: &str) -> Option<BodyFormat> {
        list.split(',').find_map(|item| {
            let name = item.split(';').next().unwrap_or_default().trim();
            match name {
                "*/*" | "application/*" => Some(BodyFormat::Json),
                _ => BodyFormat::ALL.into_iter().find(|format| format.content_type() == name),
            }
        })
    }

    pub fn content_type(self) -> &'static str {
        match self {
            BodyFormat::Json => "application/json",
            BodyFormat::Sbe => sbe::CONTENT_TYPE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_media_type_counts() {
        for (list, format) in [
            ("application/json", Some(BodyFormat::Json)),
            ("application/x-pitlane-sbe", Some(BodyFormat::Sbe)),
            ("text/csv, application/x-pitlane-sbe;q=0.9, application/json", Some(BodyFormat::Sbe)),
            ("*/*", Some(BodyFormat::Json)),
            ("text/csv", None),
            ("", None),
        ] {
            assert_eq!(BodyFormat::from_accept(list), format, "{list}");
        }
    }
}
