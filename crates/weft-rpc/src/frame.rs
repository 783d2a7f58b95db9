//! The frame: a fixed 64-byte little-endian header, a protobuf body, bulk data behind it.
//!
//! ```text
//!  0  u32  magic "WEFT"            32 u64 xid (slot in the upper 16 bits; 0 for none)
//!  4  u16  protocol version        40 u64 epoch of the sender's map
//!  6  u16  message number          48 u32 body length
//!  8  u16  flags                   52 u32 bulk length
//! 10  u16  status (error kind; 0)  56 u32 CRC32C of the body
//! 12  u32  target                  60 u32 CRC32C of bytes 0..60
//! 16  u64  request id
//! 24  u64  session
//! ```
//! Bulk data is covered by the block checksums in the body (`weft_model::checksum`), so that it is
//! summed once on its way from the application to the disk.

use weft_model::{ErrorKind, FsError, Result, checksum};

/// Bytes of a header.
pub const HEADER_LEN: usize = 64;
/// First bytes of every frame: `WEFT`.
pub const MAGIC: u32 = u32::from_le_bytes(*b"WEFT");
/// Version of the protocol that this build speaks.
pub const VERSION: u16 = 1;
/// Oldest version it understands.
pub const VERSION_MIN: u16 = 1;
/// Longest body that is accepted.
pub const MAX_BODY: u32 = 4 << 20;
/// Longest bulk that is accepted.
pub const MAX_BULK: u32 = 16 << 20;

/// Flag: the frame is an answer.
pub const FLAG_REPLY: u16 = 1;
/// Flag of a request: its answer carries bulk of at most `bulk_len` bytes, none is sent along.
pub const FLAG_WANT_BULK: u16 = 2;

/// A decoded header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Message number.
    pub number: u16,
    /// Flags.
    pub flags: u16,
    /// Error kind of a reply; 0 for success.
    pub status: u16,
    /// The target asked, in wire form.
    pub target: u32,
    /// Echoed in the reply.
    pub request_id: u64,
    /// The client.
    pub session: u64,
    /// Slot and sequence of a modifying request.
    pub xid: u64,
    /// Version of the map the sender knows.
    pub epoch: u64,
    /// Bytes of body that follow.
    pub body_len: u32,
    /// Bytes of bulk that follow, or (with [`FLAG_WANT_BULK`]) are wanted.
    pub bulk_len: u32,
    /// CRC32C of the body.
    pub body_crc: u32,
}

impl Header {
    /// The 64 bytes.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0u8; HEADER_LEN];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..6].copy_from_slice(&VERSION.to_le_bytes());
        out[6..8].copy_from_slice(&self.number.to_le_bytes());
        out[8..10].copy_from_slice(&self.flags.to_le_bytes());
        out[10..12].copy_from_slice(&self.status.to_le_bytes());
        out[12..16].copy_from_slice(&self.target.to_le_bytes());
        out[16..24].copy_from_slice(&self.request_id.to_le_bytes());
        out[24..32].copy_from_slice(&self.session.to_le_bytes());
        out[32..40].copy_from_slice(&self.xid.to_le_bytes());
        out[40..48].copy_from_slice(&self.epoch.to_le_bytes());
        out[48..52].copy_from_slice(&self.body_len.to_le_bytes());
        out[52..56].copy_from_slice(&self.bulk_len.to_le_bytes());
        out[56..60].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = checksum::crc32c(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Checks and decodes.
    ///
    /// # Errors
    /// `Protocol` when it is no header, is damaged, or announces more than is accepted; `Version` when
    /// it is of a version this build does not speak.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Header> {
        let bad = |why: &str| FsError::new(ErrorKind::Protocol, "decode header").because(why);
        let u16_at = |i: usize| u16::from_le_bytes([bytes[i], bytes[i + 1]]);
        let u32_at = |i: usize| u32::from_le_bytes(bytes[i..i + 4].try_into().unwrap_or_default());
        let u64_at = |i: usize| u64::from_le_bytes(bytes[i..i + 8].try_into().unwrap_or_default());
        if u32_at(0) != MAGIC {
            return Err(bad("not a Weft frame"));
        }
        if u32_at(60) != checksum::crc32c(&bytes[..60]) {
            return Err(bad("header checksum mismatch"));
        }
        let version = u16_at(4);
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(FsError::new(ErrorKind::Version, "decode header").because(format_args!(
                "protocol {version}, this build speaks {VERSION_MIN} to {VERSION}"
            )));
        }
        let header = Header {
            number: u16_at(6),
            flags: u16_at(8),
            status: u16_at(10),
            target: u32_at(12),
            request_id: u64_at(16),
            session: u64_at(24),
            xid: u64_at(32),
            epoch: u64_at(40),
            body_len: u32_at(48),
            bulk_len: u32_at(52),
            body_crc: u32_at(56),
        };
        if header.body_len > MAX_BODY || header.bulk_len > MAX_BULK {
            return Err(bad("frame longer than accepted"));
        }
        Ok(header)
    }

    /// Bytes of bulk that follow on the wire.
    pub const fn bulk_follows(&self) -> usize {
        if self.flags & FLAG_WANT_BULK != 0 { 0 } else { self.bulk_len as usize }
    }

    /// Checks a body against the header.
    ///
    /// # Errors
    /// `Protocol`.
    pub fn check_body(&self, body: &[u8]) -> Result<()> {
        if checksum::crc32c(body) == self.body_crc {
            return Ok(());
        }
        Err(FsError::new(ErrorKind::Protocol, "receive").because("body checksum mismatch"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Header {
        Header {
            number: 0x0210,
            flags: FLAG_REPLY,
            status: 2,
            target: 0x2_0001,
            request_id: 7,
            session: 8,
            xid: 9,
            epoch: 10,
            body_len: 11,
            bulk_len: 12,
            body_crc: 13,
        }
    }

    #[test]
    fn golden_bytes() {
        let bytes = sample().encode();
        assert_eq!(&bytes[..16], b"WEFT\x01\x00\x10\x02\x01\x00\x02\x00\x01\x00\x02\x00");
        assert_eq!(&bytes[16..24], &7u64.to_le_bytes());
        assert_eq!(Header::decode(&bytes).unwrap(), sample());
    }

    #[test]
    fn damage_is_seen() {
        let good = sample().encode();
        for bit in 0..HEADER_LEN * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn refuses_what_is_too_long() {
        let long = Header { body_len: MAX_BODY + 1, ..sample() };
        assert_eq!(Header::decode(&long.encode()).unwrap_err().kind, ErrorKind::Protocol);
    }
}
