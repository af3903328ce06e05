//! Large pages for memory from the allocator.

/// Smallest page size here and on most machines, in bytes. With larger pages the system rounds as
/// needed.
const PAGE_BYTES: usize = 4_096;

/// Asks the system to use large pages for memory (`MADV_HUGEPAGE`). It applies to the part of the
/// range that consists of whole pages, if there are at least two. Errors are ignored: a system
/// without large pages continues as before.
pub fn advise_huge(start: *const u8, bytes: usize) {
    let Some((start, bytes)) = whole_pages(start, bytes) else { return };
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::mm::{Advice, madvise};
        // SAFETY: this advice changes no byte and no access right of any memory, whether it is
        // mapped or not and whatever owns it: only the size of the pages beneath it.
        _ = unsafe { madvise(start.cast_mut().cast(), bytes, Advice::LinuxHugepage) };
    }
    #[cfg(any(not(target_os = "linux"), miri))]
    let _ = (start, bytes);
}

/// Returns the part of a range that consists of whole pages, if there are at least two.
fn whole_pages(start: *const u8, bytes: usize) -> Option<(*const u8, usize)> {
    let before = start.addr().wrapping_neg() % PAGE_BYTES;
    let whole = bytes.checked_sub(before)? / PAGE_BYTES * PAGE_BYTES;
    (whole >= 2 * PAGE_BYTES).then(|| (start.wrapping_add(before), whole))
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn only_whole_pages_are_advised() {
        let at = |address: usize, bytes| {
            whole_pages(ptr::without_provenance(address), bytes).map(|(start, bytes)| (start.addr(), bytes))
        };
        assert_eq!(at(0x1000, 0x2000), Some((0x1000, 0x2000)));
        assert_eq!(at(0x1000, 0x2fff), Some((0x1000, 0x2000)));
        assert_eq!(at(0x0fff, 0x2001), Some((0x1000, 0x2000)));
        assert_eq!(at(0x1001, 0x3000), Some((0x2000, 0x2000)));
        assert_eq!(at(0x1001, 0x2fff), Some((0x2000, 0x2000)));
        assert_eq!(at(0x1001, 0x2ffe), None);
        assert_eq!([at(0x1000, 0x1fff), at(0x1001, 5), at(0, 0), at(usize::MAX, 0)], [None; 4]);
        assert_eq!(at(0x1000, 0x1_0000_0000), Some((0x1000, 0x1_0000_0000)));
    }

    #[test]
    fn memory_keeps_its_contents() {
        // Miri takes a minute for what otherwise takes a millisecond.
        let rows = if cfg!(miri) { 2_000 } else { 1_000_000 };
        let table: Vec<u64> = (0..rows).collect();
        advise_huge(table.as_ptr().cast(), table.len() * 8);
        assert!(table.iter().copied().eq(0..rows));
        // This memory does not exist.
        advise_huge(ptr::null(), 0);
        advise_huge(ptr::without_provenance(PAGE_BYTES), 8 * PAGE_BYTES);
    }
}
