//! What the points of several studies have in common.

use crate::point::{Cluster, Params, Point, Work};
use crate::results::Size;

/// MiB per second of one OST's device: so slow that two processors serve several of them.
pub fn mib_per_s(size: Size) -> u64 {
    size.pick(100, 200)
}

/// Seconds that a phase takes at the speed of the devices.
fn seconds(size: Size) -> u64 {
    size.pick(2, 10)
}

/// Repetitions of a measurement.
pub fn repeats(size: Size) -> u32 {
    size.pick(1, 3)
}

/// A cluster of OSTs with devices of one speed, in MiB per second, and an MDT without limit.
pub fn cluster(osts: u16, osts_per_server: u16, mib_per_s: u64, clients: u16) -> Cluster {
    Cluster {
        osts,
        osts_per_server,
        mdt_with_osts: false,
        ost_speed: format!("{mib_per_s}M,100us").parse().ok(),
        mdt_speed: None,
        clients,
        layout: Vec::new(),
    }
}

impl Cluster {
    /// With these options of `weft setstripe`.
    pub fn striped(mut self, options: &str) -> Cluster {
        self.layout = options.split_whitespace().map(String::from).collect();
        self
    }
}

/// A point that asks the OSTs of a cluster alone, over their connections: so many objects and threads
/// on each.
pub fn survey(
    size: Size,
    part: &str,
    params: Params,
    cluster: Cluster,
    [objects, threads]: [u32; 2],
) -> Point {
    let speed = cluster.ost_speed.map_or(0, |speed| speed.bandwidth >> 20);
    let command = format!(
        "survey --case network --dev {{cluster}} --size {} --nobjlo {objects} --nobjhi {objects} \
         --thrlo {threads} --thrhi {threads}",
        speed * seconds(size)
    );
    Point { part: part.into(), params, cluster, work: Work::bench(&command) }
}

/// MiB for each rank, so that a phase takes a fixed time at the speed of the devices, and not much
/// longer where one rank uses one device only: a multiple of the transfer, and at least one.
pub fn mib_per_rank(size: Size, cluster: &Cluster, ranks: u32, transfer_mib: u64) -> u64 {
    let speed = cluster.ost_speed.map_or(0, |speed| speed.bandwidth >> 20);
    let each = speed * seconds(size) * u64::from(cluster.osts) / u64::from(ranks);
    let each = each.min(2 * speed * seconds(size));
    (each / transfer_mib).max(1) * transfer_mib
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_the_time() {
        let cluster = cluster(4, 1, 100, 1);
        assert_eq!(mib_per_rank(Size::Quick, &cluster, 1, 1), 400);
        assert_eq!(mib_per_rank(Size::Quick, &cluster, 8, 64), 64);
        assert_eq!(mib_per_rank(Size::Quick, &cluster, 16, 64), 64);
        assert_eq!(mib_per_rank(Size::Quick, &cluster, 3, 4), 264);
    }
}
