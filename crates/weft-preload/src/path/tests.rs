use super::*;
use std::collections::HashMap;
use weft_model::Timespec;

/// `/w` is a Weft file system; links of this machine are `real`.
#[derive(Default)]
struct Fake {
    real: HashMap<&'static str, &'static str>,
    names: HashMap<(u64, &'static str), u64>,
    links: HashMap<u64, &'static str>,
    files: Vec<u64>,
}

fn attr(fid: u64, kind: FileType) -> Attr {
    let time = Timespec::default();
    Attr {
        fid: Fid(fid),
        kind,
        mode: 0o755,
        nlink: 1,
        uid: 0,
        gid: 0,
        size: 0,
        blocks: 0,
        rdev: 0,
        atime: time,
        mtime: time,
        ctime: time,
        btime: time,
        change: 0,
    }
}

impl World for Fake {
    fn mounted(&self, path: &[u8]) -> Option<usize> {
        (path == b"/w").then_some(0)
    }
    fn prefix(&self, _: usize) -> &[u8] {
        b"/w"
    }
    fn real_link(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.real.get(std::str::from_utf8(path).unwrap()).map(|t| t.as_bytes().to_vec())
    }
    fn root(&self, _: usize) -> Result<Fid, Errno> {
        Ok(Fid(1))
    }
    fn look(&self, _: usize, dir: Fid, name: &[u8]) -> Result<Option<Node>, Errno> {
        let name = std::str::from_utf8(name).unwrap();
        let found = self.names.get(&(dir.0, name)).copied();
        Ok(found.map(|fid| {
            let kind = match fid {
                fid if self.links.contains_key(&fid) => FileType::Symlink,
                fid if self.files.contains(&fid) => FileType::Regular,
                _ => FileType::Directory,
            };
            Node { fid: Fid(fid), kind, attr: None }
        }))
    }
    fn attr(&self, _: usize, node: &Node) -> Result<Option<Attr>, Errno> {
        Ok(Some(attr(node.fid.0, node.kind)))
    }
    fn link(&self, _: usize, fid: Fid) -> Result<Vec<u8>, Errno> {
        Ok(self.links[&fid.0].as_bytes().to_vec())
    }
}

/// `/w/a/b/f`, links in and out.
fn world() -> Fake {
    Fake {
        real: [("/into", "w/a"), ("/tmp/deep", "/w/a/b"), ("/loop", "loop")].into(),
        names: [
            ((1, "a"), 2),
            ((2, ".."), 1),
            ((2, "b"), 3),
            ((3, ".."), 2),
            ((3, "f"), 4),
            ((1, "out"), 5),
            ((1, "up"), 6),
            ((2, "rel"), 7),
            ((1, "dead"), 8),
        ]
        .into(),
        links: [(5, "/etc"), (6, "../usr"), (7, "b/f"), (8, "nothing")].into(),
        files: vec![4],
    }
}

fn walk(path: &str, wanted: Wanted) -> Result<Place, Errno> {
    walk_from(Here::Real(b"/tmp".to_vec()), path, wanted)
}

fn walk_from(here: Here, path: &str, wanted: Wanted) -> Result<Place, Errno> {
    resolve(&world(), here, path.as_bytes(), wanted)
}

fn real(path: &str) -> Result<Place, Errno> {
    Ok(Place::Real(path.into()))
}

fn spot(place: Result<Place, Errno>) -> (u64, String, Option<u64>, String) {
    let Ok(Place::Weft(spot)) = place else { panic!("{place:?}") };
    let path = String::from_utf8(spot.path()).unwrap();
    let name = String::from_utf8(spot.name).unwrap();
    (spot.dir.fid.0, name, spot.found.map(|attr| attr.fid.0), path)
}

fn is(dir: u64, name: &str, found: Option<u64>, path: &str) -> (u64, String, Option<u64>, String) {
    (dir, name.into(), found, path.into())
}

#[test]
fn names_below_the_prefix_are_inside() {
    assert_eq!(spot(walk("/w/a/b/f", Wanted::Target)), is(3, "f", Some(4), "/a/b/f"));
    assert_eq!(spot(walk("//w/./a//new", Wanted::Target)), is(2, "new", None, "/a/new"));
    assert_eq!(spot(walk("/w", Wanted::Target)), is(1, "", Some(1), ""));
    assert_eq!(spot(walk("/w/a/", Wanted::Name)), is(1, "a", None, "/a"));
    assert_eq!(walk("/wx/a", Wanted::Target), real("/wx/a"));
}

#[test]
fn dots_cross_the_prefix() {
    assert_eq!(walk("/w/../etc", Wanted::Target), real("/etc"));
    assert_eq!(walk("/w/a/../../x/y", Wanted::Target), real("/x/y"));
    assert_eq!(walk("../w/..", Wanted::Target), real("/"));
    assert_eq!(spot(walk("../w/a/b/..", Wanted::Target)), is(2, "", Some(2), "/a"));
    assert_eq!(walk("/..", Wanted::Target), real("/"));
}

#[test]
fn links_cross_the_prefix_in_both_directions() {
    assert_eq!(walk("/w/out/passwd", Wanted::Target), real("/etc/passwd"));
    assert_eq!(walk("/w/up/bin", Wanted::Target), real("/usr/bin"));
    assert_eq!(spot(walk("/into/b/f", Wanted::Target)), is(3, "f", Some(4), "/a/b/f"));
    // The parent of where the link led, not of the link.
    assert_eq!(spot(walk("deep/../rel", Wanted::Itself)), is(2, "rel", Some(7), "/a/rel"));
    assert_eq!(walk("/w/out/../x", Wanted::Target), real("/x"));
}

#[test]
fn the_last_link_is_followed_if_wanted() {
    assert_eq!(spot(walk("/w/a/rel", Wanted::Target)), is(3, "f", Some(4), "/a/b/f"));
    assert_eq!(spot(walk("/w/out", Wanted::Itself)), is(1, "out", Some(5), "/out"));
    assert_eq!(walk("/w/out/", Wanted::Itself), real("/etc/"));
    assert_eq!(walk("deep", Wanted::Itself), real("/tmp/deep"));
    // A file may be made where a dead link points to.
    assert_eq!(spot(walk("/w/dead", Wanted::Target)), is(1, "nothing", None, "/nothing"));
}

#[test]
fn from_a_directory_inside() {
    let here = || Here::Weft(Dir { mount: 0, fid: Fid(3), path: b"/a/b".to_vec() });
    assert_eq!(spot(walk_from(here(), "f", Wanted::Target)), is(3, "f", Some(4), "/a/b/f"));
    assert_eq!(spot(walk_from(here(), "../rel", Wanted::Name)), is(2, "rel", None, "/a/rel"));
    assert_eq!(walk_from(here(), "../../../etc", Wanted::Target), real("/etc"));
    assert_eq!(walk_from(here(), "/etc", Wanted::Target), real("/etc"));
}

#[test]
fn what_is_wrong_is_told() {
    assert_eq!(walk("/w/no/f", Wanted::Target), Err(Errno(libc::ENOENT)));
    assert_eq!(walk("/w/a/b/f/g", Wanted::Target), Err(Errno(libc::ENOTDIR)));
    assert_eq!(walk("/w/a/b/f/", Wanted::Target), Err(Errno(libc::ENOTDIR)));
    assert_eq!(walk("/w/a/b/f/.", Wanted::Target), Err(Errno(libc::ENOTDIR)));
    assert_eq!(walk("/loop/x", Wanted::Target), Err(Errno(libc::ELOOP)));
    assert_eq!(walk("", Wanted::Target), Err(Errno(libc::ENOENT)));
    assert_eq!(walk(&"x/".repeat(3000), Wanted::Target), Err(Errno(libc::ENAMETOOLONG)));
}
