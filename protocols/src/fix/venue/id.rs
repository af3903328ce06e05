//! ClOrdIDs for venues: twenty characters, which every venue accepts, and from which the order is
//! found without a table.
//!
//! ```text
//! 00G000000002A 7QX01ZK
//! │             └ request: its own id and the id of this data folder, folded into 35 bits
//! └ order: its handle, 64 bits
//! ```

use pitlane_engine::id::{IntId, OrderHandle};

pub const VENUE_ID_BYTES: usize = HANDLE_DIGITS + REQUEST_DIGITS;

const HANDLE_DIGITS: usize = 13;
const REQUEST_DIGITS: usize = 7;

/// Five bits each, without letters that look like digits or like each other.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Returns the ClOrdID of a request: for a new order from the order's id, for a cancel or
/// replacement from the request's id.
pub fn venue_id(folder_id: u64, order: OrderHandle, request: &IntId) -> IntId {
    let mut text = [0; VENUE_ID_BYTES];
    write(order.raw(), &mut text[..HANDLE_DIGITS]);
    let about = folder_id.to_le_bytes().into_iter().chain(request.as_bytes().iter().copied());
    write(fold_64(about), &mut text[HANDLE_DIGITS..]);
    IntId::parse(&text).expect("digits and letters are an id")
}

/// Returns the order of a ClOrdID, or `None` if the id is not ours.
pub fn order_of(id: &[u8]) -> Option<OrderHandle> {
    if id.len() != VENUE_ID_BYTES {
        return None;
    }
    let mut raw = 0u128;
    for byte in id {
        raw = raw << 5 | DIGITS.iter().position(|digit| digit == byte)? as u128;
    }
    // Thirteen digits have one bit more than a handle.
    let raw = u64::try_from(raw >> (5 * REQUEST_DIGITS)).ok()?;
    Some(OrderHandle::from_raw(raw))
}

/// Folds a text of any length into 128 bits with FNV-1a. Venues do not choose their ids to deceive
/// us.
pub fn fold_128(text: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.iter().fold(BASIS, |sum, &byte| (sum ^ byte as u128).wrapping_mul(PRIME))
}

fn fold_64(text: impl Iterator<Item = u8>) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let sum = text.fold(BASIS, |sum, byte| (sum ^ byte as u64).wrapping_mul(PRIME));
    // The low bits of such a sum are the weakest.
    sum ^ sum >> 29
}

/// Writes the low bits of a number, five for each digit.
fn write(mut value: u64, into: &mut [u8]) {
    for place in into.iter_mut().rev() {
        *place = DIGITS[(value & 31) as usize];
        value >>= 5;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pitlane_engine::id::ShardId;

    use super::*;

    #[test]
    fn an_id_leads_back_to_its_order() {
        let request = IntId::parse(b"o1").unwrap();
        for order in [
            OrderHandle::new(ShardId(0), 0, 0),
            OrderHandle::new(ShardId(3), 77, 123_456),
            OrderHandle::new(ShardId(127), (1 << 24) - 1, u32::MAX),
        ] {
            let id = venue_id(9, order, &request);
            assert_eq!(id.as_bytes().len(), VENUE_ID_BYTES);
            assert_eq!(order_of(id.as_bytes()), Some(order));
        }
        for other in
            [&b""[..], b"o1", b"Z0000000000000000000", b"00000000000000000-00", b"000000000000000000000"]
        {
            assert_eq!(order_of(other), None);
        }
    }

    #[test]
    fn requests_and_lives_have_ids_of_their_own() {
        let order = OrderHandle::new(ShardId(1), 2, 3);
        let mut ids = BTreeSet::new();
        for folder_id in 0..10 {
            for nth in 0..1_000 {
                assert!(
                    ids.insert(venue_id(folder_id, order, &IntId::numbered(b'o', nth))),
                    "{folder_id} {nth}"
                );
            }
        }
        let again = venue_id(3, order, &IntId::numbered(b'o', 5));
        assert_eq!(again, venue_id(3, order, &IntId::numbered(b'o', 5)), "a request made again has its id");
        assert_ne!(fold_128(b"E1"), fold_128(b"E2"));
    }
}
