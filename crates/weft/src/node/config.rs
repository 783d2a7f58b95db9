//! One TOML file per node: which roles the process runs, where, and how.

use crate::units::{Bytes, Time};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use weft_client::device::DEFAULT_PORT;
use weft_mds::commit::Durability;
use weft_model::throttle::Speed;

/// Everything a server process is told.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Name of the node, unique in the cluster.
    pub node: String,
    /// Addresses to listen at: `host:port` or `unix:/path`.
    pub listen: Vec<String>,
    /// Addresses under which others reach the node, when they differ from `listen`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advertise: Vec<String>,
    /// Addresses of the manager. Empty on the node that runs it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<String>,
    /// File with the cluster's key, mode 0600. Without one only processes of the same user on
    /// this machine, over a Unix socket, are let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Identity of the cluster; targets of another one are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Address of `/metrics` and `/healthz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// Directory in which the process says who it is and where it listens (`NODE.json`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_dir: Option<PathBuf>,
    /// The manager, on one node of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<TargetConfig>,
    /// Metadata targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mdt: Vec<TargetConfig>,
    /// Object storage targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ost: Vec<TargetConfig>,
    /// Mounts that live in this process and call its targets directly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount: Vec<MountConfig>,
    /// Settings that hardly anybody needs.
    #[serde(default)]
    pub tuning: Tuning,
}

/// A target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetConfig {
    /// Its directory, on any local file system.
    pub dir: PathBuf,
    /// Its number among those of its kind, for `weft target format --config`; where it is given,
    /// another target in the directory is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u16>,
    /// For studies: a speed it does not exceed, as `"200MiB,5000ops,100us"` (bytes per second,
    /// operations per second, latency).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<Speed>,
}

/// A mount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountConfig {
    /// The directory to mount on.
    pub dir: PathBuf,
    /// Options as after `weft mount -o`.
    #[serde(default)]
    pub options: String,
}

/// Settings with defaults that should do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tuning {
    /// How often nodes report to the manager.
    pub heartbeat_interval: Time,
    /// Targets of a node silent for this long are down.
    pub node_timeout: Time,
    /// A client not heard of for this long has lost its locks and open files.
    pub lease: Time,
    /// When a change of metadata is answered: `cache` (survives kill -9; on disk within
    /// milliseconds) or `sync` (survives a power cut).
    pub durability: DurabilityName,
    /// Inodes of an MDT kept in memory, about 600 bytes each.
    pub cache_inodes: usize,
    /// Owner and group of the root directory, when it is made.
    pub root_owner: (u32, u32),
    /// Connections at a time.
    pub connections: usize,
    /// Bytes of file data under way at a time, per OST.
    pub in_flight: Bytes,
    /// Bytes per second that a scrub reads of one OST; 0 for no limit.
    pub scrub_rate: Bytes,
}

impl Default for Tuning {
    fn default() -> Tuning {
        let manager = weft_manager::Settings::default();
        let mds = weft_mds::Settings::default();
        let oss = weft_oss::Settings::default();
        Tuning {
            heartbeat_interval: Time(manager.heartbeat_interval),
            node_timeout: Time(manager.node_timeout),
            lease: Time(mds.lease),
            durability: DurabilityName::Cache,
            cache_inodes: mds.cache_inodes,
            root_owner: mds.root_owner,
            connections: weft_rpc::server::Limits::default().connections,
            in_flight: Bytes(oss.in_flight_bytes),
            scrub_rate: Bytes(oss.scrub_bytes_per_second),
        }
    }
}

/// Names of [`Durability`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityName {
    /// [`Durability::Cache`].
    Cache,
    /// [`Durability::Sync`].
    Sync,
}

impl From<DurabilityName> for Durability {
    fn from(name: DurabilityName) -> Durability {
        match name {
            DurabilityName::Cache => Durability::Cache,
            DurabilityName::Sync => Durability::Sync,
        }
    }
}

impl NodeConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Naming the file, the place in it, and what is wrong.
    pub fn load(file: &Path) -> anyhow::Result<NodeConfig> {
        let named = || format!("config file={}", file.display());
        let text = std::fs::read_to_string(file).with_context(named)?;
        let config: NodeConfig = toml::from_str(&text).with_context(named)?;
        config.check().with_context(named)?;
        Ok(config)
    }

    /// Checks what the form alone does not.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.node.is_empty() || self.node.contains(['/', '\0']) {
            bail!("`node` needs a name without slashes");
        }
        if self.manager.is_none() && self.managers.is_empty() {
            bail!("`managers` is empty and there is no [manager]: who keeps the cluster map?");
        }
        if self.listen.is_empty() {
            bail!("`listen` is empty: nobody could reach this node");
        }
        let wildcard = |address: &String| {
            address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_unspecified())
        };
        if self.advertise.is_empty() && self.listen.iter().any(wildcard) {
            bail!("`listen` takes any address, so `advertise` has to say which one others use");
        }
        if self.tuning.node_timeout.0 < 2 * self.tuning.heartbeat_interval.0 {
            bail!("`node_timeout` must be at least twice `heartbeat_interval`");
        }
        Ok(())
    }

    /// An example with every setting.
    pub fn example() -> NodeConfig {
        let target = |dir: &str, index| TargetConfig { dir: dir.into(), index, throttle: None };
        NodeConfig {
            node: "node1".into(),
            listen: vec![format!("192.0.2.1:{DEFAULT_PORT}")],
            key: Some("/etc/weft/cluster.key".into()),
            metrics: Some(([127, 0, 0, 1], 9420).into()),
            run_dir: Some("/run/weft".into()),
            manager: Some(target("/srv/weft/mgt", None)),
            mdt: vec![target("/srv/weft/mdt0", Some(0))],
            ost: vec![target("/srv/weft/ost0", Some(0)), target("/srv/weft/ost1", Some(1))],
            ..NodeConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_read_back_and_checked() {
        let text = toml::to_string(&NodeConfig::example()).unwrap();
        let config: NodeConfig = toml::from_str(&text).unwrap();
        config.check().unwrap();
        assert_eq!((config.ost.len(), config.tuning.in_flight.0), (2, 256 << 20));
        assert!(
            text.contains("in_flight = \"256MiB\"") && text.contains("lease = \"10s\""),
            "{text}"
        );
    }

    #[test]
    fn unknown_keys_and_nonsense_are_refused() {
        let base = "node = \"a\"\nlisten = [\"127.0.0.1:0\"]\n[manager]\ndir = \"/x\"\n";
        toml::from_str::<NodeConfig>(base).unwrap().check().unwrap();
        for more in [
            "throttle = \"fast\"",
            "[tuning]\nleese = \"1s\"",
            "[tuning]\nlease = \"soon\"",
            "[[disk]]\ndir=\"/\"",
        ] {
            assert!(toml::from_str::<NodeConfig>(&format!("{base}{more}")).is_err(), "{more}");
        }
        let open = base.replace("127.0.0.1", "0.0.0.0");
        assert!(toml::from_str::<NodeConfig>(&open).unwrap().check().is_err());
    }
}
