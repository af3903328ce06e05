//! Messages between processes of one installation, as bytes: a server and strategies in their own
//! processes ([`strategy`]), their frames where there is no broker ([`link`]), and the servers of a
//! cluster ([`cluster`]).

pub mod cluster;
pub mod link;
pub mod strategy;

use std::fmt;

use pitlane_engine::codec::{Codec, DecodeError, decode_whole};

/// First byte of every message. It rises when the rest would be decoded differently.
pub const VERSION: u8 = 1;

/// Reason why a message cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The message has another version.
    Version(u8),
    Damaged(DecodeError),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Version(theirs) => write!(f, "it uses version {theirs}, this build uses {VERSION}"),
            MessageError::Damaged(damage) => damage.fmt(f),
        }
    }
}

/// Gives types an encoding with the version in front.
macro_rules! versioned_codec {
    ($($name:ident),+) => {
        $(impl $name {
            pub fn encode(&self) -> Vec<u8> {
                let mut bytes = vec![$crate::remote::VERSION];
                pitlane_engine::codec::Codec::encode(self, &mut bytes);
                bytes
            }

            pub fn decode(bytes: &[u8]) -> Result<$name, $crate::remote::MessageError> {
                $crate::remote::decode_versioned(bytes)
            }
        })+
    };
}
use versioned_codec;

fn decode_versioned<T: Codec>(bytes: &[u8]) -> Result<T, MessageError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => decode_whole(rest).map_err(MessageError::Damaged),
        Some((&other, _)) => Err(MessageError::Version(other)),
        None => decode_whole(bytes).map_err(MessageError::Damaged),
    }
}
