//! POSIX access control lists in the form Linux keeps them in `system.posix_acl_access` and
//! `system.posix_acl_default`: a version word, then eight bytes an entry, little-endian
//! (`include/uapi/linux/posix_acl_xattr.h`). Semantics follow POSIX 1003.1e draft 17, section 23.

use crate::attr::Attr;
use crate::cred::Credentials;
use crate::error::{ErrorKind, FsError, Result};

/// Name of the attribute that holds the access list.
pub const ACCESS_XATTR: &[u8] = b"system.posix_acl_access";
/// Name of the attribute that holds a directory's default list.
pub const DEFAULT_XATTR: &[u8] = b"system.posix_acl_default";

const VERSION: u32 = 2;
const MAX_ENTRIES: usize = 1024;
const NO_ID: u32 = u32::MAX;

/// Whom an entry is about. The numbers are Linux's, in the order entries must have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u16)]
pub enum Tag {
    /// The owner.
    UserObj = 0x01,
    /// A named user.
    User = 0x02,
    /// The owning group.
    GroupObj = 0x04,
    /// A named group.
    Group = 0x08,
    /// Upper bound of everything but owner and others.
    Mask = 0x10,
    /// Everybody else.
    Other = 0x20,
}

/// One entry of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Whom it is about.
    pub tag: Tag,
    /// Read 4, write 2, execute 1.
    pub perm: u8,
    /// User or group id of named entries.
    pub id: u32,
}

/// A valid access control list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acl(Vec<Entry>);

impl Acl {
    /// Decodes and validates the attribute value.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn decode(value: &[u8]) -> Result<Acl> {
        let bad = || FsError::new(ErrorKind::Invalid, "set access list");
        let (version, rest) = value.split_first_chunk::<4>().ok_or_else(bad)?;
        if u32::from_le_bytes(*version) != VERSION
            || rest.len() % 8 != 0
            || rest.len() / 8 > MAX_ENTRIES
        {
            return Err(bad());
        }
        let entries: Option<Vec<Entry>> = rest.chunks_exact(8).map(decode_entry).collect();
        let acl = Acl(entries.ok_or_else(bad)?);
        if acl.is_valid() { Ok(acl) } else { Err(bad()) }
    }

    /// The attribute value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = VERSION.to_le_bytes().to_vec();
        for entry in &self.0 {
            let id = if matches!(entry.tag, Tag::User | Tag::Group) { entry.id } else { NO_ID };
            out.extend((entry.tag as u16).to_le_bytes());
            out.extend((entry.perm as u16).to_le_bytes());
            out.extend(id.to_le_bytes());
        }
        out
    }

    /// One each of owner, group, other; sorted, no entry twice; a mask if there are named entries.
    fn is_valid(&self) -> bool {
        let count = |tag| self.0.iter().filter(|e| e.tag == tag).count();
        let sorted = self.0.windows(2).all(|w| {
            w[0].tag < w[1].tag
                || (w[0].tag == w[1].tag
                    && matches!(w[0].tag, Tag::User | Tag::Group)
                    && w[0].id != w[1].id)
        });
        let named = count(Tag::User) + count(Tag::Group) > 0;
        let single = [Tag::UserObj, Tag::GroupObj, Tag::Other].iter().all(|&t| count(t) == 1);
        single && sorted && count(Tag::Mask) <= 1 && (!named || count(Tag::Mask) == 1)
    }

    fn perm(&self, tag: Tag) -> Option<u8> {
        self.0.iter().find(|e| e.tag == tag).map(|e| e.perm)
    }

    fn set(&mut self, tag: Tag, perm: u8) {
        if let Some(entry) = self.0.iter_mut().find(|e| e.tag == tag) {
            entry.perm = perm;
        }
    }

    /// The nine permission bits of the mode that this list stands for.
    pub fn mode_bits(&self) -> u32 {
        let bits = |tag| self.perm(tag).unwrap_or(0) as u32;
        let group = self.perm(Tag::Mask).map_or_else(|| bits(Tag::GroupObj), u32::from);
        bits(Tag::UserObj) << 6 | group << 3 | bits(Tag::Other)
    }

    /// Whether the nine mode bits say all there is to say, so that no list need be kept.
    pub fn is_minimal(&self) -> bool {
        self.0.len() == 3
    }

    /// The list after `chmod`: owner, mask (or group) and others follow the mode.
    pub fn chmod(&mut self, mode: u32) {
        self.set(Tag::UserObj, (mode >> 6) as u8 & 7);
        let group = if self.perm(Tag::Mask).is_some() { Tag::Mask } else { Tag::GroupObj };
        self.set(group, (mode >> 3) as u8 & 7);
        self.set(Tag::Other, mode as u8 & 7);
    }

    /// What a new inode gets from its directory's default list: the mode, cut down by the list,
    /// and its access list unless the mode says it all.
    pub fn inherit(&self, mode: u32) -> (u32, Option<Acl>) {
        let mut acl = self.clone();
        let group = if acl.perm(Tag::Mask).is_some() { Tag::Mask } else { Tag::GroupObj };
        for (tag, shift) in [(Tag::UserObj, 6), (group, 3), (Tag::Other, 0)] {
            let cut = acl.perm(tag).unwrap_or(0) & (mode >> shift) as u8 & 7;
            acl.set(tag, cut);
        }
        let mode = mode & !0o777 | acl.mode_bits();
        let kept = if acl.is_minimal() { None } else { Some(acl) };
        (mode, kept)
    }

    /// Whether the list lets `cred`, who is not the owner, do `wanted`.
    ///
    /// # Errors
    /// `NeedGroups`.
    pub fn permits(&self, cred: &Credentials, attr: &Attr, wanted: u8) -> Result<bool> {
        let mask = self.perm(Tag::Mask).unwrap_or(7);
        let allows = |perm: u8| perm & wanted == wanted;
        if let Some(user) = self.0.iter().find(|e| e.tag == Tag::User && e.id == cred.uid) {
            return Ok(allows(user.perm & mask));
        }
        let mut member = false;
        for entry in self.0.iter().filter(|e| matches!(e.tag, Tag::GroupObj | Tag::Group)) {
            let gid = if entry.tag == Tag::GroupObj { attr.gid } else { entry.id };
            if cred.in_group(gid)? {
                if allows(entry.perm & mask) {
                    return Ok(true);
                }
                member = true;
            }
        }
        Ok(!member && allows(self.perm(Tag::Other).unwrap_or(0)))
    }
}

