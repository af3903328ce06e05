//! Result of every codec: a message and the bytes it took, or that more bytes are needed.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<T> {
    Message { message: T, consumed: usize },
    Incomplete,
}
