//! Who asks: the context every operation gets.

use zerocopy::FromBytes;

use super::abi::{self, ExtHeader, InHeader, SuppGroups};
use super::interrupt::Slot;

/// Context of one request: the caller's identity, and whether it still waits.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Number of the request, unique among those under way.
    pub unique: u64,
    /// File system user id of the calling thread.
    pub uid: u32,
    /// File system group id of the calling thread.
    pub gid: u32,
    /// Thread id of the caller in the daemon's pid namespace; 0 if it is not visible there or the
    /// kernel itself asks (write-back, read-ahead).
    pub pid: u32,
    /// The caller's umask on operations that make a node, else 0. To be applied only under the
    /// feature `DONT_MASK`; otherwise the kernel has applied it already.
    pub umask: u32,
    extensions: &'a [u8],
    slot: Option<&'a Slot>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(header: &InHeader, extensions: &'a [u8], slot: Option<&'a Slot>) -> Self {
        let InHeader { unique, uid, gid, pid, .. } = *header;
        Request { unique, uid, gid, pid, umask: 0, extensions, slot }
    }

    /// A request that no kernel sent, to call a [`FileSystem`](super::FileSystem) directly.
    pub fn detached(uid: u32, gid: u32, pid: u32) -> Request<'static> {
        Request { unique: 0, uid, gid, pid, umask: 0, extensions: &[], slot: None }
    }

    /// Whether the caller got a signal while this request was under way. A blocking operation
    /// should poll it now and then and give up with `EINTR`; it is free to go on instead.
    pub fn interrupted(&self) -> bool {
        self.slot.is_some_and(|slot| slot.interrupted(self.unique))
    }

    /// Supplementary groups the kernel sends along with operations that make a node (feature
    /// `CREATE_SUPP_GROUP`): Linux sends the parent directory's group if the caller is in it.
    pub fn groups(&self) -> impl Iterator<Item = u32> + 'a {
        supplementary(self.extensions)
            .chunks_exact(4)
            .map(|group| u32::from_ne_bytes([group[0], group[1], group[2], group[3]]))
    }
}

/// Finds the bytes of the group list among a request's extensions; empty if absent or malformed.
fn supplementary(mut extensions: &[u8]) -> &[u8] {
    while let Ok((header, _)) = ExtHeader::read_from_prefix(extensions) {
        let size = header.size as usize;
        let Some(body) = extensions.get(size_of::<ExtHeader>()..size) else { break };
        if header.kind == abi::flag::EXT_GROUPS {
            let Ok((head, groups)) = SuppGroups::read_from_prefix(body) else { break };
            return groups.get(..head.nr_groups as usize * 4).unwrap_or(&[]);
        }
        extensions = &extensions[size..];
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(extensions: &[u32]) -> Vec<u32> {
        let bytes: Vec<u8> = extensions.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Request::new(&InHeader::default(), &bytes, None).groups().collect()
    }

    #[test]
    fn finds_groups_behind_another_extension() {
        assert_eq!(groups(&[16, 1, 0, 0, 24, 32, 2, 100, 200, 0]), [100, 200]);
    }

    #[test]
    fn survives_malformed_extensions() {
        assert!(groups(&[]).is_empty());
        assert!(groups(&[0, 32]).is_empty());
        assert!(groups(&[24, 32, 9, 1, 2, 3]).is_empty());
        assert!(groups(&[u32::MAX, 1, 2]).is_empty());
    }
}
