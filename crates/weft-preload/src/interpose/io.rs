//! Reading, writing, seeking, and what else concerns data.

use super::{active, alias, answer, at, on_fd};
use crate::guard::set_errno;
use crate::ops::attr;
use crate::ops::data::{self, At};
use crate::ops::map::{self, Wish};
use crate::path::{Errno, Wanted};
use crate::{fds, real};
use libc::{c_char, c_int, c_void, iovec, off64_t, size_t, ssize_t};

/// Most parts of one request.
const MAX_PARTS: c_int = 1024;
/// Bytes sent at a time.
const SENT: usize = 1 << 20;

unsafe fn input<'a>(buf: *const c_void, len: size_t) -> &'a [u8] {
    if len == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(buf.cast(), len.min(isize::MAX as usize))
    }
}

unsafe fn output<'a>(buf: *mut c_void, len: size_t) -> &'a mut [u8] {
    match len {
        0 => &mut [],
        len => std::slice::from_raw_parts_mut(buf.cast(), len.min(isize::MAX as usize)),
    }
}

unsafe fn parts<'a>(parts: *const iovec, count: c_int) -> Result<&'a [iovec], Errno> {
    match count {
        0 => Ok(&[]),
        1..=MAX_PARTS => Ok(std::slice::from_raw_parts(parts, count as usize)),
        _ => Err(Errno(libc::EINVAL)),
    }
}

unsafe fn read_at(
    fd: c_int,
    buf: *mut c_void,
    len: size_t,
    place: At,
    real: impl FnOnce() -> ssize_t,
) -> ssize_t {
    on_fd(
        fd,
        |process, description| {
            data::read(process, description, place, output(buf, len)).map(|got| got as ssize_t)
        },
        real,
    )
}

unsafe fn write_at(
    fd: c_int,
    buf: *const c_void,
    len: size_t,
    place: At,
    real: impl FnOnce() -> ssize_t,
) -> ssize_t {
    on_fd(
        fd,
        |process, description| {
            data::write(process, description, place, input(buf, len)).map(|n| n as ssize_t)
        },
        real,
    )
}

/// Several parts are one request, as they are for the kernel: nobody sees half of it.
unsafe fn read_parts(
    fd: c_int,
    vector: *const iovec,
    count: c_int,
    place: At,
    real: impl FnOnce() -> ssize_t,
) -> ssize_t {
    on_fd(
        fd,
        |process, description| {
            let parts = parts(vector, count)?;
            if let [one] = parts {
                let buf = output(one.iov_base, one.iov_len);
                return data::read(process, description, place, buf).map(|got| got as ssize_t);
            }
            let mut whole = vec![0; parts.iter().map(|part| part.iov_len).sum()];
            let got = data::read(process, description, place, &mut whole)?;
            let mut rest = &whole[..got];
            for part in parts {
                let (mine, others) = rest.split_at(part.iov_len.min(rest.len()));
                output(part.iov_base, mine.len()).copy_from_slice(mine);
                rest = others;
            }
            Ok(got as ssize_t)
        },
        real,
    )
}

