//! Clients at several addresses: every address of 127.0.0.0/8 is this machine.

use std::net::{SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

use crate::patience::PATIENCE;

/// Connects from 127.0.0.`last`.
pub fn connect_from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, last], 0)).into()).expect("loopback has many addresses");
    socket.connect(&to.into()).expect("it listens");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket has a timeout");
    stream.set_nodelay(true).expect("a socket can be quick");
    stream
}
