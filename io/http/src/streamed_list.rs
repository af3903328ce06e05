//! Long responses, rendered in portions while they are sent.
//!
//! ```text
//! list a:  portion                portion                portion
//! list b:             portion                portion
//! sockets:        poll       poll        poll       poll        poll
//! ```
//!
//! Between any two portions, of the same list or of different ones, the runtime polls the sockets
//! and serves the requests that have arrived. So no request waits for more than one portion,
//! however long a list is and however many lists are being read.
//!
//! Rules: docs/rest.md#lists.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{spawn_local, yield_now};

use super::readers::ListReader;

/// Rows examined for one portion, shown or not: some 150 µs.
pub(crate) const ROWS_PER_PORTION: usize = 128;
/// Initial capacity for a portion of usual rows, so that it does not grow in small steps.
const PORTION_BYTES: usize = 64 * 1_024;

/// A function that adds the next portion, of at most [`ROWS_PER_PORTION`] rows, and returns whether
/// there is more.
type RenderNext = Box<dyn FnMut(&mut Vec<u8>) -> bool>;

/// A long response that is not rendered yet.
pub(crate) struct StreamedList {
    next: RenderNext,
    /// The wait for the list's turn, while there is one.
    turn: Option<Pin<Box<dyn Future<Output = RenderTurn>>>>,
    is_over: bool,
    /// The reader of a list that holds a walk of the view.
    reader: Option<Rc<ListReader>>,
}

/// Grants the right to render a portion to one list at a time, in the order of their requests.
#[derive(Clone, Debug)]
pub(crate) struct RenderTurns(Arc<Semaphore>);

/// The right to render one portion. It ends when it is dropped, also when a reader disconnects.
type RenderTurn = Option<OwnedSemaphorePermit>;

impl RenderTurns {
    pub(crate) fn new() -> RenderTurns {
        RenderTurns(Arc::new(Semaphore::new(1)))
    }

    /// Waits for the right to render a portion. The runtime polls the sockets after the previous
    /// turn has ended and before this one begins. A list that renders its portion as soon as its
    /// turn begins delays no other request; a slow reader is only polled when it has taken the
    /// previous portion.
    async fn next(self) -> RenderTurn {
        // The semaphore is never closed.
        let turn = self.0.acquire_owned().await.ok();
        // In a task of its own: hyper polls a body again without a wake-up, which would complete a
        // plain `yield_now` at once.
        let _ = spawn_local(yield_now()).await;
        turn
    }
}

impl StreamedList {
    pub(crate) fn new(next: impl FnMut(&mut Vec<u8>) -> bool + 'static) -> StreamedList {
        StreamedList { next: Box::new(next), turn: None, is_over: false, reader: None }
    }

    /// Sets the reader, which is marked while the list waits for its turn, so that its walk is not
    /// taken meanwhile.
    pub(crate) fn with_reader(self, reader: Rc<ListReader>) -> StreamedList {
        StreamedList { reader: Some(reader), ..self }
    }

    /// Returns whether the walk that feeds this list was taken away. Then there is no next portion.
    pub(crate) fn is_cut(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.is_cut())
    }

    /// Returns the next portion when its turn has come; `None` at the end.
    pub(crate) fn poll_next(&mut self, turns: &RenderTurns, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let waiting = self.turn.get_or_insert_with(|| Box::pin(turns.clone().next()));
        self.reader.iter().for_each(|reader| reader.set_waiting(true));
        let _turn = ready!(waiting.as_mut().poll(cx));
        self.turn = None;
        self.reader.iter().for_each(|reader| reader.set_waiting(false));
        let mut bytes = Vec::with_capacity(PORTION_BYTES);
        self.is_over = !(self.next)(&mut bytes);
        Poll::Ready(Some(bytes.into()))
    }

    /// Returns whether the last portion has been rendered.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl std::fmt::Debug for StreamedList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamedList")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::rc::Rc;

    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;
    use tokio::runtime::Builder;
    use tokio::task::LocalSet;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Happened {
        Portion,
        Request,
    }

    const LISTS: usize = 3;
    const PORTIONS: usize = 100;

    /// Runs long lists on a runtime like the http thread's, beside a client that sends a request as
    /// soon as the previous one is answered, and returns what happened in which order. Lists once
    /// woke themselves without the sockets being polled: 61 portions of one list were rendered in
    /// one go, and a small request waited 40 ms.
    fn lists_beside_a_request() -> Vec<Happened> {
        let happened = Rc::new(RefCell::new(Vec::new()));
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let (client, mut server) = UnixStream::pair().unwrap();
            client.writable().await.unwrap();
            let log = happened.clone();
            let asking = spawn_local(async move {
                loop {
                    client.try_write(b"?").unwrap();
                    // The buffer has room for more than arrives, so that the next byte has to be
                    // found by polling the socket.
                    assert_eq!(server.read(&mut [0; 2]).await.unwrap(), 1);
                    log.borrow_mut().push(Happened::Request);
                }
            });
            let turns = RenderTurns::new();
            let lists: Vec<_> = (0..LISTS)
                .map(|_| {
                    let (log, turns, mut left) = (happened.clone(), turns.clone(), PORTIONS);
                    let mut portions = StreamedList::new(move |_| {
                        log.borrow_mut().push(Happened::Portion);
                        left -= 1;
                        left > 0
                    });
                    // As hyper does: polls once more without a wake-up.
                    let mut poll_twice = move |cx: &mut Context<'_>| match portions.poll_next(&turns, cx) {
                        Poll::Pending => portions.poll_next(&turns, cx),
                        ready => ready,
                    };
                    spawn_local(async move { while poll_fn(&mut poll_twice).await.is_some() {} })
                })
                .collect();
            for list in lists {
                list.await.unwrap();
            }
            asking.abort();
        });
        happened.take()
    }

    #[test]
    fn a_request_waits_for_at_most_one_portion_however_many_lists_there_are() {
        let happened = lists_beside_a_request();
        assert_eq!(happened.iter().filter(|one| **one == Happened::Portion).count(), LISTS * PORTIONS);
        let in_one_go = happened.chunk_by(|one, next| one == next).filter(|run| run[0] == Happened::Portion);
        assert_eq!(in_one_go.map(<[Happened]>::len).max(), Some(1), "{happened:?}");
    }

    #[test]
    fn a_reader_that_disconnects_while_waiting_releases_its_turn() {
        let runtime = Builder::new_current_thread().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let turns = RenderTurns::new();
            let mut gone = StreamedList::new(|_| true);
            assert!(poll_fn(|cx| Poll::Ready(gone.poll_next(&turns, cx).is_pending())).await);
            let mut next = StreamedList::new(|bytes| {
                bytes.push(b'x');
                false
            });
            assert!(poll_fn(|cx| Poll::Ready(next.poll_next(&turns, cx).is_pending())).await);
            drop(gone);
            assert_eq!(poll_fn(|cx| next.poll_next(&turns, cx)).await.as_deref(), Some(&b"x"[..]));
            assert!(next.is_over());
            assert_eq!(poll_fn(|cx| next.poll_next(&turns, cx)).await, None);
        });
    }
}
