//! A Weft cluster through the client library, without a kernel in between.

use super::{Api, File, How};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use weft_client::namespace::open::CreateArgs;
use weft_client::{AllocateMode, Client, Ctx, OpenFile, OpenFlags};
use weft_model::{Fid, FsError};

/// Directories that are remembered, as a kernel remembers them; beyond that it forgets all.
const MAX_DIRS: usize = 100_000;

/// A mounted client; paths begin at its root.
pub struct Weft {
    client: Arc<Client>,
    dirs: RefCell<HashMap<String, Fid>>,
}

/// A file opened there.
struct Opened<'a> {
    client: &'a Client,
    file: Option<OpenFile>,
}

impl Weft {
    /// Everything below the client's root.
    pub fn new(client: Arc<Client>) -> Weft {
        Weft { client, dirs: RefCell::default() }
    }

    /// The directory that holds `path`, and the name in it.
    fn split<'a>(&self, path: &'a str) -> io::Result<(Fid, &'a [u8])> {
        let path = path.trim_end_matches('/');
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        if let Some(fid) = self.dirs.borrow().get(dir) {
            return Ok((*fid, name.as_bytes()));
        }
        let found = self.client.walk(&Ctx::root(), dir.as_bytes()).map_err(told("look up", dir))?;
        let mut dirs = self.dirs.borrow_mut();
        if dirs.len() >= MAX_DIRS {
            dirs.clear();
        }
        dirs.insert(dir.to_string(), found.fid);
        Ok((found.fid, name.as_bytes()))
    }

    fn find(&self, path: &str) -> io::Result<weft_client::Found> {
        let (dir, name) = self.split(path)?;
        match name {
            b"" => self.client.getattr(&Ctx::root(), dir),
            name => self.client.lookup(&Ctx::root(), dir, name),
        }
        .map_err(told("look up", path))
    }
}

impl Api for Weft {
    fn open(&self, path: &str, how: &How) -> io::Result<Box<dyn File + '_>> {
        let (ctx, access) = (Ctx::root(), OpenFlags::READ);
        let flags = if how.write { access | OpenFlags::WRITE } else { access };
        let file = if how.create {
            let (dir, name) = self.split(path)?;
            let args = CreateArgs { mode: 0o664, flags, exclusive: how.exclusive, layout: None };
            self.client.create(&ctx, dir, name, &args).map(|made| made.file)
        } else {
            self.client.open(&ctx, self.find(path)?.fid, flags)
        };
        let file = file.map_err(told("open", path))?;
        let opened = Opened { client: &self.client, file: Some(file) };
        if how.reserve && how.size > 0 {
            let mode = AllocateMode::Reserve { keep_size: false };
            let reserved = self.client.allocate(&ctx, opened.file()?, mode, 0, how.size);
            reserved.map_err(told("reserve space of", path))?;
        }
        Ok(Box::new(opened))
    }

    fn stat(&self, path: &str) -> io::Result<u64> {
        self.find(path).map(|found| found.size)
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        let (dir, name) = self.split(path)?;
        self.client.unlink(&Ctx::root(), dir, name).map_err(told("remove", path))
    }

    fn mkdir(&self, path: &str) -> io::Result<()> {
        let (dir, name) = self.split(path)?;
        let made = self.client.mkdir(&Ctx::root(), dir, name, 0o755);
        made.map(drop).map_err(told("make directory", path))
    }

    fn rmdir(&self, path: &str) -> io::Result<()> {
        let (dir, name) = self.split(path)?;
        self.dirs.borrow_mut().remove(path);
        self.client.rmdir(&Ctx::root(), dir, name).map_err(told("remove directory", path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let ((old, name), (new, new_name)) = (self.split(from)?, self.split(to)?);
        // A directory may have moved with all below it.
        self.dirs.borrow_mut().clear();
        let moved = self.client.rename(&Ctx::root(), old, name, new, new_name, 0);
        moved.map_err(told("rename", from))
    }

    fn list(&self, path: &str) -> io::Result<Vec<(String, bool)>> {
        let ctx = Ctx::root();
        let dir = self.client.opendir(&ctx, self.find(path)?.fid);
        let dir = dir.map_err(told("read directory", path))?;
        let mut names = Vec::new();
        let read = self.client.readdir(&ctx, &dir, 0, false, &mut |entry| {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            if name != "." && name != ".." {
                names.push((name, entry.kind == weft_model::FileType::Directory));
            }
            true
        });
        let closed = self.client.closedir(&ctx, &dir);
        read.and(closed).map(|()| names).map_err(told("read directory", path))
    }

    fn sync_all(&self) -> io::Result<()> {
        self.client.sync_all(&Ctx::root()).map_err(io_error)
    }
}

impl File for Opened<'_> {
    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < data.len() {
            let (file, at) = (self.file()?, offset + done as u64);
            match self.client.write(&Ctx::root(), file, at, &data[done..]).map_err(io_error)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => done += written,
            }
        }
        Ok(())
    }

    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            let (at, rest) = (offset + done as u64, &mut buffer[done..]);
            let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
            match self.client.read(&Ctx::root(), file, at, rest).map_err(io_error)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.client.fsync(&Ctx::root(), self.file()?, false).map_err(io_error)
    }

    fn close(mut self: Box<Self>) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        self.client.close(&Ctx::root(), &file, None).map_err(io_error)
    }
}

impl Opened<'_> {
    /// It is open until it is closed, which takes all of it.
    fn file(&self) -> io::Result<&OpenFile> {
        self.file.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // What was written is there already; only the report of it can fail.
            let _ = self.client.close(&Ctx::root(), &file, None);
        }
    }
}

fn io_error(error: FsError) -> io::Error {
    let kind = io::Error::from_raw_os_error(error.errno()).kind();
    io::Error::new(kind, error.to_string())
}

fn told(what: &str, path: &str) -> impl FnOnce(FsError) -> io::Error {
    let named = super::named(what, path);
    move |error| named(io_error(error))
}
