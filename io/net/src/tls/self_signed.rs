//! A self-signed certificate: created on the first start, kept in the data folder, renewed before
//! it expires.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pitlane_engine::text::date_of;
use pitlane_engine::time::Timestamp;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::{TlsError, not_after};

const CHAIN: &str = "self-signed.pem";
const KEY: &str = "self-signed.key";

/// Days for which a certificate is valid from today: with yesterday a year, which is as long as
/// verifiers accept one.
const DAYS: i32 = 364;
/// Days before the expiry in which a start creates a new one.
const RENEW_DAYS: i32 = 30;

/// Returns the files in this folder, and creates them if they do not exist or are about to expire.
pub(super) fn in_folder(folder: &Path, now: Timestamp) -> Result<(PathBuf, PathBuf), TlsError> {
    let (chain, key) = (folder.join(CHAIN), folder.join(KEY));
    let until = now.day().0 + RENEW_DAYS;
    let lasts = |pem: Vec<u8>| {
        let leaf = CertificateDer::from_pem_slice(&pem).ok()?;
        Some(not_after(&leaf)?.day().0 > until)
    };
    let is_good = fs::read(&chain).ok().and_then(lasts).unwrap_or(false) && key.exists();
    if !is_good {
        make(folder, now)?;
    }
    Ok((chain, key))
}

fn make(folder: &Path, now: Timestamp) -> Result<(), TlsError> {
    let failed = |error: rcgen::Error| TlsError::Making(error.to_string());
    let mut params = CertificateParams::new(names()).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Pitlane, self-signed");
    let date = |day: i32| {
        let (year, month, day) = date_of(day);
        let narrow = |part| u8::try_from(part).expect("a month and a day have two digits");
        date_time_ymd(year, narrow(month), narrow(day))
    };
    // The validity starts yesterday, because clocks differ.
    params.not_before = date(now.day().0 - 1);
    params.not_after = date(now.day().0 + DAYS);
    // Strict verifiers require the authority key identifier and the key usage.
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    fs::create_dir_all(folder).map_err(|error| TlsError::Io(folder.to_path_buf(), error))?;
    // The old certificate is removed first: if this is interrupted before the end, both files are
    // created again.
    let _ = fs::remove_file(folder.join(CHAIN));
    write(&folder.join(KEY), key.serialize_pem().as_bytes(), 0o600)?;
    write(&folder.join(CHAIN), certificate.pem().as_bytes(), 0o644)
}

/// Returns the names of this machine.
fn names() -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let is_name =
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    if is_name && !names.iter().any(|name| name == host) {
        names.push(host.to_string());
    }
    names
}

/// Writes a file beside its target and renames it, so that no reader ever sees half of it.
fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), TlsError> {
    let fresh = path.with_extension("new");
    let write = || {
        // A leftover of an interrupted start may have any mode.
        let _ = fs::remove_file(&fresh);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    };
    write().map_err(|error| TlsError::Io(path.to_path_buf(), error))
}
