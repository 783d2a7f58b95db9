//! What a program hands to the one that replaces it: open files and the current directory, as lines of text.
//!
//! The text lies in a memory file whose number is in the environment ([`VARIABLE`]).

use std::fmt::Write as _;
use weft_model::{Fid, FileType};

/// Name of the variable with the number of the memory file.
pub const VARIABLE: &str = "WEFT_PRELOAD_STATE";

/// What is handed over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// The current directory, if it is inside: number of the file system, inode, path.
    pub cwd: Option<(usize, Fid, Vec<u8>)>,
    /// Descriptors; several may share a slot, and with it the open file.
    pub files: Vec<File>,
}

/// An open file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its number.
    pub number: i32,
    /// Number of the file system.
    pub mount: usize,
    /// The inode.
    pub fid: Fid,
    /// What it is.
    pub kind: FileType,
    /// Flags of open(2).
    pub flags: i32,
    /// Memory file with the offset, and place in it.
    pub slot: (i32, u32),
    /// Path from the root of the file system.
    pub path: Vec<u8>,
}

impl State {
    /// As text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        if let Some((mount, fid, path)) = &self.cwd {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "cwd {mount} {} {}", fid.0, hex(path));
        }
        for file in &self.files {
            let File { number, mount, fid, kind, flags, slot, path } = file;
            let (kind, fid, path) = (*kind as u8, fid.0, hex(path));
            let (memory, at) = slot;
            let _ =
                writeln!(text, "file {number} {mount} {fid} {kind} {flags} {memory} {at} {path}");
        }
        text
    }

    /// From text. Nothing if it is not what [`State::to_text`] makes.
    pub fn from_text(text: &str) -> Option<State> {
        let mut state = State::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            match words.next()? {
                "cwd" => {
                    let mount = words.next()?.parse().ok()?;
                    let fid = Fid(words.next()?.parse().ok()?);
                    state.cwd = Some((mount, fid, unhex(words.next()?)?));
                }
                "file" => {
                    let mut number = || words.next()?.parse::<i64>().ok();
                    let (descriptor, mount) = (number()? as i32, number()? as usize);
                    let fid = Fid(number()? as u64);
                    let kind = FileType::from_mode((number()? as u32) << 12)?;
                    let (flags, slot) = (number()? as i32, (number()? as i32, number()? as u32));
                    let path = unhex(words.next()?)?;
                    let number = descriptor;
                    state.files.push(File { number, mount, fid, kind, flags, slot, path });
                }
                _ => return None,
            }
        }
        Some(state)
    }
}

/// Paths may hold any byte; a dot stands before the digits, so that the root is a word, too.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::from("."), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix('.')?.as_bytes();
    let pairs = digits.chunks(2);
    pairs.map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_over_arrives() {
        let file = File {
            number: 1,
            mount: 0,
            fid: Fid(0x1_0000_0000_0007),
            kind: FileType::Regular,
            flags: 0o2001,
            slot: (900, 3),
            path: b"/a b/\n\xff".to_vec(),
        };
        let state = State {
            cwd: Some((1, Fid(9), Vec::new())),
            files: vec![file.clone(), File { number: 7, path: Vec::new(), ..file }],
        };
        assert_eq!(State::from_text(&state.to_text()), Some(state));
        assert_eq!(State::from_text(""), Some(State::default()));
        for bad in ["file 1 0", "cwd x 1 .", "what", "cwd 0 1 .4"] {
            assert_eq!(State::from_text(bad).filter(|s| s.cwd.is_none()), None, "{bad}");
        }
    }
}
