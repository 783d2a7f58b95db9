//! TCP and Unix sockets behind one type, blocking, with deadlines; and frames on them.

use crate::frame::{HEADER_LEN, Header};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;
use weft_model::{ErrorKind, FsError, Result};

/// Bytes read ahead: small messages arrive in one system call.
const READ_AHEAD: usize = 16 << 10;

/// Asked whenever the socket's timeout has passed without a byte; its error ends the transfer.
pub type Stalled<'a> = dyn FnMut() -> Result<()> + 'a;

/// [`Stalled`] for those who wait no longer than the socket's timeout.
///
/// # Errors
/// Always.
pub fn give_up() -> Result<()> {
    Err(FsError::new(ErrorKind::TimedOut, "wait for peer"))
}

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// Between machines.
    Tcp(TcpStream),
    /// On one machine.
    Unix(UnixStream),
}

impl Stream {
    /// Connects to `host:port` or `unix:/path`.
    ///
    /// # Errors
    /// `Disconnected`, naming the address.
    pub fn connect(address: &str, timeout: Duration) -> Result<Stream> {
        let failed = |error: io::Error| {
            FsError::new(ErrorKind::Disconnected, "connect")
                .on(format_args!("address={address}"))
                .because(error)
        };
        if let Some(path) = address.strip_prefix("unix:") {
            return connect_unix(path, timeout).map(Stream::Unix).map_err(failed);
        }
        let mut last = io::Error::other("the name has no address");
        for socket_address in address.to_socket_addrs().map_err(failed)? {
            match TcpStream::connect_timeout(&socket_address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true).map_err(failed)?;
                    return Ok(Stream::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    /// Bounds each read and write.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(s) => {
                s.set_read_timeout(timeout).and_then(|()| s.set_write_timeout(timeout))
            }
            Stream::Unix(s) => {
                s.set_read_timeout(timeout).and_then(|()| s.set_write_timeout(timeout))
            }
        }
    }

    /// Another handle of the same socket.
    ///
    /// # Errors
    /// Those of the system.
    pub fn try_clone(&self) -> io::Result<Stream> {
        match self {
            Stream::Tcp(s) => s.try_clone().map(Stream::Tcp),
            Stream::Unix(s) => s.try_clone().map(Stream::Unix),
        }
    }

    /// Ends the connection; a thread that reads from it wakes up.
    pub fn shutdown(&self) {
        // The other side may have closed it already; then there is nothing left to do.
        let _ = match self {
            Stream::Tcp(s) => s.shutdown(Shutdown::Both),
            Stream::Unix(s) => s.shutdown(Shutdown::Both),
        };
    }

    /// Whether the peer is a process of this user (or of root) on this machine.
    pub fn peer_is_same_user(&self) -> bool {
        let Stream::Unix(stream) = self else { return false };
        match peer_uid(stream) {
            Some(uid) => uid == own_uid() || uid == 0,
            None => false,
        }
    }

    /// The peer's address, for logs.
    pub fn peer_name(&self) -> String {
        match self {
            Stream::Tcp(s) => s.peer_addr().map_or_else(|_| "unknown".into(), |a| a.to_string()),
            Stream::Unix(s) => format!("unix:uid={}", peer_uid(s).map_or(-1, i64::from)),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.read(buffer),
            Stream::Unix(s) => s.read(buffer),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.write_vectored(parts),
            Stream::Unix(s) => s.write_vectored(parts),
        }
    }

    /// Writes `head`, then `bulk`, in as few system calls as possible.
    ///
    /// # Errors
    /// `Disconnected`, or that of `stalled`; the connection is of no use then.
    pub fn send(&mut self, head: &[u8], bulk: &[u8], stalled: &mut Stalled<'_>) -> Result<()> {
        let (mut head, mut bulk) = (head, bulk);
        while !head.is_empty() || !bulk.is_empty() {
            let written = match self.write_vectored(&[IoSlice::new(head), IoSlice::new(bulk)]) {
                Ok(0) => return Err(FsError::new(ErrorKind::Disconnected, "send")),
                Ok(written) => written,
                Err(error) => {
                    go_on("send", &error, stalled)?;
                    continue;
                }
            };
            let of_head = written.min(head.len());
            head = &head[of_head..];
            bulk = &bulk[written - of_head..];
        }
        Ok(())
    }
}

/// Connects within `timeout`: the queue of a server that is stuck may be full.
#[allow(unsafe_code)]
fn connect_unix(path: &str, timeout: Duration) -> io::Result<UnixStream> {
    let (name, mut address) = (
        path.as_bytes(),
        libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] },
    );
    if name.len() >= address.sun_path.len() || name.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, &from) in address.sun_path.iter_mut().zip(name) {
        *to = from as libc::c_char;
    }
    // SAFETY: socket has no preconditions; what it returns is ours alone.
    let socket = unsafe {
        let raw = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        UnixStream::from_raw_fd(raw)
    };
    // The kernel bounds connecting by this, too.
    socket.set_write_timeout(Some(timeout))?;
    // SAFETY: the address is initialised and as long as said.
    let connected = unsafe {
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length)
    };
    if connected == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

