//! Who asks: from the kernel's request to the client's context, and the error back.

use super::Door;
use crate::kernel::{Errno, Request, Result, abi};
use weft_client::Ctx;
use weft_model::{Credentials, Fid};

impl Door {
    /// Does something for the caller of a request about a node. The error, if it is worth it, is
    /// logged as one of `op`.
    pub(super) fn act<T>(
        &self,
        req: &Request<'_>,
        op: &'static str,
        node: u64,
        act: impl FnOnce(&Ctx<'_>, Fid) -> weft_model::Result<T>,
    ) -> Result<T> {
        self.begin(req.unique);
        let fid = self.fid(node);
        let groups = || groups_of(req.pid);
        let interrupted = || req.interrupted();
        let ctx = Ctx {
            cred: Credentials { uid: req.uid, gid: req.gid, groups: None },
            groups: &groups,
            interrupted: Some(&interrupted),
            umask: req.umask,
        };
        act(&ctx, fid).map_err(|error| {
            self.complaints.note(op, fid, &error);
            Errno::new(error.errno())
        })
    }

    /// The inode of a node.
    pub(super) fn fid(&self, node: u64) -> Fid {
        if node == abi::ROOT_ID { self.client.root() } else { Fid(node) }
    }

    /// The node of an inode.
    pub(super) fn node(&self, fid: Fid) -> u64 {
        if fid == self.client.root() { abi::ROOT_ID } else { fid.0 }
    }
}

/// Supplementary groups of a thread; none if it is gone or not visible here.
fn groups_of(thread: u32) -> Vec<u32> {
    // The numbers of threads are found here as well as those of processes.
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    line.unwrap_or_default().split_whitespace().filter_map(|group| group.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_from_proc() {
        let output = std::process::Command::new("id").arg("-G").output().unwrap();
        let wanted = String::from_utf8(output.stdout).unwrap();
        let found = groups_of(std::process::id());
        // `id` names the effective group too, wherever it comes from.
        let wanted: Vec<u32> = wanted.split_whitespace().map(|g| g.parse().unwrap()).collect();
        assert!(found.iter().all(|group| wanted.contains(group)), "{found:?} {wanted:?}");
        assert!(wanted.len() <= found.len() + 1);
        assert!(groups_of(0).is_empty());
    }
}
