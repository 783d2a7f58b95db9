//! Asking a mount about a path, by the virtual extended attributes of its door.

use anyhow::{Context, bail};
use rustix::fs::{XattrFlags, getxattr, lgetxattr, setxattr};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Largest value that the kernel hands out.
const MAX_VALUE: usize = 64 << 10;

/// The value of attribute `name`; none when the path has no such thing. Symbolic links are not
/// followed.
///
/// # Errors
/// Those of the system, and when the path is not on a mount of ours.
pub fn get(path: &Path, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
    let mut buffer = vec![0; MAX_VALUE];
    match lgetxattr(path, name, &mut buffer[..]) {
        Ok(length) => {
            buffer.truncate(length);
            Ok(Some(buffer))
        }
        Err(Errno::NODATA | Errno::NOTSUP) if is_ours(path) => Ok(None),
        Err(Errno::NODATA | Errno::NOTSUP) => {
            bail!("{}: not on a mount of Weft", path.display())
        }
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// As text.
///
/// # Errors
/// As [`get`].
pub fn get_text(path: &Path, name: &str) -> anyhow::Result<String> {
    let value = get(path, name)?;
    let value = value.with_context(|| format!("{}: has no {name}", path.display()))?;
    Ok(String::from_utf8_lossy(&value).into_owned())
}

/// As what its JSON describes.
///
/// # Errors
/// As [`get`]; and when it describes something else, which other versions might.
pub fn get_json<T: DeserializeOwned>(path: &Path, name: &str) -> anyhow::Result<Option<T>> {
    let Some(value) = get(path, name)? else { return Ok(None) };
    let read = serde_json::from_slice(&value);
    read.map(Some).with_context(|| format!("{}: cannot read {name}", path.display()))
}

/// Sets an attribute to JSON.
///
/// # Errors
/// Those of the system.
pub fn set_json(path: &Path, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
    let value = serde_json::to_vec(value)?;
    setxattr(path, name, &value, XattrFlags::empty())
        .with_context(|| format!("{}: cannot set {name}", path.display()))
}

fn is_ours(path: &Path) -> bool {
    getxattr(path, "weft.fid", &mut [0; 64][..]).is_ok()
}
