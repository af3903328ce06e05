//! The sockets on which this server accepts strategies.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pitlane_config::StrategyTransport;
use pitlane_net::listener::BoundAddress;
use pitlane_net::tls::Tls;
use rustls::ServerConfig;

use crate::listen;
use crate::remote_strategies::RemoteStrategiesParts;

/// Key of the address in the settings.
pub(crate) const KEY: &str = "strategies.listen";
const SOCKET_KEY: &str = "strategies.unix_socket";

/// Longest path of a Unix socket in bytes, on Linux.
const PATH_BYTES_MAX: usize = 107;

#[derive(Debug, Default)]
pub(crate) struct LinkListeners {
    pub(super) tcp: Option<(TcpListener, Option<Arc<ServerConfig>>)>,
    pub(super) unix: Option<(UnixListener, SocketFile)>,
}

/// The file of a Unix socket, which is removed at the end.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl LinkListeners {
    /// Binds the sockets that the settings name. An error carries the config key.
    pub(crate) fn bind(
        parts: &RemoteStrategiesParts,
        tls: Option<&Tls>,
    ) -> Result<LinkListeners, (&'static str, io::Error)> {
        let mut listeners = LinkListeners::default();
        if parts.link.transport == StrategyTransport::Nats {
            return Ok(listeners);
        }
        if let Some((address, is_tls)) = parts.link.listener() {
            let tls = tls.filter(|_| is_tls).map(Tls::config);
            if is_tls && tls.is_none() {
                let problem = "a listener with TLS needs a certificate";
                return Err((KEY, io::Error::new(io::ErrorKind::InvalidInput, problem)));
            }
            listeners.tcp = Some((listen::bind(address).map_err(|error| (KEY, error))?, tls));
        }
        if let Some(path) = &parts.socket {
            listeners.unix = bind_socket(path).map_err(|error| (SOCKET_KEY, error))?;
        }
        Ok(listeners)
    }

    /// Returns the address of the TCP listener.
    pub(crate) fn address(&self) -> io::Result<Option<BoundAddress>> {
        let Some((listener, tls)) = &self.tcp else { return Ok(None) };
        let name = if tls.is_some() { "strategies+tls" } else { "strategies" };
        Ok(Some(BoundAddress { name, address: listener.local_addr()? }))
    }
}

/// Binds a Unix socket that only its owner may use. A path that is too long for a socket is
/// reported and gives none: the default must not keep a service from starting.
fn bind_socket(path: &Path) -> io::Result<Option<(UnixListener, SocketFile)>> {
    let whole = std::path::absolute(path)?;
    if path.as_os_str().as_bytes().len() > PATH_BYTES_MAX {
        tracing::warn!(path = %whole.display(), "the path is too long for a Unix socket: strategies connect over TCP");
        return Ok(None);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", whole.display()));
    remove_stale(path).map_err(named)?;
    let listener = UnixListener::bind(path).map_err(named)?;
    let file = SocketFile(whole.clone());
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(named)?;
    listener.set_nonblocking(true)?;
    Ok(Some((listener, file)))
}

/// Removes the socket of a process that was killed.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = match fs::symlink_metadata(path) {
        Ok(about) => about.file_type().is_socket(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !is_socket {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists and is not a socket"));
    }
    if UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there"));
    }
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_private_replaces_a_dead_one_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("pitlane-link-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let path = folder.join("strategies.sock");
        let (listener, file) = bind_socket(&path).unwrap().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(bind_socket(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // A killed process leaves the file.
        std::mem::forget(file);
        drop(listener);
        let (_listener, file) = bind_socket(&path).unwrap().unwrap();
        drop(file);
        assert!(!path.exists());
        fs::write(&path, "not a socket").unwrap();
        assert_eq!(bind_socket(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let long = folder.join("x".repeat(PATH_BYTES_MAX));
        assert!(bind_socket(&long).unwrap().is_none());
        fs::remove_dir_all(&folder).unwrap();
    }
}
