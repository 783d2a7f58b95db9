//! A directory through the client library, without a kernel in between.

use super::{OpenFile, Target};
use std::io;
use std::sync::Arc;
use weft_client::namespace::open::CreateArgs;
use weft_client::{Client, Ctx, OpenFlags};
use weft_model::{Fid, FsError};

/// A directory below the root of a mounted client.
pub struct Library {
    client: Arc<Client>,
    name: String,
    dir: Fid,
}

/// A file opened there.
struct Opened<'a> {
    client: &'a Client,
    file: weft_client::OpenFile,
}

fn io(error: FsError) -> io::Error {
    io::Error::other(error.to_string())
}

impl Library {
    /// Makes the directory `name`, which must not exist.
    ///
    /// # Errors
    /// Those of the MDT.
    pub fn make(client: &Arc<Client>, name: &str) -> io::Result<Library> {
        let made = client.mkdir(&Ctx::root(), client.root(), name.as_bytes(), 0o755).map_err(io)?;
        Ok(Library { client: client.clone(), name: name.into(), dir: made.fid })
    }

    fn create(&self, name: &str, exclusive: bool) -> io::Result<weft_client::OpenFile> {
        let flags = OpenFlags::READ | OpenFlags::WRITE;
        let args = CreateArgs { mode: 0o644, flags, exclusive, layout: None };
        let made = self.client.create(&Ctx::root(), self.dir, name.as_bytes(), &args);
        made.map(|made| made.file).map_err(io)
    }

    fn find(&self, name: &str) -> io::Result<Fid> {
        let found = self.client.lookup(&Ctx::root(), self.dir, name.as_bytes());
        found.map(|attr| attr.fid).map_err(io)
    }
}

impl Target for Library {
    fn create(&self, name: &str) -> io::Result<()> {
        let file = self.create(name, true)?;
        self.client.close(&Ctx::root(), &file, None).map_err(io)
    }

    fn stat(&self, name: &str) -> io::Result<()> {
        self.find(name).map(drop)
    }

    fn open_close(&self, name: &str) -> io::Result<()> {
        let ctx = Ctx::root();
        let file = self.client.open(&ctx, self.find(name)?, OpenFlags::READ).map_err(io)?;
        self.client.close(&ctx, &file, None).map_err(io)
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        self.client.unlink(&Ctx::root(), self.dir, name.as_bytes()).map_err(io)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn OpenFile + '_>> {
        let file = self.create(name, false)?;
        Ok(Box::new(Opened { client: &self.client, file }))
    }

    fn open_read(&self, name: &str) -> io::Result<Box<dyn OpenFile + '_>> {
        let fid = self.find(name)?;
        let file = self.client.open(&Ctx::root(), fid, OpenFlags::READ).map_err(io)?;
        Ok(Box::new(Opened { client: &self.client, file }))
    }

    fn remove(&self) -> io::Result<()> {
        let (ctx, root) = (Ctx::root(), self.client.root());
        self.client.rmdir(&ctx, root, self.name.as_bytes()).map_err(io)
    }
}

impl OpenFile for Opened<'_> {
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        match self.client.write(&Ctx::root(), &self.file, offset, data).map_err(io)? {
            written if written == data.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.client.read(&Ctx::root(), &self.file, offset, buffer).map_err(io)? {
            read if read == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.client.fsync(&Ctx::root(), &self.file, false).map_err(io)
    }

    fn size(&self) -> io::Result<u64> {
        let attr = self.client.getattr(&Ctx::root(), self.file.fid());
        attr.map(|attr| attr.size).map_err(io)
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // What was written is there already; only the report of it can fail, and is made up for later.
        let _ = self.client.close(&Ctx::root(), &self.file, None);
    }
}
