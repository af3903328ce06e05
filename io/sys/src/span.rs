//! Memory outside Rust's control: a range of bytes that is copied into and out of, never borrowed.
//! The contents of a mapped file can be changed from outside, so no reference to them may exist.

use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

#[derive(Debug)]
pub(crate) struct Span {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a span is an address and a length. The caller of `Span::new` guarantees that the memory
// exists as long as the span, in any thread; and writing takes `&mut`, so there is one writer.
unsafe impl Send for Span {}
// SAFETY: as above; through `&Span` memory is only read.
unsafe impl Sync for Span {}

impl Span {
    /// Creates a span over the bytes at an address.
    ///
    /// # Safety
    ///
    /// As long as the span is used, the bytes can be read and written, no Rust reference to them
    /// exists, and no other span covers them. They are fewer than `isize::MAX`.
    pub(crate) unsafe fn new(start: NonNull<u8>, len: usize) -> Span {
        Span { start, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Copies bytes in. Panics if they do not fit.
    #[inline]
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        let room = self.len.checked_sub(at).expect("the place lies within the span");
        assert!(bytes.len() <= room, "the bytes lie within the span");
        // SAFETY: `at` is at most `len`, as was just checked.
        let to = unsafe { self.start.as_ptr().add(at) };
        // SAFETY: that many bytes can be written from there (checked above; `Span::new` guarantees
        // the rest), and no reference covers them, so `bytes` does not overlap.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Copies bytes out. Panics if the span has fewer from there on.
    #[inline]
    pub(crate) fn copy_to(&self, at: usize, into: &mut [u8]) {
        let room = self.len.checked_sub(at).expect("the place lies within the span");
        assert!(into.len() <= room, "the bytes lie within the span");
        // SAFETY: `at` is at most `len`, as was just checked.
        let from = unsafe { self.start.as_ptr().add(at) };
        // SAFETY: that many bytes can be read from there (checked above; `Span::new` guarantees the
        // rest), and no reference covers them, so `into` does not overlap.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) }
    }

    /// Stores a number that another processor reads: what was written before is visible to a reader
    /// of the number. Panics if it does not lie within the span, or not at an even address.
    #[inline]
    pub(crate) fn publish_u16(&mut self, at: usize, value: u16) {
        let room = self.len.checked_sub(at).expect("the place lies within the span");
        assert!(room >= size_of::<u16>(), "the number lies within the span");
        // SAFETY: `at` is at most `len`, as was just checked.
        let place = unsafe { self.start.as_ptr().add(at) }.cast::<u16>();
        assert!(place.is_aligned(), "an atomic number is aligned");
        // SAFETY: two bytes can be read and written there (checked above; `Span::new` guarantees
        // the rest), the address is aligned, and no reference covers them. Other accesses of this
        // process go through this span, which `&mut` excludes meanwhile.
        let atomic = unsafe { AtomicU16::from_ptr(place) };
        atomic.store(value, Ordering::Release);
    }

    /// Appends a copy of a range. Panics if it does not lie within the span.
    #[inline]
    pub(crate) fn read_into(&self, range: Range<usize>, into: &mut Vec<u8>) {
        assert!(range.start <= range.end && range.end <= self.len, "the range lies within the span");
        let count = range.end - range.start;
        into.reserve(count);
        // SAFETY: `range.start` is at most `len`, as was just checked.
        let from = unsafe { self.start.as_ptr().add(range.start) };
        let to = into.spare_capacity_mut().as_mut_ptr().cast();
        // SAFETY: that many bytes can be read from there (checked above; `Span::new` guarantees the
        // rest), there is room for them behind the vector's end, and the two do not overlap,
        // because the vector owns its memory.
        unsafe { ptr::copy_nonoverlapping(from, to, count) }
        // SAFETY: the vector has this room, and the bytes were just written.
        unsafe { into.set_len(into.len() + count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heap memory that was released for a span, freed even if a test panics.
    struct Memory(*mut [u8]);

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: this is the released box, and the span is not used any more.
            drop(unsafe { Box::from_raw(self.0) });
        }
    }

    /// Runs a test on a span over heap memory, which Miri can check.
    fn with_span(len: usize, test: impl FnOnce(&mut Span)) {
        let memory = Memory(Box::into_raw(vec![0xff_u8; len].into_boxed_slice()));
        let start = NonNull::new(memory.0.cast::<u8>()).expect("a box has an address");
        // SAFETY: nothing else refers to the box, and it is freed after the last use of the span.
        let mut span = unsafe { Span::new(start, len) };
        test(&mut span);
    }

    #[test]
    fn bytes_copied_in_are_copied_out() {
        with_span(64, |span| {
            span.write(3, b"abc");
            span.write(60, b"last");
            span.write(64, b"");
            let mut out = vec![b'>'];
            span.read_into(2..7, &mut out);
            assert_eq!(out, b">\xffabc\xff");
            span.read_into(60..64, &mut out);
            span.read_into(64..64, &mut out);
            assert_eq!(out, b">\xffabc\xfflast");
        });
    }

    #[test]
    fn bytes_and_published_numbers_are_copied_out() {
        with_span(64, |span| {
            // The memory of the test is aligned to an even address or to an odd one.
            let at = span.as_ptr().addr() % 2;
            span.publish_u16(at, 0x1234);
            span.write(at + 2, b"abc");
            let mut out = [0; 5];
            span.copy_to(at, &mut out);
            assert_eq!((&out[..2], &out[2..]), (&0x1234_u16.to_ne_bytes()[..], &b"abc"[..]));
            span.copy_to(64, &mut []);
        });
    }

    #[test]
    #[should_panic(expected = "an atomic number is aligned")]
    fn a_number_at_an_odd_address_is_not_published() {
        with_span(8, |span| span.publish_u16(1 - span.as_ptr().addr() % 2, 1));
    }

    #[test]
    #[should_panic(expected = "the bytes lie within the span")]
    fn a_byte_too_many_is_not_copied() {
        with_span(8, |span| span.copy_to(5, &mut [0; 4]));
    }

    #[test]
    fn an_empty_span_has_no_bytes() {
        with_span(0, |span| {
            span.write(0, b"");
            let mut out = Vec::new();
            span.read_into(0..0, &mut out);
            assert!(out.is_empty() && span.len() == 0);
        });
    }

    #[test]
    #[should_panic(expected = "the bytes lie within the span")]
    fn a_byte_too_many_is_not_written() {
        with_span(8, |span| span.write(5, b"abcd"));
    }

    #[test]
    #[should_panic(expected = "the place lies within the span")]
    fn a_place_beyond_the_end_is_not_written() {
        with_span(8, |span| span.write(usize::MAX, b"abcd"));
    }

    #[test]
    #[should_panic(expected = "the range lies within the span")]
    fn a_byte_beyond_the_end_is_not_read() {
        with_span(8, |span| span.read_into(5..9, &mut Vec::new()));
    }
}
