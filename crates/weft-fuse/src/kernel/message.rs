//! Taking a request apart: a cursor over bytes that nobody vouches for.
//!
//! Everything here is a pure function of the bytes; whatever is short, unterminated or
//! inconsistent gives `EINVAL`, never a panic.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::abi::InHeader;
use super::errno::{Errno, Result};

/// One request: its header and the bytes that follow.
pub struct Message<'a> {
    /// The header.
    pub header: InHeader,
    /// Arguments of the operation.
    pub args: Args<'a>,
    /// Extensions, the last bytes of the message.
    pub extensions: &'a [u8],
}

impl<'a> Message<'a> {
    /// Takes header and extensions off a whole message.
    ///
    /// # Errors
    /// `EINVAL` if lengths disagree; the header is lost then, so nothing can be answered.
    pub fn decode(bytes: &'a [u8]) -> Result<Message<'a>> {
        let (header, body) = InHeader::read_from_prefix(bytes).map_err(|_| Errno::EINVAL)?;
        if header.len as usize != bytes.len() {
            return Err(Errno::EINVAL);
        }
        let extensions = usize::from(header.total_extlen) * 8;
        let split = body.len().checked_sub(extensions).ok_or(Errno::EINVAL)?;
        let (args, extensions) = body.split_at(split);
        Ok(Message { header, args: Args::new(args), extensions })
    }
}

/// The arguments not yet taken.
pub struct Args<'a> {
    rest: &'a [u8],
}

impl<'a> Args<'a> {
    /// Starts at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Args<'a> {
        Args { rest: bytes }
    }

    /// Takes a fixed structure.
    pub fn take<T: FromBytes + KnownLayout + Immutable>(&mut self) -> Result<T> {
        let (value, rest) = T::read_from_prefix(self.rest).map_err(|_| Errno::EINVAL)?;
        self.rest = rest;
        Ok(value)
    }

    /// Takes a NUL-terminated string, which must not be empty.
    pub fn name(&mut self) -> Result<&'a OsStr> {
        let end = self.rest.iter().position(|&byte| byte == 0).ok_or(Errno::EINVAL)?;
        let name = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        if name.is_empty() { Err(Errno::EINVAL) } else { Ok(OsStr::from_bytes(name)) }
    }

    /// Takes all that is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Takes the data of announced length that ends the message.
    pub fn data(&mut self, length: u32) -> Result<&'a [u8]> {
        let (data, rest) = self.rest.split_at_checked(length as usize).ok_or(Errno::EINVAL)?;
        self.rest = rest;
        Ok(data)
    }
}
