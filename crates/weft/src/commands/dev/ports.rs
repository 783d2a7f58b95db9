//! Ports of a development cluster.

use anyhow::bail;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Below the ports that the system gives to outgoing connections. A client that tries to reach a
/// server that is down must not be given the server's port for its own end.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A port that nobody listens at and no other `weft dev` is about to use, as long as this lives.
pub struct Claim {
    /// The port.
    pub port: u16,
    _name: UnixDatagram,
}

impl Claim {
    /// Claims `wanted` if it is free, or else another one.
    ///
    /// # Errors
    /// When all are taken.
    pub fn any(wanted: Option<u16>) -> anyhow::Result<Claim> {
        if let Some(claim) = wanted.and_then(Claim::of) {
            return Ok(claim);
        }
        // From somewhere in the middle, so that two clusters starting at once do not meet.
        let size = RANGE.end - RANGE.start;
        let start = (getrandom::u64().unwrap_or_default() % u64::from(size)) as u16;
        let mut ports = (0..size).map(|step| RANGE.start + (start + step) % size);
        match ports.find_map(Claim::of) {
            Some(claim) => Ok(claim),
            None => bail!("every port from {} to {} is taken", RANGE.start, RANGE.end),
        }
    }

    /// Claims this port if it is free. The claim is a name that only one process can have: between the look
    /// at the port and the server that listens there, another cluster's `weft dev` may look as well.
    fn of(port: u16) -> Option<Claim> {
        let name = SocketAddr::from_abstract_name(format!("weft-dev-port-{port}")).ok()?;
        let claim = Claim { port, _name: UnixDatagram::bind_addr(&name).ok()? };
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_or_claimed_is_not_given_out() {
        let claim = Claim::any(None).unwrap();
        let port = claim.port;
        assert_ne!(Claim::any(Some(port)).unwrap().port, port);
        drop(claim);
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert_ne!(Claim::any(Some(port)).unwrap().port, port);
    }
}
