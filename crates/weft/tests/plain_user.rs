//! A cluster and mounts of a user without root's rights. The user exists only within a mount namespace of the
//! test's own, in which the list of users, the FUSE device and its settings are replaced.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Number of the user and of its group; nobody else's.
const USER: u32 = 58_231;

/// What is set up in the namespace before `ready`; $1 is the directory for all of it, $2 the program.
const SETUP: &str = r#"
set -e
{ cat /etc/passwd; echo "weft-test:x:58231:58231::$1/home:/bin/sh"; } > "$1/passwd"
mount --bind "$1/passwd" /etc/passwd
touch "$1/fuse.conf" "$1/weft"
[ ! -e /etc/fuse.conf ] || mount --bind "$1/fuse.conf" /etc/fuse.conf
mount --bind "$2" "$1/weft"
mkdir "$1/dev"
mount -t tmpfs none "$1/dev"
mknod -m 666 "$1/dev/fuse" c 10 229
mount --bind "$1/dev/fuse" /dev/fuse
[ -c /dev/fuse ] && : < /dev/fuse
echo ready
exec sleep 600
"#;

/// The namespace, which lasts as long as a process in it.
struct Space {
    dir: tempfile::TempDir,
    holder: Child,
}

impl Space {
    /// None, and the reason, where this machine does not let the test have one.
    fn new() -> Result<Space, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can make users".into());
        }
        for tool in ["fusermount3", "unshare", "nsenter", "setpriv"] {
            let found = Command::new(tool).arg("--version").output();
            found.map_err(|error| format!("{tool}: {error}"))?;
        }
        let dir = tempfile::Builder::new()
            .prefix("weft-user-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        chown(dir.path().join("home"), Some(USER), Some(USER)).unwrap();
        let mut holder = Command::new("unshare");
        holder.args(["--mount", "--propagation", "private", "sh", "-c", SETUP, "sh"]);
        holder.arg(dir.path()).arg(env!("CARGO_BIN_EXE_weft"));
        let mut holder = holder.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let space = Space { dir, holder };
        match said.trim() {
            "ready" => Ok(space),
            _ => Err("no mount namespace with a FUSE device of its own".into()),
        }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.holder.id().to_string()).args(["--mount", "--wd=/"]);
        command
    }

    /// A line of the shell, by the user in its home; `weft` is the program.
    fn user(&self, line: &str) -> Output {
        let mut command = self.enter();
        let (id, home) = (USER.to_string(), self.home());
        command.args(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups", "env", "-i"]);
        command.arg(format!("HOME={}", home.display()));
        command.arg(format!("PATH={}:/usr/bin:/bin", self.dir.path().display()));
        command.args(["LC_ALL=C", "sh", "-c"]).arg(format!("cd && {line}")).output().unwrap()
    }

    /// The same; what it prints.
    fn does(&self, line: &str) -> String {
        let output = self.user(line);
        let [out, error] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{line}: {out}{error}");
        out.into_owned()
    }

    /// The same; what is said of its failure.
    fn fails(&self, line: &str) -> String {
        let output = self.user(line);
        assert!(!output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // After a failure; otherwise it is down.
        let _ = self.user("weft umount tcp; weft dev down --dir d");
        // What is mounted goes with the last process in the namespace.
        let _ = self.holder.kill().and_then(|()| self.holder.wait());
    }
}

#[test]
fn needs_no_root() {
    let space = match Space::new() {
        Ok(space) => space,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let up = space.does("weft dev up --dir d --mount m");
    works(&space);
    is_private(&space);
    over_tcp(&space, &up);
    refusals_say_why(&space, &up);
    space.does("weft dev down --dir d");
    assert_eq!(space.does("ls -A m"), "", "still mounted");
    space.does("weft dev up --dir d --processes");
    assert_eq!(space.does("cat m/a"), "hello\n");
    space.does("weft dev down --dir d");
    assert_eq!(space.does("ls -A m"), "", "still mounted");
}

/// Files and directories belong to the user, and commands find the cluster.
fn works(space: &Space) {
    let made =
        space.does("cd m && echo hello > a && mkdir d && ln -s a l && stat -c %u:%g . a d l");
    assert_eq!(made, format!("{USER}:{USER}\n").repeat(4));
    space.does("cd m && mv a d/b && cat d/b && mv d/b a && chmod 600 a && mkfifo p && rm p");
    for line in ["weft df", "weft status", "weft stat m/a", "weft getstripe m/a", "cd m && weft df"]
    {
        space.does(line);
    }
}

/// Without `allow_other` nobody else gets in, not even root.
fn is_private(space: &Space) {
    let root = |path: &Path| space.enter().arg("ls").arg(path).output().unwrap();
    assert!(root(&space.home()).status.success());
    assert!(!root(&space.home().join("m")).status.success());
}

fn over_tcp(space: &Space, up: &str) {
    let address = address(up);
    space.does(&format!("weft mount {address} tcp --key d/cluster.key"));
    assert_eq!(space.does("cat tcp/a && echo more > tcp/c && cat m/c"), "hello\nmore\n");
    assert_eq!(space.does("stat -c %u tcp/c"), format!("{USER}\n"));
    space.does("weft umount tcp");
    assert_eq!(space.does("ls -A tcp"), "");
    let again = space.fails("weft umount tcp");
    assert!(again.contains("is not a mount of Weft"), "{again}");
}

fn refusals_say_why(space: &Space, up: &str) {
    let mount = format!("weft mount {} tcp --key d/cluster.key", address(up));
    for (line, what) in [
        ("chown 0 m/a", "Operation not permitted"),
        ("chgrp 0 m/a", "Operation not permitted"),
        ("mknod m/null c 1 3", "Operation not permitted"),
        (&format!("{mount} -o allow_other"), "user_allow_other"),
        (&format!("{mount} -o dev"), "needs root"),
        (&format!("{mount} -o suid"), "needs root"),
        (&format!("weft=$(command -v weft); PATH=/none $weft {}", &mount[5..]), "install fuse3"),
    ] {
        let why = space.fails(line);
        assert!(why.contains(what), "{line}: {why}");
    }
}

/// Where the cluster listens for TCP, as `weft dev up` tells it.
fn address(up: &str) -> &str {
    let line = up.lines().find(|line| line.starts_with("address")).unwrap();
    line.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).unwrap()
}
