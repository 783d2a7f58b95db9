//! The layout arithmetic against enumeration: every byte in one place, and back.

use super::*;
use std::collections::HashMap;

fn component(id: u16, start: u64, end: u64, geometry: Geometry, objects: usize) -> Component {
    let targets = (0..objects as u16).collect();
    Component { id, start, end, pattern: Pattern::Stripe, geometry, targets }
}

fn shapes() -> Vec<(Geometry, usize)> {
    let unit = STRIPE_GRANULE;
    vec![
        (Geometry::plain(unit), 1),
        (Geometry::plain(unit * 2), 3),
        (Geometry { stripe_unit: unit, group_width: 2, group_depth: 3 }, 6),
        (Geometry { stripe_unit: unit, group_width: 3, group_depth: 1 }, 9),
        (Geometry { stripe_unit: unit, group_width: 4, group_depth: 5 }, 4),
    ]
}

#[test]
fn every_unit_has_one_place_and_comes_back() {
    for (geometry, objects) in shapes() {
        geometry.check(objects).unwrap();
        let mut seen = HashMap::new();
        let step = STRIPE_GRANULE / 2;
        for k in 0..400 {
            let offset = k * step + 7;
            let at = geometry.locate(offset, objects);
            assert!(at.position < objects);
            assert_eq!(geometry.file_offset(at.position, at.object_offset, objects), offset);
            assert_eq!(seen.insert((at.position, at.object_offset), offset), None);
        }
    }
}

#[test]
fn object_sizes_add_up() {
    for (geometry, objects) in shapes() {
        for size in (0..200).map(|k| k * 1777) {
            let sizes: Vec<u64> =
                (0..objects).map(|p| geometry.object_size(p, size, objects)).collect();
            assert_eq!(sizes.iter().sum::<u64>(), size, "{geometry:?} {size}");
            let touched = sizes.iter().rposition(|&s| s > 0).map_or(0, |p| p + 1);
            assert_eq!(geometry.reach(size, objects), touched, "{geometry:?} {size}");
        }
    }
}

#[test]
fn splits_across_components() {
    let unit = STRIPE_GRANULE;
    let layout = Layout {
        version: 1,
        components: vec![
            component(0, 0, 2 * unit, Geometry::plain(unit), 1),
            component(1, 2 * unit, EOF, Geometry::plain(unit), 2),
        ],
    };
    layout.check().unwrap();
    let pieces = layout.split(Fid::ROOT, unit / 2, 3 * unit).unwrap();
    let seen: Vec<_> = pieces.iter().map(|p| (p.object.index, p.object_offset, p.len)).collect();
    assert_eq!(
        seen,
        vec![(0, unit / 2, unit + unit / 2), (0x1_0000, 0, unit), (0x1_0001, 0, unit / 2)]
    );
    assert_eq!(pieces.iter().map(|p| p.len).sum::<u64>(), 3 * unit);
    for piece in &pieces {
        let end = layout.size_from_object(piece.object.index, piece.object_offset + piece.len);
        assert_eq!(end, piece.file_offset + piece.len);
    }
    assert_eq!(layout.objects(Fid::ROOT).count(), 3);
    assert_eq!(layout.objects_below(Fid::ROOT, unit).count(), 1);
    assert_eq!(layout.objects_below(Fid::ROOT, 2 * unit + 1).count(), 2);
    assert_eq!(layout.objects_below(Fid::ROOT, 0).count(), 0);
}

#[test]
fn offsets_to_eight_exbibytes() {
    let layout =
        Layout { version: 1, components: vec![component(0, 0, EOF, Geometry::plain(1 << 20), 4)] };
    assert_eq!(layout.max_size(), MAX_FILE_SIZE);
    let last = layout.split(Fid::ROOT, MAX_FILE_SIZE - 1, 1).unwrap()[0];
    assert_eq!(layout.size_from_object(last.object.index, last.object_offset + 1), MAX_FILE_SIZE);
    let beyond = layout.split(Fid::ROOT, MAX_FILE_SIZE, 1).unwrap_err();
    assert_eq!(beyond.kind, ErrorKind::FileTooBig);
    assert_eq!(layout.split(Fid::ROOT, u64::MAX, 2).unwrap_err().kind, ErrorKind::FileTooBig);
}

#[test]
fn broken_rules_are_named() {
    let good = Geometry::plain(1 << 20);
    let check = |components| Layout { version: 1, components }.check();
    assert!(check(vec![]).is_err());
    assert!(check(vec![component(0, 4096, EOF, good, 1)]).is_err());
    assert!(check(vec![component(0, 0, EOF, Geometry::plain(1000), 1)]).is_err());
    assert!(check(vec![component(0, 0, 0, good, 1)]).is_err());
    assert!(check(vec![component(0, 0, EOF, good, 0)]).is_err());
    let uneven = Geometry { stripe_unit: 4096, group_width: 4, group_depth: 2 };
    let error = check(vec![component(0, 0, EOF, uneven, 6)]).unwrap_err();
    assert!(error.to_string().contains("group_width"));
}
