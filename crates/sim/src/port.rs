//! A reserved TCP port.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

/// A free port on loopback, reserved until this is dropped.
///
/// Choosing a free port and releasing it would be a race: another test or an outgoing connection may get it
/// before the service listens, or while the service is down. A socket that is bound and never listens reserves
/// it. Because both sides set `SO_REUSEADDR`, the service can still listen on it.
pub(crate) struct Port {
    number: u16,
    _kept: OwnedFd,
}

impl Port {
    pub(crate) fn free() -> Self {
        let flags = SocketFlags::CLOEXEC;
        let kept = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
        let kept = kept.expect("a socket");
        sockopt::set_socket_reuseaddr(&kept, true).expect("an address that may be used again");
        bind(&kept, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
        let address = getsockname(&kept).expect("the address of a bound socket");
        let address = SocketAddr::try_from(address).expect("an internet address");
        Self { number: address.port(), _kept: kept }
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_kept_port_is_refused_or_served_and_never_given_away() {
        let port = Port::free();
        let address = (Ipv4Addr::LOCALHOST, port.number());
        for _ in 0..3 {
            assert!(TcpStream::connect(address).is_err(), "nobody listens");
            let listener = TcpListener::bind(address).unwrap();
            let client = TcpStream::connect(address).unwrap();
            drop((listener.accept().unwrap(), client));
        }
        let others: Vec<_> = std::iter::repeat_with(Port::free).take(200).collect();
        assert!(others.iter().all(|other| other.number() != port.number()));
    }
}
