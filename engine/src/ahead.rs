//! What the machine is told about memory before it is needed: which lines come next, and which tables are read here and there.
//! A miss then costs less waiting. Nothing else comes of it: every word of this may be ignored.

use std::slice;

use kevy_madvise::advise_hugepage;
use prefetch_index::prefetch_index;

/// Has the cache line of this place brought near.
#[inline(always)]
pub fn fetch<T>(place: &T) {
    prefetch_index(slice::from_ref(place), 0);
}

/// A table of so many rows, empty, on large pages where the system has them to give: with small ones the way to a row that was
/// not read for long begins with a search for its page, and that takes as long as the row.
pub fn table<T>(rows: usize) -> Vec<T> {
    let mut rows_of_it = Vec::new();
    enlarge(&mut rows_of_it, rows);
    rows_of_it
}

/// The same, full of zeros. Pages that nobody touches take no memory.
pub fn zeros(words: usize) -> Vec<u64> {
    let table = vec![0; words];
    advise_hugepage(table.as_ptr().cast(), words * size_of::<u64>());
    table
}

/// The same for a table that shall have room for so many rows in all.
pub fn enlarge<T>(table: &mut Vec<T>, rows: usize) {
    table.reserve_exact(rows.saturating_sub(table.len()));
    advise_hugepage(table.as_ptr().cast(), table.capacity() * size_of::<T>());
}
