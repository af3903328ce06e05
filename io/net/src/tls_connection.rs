//! TLS of one connection: translates between the bytes on the wire and the bytes of the gateway.
//!
//! rustls handles the records; nothing here blocks. Unlike plain text, each record costs an
//! allocation in rustls.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, InvalidMessage, ServerConfig, ServerConnection};

use super::driver::SocketStream;
use super::event::CloseReason;
use super::input::{SocketInput, SpareBuffers};
use super::output::SocketOutput;

/// Maximum number of encrypted bytes that wait for the system; the rest waits in plain text, where
/// the gateway limits it.
const RECORDS_BYTES_MAX: usize = 64 * 1024;

pub(super) struct TlsSession {
    connection: Connection,
    /// Whether the peer sent close_notify.
    pub(super) peer_closed: bool,
    close_notify_sent: bool,
    /// Encrypted bytes that the previous driver of the socket had taken and could not send. They
    /// come before all others.
    carried: SocketOutput,
}

impl TlsSession {
    pub(super) fn new(config: Arc<ServerConfig>) -> Result<TlsSession, rustls::Error> {
        ServerConnection::new(config).map(|connection| TlsSession::of(connection.into()))
    }

    /// Creates the client side, for a peer that must prove this name.
    pub(super) fn client(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<TlsSession, rustls::Error> {
        ClientConnection::new(config, name).map(|connection| TlsSession::of(connection.into()))
    }

    fn of(mut connection: Connection) -> TlsSession {
        connection.set_buffer_limit(Some(RECORDS_BYTES_MAX));
        TlsSession {
            connection,
            peer_closed: false,
            close_notify_sent: false,
            carried: SocketOutput::default(),
        }
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    pub(super) fn wants_write(&self) -> bool {
        self.carried.pending() > 0 || self.connection.wants_write()
    }

    /// Takes over encrypted bytes that come before all others.
    pub(super) fn carry(&mut self, bytes: &[u8]) {
        self.carried.prepend(bytes);
    }

    /// Processes received bytes. Plain text goes to `input`; answers wait for `write`.
    pub(super) fn decrypt(
        &mut self,
        mut wire: &[u8],
        input: &mut SocketInput,
        spare: &mut SpareBuffers,
    ) -> Result<(), CloseReason> {
        while !wire.is_empty() && !self.peer_closed {
            let handshaking = self.is_handshaking();
            let taken = self.connection.read_tls(&mut wire).map_err(|error| CloseReason::of(&error))?;
            assert!(taken > 0, "records are processed as soon as they are there, so there is room");
            let state =
                self.connection.process_new_packets().map_err(|error| close_reason(&error, handshaking))?;
            self.peer_closed = state.peer_has_closed();
            let count = state.plaintext_bytes_to_read();
            if count > 0 {
                let reserve = input.reserve(spare, count);
                self.connection.reader().read_exact(reserve).map_err(|error| CloseReason::of(&error))?;
                input.filled(count);
            }
        }
        Ok(())
    }

    /// Encrypts as much of `output` as fits.
    pub(super) fn encrypt(&mut self, output: &mut SocketOutput) -> io::Result<()> {
        if output.pending() > 0 {
            let count = self.take(output.unsent())?;
            output.sent(count);
        }
        Ok(())
    }

    /// Encrypts as much as fits, and returns how much.
    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_handshaking() { Ok(0) } else { self.connection.writer().write(bytes) }
    }

    /// Writes encrypted bytes, in one system call.
    pub(super) fn write(&mut self, stream: &mut SocketStream) -> io::Result<usize> {
        if self.carried.pending() > 0 {
            return stream.write(self.carried.unsent()).inspect(|&count| self.carried.sent(count));
        }
        self.connection.write_tls(stream)
    }

    /// Sends close_notify after all output, which proves to the peer that nothing was cut off.
    pub(super) fn send_close_notify(&mut self) {
        if !self.close_notify_sent {
            self.close_notify_sent = true;
            self.connection.send_close_notify();
        }
    }
}

fn close_reason(error: &rustls::Error, handshaking: bool) -> CloseReason {
    let is_foreign = matches!(
        error,
        rustls::Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion
        )
    );
    if handshaking && is_foreign { CloseReason::NotTls } else { CloseReason::TlsFailed }
}
