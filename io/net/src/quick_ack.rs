//! Immediate acknowledgement of received bytes.

use socket2::SockRef;

/// Makes the system acknowledge received bytes at once. Unless the peer has disabled Nagle's
/// algorithm, it waits for the acknowledgement before it sends more, and if there is no answer to
/// carry it the system delays it by 40 ms: after the last message of a handshake, for example.
pub fn acknowledge<'a, S>(stream: &'a S)
where
    SockRef<'a>: From<&'a S>,
{
    #[cfg(target_os = "linux")]
    {
        // Without it the connection works, with higher latency.
        _ = SockRef::from(stream).set_tcp_quickack(true);
    }
}
