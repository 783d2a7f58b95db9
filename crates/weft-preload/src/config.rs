//! What the environment says: which prefixes stand for which file systems.
//!
//! `WEFT_PRELOAD` is a list of `PREFIX=SOURCE[?OPTIONS]`, separated by `;`. A prefix is an absolute path, a
//! source is what `weft mount` takes, options are some of those of `weft mount -o`.

use std::path::PathBuf;
use std::time::Duration;
use weft_client::{Device, Policy};
use weft_model::units::parse_duration;

/// Name of the variable.
pub const VARIABLE: &str = "WEFT_PRELOAD";
/// Soft mounts wait this long unless told otherwise.
const DEFAULT_TIMEO: Duration = Duration::from_secs(30);

/// One prefix and what it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Absolute, without a slash at the end, `.`, `..` or empty components.
    pub prefix: Vec<u8>,
    /// Managers and subtree.
    pub device: Device,
    /// File with the cluster's key.
    pub key: Option<PathBuf>,
    /// How long operations wait for servers.
    pub policy: Policy,
    /// Name of the volume; empty for the first.
    pub volume: String,
    /// Names, attributes and data are kept under grants.
    pub caches: bool,
    /// Writes to files that nobody else has open are answered from here.
    pub writes_behind: bool,
}

/// Reads the list.
///
/// # Errors
/// Says what is wrong, naming the entry.
pub fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let entries = text.split(';').map(str::trim).filter(|entry| !entry.is_empty());
    let entries = entries.map(entry).collect::<Result<Vec<Entry>, String>>()?;
    for (at, one) in entries.iter().enumerate() {
        if entries[..at].iter().any(|other| nested(&one.prefix, &other.prefix)) {
            let prefix = String::from_utf8_lossy(&one.prefix);
            return Err(format!("prefix {prefix} lies within another or holds one"));
        }
    }
    Ok(entries)
}

fn entry(text: &str) -> Result<Entry, String> {
    let bad = |why: String| format!("{text:?}: {why}");
    let (prefix, rest) =
        text.split_once('=').ok_or_else(|| bad("expected PREFIX=SOURCE[?OPTIONS]".into()))?;
    let (source, options) = rest.split_once('?').unwrap_or((rest, ""));
    let mut entry = Entry {
        prefix: normal(prefix).map_err(bad)?,
        device: source.parse().map_err(bad)?,
        key: None,
        policy: Policy::Hard,
        volume: String::new(),
        caches: true,
        writes_behind: true,
    };
    let (mut soft, mut timeo) = (false, DEFAULT_TIMEO);
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "hard" => soft = false,
            "soft" => soft = true,
            "timeo" => timeo = parse_duration(value).map_err(bad)?,
            "key" => entry.key = Some(value.into()),
            "volume" => entry.volume = value.to_string(),
            "nocache" => entry.caches = false,
            "writebehind" => entry.writes_behind = true,
            "nowritebehind" => entry.writes_behind = false,
            _ => return Err(bad(format!("option {name:?} is unknown"))),
        }
    }
    if soft {
        entry.policy = Policy::Soft(timeo);
    }
    Ok(entry)
}

/// A prefix as paths are compared with it.
fn normal(prefix: &str) -> Result<Vec<u8>, String> {
    if !prefix.starts_with('/') {
        return Err("the prefix is no absolute path".into());
    }
    let names: Vec<&str> = prefix.split('/').filter(|name| !name.is_empty()).collect();
    if names.is_empty() || names.iter().any(|name| matches!(*name, "." | "..")) {
        return Err("the prefix must name a directory below / without . or ..".into());
    }
    Ok(format!("/{}", names.join("/")).into_bytes())
}

/// Whether one path is the other or lies below it.
fn nested(one: &[u8], other: &[u8]) -> bool {
    let below = |path: &[u8], top: &[u8]| {
        path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    };
    below(one, other) || below(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_prefixes_sources_and_options() {
        let entries = parse("/weft=mgr:7420/home?key=/k,soft,timeo=5s; /mnt//b/=unix:/s").unwrap();
        assert_eq!(entries[0].prefix, b"/weft");
        assert_eq!(entries[0].device.subtree, "home");
        assert_eq!(entries[0].key, Some("/k".into()));
        assert_eq!(entries[0].policy, Policy::Soft(Duration::from_secs(5)));
        assert_eq!(entries[1].prefix, b"/mnt/b");
        assert_eq!(entries[1].device.managers, ["unix:/s"]);
        assert!(entries[1].writes_behind && entries[1].caches);
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn says_what_is_wrong() {
        for bad in ["/w", "w=mgr", "/=mgr", "/a/../b=mgr", "/w=", "/w=mgr?bananas", "/w=m?timeo=x"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("/w=a;/w/x=b").is_err());
        assert!(parse("/w=a;/wx=b").is_ok());
    }
}
