//! Stored passwords: argon2id in its usual text form, which other tools read and write too.
//!
//! ```text
//! $argon2id$v=19$m=19456,t=2,p=1$SALT$HASH        memory in KiB, passes, lanes; base64 without padding
//! ```
//!
//! The text is parsed here and not by the crate `phc`, which argon2 offers for it (0.6.1): that one
//! takes costs in any sequence and its own where they are missing, and it refuses salts above 48
//! bytes and hashes below 10 bytes, which files may contain today.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use base64ct::{Base64Unpadded, Encoding};
use subtle::ConstantTimeEq;

/// Cost of a new hash: 19 MiB and two passes, some 20 ms here. With a higher cost, a burst of
/// logins would delay the thread.
const COST: Cost = Cost { memory_kib: 19_456, passes: 2, lanes: 1 };
/// Maximum cost of a hash from another tool: a quarter of a gigabyte, a second or two.
const COST_MAX: Cost = Cost { memory_kib: 262_144, passes: 10, lanes: 8 };
pub const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
/// Maximum length of a salt or hash in a file; ours are shorter.
const BYTES_MAX: usize = 64;
/// Maximum length of a password in bytes. Argon2 accepts longer ones, but people do not type them.
pub(crate) const PASSWORD_BYTES_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

/// The hash of a password: it verifies the password without revealing it.
#[derive(Clone, PartialEq, Eq)]
pub struct Hash {
    cost: Cost,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl Hash {
    /// Hashes a password of at most [`PASSWORD_BYTES_MAX`]; each hash needs a new salt.
    pub fn make(password: &[u8], salt: [u8; SALT_BYTES]) -> Hash {
        let hash = derive(COST, password, &salt, HASH_BYTES).expect("our own cost and sizes are in range");
        Hash { cost: COST, salt: salt.to_vec(), hash }
    }

    /// Verifies a password, at the cost stored in the hash. Returns false for a text longer than
    /// any password.
    pub fn is_of(&self, password: &[u8]) -> bool {
        if password.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let derived = derive(self.cost, password, &self.salt, self.hash.len());
        derived.is_some_and(|derived| derived.ct_eq(&self.hash).into())
    }

    pub fn parse(text: &str) -> Result<Hash, &'static str> {
        let mut parts = text.split('$');
        let mut next = || parts.next().unwrap_or_default();
        if (next(), next(), next()) != ("", "argon2id", "v=19") {
            return Err("it must begin with $argon2id$v=19$");
        }
        let cost = Cost::parse(next()).ok_or("the cost must be m=…,t=…,p=… within 262144, 10 and 8")?;
        let bytes = |text: &str| {
            let bytes = Base64Unpadded::decode_vec(text).ok()?;
            (8..=BYTES_MAX).contains(&bytes.len()).then_some(bytes)
        };
        let salt = bytes(next()).ok_or("the salt must be 8 to 64 bytes in base64 without padding")?;
        let hash = bytes(next()).ok_or("the hash must be 8 to 64 bytes in base64 without padding")?;
        match parts.next() {
            None => Ok(Hash { cost, salt, hash }),
            Some(_) => Err("nothing may follow the hash"),
        }
    }
}

impl Cost {
    fn parse(text: &str) -> Option<Cost> {
        let mut parts = text.split(',');
        let mut next = |key: &str, max: u32| {
            let number = parts.next()?.strip_prefix(key)?.parse::<u32>().ok()?;
            (1..=max).contains(&number).then_some(number)
        };
        let cost = Cost {
            memory_kib: next("m=", COST_MAX.memory_kib)?,
            passes: next("t=", COST_MAX.passes)?,
            lanes: next("p=", COST_MAX.lanes)?,
        };
        let is_known = parts.next().is_none() && cost.params(HASH_BYTES).is_some();
        is_known.then_some(cost)
    }

    fn params(self, bytes: usize) -> Option<Params> {
        Params::new(self.memory_kib, self.passes, self.lanes, Some(bytes)).ok()
    }
}

fn derive(cost: Cost, password: &[u8], salt: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, cost.params(bytes)?);
    let mut hash = vec![0; bytes];
    argon.hash_password_into(password, salt, &mut hash).ok()?;
    Some(hash)
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cost { memory_kib, passes, lanes } = self.cost;
        let text = |bytes: &[u8]| Base64Unpadded::encode_string(bytes);
        let (salt, hash) = (text(&self.salt), text(&self.hash));
        write!(f, "$argon2id$v=19$m={memory_kib},t={passes},p={lanes}${salt}${hash}")
    }
}

/// Hides even the hash from logs.
impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash by the reference implementation, from its test suite: `echo -n password | argon2
    /// somesalt -id -t 2 -m 16 -p 1`.
    const FOREIGN: &str =
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

    #[test]
    fn a_hash_verifies_its_password_and_no_other() {
        let hash = Hash::make(b"correct horse", [7; SALT_BYTES]);
        assert!(hash.is_of(b"correct horse"));
        for wrong in [&b""[..], b"correct hors", b"correct horse ", &[b'x'; PASSWORD_BYTES_MAX + 1]] {
            assert!(!hash.is_of(wrong));
        }
        assert_ne!(hash, Hash::make(b"correct horse", [8; SALT_BYTES]));
        assert_eq!(Hash::parse(&hash.to_string()), Ok(hash));
    }

    #[test]
    fn hashes_of_other_tools_are_compatible() {
        let hash = Hash::parse(FOREIGN).unwrap();
        assert_eq!(hash.to_string(), FOREIGN);
        assert!(hash.is_of(b"password"));
        assert!(!hash.is_of(b"Password"));
        assert_eq!(format!("{hash:?}"), "***");
    }

    #[test]
    fn invalid_and_too_costly_hashes_are_rejected() {
        let changed = |from: &str, to: &str| FOREIGN.replace(from, to);
        for text in [
            String::new(),
            "password".to_string(),
            changed("argon2id", "argon2i"),
            changed("v=19", "v=16"),
            changed("m=65536", "m=262145"),
            changed("m=65536", "m=7"),
            changed("t=2", "t=0"),
            changed("t=2", "t=11"),
            changed("p=1", "p=9"),
            changed("p=1", "p=1,q=1"),
            changed("m=65536,t=2", "t=2,m=65536"),
            changed("c29tZXNhbHQ", "c2"),
            changed("c29tZXNhbHQ", "c29tZXNhbHQ="),
            changed("CTFhF", "!!!!!"),
            format!("{FOREIGN}$"),
            format!("{FOREIGN}{FOREIGN}"),
        ] {
            assert!(Hash::parse(&text).is_err(), "{text}");
        }
    }
}
