//! Destination of a subscription, parsed once.
//!
//! `*` matches exactly one segment; `>`, as the last segment, matches everything below, and `a.>`
//! matches `a` too.

use super::topic::Naming;

/// Segments of a pattern, more than any topic has, so that a pattern is small.
pub const SEGMENTS_MAX: usize = 16;

const TOPICS: &str = "/topic/";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    segments: Vec<PatternSegment>,
    /// Whether the pattern ends with `>`.
    below: bool,
    /// Alias by which the order topics were named; messages use it too.
    alias: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatternSegment {
    Name(Box<str>),
    Any,
}

/// Why a destination is not a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    NotATopic,
    EmptySegment,
    /// `>` before the end, or a wildcard that is only part of a segment.
    Wildcard,
    TooManySegments,
}

impl PatternError {
    pub fn text(self) -> &'static str {
        match self {
            PatternError::NotATopic => "a destination begins with /topic/",
            PatternError::EmptySegment => "a destination has no empty segments",
            PatternError::Wildcard => "* is a whole segment, and > the whole last one",
            PatternError::TooManySegments => "a destination has at most 16 segments",
        }
    }
}

impl Pattern {
    pub fn parse(destination: &str, naming: &Naming) -> Result<Pattern, PatternError> {
        let name = topic_of(destination).ok_or(PatternError::NotATopic)?;
        let mut pattern = Pattern { segments: Vec::new(), below: false, alias: None };
        for text in name.split('.') {
            if pattern.below {
                return Err(PatternError::Wildcard);
            }
            if pattern.segments.len() == SEGMENTS_MAX {
                return Err(PatternError::TooManySegments);
            }
            match text {
                "" => return Err(PatternError::EmptySegment),
                ">" => pattern.below = true,
                "*" => pattern.segments.push(PatternSegment::Any),
                _ if text.contains(['*', '>']) => return Err(PatternError::Wildcard),
                _ => pattern.segments.push(PatternSegment::Name(text.into())),
            }
        }
        if let Some(PatternSegment::Name(first)) = pattern.segments.first_mut()
            && let Some(alias) = naming.alias_of(first)
        {
            *first = naming.prefix().into();
            pattern.alias = Some(alias);
        }
        Ok(pattern)
    }

    pub fn segments(&self) -> &[PatternSegment] {
        &self.segments
    }

    pub fn below(&self) -> bool {
        self.below
    }

    pub fn alias(&self) -> Option<u8> {
        self.alias
    }

    /// Returns the segment at an index if it is a name.
    pub fn name_at(&self, place: usize) -> Option<&str> {
        match self.segments.get(place) {
            Some(PatternSegment::Name(name)) => Some(name),
            Some(PatternSegment::Any) | None => None,
        }
    }

    /// Returns whether the pattern matches exactly one topic.
    pub fn is_exact(&self) -> bool {
        !self.below && self.segments.iter().all(|segment| *segment != PatternSegment::Any)
    }

    /// Returns whether the pattern matches a topic of this name.
    pub fn matches(&self, name: &str) -> bool {
        let mut names = name.split('.');
        let all_match = self.segments.iter().all(|segment| match (segment, names.next()) {
            (_, None) => false,
            (PatternSegment::Any, Some(_)) => true,
            (PatternSegment::Name(own), Some(other)) => **own == *other,
        });
        all_match && (self.below || names.next().is_none())
    }
}

/// Returns the topic, or the pattern of topics, that a destination names.
pub fn topic_of(destination: &str) -> Option<&str> {
    destination.strip_prefix(TOPICS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pattern, PatternError> {
        Pattern::parse(text, &Naming::default())
    }

    #[test]
    fn wildcards_match_as_specified() {
        for (pattern, yes, no) in [
            ("tick.42", &["tick.42"][..], &["tick", "tick.4", "tick.42.1", "book.42"][..]),
            ("tick.*", &["tick.1", "tick.2"], &["tick", "tick.1.2"]),
            ("*.42", &["tick.42", "book.42"], &["tick.1", "bar.42.1m"]),
            ("bar.*.1m", &["bar.1.1m"], &["bar.1.1s", "bar.1"]),
            ("a.>", &["a", "a.b", "a.b.c"], &["b", "ab"]),
            ("a.*.>", &["a.b", "a.b.c"], &["a"]),
            (">", &["a", "a.b"], &[]),
            ("*", &["a"], &["a.b"]),
        ] {
            let parsed = parse(&format!("/topic/{pattern}")).unwrap();
            for name in yes {
                assert!(parsed.matches(name), "{pattern} {name}");
            }
            for name in no {
                assert!(!parsed.matches(name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn an_invalid_destination_is_refused() {
        for (text, error) in [
            ("/queue/tick.1", PatternError::NotATopic),
            ("tick.1", PatternError::NotATopic),
            ("/topic/", PatternError::EmptySegment),
            ("/topic/tick..1", PatternError::EmptySegment),
            ("/topic/tick.", PatternError::EmptySegment),
            ("/topic/>.a", PatternError::Wildcard),
            ("/topic/ti*", PatternError::Wildcard),
            ("/topic/a.b>", PatternError::Wildcard),
            ("/topic/a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", PatternError::TooManySegments),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn an_alias_names_the_order_topic() {
        let pattern = parse("/topic/the service.MOMENTUM.*").unwrap();
        assert_eq!((pattern.alias(), pattern.name_at(0)), (Some(0), Some("pitlane")));
        assert!(pattern.matches("pitlane.MOMENTUM.n7"));
        assert_eq!(parse("/topic/pitlane.>").unwrap().alias(), None);
        assert!(parse("/topic/tick.1").unwrap().is_exact() && !pattern.is_exact());
    }
}
