//! Nodes as bytes. A line is told by who stands behind whom; who stands first, and everything a ladder knows, follows.

use super::{Node, Nodes, Place};
use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, codec};
use crate::order::NIL;
use crate::pages::LargePages;

codec!(enum Place {
    0 = Nowhere,
    1 = Book,
    2 = Line,
    3 = ParkedLimit,
    4 = ParkedMarket,
    5 = Taking,
    6 = Stop,
});

impl Node {
    fn save(&self, out: &mut impl ByteSink) {
        let place = self.place();
        place.encode(out);
        match place {
            // Whatever is left of the last order here is nobody's.
            Place::Nowhere => {}
            Place::Stop => (self.side(), (self.ticks, self.next)).encode(out),
            Place::Book | Place::Line | Place::ParkedLimit | Place::ParkedMarket | Place::Taking => {
                (self.side(), (self.ticks, self.next)).encode(out);
                self.qty.encode(out);
                self.book.encode(out);
                self.account.encode(out);
                self.tif.encode(out);
            }
        }
    }

    fn load(from: &mut ByteReader<'_>) -> Result<Node, DecodeError> {
        let place = Place::decode(from)?;
        if place == Place::Nowhere {
            return Ok(Node::default());
        }
        let (side, (ticks, next)) = Codec::decode(from)?;
        let mut node = Node { ticks, next, ..Node::new(place, side) };
        if place != Place::Stop {
            node.qty = Codec::decode(from)?;
            node.book = Codec::decode(from)?;
            node.account = Codec::decode(from)?;
            node.tif = Codec::decode(from)?;
            from.check(node.qty.is_positive(), DecodeProblem::Value)?;
        }
        // Nobody trades between commands.
        from.check(place != Place::Taking, DecodeProblem::Value)?;
        Ok(node)
    }

    /// Whether both stand in one line.
    fn is_in_line_with(&self, other: &Node) -> bool {
        let same = self.side() == other.side() && self.book == other.book;
        match self.place() {
            Place::Book | Place::Stop => same && self.place() == other.place() && self.ticks == other.ticks,
            Place::Line => same && other.place() == Place::Line && self.ticks < other.ticks,
            Place::ParkedLimit | Place::ParkedMarket => {
                self.book == other.book && matches!(other.place(), Place::ParkedLimit | Place::ParkedMarket)
            }
            Place::Nowhere | Place::Taking => false,
        }
    }
}

impl Nodes {
    pub(crate) fn save(&self, out: &mut impl ByteSink) {
        (self.slots.len() as u32).encode(out);
        self.slots.iter().for_each(|node| node.save(out));
    }

    /// Nodes that are linked as they were, and the slots of those who stand first in their lines.
    pub(crate) fn load(
        from: &mut ByteReader<'_>,
        capacity: usize,
        pages: LargePages,
    ) -> Result<(Nodes, Vec<u32>), DecodeError> {
        let count = u32::decode(from)?;
        from.check(count as usize <= from.left() && count != NIL, DecodeProblem::Short)?;
        let mut nodes = Nodes::with_capacity(capacity, pages);
        for _ in 0..count {
            nodes.slots.push(Node::load(from)?);
        }
        let linked = nodes.link_back();
        from.check(linked.is_some(), DecodeProblem::Contradiction)?;
        let heads = nodes.heads();
        let stand = nodes.slots.iter().filter(|node| !node.is_at(Place::Nowhere)).count();
        let reached: usize = heads.iter().map(|&head| nodes.line_from(head).count()).sum();
        // Whoever stands in a ring has nobody first.
        from.check(reached == stand, DecodeProblem::Contradiction)?;
        Ok((nodes, heads))
    }

    /// Tells everybody who stands before them. None if two do, or somebody of another line.
    fn link_back(&mut self) -> Option<()> {
        for slot in 0..self.slots.len() {
            let node = self.slots[slot];
            if node.is_at(Place::Nowhere) || node.next == NIL {
                continue;
            }
            let next = self.slots.get_mut(node.next as usize)?;
            if next.prev != NIL || !node.is_in_line_with(next) {
                return None;
            }
            next.prev = slot as u32;
        }
        Some(())
    }

    fn heads(&self) -> Vec<u32> {
        let is_first = |node: &Node| !node.is_at(Place::Nowhere) && node.prev == NIL;
        (0..self.slots.len() as u32).filter(|&slot| is_first(&self[slot])).collect()
    }

    /// A line, from one who stands in it to its end.
    pub(crate) fn line_from(&self, slot: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(slot), |&slot| self[slot].next())
    }

    pub(crate) fn placed(&self) -> impl Iterator<Item = (u32, &Node)> {
        let all = (0..self.slots.len() as u32).zip(&self.slots);
        all.filter(|(_, node)| !node.is_at(Place::Nowhere))
    }
}
