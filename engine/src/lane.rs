//! A lane: the one way from a thread to another. A bounded ring with one writer and one reader; neither ever waits.

use rtrb::{Consumer, Producer, RingBuffer};

/// A lane with room for `depth` values.
pub fn lane<T: Copy>(depth: usize) -> (LaneIn<T>, LaneOut<T>) {
    assert!(depth >= 1, "a lane holds at least one value");
    let (producer, consumer) = RingBuffer::new(depth);
    (LaneIn(producer), LaneOut(consumer))
}

/// The end that is written to.
#[derive(Debug)]
pub struct LaneIn<T>(Producer<T>);

/// The end that is read from.
#[derive(Debug)]
pub struct LaneOut<T>(Consumer<T>);

/// The lane had no room. Nothing is lost: what goes through a lane is copied, and the sender still has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneFull;

impl<T: Copy> LaneIn<T> {
    /// The value is written where it will lie: `push` would make a copy first, since it gives back what does not fit.
    #[inline]
    pub fn send(&mut self, value: T) -> Result<(), LaneFull> {
        let place = self.0.write_chunk_uninit(1).map_err(|_| LaneFull)?;
        place.fill_from_iter(std::iter::once(value));
        Ok(())
    }

    /// Whether the next [`LaneIn::send`] succeeds. Nobody else writes, so room once seen stays.
    pub fn has_room(&self) -> bool {
        !self.0.is_full()
    }
}

impl<T: Copy> LaneOut<T> {
    pub fn take(&mut self) -> Option<T> {
        self.0.pop().ok()
    }

    /// Takes the next value where it lies: what is only read need not be copied first.
    #[inline]
    pub fn take_with<R>(&mut self, see: impl FnOnce(&T) -> R) -> Option<R> {
        let seen = see(self.0.peek().ok()?);
        let _ = self.0.pop();
        Some(seen)
    }

    /// Shows the values that will be taken next, nearest first, as far as they are here and at most `count`.
    #[inline]
    pub fn look_ahead(&mut self, count: usize, mut see: impl FnMut(usize, &T)) {
        let count = count.min(self.0.slots());
        let Ok(coming) = self.0.read_chunk(count) else { return };
        let (first, second) = coming.as_slices();
        first.iter().chain(second).enumerate().for_each(|(distance, value)| see(distance, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_of_any_depth_keeps_the_order_and_refuses_what_does_not_fit() {
        for depth in [1, 2, 3, 1_024, 5_000] {
            let (mut tail, mut head) = lane(depth);
            for round in 0..3 {
                assert_eq!(head.take(), None);
                for i in 0..depth {
                    assert!(tail.has_room());
                    assert_eq!(tail.send((round, i)), Ok(()));
                }
                assert!(!tail.has_room());
                assert_eq!(tail.send((round, depth)), Err(LaneFull));
                for i in 0..depth {
                    let taken = if i % 2 == 0 { head.take() } else { head.take_with(|value| *value) };
                    assert_eq!(taken, Some((round, i)));
                }
                assert_eq!(head.take_with(|value| *value), None);
            }
        }
    }

    #[test]
    fn looking_ahead_takes_nothing() {
        let (mut tail, mut head) = lane(3);
        let look = |head: &mut LaneOut<u32>| {
            let mut seen = Vec::new();
            head.look_ahead(2, |distance, &value| seen.push((distance, value)));
            seen
        };
        assert_eq!(look(&mut head), []);
        for value in 0..7 {
            tail.send(value).unwrap();
            assert_eq!(look(&mut head), [(0, value)]);
            tail.send(100 + value).unwrap();
            assert_eq!(look(&mut head), [(0, value), (1, 100 + value)]);
            assert_eq!((head.take(), head.take(), head.take()), (Some(value), Some(100 + value), None));
        }
    }

    #[test]
    #[should_panic(expected = "a lane holds at least one value")]
    fn a_lane_of_no_depth_is_a_mistake() {
        lane::<u8>(0);
    }
}
