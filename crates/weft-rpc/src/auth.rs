//! The door lock: a key file, and proofs of knowing it that never send it.
//!
//! A cluster has one master key. From it follows a key for each role, so that a machine that only
//! mounts need not hold what a server needs: `role key = HMAC-SHA256(master, "weft role " + name)`.
//! Both sides of a connection prove the role's key by HMAC-SHA256 over both sides' random numbers
//! (RFC 2104; the scheme is that of ISO/IEC 9798-4, mutual three-pass).

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;
use weft_model::{ErrorKind, FsError, Result};

/// Length of keys, nonces and proofs in bytes.
pub const KEY_LEN: usize = 32;

/// What a peer is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// A server of the cluster.
    Server = 1,
    /// A mount or another user of the client library.
    Client = 2,
    /// An operator's command.
    Admin = 3,
}

impl Role {
    /// From the number in the handshake.
    pub const fn from_wire(number: u32) -> Option<Role> {
        match number {
            1 => Some(Role::Server),
            2 => Some(Role::Client),
            3 => Some(Role::Admin),
            _ => None,
        }
    }

    /// As it stands in key files.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Server => "server",
            Role::Client => "client",
            Role::Admin => "admin",
        }
    }
}

/// What a key file holds: the master key, or the key of one role.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey {
    role: Option<Role>,
    key: [u8; KEY_LEN],
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterKey({})", self.role.map_or("master", Role::name))
    }
}

impl ClusterKey {
    /// A new master key.
    ///
    /// # Errors
    /// `Io` when the system has no randomness.
    pub fn generate() -> Result<ClusterKey> {
        Ok(ClusterKey { role: None, key: nonce()? })
    }

    /// Reads the text of a key file: `weft-key 1 ROLE HEX`.
    ///
    /// # Errors
    /// `Invalid`, without repeating what was read.
    pub fn parse(text: &str) -> Result<ClusterKey> {
        let bad = || {
            FsError::new(ErrorKind::Invalid, "read key file")
                .because("expected a line `weft-key 1 master|server|client|admin HEX`")
        };
        let mut words = text.split_whitespace();
        if (words.next(), words.next()) != (Some("weft-key"), Some("1")) {
            return Err(bad());
        }
        let role = match words.next() {
            Some("master") => None,
            Some("server") => Some(Role::Server),
            Some("client") => Some(Role::Client),
            Some("admin") => Some(Role::Admin),
            _ => return Err(bad()),
        };
        let hex = words
            .next()
            .filter(|hex| hex.len() == 2 * KEY_LEN && hex.is_ascii())
            .ok_or_else(bad)?;
        let mut key = [0u8; KEY_LEN];
        for (byte, pair) in key.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(pair).map_err(|_| bad())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
        }
        Ok(ClusterKey { role, key })
    }

    /// The text of a key file. Files that hold it must have mode 0600.
    pub fn to_text(&self) -> String {
        let hex: String = self.key.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("weft-key 1 {} {hex}\n", self.role.map_or("master", Role::name))
    }

    /// The key of one role, to hand to machines that need no more.
    ///
    /// # Errors
    /// `Denied` when this is the key of another role.
    pub fn for_role(&self, role: Role) -> Result<ClusterKey> {
        match self.role {
            None => {
                let label = format!("weft role {}", role.name());
                Ok(ClusterKey { role: Some(role), key: mac(&self.key, &[label.as_bytes()]) })
            }
            Some(own) if own == role => Ok(self.clone()),
            Some(own) => Err(FsError::new(ErrorKind::Denied, "use key").because(format_args!(
                "this is the {} key; a {} needs its own or the master key",
                own.name(),
                role.name()
            ))),
        }
    }

    /// Proof of knowing this key. `side` tells the two directions apart.
    pub fn prove(&self, side: Side, hello: &[u8], challenge: &[u8]) -> [u8; KEY_LEN] {
        let length = (hello.len() as u64).to_le_bytes();
        mac(&self.key, &[side.label(), &length, hello, challenge])
    }

    /// Checks the other side's proof in constant time.
    pub fn verify(&self, side: Side, hello: &[u8], challenge: &[u8], proof: &[u8]) -> bool {
        let length = (hello.len() as u64).to_le_bytes();
        keyed(&self.key, &[side.label(), &length, hello, challenge]).verify_slice(proof).is_ok()
    }
}

/// Which side of a connection proves something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The one that connects.
    Connecting,
    /// The one that accepts.
    Accepting,
}

impl Side {
    const fn label(self) -> &'static [u8] {
        match self {
            Side::Connecting => b"weft connecting",
            Side::Accepting => b"weft accepting",
        }
    }
}

/// A fresh random number.
///
/// # Errors
/// `Io` when the system has none.
pub fn nonce() -> Result<[u8; KEY_LEN]> {
    let mut nonce = [0u8; KEY_LEN];
    getrandom::fill(&mut nonce)
        .map_err(|error| FsError::new(ErrorKind::Io, "get randomness").because(error))?;
    Ok(nonce)
}

fn keyed(key: &[u8; KEY_LEN], parts: &[&[u8]]) -> Hmac<Sha256> {
    // HMAC takes keys of any length, so this cannot fail.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!());
    parts.iter().for_each(|part| mac.update(part));
    mac
}

fn mac(key: &[u8; KEY_LEN], parts: &[&[u8]]) -> [u8; KEY_LEN] {
    keyed(key, parts).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_files_round_trip_and_are_checked() {
        let key = ClusterKey::generate().unwrap();
        assert_eq!(ClusterKey::parse(&key.to_text()).unwrap(), key);
        for bad in ["", "weft-key 1 master 00", "weft-key 2 master", "key"] {
            assert!(ClusterKey::parse(bad).is_err());
        }
        assert!(!format!("{key:?}").contains(&key.to_text()[16..40]));
    }

    #[test]
    fn roles_have_their_own_keys() {
        let master = ClusterKey::generate().unwrap();
        let client = master.for_role(Role::Client).unwrap();
        let server = master.for_role(Role::Server).unwrap();
        assert_ne!(client, server);
        assert_eq!(client.for_role(Role::Client).unwrap(), client);
        assert_eq!(client.for_role(Role::Server).unwrap_err().kind, ErrorKind::Denied);
    }

    #[test]
    fn proofs_bind_side_and_transcript() {
        let key = ClusterKey::generate().unwrap();
        let proof = key.prove(Side::Connecting, b"hello", b"challenge");
        assert!(key.verify(Side::Connecting, b"hello", b"challenge", &proof));
        assert!(!key.verify(Side::Accepting, b"hello", b"challenge", &proof));
        assert!(!key.verify(Side::Connecting, b"helloc", b"hallenge", &proof));
        assert!(!key.verify(Side::Connecting, b"hello", b"challenge", &[]));
        let other = ClusterKey::generate().unwrap();
        assert!(!other.verify(Side::Connecting, b"hello", b"challenge", &proof));
    }
}
