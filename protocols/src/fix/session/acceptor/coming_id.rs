//! Finds the ClOrdID of a frame that is not read yet, so that memory for its order is prefetched.

use pitlane_engine::id::IntId;

use crate::fix::fields::find_soh;
use crate::fix::frame::SOH;

/// Bytes of the next frame that are searched for its ClOrdID, which usually follows the header.
const SEARCHED_BYTES: usize = 160;

const NAME: &[u8; 4] = b"\x0111=";

/// Most bytes by which the place differs from that of the frame before: its numbers have other
/// lengths.
const SHIFTED_BYTES: usize = 2;

/// Remembers where the ClOrdID was found last: the orders of a client usually have the same form.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ComingId {
    at: usize,
}

impl ComingId {
    /// Returns the ClOrdID of the frame at the beginning of `coming`, if it has arrived.
    pub(super) fn read(&mut self, coming: &[u8]) -> Option<IntId> {
        let coming = &coming[..coming.len().min(SEARCHED_BYTES)];
        if !is_at(coming, self.at) {
            let near = (1..=SHIFTED_BYTES).flat_map(|shift| [self.at + shift, self.at.wrapping_sub(shift)]);
            let found = near.into_iter().find(|&at| is_at(coming, at));
            self.at = found.or_else(|| memchr::memmem::find(coming, NAME))?;
        }
        let start = self.at + NAME.len();
        let end = find_soh(coming, start);
        let value = coming.get(start..end).filter(|_| coming.get(end) == Some(&SOH))?;
        IntId::parse(value).ok()
    }
}

/// Returns whether a ClOrdID begins there.
#[inline]
fn is_at(coming: &[u8], at: usize) -> bool {
    coming.get(at..).is_some_and(|rest| rest.starts_with(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(coming: &mut ComingId, text: &str) -> Option<String> {
        coming.read(text.replace('|', "\x01").as_bytes()).map(|id| id.as_str().to_string())
    }

    #[test]
    fn an_id_is_found_wherever_it_stands() {
        let mut coming = ComingId::default();
        let long = format!("8=FIX.4.4|58={}|11=late|", "x".repeat(SEARCHED_BYTES));
        for (text, id) in [
            ("", None),
            ("8=FIX.4.4|9=5|35=0|", None),
            ("8=FIX.4.4|9=99|35=D|34=9|11=order-1|55=A|", Some("order-1")),
            ("8=FIX.4.4|9=100|35=D|34=10|11=order-2|55=A|", Some("order-2")),
            ("8=FIX.4.4|9=99|35=D|34=9|11=order-3|55=A|", Some("order-3")),
            ("8=FIX.4.4|9=99|35=D|34=9|55=A|54=1|11=4|", Some("4")),
            ("8=FIX.4.4|9=99|35=D|34=9|55=A|54=1|11=incompl", None),
            ("8=FIX.4.4|11=two words|", None),
            (&long, None),
            ("|11=first|", Some("first")),
        ] {
            assert_eq!(read(&mut coming, text).as_deref(), id, "{text}");
        }
    }
}
