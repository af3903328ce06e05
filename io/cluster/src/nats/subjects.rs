//! The subject names at the broker.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pitlane_config::{NatsConfig, ServiceConfig};

/// Characters of a segment that are encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Longest reply subject of a strategy in bytes: an inbox, an id of the client and a number.
const REPLY_BYTES_MAX: usize = 256;

/// The subjects of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    /// Prefix, with its last dot.
    prefix: String,
}

impl Subjects {
    pub fn of(nats: &NatsConfig, service: &ServiceConfig) -> Subjects {
        Subjects { prefix: format!("{}.{}.", nats.prefix, service.name) }
    }

    pub fn market(&self) -> String {
        self.subject("market")
    }

    pub fn generic(&self) -> String {
        self.subject("generic")
    }

    pub fn phases(&self) -> String {
        self.subject("life")
    }

    pub fn events(&self, strategy: &str) -> String {
        self.subject("events.") + &segment(strategy)
    }

    pub fn ask(&self, strategy: &str) -> String {
        self.subject("ask.") + &segment(strategy)
    }

    /// Returns the inbox of a strategy. Each strategy has its own, so that the broker can prevent
    /// others from subscribing to it.
    pub fn inbox(&self, strategy: &str) -> String {
        self.subject("inbox.") + &segment(strategy)
    }

    /// Returns the subject on which a process asks whether the server knows its strategy, when its
    /// requests have no responder.
    pub fn hello(&self, strategy: &str) -> String {
        self.subject("hello.") + &segment(strategy)
    }

    /// Returns the pattern for such questions of all processes.
    pub fn hellos(&self) -> String {
        self.subject("hello.*")
    }

    /// Returns a subject on which no strategy may publish: a process tries it, and if the server
    /// receives it, the login has more rights than a strategy needs.
    pub fn canary(&self, strategy: &str) -> String {
        self.subject("canary.") + &segment(strategy)
    }

    pub fn canaries(&self) -> String {
        self.subject("canary.*")
    }

    /// Returns the subject on which a connection between servers publishes: if it arrives among the
    /// strategies, both are in one account.
    pub fn servers_canary(&self) -> String {
        self.subject("canary-servers")
    }

    /// Returns the inbox of the server.
    pub fn server_inbox(&self) -> String {
        self.subject("server")
    }

    /// Returns whether a request of this strategy may be answered on `reply`: below its own inbox
    /// and nowhere else. The server publishes with its own rights, so a strategy that could name
    /// any other subject would publish with them too.
    pub fn is_in_inbox(&self, strategy: &str, reply: &str) -> bool {
        self.is_in_inbox_of(&segment(strategy), reply)
    }

    fn is_in_inbox_of(&self, segment: &str, reply: &str) -> bool {
        let below = reply.strip_prefix(&self.subject("inbox."));
        let below = below.and_then(|rest| rest.strip_prefix(segment)).and_then(|rest| rest.strip_prefix('.'));
        let is_plain = |token: &str| {
            !token.is_empty()
                && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        reply.len() <= REPLY_BYTES_MAX && below.is_some_and(|below| below.split('.').all(is_plain))
    }

    /// Returns the strategy that asks on this subject, as one segment; `None` if the answer would
    /// go to a subject outside its own inbox.
    pub fn hello_sender<'a>(&self, subject: &'a str, reply: &str) -> Option<&'a str> {
        let segment = subject.strip_prefix(&self.subject("hello."))?;
        (!segment.is_empty() && self.is_in_inbox_of(segment, reply)).then_some(segment)
    }

    /// Returns the name of the stream that keeps events between strategies. Such names have no
    /// dots.
    pub fn stream(&self) -> String {
        self.prefix.to_uppercase().replace('.', "_") + "GENERIC"
    }

    /// Returns the name of the stream that contains the folder of a group of servers, and the
    /// prefix of its subjects.
    pub fn standby(&self, group: &str) -> (String, String) {
        let stream = self.prefix.to_uppercase().replace('.', "_") + "STANDBY_" + group;
        (stream, self.subject("standby.") + group + ".")
    }

    fn subject(&self, name: &str) -> String {
        self.prefix.clone() + name
    }
}

/// Encodes a name as one segment of a subject, and as the name of a consumer.
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use pitlane_config::Config;

    use super::*;

    #[test]
    fn a_name_is_one_segment() {
        let config = Config::default();
        let subjects = Subjects::of(&config.nats, &config.service);
        assert_eq!(subjects.events("MARKET_MAKER"), "pitlane.pitlane.events.MARKET_MAKER");
        assert_eq!(subjects.ask("a.b *"), "pitlane.pitlane.ask.a%2Eb%20%2A");
        assert_eq!(subjects.stream(), "PITLANE_PITLANE_GENERIC");
    }

    /// A restricted login once made the server answer on the subjects of the standby, and so
    /// stopped both servers.
    #[test]
    fn a_strategy_is_answered_only_below_its_own_inbox() {
        let config = Config::default();
        let subjects = Subjects::of(&config.nats, &config.service);
        for good in ["inbox.A.x", "inbox.A.x.1", "inbox.A.x.y.z-_9"] {
            assert!(subjects.is_in_inbox("A", &format!("pitlane.pitlane.{good}")), "{good}");
        }
        for bad in [
            "inbox.A",
            "inbox.A.",
            "inbox.A..x",
            "inbox.A.*",
            "inbox.A.>",
            "inbox.A.x y",
            "inbox.AB.x",
            "inbox.B.x",
            "inbox.*.x",
            "server.x",
            "ask.A",
            "events.A",
            "market",
            "standby.pair.lead",
        ] {
            assert!(!subjects.is_in_inbox("A", &format!("pitlane.pitlane.{bad}")), "{bad}");
        }
        for bad in ["", "inbox.A.x", "$JS.ACK.A.B.1", "_INBOX.x", "other.pitlane.inbox.A.x"] {
            assert!(!subjects.is_in_inbox("A", bad), "{bad}");
        }
        let longest = format!("pitlane.pitlane.inbox.A.{}", "x".repeat(REPLY_BYTES_MAX - 24));
        assert!(subjects.is_in_inbox("A", &longest) && !subjects.is_in_inbox("A", &(longest.clone() + "x")));
        assert!(subjects.is_in_inbox("a.b", "pitlane.pitlane.inbox.a%2Eb.x"));
        let sender = |reply| subjects.hello_sender("pitlane.pitlane.hello.A", reply);
        assert_eq!(sender("pitlane.pitlane.inbox.A.x"), Some("A"));
        assert_eq!(sender("pitlane.pitlane.inbox.B.x"), None);
    }
}