unsafe fn write_parts(
    fd: c_int,
    vector: *const iovec,
    count: c_int,
    place: At,
    real: impl FnOnce() -> ssize_t,
) -> ssize_t {
    on_fd(
        fd,
        |process, description| {
            let parts = parts(vector, count)?;
            let written = if let [one] = parts {
                let data = input(one.iov_base, one.iov_len);
                data::write(process, description, place, data)?
            } else {
                let whole: Vec<&[u8]> =
                    parts.iter().map(|part| input(part.iov_base, part.iov_len)).collect();
                data::write(process, description, place, &whole.concat())?
            };
            Ok(written as ssize_t)
        },
        real,
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t {
    read_at(fd, buf, len, At::Here, || real::read(fd, buf, len))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t {
    write_at(fd, buf, len, At::Here, || real::write(fd, buf, len))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(fd: c_int, buf: *mut c_void, len: size_t, at: off64_t) -> ssize_t {
    read_at(fd, buf, len, At::Place(at), || real::pread64(fd, buf, len, at))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(fd: c_int, buf: *const c_void, len: size_t, at: off64_t) -> ssize_t {
    write_at(fd, buf, len, At::Place(at), || real::pwrite64(fd, buf, len, at))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readv(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    read_parts(fd, vector, count, At::Here, || real::readv(fd, vector, count))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn writev(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    write_parts(fd, vector, count, At::Here, || real::writev(fd, vector, count))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn preadv64(fd: c_int, v: *const iovec, count: c_int, at: off64_t) -> ssize_t {
    read_parts(fd, v, count, At::Place(at), || real::preadv64(fd, v, count, at))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwritev64(fd: c_int, v: *const iovec, count: c_int, at: off64_t) -> ssize_t {
    write_parts(fd, v, count, At::Place(at), || real::pwritev64(fd, v, count, at))
}

/// The place that preadv2(2) and pwritev2(2) mean.
fn place(at: off64_t) -> At {
    if at == -1 { At::Here } else { At::Place(at) }
}

fn heeds(flags: c_int) -> bool {
    data::check_flags(flags).map_err(|Errno(code)| set_errno(code)).is_ok()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn preadv64v2(
    fd: c_int,
    v: *const iovec,
    count: c_int,
    at: off64_t,
    flags: c_int,
) -> ssize_t {
    if fds::is_weft(fd) && !heeds(flags) {
        return -1;
    }
    read_parts(fd, v, count, place(at), || real::preadv64v2(fd, v, count, at, flags))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwritev64v2(
    fd: c_int,
    v: *const iovec,
    count: c_int,
    at: off64_t,
    flags: c_int,
) -> ssize_t {
    if fds::is_weft(fd) && !heeds(flags) {
        return -1;
    }
    write_parts(fd, v, count, place(at), || real::pwritev64v2(fd, v, count, at, flags))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lseek64(fd: c_int, offset: off64_t, whence: c_int) -> off64_t {
    on_fd(
        fd,
        |process, description| data::seek(process, description, offset, whence),
        || real::lseek64(fd, offset, whence),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate64(fd: c_int, len: off64_t) -> c_int {
    on_fd(
        fd,
        |process, description| data::truncate(process, description, len).map(|()| 0),
        || real::ftruncate64(fd, len),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn truncate64(path: *const c_char, len: off64_t) -> c_int {
    at(
        libc::AT_FDCWD,
        path,
        Wanted::Target,
        |process, spot| attr::truncate(process, spot, len).map(|()| 0),
        |_, path| real::truncate64(path, len),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    on_fd(fd, |p, description| data::sync(p, description, false).map(|()| 0), || real::fsync(fd))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    on_fd(fd, |p, description| data::sync(p, description, true).map(|()| 0), || real::fdatasync(fd))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn syncfs(fd: c_int) -> c_int {
    on_fd(
        fd,
        |p, description| data::sync_all(p, description.mount).map(|()| 0),
        || real::syncfs(fd),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sync() {
    if let Some(process) = active() {
        // As sync(2), it cannot fail.
        let _ = crate::guard::guarded(|| process.sync());
    }
    libc::syscall(libc::SYS_sync);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fallocate64(fd: c_int, mode: c_int, at: off64_t, len: off64_t) -> c_int {
    on_fd(
        fd,
        |process, description| data::allocate(process, description, mode, at, len).map(|()| 0),
        || real::fallocate64(fd, mode, at, len),
    )
}

/// Answers with the error number, not through `errno`.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_fallocate64(fd: c_int, at: off64_t, len: off64_t) -> c_int {
    if !fds::is_weft(fd) {
        return real::posix_fallocate64(fd, at, len);
    }
    let before = crate::guard::errno();
    if fallocate64(fd, 0, at, len) == 0 {
        return 0;
    }
    let code = crate::guard::errno();
    set_errno(before);
    code
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_fadvise64(fd: c_int, at: off64_t, len: off64_t, advice: c_int) -> c_int {
    if fds::is_weft(fd) { 0 } else { real::posix_fadvise64(fd, at, len, advice) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readahead(fd: c_int, at: off64_t, len: size_t) -> ssize_t {
    on_fd(fd, |_, _| Ok(0), || real::readahead(fd, at, len))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sync_file_range(fd: c_int, at: off64_t, len: off64_t, flags: u32) -> c_int {
    on_fd(
        fd,
        |process, description| data::sync(process, description, true).map(|()| 0),
        || real::sync_file_range(fd, at, len, flags),
    )
}

unsafe fn given(at: *mut off64_t) -> At {
    at.as_ref().map_or(At::Here, |&at| At::Place(at))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn copy_file_range(
    from: c_int,
    from_at: *mut off64_t,
    to: c_int,
    to_at: *mut off64_t,
    len: size_t,
    flags: u32,
) -> ssize_t {
    let real = || real::copy_file_range(from, from_at, to, to_at, len, flags);
    let Some(process) = active().filter(|_| fds::is_weft(from) || fds::is_weft(to)) else {
        return real();
    };
    answer(|| {
        let (Some(source), Some(target)) = (process.get(from), process.get(to)) else {
            return Err(Errno(libc::EXDEV));
        };
        if source.mount != target.mount {
            return Err(Errno(libc::EXDEV));
        }
        let (source, target) = ((&*source, given(from_at)), (&*target, given(to_at)));
        let copied = data::copy(process, source, target, len)?;
        for at in [from_at, to_at] {
            if let Some(at) = at.as_mut() {
                *at += copied as off64_t;
            }
        }
        Ok(copied as ssize_t)
    })
}

/// To whatever can be written; into a Weft file only what comes from one.
#[unsafe(no_mangle)]
unsafe extern "C" fn sendfile64(
    to: c_int,
    from: c_int,
    from_at: *mut off64_t,
    len: size_t,
) -> ssize_t {
    if !fds::is_weft(from) {
        return match fds::is_weft(to) {
            true => {
                set_errno(libc::EINVAL);
                -1
            }
            false => real::sendfile64(to, from, from_at, len),
        };
    }
    let mut buffer = vec![0u8; len.min(SENT)];
    let start = if from_at.is_null() { lseek64(from, 0, libc::SEEK_CUR) } else { *from_at };
    let got = pread64(from, buffer.as_mut_ptr().cast(), buffer.len(), start);
    if got <= 0 {
        return got;
    }
    let sent = write(to, buffer.as_ptr().cast(), got as usize);
    if sent > 0 {
        match from_at.as_mut() {
            Some(at) => *at = start + sent as off64_t,
            None => drop(lseek64(from, start + sent as off64_t, libc::SEEK_SET)),
        }
    }
    sent
}

#[unsafe(no_mangle)]
unsafe extern "C" fn splice(
    from: c_int,
    from_at: *mut off64_t,
    to: c_int,
    to_at: *mut off64_t,
    len: size_t,
    flags: u32,
) -> ssize_t {
    if fds::is_weft(from) || fds::is_weft(to) {
        set_errno(libc::EINVAL);
        return -1;
    }
    real::splice(from, from_at, to, to_at, len, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap64(
    address: *mut c_void,
    len: size_t,
    access: c_int,
    flags: c_int,
    fd: c_int,
    offset: off64_t,
) -> *mut c_void {
    let real = || real::mmap64(address, len, access, flags, fd, offset);
    if flags & libc::MAP_ANONYMOUS != 0 || !fds::is_weft(fd) {
        return real();
    }
    let Some(process) = active() else { return real() };
    let mapped = crate::guard::guarded(|| {
        let description = process.get(fd).ok_or(Errno(libc::EBADF))?;
        map::map(process, &description, &Wish { at: address, len, access, flags, offset })
    });
    mapped.unwrap_or(libc::MAP_FAILED)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __read_chk(fd: c_int, buf: *mut c_void, len: size_t, room: size_t) -> ssize_t {
    if len > room {
        libc::abort();
    }
    read(fd, buf, len)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __pread64_chk(
    fd: c_int,
    buf: *mut c_void,
    len: size_t,
    at: off64_t,
    room: size_t,
) -> ssize_t {
    if len > room {
        libc::abort();
    }
    pread64(fd, buf, len, at)
}

alias! {
    fn __read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t = read;
    fn __write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t = write;
    fn pread(fd: c_int, buf: *mut c_void, len: size_t, at: off64_t) -> ssize_t = pread64;
    fn __pread64(fd: c_int, buf: *mut c_void, len: size_t, at: off64_t) -> ssize_t = pread64;
    fn pwrite(fd: c_int, buf: *const c_void, len: size_t, at: off64_t) -> ssize_t = pwrite64;
    fn __pwrite64(fd: c_int, buf: *const c_void, len: size_t, at: off64_t) -> ssize_t = pwrite64;
    fn preadv(fd: c_int, v: *const iovec, n: c_int, at: off64_t) -> ssize_t = preadv64;
    fn pwritev(fd: c_int, v: *const iovec, n: c_int, at: off64_t) -> ssize_t = pwritev64;
    fn preadv2(fd: c_int, v: *const iovec, n: c_int, at: off64_t, f: c_int) -> ssize_t = preadv64v2;
    fn pwritev2(fd: c_int, v: *const iovec, n: c_int, at: off64_t, f: c_int) -> ssize_t = pwritev64v2;
    fn lseek(fd: c_int, offset: off64_t, whence: c_int) -> off64_t = lseek64;
    fn __lseek(fd: c_int, offset: off64_t, whence: c_int) -> off64_t = lseek64;
    fn ftruncate(fd: c_int, len: off64_t) -> c_int = ftruncate64;
    fn truncate(path: *const c_char, len: off64_t) -> c_int = truncate64;
    fn fallocate(fd: c_int, mode: c_int, at: off64_t, len: off64_t) -> c_int = fallocate64;
    fn posix_fallocate(fd: c_int, at: off64_t, len: off64_t) -> c_int = posix_fallocate64;
    fn posix_fadvise(fd: c_int, at: off64_t, len: off64_t, how: c_int) -> c_int = posix_fadvise64;
    fn sendfile(to: c_int, from: c_int, at: *mut off64_t, len: size_t) -> ssize_t = sendfile64;
    fn mmap(
        a: *mut c_void, len: size_t, p: c_int, f: c_int, fd: c_int, o: off64_t,
    ) -> *mut c_void = mmap64;
    fn __pread_chk(
        fd: c_int, b: *mut c_void, len: size_t, at: off64_t, room: size_t,
    ) -> ssize_t = __pread64_chk;
}
