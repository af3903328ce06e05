//! A lane: the only connection from one thread to another. A bounded ring with one writer and one
//! reader; neither ever waits.

use rtrb::{Consumer, Producer, RingBuffer};

/// Creates a lane with room for `depth` values.
pub fn lane<T: Copy>(depth: usize) -> (LaneIn<T>, LaneOut<T>) {
    assert!(depth >= 1, "a lane holds at least one value");
    let (producer, consumer) = RingBuffer::new(depth);
    (LaneIn(producer), LaneOut(consumer))
}

/// The writing end.
#[derive(Debug)]
pub struct LaneIn<T>(Producer<T>);

/// The reading end.
#[derive(Debug)]
pub struct LaneOut<T>(Consumer<T>);

/// The lane has no room. Nothing is lost: a lane copies values, and the sender still has this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneFull;

impl<T: Copy> LaneIn<T> {
    /// Sends a value, written directly into its place: `push` would copy it first, because it
    /// returns a value that does not fit.
    #[inline]
    pub fn send(&mut self, value: T) -> Result<(), LaneFull> {
        let place = self.0.write_chunk_uninit(1).map_err(|_| LaneFull)?;
        place.fill_from_iter(std::iter::once(value));
        Ok(())
    }

    /// Returns whether the next [`LaneIn::send`] succeeds. There is no other writer, so room once
    /// seen stays.
    pub fn has_room(&self) -> bool {
        !self.0.is_full()
    }

    /// Returns whether the next `count` values can be sent.
    pub fn has_room_for(&self, count: usize) -> bool {
        self.0.slots() >= count
    }
}

impl<T: Copy> LaneOut<T> {
    pub fn take(&mut self) -> Option<T> {
        self.0.pop().ok()
    }

    /// Takes the next value in place: a value that is only read need not be copied first.
    #[inline]
    pub fn take_with<R>(&mut self, see: impl FnOnce(&T) -> R) -> Option<R> {
        let seen = see(self.0.peek().ok()?);
        let _ = self.0.pop();
        Some(seen)
    }

    /// Returns whether more than half of the places are taken.
    pub fn is_over_half_full(&self) -> bool {
        self.0.slots() > self.0.buffer().capacity() / 2
    }

    /// Shows the values that will be taken next, nearest first, at most `count` of those present.
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
                assert!(tail.has_room_for(depth) && !tail.has_room_for(depth + 1));
                for i in 0..depth {
                    assert!(tail.has_room());
                    assert_eq!(tail.send((round, i)), Ok(()));
                }
                assert!(!tail.has_room() && tail.has_room_for(0) && !tail.has_room_for(1));
                assert!(head.is_over_half_full());
                assert_eq!(tail.send((round, depth)), Err(LaneFull));
                for i in 0..depth {
                    let taken = if i % 2 == 0 { head.take() } else { head.take_with(|value| *value) };
                    assert_eq!(taken, Some((round, i)));
                    assert_eq!(head.is_over_half_full(), depth - i - 1 > depth / 2);
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
    fn a_lane_needs_a_depth() {
        lane::<u8>(0);
    }
}
