//! The readers of long order lists. Each holds one of the view's few walks for as long as its
//! client reads. So each client has a share of them, and a reader that does not read loses its walk
//! when another one needs it.
//!
//! ```text
//! new reader ─┬─ its client has `PER_CLIENT_MAX` readers ──► cut the stalled one of that client
//!             │                                              that waited longest
//!             ├─ all walks are taken ──────────────────────► cut one of the client that has most
//!             │                                              of them, likewise
//!             └─ none of these is stalled ─────────────────► wait until one is, or is done;
//!                                                            503 after 10 s
//! ```
//!
//! A reader is stalled while it has not requested its next portion: its client has not taken the
//! last one yet. A reader that waits for its turn is never cut. The response of a cut reader ends
//! without its last chunk, which a client sees as an error.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use pitlane_engine::view::{WALKS_MAX, WalkHandle};
use tokio::sync::Notify;

/// Maximum number of long lists that one client may read at once: a quarter of all, so that no
/// client takes them all.
pub(crate) const PER_CLIENT_MAX: usize = WALKS_MAX / 4;

/// Identity of a reader: clients behind one address are distinguished by their logins, one login at
/// several addresses by the addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListClient {
    pub network: IpAddr,
    pub login: Arc<str>,
}

#[derive(Debug, Default)]
pub(crate) struct ListReaders {
    /// Active readers, at most [`WALKS_MAX`].
    readers: RefCell<Vec<Rc<ListReader>>>,
    /// Number of portions rendered so far.
    steps: Cell<u64>,
    /// Notified when a reader is done, or may have stalled.
    changed: Rc<Notify>,
}

#[derive(Debug)]
pub(crate) struct ListReader {
    walk: WalkHandle,
    client: ListClient,
    /// The number of its last portion.
    last_step: Cell<u64>,
    waits_for_turn: Cell<bool>,
    is_cut: Cell<bool>,
    changed: Rc<Notify>,
}

/// The reader lost its walk to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReaderCut;

impl fmt::Display for ReaderCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client did not read the list, and another reader needs its slot")
    }
}

impl std::error::Error for ReaderCut {}

/// No reader is stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NoWalkLeft;

impl ListReaders {
    /// Waits until there is room for another reader of a client. Returns the walk that has to be
    /// ended for it, if any. The caller must begin the reader before it awaits anything else.
    pub(crate) async fn wait_for_room(&self, client: &ListClient) -> Option<WalkHandle> {
        loop {
            match self.make_room(client) {
                Ok(freed) => return freed,
                Err(NoWalkLeft) => self.changed.notified().await,
            }
        }
    }

    /// Makes room for another reader of a client. Returns the walk that has to be ended for it, if
    /// any.
    fn make_room(&self, client: &ListClient) -> Result<Option<WalkHandle>, NoWalkLeft> {
        let mut readers = self.readers.borrow_mut();
        let of = |client: &ListClient| readers.iter().filter(|reader| reader.client == *client).count();
        let is_at_share = of(client) >= PER_CLIENT_MAX;
        if !is_at_share && readers.len() < WALKS_MAX {
            return Ok(None);
        }
        let stalled = readers
            .iter()
            .enumerate()
            .filter(|(_, reader)| !reader.waits_for_turn.get() && (!is_at_share || reader.client == *client));
        let longest = stalled.min_by_key(|(_, reader)| (Reverse(of(&reader.client)), reader.last_step.get()));
        let at = longest.map(|(at, _)| at).ok_or(NoWalkLeft)?;
        let cut = readers.swap_remove(at);
        cut.is_cut.set(true);
        Ok(Some(cut.walk))
    }

    /// Begins a reader; there must be room.
    pub(crate) fn begin(&self, walk: WalkHandle, client: ListClient) -> Rc<ListReader> {
        let last_step = Cell::new(self.steps.get());
        let (waits_for_turn, is_cut) = (Cell::new(false), Cell::new(false));
        let changed = self.changed.clone();
        let reader = Rc::new(ListReader { walk, client, last_step, waits_for_turn, is_cut, changed });
        self.readers.borrow_mut().push(reader.clone());
        reader
    }

