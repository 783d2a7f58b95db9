//! How requests get here.

use std::fmt;
use std::io;
use std::str::FromStr;

use super::negotiate::Features;

const PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

/// How requests get from the kernel to the workers. With io_uring there may be 512 workers for each
/// CPU, whatever [`Threads`](super::Threads) says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// io_uring if the kernel offers it and this process may use it, else the device.
    #[default]
    Auto,
    /// Reading and writing `/dev/fuse`.
    Device,
    /// io_uring, or fail.
    Rings,
}

impl Transport {
    /// Whether to use io_uring with a kernel that offers `features`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` with what root can do about it, if it must be used and is not offered.
    pub(crate) fn wants_rings(self, features: Features) -> io::Result<bool> {
        match (self, features.contains(Features::OVER_IO_URING)) {
            (Transport::Device, _) | (Transport::Auto, false) => Ok(false),
            (Transport::Auto | Transport::Rings, true) => Ok(true),
            (Transport::Rings, false) => Err(io::Error::new(io::ErrorKind::Unsupported, refusal())),
        }
    }
}

/// Why the kernel does not offer io_uring.
fn refusal() -> String {
    match std::fs::read_to_string(PARAMETER) {
        Ok(_) => format!(
            "transport=uring: FUSE over io_uring is switched off; as root, write Y to {PARAMETER} \
             and mount again"
        ),
        Err(_) => format!(
            "transport=uring: this kernel has no FUSE over io_uring (no {PARAMETER}; it takes \
             Linux 6.14 or later, with CONFIG_FUSE_IO_URING and the module fuse loaded)"
        ),
    }
}

impl FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Transport, String> {
        match text {
            "auto" => Ok(Transport::Auto),
            "dev" => Ok(Transport::Device),
            "uring" => Ok(Transport::Rings),
            _ => Err("must be auto, dev or uring".into()),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Auto => "auto",
            Transport::Device => "dev",
            Transport::Rings => "uring",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_back_unless_told_otherwise() {
        let (with, without) = (Features::OVER_IO_URING, Features::standard());
        assert!(Transport::Auto.wants_rings(with).unwrap());
        assert!(!Transport::Auto.wants_rings(without).unwrap());
        assert!(!Transport::Device.wants_rings(with).unwrap());
        let refused = Transport::Rings.wants_rings(without).unwrap_err();
        assert!(refused.to_string().contains("enable_uring"), "{refused}");
    }

    #[test]
    fn names_are_read_back() {
        for transport in [Transport::Auto, Transport::Device, Transport::Rings] {
            assert_eq!(transport.to_string().parse(), Ok(transport));
        }
        assert!("rings".parse::<Transport>().is_err());
    }
}
