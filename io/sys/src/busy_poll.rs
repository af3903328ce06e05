//! Busy polling of an epoll descriptor: while a thread waits in `epoll_wait` the kernel polls the
//! network card itself instead of waiting for an interrupt. Requires Linux 6.9 or newer; older
//! systems return an error. `socket2` sets `SO_BUSY_POLL` of a single socket, with a safe call.

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Getter, Opcode, Setter, ioctl, opcode};

/// The polling parameters of an epoll descriptor, as `epoll_params` of `linux/eventpoll.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyPoll {
    /// Time to poll before the thread blocks, in microseconds, at most `i32::MAX`; 0 disables
    /// polling.
    pub usecs: u32,
    /// Packets processed per poll; 0 for the kernel's default. A value above 64 requires
    /// CAP_NET_ADMIN.
    pub budget: u16,
    /// Whether polling takes precedence over interrupts, which are deferred meanwhile.
    pub prefer: bool,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct EpollParams {
    busy_poll_usecs: u32,
    busy_poll_budget: u16,
    prefer_busy_poll: u8,
    /// Must be zero.
    pad: u8,
}

/// Type number of epoll's ioctl requests.
const EPOLL_IOC_TYPE: u8 = 0x8a;
const EPIOCSPARAMS: Opcode = opcode::write::<EpollParams>(EPOLL_IOC_TYPE, 1);
const EPIOCGPARAMS: Opcode = opcode::read::<EpollParams>(EPOLL_IOC_TYPE, 2);

/// Sets the polling parameters of an epoll descriptor.
pub fn set_busy_poll(epoll: impl AsFd, params: BusyPoll) -> io::Result<()> {
    let params = EpollParams {
        busy_poll_usecs: params.usecs,
        busy_poll_budget: params.budget,
        prefer_busy_poll: params.prefer.into(),
        pad: 0,
    };
    // SAFETY: the number and the layout are those of the kernel's header.
    let request = unsafe { Setter::<EPIOCSPARAMS, EpollParams>::new(params) };
    // SAFETY: the call reads eight bytes of `params`, which lives until it returns. The type number
    // is epoll's own, so a descriptor of another kind returns an error.
    unsafe { ioctl(epoll, request) }?;
    Ok(())
}

/// Returns the polling parameters of an epoll descriptor.
pub fn busy_poll(epoll: impl AsFd) -> io::Result<BusyPoll> {
    // SAFETY: the number and the layout are those of the kernel's header, and a success fills all
    // of it.
    let request = unsafe { Getter::<EPIOCGPARAMS, EpollParams>::new() };
    // SAFETY: the call writes eight bytes into `request`, which lives until it returns, and any
    // bytes are a valid value. The type number is epoll's own, as above.
    let params = unsafe { ioctl(epoll, request) }?;
    Ok(BusyPoll {
        usecs: params.busy_poll_usecs,
        budget: params.busy_poll_budget,
        prefer: params.prefer_busy_poll != 0,
    })
}

// Miri does not support this call.
#[cfg(all(test, not(miri)))]
mod tests {
    use std::fs::File;

    use rustix::event::epoll;

    use super::*;

    #[test]
    fn the_request_numbers_are_those_of_the_header() {
        assert_eq!((EPIOCSPARAMS, EPIOCGPARAMS), (0x4008_8a01, 0x8008_8a02));
        assert_eq!(size_of::<EpollParams>(), 8);
    }

    #[test]
    fn parameters_are_kept_where_the_kernel_supports_them() {
        let descriptor = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll is there");
        let params = BusyPoll { usecs: 50, budget: 8, prefer: true };
        match set_busy_poll(&descriptor, params) {
            Ok(()) => assert_eq!(busy_poll(&descriptor).expect("what was set can be read"), params),
            // The kernel is older than Linux 6.9, or has no busy polling, or this is a sandbox.
            Err(error) => println!("busy polling is not to be had here: {error}"),
        }
    }

    #[test]
    fn a_descriptor_that_is_not_epoll_is_refused() {
        let file = File::open("/dev/null").expect("every system has it");
        assert!(set_busy_poll(&file, BusyPoll::default()).is_err());
        assert!(busy_poll(&file).is_err());
    }
}
