//! A rank's connection: frames over any stream socket.
//!
//! A frame is a length (4 bytes, little-endian, at most [`MAX_FRAME`]), a kind (1 byte) and so many
//! bytes. Reading and writing end with an error when nothing moves for the link's patience.

use rustix::net::sockopt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest frame, bytes.
pub const MAX_FRAME: usize = 16 << 20;
/// How long a connection may be silent before the kernel asks whether the other side still exists.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
/// Between two such questions.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Unanswered ones after which it does not.
const KEEPALIVE_COUNT: u32 = 3;
/// Longest wait for the other side to take what is written.
const WRITE_PATIENCE: Duration = Duration::from_secs(60);

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// To a rank: what to do, a [`super::Job`] as JSON.
    Job = 1,
    /// From a rank: its part of an exchange. To a rank: all parts, as JSON.
    Exchange = 2,
    /// From a rank: a [`crate::record::Sample`] as JSON.
    Sample = 3,
    /// From a rank: a sentence for the reader of the record.
    Note = 4,
    /// From a rank: it has done its work.
    Done = 5,
    /// Either way: it is over, and why.
    Abort = 6,
    /// From a rank: it is the first that has come to the end of a phase. To a rank: one has.
    First = 7,
}

impl Kind {
    fn of(number: u8) -> Option<Kind> {
        use Kind::{Abort, Done, Exchange, First, Job, Note, Sample};
        [Job, Exchange, Sample, Note, Done, Abort, First]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct Link(File);

impl Link {
    /// Over a connection to another machine.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn tcp(stream: TcpStream, patience: Duration) -> io::Result<Link> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_INTERVAL)?;
        sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_COUNT)?;
        Ok(Link(File::from(OwnedFd::from(stream))))
    }

    /// Two ends within this machine.
    ///
    /// # Errors
    /// Those of the system.
    pub fn pair(patience: Duration) -> io::Result<(Link, Link)> {
        let (one, other) = UnixStream::pair()?;
        for stream in [&one, &other] {
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        }
        let link = |stream| Link(File::from(OwnedFd::from(stream)));
        Ok((link(one), link(other)))
    }

    /// Over a socket that this process was started with; its deadlines are set already.
    pub fn inherited(socket: OwnedFd) -> Link {
        Link(File::from(socket))
    }

    /// From now on nothing may be silent for longer than this.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Recv, Some(patience))
            .map_err(io::Error::from)
    }

    /// The socket, to hand it to another process.
    pub fn into_socket(self) -> OwnedFd {
        self.0.into()
    }

    /// A second handle of the same end.
    ///
    /// # Errors
    /// Those of the system.
    pub fn again(&self) -> io::Result<Link> {
        self.0.try_clone().map(Link)
    }

    /// Ends the connection for both sides, and for all handles.
    pub fn shut(&self) {
        // Where it is gone already there is nothing to end.
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// `InvalidInput` for one that is too long, and those of the socket.
    pub fn send(&self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > MAX_FRAME {
            return Err(io::Error::new(ErrorKind::InvalidInput, "frame too long"));
        }
        let mut frame = Vec::with_capacity(bytes.len() + 5);
        frame.extend((bytes.len() as u32).to_le_bytes());
        frame.push(kind as u8);
        frame.extend(bytes);
        (&self.0).write_all(&frame)
    }

    /// Receives a frame.
    ///
    /// # Errors
    /// `UnexpectedEof` when the other side is gone, `TimedOut`, `InvalidData` for what is no frame.
    pub fn receive(&self) -> io::Result<(Kind, Vec<u8>)> {
        let mut head = [0u8; 5];
        self.fill(&mut head)?;
        let [a, b, c, d, kind] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let bad = |what| io::Error::new(ErrorKind::InvalidData, what);
        if length > MAX_FRAME {
            return Err(bad("frame too long: the other side does not speak this protocol"));
        }
        let kind = Kind::of(kind).ok_or_else(|| bad("frame of an unknown kind"))?;
        let mut bytes = vec![0u8; length];
        self.fill(&mut bytes)?;
        Ok((kind, bytes))
    }

    fn fill(&self, buffer: &mut [u8]) -> io::Result<()> {
        (&self.0).read_exact(buffer).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => {
                io::Error::new(ErrorKind::TimedOut, "nothing heard for too long")
            }
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_frames_and_ends() {
        let (one, other) = Link::pair(Duration::from_secs(5)).unwrap();
        one.send(Kind::Exchange, b"hello").unwrap();
        assert_eq!(other.receive().unwrap(), (Kind::Exchange, b"hello".to_vec()));
        drop(one);
        assert_eq!(other.receive().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn refuses_what_is_no_frame() {
        let (one, other) = Link::pair(Duration::from_secs(5)).unwrap();
        (&one.0).write_all(b"GET / HTTP/1.0").unwrap();
        assert_eq!(other.receive().unwrap_err().kind(), ErrorKind::InvalidData);
        let (_one, other) = Link::pair(Duration::from_millis(20)).unwrap();
        assert_eq!(other.receive().unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
