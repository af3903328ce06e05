//! Authentication and encryption: `[tls]` and `[auth]`.

use std::path::PathBuf;

use super::section::Section;

/// Certificate files; without them, a self-signed certificate in the data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// None: clients need no certificate.
    pub client_ca: Option<PathBuf>,
}

impl TlsConfig {
    pub(super) fn read(section: &mut Section<'_>) -> TlsConfig {
        TlsConfig {
            cert: section.path("cert"),
            key: section.path("key"),
            client_ca: section.path("client_ca"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthConfig {
    pub mode: AuthMode,
    pub allow_plaintext: bool,
    pub users_file: Option<PathBuf>,
    pub tokens_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Login is required only if a listener is not on loopback.
    Auto,
    Required,
    Off,
}

impl AuthConfig {
    pub(super) fn read(section: &mut Section<'_>) -> AuthConfig {
        AuthConfig {
            mode: section.word(
                "mode",
                &[("auto", AuthMode::Auto), ("required", AuthMode::Required), ("off", AuthMode::Off)],
            ),
            allow_plaintext: section.flag("allow_plaintext"),
            users_file: section.path("users_file"),
            tokens_file: section.path("tokens_file"),
        }
    }
}
