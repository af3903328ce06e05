//! Keys with which venues are convinced who sends: an HMAC secret or an Ed25519 private key. They
//! are never shown.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64ct::{Base64, Encoding};
use pitlane_config::{Secret, SecretEncoding};
use pitlane_protocols::binance::Signer;
use pitlane_protocols::fix::venue::profile::LogonSigner;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

/// The key of an account.
#[derive(Clone)]
pub(crate) enum SigningKey {
    Hmac(Arc<hmac::Key>),
    Ed25519(Arc<Ed25519KeyPair>),
}

impl SigningKey {
    /// Reads the key from the settings or from the file that they name.
    pub(crate) fn configured(
        secret: Option<&Secret>,
        file: Option<&Path>,
        encoding: SecretEncoding,
    ) -> Result<SigningKey, String> {
        match (secret, file) {
            (Some(secret), _) => SigningKey::of(secret.reveal().as_bytes(), encoding),
            (None, Some(path)) => fs::read(path)
                .map_err(|problem| problem.to_string())
                .and_then(|bytes| SigningKey::of(&bytes, encoding))
                .map_err(|problem| format!("{}: {problem}", path.display())),
            (None, None) => Err("there is none".to_string()),
        }
    }

    /// Reads an Ed25519 key in PEM, or anything else as an HMAC secret.
    fn of(secret: &[u8], encoding: SecretEncoding) -> Result<SigningKey, String> {
        let secret = secret.trim_ascii();
        if secret.is_empty() {
            return Err("it is empty".to_string());
        }
        if !secret.starts_with(b"-----BEGIN") {
            let decoded = match encoding {
                SecretEncoding::Text => secret.to_vec(),
                SecretEncoding::Base64 => str::from_utf8(secret)
                    .ok()
                    .and_then(|text| Base64::decode_vec(text).ok())
                    .ok_or("it is not base64")?,
            };
            return Ok(SigningKey::Hmac(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &decoded))));
        }
        let key = PrivatePkcs8KeyDer::from_pem_slice(secret)
            .map_err(|_| "it has no PRIVATE KEY in PEM (PKCS #8)".to_string())?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.secret_pkcs8_der())
            .map_err(|_| "its key is not for Ed25519".to_string())?;
        Ok(SigningKey::Ed25519(Arc::new(pair)))
    }

    fn signature(&self, payload: &[u8]) -> Vec<u8> {
        match self {
            SigningKey::Hmac(key) => hmac::sign(key, payload).as_ref().to_vec(),
            SigningKey::Ed25519(pair) => pair.sign(payload).as_ref().to_vec(),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SigningKey::Hmac(_) => "Hmac(***)",
            SigningKey::Ed25519(_) => "Ed25519(***)",
        })
    }
}

/// Requests to Binance have HMAC signatures in hexadecimal digits.
impl Signer for SigningKey {
    fn sign(&self, payload: &[u8], out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let signature = self.signature(payload);
        match self {
            SigningKey::Hmac(_) => {
                for byte in signature {
                    out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
                }
            }
            SigningKey::Ed25519(_) => out.extend_from_slice(Base64::encode_string(&signature).as_bytes()),
        }
    }

    fn can_log_on(&self) -> bool {
        matches!(self, SigningKey::Ed25519(_))
    }
}

