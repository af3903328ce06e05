//! Messages from one thread to another: a bounded ring with the wake-up of its receiver.
//!
//! ```text
//! MailboxSender::send ─► ring of at most `max` messages ─► MailboxReceiver::poll
//!           └──────────► Wakeup of the receiver, if it is blocked
//! ```
//!
//! A sender never waits. If the ring is full, it gets its message back and decides: refuse the
//! request, keep the message for later, or drop and count it. Two threads that ask and answer have
//! a mailbox in each direction.
//!
//! Other queues between threads are no mailboxes, because they give other guarantees:
//!
//! - The lanes of the mesh (`engine/src/lane.rs`) carry all commands and events. A sender wakes
//!   each receiver once per cycle, for all lanes together.
//! - The rings of the journal, the latencies and the id blocks hand over buffers that the receiver
//!   takes when it needs them, so nothing is woken.
//! - The FIX message log is a ring of bytes, polled at an interval.
//! - Log lines, the printer and the recording have a thread that only waits for them; log lines and
//!   the printer have several senders (`std::sync::mpsc`).
//! - Tasks of one runtime use the channels of tokio.

use std::collections::VecDeque;

use rtrb::{Consumer, Producer, PushError, RingBuffer};

use crate::wakeup::Wakeup;

/// Creates a mailbox for at most `max` messages. `wakeup` wakes the receiving thread.
pub fn mailbox<T>(max: usize, wakeup: Wakeup) -> (MailboxSender<T>, MailboxReceiver<T>) {
    let (ring, messages) = RingBuffer::new(max);
    (MailboxSender { ring, wakeup }, MailboxReceiver { messages })
}

/// The sending end.
#[derive(Debug)]
pub struct MailboxSender<T> {
    ring: Producer<T>,
    /// Wake-up of the receiving thread.
    wakeup: Wakeup,
}

/// The receiving end.
#[derive(Debug)]
pub struct MailboxReceiver<T> {
    messages: Consumer<T>,
}

/// The mailbox is full; the message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailboxFull<T>(pub T);

impl<T> MailboxSender<T> {
    /// Sends a message and wakes the receiver. Returns the message if there is no room.
    pub fn send(&mut self, message: T) -> Result<(), MailboxFull<T>> {
        self.ring.push(message).map_err(|PushError::Full(message)| MailboxFull(message))?;
        self.wakeup.wake();
        Ok(())
    }

    /// Sends messages from the front of a queue while there is room, with one wake-up for all.
    /// Returns how many were sent.
    pub fn send_from(&mut self, queue: &mut VecDeque<T>) -> usize {
        let count = queue.len().min(self.ring.slots());
        for message in queue.drain(..count) {
            assert!(self.ring.push(message).is_ok(), "there was room and no other thread writes");
        }
        if count > 0 {
            self.wakeup.wake();
        }
        count
    }

    /// Wakes the receiver without a message, for a change that it finds elsewhere.
    pub fn wake(&self) {
        self.wakeup.wake();
    }

    /// Returns how many messages can be sent now. Only this end uses up room.
    pub fn room(&self) -> usize {
        self.ring.slots()
    }

    pub fn is_full(&self) -> bool {
        self.ring.is_full()
    }
}

impl<T> MailboxReceiver<T> {
    /// Returns the next message.
    #[inline]
    pub fn poll(&mut self) -> Option<T> {
        self.messages.pop().ok()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the number of messages that have arrived.
    pub fn len(&self) -> usize {
        self.messages.slots()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;
    use crate::thread_wakeup::ThreadWakeup;

    fn counted() -> (Wakeup, Arc<AtomicU32>) {
        let count = Arc::new(AtomicU32::new(0));
        let counter = count.clone();
        (Wakeup::new(move || _ = counter.fetch_add(1, Ordering::Relaxed)), count)
    }

    #[test]
    fn a_full_mailbox_returns_the_message() {
        let (mut sender, mut receiver) = mailbox(2, counted().0);
        assert_eq!((sender.send('a'), sender.send('b')), (Ok(()), Ok(())));
        assert_eq!((sender.send('c'), sender.room(), sender.is_full()), (Err(MailboxFull('c')), 0, true));
        assert_eq!((receiver.len(), receiver.poll()), (2, Some('a')));
        assert_eq!((sender.room(), sender.send('d')), (1, Ok(())));
        assert_eq!([receiver.poll(), receiver.poll(), receiver.poll()], [Some('b'), Some('d'), None]);
        assert!(receiver.is_empty());
    }

    #[test]
    fn only_a_blocked_receiver_is_woken_and_only_once() {
        let (wakeup, calls) = counted();
        let (mut sender, _receiver) = mailbox(8, wakeup.clone());
        sender.send(1).unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        wakeup.prepare_sleep();
        sender.send(2).unwrap();
        sender.send(3).unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_front_of_a_queue_is_sent_in_order_while_there_is_room() {
        let (wakeup, calls) = counted();
        let (mut sender, mut receiver) = mailbox(3, wakeup.clone());
        let mut queue: VecDeque<u32> = (0..5).collect();
        wakeup.prepare_sleep();
        assert_eq!((sender.send_from(&mut queue), calls.load(Ordering::Relaxed)), (3, 1));
        wakeup.prepare_sleep();
        assert_eq!((sender.send_from(&mut queue), calls.load(Ordering::Relaxed)), (0, 1));
        assert_eq!(std::iter::from_fn(|| receiver.poll()).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((sender.send_from(&mut queue), queue.len()), (2, 0));
        assert_eq!([receiver.poll(), receiver.poll()], [Some(3), Some(4)]);
    }

    #[test]
    fn a_thread_that_parks_between_messages_receives_all_of_them() {
        const MESSAGES: u32 = 20_000;
        let thread_wakeup = ThreadWakeup::default();
        let wakeup = thread_wakeup.wakeup();
        let (mut sender, mut receiver) = mailbox(16, wakeup.clone());
        let receiving = thread::spawn(move || {
            thread_wakeup.bind_current_thread(None);
            let mut expected = 0;
            while expected < MESSAGES {
                wakeup.prepare_sleep();
                if receiver.is_empty() {
                    thread::park();
                }
                wakeup.finish_sleep();
                while let Some(message) = receiver.poll() {
                    assert_eq!(message, expected);
                    expected += 1;
                }
            }
        });
        for number in 0..MESSAGES {
            let mut message = number;
            while let Err(MailboxFull(back)) = sender.send(message) {
                message = back;
                thread::yield_now();
            }
        }
        receiving.join().expect("it has received all");
    }
}
