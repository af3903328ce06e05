//! Writes requests. Parameters are written in the order of their names, which is the order in which
//! the venue signs them.

use pitlane_engine::time::{NS_PER_MS, Timestamp};

use super::Signer;
use crate::json;

/// A request that is being written.
pub(super) struct RequestDraft<'a> {
    out: &'a mut Vec<u8>,
    /// Text that is signed; `None` if the connection is authenticated or the method is public.
    payload: Option<&'a mut Vec<u8>>,
    is_first: bool,
}

/// How a request proves who sent it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Authority<'a> {
    /// The method is public, or the connection is logged on.
    None,
    Signed {
        api_key: &'a str,
        signer: &'a dyn Signer,
    },
}

/// Writes a request. `write` adds the parameters, sorted by name.
pub(super) fn write(
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    id: u64,
    method: &str,
    authority: Authority<'_>,
    write: impl FnOnce(&mut RequestDraft<'_>),
) {
    out.extend_from_slice(b"{\"id\":");
    json::push_number(out, id);
    out.extend_from_slice(b",\"method\":\"");
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(b"\",\"params\":{");
    scratch.clear();
    match authority {
        Authority::None => write(&mut RequestDraft { out, payload: None, is_first: true }),
        Authority::Signed { api_key, signer } => {
            let mut draft = RequestDraft { out, payload: Some(scratch), is_first: true };
            draft.text("apiKey", api_key);
            write(&mut draft);
            out.extend_from_slice(b",\"signature\":\"");
            signer.sign(scratch, out);
            out.push(b'"');
        }
    }
    out.extend_from_slice(b"}}");
}

impl RequestDraft<'_> {
    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        json::push_text(self.out, value);
        if let Some(payload) = &mut self.payload {
            payload.extend_from_slice(value.as_bytes());
        }
    }

    pub(super) fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        json::push_number(self.out, value);
        if let Some(payload) = &mut self.payload {
            json::push_number(payload, value);
        }
    }

    /// Writes units of 10⁻⁸ as a decimal in a text.
    pub(super) fn decimal(&mut self, name: &str, raw: i64) {
        self.name(name);
        self.out.push(b'"');
        json::push_decimal(self.out, raw);
        self.out.push(b'"');
        if let Some(payload) = &mut self.payload {
            json::push_decimal(payload, raw);
        }
    }

    /// Writes a time of the venue in milliseconds.
    pub(super) fn time(&mut self, name: &str, value: Timestamp) {
        self.number(name, value.0 / NS_PER_MS);
    }

    fn name(&mut self, name: &str) {
        if !self.is_first {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        if let Some(payload) = &mut self.payload {
            if !self.is_first {
                payload.push(b'&');
            }
            payload.extend_from_slice(name.as_bytes());
            payload.push(b'=');
        }
        self.is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the payload as the signature.
    #[derive(Debug)]
    struct ShownPayload;

    impl Signer for ShownPayload {
        fn sign(&self, payload: &[u8], out: &mut Vec<u8>) {
            out.extend_from_slice(payload);
        }

        fn can_log_on(&self) -> bool {
            false
        }
    }

    /// The example of `web-socket-api.md`, section "SIGNED request example (HMAC)".
    #[test]
    fn the_payload_of_a_signature_is_that_of_the_documentation() {
        let key = "vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A";
        let (mut out, mut scratch) = (Vec::new(), Vec::new());
        let authority = Authority::Signed { api_key: key, signer: &ShownPayload };
        super::write(&mut out, &mut scratch, 7, "order.place", authority, |draft| {
            draft.text("price", "52000.00");
            draft.text("quantity", "0.01000000");
            draft.number("recvWindow", 100);
            draft.text("side", "SELL");
            draft.text("symbol", "BTCUSDT");
            draft.text("timeInForce", "GTC");
            draft.time("timestamp", Timestamp(1_645_423_376_532_999_999));
            draft.text("type", "LIMIT");
        });
        let payload = format!(
            "apiKey={key}&price=52000.00&quantity=0.01000000&recvWindow=100&side=SELL&symbol=BTCUSDT\
             &timeInForce=GTC&timestamp=1645423376532&type=LIMIT"
        );
        assert_eq!(String::from_utf8(scratch).unwrap(), payload);
        let text = String::from_utf8(out).unwrap();
        let request: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&request["id"], &request["method"]), (&7.into(), &"order.place".into()));
        let params = &request["params"];
        assert_eq!((&params["apiKey"], &params["signature"]), (&key.into(), &payload.into()));
        assert_eq!(
            (&params["recvWindow"], &params["timestamp"]),
            (&100.into(), &1_645_423_376_532_u64.into())
        );
    }

    #[test]
    fn decimals_have_no_superfluous_digits_and_names_are_texts() {
        let (mut out, mut scratch) = (Vec::new(), Vec::new());
        super::write(&mut out, &mut scratch, 1, "time", Authority::None, |draft| {
            draft.decimal("quantity", 150_000_000);
            draft.text("symbol", "１２３\"");
        });
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, r#"{"id":1,"method":"time","params":{"quantity":"1.5","symbol":"１２３\""}}"#);
        assert!(scratch.is_empty(), "nothing is signed");
    }
}
