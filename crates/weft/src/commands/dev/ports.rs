//! Ports of a development cluster.

use anyhow::bail;
use std::net::{Ipv4Addr, TcpListener};

/// Below the ports that the system gives to outgoing connections. A client that tries to reach a
/// server that is down must not be given the server's port for its own end.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A port that nobody listens at: `wanted` if it is free.
///
/// # Errors
/// When all are taken.
pub fn free_port(wanted: Option<u16>) -> anyhow::Result<u16> {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    if let Some(port) = wanted.filter(is_free) {
        return Ok(port);
    }
    // From somewhere in the middle, so that two clusters starting at once do not meet.
    let size = RANGE.end - RANGE.start;
    let start = (getrandom::u64().unwrap_or_default() % u64::from(size)) as u16;
    let ports = (0..size).map(|step| RANGE.start + (start + step) % size);
    match ports.into_iter().find(is_free) {
        Some(port) => Ok(port),
        None => bail!("every port from {} to {} is taken", RANGE.start, RANGE.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_not_given_out() {
        let port = free_port(None).unwrap();
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert_ne!(free_port(Some(port)).unwrap(), port);
    }
}
