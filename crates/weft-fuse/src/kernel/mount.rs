//! Mounting and unmounting: by system call as root, else through `fusermount3`.
#![allow(unsafe_code)] // mount(2), umount2(2) and recvmsg(2) have no safe wrapper in std

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::device::Device;

const FUSERMOUNT: &str = "fusermount3";
const CONNECTIONS: &str = "/sys/fs/fuse/connections";
/// What stands for the device of a file system that has none, with the number of the connection.
const DEVICES: &str = "/sys/class/bdi";

/// How a mount looks and behaves to its users.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// First column of `mount`'s output, such as a URL of the file system.
    pub source: String,
    /// The type is shown as `fuse.` plus this.
    pub subtype: String,
    /// Let users other than the one who mounts in.
    pub allow_other: bool,
    /// The kernel checks permissions by mode and ACL, so the file system need not.
    pub default_permissions: bool,
    /// Refuse all changes.
    pub read_only: bool,
    /// Ignore set-user-ID and set-group-ID bits; only root can unset it.
    pub nosuid: bool,
    /// Ignore device nodes; only root can unset it.
    pub nodev: bool,
    /// Refuse to execute files.
    pub noexec: bool,
    /// Largest read request in bytes; what INIT settles on is a further limit.
    pub max_read: u32,
}

impl Default for MountOptions {
    fn default() -> MountOptions {
        MountOptions {
            source: "weft".into(),
            subtype: "weft".into(),
            allow_other: true,
            default_permissions: true,
            read_only: false,
            nosuid: true,
            nodev: true,
            noexec: false,
            max_read: 1 << 20,
        }
    }
}

impl MountOptions {
    /// Those options that FUSE itself knows.
    fn fuse_options(&self) -> String {
        let mut options = format!("max_read={}", self.max_read);
        let named = [
            (self.allow_other, ",allow_other"),
            (self.default_permissions, ",default_permissions"),
        ];
        named.iter().filter(|(set, _)| *set).for_each(|(_, name)| options.push_str(name));
        options
    }

    /// Those options that are mount flags, with their names.
    fn flags(&self) -> impl Iterator<Item = (libc::c_ulong, &'static str)> {
        [
            (self.read_only, libc::MS_RDONLY, ",ro"),
            (self.nosuid, libc::MS_NOSUID, ",nosuid"),
            (self.nodev, libc::MS_NODEV, ",nodev"),
            (self.noexec, libc::MS_NOEXEC, ",noexec"),
        ]
        .into_iter()
        .filter_map(|(set, flag, name)| set.then_some((flag, name)))
    }
}

/// A place where a device is mounted. Dropping it does nothing: the mount lives as long as its
/// device is open somewhere, or until it is unmounted.
#[derive(Clone, Debug)]
pub struct Mount {
    mountpoint: PathBuf,
    by_root: bool,
    /// Number of the connection under [`CONNECTIONS`], if it could be found out.
    connection: Option<u32>,
}

impl Mount {
    /// Mounts a fresh device on a directory. Requests flow once INIT is answered.
    ///
    /// # Errors
    /// Those of `mount(2)`, or of running `fusermount3`, whose complaint is in the message.
    pub fn new(mountpoint: &Path, options: &MountOptions) -> io::Result<(Mount, Device)> {
        let mountpoint = mountpoint.canonicalize()?;
        // SAFETY: geteuid has no preconditions.
        let by_root = unsafe { libc::geteuid() } == 0;
        let device = if by_root {
            mount_directly(&mountpoint, options)?
        } else {
            mount_by_helper(&mountpoint, options)?
        };
        let connection = connection_of(&mountpoint);
        Ok((Mount { mountpoint, by_root, connection }, device))
    }