/// RawData of a Logon is the signature in base64.
impl LogonSigner for SigningKey {
    fn sign(&self, payload: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(Base64::encode_string(&self.signature(payload)).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, KeyPair, UnparsedPublicKey};

    use super::*;

    fn key(secret: &[u8]) -> Result<SigningKey, String> {
        SigningKey::of(secret, SecretEncoding::Text)
    }

    fn signature(signer: &SigningKey, payload: &str) -> String {
        let mut out = Vec::new();
        Signer::sign(signer, payload.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn logon_signature(signer: &SigningKey, payload: &[u8]) -> String {
        let mut out = Vec::new();
        LogonSigner::sign(signer, payload, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The examples of `web-socket-api.md`, section "SIGNED request example (HMAC)".
    #[test]
    fn hmac_signatures_are_those_of_the_documentation() {
        let signer = key(b"NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j\n").unwrap();
        let payload = "apiKey=vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A&price=52000.00\
                       &quantity=0.01000000&recvWindow=100&side=SELL&symbol=BTCUSDT&timeInForce=GTC\
                       &timestamp=1645423376532&type=LIMIT";
        let expected = "aa1b5712c094bc4e57c05a1a5c1fd8d88dcd628338ea863fec7b88e59fe2db24";
        assert_eq!((signature(&signer, payload).as_str(), signer.can_log_on()), (expected, false));
        let payload = "apiKey=vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A&price=0.10000000\
                       &quantity=1.00000000&recvWindow=5000&side=BUY&symbol=１２３４５６&timeInForce=GTC\
                       &timestamp=1645423376532&type=LIMIT";
        let expected = "b33892ae8e687c939f4468c6268ddd4c40ac1af18ad19a064864c47bae0752cd";
        assert_eq!(signature(&signer, payload), expected);
    }

    /// The private key of RFC 8410, section 10.3, in the first form that has no public key.
    #[test]
    fn ed25519_keys_in_pem_sign_what_their_public_key_verifies() {
        let pem = "-----BEGIN PRIVATE KEY-----\n\
                   MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
                   -----END PRIVATE KEY-----\n";
        let signer = key(pem.as_bytes()).unwrap();
        assert!(signer.can_log_on());
        let SigningKey::Ed25519(pair) = &signer else { panic!("{signer:?}") };
        let signed = Base64::decode_vec(&signature(&signer, "timestamp=1")).unwrap();
        let public = UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref());
        assert!(public.verify(b"timestamp=1", &signed).is_ok());
        assert!(public.verify(b"timestamp=2", &signed).is_err());
    }

    #[test]
    fn keys_are_not_shown_and_mistakes_are_named() {
        assert_eq!(format!("{:?}", key(b"hunter2").unwrap()), "Hmac(***)");
        assert!(key(b" \n").unwrap_err().contains("empty"));
        assert!(key(b"-----BEGIN PUBLIC KEY-----\n").unwrap_err().contains("PRIVATE KEY"));
    }

    /// The example of `fix-api.md` of Binance Spot, section "How to sign Logon request".
    #[test]
    fn signatures_of_logons_are_those_of_the_documentation() {
        let signer = key(b"-----BEGIN PRIVATE KEY-----\n\
              MC4CAQAwBQYDK2VwBCIEIIJEYWtGBrhACmb9Dvy+qa8WEf0lQOl1s4CLIAB9m89u\n\
              -----END PRIVATE KEY-----\n")
        .unwrap();
        let expected =
            "4MHXelVVcpkdwuLbl6n73HQUXUf1dse2PCgT1DYqW9w8AVZ1RACFGM+5UdlGPrQHrgtS3CvsRURC1oj73j8gCA==";
        assert_eq!(logon_signature(&signer, b"A\x01EXAMPLE\x01SPOT\x011\x0120240627-11:17:25.223"), expected);
    }

    /// The second test case of RFC 4231, with the key as text and in base64.
    #[test]
    fn a_secret_may_be_written_in_base64() {
        for (secret, encoding) in [("Jefe", SecretEncoding::Text), ("SmVmZQ==", SecretEncoding::Base64)] {
            let signer = SigningKey::of(secret.as_bytes(), encoding).unwrap();
            let found = logon_signature(&signer, b"what do ya want for nothing?");
            assert_eq!(hex(&found), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        }
        assert!(SigningKey::of(b"not base64!", SecretEncoding::Base64).unwrap_err().contains("base64"));
    }

    fn hex(base64: &str) -> String {
        Base64::decode_vec(base64).unwrap().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
