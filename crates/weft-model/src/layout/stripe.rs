//! The arithmetic of striping, in one or two levels.
//!
//! The two-level walk is that of RFC 5664 (pNFS objects, section 3) and of Linux's Object RAID
//! Engine, without parity: `group_width` objects form a group; after `group_depth` stripes in one
//! group the file moves on to the next, and after the last group back to the first.
//!
//! ```text
//! U = group_width * unit      bytes per stripe
//! T = U * group_depth         bytes per visit of a group
//! S = T * groups              bytes per cycle over all groups
//! M = L / S;  G = (L - M*S) / T;  H = (L - M*S) % T
//! N = H / U;  C = (H - N*U) / unit + G*group_width
//! O = L % unit + N*unit + M*group_depth*unit
//! ```

use super::STRIPE_GRANULE;
use crate::error::{ErrorKind, FsError, Result};
use serde::{Deserialize, Serialize};

/// Parameters of the walk over the objects of a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Geometry {
    /// Bytes on one object before moving to the next; a multiple of 4096.
    pub stripe_unit: u64,
    /// Objects per group; 0 for one group of all objects.
    pub group_width: u32,
    /// Stripes in a group before moving to the next; 0 when there is one group.
    pub group_depth: u32,
}

/// Where a byte lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Located {
    /// Number of the object in its component.
    pub position: usize,
    /// Offset in the object.
    pub object_offset: u64,
    /// Bytes from here to the end of the stripe unit.
    pub room: u64,
}

/// The derived sizes; 128-bit so that no legal parameters overflow.
struct Sizes {
    unit: u128,
    width: u128,
    depth: u128,
    stripe: u128,
    visit: u128,
    cycle: u128,
}

impl Geometry {
    /// One level: plain RAID 0.
    pub const fn plain(stripe_unit: u64) -> Geometry {
        Geometry { stripe_unit, group_width: 0, group_depth: 0 }
    }

    /// Checks the parameters for a component of `objects` objects.
    ///
    /// # Errors
    /// `Invalid`, with the rule that is broken.
    pub fn check(&self, objects: usize) -> Result<()> {
        let bad = |why: &str| Err(FsError::new(ErrorKind::Invalid, "layout").because(why));
        if self.stripe_unit == 0
            || !self.stripe_unit.is_multiple_of(STRIPE_GRANULE)
            || self.stripe_unit > 1 << 40
        {
            return bad("the stripe unit must be a multiple of 4096 and at most 1 TiB");
        }
        if self.group_width == 0 {
            return Ok(());
        }
        if self.group_depth == 0 {
            return bad("group_depth must be at least 1 where group_width is given");
        }
        if !objects.is_multiple_of(self.group_width as usize) {
            return bad("group_width must divide the number of targets");
        }
        Ok(())
    }

    fn sizes(&self, objects: usize) -> Sizes {
        let grouped = self.group_width != 0 && (self.group_width as usize) < objects;
        let width = if grouped { self.group_width as u128 } else { objects as u128 };
        let depth = if grouped { self.group_depth as u128 } else { 1 };
        let unit = self.stripe_unit as u128;
        let stripe = width * unit;
        let visit = stripe * depth;
        Sizes { unit, width, depth, stripe, visit, cycle: visit * (objects as u128 / width) }
    }

    /// Finds the byte at `offset`, counted from the start of the component.
    pub fn locate(&self, offset: u64, objects: usize) -> Located {
        if objects == 1 {
            let room = self.stripe_unit - offset % self.stripe_unit;
            return Located { position: 0, object_offset: offset, room };
        }
        let s = self.sizes(objects);
        let offset = offset as u128;
        let (m, in_cycle) = (offset / s.cycle, offset % s.cycle);
        let (g, h) = (in_cycle / s.visit, in_cycle % s.visit);
        let (n, in_stripe) = (h / s.stripe, h % s.stripe);
        let in_unit = offset % s.unit;
        Located {
            position: (g * s.width + in_stripe / s.unit) as usize,
            object_offset: (in_unit + (n + m * s.depth) * s.unit) as u64,
            room: (s.unit - in_unit) as u64,
        }
    }

    /// Inverse of [`Self::locate`]: component offset of a byte of an object, saturating.
    pub fn file_offset(&self, position: usize, object_offset: u64, objects: usize) -> u64 {
        let s = self.sizes(objects);
        let (position, object_offset) = (position as u128, object_offset as u128);
        let (g, c) = (position / s.width, position % s.width);
        let (row, in_unit) = (object_offset / s.unit, object_offset % s.unit);
        let (m, n) = (row / s.depth, row % s.depth);
        let offset = m * s.cycle + g * s.visit + n * s.stripe + c * s.unit + in_unit;
        offset.min(u64::MAX as u128) as u64
    }

    /// Bytes of the object at `position` when the component holds `size` bytes without holes.
    pub fn object_size(&self, position: usize, size: u64, objects: usize) -> u64 {
        let s = self.sizes(objects);
        let (group, column) = (position as u128 / s.width, position as u128 % s.width);
        let (m, in_cycle) = (size as u128 / s.cycle, size as u128 % s.cycle);
        let in_visit = in_cycle.saturating_sub(group * s.visit).min(s.visit);
        let (n, in_stripe) = (in_visit / s.stripe, in_visit % s.stripe);
        let partial = in_stripe.saturating_sub(column * s.unit).min(s.unit);
        ((m * s.depth + n) * s.unit + partial) as u64
    }

    /// Number of leading objects that a component of `size` bytes can have touched.
    pub fn reach(&self, size: u64, objects: usize) -> usize {
        let s = self.sizes(objects);
        let size = size as u128;
        if size >= s.cycle {
            return objects;
        }
        let full_groups = (size / s.visit) * s.width;
        let columns = (size % s.visit).div_ceil(s.unit).min(s.width);
        (full_groups + columns) as usize
    }
}
