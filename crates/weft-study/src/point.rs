//! A point of a sweep: the cluster it needs, what is done on it, and the parameters it stands for.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weft_model::throttle::Speed;

/// One measurement of a study. Equal points are the same measurement, so that a study goes on where it
/// was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Which part of the study it belongs to.
    pub part: String,
    /// What it stands for in tables and plots.
    pub params: Params,
    /// What it runs on.
    pub cluster: Cluster,
    /// What is done.
    pub work: Work,
}

/// Parameters by name.
pub type Params = BTreeMap<String, Param>;

/// The value of a parameter.
#[derive(Clone, PartialEq, PartialOrd, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Param {
    /// A number, which may be the x of a plot.
    Number(f64),
    /// A name.
    Name(String),
}

impl Param {
    /// As a number; none for a name.
    pub const fn number(&self) -> Option<f64> {
        match self {
            Param::Number(number) => Some(*number),
            Param::Name(_) => None,
        }
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Param::Number(number) => write!(f, "{number}"),
            Param::Name(name) => f.write_str(name),
        }
    }
}

impl From<u32> for Param {
    fn from(number: u32) -> Param {
        Param::Number(number.into())
    }
}

impl From<&str> for Param {
    fn from(name: &str) -> Param {
        Param::Name(name.into())
    }
}

/// Parameters from pairs.
pub fn params<const N: usize>(pairs: [(&str, Param); N]) -> Params {
    pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// `clients 4, threads 8`.
pub fn describe<'a>(params: impl IntoIterator<Item = (&'a String, &'a Param)>) -> String {
    let parts = params.into_iter().map(|(name, value)| format!("{name} {value}"));
    parts.collect::<Vec<_>>().join(", ")
}

/// What a point runs on. On a local directory only the number of clients has a meaning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cluster {
    /// Object storage targets.
    pub osts: u16,
    /// How many of them one server has.
    pub osts_per_server: u16,
    /// The first server also has the MDT.
    pub mdt_with_osts: bool,
    /// Speed of every OST.
    pub ost_speed: Option<Speed>,
    /// Speed of the MDT.
    pub mdt_speed: Option<Speed>,
    /// Mounts, each a process of its own.
    pub clients: u16,
    /// Options of `weft setstripe` for the directory that is worked in; empty for the default.
    pub layout: Vec<String>,
}

impl Cluster {
    /// Servers of OSTs.
    pub const fn servers(&self) -> u16 {
        self.osts.div_ceil(self.osts_per_server)
    }

    /// What all devices together allow, in `unit`; none where nothing limits them.
    pub fn limit(&self, unit: &str) -> Option<f64> {
        let bandwidth = self.ost_speed.map_or(0, |speed| speed.bandwidth);
        let operations = self.mdt_speed.map_or(0, |speed| speed.operations);
        let limit = match unit {
            "MiB/s" => f64::from(self.osts) * bandwidth as f64 / f64::from(1 << 20),
            "ops/s" => operations as f64,
            _ => 0.0,
        };
        (limit > 0.0).then_some(limit)
    }
}

/// What is done at a point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Commands after `weft bench`, at the same time. `{each/NAME}` stands for NAME in the directory of
    /// each client, joined with `@`, `{first/NAME}` for that of the first one, and [`CLUSTER`] for the directory of the cluster.
    Bench(Vec<Vec<String>>),
    /// Servers are stopped and started again while clients work.
    Recovery {
        /// Names of the processes.
        components: Vec<String>,
        /// Stopped in order; else killed.
        orderly: bool,
    },
}

impl Work {
    /// One command, words between blanks.
    pub fn bench(command: &str) -> Work {
        Work::Bench(vec![command.split_whitespace().map(String::from).collect()])
    }

    /// Two commands at the same time.
    pub fn together(one: &str, other: &str) -> Work {
        let words = |text: &str| text.split_whitespace().map(String::from).collect();
        Work::Bench(vec![words(one), words(other)])
    }
}

/// What stands for the directory of the cluster.
pub const CLUSTER: &str = "{cluster}";

/// Puts the directories of the clients into a word of a command.
pub fn fill_in(word: &str, dirs: &[String]) -> String {
    let inside = |dirs: &[String], name: &str| {
        let each: Vec<String> = dirs.iter().map(|dir| format!("{dir}/{name}")).collect();
        each.join("@")
    };
    let name = |start: &str| word.strip_prefix(start)?.strip_suffix('}');
    match (name("{each/"), name("{first/")) {
        (Some(name), _) => inside(dirs, name),
        (_, Some(name)) => inside(&dirs[..dirs.len().min(1)], name),
        _ => word.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_filled_in() {
        let dirs = ["/a".to_string(), "/b".to_string()];
        assert_eq!(fill_in("{each/f}", &dirs), "/a/f@/b/f");
        assert_eq!(fill_in("{first/f}", &dirs), "/a/f");
        assert_eq!(fill_in("-t1m", &dirs), "-t1m");
    }

    #[test]
    fn devices_add_up() {
        let cluster = Cluster {
            osts: 4,
            osts_per_server: 3,
            mdt_with_osts: false,
            ost_speed: "100M,1ms".parse().ok(),
            mdt_speed: None,
            clients: 1,
            layout: Vec::new(),
        };
        assert_eq!(cluster.servers(), 2);
        assert_eq!((cluster.limit("MiB/s"), cluster.limit("ops/s")), (Some(400.0), None));
    }
}
