//! What holder and process of a mount say to each other: a byte each, with descriptors.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Descriptors that go with one word.
const MAX_FDS: usize = 2;

/// What is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// Holder: mount; with the journal.
    Mount,
    /// Holder: carry on; with journal and device.
    CarryOn,
    /// Holder: bring everything to the servers.
    Settle,
    /// Process: the mount answers; with the device if it was mounted just now and can be taken over.
    Serving,
    /// Process: everything is with the servers, and new writes go there.
    Settled,
    /// Process: it could not be brought there.
    NotSettled,
}

const WORDS: [(u8, Word); 6] = [
    (b'm', Word::Mount),
    (b'c', Word::CarryOn),
    (b's', Word::Settle),
    (b'S', Word::Serving),
    (b'D', Word::Settled),
    (b'N', Word::NotSettled),
];

/// Says something.
///
/// # Errors
/// Those of the socket.
pub fn say(link: &UnixStream, word: Word, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let byte = WORDS.iter().find(|(_, known)| *known == word).map_or(0, |(byte, _)| *byte);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    sendmsg(link, &[IoSlice::new(&[byte])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for what the other says; `None` when it has gone.
///
/// # Errors
/// Those of the socket; `InvalidData` for a word that this version does not know.
pub fn hear(link: &UnixStream) -> io::Result<Option<(Word, Vec<OwnedFd>)>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut byte)];
    let heard = loop {
        match recvmsg(link, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            heard => break heard?,
        }
    };
    if heard.bytes == 0 {
        return Ok(None);
    }
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let known = WORDS.iter().find(|(known, _)| *known == byte[0]);
    let (_, word) = known.ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some((*word, fds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn words_arrive_with_their_descriptors() {
        let (one, other) = UnixStream::pair().unwrap();
        say(&one, Word::CarryOn, &[one.as_fd(), other.as_fd()]).unwrap();
        say(&one, Word::Settle, &[]).unwrap();
        let (word, fds) = hear(&other).unwrap().unwrap();
        assert_eq!((word, fds.len()), (Word::CarryOn, 2));
        drop(fds);
        assert_eq!(hear(&other).unwrap().unwrap().0, Word::Settle);
        drop(one);
        assert!(hear(&other).unwrap().is_none());
    }
}
