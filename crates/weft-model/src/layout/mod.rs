//! Layouts: how the bytes of a file map to objects on OSTs.
//!
//! A [`Layout`] is a list of [`Component`]s, each for a range of file offsets (a progressive layout).
//! A component stripes its range over objects, in one or two levels ([`stripe`]). What a user asks
//! for is a [`spec::LayoutSpec`]; [`crate::placement`] turns it into a layout by choosing targets.

pub mod spec;
pub mod stripe;

use crate::error::{ErrorKind, FsError, Result};
use crate::id::{Fid, ObjectId, TargetId};
use serde::{Deserialize, Serialize};
pub use spec::{ComponentSpec, LayoutSpec};
pub use stripe::Geometry;

/// End of a component that reaches to the end of the file.
pub const EOF: u64 = u64::MAX;
/// Largest file size: offsets are signed 64-bit numbers in Linux.
pub const MAX_FILE_SIZE: u64 = i64::MAX as u64;
/// Smallest stripe unit and the granule of all of them: a block of checksums.
pub const STRIPE_GRANULE: u64 = 4096;
/// Most targets that one component may use.
pub const MAX_WIDTH: usize = 2000;

/// A metadata target keeps the bytes of a file itself as long as none lies at or beyond this offset.
pub const INLINE_MAX: u64 = 16 << 10;

/// How a component protects its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// RAID 0.
    Stripe,
    /// `n` copies of each stripe unit.
    Mirror(u8),
    /// `k` data and `m` parity units per stripe.
    Ec(u8, u8),
}

/// One range of a file and the objects that hold it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Component {
    /// Number of the component in the file; never used again after a component is replaced.
    pub id: u16,
    /// First file offset.
    pub start: u64,
    /// File offset after the last, [`EOF`] for none.
    pub end: u64,
    /// Protection.
    pub pattern: Pattern,
    /// How the range walks over the objects.
    pub geometry: Geometry,
    /// OST index of each object.
    pub targets: Vec<u16>,
}

/// Where all bytes of a file live.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Layout {
    /// Grows with each change of the layout.
    pub version: u32,
    /// Ordered by offset, without gaps, from 0 to [`EOF`] or to where the file may not grow beyond.
    pub components: Vec<Component>,
}

/// A contiguous part of a transfer that goes to one object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The target that has the object.
    pub target: TargetId,
    /// The object.
    pub object: ObjectId,
    /// Offset in the object.
    pub object_offset: u64,
    /// Offset in the file.
    pub file_offset: u64,
    /// Bytes.
    pub len: u64,
}

/// One object of a file and the place of its data in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectRef {
    /// The target that has the object.
    pub target: TargetId,
    /// The object.
    pub object: ObjectId,
}

impl Component {
    fn object(&self, fid: Fid, position: usize) -> ObjectRef {
        ObjectRef {
            target: TargetId::ost(self.targets[position]),
            object: ObjectId { fid, index: (self.id as u32) << 16 | position as u32 },
        }
    }

    /// Checks what a decoder cannot: a malformed component must not reach the arithmetic.
    fn check(&self) -> Result<()> {
        let bad = |why: &str| Err(FsError::new(ErrorKind::Invalid, "layout").because(why));
        if self.start >= self.end {
            return bad("a component must not be empty");
        }
        if self.targets.is_empty() || self.targets.len() > MAX_WIDTH {
            return bad("a component needs 1 to 2000 targets");
        }
        if self.pattern != Pattern::Stripe {
            return bad("mirrors and erasure codes are not available yet; use pattern raid0");
        }
        self.geometry.check(self.targets.len())
    }
}

impl Layout {
    /// Checks every rule a layout has to keep.
    ///
    /// # Errors
    /// `Invalid`, with the rule that is broken.
    pub fn check(&self) -> Result<()> {
        let mut next = 0;
        for component in &self.components {
            component.check()?;
            if component.start != next {
                return Err(FsError::new(ErrorKind::Invalid, "layout")
                    .because("components must follow each other without gaps"));
            }
            next = component.end;
        }
        if self.components.is_empty() {
            return Err(FsError::new(ErrorKind::Invalid, "layout").because("no component"));
        }
        Ok(())
    }

    /// Largest size a file of this layout may have.
    pub fn max_size(&self) -> u64 {
        self.components.last().map_or(0, |last| last.end.min(MAX_FILE_SIZE))
    }

    /// Splits the file range `[offset, offset + len)` into pieces, in file order. Neighbouring units
    /// of one object that are contiguous in it are joined.
    ///
    /// # Errors
    /// `FileTooBig` beyond [`Self::max_size`].
    pub fn split(&self, fid: Fid, offset: u64, len: u64) -> Result<Vec<Piece>> {
        let end = offset.checked_add(len).filter(|&end| end <= self.max_size());
        let end = end.ok_or_else(|| FsError::new(ErrorKind::FileTooBig, "split"))?;
        let mut pieces: Vec<Piece> = Vec::new();
        let mut at = offset;
        for component in &self.components {
            while at < end && at >= component.start && at < component.end {
                let unit = component.geometry.locate(at - component.start, component.targets.len());
                let len = unit.room.min(end - at).min(component.end - at);
                let found = component.object(fid, unit.position);
                match pieces.last_mut() {
                    Some(last)
                        if last.object == found.object
                            && last.object_offset + last.len == unit.object_offset =>
                    {
                        last.len += len;
                    }
                    _ => pieces.push(Piece {
                        target: found.target,
                        object: found.object,
                        object_offset: unit.object_offset,
                        file_offset: at,
                        len,
                    }),
                }
                at += len;
            }
        }
        Ok(pieces)
    }

    /// Every object the file may have.
    pub fn objects(&self, fid: Fid) -> impl Iterator<Item = ObjectRef> + '_ {
        self.components
            .iter()
            .flat_map(move |c| (0..c.targets.len()).map(move |position| c.object(fid, position)))
    }

    /// The objects a file of `size` bytes can have data in: those of the components it reaches.
    pub fn objects_below(&self, fid: Fid, size: u64) -> impl Iterator<Item = ObjectRef> + '_ {
        self.components.iter().filter(move |c| c.start < size).flat_map(move |c| {
            let reach = c.geometry.reach(size.min(c.end) - c.start, c.targets.len());
            (0..reach).map(move |position| c.object(fid, position))
        })
    }

    /// Size of the object with `index` when the file has `size` bytes and no holes.
    pub fn object_size(&self, index: u32, size: u64) -> u64 {
        match self.component_of(index) {
            Some((component, position)) => {
                let inside = size.min(component.end).saturating_sub(component.start);
                component.geometry.object_size(position, inside, component.targets.len())
            }
            None => 0,
        }
    }

    /// File size that an object of `object_size` bytes proves: one more than the file offset of its
    /// last byte; 0 for an empty object.
    pub fn size_from_object(&self, index: u32, object_size: u64) -> u64 {
        match self.component_of(index) {
            Some((component, position)) if object_size > 0 => {
                let last = component.geometry.file_offset(
                    position,
                    object_size - 1,
                    component.targets.len(),
                );
                component.start.saturating_add(last).saturating_add(1).min(component.end)
            }
            _ => 0,
        }
    }

    fn component_of(&self, index: u32) -> Option<(&Component, usize)> {
        let (id, position) = ((index >> 16) as u16, (index & 0xffff) as usize);
        let component = self.components.iter().find(|c| c.id == id)?;
        (position < component.targets.len()).then_some((component, position))
    }
}

#[cfg(test)]
mod tests;
