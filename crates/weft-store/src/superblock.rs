//! The file that says what a target directory is: text, replaced as a whole, checked by its last
//! line.
//!
//! ```text
//! weft target
//! format 1
//! cluster 7f6c2a9e-3d0b-4c57-9f0e-6f0f6b5f1c11
//! target OST0003
//! uuid 0b5d7e2c-8a41-4f3f-a2a5-1d8f2a6f9b7e
//! created 1790000000
//! compat
//! ro_compat
//! incompat sums-4k
//! sequence 1
//! crc32c 8d3f00a1
//! ```

use crate::files;
use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use weft_model::{ErrorKind, FsError, Result, TargetId, checksum};

/// Name of the file in the target directory.
pub const FILE: &str = "superblock";
/// The format that this version writes and reads.
pub const FORMAT: u32 = 1;
/// Incompatible features that this version knows.
pub const KNOWN_INCOMPAT: &[&str] = &[SUMS_4K, INLINE_DATA];
/// Of OSTs: checksums of blocks of 4 KiB.
pub const SUMS_4K: &str = "sums-4k";
/// Of MDTs: they may have the bytes of small files.
pub const INLINE_DATA: &str = "inline-data";
/// Features that this version knows among those that forbid others to write.
pub const KNOWN_RO_COMPAT: &[&str] = &[];

const MAGIC: &str = "weft target";
const MAX_BYTES: u64 = 64 << 10;

/// 128 random bits that name a cluster or a target for ever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub u128);

impl Uuid {
    /// A new one, from the kernel.
    ///
    /// # Errors
    /// When `/proc` is not there.
    pub fn random() -> Result<Uuid> {
        let path = Path::new("/proc/sys/kernel/random/uuid");
        let text = fs::read_to_string(path).map_err(|e| files::fail("read", path, &e))?;
        text.trim().parse().map_err(|e: String| FsError::new(ErrorKind::Corrupt, "read").because(e))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-", &hex[..8], &hex[8..12], &hex[12..16])?;
        write!(f, "{}-{}", &hex[16..20], &hex[20..])
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

impl FromStr for Uuid {
    type Err = String;

    fn from_str(text: &str) -> Result<Uuid, String> {
        let hex: String = text.chars().filter(|&c| c != '-').collect();
        match u128::from_str_radix(&hex, 16) {
            Ok(number) if Uuid(number).to_string() == text.to_ascii_lowercase() => Ok(Uuid(number)),
            _ => Err(format!("not a uuid: {text:?}")),
        }
    }
}

/// What a target is and which features it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The cluster it belongs to.
    pub cluster: Uuid,
    /// Its kind and number there.
    pub target: TargetId,
    /// Its own name, new at each format.
    pub uuid: Uuid,
    /// When it was formatted, seconds since the epoch.
    pub created: u64,
    /// Features that a version which does not know them may ignore.
    pub compat: Vec<String>,
    /// Features that a version which does not know them may read, but not write.
    pub ro_compat: Vec<String>,
    /// Features that a version which does not know them must not touch.
    pub incompat: Vec<String>,
    /// Grows by one each time this file is written.
    pub sequence: u64,
}

impl Superblock {
    /// Reads and checks the superblock of the target in `dir`.
    ///
    /// # Errors
    /// `NotFound` when there is none; `Corrupt` when it is something else, `Checksum` when it is
    /// torn or damaged; `Version` for a format or a feature that this version does not know.
    pub fn load(dir: &Path) -> Result<Superblock> {
        let path = dir.join(FILE);
        let bytes = fs::metadata(&path)
            .and_then(|meta| if meta.len() > MAX_BYTES { Ok(Vec::new()) } else { fs::read(&path) })
            .map_err(|error| {
                let error = files::fail("read superblock", &path, &error);
                match error.kind {
                    ErrorKind::NotFound => error.because("not a target directory; format it first"),
                    _ => error,
                }
            })?;
        let superblock = Superblock::parse(&bytes)
            .map_err(|error| error.on(format!("file={}", path.display())))?;
        superblock.check_features(&path)?;
        Ok(superblock)
    }

    /// Writes the superblock of the target in `dir`, raising the sequence number.
    ///
    /// # Errors
    /// What the disk says; a crash leaves the old or the new one.
    pub fn store(&mut self, dir: &Path) -> Result<()> {
        self.sequence += 1;
        files::replace(dir, FILE, self.to_text().as_bytes())
    }

    /// Notes features that this version makes use of, and that the one which made the target did not have.
    /// From then on that version refuses the target.
    ///
    /// # Errors
    /// What the disk says; nothing is changed then.
    pub fn add_features(&mut self, dir: &Path, features: &[&str]) -> Result<()> {
        let known = self.incompat.len();
        for &feature in features {
            if !self.incompat.iter().any(|known| known == feature) {
                self.incompat.push(feature.into());
            }
        }
        if self.incompat.len() == known { Ok(()) } else { self.store(dir) }
    }

    /// The contents of the file.
    pub fn to_text(&self) -> String {
        let list = |name: &str, features: &[String]| {
            features.iter().fold(name.to_owned(), |line, feature| line + " " + feature)
        };
        let body = [
            MAGIC.to_owned(),
            format!("format {FORMAT}"),
            format!("cluster {}", self.cluster),
            format!("target {}", self.target),
            format!("uuid {}", self.uuid),
            format!("created {}", self.created),
            list("compat", &self.compat),
            list("ro_compat", &self.ro_compat),
            list("incompat", &self.incompat),
            format!("sequence {}\n", self.sequence),
        ]
        .join("\n");
        format!("{body}crc32c {:08x}\n", checksum::crc32c(body.as_bytes()))
    }

