//! What operators have decided, brought to our own shards if they have missed it.
//!
//! Each shard tells the version of the newest directive that it has applied, for each key. This server
//! compares what it sees of all shards, and tells its own those that others have and they lack. So a server
//! that was paused, cut off or down catches up by itself as soon as it hears one other server that knows;
//! and since the shards store what they apply, it does not matter which server the operator spoke to, nor
//! whether that one has been started again since.

use pitlane_engine::command::CommandKind;
use pitlane_engine::directive::Version;
use pitlane_engine::id::ShardId;
use pitlane_engine::mesh::ShardMask;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_engine::view::View;

/// After a shard was told something, so long until it is looked at again whether it has applied it.
const AGAIN_NS: u64 = 100 * NS_PER_MS;

#[derive(Debug)]
pub struct CatchUp {
    own: ShardMask,
    /// How the view stood when it was last compared, and whether something was lacking then.
    seen: u64,
    is_lacking: bool,
    compared_at: Timestamp,
    /// The newest version that this server has given.
    given: Version,
}

impl CatchUp {
    pub fn new(own: ShardMask) -> CatchUp {
        CatchUp { own, seen: 0, is_lacking: false, compared_at: Timestamp::ZERO, given: Version::default() }
    }

    /// A version newer than all that are known here.
    pub fn next_version(&mut self, now: Timestamp, member: u8, view: &View) -> Version {
        let known = view.directives().map(|(_, version)| version).max().unwrap_or_default();
        self.given = Version::after(known.max(self.given), now, member);
        self.given
    }

    /// What our shards are to be told, as far as something has changed since the last look, or was still lacking then.
    pub fn missed(&mut self, now: Timestamp, view: &View) -> Vec<(ShardId, CommandKind)> {
        let is_due = now >= self.compared_at.plus(AGAIN_NS) || now < self.compared_at;
        let is_changed = view.directives_seen() != self.seen;
        // What was lacking is on its way: a look at every change meanwhile would only send it again.
        let is_wanted = if self.is_lacking { is_due } else { is_changed };
        if !is_wanted {
            return Vec::new();
        }
        (self.seen, self.compared_at) = (view.directives_seen(), now);
        let mut missed = Vec::new();
        for (directive, version) in view.directives() {
            let lacking = view.unconfirmed(directive.key());
            // Before its first snapshot has ended it is not known what a shard lacks.
            let lacking = lacking.filter(|shard| self.own.contains(*shard) && view.is_complete(*shard));
            missed.extend(lacking.map(|shard| (shard, CommandKind::Direct { version, directive })));
        }
        self.is_lacking = !missed.is_empty();
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

    fn tell(view: &mut View, shard: ShardId, body: EventKind) {
        let seq = view.seq(shard) + 1;
        view.apply(shard, &Event { seq, at: Timestamp(1), body });
    }

    #[test]
    fn a_shard_of_ours_is_told_once_what_another_shard_has_and_it_lacks() {
        let mut view = View::new(2, ViewSettings::default());
        let mut catch_up = CatchUp::new([OWN].into_iter().collect());
        let newest = Version(80);
        tell(&mut view, OTHER, EventKind::Directed { version: newest, directive: kill(true) });
        assert_eq!(catch_up.missed(Timestamp(1), &view), [], "it is not known yet what it lacks");
        let port = PortId(0);
        tell(&mut view, OWN, EventKind::SnapshotBegin { port });
        tell(&mut view, OWN, EventKind::SnapshotEnd { port });
        let missed = [(OWN, CommandKind::Direct { version: newest, directive: kill(true) })];
        assert_eq!(catch_up.missed(Timestamp(2), &view), missed);
        assert_eq!(catch_up.missed(Timestamp(3), &view), [], "it is on its way");
        let late = Timestamp(3 + AGAIN_NS);
        assert_eq!(catch_up.missed(late, &view), missed, "and was lost");
        tell(&mut view, OWN, EventKind::Directed { version: newest, directive: kill(true) });
        assert_eq!(catch_up.missed(late.plus(AGAIN_NS), &view), []);
        // What we give is newer, and what others lack is their business.
        let version = catch_up.next_version(Timestamp(5), 0, &view);
        assert!(version > newest && catch_up.next_version(Timestamp(5), 0, &view) > version);
        tell(&mut view, OWN, EventKind::Directed { version, directive: kill(false) });
        assert_eq!(catch_up.missed(late.plus(3 * AGAIN_NS), &view), []);
    }
}
