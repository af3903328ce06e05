//! The securities that the runner's strategies follow, and the newest tick of each.

use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::index::index_u32;

const NONE: u32 = u32::MAX;

/// Market data of all strategies of a runner together.
#[derive(Debug, Default)]
pub struct MarketCache {
    /// By security id: the index of its row.
    places: Vec<u32>,
    rows: Vec<FollowedSecurity>,
}

#[derive(Debug)]
struct FollowedSecurity {
    /// Zero time: no tick has arrived yet.
    tick: Tick,
    /// Indices of the strategies that follow it.
    followers: Vec<u16>,
}

impl MarketCache {
    /// Returns the newest tick; `None` before the first.
    pub fn tick(&self, security: SecurityId) -> Option<&Tick> {
        let row = self.rows.get(self.place(security)?)?;
        (row.tick.security == security && !row.is_blank()).then_some(&row.tick)
    }

    /// Returns the tick of a followed security, to be updated.
    #[inline]
    pub fn tick_mut(&mut self, security: SecurityId) -> Option<&mut Tick> {
        let place = self.place(security)?;
        Some(&mut self.rows[place].tick)
    }

    /// Returns the newest ticks of all followed securities.
    pub fn ticks(&self) -> impl Iterator<Item = &Tick> {
        self.rows.iter().filter(|row| !row.is_blank()).map(|row| &row.tick)
    }

    /// Stores a tick and returns the index of its row.
    #[inline]
    pub fn put(&mut self, tick: &Tick) -> Option<usize> {
        let place = self.place(tick.security)?;
        self.rows[place].tick = *tick;
        Some(place)
    }

    /// Returns the followers of a row one by one: they may change during a call.
    #[inline]
    pub fn follower(&self, place: usize, at: usize) -> Option<u16> {
        self.rows[place].followers.get(at).copied()
    }

    pub fn is_followed(&self, security: SecurityId) -> bool {
        self.place(security).is_some_and(|place| !self.rows[place].followers.is_empty())
    }

    /// Starts or stops following a security. Returns true for the first and the last follower.
    pub fn follow(&mut self, security: SecurityId, strategy: u16, on: bool) -> bool {
        let at = security.0 as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, NONE);
        }
        if self.places[at] == NONE {
            self.places[at] = index_u32(self.rows.len());
            self.rows
                .push(FollowedSecurity { tick: Tick { security, ..Tick::default() }, followers: Vec::new() });
        }
        let row = &mut self.rows[self.places[at] as usize];
        let had = row.followers.len();
        match (row.followers.binary_search(&strategy), on) {
            (Err(at), true) => row.followers.insert(at, strategy),
            (Ok(at), false) => _ = row.followers.remove(at),
            (Ok(_), true) | (Err(_), false) => {}
        }
        (had == 0) != row.followers.is_empty()
    }

    #[inline]
    fn place(&self, security: SecurityId) -> Option<usize> {
        self.places.get(security.0 as usize).filter(|place| **place != NONE).map(|place| *place as usize)
    }
}

impl FollowedSecurity {
    fn is_blank(&self) -> bool {
        self.tick.at.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitlane_engine::time::Timestamp;

    #[test]
    fn the_first_and_the_last_follower_are_reported() {
        let mut market = MarketCache::default();
        let (one, two) = (SecurityId(7), SecurityId(3));
        assert!(market.follow(one, 1, true));
        assert!(!market.follow(one, 0, true));
        assert!(!market.follow(one, 1, true), "once is enough");
        assert!(market.follow(two, 1, true));
        assert_eq!(market.tick(one), None);
        assert_eq!(market.tick_mut(one).map(|tick| tick.security), Some(one), "it can be filled in");
        let tick = Tick { security: one, at: Timestamp(5), ..Tick::default() };
        let place = market.put(&tick).unwrap();
        assert_eq!(
            (market.follower(place, 0), market.follower(place, 1), market.follower(place, 2)),
            (Some(0), Some(1), None)
        );
        assert_eq!(market.tick(one), Some(&tick));
        assert!(!market.follow(one, 0, false) && market.is_followed(one));
        assert!(market.follow(one, 1, false) && !market.is_followed(one));
        assert_eq!(market.put(&Tick { security: SecurityId(9), ..tick }), None);
    }
}
