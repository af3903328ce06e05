//! Applies operators' directives to our own shards if the shards have missed them.
//!
//! Each shard reports the version of the newest directive that it has applied, for each key. This
//! server compares what it sees of all shards, and sends its own shards the directives that others
//! have and they lack. So a server that was paused, cut off or down catches up by itself as soon as
//! it receives messages of one other server that knows them. Since the shards store what they
//! apply, it does not matter to which server the operator sent the directive, nor whether that one
//! has been restarted since.

use pitlane_engine::command::CommandKind;
use pitlane_engine::directive::DirectiveVersion;
use pitlane_engine::id::ShardId;
use pitlane_engine::mesh::ShardMask;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_engine::view::View;

/// Time after sending a directive to a shard until it is checked again whether the shard has
/// applied it.
const RETRY_NS: u64 = 100 * NS_PER_MS;

#[derive(Debug)]
pub(super) struct CatchUp {
    own: ShardMask,
    /// The view's counter of directives at the last comparison, and whether something was missing
    /// then.
    seen: u64,
    was_lacking: bool,
    compared_at: Timestamp,
    /// The newest version that this server has issued.
    issued: DirectiveVersion,
}

impl CatchUp {
    pub(super) fn new(own: ShardMask) -> CatchUp {
        CatchUp {
            own,
            seen: 0,
            was_lacking: false,
            compared_at: Timestamp::ZERO,
            issued: DirectiveVersion::default(),
        }
    }

    /// Returns a version newer than all that are known here.
    pub(super) fn next_version(&mut self, now: Timestamp, member: u8, view: &View) -> DirectiveVersion {
        let known = view.directives().map(|(_, version)| version).max().unwrap_or_default();
        self.issued = DirectiveVersion::after(known.max(self.issued), now, member);
        self.issued
    }

    /// Returns the commands for our shards, if something has changed since the last comparison or
    /// was still missing then.
    pub(super) fn missed(&mut self, now: Timestamp, view: &View) -> Vec<(ShardId, CommandKind)> {
        let is_due = now >= self.compared_at.plus(RETRY_NS) || now < self.compared_at;
        let is_changed = view.directives_seen() != self.seen;
        // The missing directives are already sent: a comparison at every change meanwhile would
        // only send them again.
        let is_wanted = if self.was_lacking { is_due } else { is_changed };
        if !is_wanted {
            return Vec::new();
        }
        (self.seen, self.compared_at) = (view.directives_seen(), now);
        let mut missed = Vec::new();
        for (directive, version) in view.directives() {
            let lacking = view.unconfirmed(directive.key());
            // Before its first snapshot has ended it is unknown what a shard lacks.
            let lacking = lacking.filter(|shard| self.own.contains(*shard) && view.is_complete(*shard));
            missed.extend(lacking.map(|shard| (shard, CommandKind::Direct { version, directive })));
        }
        self.was_lacking = !missed.is_empty();
        missed
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::command::Scope;
    use pitlane_engine::directive::Directive;
    use pitlane_engine::event::{Event, EventKind};
    use pitlane_engine::id::PortId;
    use pitlane_engine::view::ViewSettings;

    use super::*;

    const OWN: ShardId = ShardId(1);
    const OTHER: ShardId = ShardId(0);

    fn kill(on: bool) -> Directive {
        Directive::Kill { scope: Scope::Global, on }
    }

    fn apply(view: &mut View, shard: ShardId, body: EventKind) {
        let seq = view.seq(shard) + 1;
        view.apply(shard, &Event { seq, at: Timestamp(1), body });
    }

    #[test]
    fn a_directive_that_our_shard_lacks_is_sent_to_it_once() {
        let mut view = View::new(2, ViewSettings::default());
        let mut catch_up = CatchUp::new([OWN].into_iter().collect());
        let newest = DirectiveVersion(80);
        apply(&mut view, OTHER, EventKind::Directed { version: newest, directive: kill(true) });
        assert_eq!(catch_up.missed(Timestamp(1), &view), [], "it is not known yet what it lacks");
        let port = PortId(0);
        apply(&mut view, OWN, EventKind::SnapshotBegin { port });
        apply(&mut view, OWN, EventKind::SnapshotEnd { port });
        let missed = [(OWN, CommandKind::Direct { version: newest, directive: kill(true) })];
        assert_eq!(catch_up.missed(Timestamp(2), &view), missed);
        assert_eq!(catch_up.missed(Timestamp(3), &view), [], "it is in flight");
        let late = Timestamp(3 + RETRY_NS);
        assert_eq!(catch_up.missed(late, &view), missed, "and was lost");
        apply(&mut view, OWN, EventKind::Directed { version: newest, directive: kill(true) });
        assert_eq!(catch_up.missed(late.plus(RETRY_NS), &view), []);
        // Versions issued here are newer, and what shards of others lack is left to their servers.
        let version = catch_up.next_version(Timestamp(5), 0, &view);
        assert!(version > newest && catch_up.next_version(Timestamp(5), 0, &view) > version);
        apply(&mut view, OWN, EventKind::Directed { version, directive: kill(false) });
        assert_eq!(catch_up.missed(late.plus(3 * RETRY_NS), &view), []);
    }
}
