//! Who asks, and how long they wait.

use crate::config::Policy;
use weft_model::Credentials;
use weft_rpc::router::Patience;

/// The caller of an operation.
#[derive(Clone)]
pub struct Ctx<'a> {
    /// Identity. Leave `groups` at `None` to have them looked up only when they matter.
    pub cred: Credentials,
    /// Looks up the supplementary groups; called only when the MDS needs them to decide.
    pub groups: &'a dyn Fn() -> Vec<u32>,
    /// Asked while waiting: whether the caller wants no answer any more. Ends with `Interrupted`.
    pub interrupted: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// Permission bits that new files do not get.
    pub umask: u32,
}

impl Ctx<'static> {
    /// The superuser, who cannot be interrupted.
    pub fn root() -> Ctx<'static> {
        Ctx { cred: Credentials::root(), groups: &Vec::new, interrupted: None, umask: 0o022 }
    }

    /// A user without supplementary groups, who cannot be interrupted.
    pub fn user(uid: u32, gid: u32) -> Ctx<'static> {
        Ctx { cred: Credentials { uid, gid, groups: Some(Vec::new()) }, ..Ctx::root() }
    }
}

impl<'a> Ctx<'a> {
    /// How long to wait under a mount's policy.
    pub(crate) const fn patience(&self, policy: Policy) -> Patience<'a> {
        let limit = match policy {
            Policy::Hard => None,
            Policy::Soft(limit) => Some(limit),
        };
        Patience { limit, interrupted: self.interrupted }
    }
}
