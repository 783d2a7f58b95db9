//! Programs under the preload library, beside a FUSE mount of the same cluster: both see the same at once.

mod cluster;

use cluster::{Cluster, content};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// One cluster for all: they take longer to start than the tests to run.
#[test]
fn programs_work_without_a_mount() {
    let cluster = Cluster::start();
    tools_copy_and_compare(&cluster);
    both_doors_show_the_same(&cluster);
    shells_redirect(&cluster);
    paths_cross_the_prefix(&cluster);
    python_does_all_kinds_of_things(&cluster);
    benchmarks_run(&cluster);
    what_is_wrong_is_told(&cluster);
}

/// `cp -r`, `tar` and `find` on a tree of files of many sizes.
fn tools_copy_and_compare(cluster: &Cluster) {
    let tree = cluster.scratch("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    for n in 0..40 {
        fs::write(tree.join(format!("a/b/{n}")), content(n)).unwrap();
    }
    std::os::unix::fs::symlink("b/3", tree.join("a/link")).unwrap();
    let tree = tree.display();
    cluster.ok(&format!("cp -r {tree} /weft/copied && diff -r {tree} /weft/copied"));
    cluster.ok(&format!("mkdir /weft/packed && tar cf - -C {tree} . | tar xf - -C /weft/packed"));
    for copy in ["copied", "packed"] {
        let seen = cluster.mnt(copy);
        cluster.plain(&format!("diff -r {tree} {}", seen.display()));
        assert_eq!(fs::read_link(seen.join("a/link")).unwrap().to_str(), Some("b/3"));
    }
    assert_eq!(cluster.ok("find /weft/packed -type f | wc -l").trim(), "40");
    assert_eq!(cluster.ok("cd /weft/packed/a && tar cf - b | tar tf - | wc -l").trim(), "41");
    cluster.ok("rm -r /weft/packed && test ! -e /weft/packed");
    assert!(!cluster.mnt("packed").exists());
}

/// Each change made through one door is there for the other in the next moment, many times over.
fn both_doors_show_the_same(cluster: &Cluster) {
    cluster.ok("mkdir /weft/both");
    let script = r#"
import os, sys
mnt, weft = sys.argv[1] + '/both', '/weft/both'
for n in range(60):
    here, there = (weft, mnt) if n % 2 else (mnt, weft)
    path = '/f%d' % (n // 4)
    with open(here + path, 'w') as f: f.write('x' * n)
    assert os.stat(there + path).st_size == n, (n, os.stat(there + path).st_size)
    assert open(there + path).read() == 'x' * n, n
    os.chmod(here + path, 0o600 + n % 8)
    assert os.stat(there + path).st_mode & 0o777 == 0o600 + n % 8, n
    os.rename(here + path, here + '/moved')
    assert not os.path.exists(there + path) and os.path.exists(there + '/moved'), n
    assert sorted(os.listdir(there)) == sorted(os.listdir(here)), n
    os.unlink(there + '/moved')
    assert not os.path.exists(here + '/moved'), n
"#;
    cluster.python(script, &[cluster.mnt("").to_str().unwrap()]);
}

/// Redirection hands open files over exec; builtins and programs write to the same one in turn.
fn shells_redirect(cluster: &Cluster) {
    cluster.ok("echo one > /weft/r; ls / >/dev/null; (echo two; /bin/echo three) >> /weft/r");
    assert_eq!(fs::read_to_string(cluster.mnt("r")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(cluster.ok("sort < /weft/r | head -1; wc -l < /weft/r"), "one\n3\n");
    let script = "exec 5> /weft/s; echo a >&5; /bin/echo b >&5; sh -c 'echo c >&5'; \
                  (echo d; /bin/echo e) >&5; exec 5>&-; while read l; do printf $l; done < /weft/s";
    assert_eq!(cluster.bash(script), "abcde");
    assert_eq!(fs::read_to_string(cluster.mnt("s")).unwrap(), "a\nb\nc\nd\ne\n");
    // Nothing that cannot know of it may write elsewhere instead.
    let lost = "env -u LD_PRELOAD /bin/echo lost > /weft/lost 2>/dev/null; echo $?";
    assert_ne!(cluster.bash(lost).trim(), "0");
    cluster.ok("printf '#!/bin/sh\\necho ran $1\\n' > /weft/script && chmod +x /weft/script");
    assert_eq!(cluster.ok("/weft/script here"), "ran here\n");
}

/// Links in both directions, `..`, and relative paths from inside.
fn paths_cross_the_prefix(cluster: &Cluster) {
    let outside = cluster.scratch("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("real"), "real").unwrap();
    let outside = outside.display();
    cluster.ok("mkdir -p /weft/p/q && echo inside > /weft/p/f");
    cluster.ok(&format!("ln -s {outside}/real /weft/p/out && ln -s /weft/p {outside}/in"));
    assert_eq!(cluster.ok("cat /weft/p/out"), "real");
    assert_eq!(
        cluster.ok(&format!("cat {outside}/in/f; cd {outside} && cat in/f")),
        "inside\ninside\n"
    );
    assert_eq!(
        cluster.ok("cd /weft/p/q && pwd && cat ../f && cd ../../.. && pwd"),
        "/weft/p/q\ninside\n/\n"
    );
    cluster.ok(&format!("echo made > {outside}/in/made && test -f /weft/p/made"));
    assert_eq!(
        cluster.ok("cd /weft/p/q && realpath ../out && realpath .."),
        format!("{outside}/real\n/weft/p\n")
    );
    assert_eq!(cluster.ok("cd / && ls weft/p/q/../f"), "weft/p/q/../f\n");
}

/// Open, walk, map, lock, threads, fork with a shared offset, children with redirected output.
fn python_does_all_kinds_of_things(cluster: &Cluster) {
    cluster.python(include_str!("things.py"), &[]);
    let shared = fs::read(cluster.mnt("py/shared")).unwrap();
    assert_eq!(shared, b"parent child parent2");
    assert_eq!(fs::metadata(cluster.mnt("py/cut")).unwrap().size(), 3);
}

fn benchmarks_run(cluster: &Cluster) {
    let weft = env!("CARGO_BIN_EXE_weft");
    let ior = format!("{weft} bench ior --np 2 -a POSIX -b 1m -t 64k -w -r -R -o /weft/ior");
    cluster.ok(&ior);
    cluster.ok("mkdir /weft/md");
    cluster.ok(&format!("{weft} bench mdtest --np 2 -n 50 -d /weft/md"));
}

fn what_is_wrong_is_told(cluster: &Cluster) {
    assert!(!cluster.run("cat /weft/nothing").status.success());
    assert!(!cluster.run("cd /weft/r").status.success());
    let refused = "import mmap\nwith open('/weft/r', 'r+b') as f:\n  try: mmap.mmap(f.fileno(), 0)\n  \
                   except OSError as e: assert e.errno == 19\n  else: raise SystemExit(1)";
    cluster.python(refused, &[]);
    let bad = cluster.with_variable("nonsense", "true");
    assert_eq!(bad.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("WEFT_PRELOAD"));
}
