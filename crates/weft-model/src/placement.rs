//! Choosing targets: from what is asked for ([`LayoutSpec`]) and the cluster map to a [`Layout`].
//!
//! The default needs no tuning. Up to [`FIRST_COMPONENT`] bytes of a file live on one OST, so a small
//! file costs one object; beyond that it is striped over all OSTs (at most [`DEFAULT_WIDTH`]). OSTs
//! are taken round-robin from a start that the caller rotates; those that are full or nearly so are
//! passed over as long as others have room, even if a file is striped over fewer than asked for, so that
//! one full OST never fills the file system.

use crate::error::{ErrorKind, FsError, Result};
use crate::layout::{Component, ComponentSpec, EOF, Geometry, Layout, LayoutSpec};
use crate::map::{ClusterMap, Target, TargetState};

/// Bytes of a file that stay on its first OST under the default layout.
pub const FIRST_COMPONENT: u64 = 4 << 20;
/// Stripe unit where none is asked for.
pub const DEFAULT_STRIPE_UNIT: u64 = 1 << 20;
/// Most OSTs a default layout uses for one file.
pub const DEFAULT_WIDTH: usize = 8;
/// An OST with less free space than this takes no new objects while others have four times as much.
pub const NEARLY_FULL: u64 = 256 << 20;

/// Makes a layout. `rotation` (a counter of the MDT's) spreads first targets evenly.
///
/// # Errors
/// `Invalid` for targets or pools that do not exist or impossible parameters, `NoSpace` when there is
/// no OST with room.
pub fn place(spec: &LayoutSpec, map: &ClusterMap, rotation: u64) -> Result<Layout> {
    let default;
    let wanted = if spec.components.is_empty() {
        default = default_spec(map.osts().count());
        &default.components
    } else {
        &spec.components
    };
    let mut components: Vec<Component> = Vec::with_capacity(wanted.len());
    let mut start = 0;
    for (id, want) in wanted.iter().enumerate() {
        // A following component starts on the OST after the first one's, not again on the same.
        let targets = choose(want, map, rotation + id as u64)?;
        let unit = if want.stripe_unit == 0 { DEFAULT_STRIPE_UNIT } else { want.stripe_unit };
        let (group_width, group_depth) = (want.group_width, want.group_depth);
        components.push(Component {
            id: id as u16,
            start,
            end: want.end,
            pattern: want.pattern,
            geometry: Geometry { stripe_unit: unit, group_width, group_depth },
            targets,
        });
        start = want.end;
    }
    let layout = Layout { version: 1, components };
    layout.check()?;
    Ok(layout)
}

/// The layout of a file system of `osts` OSTs for files that ask for nothing.
pub fn default_spec(osts: usize) -> LayoutSpec {
    let striped = ComponentSpec {
        stripe_count: osts.clamp(1, DEFAULT_WIDTH) as i32,
        ..ComponentSpec::default()
    };
    if osts <= 1 {
        return LayoutSpec { components: vec![striped] };
    }
    let first = ComponentSpec { end: FIRST_COMPONENT, stripe_count: 1, ..ComponentSpec::default() };
    LayoutSpec { components: vec![first, striped] }
}

/// The OSTs of one component, in order.
fn choose(want: &ComponentSpec, map: &ClusterMap, rotation: u64) -> Result<Vec<u16>> {
    let invalid = |why: String| FsError::new(ErrorKind::Invalid, "choose targets").because(why);
    if !want.targets.is_empty() {
        for &index in &want.targets {
            if !map.osts().any(|ost| ost.id.index == index) {
                return Err(invalid(format!("there is no OST{index:04x}")));
            }
        }
        return Ok(want.targets.clone());
    }
    let pool = match want.pool.as_str() {
        "" => None,
        name => Some(map.pool(name).ok_or_else(|| invalid(format!("there is no pool {name:?}")))?),
    };
    let mut usable: Vec<&Target> = map
        .osts()
        .filter(|ost| ost.state != TargetState::Drain && ost.space.free > 0)
        .filter(|ost| pool.is_none_or(|p| p.targets.contains(&ost.id.index)))
        .collect();
    if usable.is_empty() {
        return Err(FsError::new(ErrorKind::NoSpace, "choose targets").because("no OST has room"));
    }
    let most = usable.iter().map(|ost| ost.space.free).max().unwrap_or(0);
    let enough = NEARLY_FULL.min(most / 4);
    usable.retain(|ost| ost.space.free >= enough || Some(ost.id.index) == want.start_index);
    usable.sort_by_key(|ost| ost.id.index);
    let explicit_start = match want.start_index {
        Some(index) => Some(
            usable
                .iter()
                .position(|ost| ost.id.index == index)
                .ok_or_else(|| invalid(format!("OST{index:04x} does not exist or has no room")))?,
        ),
        None => None,
    };
    let count = width(want, usable.len(), pool.is_some())?;
    let start = explicit_start.unwrap_or((rotation % usable.len() as u64) as usize);
    Ok((0..count).map(|i| usable[(start + i) % usable.len()].id.index).collect())
}

