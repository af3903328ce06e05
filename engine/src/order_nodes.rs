//! Orders as ladders and queues see them: nodes in one slab, linked by slot. The slots are those of
//! the shard, so an order and its node have the same number, and an order is in at most one queue.

mod codec;

use std::ops::{Index, IndexMut};

use crate::id::AccountId;
use crate::level_pages::LevelPages;
use crate::number::Qty;
use crate::order::NIL;
use crate::pages::LargePages;
use crate::prefetch::fetch;
use crate::terms::{Side, Tif};

const _: () = assert!(size_of::<Node>() == 32, "a node never straddles a cache line");

/// Where an order is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum NodePlace {
    #[default]
    Nowhere,
    /// On a ladder of the venue, at its limit.
    Book,
    /// In the queue of waiting market orders; `ticks` is its arrival number.
    MarketQueue,
    /// Held for the closing auction.
    ParkedLimit,
    ParkedMarket,
    /// Trading right now, and not yet done.
    Taking,
    /// On a ladder of the shard: a stop.
    Stop,
}

/// One order as a ladder knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Node {
    pub ticks: i64,
    /// Remaining quantity.
    pub qty: Qty,
    pub(crate) prev: u32,
    pub(crate) next: u32,
    pub book: u32,
    pub account: AccountId,
    pub tif: Tif,
    /// The place in the upper bits, the side in the lowest: one more byte would cost a cache line.
    state: u8,
}

impl Node {
    pub fn new(place: NodePlace, side: Side) -> Node {
        let mut node = Node { prev: NIL, next: NIL, ..Node::default() };
        node.state = (place as u8) << 1 | side as u8;
        node
    }

    #[inline]
    pub fn side(&self) -> Side {
        Side::BOTH[(self.state & 1) as usize]
    }

    #[inline]
    pub fn place(&self) -> NodePlace {
        match self.state >> 1 {
            1 => NodePlace::Book,
            2 => NodePlace::MarketQueue,
            3 => NodePlace::ParkedLimit,
            4 => NodePlace::ParkedMarket,
            5 => NodePlace::Taking,
            6 => NodePlace::Stop,
            _ => NodePlace::Nowhere,
        }
    }

    #[inline]
    pub fn is_at(&self, place: NodePlace) -> bool {
        self.state >> 1 == place as u8
    }

    #[inline]
    pub fn set_place(&mut self, place: NodePlace) {
        self.state = (place as u8) << 1 | self.state & 1;
    }

    /// Returns the next node in its queue.
    #[inline]
    pub fn next(&self) -> Option<u32> {
        (self.next != NIL).then_some(self.next)
    }
}

/// The slab of nodes, and the levels of the ladders. The caller chooses the slots; the slab grows
/// to the highest one used.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    pub(crate) slots: Vec<Node>,
    pub(crate) pages: LevelPages,
}

impl Nodes {
    pub fn with_capacity(orders: usize, pages: LargePages) -> Nodes {
        Nodes { slots: pages.table(orders), pages: LevelPages::default() }
    }

    /// Reserves room for this many orders.
    pub fn reserve(&mut self, orders: usize, pages: LargePages) {
        pages.enlarge(&mut self.slots, orders);
    }

    /// Returns whether an order is a stop that the shard holds.
    #[inline]
    pub fn is_stop(&self, slot: u32) -> bool {
        self.place(slot) == NodePlace::Stop
    }

    /// Returns the place of a slot; `Nowhere` if it was never used.
    #[inline]
    pub fn place(&self, slot: u32) -> NodePlace {
        self.slots.get(slot as usize).map_or(NodePlace::Nowhere, Node::place)
    }

    #[inline]
    pub fn get(&self, slot: u32) -> Option<&Node> {
        self.slots.get(slot as usize)
    }

    /// Prefetches the memory of a slot.
    #[inline]
    pub fn fetch(&self, slot: u32) {
        if let Some(node) = self.slots.get(slot as usize) {
            fetch(node);
        }
    }

    #[inline(always)]
    pub fn set(&mut self, slot: u32, node: Node) {
        if slot as usize >= self.slots.len() {
            self.grow(slot);
        }
        self.slots[slot as usize] = node;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, slot: u32) {
        assert!(slot != NIL, "NIL is no slot");
        self.slots.resize(slot as usize + 1, Node::default());
    }
}

impl Index<u32> for Nodes {
    type Output = Node;

    #[inline]
    fn index(&self, slot: u32) -> &Node {
        &self.slots[slot as usize]
    }
}

impl IndexMut<u32> for Nodes {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.slots[slot as usize]
    }
}

/// A first-in, first-out queue of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeQueue {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl Default for NodeQueue {
    fn default() -> NodeQueue {
        NodeQueue { head: NIL, tail: NIL }
    }
}

impl NodeQueue {
    #[inline]
    pub fn front(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    #[inline]
    pub fn push_back(&mut self, nodes: &mut Nodes, slot: u32) {
        let node = &mut nodes[slot];
        (node.prev, node.next) = (self.tail, NIL);
        if self.tail == NIL {
            self.head = slot;
        } else {
            nodes[self.tail].next = slot;
        }
        self.tail = slot;
    }

    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, slot: u32) {
        let Node { prev, next, .. } = nodes[slot];
        if prev == NIL {
            self.head = next;
        } else {
            nodes[prev].next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            nodes[next].prev = prev;
        }
    }
}