fn decode_entry(bytes: &[u8]) -> Option<Entry> {
    let tag = match u16::from_le_bytes([bytes[0], bytes[1]]) {
        0x01 => Tag::UserObj,
        0x02 => Tag::User,
        0x04 => Tag::GroupObj,
        0x08 => Tag::Group,
        0x10 => Tag::Mask,
        0x20 => Tag::Other,
        _ => return None,
    };
    let perm = u16::from_le_bytes([bytes[2], bytes[3]]);
    let id = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    (perm <= 7).then_some(Entry { tag, perm: perm as u8, id })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(Tag, u8, u32)]) -> Acl {
        Acl(entries.iter().map(|&(tag, perm, id)| Entry { tag, perm, id }).collect())
    }

    fn sample() -> Acl {
        list(&[
            (Tag::UserObj, 7, NO_ID),
            (Tag::User, 6, 100),
            (Tag::GroupObj, 5, NO_ID),
            (Tag::Mask, 4, NO_ID),
            (Tag::Other, 0, NO_ID),
        ])
    }

    #[test]
    fn codes_and_rejects() {
        let acl = sample();
        assert_eq!(Acl::decode(&acl.encode()).unwrap(), acl);
        assert!(Acl::decode(&[]).is_err());
        assert!(Acl::decode(&acl.encode()[..20]).is_err());
        let no_mask = list(&[
            (Tag::UserObj, 7, 0),
            (Tag::User, 6, 1),
            (Tag::GroupObj, 5, 0),
            (Tag::Other, 0, 0),
        ]);
        assert!(Acl::decode(&no_mask.encode()).is_err());
    }

    #[test]
    fn mask_is_the_group_class() {
        let mut acl = sample();
        assert_eq!(acl.mode_bits(), 0o740);
        acl.chmod(0o666);
        assert_eq!(acl.mode_bits(), 0o666);
        assert_eq!(acl.perm(Tag::GroupObj), Some(5));
    }

    #[test]
    fn inherits() {
        let (mode, kept) = sample().inherit(0o100666);
        assert_eq!(mode & 0o777, 0o640);
        assert!(kept.is_some());
        let minimal = list(&[(Tag::UserObj, 7, 0), (Tag::GroupObj, 5, 0), (Tag::Other, 5, 0)]);
        assert_eq!(minimal.inherit(0o666), (0o644, None));
    }
}
