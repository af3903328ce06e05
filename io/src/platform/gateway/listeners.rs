//! Where clients of gateways come in: bound before any thread starts, so that a port in use is told at once.
//!
//! Every gateway thread accepts from the same sockets, and each connection comes to one of them: whoever is awake takes it, so
//! a busy thread takes fewer. A socket of its own for each (SO_REUSEPORT) would spread by chance, and lose who waits in the
//! line of a thread that has ended.

use std::io;

use crate::config::Config;
use crate::net::Net;
use crate::net::listener::{BoundAddress, Listener, ListenerId};
use crate::net::settings::{Limits, ListenerSettings};
use crate::tls::Tls;

/// What is spoken behind a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Stomp,
    Fix,
}

#[derive(Debug)]
struct BoundListener {
    name: &'static str,
    protocol: Protocol,
    listener: Listener,
}

/// The doors of one thread: not open before [`Listeners::open`].
#[derive(Debug, Default)]
pub struct Listeners {
    closed: Vec<BoundListener>,
    /// By [`ListenerId`].
    open: Vec<(Protocol, u16)>,
}

impl Listeners {
    /// Binds all that the config names. The key of the one that fails is told with its error.
    pub fn bind(config: &Config, tls: Option<&Tls>) -> Result<Listeners, (&'static str, io::Error)> {
        let Config { stomp, fix, .. } = config;
        let wanted = [
            ("stomp.listen", "stomp", Protocol::Stomp, stomp.listen, false),
            ("stomp.tls_listen", "stomp+tls", Protocol::Stomp, stomp.tls_listen, true),
            ("fix.listen", "fix", Protocol::Fix, fix.listen, false),
            ("fix.tls_listen", "fix+tls", Protocol::Fix, fix.tls_listen, true),
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
        Ok(Listeners { closed, open: Vec::new() })
    }

    /// Where they are, for people.
    pub fn listeners(&self) -> Vec<BoundAddress> {
        let told = |door: &BoundListener| BoundAddress { name: door.name, address: door.listener.address() };
        self.closed.iter().map(told).collect()
    }

    /// Whether anybody can come to speak this.
    pub fn lead_to(&self, protocol: Protocol) -> bool {
        self.closed
            .iter()
            .map(|door| door.protocol)
            .chain(self.open.iter().map(|(protocol, _)| *protocol))
            .any(|to| to == protocol)
    }

    /// The same doors for another thread.
    pub fn try_clone(&self) -> io::Result<Listeners> {
        let clone =
            |door: &BoundListener| Ok(BoundListener { listener: door.listener.try_clone()?, ..*door });
        Ok(Listeners { closed: self.closed.iter().map(clone).collect::<io::Result<_>>()?, open: Vec::new() })
    }

    /// Lets people in. Once is enough.
    pub(super) fn open(&mut self, net: &mut Net) {
        for door in self.closed.drain(..) {
            let port = door.listener.address().port();
            let ListenerId(id) = net.listen(door.listener);
            assert_eq!(id as usize, self.open.len(), "nobody else listens on this thread");
            self.open.push((door.protocol, port));
        }
    }

    pub(super) fn protocol(&self, listener: ListenerId) -> Option<Protocol> {
        self.open.get(listener.0 as usize).map(|(protocol, _)| *protocol)
    }

    /// Where people come to who come in there.
    pub(super) fn port(&self, listener: ListenerId) -> u16 {
        self.open.get(listener.0 as usize).map_or(0, |(_, port)| *port)
    }
}

/// What one connection may take: the rest of what is received and not understood yet, and of what is said and not sent.
fn limits(config: &Config, protocol: Protocol) -> Limits {
    match protocol {
        // What is received is taken at once, and what is said stays in the session until the system takes it.
        Protocol::Stomp => Limits::default(),
        Protocol::Fix => Limits {
            // Two, so that a message that follows a long one is not in its way.
            input_bytes_max: 2 * config.fix.message_bytes_max,
            output_bytes_max: config.fix.out_buffer_bytes,
        },
    }
}
