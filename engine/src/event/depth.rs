//! The best price levels of a book, as a whole picture.

use crate::id::SecurityId;
use crate::number::{Price, Qty};
use crate::terms::Side;

/// Price levels of each side of a book in an event: as many as fit.
pub const DEPTH_LEVELS_MAX: usize = 10;

/// One side of a security's book, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// The first `count` of them are valid.
    pub levels: [DepthLevel; DEPTH_LEVELS_MAX],
    pub security: SecurityId,
    pub side: Side,
    pub count: u8,
}

impl Depth {
    pub fn levels(&self) -> &[DepthLevel] {
        &self.levels[..(self.count as usize).min(DEPTH_LEVELS_MAX)]
    }
}

/// Quantity available at one price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepthLevel {
    pub price: Price,
    pub qty: Qty,
}
