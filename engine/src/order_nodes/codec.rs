//! Bytes of the nodes. The links to the next node define a queue; its head, and everything a ladder
//! knows, follows from them.

use super::{Node, NodePlace, Nodes};
use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, codec, encode_count};
use crate::index::index_u32;
use crate::order::NIL;
use crate::pages::LargePages;

codec!(enum NodePlace {
    0 = Nowhere,
    1 = Book,
    2 = MarketQueue,
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
            // The rest of the last order in this slot has no meaning.
            NodePlace::Nowhere => {}
            NodePlace::Stop => (self.side(), (self.ticks, self.next)).encode(out),
            NodePlace::Book
            | NodePlace::MarketQueue
            | NodePlace::ParkedLimit
            | NodePlace::ParkedMarket
            | NodePlace::Taking => {
                (self.side(), (self.ticks, self.next)).encode(out);
                self.qty.encode(out);
                self.book.encode(out);
                self.account.encode(out);
                self.tif.encode(out);
            }
        }
    }

    fn load(from: &mut ByteReader<'_>) -> Result<Node, DecodeError> {
        let place = NodePlace::decode(from)?;
        if place == NodePlace::Nowhere {
            return Ok(Node::default());
        }
        let (side, (ticks, next)) = Codec::decode(from)?;
        let mut node = Node { ticks, next, ..Node::new(place, side) };
        if place != NodePlace::Stop {
            node.qty = Codec::decode(from)?;
            node.book = Codec::decode(from)?;
            node.account = Codec::decode(from)?;
            node.tif = Codec::decode(from)?;
            from.check(node.qty.is_positive(), DecodeProblem::Value)?;
        }
        // No order trades between commands.
        from.check(place != NodePlace::Taking, DecodeProblem::Value)?;
        Ok(node)
    }

    /// Returns whether both are in one queue.
    fn is_queued_with(&self, other: &Node) -> bool {
        let same = self.side() == other.side() && self.book == other.book;
        match self.place() {
            NodePlace::Book | NodePlace::Stop => {
                same && self.place() == other.place() && self.ticks == other.ticks
            }
            NodePlace::MarketQueue => {
                same && other.place() == NodePlace::MarketQueue && self.ticks < other.ticks
            }
            NodePlace::ParkedLimit | NodePlace::ParkedMarket => {
                self.book == other.book
                    && matches!(other.place(), NodePlace::ParkedLimit | NodePlace::ParkedMarket)
            }
            NodePlace::Nowhere | NodePlace::Taking => false,
        }
    }
}

impl Nodes {
    pub(crate) fn save(&self, out: &mut impl ByteSink) {
        encode_count(self.slots.len(), out);
        self.slots.iter().for_each(|node| node.save(out));
    }

