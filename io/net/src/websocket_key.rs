//! Keys of WebSocket handshakes (RFC 6455, 4.1 and 4.2), for both sides.

use aws_lc_rs::{digest, rand};
use base64ct::{Base64, Encoding};

/// What the RFC appends to the client's key.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Returns the accept value. SHA-1 protects no secret here: it proves to the client that we are no
/// cache and no server of another protocol.
pub fn accept_of(key: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat());
    Base64::encode_string(digest.as_ref())
}

/// Returns a random key of a client, and a random seed for its masks.
pub fn random_key() -> (String, u64) {
    let mut bytes = [0; 24];
    rand::fill(&mut bytes).expect("the system gives random bytes");
    let (key, seed) = bytes.split_at(16);
    let seed = seed.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    (Base64::encode_string(key), seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accept_value_is_that_of_the_rfc() {
        assert_eq!(accept_of(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn keys_encode_sixteen_bytes_and_differ() {
        let (first, second) = (random_key(), random_key());
        assert_ne!(first, second);
        assert_eq!(Base64::decode_vec(&first.0).expect("base64").len(), 16);
    }
}
