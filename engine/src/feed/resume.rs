//! Continues the market of a security where an earlier process ended.

use super::{Feed, PriceStream};
use crate::event::Tick;
use crate::rng::Rng;

impl Feed {
    /// Lets the prices of a security continue from its last tick. The securities' prices then
    /// differ from those of a first start: their random numbers also depend on the time of that
    /// tick.
    pub fn resume(&mut self, tick: &Tick) {
        if let Ok(at) = self.streams.binary_search_by_key(&tick.security, |stream| stream.security) {
            self.streams[at].resume(tick);
        }
    }
}

impl PriceStream {
    fn resume(&mut self, tick: &Tick) {
        let price = if tick.bid_size.is_positive() { tick.bid } else { tick.last };
        if !price.is_positive() {
            return;
        }
        // A price that other clients traded at may be beyond the bounds of the walk.
        self.bid = (price.raw() / self.tick.raw()).clamp(self.lowest, self.highest);
        self.ask = self.bid + 1;
        // Without this, every process would draw the same steps, and add them up.
        self.rng = Rng::new(self.rng.next_u64() ^ tick.at.0);
    }
}