    /// Decodes nodes with their links, and returns the slots of the heads of their queues.
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
        let stand = nodes.slots.iter().filter(|node| !node.is_at(NodePlace::Nowhere)).count();
        let reached: usize = heads.iter().map(|&head| nodes.line_from(head).count()).sum();
        // Nodes in a cycle have no head.
        from.check(reached == stand, DecodeProblem::Contradiction)?;
        Ok((nodes, heads))
    }

    /// Sets the back links. Returns `None` if two nodes lead to the same one, or to one of another
    /// queue.
    fn link_back(&mut self) -> Option<()> {
        for slot in 0..self.slots.len() {
            let node = self.slots[slot];
            if node.is_at(NodePlace::Nowhere) || node.next == NIL {
                continue;
            }
            let next = self.slots.get_mut(node.next as usize)?;
            if next.prev != NIL || !node.is_queued_with(next) {
                return None;
            }
            next.prev = index_u32(slot);
        }
        Some(())
    }

    fn heads(&self) -> Vec<u32> {
        let is_first = |node: &Node| !node.is_at(NodePlace::Nowhere) && node.prev == NIL;
        (0..index_u32(self.slots.len())).filter(|&slot| is_first(&self[slot])).collect()
    }

    /// Returns a queue from one node to its end.
    pub(crate) fn line_from(&self, slot: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(slot), |&slot| self[slot].next())
    }

    pub(crate) fn placed(&self) -> impl Iterator<Item = (u32, &Node)> {
        let all = (0..index_u32(self.slots.len())).zip(&self.slots);
        all.filter(|(_, node)| !node.is_at(NodePlace::Nowhere))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Qty;
    use crate::terms::Side;

    fn node(place: NodePlace, next: u32) -> Node {
        Node { qty: Qty::from_raw(1), next, ..Node::new(place, Side::Buy) }
    }

    fn decode(bytes: &[u8]) -> Result<(Nodes, Vec<u32>), DecodeError> {
        Nodes::load(&mut ByteReader::new(bytes), 8, LargePages::NONE)
    }

    fn loaded(nodes: &[Node]) -> Result<(Nodes, Vec<u32>), DecodeProblem> {
        let (mut saved, mut bytes) = (Nodes::default(), Vec::new());
        saved.slots = nodes.to_vec();
        saved.save(&mut bytes);
        decode(&bytes).map_err(|damage| damage.problem)
    }

    #[test]
    fn queues_get_their_heads_and_their_links_back() {
        use NodePlace::{Book, MarketQueue, Nowhere, ParkedLimit, ParkedMarket, Stop};
        let nodes = [
            node(Book, 3),
            Node { ticks: 9, next: 5, ..Node::new(Stop, Side::Sell) },
            Node::default(),
            node(Book, NIL),
            node(MarketQueue, NIL),
            Node { ticks: 9, ..Node::new(Stop, Side::Sell) },
            node(ParkedLimit, 7),
            Node { ticks: 5, ..node(ParkedMarket, NIL) },
        ];
        let (loaded, heads) = loaded(&nodes).unwrap();
        assert_eq!(heads, [0, 1, 4, 6]);
        let queue = |head| loaded.line_from(head).collect::<Vec<_>>();
        assert_eq!([0, 1, 4, 6].map(queue), [vec![0, 3], vec![1, 5], vec![4], vec![6, 7]]);
        assert_eq!([3, 5, 7].map(|slot: u32| loaded[slot].prev), [0, 1, 6]);
        assert_eq!(loaded.placed().count(), 7);
        assert!(loaded[2].is_at(Nowhere));
    }

    #[test]
    fn a_node_is_queued_only_behind_one_of_its_own_queue() {
        use NodePlace::{Book, MarketQueue, ParkedLimit, ParkedMarket, Stop};
        let with = |place, side, book, ticks| {
            let qty = Qty::from_raw(1);
            Node { book, ticks, qty, ..Node::new(place, side) }
        };
        let (buy, sell) = (Side::Buy, Side::Sell);
        let cases = [
            (with(Book, buy, 1, 5), with(Book, buy, 1, 5), true),
            (with(Book, buy, 1, 5), with(Book, sell, 1, 5), false),
            (with(Book, buy, 1, 5), with(Book, buy, 2, 5), false),
            (with(Book, buy, 1, 5), with(Book, buy, 1, 6), false),
            (with(Book, buy, 1, 5), with(ParkedLimit, buy, 1, 5), false),
            (with(Book, buy, 0, 5), with(Stop, buy, 0, 5), false),
            (with(Stop, sell, 0, 5), with(Stop, sell, 0, 5), true),
            (with(Stop, sell, 0, 5), with(Stop, buy, 0, 5), false),
            (with(Stop, sell, 0, 5), with(Stop, sell, 0, 6), false),
            (with(MarketQueue, buy, 1, 5), with(MarketQueue, buy, 1, 6), true),
            (with(MarketQueue, buy, 1, 5), with(MarketQueue, buy, 1, 5), false),
            (with(MarketQueue, buy, 1, 6), with(MarketQueue, buy, 1, 5), false),
            (with(MarketQueue, buy, 1, 5), with(MarketQueue, sell, 1, 6), false),
            (with(MarketQueue, buy, 1, 5), with(MarketQueue, buy, 2, 6), false),
            (with(MarketQueue, buy, 1, 5), with(Book, buy, 1, 6), false),
            (with(ParkedLimit, buy, 1, 5), with(ParkedMarket, sell, 1, 0), true),
            (with(ParkedMarket, buy, 1, 5), with(ParkedLimit, buy, 1, 5), true),
            (with(ParkedLimit, buy, 1, 5), with(ParkedLimit, buy, 2, 5), false),
            (with(ParkedLimit, buy, 1, 5), with(Book, buy, 1, 5), false),
        ];
        for (at, (first, second, is_sound)) in cases.into_iter().enumerate() {
            let problem = loaded(&[Node { next: 1, ..first }, second]).err();
            assert_eq!(problem, (!is_sound).then_some(DecodeProblem::Contradiction), "case {at}");
        }
    }

    #[test]
    fn links_that_meet_or_go_in_a_circle_are_contradictions() {
        use NodePlace::{Book, Nowhere, Taking};
        let contradiction = Some(DecodeProblem::Contradiction);
        assert_eq!(loaded(&[node(Book, 2), node(Book, 2), node(Book, NIL)]).err(), contradiction);
        assert_eq!(loaded(&[node(Book, 1), node(Book, 0)]).err(), contradiction);
        assert_eq!(loaded(&[node(Book, 0)]).err(), contradiction);
        assert_eq!(loaded(&[node(Book, 5)]).err(), contradiction, "there is no such slot");
        assert_eq!(loaded(&[node(Book, 1), node(Nowhere, NIL)]).err(), contradiction);
        assert_eq!(loaded(&[node(Taking, NIL)]).err(), Some(DecodeProblem::Value));
        let nothing = Node { qty: Qty::ZERO, ..node(Book, NIL) };
        assert_eq!(loaded(&[nothing]).err(), Some(DecodeProblem::Value));
        // A count is trusted only as far as there are bytes.
        let damage = DecodeError { at: 4, problem: DecodeProblem::Short };
        assert_eq!(decode(&[3, 0, 0, 0, 0, 0]).err(), Some(damage));
        assert!(decode(&[2, 0, 0, 0, 0, 0]).is_ok());
    }
}
