//! The due time of each stream, and the first of all: a tournament tree. Leaves are the streams;
//! each inner node knows the winner of its two children, so a change replays one path to the top.

use crate::index::index_u32;
use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct StreamSchedule {
    at: Vec<Timestamp>,
    /// Node 1 is the top, the children of `n` are `2n` and `2n + 1`, the leaves are the upper half.
    winners: Vec<u32>,
}

impl StreamSchedule {
    pub(super) fn new(streams: usize) -> StreamSchedule {
        let leaves = streams.next_power_of_two();
        let mut schedule = StreamSchedule {
            at: vec![Timestamp::MAX; leaves],
            winners: (0..index_u32(2 * leaves)).collect(),
        };
        (0..leaves).for_each(|leaf| schedule.winners[leaves + leaf] = index_u32(leaf));
        (1..leaves).rev().for_each(|node| schedule.play(node));
        schedule
    }

    pub(super) fn set(&mut self, stream: usize, at: Timestamp) {
        self.at[stream] = at;
        let mut node = (self.at.len() + stream) / 2;
        while node > 0 {
            self.play(node);
            node /= 2;
        }
    }

    pub(super) fn at(&self, stream: usize) -> Timestamp {
        self.at[stream]
    }

    pub(super) fn first(&self) -> Option<(usize, Timestamp)> {
        let first = *self.winners.get(1)? as usize;
        Some((first, self.at[first]))
    }

    fn play(&mut self, node: usize) {
        let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
        let right_wins = self.at[right as usize] < self.at[left as usize];
        self.winners[node] = if right_wins { right } else { left };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_schedule_agrees_with_a_sorted_list() {
        let mut rng = Rng::new(4);
        let mut schedule = StreamSchedule::new(13);
        let mut twin = [Timestamp::MAX; 13];
        for _ in 0..2_000 {
            let (stream, at) = (rng.below(13) as usize, Timestamp(rng.below(50)));
            schedule.set(stream, at);
            twin[stream] = at;
            let first = (0..13).min_by_key(|&stream| (twin[stream], stream)).unwrap();
            assert_eq!(schedule.first(), Some((first, twin[first])));
        }
        assert_eq!(StreamSchedule::new(0).first(), Some((0, Timestamp::MAX)));
    }
}
