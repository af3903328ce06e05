//! Messages between processes of one installation, as bytes: a server and strategies in their own
//! processes ([`strategy`]), their frames where there is no broker ([`link`]), and the servers of a
//! cluster ([`cluster`]).

pub mod cluster;
pub mod link;
pub mod strategy;

use std::fmt;

use pitlane_engine::codec::{Codec, DecodeError, decode_whole};

/// Reason why a message cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The message has another version than this build.
    Version {
        theirs: u8,
        ours: u8,
    },
    Damaged(DecodeError),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Version { theirs, ours } => {
                write!(f, "it uses version {theirs}, this build uses {ours}")
            }
            MessageError::Damaged(damage) => damage.fmt(f),
        }
    }
}

/// Gives types an encoding with a version in front: the first byte of every message. It rises when
/// the rest would be decoded differently.
macro_rules! versioned_codec {
    ($version:ident: $($name:ident),+) => {
        $(impl $name {
            pub fn encode(&self) -> Vec<u8> {
                let mut bytes = vec![$version];
                pitlane_engine::codec::Codec::encode(self, &mut bytes);
                bytes
            }

            pub fn decode(bytes: &[u8]) -> Result<$name, $crate::remote::MessageError> {
                $crate::remote::decode_versioned($version, bytes)
            }
        })+
    };
}
use versioned_codec;

fn decode_versioned<T: Codec>(ours: u8, bytes: &[u8]) -> Result<T, MessageError> {
    match bytes.split_first() {
        Some((&theirs, rest)) if theirs == ours => decode_whole(rest).map_err(MessageError::Damaged),
        Some((&theirs, _)) => Err(MessageError::Version { theirs, ours }),
        None => decode_whole(bytes).map_err(MessageError::Damaged),
    }
}
