//! What is mounted, as it stands in the first column of fstab(5).

use std::fmt;
use std::str::FromStr;

/// Where servers listen unless told otherwise.
pub const DEFAULT_PORT: u16 = 7420;

/// Managers, and the part of the volume that is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Addresses of the managers.
    pub managers: Vec<String>,
    /// Path within the volume; empty for all.
    pub subtree: String,
}

impl FromStr for Device {
    type Err = String;

    /// `HOST[:PORT][,HOST[:PORT]...][:][/SUBTREE]`, or `unix:/SOCKET` (then without a subtree).
    fn from_str(text: &str) -> Result<Device, String> {
        if text.starts_with("unix:") {
            let managers = text.split(',').map(with_port).collect();
            return Ok(Device { managers, subtree: String::new() });
        }
        let (hosts, subtree) = match text.find('/') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let hosts = hosts.strip_suffix(':').unwrap_or(hosts);
        if hosts.is_empty() {
            return Err(format!("no manager in {text:?}; expected HOST[:PORT][/SUBTREE]"));
        }
        let managers = hosts.split(',').map(with_port).collect();
        Ok(Device { managers, subtree: subtree.trim_matches('/').to_string() })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.managers.join(","))?;
        if self.subtree.is_empty() { Ok(()) } else { write!(f, ":/{}", self.subtree) }
    }
}

/// An address with the port where servers listen unless told otherwise.
pub fn with_port(address: &str) -> String {
    let address = address.trim();
    let is_bare_v6 = address.starts_with('[') && address.ends_with(']');
    let has_port = address.starts_with("unix:") || (address.contains(':') && !is_bare_v6);
    if has_port { address.to_string() } else { format!("{address}:{DEFAULT_PORT}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        let device = |text: &str| text.parse::<Device>().unwrap();
        assert_eq!(device("mgr").managers, ["mgr:7420"]);
        assert_eq!(device("a,b:99:/home/x").managers, ["a:7420", "b:99"]);
        assert_eq!(device("a,b:99:/home/x").subtree, "home/x");
        assert_eq!(device("a:99/home"), device("a:99:/home/"));
        assert_eq!(device("[::1]/x").managers, ["[::1]:7420"]);
        assert_eq!(device("unix:/run/weft.sock").managers, ["unix:/run/weft.sock"]);
        assert!("".parse::<Device>().is_err() && "/x".parse::<Device>().is_err());
        for text in ["a:1", "a:1,b:2:/x", "unix:/s"] {
            assert_eq!(device(text).to_string(), text);
        }
    }
}
