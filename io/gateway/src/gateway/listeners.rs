//! The listeners of the gateways: bound before any thread starts, so that a port in use is reported
//! at once.
//!
//! Every gateway thread accepts from the same sockets, and each connection goes to one of them: an
//! idle thread takes it, so a busy thread takes fewer. A socket per thread (SO_REUSEPORT) would
//! distribute at random, and would lose the connections in the backlog of a thread that has ended.

use std::io;

use pitlane_config::Config;
use pitlane_net::Net;
use pitlane_net::listener::{BoundAddress, Listener, ListenerId};
use pitlane_net::settings::{BufferLimits, ListenerSettings};
use pitlane_net::tls::Tls;

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerProtocol {
    Stomp,
    Fix,
}

#[derive(Debug)]
struct BoundListener {
    name: &'static str,
    protocol: ListenerProtocol,
    listener: Listener,
}

/// The listeners of one thread: they do not accept before [`GatewayListeners::open`].
#[derive(Debug, Default)]
pub struct GatewayListeners {
    closed: Vec<BoundListener>,
    /// Protocol and local port, by [`ListenerId`].
    open: Vec<(ListenerProtocol, u16)>,
}

impl GatewayListeners {
    /// Binds all configured addresses. An error carries the config key.
    pub fn bind(config: &Config, tls: Option<&Tls>) -> Result<GatewayListeners, (&'static str, io::Error)> {
        let Config { stomp, fix, .. } = config;
        let wanted = [
            ("stomp.listen", "stomp", ListenerProtocol::Stomp, stomp.listen, false),
            ("stomp.tls_listen", "stomp+tls", ListenerProtocol::Stomp, stomp.tls_listen, true),
            ("fix.listen", "fix", ListenerProtocol::Fix, fix.listen, false),
            ("fix.tls_listen", "fix+tls", ListenerProtocol::Fix, fix.tls_listen, true),
        ];
        let mut closed = Vec::new();
        for (key, name, protocol, address, is_tls) in wanted {
            let Some(address) = address else { continue };
            let settings = ListenerSettings {
                tls: tls.filter(|_| is_tls).map(Tls::config),
                backlog: config.net.backlog as i32,
                send_kernel_bytes: config.net.send_kernel_bytes as usize,
                limits: limits(config, protocol),
                ..ListenerSettings::at(address)
            };
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
            let listener = Listener::bind(settings).map_err(|error| (key, named(error)))?;
            closed.push(BoundListener { name, protocol, listener });
        }
        Ok(GatewayListeners { closed, open: Vec::new() })
    }

    /// Returns the bound addresses, for display.
    pub fn listeners(&self) -> Vec<BoundAddress> {
        let address_of =
            |bound: &BoundListener| BoundAddress { name: bound.name, address: bound.listener.address() };
        self.closed.iter().map(address_of).collect()
    }

    /// Returns whether a listener has this protocol.
    pub fn has_protocol(&self, protocol: ListenerProtocol) -> bool {
        self.closed
            .iter()
            .map(|bound| bound.protocol)
            .chain(self.open.iter().map(|(protocol, _)| *protocol))
            .any(|found| found == protocol)
    }

    /// Returns the same listeners for another thread.
    pub fn try_clone(&self) -> io::Result<GatewayListeners> {
        let clone =
            |bound: &BoundListener| Ok(BoundListener { listener: bound.listener.try_clone()?, ..*bound });
        Ok(GatewayListeners {
            closed: self.closed.iter().map(clone).collect::<io::Result<_>>()?,
            open: Vec::new(),
        })
    }

    /// Starts accepting. Further calls have no effect.
    pub(super) fn open(&mut self, net: &mut Net) {
        for bound in self.closed.drain(..) {
            let port = bound.listener.address().port();
            let ListenerId(id) = net.listen(bound.listener);
            assert_eq!(id as usize, self.open.len(), "no other code listens on this thread");
            self.open.push((bound.protocol, port));
        }
    }

    pub(super) fn protocol(&self, listener: ListenerId) -> Option<ListenerProtocol> {
        self.open.get(listener.0 as usize).map(|(protocol, _)| *protocol)
    }

    /// Returns the local port of this listener.
    pub(super) fn port(&self, listener: ListenerId) -> u16 {
        self.open.get(listener.0 as usize).map_or(0, |(_, port)| *port)
    }
}

/// Returns the buffer limits of one connection: bytes received and not decoded yet, and bytes
/// encoded and not sent yet.
fn limits(config: &Config, protocol: ListenerProtocol) -> BufferLimits {
    match protocol {
        // The broker takes received bytes at once, and output stays in the session until the socket
        // takes it.
        ListenerProtocol::Stomp => BufferLimits::default(),
        ListenerProtocol::Fix => BufferLimits {
            // Two messages, so that a message after a long one is not blocked.
            input_bytes_max: 2 * config.fix.message_bytes_max,
            output_bytes_max: config.fix.out_buffer_bytes,
        },
    }
}
