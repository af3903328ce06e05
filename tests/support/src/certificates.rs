//! A certificate authority made for the test, and the certificates that it signs.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate with its key, in the types of rustls.
pub type TestIdentity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

pub struct TestAuthority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl TestAuthority {
    /// Creates an authority with a new key.
    pub fn generate() -> TestAuthority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        TestAuthority { pem, issuer: Issuer::new(params, key) }
    }

    /// Returns a certificate for a name, and its key.
    pub fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_string()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// Returns the certificates that a client of this authority trusts.
    pub fn trusted(&self) -> Vec<CertificateDer<'static>> {
        vec![CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()]
    }

    /// Returns the identity of a client.
    pub fn identity(&self) -> TestIdentity {
        let (chain, key) = self.sign("client");
        let key = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).unwrap();
        (vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()], key.into())
    }
}
