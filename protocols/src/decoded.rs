//! The one decoding convention: every codec answers with a message, with *not yet*, or with its own error.

/// What the bytes at hand hold. `Incomplete` is not an error: more bytes may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<T> {
    Message { message: T, consumed: usize },
    Incomplete,
}
