//! Bytes of a shard's books. The nodes alone define what rests in them: ladders, sums and modes
//! follow from those.

use super::book::{BookMode, FeedQueue, MarketState};
use super::{BookSpec, BookWork, Venue};
use crate::codec::{ByteReader, ByteSink, COUNTER_MAX, Codec, DecodeError, DecodeProblem, Digest, codec};
use crate::index::index_u32;
use crate::order_nodes::{Node, NodePlace, Nodes};
use crate::pages::LargePages;
use crate::terms::Side;

codec!(MarketState { last, last_size, volume, traded, quote, at });
codec!(FeedQueue { ticks, ahead, shown });

impl Venue {
    pub(crate) fn save(&self, out: &mut impl ByteSink) {
        for (market, detail) in self.markets.iter().zip(&self.details) {
            assert!(detail.work == BookWork::None, "a shard is saved between commands");
            market.encode(out);
            detail.spec.auctions.encode(out);
            detail.session.encode(out);
            detail.halted.encode(out);
            detail.shown.iter().for_each(|shown| shown.save(out));
            detail.queues.encode(out);
            detail.levels.iter().for_each(|levels| levels.encode(out));
            detail.arrivals.encode(out);
            [detail.ato, detail.atc].encode(out);
            detail.band.encode(out);
            detail.rng.encode(out);
        }
        self.nodes.save(out);
    }

    /// Decodes a venue with a book for each specification. Returns the heads of all queues of
    /// stops, which belong to the shard.
    pub(crate) fn load(
        from: &mut ByteReader<'_>,
        specs: Vec<BookSpec>,
        capacity: usize,
        pages: LargePages,
    ) -> Result<(Venue, Vec<u32>), DecodeError> {
        let mut venue = Venue::new(specs, 0, pages);
        for book in 0..venue.books.len() {
            venue.load_book(from, book)?;
        }
        let (nodes, mut heads) = Nodes::load(from, capacity, pages)?;
        venue.nodes = Nodes { pages: std::mem::take(&mut venue.nodes.pages), ..nodes };
        let stops = heads.extract_if(.., |head| venue.nodes.place(*head) == NodePlace::Stop).collect();
        let known = heads.iter().all(|&head| (venue.nodes[head].book as usize) < venue.books.len());
        from.check(known, DecodeProblem::Contradiction)?;
        // The best price of a book first, so that pages near the market are attached first.
        heads.sort_by_cached_key(|&head| venue.rank_of(&venue.nodes[head]));
        for head in heads {
            let sound = venue.restore_queue(head);
            from.check(sound, DecodeProblem::Contradiction)?;
        }
        (0..index_u32(venue.books.len())).for_each(|book| venue.update_mode(book));
        Ok((venue, stops))
    }

    fn load_book(&mut self, from: &mut ByteReader<'_>, book: usize) -> Result<(), DecodeError> {
        self.markets[book] = Codec::decode(from)?;
        let detail = &mut self.details[book];
        detail.spec.auctions = Codec::decode(from)?;
        detail.session = Codec::decode(from)?;
        detail.halted = Codec::decode(from)?;
        for shown in &mut detail.shown {
            shown.restore(from)?;
        }
        detail.queues = Codec::decode(from)?;
        detail.levels = [Codec::decode(from)?, Codec::decode(from)?];
        detail.arrivals = Codec::decode(from)?;
        [detail.ato, detail.atc] = Codec::decode(from)?;
        detail.band = Codec::decode(from)?;
        detail.rng = Codec::decode(from)?;
        let sides = self.books[book].sides.iter().zip(&detail.levels);
        let shown_is_sound = |side| detail.shown[side as usize].is_sound(side, &detail.spec.settings);
        let sound = Side::BOTH.into_iter().all(shown_is_sound)
            && detail.queues.iter().flatten().all(FeedQueue::is_sound)
            && sides.into_iter().all(|(ladder, levels)| levels.is_sound(ladder))
            && (0..=COUNTER_MAX).contains(&detail.arrivals);
        from.check(sound, DecodeProblem::Contradiction)
    }

    fn rank_of(&self, node: &Node) -> (u32, i64) {
        (node.book, self.books[node.book as usize].sides[node.side() as usize].rank(node.ticks))
    }

    /// Restores a whole queue. Returns false if it is invalid, or its place is occupied.
    fn restore_queue(&mut self, head: u32) -> bool {
        let node = self.nodes[head];
        let (book, side) = (node.book as usize, node.side() as usize);
        let slots: Vec<u32> = self.nodes.line_from(head).collect();
        match node.place() {
            NodePlace::Book => {
                let (front, nodes) = (&mut self.books[book], &mut self.nodes);
                front.is_price(node.ticks)
                    && front.sides[side].front(nodes, node.ticks).is_none()
                    && slots.into_iter().all(|slot| front.sides[side].push_back(nodes, slot, node.ticks))
            }
            NodePlace::MarketQueue | NodePlace::ParkedLimit | NodePlace::ParkedMarket => {
                let (detail, nodes) = (&mut self.details[book], &mut self.nodes);
                let line = match node.is_at(NodePlace::MarketQueue) {
                    true => &mut detail.market_queues[side],
                    false => &mut detail.parked,
                };
                let arrived = slots.iter().all(|&slot| {
                    nodes.place(slot) != NodePlace::MarketQueue
                        || (1..=detail.arrivals).contains(&nodes[slot].ticks)
                });
                let alone = line.front().is_none();
                slots.into_iter().for_each(|slot| line.push_back(nodes, slot));
                alone && arrived
            }
            NodePlace::Nowhere | NodePlace::Taking | NodePlace::Stop => false,
        }
    }

    /// Updates the mode of a book without work.
    pub(super) fn update_mode(&mut self, book: u32) {
        self.update_collecting(book);
        let (front, detail) = (&mut self.books[book as usize], &self.details[book as usize]);
        front.mode.set(BookMode::QUOTED, detail.is_quoted());
        front.mode.set(BookMode::WAITING, detail.market_queues.iter().any(|line| line.front().is_some()));
        front.mode.set(BookMode::BANDED, detail.spec.settings.band_bp > 0);
        front.mode.set(BookMode::RANDOM_REJECTS, detail.spec.settings.reject_permille > 0);
    }

    /// Adds last prices and random streams to the digest.
    pub(crate) fn fold(&self, sum: &mut Digest) {
        for (market, detail) in self.markets.iter().zip(&self.details) {
            market.encode(sum);
            detail.arrivals.encode(sum);
            detail.rng.encode(sum);
            detail.shown.iter().for_each(|shown| shown.fold(sum));
        }
    }
}
