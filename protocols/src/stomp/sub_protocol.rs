//! Chooses the sub-protocol of a new WebSocket.

/// Known sub-protocols, preferred first.
pub const KNOWN: [&str; 4] = ["v12.stomp", "v11.stomp", "v10.stomp", "stomp"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubProtocolChoice {
    /// Nothing was offered: accept and name none.
    Accept,
    /// Accept and name this one.
    Echo(&'static str),
    /// Nothing known was offered: answer 400.
    Refuse,
}

/// Chooses by the values of all `Sec-WebSocket-Protocol` headers of a request; each value is a
/// list.
pub fn choose<'a>(headers: impl Iterator<Item = &'a str>) -> SubProtocolChoice {
    let mut answer = None;
    let mut is_offered = false;
    for name in headers.flat_map(|list| list.split(',')) {
        is_offered = true;
        let rank = KNOWN.iter().position(|known| *known == name.trim_matches([' ', '\t']));
        answer = [answer, rank].into_iter().flatten().min();
    }
    match answer {
        Some(rank) => SubProtocolChoice::Echo(KNOWN[rank]),
        None if is_offered => SubProtocolChoice::Refuse,
        None => SubProtocolChoice::Accept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_offered_sub_protocol_is_echoed() {
        for (headers, answer) in [
            (&[][..], SubProtocolChoice::Accept),
            (&["stomp"], SubProtocolChoice::Echo("stomp")),
            (&["v10.stomp, v11.stomp, v12.stomp"], SubProtocolChoice::Echo("v12.stomp")),
            (&["stomp,v10.stomp"], SubProtocolChoice::Echo("v10.stomp")),
            (&["mqtt", "v11.stomp"], SubProtocolChoice::Echo("v11.stomp")),
            (&["mqtt"], SubProtocolChoice::Refuse),
            (&["V12.STOMP"], SubProtocolChoice::Refuse),
            (&[""], SubProtocolChoice::Refuse),
        ] {
            assert_eq!(choose(headers.iter().copied()), answer, "{headers:?}");
        }
    }
}
