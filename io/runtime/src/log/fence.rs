//! Isolates foreign code: a panic within it ends the call, not the process.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};

thread_local! {
    /// Whether this thread runs isolated code.
    static FENCED: Cell<bool> = const { Cell::new(false) };
    /// Message and location of the last panic in isolated code.
    static WORDS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Calls the closure; the error holds its panic message. The data it touched must not be used
/// again.
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

/// Wraps the current panic hook so that it is not called for panics in isolated code.
pub fn spare_fenced() {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !takes(info) {
            hook(info);
        }
    }));
}

/// Records the message of a panic in isolated code, for the panic hook. Returns whether it was one.
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
    fn a_panic_in_isolated_code_ends_only_the_call() {
        let mut called = 0;
        assert_eq!(fenced(&mut || called += 1), Ok(()));
        let words = fenced(&mut || panic!("no idea")).unwrap_err();
        assert!(words.starts_with("it panicked: no idea"), "{words}");
        assert!(!FENCED.get());
        assert_eq!(called, 1);
    }
}