    /// Records that a portion was rendered for the reader.
    pub(crate) fn step(&self, reader: &ListReader) {
        self.steps.set(self.steps.get() + 1);
        reader.last_step.set(self.steps.get());
    }

    /// Removes a reader that is done or gone. Returns the walk that has to be ended; `None` if
    /// another reader has it.
    pub(crate) fn end(&self, reader: &Rc<ListReader>) -> Option<WalkHandle> {
        let mut readers = self.readers.borrow_mut();
        let at = readers.iter().position(|other| Rc::ptr_eq(other, reader))?;
        self.changed.notify_waiters();
        Some(readers.swap_remove(at).walk)
    }
}

impl ListReader {
    pub(crate) fn walk(&self) -> WalkHandle {
        self.walk
    }

    pub(crate) fn set_waiting(&self, waits_for_turn: bool) {
        if self.waits_for_turn.replace(waits_for_turn) && !waits_for_turn {
            self.changed.notify_waiters();
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::Timestamp;
    use pitlane_engine::view::{View, ViewSettings};

    use super::*;

    fn client(n: u8) -> ListClient {
        ListClient { network: IpAddr::from([10, 0, 0, n]), login: "a".into() }
    }

    /// Does what a request does: makes room, begins a walk, reads.
    fn begin(readers: &ListReaders, view: &mut View, n: u8) -> Result<Rc<ListReader>, NoWalkLeft> {
        if let Some(walk) = readers.make_room(&client(n))? {
            view.walk_end(walk);
        }
        let walk = view.walk_open(Timestamp::MAX).expect("room was made");
        Ok(readers.begin(walk, client(n)))
    }

    #[test]
    fn a_client_at_its_share_loses_its_own_stalled_reader_only() {
        let (readers, mut view) = (ListReaders::default(), View::new(1, ViewSettings::default()));
        let other = begin(&readers, &mut view, 1).unwrap();
        let own: Vec<_> = (0..PER_CLIENT_MAX).map(|_| begin(&readers, &mut view, 2).unwrap()).collect();
        // The first reader has read on since, the others have not.
        readers.step(&own[0]);
        let late = begin(&readers, &mut view, 2).unwrap();
        let cut: Vec<_> = own.iter().map(|reader| reader.is_cut()).collect();
        assert_eq!(cut.iter().filter(|cut| **cut).count(), 1);
        assert!(!cut[0] && !other.is_cut() && !late.is_cut());
    }

    #[test]
    fn with_all_walks_taken_the_client_with_the_most_loses_one() {
        let (readers, mut view) = (ListReaders::default(), View::new(1, ViewSettings::default()));
        let few = begin(&readers, &mut view, 200).unwrap();
        let many: Vec<_> =
            (0..WALKS_MAX - 1).map(|n| begin(&readers, &mut view, (n / 8) as u8).unwrap()).collect();
        let newcomer = begin(&readers, &mut view, 201).unwrap();
        assert!(!few.is_cut() && !newcomer.is_cut());
        let cut: Vec<_> = many.iter().filter(|reader| reader.is_cut()).collect();
        assert_eq!(cut.len(), 1);
        assert_eq!(readers.end(cut[0]), None, "its walk belongs to another reader");
        assert!(readers.end(&newcomer).is_some());
    }

    #[test]
    fn a_reader_that_waits_for_its_turn_is_never_cut() {
        let (readers, mut view) = (ListReaders::default(), View::new(1, ViewSettings::default()));
        let own: Vec<_> = (0..PER_CLIENT_MAX).map(|_| begin(&readers, &mut view, 1).unwrap()).collect();
        own.iter().for_each(|reader| reader.set_waiting(true));
        assert!(begin(&readers, &mut view, 1).is_err());
        assert!(begin(&readers, &mut view, 2).is_ok());
        own[3].set_waiting(false);
        assert!(begin(&readers, &mut view, 1).is_ok() && own[3].is_cut());
    }
}
