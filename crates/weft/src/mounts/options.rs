//! The list behind `mount -o`.

use crate::outcome::Usage;
use std::path::PathBuf;
use std::time::Duration;
use weft_client::Policy;
use weft_fuse::door::DoorConfig;
use weft_fuse::kernel::Transport;
use weft_model::units::{parse_duration, parse_size};

/// Soft mounts wait this long unless told otherwise.
const DEFAULT_TIMEO: Duration = Duration::from_secs(30);
/// What mount(8) passes on that means nothing here, or is the default.
const IGNORED: &[&str] = &[
    "rw",
    "defaults",
    "auto",
    "noauto",
    "user",
    "users",
    "nofail",
    "_netdev",
    "async",
    "atime",
    "noatime",
    "relatime",
    "diratime",
    "nodiratime",
];

/// What a mount is told.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// How long operations wait for servers.
    pub policy: Policy,
    /// File with the cluster's key or that of clients.
    pub key: Option<PathBuf>,
    /// Name of the volume.
    pub volume: String,
    /// Stay in the foreground.
    pub foreground: bool,
    /// Where a mount in the background writes its log.
    pub log: Option<PathBuf>,
    /// Names, attributes and data are kept under grants.
    pub caches: bool,
    /// Writes to files that nobody else has open are answered when the mount has them. Unless said otherwise,
    /// where no server is in the mount's process and would die with it.
    pub writes_behind: Option<bool>,
    /// The mount outlives its process, where it can.
    pub holder: bool,
    /// The kernel's side.
    pub door: DoorConfig,
}

impl MountOptions {
    /// Reads the list.
    ///
    /// # Errors
    /// [`Usage`], naming the option.
    pub fn parse(list: &str) -> Result<MountOptions, Usage> {
        let mut options = MountOptions {
            policy: Policy::Hard,
            key: None,
            volume: String::new(),
            foreground: false,
            log: None,
            caches: true,
            writes_behind: None,
            holder: true,
            door: DoorConfig::default(),
        };
        // Others are kept out unless root mounts, or is asked to let them in.
        options.door.options.allow_other = rustix::process::geteuid().is_root();
        let (mut soft, mut timeo) = (false, DEFAULT_TIMEO);
        for option in list.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let bad = |why: String| Usage(format!("mount option {option:?}: {why}"));
            match name {
                "hard" => soft = false,
                "soft" => soft = true,
                "timeo" => timeo = parse_duration(value).map_err(bad)?,
                "key" => options.key = Some(value.into()),
                "volume" => options.volume = value.to_string(),
                "log" => options.log = Some(value.into()),
                "foreground" => options.foreground = true,
                "nocache" => options.caches = false,
                "holder" => options.holder = true,
                "noholder" => options.holder = false,
                "writebehind" => options.writes_behind = Some(true),
                "nowritebehind" => options.writes_behind = Some(false),
                _ => options.set_door(name, value).map_err(bad)?,
            }
        }
        if soft {
            options.policy = Policy::Soft(timeo);
        }
        Ok(options)
    }

    /// Whether a process of its own is to hold the mount. Rings of io_uring die with their process.
    pub fn is_held(&self) -> bool {
        self.holder && self.door.transport != Transport::Rings
    }

    fn set_door(&mut self, name: &str, value: &str) -> Result<(), String> {
        let door = &mut self.door;
        match name {
            "suid" | "dev" if !rustix::process::geteuid().is_root() => {
                return Err("needs root: mounts of users have nosuid and nodev".into());
            }
            "ro" => door.options.read_only = true,
            "allow_other" => door.options.allow_other = true,
            "private" => door.options.allow_other = false,
            "suid" => door.options.nosuid = false,
            "nosuid" => door.options.nosuid = true,
            "dev" => door.options.nodev = false,
            "nodev" => door.options.nodev = true,
            "exec" => door.options.noexec = false,
            "noexec" => door.options.noexec = true,
            "entry_timeout" => door.entry_ttl = parse_duration(value)?,
            "attr_timeout" => door.attr_ttl = parse_duration(value)?,
            "transport" => door.transport = value.parse()?,
            "cached" => door.direct_io = false,
            "max_request" => {
                let bytes = parse_size(value)?;
                door.max_request = u32::try_from(bytes).map_err(|_| "too large".to_string())?;
            }
            other if IGNORED.contains(&other) || other.starts_with("x-") => {}
            _ => return Err("unknown; see weft mount --help".into()),
        }
        Ok(())
    }
}

/// The options of a mount that is to be served by another process: what the kernel or the servers were
/// told cannot be changed any more.
///
/// # Errors
/// Naming the option.
pub fn replace(list: &str, changes: &str) -> Result<String, String> {
    const CHANGEABLE: &[&str] = &["hard", "soft", "timeo", "key"];
    for change in changes.split(',').map(str::trim).filter(|change| !change.is_empty()) {
        let name = change.split('=').next().unwrap_or_default();
        if !CHANGEABLE.contains(&name) {
            return Err(format!("option {change:?} cannot be changed while it is mounted"));
        }
    }
    let both = [list, changes].into_iter().filter(|list| !list.is_empty());
    let both = both.collect::<Vec<_>>().join(",");
    MountOptions::parse(&both).map_err(|error| error.to_string())?;
    Ok(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_side_decides_can_be_changed() {
        assert_eq!(replace("ro,hard", "soft,timeo=5s").unwrap(), "ro,hard,soft,timeo=5s");
        assert_eq!(replace("", "").unwrap(), "");
        for refused in ["rw", "max_request=1M", "soft,timeo=never"] {
            assert!(replace("hard", refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn reads_what_mount_passes() {
        let options =
            MountOptions::parse("rw,soft,timeo=5s,key=/k,ro,transport=dev,x-systemd.automount")
                .unwrap();
        assert_eq!(options.policy, Policy::Soft(Duration::from_secs(5)));
        assert_eq!(options.key, Some("/k".into()));
        assert!(options.door.options.read_only);
        assert_eq!(options.door.transport, Transport::Device);
        assert_eq!(MountOptions::parse("").unwrap().policy, Policy::Hard);
        for bad in ["soft,timeo=never", "bananas", "max_request=8G", "transport=tcp"] {
            assert!(MountOptions::parse(bad).is_err(), "{bad}");
        }
    }
}
