//! Tokens: 256 random bits for machines. Only their SHA-256 is stored, which suffices because 256
//! bits cannot be guessed.

use std::fmt;

use base64ct::{Base64UrlUnpadded, Encoding};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Prefix of every token, so that source code scanners recognise a leaked one.
const PREFIX: &str = "pit_";
pub(crate) const TOKEN_BYTES: usize = 32;

/// Formats the token from random bytes, to be displayed once.
pub(crate) fn show(random: [u8; TOKEN_BYTES]) -> String {
    format!("{PREFIX}{}", Base64UrlUnpadded::encode_string(&random))
}

/// The SHA-256 of the whole text of a token: it identifies the token without revealing it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum([u8; 32]);

impl Sum {
    pub fn of(token: &str) -> Sum {
        Sum(Sha256::digest(token).into())
    }

    pub fn is_same(&self, other: &Sum) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// Parses 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Sum, &'static str> {
        let bad = "it must be a SHA-256: 64 digits of 0-9 and a-f";
        if text.len() != 64 {
            return Err(bad);
        }
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(bad),
        };
        let mut sum = [0; 32];
        for (place, pair) in sum.iter_mut().zip(text.as_bytes().chunks(2)) {
            *place = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Sum(sum))
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_what_sha256sum_prints() {
        let sum = Sum::of("abc");
        assert_eq!(sum.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Sum::parse(&sum.to_string()), Ok(sum.clone()));
        assert!(sum.is_same(&Sum::of("abc")) && !sum.is_same(&Sum::of("abd")));
        for odd in ["", "ab", &"g".repeat(64), &"A".repeat(64), &"a".repeat(63), &"\u{e9}".repeat(32)] {
            assert!(Sum::parse(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_token_is_text_without_anything_to_escape() {
        let token = show([0xff; TOKEN_BYTES]);
        assert_eq!(token.len(), 47);
        assert!(token.starts_with(PREFIX));
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        assert_ne!(token, show([0; TOKEN_BYTES]));
    }
}
