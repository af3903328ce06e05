//! Indexes and lengths of tables as narrow integers.
//!
//! Rows refer to rows of other tables by 8, 16 or 32 bits, because they are stored and copied by
//! the million. Every table has a bound far below its index type: ids have 8, 16 or 20 bits, and
//! tables without ids have a maximum in the settings. The owner of a table checks that bound when
//! it adds a row, so the conversions here are exact. A build with assertions checks them again.

const _: () = assert!(usize::BITS == 64, "a count of 64 bits is an index");

/// Returns an index of a table with at most 2⁸ rows.
#[inline(always)]
pub fn index_u8(at: usize) -> u8 {
    debug_assert!(u8::try_from(at).is_ok(), "the table has a bound of 2⁸ rows");
    #[expect(clippy::cast_possible_truncation, reason = "the table has at most 2⁸ rows")]
    let index = at as u8;
    index
}

/// Returns an index of a table with at most 2¹⁶ rows.
#[inline(always)]
pub fn index_u16(at: usize) -> u16 {
    debug_assert!(u16::try_from(at).is_ok(), "the table has a bound of 2¹⁶ rows");
    #[expect(clippy::cast_possible_truncation, reason = "the table has at most 2¹⁶ rows")]
    let index = at as u16;
    index
}

/// Returns an index of a table with at most 2³² rows.
#[inline(always)]
pub fn index_u32(at: usize) -> u32 {
    debug_assert!(u32::try_from(at).is_ok(), "the table has a bound of 2³² rows");
    #[expect(clippy::cast_possible_truncation, reason = "the table has at most 2³² rows")]
    let index = at as u32;
    index
}

/// Returns a count as an index.
#[inline(always)]
pub fn index_usize(count: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "an index has 64 bits, see above")]
    let index = count as usize;
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_has_an_index() {
        assert_eq!((index_u8(255), index_u16(65_535)), (u8::MAX, u16::MAX));
        assert_eq!((index_u32(0xffff_ffff), index_usize(u64::MAX)), (u32::MAX, usize::MAX));
    }

    #[test]
    #[should_panic(expected = "a bound of 2⁸ rows")]
    #[cfg(debug_assertions)]
    fn a_row_beyond_the_bound_is_noticed() {
        index_u8(256);
    }
}
