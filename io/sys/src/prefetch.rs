//! The processor's prefetch instruction.

/// Loads the cache line of the first byte of `place` into all levels of the cache. It is one
/// instruction on x86-64 and aarch64, and nothing elsewhere; it changes no value and never faults.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    let address: *const T = place;
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and the instruction neither faults nor changes a value,
        // whatever the address; moreover, this address is of a live reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: `prfm` is a hint that neither faults nor changes a value or a flag, whatever the
    // address.
    unsafe {
        core::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn prefetching_changes_nothing() {
        let table = [1_u64, 2, 3];
        table.iter().for_each(prefetch);
        prefetch(&());
        assert_eq!(table, [1, 2, 3]);
    }
}