fn width(want: &ComponentSpec, usable: usize, in_pool: bool) -> Result<usize> {
    let all = match want.group_width {
        0 => usable,
        group => usable - usable % group as usize,
    };
    match want.stripe_count {
        -1 => Ok(all.max(1)),
        0 if in_pool || want.group_width != 0 => Ok(all.max(1)),
        0 => Ok(usable.min(DEFAULT_WIDTH)),
        // More than there are: as many as there are, as Lustre does.
        count if count > 0 => Ok((count as usize).min(usable)),
        other => Err(FsError::new(ErrorKind::Invalid, "choose targets")
            .because(format!("stripe count {other} must be -1, 0 or positive"))),
    }
}

/// Checks a wish before it is stored on a directory.
///
/// # Errors
/// As [`place`].
pub fn check_spec(spec: &LayoutSpec, map: &ClusterMap) -> Result<()> {
    if spec.components.is_empty() {
        return Ok(());
    }
    if spec.components.last().is_some_and(|last| last.end != EOF) {
        return Err(FsError::new(ErrorKind::Invalid, "set layout")
            .because("the last component must end at eof (-1)"));
    }
    place(spec, map, 0).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{NodeId, TargetId};
    use crate::map::{Pool, Space};

    fn map(free: &[u64]) -> ClusterMap {
        let targets = free
            .iter()
            .enumerate()
            .map(|(index, &free)| Target {
                id: TargetId::ost(index as u16),
                uuid: String::new(),
                node: NodeId(0),
                state: TargetState::Up,
                space: Space { total: 1 << 40, free, ..Space::default() },
            })
            .collect();
        let pools = vec![Pool { name: "fast".into(), targets: vec![1, 2] }];
        ClusterMap { targets, pools, ..ClusterMap::default() }
    }

    fn one(spec: ComponentSpec, map: &ClusterMap, rotation: u64) -> Result<Vec<u16>> {
        place(&LayoutSpec { components: vec![spec] }, map, rotation)
            .map(|layout| layout.components[0].targets.clone())
    }

    #[test]
    fn default_grows_from_one_to_all() {
        let layout = place(&LayoutSpec::default(), &map(&[1 << 35; 4]), 6).unwrap();
        assert_eq!(layout.components[0].targets, vec![2]);
        assert_eq!(layout.components[1].targets, vec![3, 0, 1, 2]);
        assert_eq!(layout.components[0].end, FIRST_COMPONENT);
    }

    #[test]
    fn full_targets_are_passed_over() {
        let map = map(&[1 << 35, 1 << 20, 0, 1 << 35]);
        for rotation in 0..8 {
            let one = one(ComponentSpec { stripe_count: 1, ..Default::default() }, &map, rotation);
            assert!([0, 3].contains(&one.unwrap()[0]));
        }
        let all = one(ComponentSpec { stripe_count: -1, ..Default::default() }, &map, 0).unwrap();
        assert_eq!(all, vec![0, 3]);
        let begun = ComponentSpec { start_index: Some(1), stripe_count: -1, ..Default::default() };
        assert_eq!(one(begun, &map, 0).unwrap(), vec![1, 3, 0]);
    }

    #[test]
    fn the_last_room_is_used_where_it_is() {
        let map = map(&[4 << 20, 150 << 20, 100 << 20]);
        let all = one(ComponentSpec { stripe_count: -1, ..Default::default() }, &map, 0).unwrap();
        assert_eq!(all, vec![1, 2]);
    }

    #[test]
    fn nothing_left_is_no_space() {
        let error = one(ComponentSpec::default(), &map(&[0, 0]), 0).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoSpace);
    }

    #[test]
    fn wishes_are_honoured_or_refused_with_a_reason() {
        let map = map(&[1 << 35; 4]);
        let spec = |f: fn(&mut ComponentSpec)| {
            let mut spec = ComponentSpec::default();
            f(&mut spec);
            spec
        };
        assert_eq!(one(spec(|s| s.targets = vec![3, 1]), &map, 0).unwrap(), vec![3, 1]);
        assert_eq!(one(spec(|s| s.pool = "fast".into()), &map, 0).unwrap(), vec![1, 2]);
        let started = spec(|s| (s.start_index, s.stripe_count) = (Some(2), 3));
        assert_eq!(one(started, &map, 0).unwrap(), vec![2, 3, 0]);
        assert!(one(spec(|s| s.targets = vec![9]), &map, 0).is_err());
        assert!(one(spec(|s| s.pool = "slow".into()), &map, 0).is_err());
        assert!(one(spec(|s| s.stripe_unit = 1000), &map, 0).is_err());
        assert!(one(spec(|s| s.stripe_count = -2), &map, 0).is_err());
        let grouped = spec(|s| (s.group_width, s.group_depth) = (2, 3));
        assert_eq!(one(grouped, &map, 0).unwrap().len(), 4);
    }
}