#[allow(unsafe_code)]
fn peer_uid(stream: &UnixStream) -> Option<u32> {
    let mut cred = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `cred`, which is that large.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut cred).cast(),
            &raw mut len,
        )
    };
    (result == 0).then_some(cred.uid)
}

#[allow(unsafe_code)]
fn own_uid() -> u32 {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether a transfer goes on after `error`.
fn go_on(op: &'static str, error: &io::Error, stalled: &mut Stalled<'_>) -> Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => stalled(),
        _ => Err(FsError::new(ErrorKind::Disconnected, op).because(error)),
    }
}

/// A stream with the bytes that were read beyond the last frame.
#[derive(Debug)]
pub struct FrameStream {
    stream: Stream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl FrameStream {
    /// Wraps a connected stream.
    pub fn new(stream: Stream) -> FrameStream {
        FrameStream { stream, buffer: vec![0; READ_AHEAD].into_boxed_slice(), start: 0, end: 0 }
    }

    /// The socket.
    pub const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The socket, to send on.
    pub const fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// Reads a header. `None` when the peer has closed the connection between frames.
    ///
    /// # Errors
    /// `Disconnected`, `Protocol`, `Version`, or that of `stalled`.
    pub fn read_header(&mut self, stalled: &mut Stalled<'_>) -> Result<Option<Header>> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        let mut bytes = [0u8; HEADER_LEN];
        if self.buffered() == 0 && self.fill(stalled)? == 0 {
            return Ok(None);
        }
        self.read_exact(&mut bytes, stalled)?;
        Header::decode(&bytes).map(Some)
    }

    /// Reads and checks the body that `header` announces, into `body`.
    ///
    /// # Errors
    /// `Disconnected`, `Protocol`, or that of `stalled`.
    pub fn read_body(
        &mut self,
        header: &Header,
        body: &mut Vec<u8>,
        stalled: &mut Stalled<'_>,
    ) -> Result<()> {
        body.clear();
        body.resize(header.body_len as usize, 0);
        self.read_exact(body, stalled)?;
        header.check_body(body)
    }

    /// Fills `out`: first what was read ahead, the rest straight from the socket.
    ///
    /// # Errors
    /// `Disconnected`, or that of `stalled`.
    pub fn read_exact(&mut self, out: &mut [u8], stalled: &mut Stalled<'_>) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let ready = self.buffered().min(out.len() - done);
            if ready > 0 {
                out[done..done + ready]
                    .copy_from_slice(&self.buffer[self.start..self.start + ready]);
                self.start += ready;
                done += ready;
            } else if out.len() - done >= READ_AHEAD {
                let read = self.read_some(done, out, stalled)?;
                done += read;
            } else {
                (self.start, self.end) = (0, 0);
                if self.fill(stalled)? == 0 {
                    return Err(FsError::new(ErrorKind::Disconnected, "receive"));
                }
            }
        }
        Ok(())
    }

    /// Whether no byte of a next frame has arrived yet.
    pub const fn is_between_frames(&self) -> bool {
        self.start == self.end
    }

    const fn buffered(&self) -> usize {
        self.end - self.start
    }

    fn read_some(
        &mut self,
        from: usize,
        out: &mut [u8],
        stalled: &mut Stalled<'_>,
    ) -> Result<usize> {
        loop {
            match self.stream.read(&mut out[from..]) {
                Ok(0) => return Err(FsError::new(ErrorKind::Disconnected, "receive")),
                Ok(read) => return Ok(read),
                Err(error) => go_on("receive", &error, stalled)?,
            }
        }
    }

    fn fill(&mut self, stalled: &mut Stalled<'_>) -> Result<usize> {
        loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read);
                }
                Err(error) => go_on("receive", &error, stalled)?,
            }
        }
    }
}

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// Between machines.
    Tcp(TcpListener),
    /// On one machine.
    Unix(UnixListener),
}

impl Listener {
    /// Listens on `host:port` (port 0: any) or `unix:/path` (an old socket there is replaced).
    ///
    /// # Errors
    /// Those of the system, naming the address.
    pub fn bind(address: &str) -> Result<Listener> {
        let failed = |error: io::Error| {
            FsError::from_io("listen", &error).on(format_args!("address={address}"))
        };
        match address.strip_prefix("unix:") {
            Some(path) => {
                if let Err(error) = std::fs::remove_file(path)
                    && error.kind() != io::ErrorKind::NotFound
                {
                    return Err(failed(error));
                }
                UnixListener::bind(path).map(Listener::Unix).map_err(failed)
            }
            None => TcpListener::bind(address).map(Listener::Tcp).map_err(failed),
        }
    }

    /// Where it listens, in the form [`Stream::connect`] takes.
    pub fn address(&self) -> String {
        match self {
            Listener::Tcp(l) => l.local_addr().map_or_else(|_| String::new(), |a| a.to_string()),
            Listener::Unix(l) => {
                match l.local_addr().ok().and_then(|a| a.as_pathname().map(Into::into)) {
                    Some::<std::path::PathBuf>(path) => format!("unix:{}", path.display()),
                    None => String::new(),
                }
            }
        }
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// Those of the system.
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(l) => {
                let (stream, _) = l.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Listener::Unix(l) => l.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}
