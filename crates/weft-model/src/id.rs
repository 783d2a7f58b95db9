//! Identifiers. Each is a type of its own, never a bare integer.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// File identifier, also the inode number users see: a 24-bit sequence and a 40-bit object number.
///
/// The manager leases sequences to MDTs and records them in the cluster map, so the MDT of a FID is
/// found without asking anybody. A FID is never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fid(pub u64);

impl Fid {
    /// Bits of the object number.
    pub const OBJECT_BITS: u32 = 40;
    /// Largest sequence that can be leased.
    pub const MAX_SEQUENCE: u32 = (1 << 24) - 1;
    /// Largest object number in a sequence.
    pub const MAX_OBJECT: u64 = (1 << Self::OBJECT_BITS) - 1;
    /// Root directory of the first volume. Sequence 1 belongs to MDT0000 for ever.
    pub const ROOT: Fid = Fid((1 << Self::OBJECT_BITS) | 1);

    /// Builds a FID; `object` must not exceed [`Self::MAX_OBJECT`].
    pub const fn new(sequence: u32, object: u64) -> Fid {
        debug_assert!(object <= Self::MAX_OBJECT && sequence <= Self::MAX_SEQUENCE);
        Fid(((sequence as u64) << Self::OBJECT_BITS) | object)
    }

    /// The sequence: decides the MDT.
    pub const fn sequence(self) -> u32 {
        (self.0 >> Self::OBJECT_BITS) as u32
    }

    /// The number within the sequence, starting at 1.
    pub const fn object(self) -> u64 {
        self.0 & Self::MAX_OBJECT
    }
}

impl fmt::Display for Fid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}:{:#x}", self.sequence(), self.object())
    }
}

impl fmt::Debug for Fid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fid({self})")
    }
}

impl FromStr for Fid {
    type Err = String;

    /// Reads `0xSEQ:0xOBJ` (with or without brackets) or a plain inode number.
    fn from_str(text: &str) -> Result<Fid, String> {
        let bad =
            || format!("not a FID: {text:?}; expected 0xSEQUENCE:0xOBJECT or an inode number");
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        let number = |s: &str| match s.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).map_err(|_| bad()),
            None => s.parse().map_err(|_| bad()),
        };
        match bare.split_once(':') {
            None => number(bare).map(Fid),
            Some((sequence, object)) => {
                let (sequence, object) = (number(sequence)?, number(object)?);
                if sequence > Self::MAX_SEQUENCE as u64 || object > Self::MAX_OBJECT {
                    return Err(bad());
                }
                Ok(Fid::new(sequence as u32, object))
            }
        }
    }
}

/// One object of a file: the bytes of the file that live on one OST.
///
/// `index` is unique within the file: layout component in the upper 16 bits, position in the
/// component in the lower 16.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId {
    /// The file.
    pub fid: Fid,
    /// Which of its objects.
    pub index: u32,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{:08x}", self.fid.0, self.index)
    }
}

impl FromStr for ObjectId {
    type Err = String;

    /// Reads what `Display` prints: the name of an object file.
    fn from_str(text: &str) -> Result<ObjectId, String> {
        let bad = || format!("not an object name: {text:?}");
        let (fid, index) = text.split_once('.').ok_or_else(bad)?;
        if fid.len() != 16 || index.len() != 8 {
            return Err(bad());
        }
        let id = ObjectId {
            fid: Fid(u64::from_str_radix(fid, 16).map_err(|_| bad())?),
            index: u32::from_str_radix(index, 16).map_err(|_| bad())?,
        };
        // Digits that are upper case, or a sign, name a file that is not the object's.
        if id.to_string() == text { Ok(id) } else { Err(bad()) }
    }
}

/// What a target holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// The manager's book.
    Mgt,
    /// Metadata: inodes and directory entries.
    Mdt,
    /// Objects: file data.
    Ost,
}

/// One target of the cluster; prints as `MDT0001`, `OST0003` (the index in hexadecimal, as Lustre does).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TargetId {
    /// What it holds.
    pub kind: TargetKind,
    /// Its number among the targets of that kind.
    pub index: u16,
}

impl TargetId {
    /// The manager. There is one book per cluster.
    pub const MGT: TargetId = TargetId { kind: TargetKind::Mgt, index: 0 };

    /// Metadata target `index`.
    pub const fn mdt(index: u16) -> TargetId {
        TargetId { kind: TargetKind::Mdt, index }
    }

    /// Object storage target `index`.
    pub const fn ost(index: u16) -> TargetId {
        TargetId { kind: TargetKind::Ost, index }
    }

