//! Large pages under the big tables. The engine makes no system call: the caller provides a hook
//! that requests large pages from the system, and each large table passes its memory to that hook.
//!
//! With small pages, access to a row that was not read for long begins with a page walk, which
//! takes as long as the row itself: a tenth of a shard's time with many orders.

/// Asks the system to put the memory at an address, with this length in bytes, on large pages. It
/// may do nothing; it must not change the content of the memory.
pub type AdviseFn = fn(*const u8, usize);

/// Creates large tables, and passes each to the hook. Without a hook they are on the pages that the
/// allocator gives.
#[derive(Clone, Copy, Debug, Default)]
pub struct LargePages(Option<AdviseFn>);

/// The location of memory changes no result, so settings that differ only in it are equal.
impl PartialEq for LargePages {
    fn eq(&self, _: &LargePages) -> bool {
        true
    }
}

impl Eq for LargePages {}

impl LargePages {
    /// No hook: for tests, and for tables that are small.
    pub const NONE: LargePages = LargePages(None);

    /// Creates a handle that passes every large table to this hook.
    pub const fn new(advise: AdviseFn) -> LargePages {
        LargePages(Some(advise))
    }

    /// Returns an empty table with room for this many rows.
    pub fn table<T>(self, rows: usize) -> Vec<T> {
        let mut table = Vec::new();
        self.enlarge(&mut table, rows);
        table
    }

    /// Returns an empty table with room for this many rows, of which the first ones are on small
    /// pages: while only they are in use, it takes little memory.
    pub fn table_with_small<T>(self, rows: usize, small: usize) -> Vec<T> {
        let table = Vec::with_capacity(rows);
        self.advise(&table, small);
        table
    }

    /// Returns a table of zeros. Untouched pages take no memory.
    pub fn zeros(self, words: usize) -> Vec<u64> {
        let table = vec![0; words];
        self.advise(&table, 0);
        table
    }

    /// Makes room for this many rows in all.
    pub fn enlarge<T>(self, table: &mut Vec<T>, rows: usize) {
        if table.is_empty() && table.capacity() < rows {
            // Growing it would copy memory that was never written.
            *table = Vec::new();
        }
        table.reserve_exact(rows.saturating_sub(table.len()));
        self.advise(table, 0);
    }

    /// Passes a table to the hook, except for its first rows.
    fn advise<T>(self, table: &Vec<T>, except: usize) {
        if let Some(advise) = self.0 {
            let rows = table.capacity().saturating_sub(except);
            advise(table.as_ptr().wrapping_add(except).cast(), rows * size_of::<T>());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn the_hook_gets_every_table_with_its_whole_capacity() {
        // A hook is a plain function, so its arguments are stored in statics.
        static START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
        static BYTES: AtomicUsize = AtomicUsize::new(0);
        let pages = LargePages::new(|start, bytes| {
            START.store(start.cast_mut(), Ordering::Relaxed);
            BYTES.store(bytes, Ordering::Relaxed);
        });
        let advised = || (START.load(Ordering::Relaxed).cast_const(), BYTES.load(Ordering::Relaxed));

        let mut table: Vec<u32> = pages.table(100);
        assert_eq!(advised(), (table.as_ptr().cast(), table.capacity() * 4));
        table.extend(0..50);
        pages.enlarge(&mut table, 1_000);
        assert!(table.capacity() >= 1_000 && table.len() == 50);
        assert_eq!(advised(), (table.as_ptr().cast(), table.capacity() * 4));
        let table: Vec<u32> = pages.table_with_small(100, 40);
        assert_eq!(advised(), (table[..].as_ptr().wrapping_add(40).cast(), (table.capacity() - 40) * 4));
        let zeros = pages.zeros(8);
        assert_eq!((zeros.as_slice(), advised()), (&[0; 8][..], (zeros.as_ptr().cast(), 64)));
    }

    #[test]
    fn without_a_hook_tables_are_plain() {
        let table: Vec<u64> = LargePages::NONE.table(10);
        assert!(table.capacity() >= 10);
        assert_eq!(LargePages::NONE, LargePages::new(|_, _| {}));
    }
}
