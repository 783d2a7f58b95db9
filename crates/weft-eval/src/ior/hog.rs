//! Memory that is held while a test runs, so that the page cache cannot have it (`-M`).

use crate::ranks::comm::Comm;
use crate::record::memory;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::str::FromStr;
use weft_model::units::{format_size, parse_size};

/// How much memory of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// A hundredth part of all of it, 1 to 99.
    Percent(u64),
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Amount, String> {
        match text.strip_suffix('%').map(str::parse) {
            None => parse_size(text).map(Amount::Bytes),
            Some(Ok(percent @ 1..=99)) => Ok(Amount::Percent(percent)),
            Some(_) => Err(format!("not a share of memory: {text:?}; expected 1% to 99%")),
        }
    }
}

impl Amount {
    /// Of a machine with `memory` bytes.
    fn of(self, memory: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(percent) => memory / 100 * percent,
        }
    }
}

/// Memory in use until it is dropped.
pub struct Hog(#[expect(dead_code, reason = "it is only there")] Vec<u8>);

impl Hog {
    /// This rank's part of what all ranks of its machine hold together.
    ///
    /// # Errors
    /// `OutOfMemory` where the machine has less to give, and those of other ranks.
    pub fn hold(amount: Amount, comm: &Comm) -> io::Result<Hog> {
        let wanted = amount.of(memory("MemTotal"));
        let there = memory("MemAvailable");
        if wanted > there {
            let (wanted, there) = (format_size(wanted), format_size(there));
            let why = format!("-M: {wanted} of memory are asked for, {there} are available");
            return Err(io::Error::new(ErrorKind::OutOfMemory, why));
        }
        // All have looked before anybody takes some.
        comm.barrier()?;
        let mut held = Vec::new();
        let own = usize::try_from(wanted / u64::from(comm.per_node().max(1)));
        let own = own.map_err(io::Error::other)?;
        held.try_reserve_exact(own).map_err(|_| ErrorKind::OutOfMemory)?;
        // The kernel gives a page when it is written to.
        held.resize(own, 1);
        Ok(Hog(std::hint::black_box(held)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_sizes_and_shares() {
        assert_eq!("2g".parse(), Ok(Amount::Bytes(2 << 30)));
        assert_eq!("75%".parse::<Amount>().unwrap().of(1000), 750);
        assert_eq!("64m".parse::<Amount>().unwrap().of(1000), 64 << 20);
        for wrong in ["0%", "100%", "%", "1.5%", "x"] {
            assert!(wrong.parse::<Amount>().is_err(), "{wrong}");
        }
    }
}