    /// The form a frame header carries: kind in the upper half, index in the lower.
    pub const fn to_wire(self) -> u32 {
        let kind = match self.kind {
            TargetKind::Mgt => 1u32,
            TargetKind::Mdt => 2,
            TargetKind::Ost => 3,
        };
        (kind << 16) | self.index as u32
    }

    /// The inverse of [`Self::to_wire`].
    pub const fn from_wire(wire: u32) -> Option<TargetId> {
        let kind = match wire >> 16 {
            1 => TargetKind::Mgt,
            2 => TargetKind::Mdt,
            3 => TargetKind::Ost,
            _ => return None,
        };
        Some(TargetId { kind, index: wire as u16 })
    }
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TargetKind::Mgt => write!(f, "MGT{:04x}", self.index),
            TargetKind::Mdt => write!(f, "MDT{:04x}", self.index),
            TargetKind::Ost => write!(f, "OST{:04x}", self.index),
        }
    }
}

impl FromStr for TargetId {
    type Err = String;

    fn from_str(text: &str) -> Result<TargetId, String> {
        let bad = || format!("not a target: {text:?}; expected a name like MDT0000 or OST0003");
        let upper = text.to_ascii_uppercase();
        let (kind, index) = upper.split_at_checked(3).ok_or_else(bad)?;
        let index = u16::from_str_radix(index, 16).map_err(|_| bad())?;
        match kind {
            "MGT" => Ok(TargetId { kind: TargetKind::Mgt, index }),
            "MDT" => Ok(TargetId::mdt(index)),
            "OST" => Ok(TargetId::ost(index)),
            _ => Err(bad()),
        }
    }
}

impl From<TargetId> for String {
    fn from(id: TargetId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for TargetId {
    type Error = String;

    fn try_from(text: String) -> Result<TargetId, String> {
        text.parse()
    }
}

/// A server process known to the manager.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node{}", self.0)
    }
}

/// A client of the cluster for the time of one mount: the name of its sessions on every server.
/// Given out by the manager, never twice. Zero is nobody.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ClientId(pub u64);

impl ClientId {
    /// No session: requests of servers, and of clients before they have registered.
    pub const NONE: ClientId = ClientId(0);
    /// First of the identities that metadata servers use towards object servers.
    pub const SERVER_BASE: u64 = 1 << 48;
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client{}", self.0)
    }
}

/// Number of a modifying request in a session: a slot, and a sequence number within the slot.
///
/// A client uses a slot for one request at a time and raises the sequence by one for each new
/// request; the server keeps the last reply of each slot. So a resent request is recognised and gets
/// its first answer, in memory bounded by slots times sessions (as in NFSv4.1, RFC 8881, 2.10.6).
/// Zero means "not modifying, no slot".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Xid(pub u64);

impl Xid {
    /// Slots a session may use.
    pub const MAX_SLOTS: u16 = 1024;
    /// The request changes nothing and needs no slot.
    pub const NONE: Xid = Xid(0);

    /// Request `sequence` (from 1) of `slot`.
    pub const fn new(slot: u16, sequence: u64) -> Xid {
        Xid(((slot as u64) << 48) | (sequence & ((1 << 48) - 1)))
    }

    /// The slot.
    pub const fn slot(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The number within the slot.
    pub const fn sequence(self) -> u64 {
        self.0 & ((1 << 48) - 1)
    }
}

/// Version of the cluster map. Grows by one with each change.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fid_splits_and_prints() {
        let fid = Fid::new(0x12, 0x3456);
        assert_eq!((fid.sequence(), fid.object()), (0x12, 0x3456));
        assert_eq!(fid.to_string(), "0x12:0x3456");
        assert_eq!("0x12:0x3456".parse(), Ok(fid));
        assert_eq!(format!("[{fid}]").parse(), Ok(fid));
        assert_eq!(fid.0.to_string().parse(), Ok(fid));
        assert!("0x1000000:1".parse::<Fid>().is_err());
        assert!("nonsense".parse::<Fid>().is_err());
    }

    #[test]
    fn target_names_round_trip() {
        for id in [TargetId::mdt(0), TargetId::ost(0x1a), TargetId::MGT] {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(TargetId::from_wire(id.to_wire()), Some(id));
        }
        assert_eq!(TargetId::ost(26).to_string(), "OST001a");
        assert!("OS".parse::<TargetId>().is_err());
        assert!("XXX0000".parse::<TargetId>().is_err());
    }

    #[test]
    fn object_name_round_trips() {
        let id = ObjectId { fid: Fid::new(3, 9), index: 0x1_0002 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("12.3".parse::<ObjectId>().is_err());
    }

    #[test]
    fn xid_keeps_slot_and_sequence() {
        let xid = Xid::new(513, 77);
        assert_eq!((xid.slot(), xid.sequence()), (513, 77));
    }
}
