//! A proxy to the broker that can be held: bytes sent meanwhile arrive when it is released, however
//! long ago their sender ended.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

pub(crate) struct LinkProxy {
    address: SocketAddr,
    gate: Arc<ProxyGate>,
}

#[derive(Default)]
struct ProxyGate {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl LinkProxy {
    /// Creates a proxy to a broker on this port.
    pub(crate) fn before(port: u16) -> LinkProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gate = Arc::new(ProxyGate::default());
        let passage = gate.clone();
        // Threads that wait for a socket end with the process at the latest.
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
                for (from, to) in [(near, far), back] {
                    let gate = passage.clone();
                    thread::spawn(move || flow(from, to, &gate));
                }
            }
        });
        LinkProxy { address, gate }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub(crate) fn shut(&self) {
        *self.gate.is_shut.lock().unwrap() = true;
    }

    pub(crate) fn open(&self) {
        *self.gate.is_shut.lock().unwrap() = false;
        self.gate.opened.notify_all();
    }
}

/// Passes all bytes on, at the latest when the gate opens, and the end too.
fn flow(mut from: TcpStream, mut to: TcpStream, gate: &ProxyGate) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = from.read(&mut buffer).unwrap_or(0);
        let is_shut = gate.is_shut.lock().unwrap();
        drop(gate.opened.wait_while(is_shut, |is_shut| *is_shut).unwrap());
        if length == 0 || to.write_all(&buffer[..length]).is_err() {
            let _ = to.shutdown(std::net::Shutdown::Write);
            return;
        }
    }
}
