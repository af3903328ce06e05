//! How things are called at the broker.

use std::fmt::Write;

use crate::config::{Nats, Service};

/// The names of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    /// With its last dot.
    prefix: String,
}

impl Subjects {
    pub fn of(nats: &Nats, service: &Service) -> Subjects {
        Subjects { prefix: format!("{}.{}.", nats.prefix, service.name) }
    }

    pub fn market(&self) -> String {
        self.called("market")
    }

    pub fn generic(&self) -> String {
        self.called("generic")
    }

    pub fn life(&self) -> String {
        self.called("life")
    }

    pub fn events(&self, strategy: &str) -> String {
        self.called("events.") + &segment(strategy)
    }

    pub fn ask(&self, strategy: &str) -> String {
        self.called("ask.") + &segment(strategy)
    }

    /// Where a strategy is answered: a place of its own, so that the broker can keep others from listening there.
    pub fn inbox(&self, strategy: &str) -> String {
        self.called("inbox.") + &segment(strategy)
    }

    /// Where the server is.
    pub fn server_inbox(&self) -> String {
        self.called("server")
    }

    /// Requests of all strategies.
    pub fn asks(&self) -> String {
        self.called("ask.*")
    }

    /// Whose request this is, of those who may be.
    pub fn asker<'a>(&self, subject: &str, mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        let asker = subject.strip_prefix(&self.prefix)?.strip_prefix("ask.")?;
        names.find(|name| segment(name) == asker)
    }

    /// The stream that keeps events between strategies. Such names have no dots.
    pub fn stream(&self) -> String {
        self.prefix.to_uppercase().replace('.', "_") + "GENERIC"
    }

    /// The stream that holds the folder of a group of servers, and how its subjects begin.
    pub fn standby(&self, group: &str) -> (String, String) {
        let stream = self.prefix.to_uppercase().replace('.', "_") + "STANDBY_" + group;
        (stream, self.called("standby.") + group + ".")
    }

    fn called(&self, name: &str) -> String {
        self.prefix.clone() + name
    }
}

/// A name as one segment of a subject, and as the name of a consumer.
pub fn segment(name: &str) -> String {
    let mut segment = String::new();
    for octet in name.bytes() {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => segment.push(octet as char),
            _ => _ = write!(segment, "%{octet:02X}"),
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_name_is_one_segment_and_comes_back() {
        let config = Config::default();
        let subjects = Subjects::of(&config.nats, &config.service);
        assert_eq!(subjects.events("MARKET_MAKER"), "pitlane.pitlane.events.MARKET_MAKER");
        assert_eq!(subjects.ask("a.b *"), "pitlane.pitlane.ask.a%2Eb%20%2A");
        let names = || ["A", "a.b *"].into_iter();
        assert_eq!(subjects.asker(&subjects.ask("a.b *"), names()), Some("a.b *"));
        assert_eq!(subjects.asker("pitlane.pitlane.ask.B", names()), None);
        assert_eq!(subjects.asker("other.ask.A", names()), None);
        assert_eq!(subjects.stream(), "PITLANE_PITLANE_GENERIC");
    }
}
