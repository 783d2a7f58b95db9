//! Names that are missing in directories which this client has made.

use crate::grants::Grant;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use weft_model::name::NAME_MAX;
use weft_model::{Attr, Fid};

/// Names known of all directories together; beyond, everything is forgotten.
const MAX_NAMES: usize = 65_536;
/// The owner may search a directory.
const OWNER_SEARCHES: u32 = 0o100;

/// A directory that this client has made.
struct Made {
    /// Nobody else has changed it since.
    grant: Grant,
    /// Who may search it besides root.
    owner: Option<u32>,
    /// At least all names in it.
    names: HashSet<Vec<u8>>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Names {
    made: HashMap<Fid, Made>,
    /// Names in all of them, and directories.
    count: usize,
}

impl Names {
    /// An empty directory was made.
    pub(super) fn made(&mut self, attr: &Attr, grant: Grant) {
        let owner = (attr.mode & OWNER_SEARCHES != 0).then_some(attr.uid);
        self.make_room();
        self.forget(attr.fid);
        self.count += 1;
        self.made.insert(attr.fid, Made { grant, owner, names: HashSet::new() });
    }

    /// A request that may make a name is going to be sent.
    pub(super) fn adding(&mut self, parent: Fid, name: &[u8]) {
        self.make_room();
        let Some(made) = self.made.get_mut(&parent) else { return };
        if made.names.insert(name.to_vec()) {
            self.count += 1;
        }
    }

    /// A later grant for a directory. It carries on the one before only if that still counts by now.
    pub(super) fn renew(&mut self, parent: Fid, grant: Grant, left: impl Fn(&Grant) -> Duration) {
        let Some(made) = self.made.get_mut(&parent) else { return };
        if left(&made.grant).is_zero() {
            self.forget(parent);
        } else if left(&grant) > left(&made.grant) {
            made.grant = grant;
        }
    }

    /// The grant under which a name is missing, for somebody who may know.
    pub(super) fn absence(&self, parent: Fid, name: &[u8], uid: u32) -> Option<Grant> {
        let made = self.made.get(&parent)?;
        let may_search = uid == 0 || made.owner == Some(uid);
        let ordinary = name.len() <= NAME_MAX && name != b"." && name != b"..";
        (may_search && ordinary && !made.names.contains(name)).then_some(made.grant)
    }

    /// Nothing is known of a directory any more.
    pub(super) fn forget(&mut self, fid: Fid) {
        if let Some(made) = self.made.remove(&fid) {
            self.count -= made.names.len() + 1;
        }
    }

    fn make_room(&mut self) {
        if self.count >= MAX_NAMES {
            *self = Names::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::Grants;
    use crate::namespace::entry::Known;

    const DIR: Fid = Fid(7);
    const SECOND: Duration = Duration::from_secs(1);

    fn attr(mode: u32) -> Attr {
        Attr { mode, uid: 1000, ..Known::nothing_of(DIR).attr }
    }

    fn grant(now: Duration) -> Grant {
        Grants::default().ask(now).grant(DIR, 1000)
    }

    #[test]
    fn names_are_missing_until_they_are_made() {
        let mut names = Names::default();
        assert_eq!(names.absence(DIR, b"a", 0), None);
        names.made(&attr(0o700), grant(SECOND));
        assert!(names.absence(DIR, b"a", 0).is_some() && names.absence(DIR, b"a", 1000).is_some());
        names.adding(DIR, b"a");
        assert_eq!(names.absence(DIR, b"a", 0), None);
        assert!(names.absence(DIR, b"b", 0).is_some());
        for special in [&b"."[..], b"..", &[b'x'; 256]] {
            assert_eq!(names.absence(DIR, special, 0), None);
        }
        names.forget(DIR);
        assert_eq!(names.absence(DIR, b"b", 0), None);
        assert_eq!(names.count, 0);
    }

    #[test]
    fn strangers_are_told_by_the_mdt() {
        let mut names = Names::default();
        names.made(&attr(0o700), grant(SECOND));
        assert_eq!(names.absence(DIR, b"a", 1001), None);
        names.made(&attr(0o077), grant(SECOND));
        assert_eq!(names.absence(DIR, b"a", 1000), None);
        assert!(names.absence(DIR, b"a", 0).is_some());
    }

    #[test]
    fn a_grant_with_a_gap_before_it_says_nothing_of_what_was_before() {
        let mut names = Names::default();
        let left_at = |now| move |grant: &Grant| Grants::default().left(grant, now);
        names.made(&attr(0o700), grant(SECOND));
        names.renew(DIR, grant(SECOND * 3 / 2), left_at(SECOND * 3 / 2));
        let known = names.absence(DIR, b"a", 0).unwrap();
        assert_eq!(left_at(SECOND * 2)(&known), SECOND / 2);
        // Asked for in time, but answered too late.
        names.renew(DIR, grant(SECOND * 2), left_at(SECOND * 3));
        assert_eq!(names.absence(DIR, b"a", 0), None);
    }

    #[test]
    fn there_is_a_bound() {
        let mut names = Names::default();
        names.made(&attr(0o700), grant(SECOND));
        (0..2 * MAX_NAMES).for_each(|n| names.adding(DIR, n.to_string().as_bytes()));
        assert!(names.count <= MAX_NAMES);
        // Forgotten as a whole: nothing is missing by mistake.
        assert_eq!(names.absence(DIR, b"0", 0), None);
    }
}