    /// Reads the contents of the file. The last line is the checksum of all before it, in every
    /// format there will ever be.
    ///
    /// # Errors
    /// As [`Superblock::load`], except for features.
    pub fn parse(bytes: &[u8]) -> Result<Superblock> {
        let corrupt = |why: &str| FsError::new(ErrorKind::Corrupt, "read superblock").because(why);
        if !bytes.starts_with(MAGIC.as_bytes()) {
            return Err(corrupt("does not start with \"weft target\""));
        }
        let torn = || {
            FsError::new(ErrorKind::Checksum, "read superblock")
                .because("torn or damaged; restore it from a copy, all other data is untouched")
        };
        let text = std::str::from_utf8(bytes).map_err(|_| torn())?;
        let (body, sum) = text.rsplit_once("crc32c ").ok_or_else(torn)?;
        let sum = sum.strip_suffix('\n').filter(|hex| hex.len() == 8).ok_or_else(torn)?;
        if u32::from_str_radix(sum, 16) != Ok(checksum::crc32c(body.as_bytes())) {
            return Err(torn());
        }
        let mut lines = Fields { lines: body.lines().skip(1) };
        let format: u32 = lines.value("format")?;
        if format != FORMAT {
            return Err(FsError::new(ErrorKind::Version, "read superblock").because(format!(
                "format={format} known={FORMAT}; use the version that wrote it"
            )));
        }
        Ok(Superblock {
            cluster: lines.value("cluster")?,
            target: lines.value("target")?,
            uuid: lines.value("uuid")?,
            created: lines.value("created")?,
            compat: lines.list("compat")?,
            ro_compat: lines.list("ro_compat")?,
            incompat: lines.list("incompat")?,
            sequence: lines.value("sequence")?,
        })
    }

    fn check_features(&self, path: &Path) -> Result<()> {
        let unknown = |have: &[String], known: &[&str]| {
            have.iter().find(|feature| !known.contains(&feature.as_str())).cloned()
        };
        let stranger = unknown(&self.incompat, KNOWN_INCOMPAT)
            .or_else(|| unknown(&self.ro_compat, KNOWN_RO_COMPAT));
        match stranger {
            None => Ok(()),
            Some(feature) => Err(FsError::new(ErrorKind::Version, "read superblock")
                .on(format!("file={} feature={feature}", path.display()))
                .because("this version does not know the feature; use a newer one")),
        }
    }
}

/// The lines behind the magic, which come in a fixed order.
struct Fields<'a, I: Iterator<Item = &'a str>> {
    lines: I,
}

impl<'a, I: Iterator<Item = &'a str>> Fields<'a, I> {
    fn next(&mut self, name: &str) -> Result<&'a str> {
        let line = self.lines.next().and_then(|line| line.strip_prefix(name));
        line.ok_or_else(|| bad_field(name))
    }

    fn value<T: FromStr>(&mut self, name: &str) -> Result<T> {
        let text = self.next(name)?;
        text.strip_prefix(' ').and_then(|text| text.parse().ok()).ok_or_else(|| bad_field(name))
    }

    fn list(&mut self, name: &str) -> Result<Vec<String>> {
        Ok(self.next(name)?.split_whitespace().map(str::to_owned).collect())
    }
}

fn bad_field(name: &str) -> FsError {
    FsError::new(ErrorKind::Corrupt, "read superblock").because(format!("bad line {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Superblock {
        Superblock {
            cluster: Uuid(7),
            target: TargetId::ost(3),
            uuid: Uuid::random().unwrap(),
            created: 1_790_000_000,
            compat: vec!["nice".into(), "to-have".into()],
            ro_compat: vec![],
            incompat: vec!["sums-4k".into()],
            sequence: 1,
        }
    }

    #[test]
    fn comes_back_as_it_was() {
        let mut superblock = sample();
        assert_eq!(Superblock::parse(superblock.to_text().as_bytes()).unwrap(), superblock);
        let dir = tempfile::tempdir().unwrap();
        superblock.store(dir.path()).unwrap();
        assert_eq!(superblock.sequence, 2);
        assert_eq!(Superblock::load(dir.path()).unwrap(), superblock);
    }

    #[test]
    fn refuses_what_is_torn_or_damaged() {
        let text = sample().to_text();
        for cut in 0..text.len() {
            assert!(Superblock::parse(&text.as_bytes()[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(Superblock::parse(&bytes).is_err(), "flipped at {at}");
        }
        assert_eq!(Superblock::parse(b"ext4").unwrap_err().kind, ErrorKind::Corrupt);
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let text = sample().to_text().replace("format 1", "format 2");
        let (body, _) = text.rsplit_once("crc32c ").unwrap();
        let newer = format!("{body}crc32c {:08x}\n", checksum::crc32c(body.as_bytes()));
        assert_eq!(Superblock::parse(newer.as_bytes()).unwrap_err().kind, ErrorKind::Version);

        let dir = tempfile::tempdir().unwrap();
        let mut superblock = sample();
        superblock.incompat.push("warp".into());
        superblock.store(dir.path()).unwrap();
        let error = Superblock::load(dir.path()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Version);
        assert!(error.to_string().contains("feature=warp"), "{error}");
    }
}
