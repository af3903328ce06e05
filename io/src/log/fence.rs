//! A fence around code that is not ours: a panic within it ends the call, not the process.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};

thread_local! {
    /// Whether this thread is within the fence.
    static FENCED: Cell<bool> = const { Cell::new(false) };
    /// What the last panic within it said, and where.
    static WORDS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Calls what it is given; an error says with what words it panicked. What it touched must not be used again.
pub fn fenced(call: &mut dyn FnMut()) -> Result<(), String> {
    let before = FENCED.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(call));
    FENCED.set(before);
    done.map_err(|payload| {
        let noted = WORDS.take();
        let words = payload.downcast_ref::<&str>().map(|words| words.to_string());
        let words = words.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        if noted.is_empty() { format!("it panicked: {words}") } else { format!("it panicked: {noted}") }
    })
}

/// From now on the panic hook in force, whosever it is, hears of no panic within a fence.
pub fn spare_fenced() {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !takes(info) {
            hook(info);
        }
    }));
}

/// For the panic hook: notes what is said, if it is said within the fence.
pub(super) fn takes(info: &PanicHookInfo<'_>) -> bool {
    if !FENCED.get() {
        return false;
    }
    let message = info.payload_as_str().unwrap_or("no message").replace(['\n', '\r'], " ");
    WORDS.set(match info.location() {
        Some(place) => format!("{message}, at {place}"),
        None => message,
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_within_the_fence_ends_the_call_only() {
        let mut called = 0;
        assert_eq!(fenced(&mut || called += 1), Ok(()));
        let words = fenced(&mut || panic!("no idea")).unwrap_err();
        assert!(words.starts_with("it panicked: no idea"), "{words}");
        assert!(!FENCED.get());
        assert_eq!(called, 1);
    }
}
