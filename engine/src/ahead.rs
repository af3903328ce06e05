//! Memory that will be needed soon, asked for before it is: a miss then costs no waiting. Nothing else comes of it.

use std::slice;

use prefetch_index::prefetch_index;

/// Has the cache line of this place brought near.
#[inline(always)]
pub fn fetch<T>(place: &T) {
    prefetch_index(slice::from_ref(place), 0);
}
