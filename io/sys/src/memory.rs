//! Memory of whole pages that is shared with the kernel: zeroed, at a fixed address, and never
//! exposed as a slice.

use std::io;
use std::ptr::NonNull;

use crate::span::Span;

/// Pages of this process alone, given back when the value is dropped.
#[derive(Debug)]
pub(crate) struct PageMemory(Span);

impl PageMemory {
    /// Reserves `bytes` zeroed bytes at the beginning of a page. The system provides a page when it
    /// is first used. Fails if `bytes` is zero.
    pub(crate) fn new(bytes: usize) -> io::Result<PageMemory> {
        if bytes == 0 || isize::try_from(bytes).is_err() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let start = reserve(bytes)?;
        // SAFETY: the memory is new, so nothing refers to it; it can be read and written, and stays
        // until this value is dropped. Its length was checked above.
        Ok(PageMemory(unsafe { Span::new(start, bytes) }))
    }

    pub(crate) fn span(&self) -> &Span {
        &self.0
    }

    pub(crate) fn span_mut(&mut self) -> &mut Span {
        &mut self.0
    }

    /// Returns the address for the kernel, which reads and writes the memory by it.
    pub(crate) fn address(&self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }
}

#[cfg(not(miri))]
fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: no address is requested, so the kernel chooses one where nothing is mapped.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) }?;
    NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable.into())
}

#[cfg(not(miri))]
fn release(memory: &Span) {
    // SAFETY: the range is exactly this mapping, and nothing refers to it: the span is private and
    // only copies. An error would mean that the range is not ours, which is impossible.
    _ = unsafe { rustix::mm::munmap(memory.as_ptr().cast(), memory.len()) };
}

/// Returns the layout of memory for Miri, which does not map pages.
#[cfg(miri)]
fn layout(bytes: usize) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(bytes, 4_096).expect("it is below isize::MAX")
}

#[cfg(miri)]
fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: the layout is not empty, as `PageMemory::new` has checked.
    let start = unsafe { std::alloc::alloc_zeroed(layout(bytes)) };
    NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory.into())
}

#[cfg(miri)]
fn release(memory: &Span) {
    // SAFETY: the memory was allocated with the same layout, and nothing refers to it.
    unsafe { std::alloc::dealloc(memory.as_ptr(), layout(memory.len())) }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        release(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_and_begins_at_a_page() {
        let mut memory = PageMemory::new(10_000).expect("there is memory");
        let mut bytes = vec![1; 10_000];
        memory.span().copy_to(0, &mut bytes);
        assert!(bytes.iter().all(|&byte| byte == 0));
        assert_eq!(memory.address() % 4_096, 0);
        memory.span_mut().write(9_999, b"x");
        memory.span().copy_to(9_999, &mut bytes[..1]);
        assert_eq!(bytes[0], b'x');
    }

    #[test]
    fn no_memory_is_none() {
        for bytes in [0, usize::MAX] {
            assert!(PageMemory::new(bytes).is_err(), "{bytes}");
        }
    }
}
