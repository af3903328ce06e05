//! The books of a shard as bytes. What rests in them is told by the nodes alone: ladders, sums and modes follow from those.

use super::book::{Market, Mode, Queue};
use super::{BookSpec, Venue, Work};
use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, Digest, codec};
use crate::order_nodes::{Node, Nodes, Place};
use crate::pages::LargePages;

codec!(Market { last, last_size, volume, traded, quote, at });
codec!(Queue { ticks, ahead, shown });

impl Venue {
    pub(crate) fn save(&self, out: &mut impl ByteSink) {
        for (market, back) in self.markets.iter().zip(&self.backs) {
            assert!(back.work == Work::None, "an image is made between commands");
            market.encode(out);
            back.spec.auctions.encode(out);
            back.session.encode(out);
            back.halted.encode(out);
            back.shown.encode(out);
            back.queues.encode(out);
            back.arrivals.encode(out);
            [back.ato, back.atc].encode(out);
            back.band.encode(out);
            back.rng.encode(out);
        }
        self.nodes.save(out);
    }

    /// A venue with a book for each of the specifications, and the first of every line of stops: those are the shard's.
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
        venue.nodes = Nodes { rings: std::mem::take(&mut venue.nodes.rings), ..nodes };
        let stops = heads.extract_if(.., |head| venue.nodes.place(*head) == Place::Stop).collect();
        let known = heads.iter().all(|&head| (venue.nodes[head].book as usize) < venue.books.len());
        from.check(known, DecodeProblem::Contradiction)?;
        // The best price of a book first, so that its ring begins where the market is.
        heads.sort_by_cached_key(|&head| venue.rank_of(&venue.nodes[head]));
        for head in heads {
            let sound = venue.line_up(head);
            from.check(sound, DecodeProblem::Contradiction)?;
        }
        (0..venue.books.len() as u32).for_each(|book| venue.update_mode(book));
        Ok((venue, stops))
    }

    fn load_book(&mut self, from: &mut ByteReader<'_>, book: usize) -> Result<(), DecodeError> {
        self.markets[book] = Codec::decode(from)?;
        let back = &mut self.backs[book];
        back.spec.auctions = Codec::decode(from)?;
        back.session = Codec::decode(from)?;
        back.halted = Codec::decode(from)?;
        back.shown = Codec::decode(from)?;
        back.queues = Codec::decode(from)?;
        back.arrivals = Codec::decode(from)?;
        [back.ato, back.atc] = Codec::decode(from)?;
        back.band = Codec::decode(from)?;
        back.rng = Codec::decode(from)?;
        let sound = back.shown.iter().all(|shown| shown.is_sound(&back.spec.settings))
            && back.queues.iter().flatten().all(Queue::is_sound)
            && back.arrivals >= 0;
        from.check(sound, DecodeProblem::Contradiction)
    }

    fn rank_of(&self, node: &Node) -> (u32, i64) {
        (node.book, self.books[node.book as usize].sides[node.side() as usize].rank(node.ticks))
    }

    /// Puts a whole line where it belongs. False if it cannot be there, or another one is.
    fn line_up(&mut self, head: u32) -> bool {
        let node = self.nodes[head];
        let (book, side) = (node.book as usize, node.side() as usize);
        let slots: Vec<u32> = self.nodes.line_from(head).collect();
        match node.place() {
            Place::Book => {
                let (front, nodes) = (&mut self.books[book], &mut self.nodes);
                front.is_price(node.ticks)
                    && front.sides[side].front(nodes, node.ticks).is_none()
                    && slots.into_iter().all(|slot| front.sides[side].push_back(nodes, slot, node.ticks))
            }
            Place::Line | Place::ParkedLimit | Place::ParkedMarket => {
                let (back, nodes) = (&mut self.backs[book], &mut self.nodes);
                let line = match node.place() {
                    Place::Line => &mut back.lines[side],
                    _ => &mut back.parked,
                };
                let arrived = slots.iter().all(|&slot| {
                    nodes.place(slot) != Place::Line || (1..=back.arrivals).contains(&nodes[slot].ticks)
                });
                let alone = line.front().is_none();
                slots.into_iter().for_each(|slot| line.push_back(nodes, slot));
                alone && arrived
            }
            Place::Nowhere | Place::Taking | Place::Stop => false,
        }
    }

    /// The mode of a book in which nothing is going on.
    pub(super) fn update_mode(&mut self, book: u32) {
        self.update_collecting(book);
        let (front, back) = (&mut self.books[book as usize], &self.backs[book as usize]);
        front.mode.set(Mode::QUOTED, back.shown.iter().any(|shown| shown.size.is_positive()));
        front.mode.set(Mode::WAITING, back.lines.iter().any(|line| line.front().is_some()));
        front.mode.set(Mode::BANDED, back.spec.settings.band_bp > 0);
        front.mode.set(Mode::DICED, back.spec.settings.reject_permille > 0);
    }

    /// Last prices and the dice.
    pub(crate) fn fold(&self, sum: &mut Digest) {
        for (market, back) in self.markets.iter().zip(&self.backs) {
            market.encode(sum);
            back.arrivals.encode(sum);
            back.rng.encode(sum);
        }
    }
}
