//! The one answer of every codec: a message and how much of the buffer it took, or that more bytes are needed.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<T> {
    Message { message: T, consumed: usize },
    Incomplete,
}
