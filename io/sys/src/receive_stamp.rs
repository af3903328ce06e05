//! The times at which the kernel received bytes of a socket, before a thread had its turn to read
//! them (`SO_TIMESTAMPNS`). Neither `rustix` nor `socket2` reads such control messages.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use libc::{
    MSG_DONTWAIT, SCM_TIMESTAMPNS, SO_TIMESTAMPNS, SOL_SOCKET, c_int, iovec, msghdr, recvmsg, setsockopt,
};

/// Bytes for control messages: one with a time needs 32.
const CONTROL_BYTES: usize = 64;
/// Bytes of a length, a level or type, and of both halves of a time, in a control message.
const LENGTH_BYTES: usize = size_of::<usize>();
const WORD_BYTES: usize = size_of::<c_int>();
const HALF_BYTES: usize = size_of::<i64>();

/// Aligned as the header of a control message.
#[repr(C, align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

/// Requests a time for everything that a socket receives from now on.
pub fn request_receive_stamps(socket: impl AsFd) -> io::Result<()> {
    let on: c_int = 1;
    let descriptor = socket.as_fd().as_raw_fd();
    let length = libc::socklen_t::try_from(size_of::<c_int>()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the call reads `length` bytes of `on`, which lives until it returns.
    let result =
        unsafe { setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, (&raw const on).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads what has arrived without blocking, and returns its length and the time at which the kernel
/// received the last part of it, since 1970. There is no time unless it was requested, and for
/// bytes that arrived before.
pub fn receive_stamped(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Option<Duration>)> {
    let mut part = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    // SAFETY: the header consists of integers and raw pointers, for which zero is a valid value.
    let mut header: msghdr = unsafe { mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = CONTROL_BYTES;
    // SAFETY: the call writes at most `iov_len` bytes into `buffer` and `msg_controllen` bytes into
    // `control`. Both live until it returns, and nothing else uses them meanwhile.
    let count = unsafe { recvmsg(socket.as_fd().as_raw_fd(), &raw mut header, MSG_DONTWAIT) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    let filled = header.msg_controllen.min(CONTROL_BYTES);
    Ok((count, stamp(&control.0[..filled])))
}

/// Returns the time in a control message: length, level, type, seconds, nanoseconds.
fn stamp(control: &[u8]) -> Option<Duration> {
    let (_, rest) = control.split_first_chunk::<LENGTH_BYTES>()?;
    let (level, rest) = rest.split_first_chunk::<WORD_BYTES>()?;
    let (kind, rest) = rest.split_first_chunk::<WORD_BYTES>()?;
    if (c_int::from_ne_bytes(*level), c_int::from_ne_bytes(*kind)) != (SOL_SOCKET, SCM_TIMESTAMPNS) {
        return None;
    }
    let (seconds, rest) = rest.split_first_chunk::<HALF_BYTES>()?;
    let (nanoseconds, _) = rest.split_first_chunk::<HALF_BYTES>()?;
    let seconds = u64::try_from(i64::from_ne_bytes(*seconds)).ok()?;
    Some(Duration::new(seconds, u32::try_from(i64::from_ne_bytes(*nanoseconds)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_time_is_taken_from_a_control_message() {
        let message = |kind: c_int, seconds: i64| {
            let mut bytes = 32_usize.to_ne_bytes().to_vec();
            bytes.extend(SOL_SOCKET.to_ne_bytes().into_iter().chain(kind.to_ne_bytes()));
            bytes.extend(seconds.to_ne_bytes().into_iter().chain(7_i64.to_ne_bytes()));
            bytes
        };
        let whole = message(SCM_TIMESTAMPNS, 5);
        assert_eq!(stamp(&whole), Some(Duration::new(5, 7)));
        (0..whole.len()).for_each(|length| assert_eq!(stamp(&whole[..length]), None, "{length}"));
        assert_eq!(stamp(&message(SCM_TIMESTAMPNS, -1)), None);
        assert_eq!(stamp(&message(SCM_TIMESTAMPNS + 1, 5)), None);
    }

    /// Miri does not support these calls.
    #[cfg(not(miri))]
    mod sockets {
        use std::fs::File;
        use std::io::{ErrorKind, Write};
        use std::net::{TcpListener, TcpStream};
        use std::time::{Instant, SystemTime, UNIX_EPOCH};

        use super::*;

        /// Longest wait for bytes over loopback, on a busy machine.
        const ARRIVAL_MAX: Duration = Duration::from_secs(60);

        #[test]
        fn the_kernel_stamps_what_arrives() {
            let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
            let mut sender = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
            let (receiver, _) = listener.accept().expect("a client connects");
            request_receive_stamps(&receiver).expect("a socket has this option");
            let mut buffer = [0; 64];
            let nothing = receive_stamped(&receiver, &mut buffer).expect_err("nothing was sent");
            assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
            let begin = Instant::now();
            // The kernel begins to stamp a moment after the first socket has requested it.
            let received = loop {
                assert!(begin.elapsed() < ARRIVAL_MAX, "no stamp");
                sender.write_all(b"report").expect("the receiver is open");
                let (_, stamp) = next(&receiver, &mut buffer, begin);
                if let Some(stamp) = stamp {
                    break stamp;
                }
            };
            assert_eq!(&buffer[..6], b"report");
            assert!(received <= SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970"));
            drop(sender);
            assert_eq!(next(&receiver, &mut buffer, begin).0, 0, "the end has no bytes");
        }

        fn next(receiver: &TcpStream, buffer: &mut [u8], begin: Instant) -> (usize, Option<Duration>) {
            loop {
                match receive_stamped(receiver, buffer) {
                    Ok(read) => return read,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
                assert!(begin.elapsed() < ARRIVAL_MAX, "nothing arrives");
            }
        }

        #[test]
        fn a_descriptor_that_is_not_a_socket_is_refused() {
            let file = File::open("/dev/null").expect("every system has it");
            assert!(request_receive_stamps(&file).is_err());
            assert!(receive_stamped(&file, &mut [0; 8]).is_err());
        }
    }
}