    /// Where it is.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Unmounts. `lazy` takes it out of sight at once even if it is in use; it ends when the last
    /// user leaves.
    ///
    /// # Errors
    /// `EBUSY` if it is in use and not `lazy`, `EINVAL` if it is not mounted.
    pub fn unmount(&self, lazy: bool) -> io::Result<()> {
        if !self.by_root {
            let mut command = Command::new(FUSERMOUNT);
            command.arg(if lazy { "-uz" } else { "-u" }).arg("--").arg(&self.mountpoint);
            return check(command.output()?);
        }
        let path = c_string(self.mountpoint.as_os_str())?;
        let flags = libc::UMOUNT_NOFOLLOW | if lazy { libc::MNT_DETACH } else { 0 };
        // SAFETY: `path` is a NUL-terminated string that outlives the call.
        let result = unsafe { libc::umount2(path.as_ptr(), flags) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Lets the kernel read so many bytes ahead in files that it caches, more than INIT can ask for. Before
    /// INIT was answered it has no effect.
    ///
    /// # Errors
    /// `EACCES` when not root; `ENOENT` if the connection is gone.
    pub fn set_read_ahead(&self, bytes: u64) -> io::Result<()> {
        let connection = self.connection.ok_or(io::ErrorKind::NotFound)?;
        let kib = (bytes >> 10).to_string();
        std::fs::write(format!("{DEVICES}/0:{connection}/read_ahead_kb"), kib)
    }

    /// Breaks the connection: all requests under way fail with `ECONNABORTED`, all later ones with
    /// `ENOTCONN`. The way out when operations hang and cannot be ended otherwise; also works
    /// after a lazy unmount.
    ///
    /// # Errors
    /// `ENOENT` if the control file system `fusectl` is not mounted or the connection is gone.
    pub fn abort(&self) -> io::Result<()> {
        let connection = self.connection.ok_or(io::ErrorKind::NotFound)?;
        std::fs::write(format!("{CONNECTIONS}/{connection}/abort"), "1")
    }
}

/// Finds the connection of a mount without touching the mount itself, which might block: it is
/// the minor device number that the list of mounts shows, the last line being the topmost mount.
fn connection_of(mountpoint: &Path) -> Option<u32> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let path = mountpoint.to_str()?.replace(' ', "\\040");
    let mut fields = mounts.lines().rev().map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = fields.find(|fields| fields.get(4) == Some(&path.as_str()))?;
    mount[2].split_once(':')?.1.parse().ok()
}

fn c_string(text: impl AsRef<OsStr>) -> io::Result<CString> {
    Ok(CString::new(text.as_ref().as_bytes())?)
}

fn mount_directly(mountpoint: &Path, options: &MountOptions) -> io::Result<Device> {
    let device = Device::open()?;
    // SAFETY: neither has preconditions.
    let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    let fd = device.as_fd().as_raw_fd();
    let data =
        format!("fd={fd},rootmode=40000,user_id={uid},group_id={gid},{}", options.fuse_options());
    let flags = options.flags().fold(0, |flags, (flag, _)| flags | flag);
    let (source, target) = (c_string(&options.source)?, c_string(mountpoint)?);
    let (kind, data) = (c_string(format!("fuse.{}", options.subtype))?, c_string(data)?);
    // SAFETY: all are NUL-terminated strings that outlive the call.
    let result = unsafe {
        let data = data.as_ptr().cast();
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(device) }
}

/// `fusermount3` opens and mounts the device as root and passes its descriptor through a socket.
fn mount_by_helper(mountpoint: &Path, options: &MountOptions) -> io::Result<Device> {
    let escape = |text: &str| text.replace('\\', "\\\\").replace(',', "\\,");
    let mut list = options.fuse_options();
    options.flags().for_each(|(_, name)| list.push_str(name));
    list.push_str(&format!(",fsname={}", escape(&options.source)));
    list.push_str(&format!(",subtype={}", escape(&options.subtype)));
    let (ours, theirs) = UnixStream::pair()?;
    // As standard input the socket reaches the helper without tricks with close-on-exec.
    let mut command = Command::new(FUSERMOUNT);
    command.args(["-o", &list, "--"]).arg(mountpoint).env("_FUSE_COMMFD", "0");
    check(command.stdin(Stdio::from(OwnedFd::from(theirs))).output()?)?;
    receive_descriptor(&ours).map(Device::from_fd)
}

/// Turns a failed helper's complaint into an error.
fn check(output: std::process::Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{FUSERMOUNT}: {}", complaint.trim())))
}

/// Receives one descriptor (`SCM_RIGHTS`).
fn receive_descriptor(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0u8; 1];
    let mut slice = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
    let mut control = [0u64; 8]; // u64: control messages need their alignment
    // SAFETY: all zeros is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut slice;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: `message` points to live buffers of the lengths it states.
    let received =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: recvmsg has filled the control buffer, which these macros walk within its length;
    // a message SCM_RIGHTS carries at least one descriptor, which is ours from here on.
    unsafe {
        let head = libc::CMSG_FIRSTHDR(&message);
        if head.is_null() || (*head).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::Error::other(format!("{FUSERMOUNT} sent no descriptor")));
        }
        let fd = std::ptr::read_unaligned(libc::CMSG_DATA(head).cast::<libc::c_int>());
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Config, Session};
    use crate::null::{NullFs, NullOptions};

    #[test]
    fn mounts_through_the_helper_as_well() {
        if !Path::new("/dev/fuse").exists() || Command::new(FUSERMOUNT).arg("-V").output().is_err()
        {
            return eprintln!("SKIPPED: this machine has no /dev/fuse or no {FUSERMOUNT}");
        }
        let directory = tempfile::tempdir().unwrap();
        let mountpoint = directory.path().canonicalize().unwrap();
        let options = MountOptions { source: "a,b\\c".into(), ..MountOptions::default() };
        let device = mount_by_helper(&mountpoint, &options).unwrap();
        let connection = connection_of(&mountpoint);
        let mount = Mount { mountpoint, by_root: false, connection };
        let fs = NullFs::new(NullOptions::default());
        let session = Session::serve(fs, device, Config::default()).unwrap();
        let made = std::fs::create_dir(mount.mountpoint().join("made"));
        mount.unmount(false).unwrap();
        session.wait();
        made.unwrap();
        assert!(connection.is_some() && mount.unmount(false).is_err());
    }
}
