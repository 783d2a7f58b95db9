//! Names of directory entries: what is a name, and its place in the order of a directory.

use crate::error::{ErrorKind, FsError, Result};

/// Longest name in bytes.
pub const NAME_MAX: usize = 255;
/// Longest target of a symbolic link in bytes.
pub const SYMLINK_MAX: usize = 4095;

/// Checks that `name` can name an entry: 1 to 255 bytes, no `/`, no NUL, not `.` or `..`.
///
/// # Errors
/// `NameTooLong`, or `Invalid` for the rest. Any other bytes are fine; no encoding is assumed.
pub fn check(name: &[u8]) -> Result<()> {
    if name.len() > NAME_MAX {
        return Err(FsError::new(ErrorKind::NameTooLong, "name"));
    }
    let dots = name == b"." || name == b"..";
    if name.is_empty() || dots || name.iter().any(|&byte| byte == b'/' || byte == 0) {
        return Err(FsError::new(ErrorKind::Invalid, "name"));
    }
    Ok(())
}

/// First position that an ordinary entry can have; 0 is the start, 1 and 2 are `.` and `..`.
pub const FIRST_POSITION: u64 = 3;

/// Place of a name in its directory's order: 62 bits of XXH3, never below [`FIRST_POSITION`].
///
/// `readdir` walks in this order and `telldir` returns it, so a position stays valid whatever comes
/// and goes. It fits a non-negative `off_t`. Entries with the same hash are ordered by name and are
/// returned together.
pub fn position(name: &[u8]) -> u64 {
    let hash = xxhash_rust::xxh3::xxh3_64(name) >> 2;
    hash.max(FIRST_POSITION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(check(b"a").is_ok() && check(&[0xff; 255]).is_ok() && check(b"...").is_ok());
        for bad in [&b""[..], b".", b"..", b"a/b", b"a\0"] {
            assert_eq!(check(bad).unwrap_err().kind, ErrorKind::Invalid);
        }
        assert_eq!(check(&[b'x'; 256]).unwrap_err().kind, ErrorKind::NameTooLong);
    }

    #[test]
    fn positions_are_frozen_and_fit_off_t() {
        assert_eq!(position(b"weft"), xxhash_rust::xxh3::xxh3_64(b"weft") >> 2);
        assert!(position(b"anything") < 1 << 62);
    }
}
