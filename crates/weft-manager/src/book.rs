//! What the manager keeps in its store, and in which form.
//!
//! ```text
//! m/format   u32, little-endian: 1
//! m/map      the map, as the message weft.manager.Map
//! m/clients  u64, little-endian: client identities below this may have been given out
//! c/ID       a mounted client (ID: 8 bytes, big-endian), as the message weft.manager.Client
//! ```

use prost::Message as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use weft_model::{ClientId, ClusterMap, ErrorKind, FsError, Result};
use weft_rpc::pb::manager;
use weft_store::kv::prefix_end;
use weft_store::{Batch, Kv};

const FORMAT: u32 = 1;
const FORMAT_KEY: &[u8] = b"m/format";
const MAP_KEY: &[u8] = b"m/map";
const CLIENTS_KEY: &[u8] = b"m/clients";
const CLIENT_PREFIX: &[u8] = b"c/";

/// The book.
pub struct Book {
    kv: Arc<dyn Kv>,
}

/// What a book says when it is opened.
pub struct Contents {
    /// The map; none in a new book.
    pub map: Option<ClusterMap>,
    /// The first client identity that has not been given out for certain.
    pub next_client: u64,
    /// Clients that were mounted.
    pub clients: Vec<manager::Client>,
}

impl Book {
    /// Opens the book and reads it.
    ///
    /// # Errors
    /// `Version` for a format of a later release, `Corrupt` for what cannot be understood.
    pub fn open(kv: Arc<dyn Kv>) -> Result<(Book, Contents)> {
        match kv.get(FORMAT_KEY)? {
            None => {
                kv.write(Batch::new().put(FORMAT_KEY, &FORMAT.to_le_bytes()))?;
            }
            Some(format) if format == FORMAT.to_le_bytes() => {}
            Some(format) => {
                return Err(FsError::new(ErrorKind::Version, "open manager's book")
                    .on(format_args!("format={format:?} known={FORMAT}"))
                    .because("it was written by a later release; use that one"));
            }
        }
        let map = match kv.get(MAP_KEY)? {
            None => None,
            Some(bytes) => {
                Some(manager::Map::decode(&*bytes).map_err(|e| corrupt(MAP_KEY, e))?.try_into()?)
            }
        };
        let next_client = match kv.get(CLIENTS_KEY)? {
            None => 1,
            Some(bytes) => u64::from_le_bytes(
                bytes.try_into().map_err(|_| corrupt(CLIENTS_KEY, "8 bytes expected"))?,
            ),
        };
        let clients = read_clients(&*kv)?;
        Ok((Book { kv }, Contents { map, next_client, clients }))
    }

    /// Keeps a map. On stable storage when this returns.
    ///
    /// # Errors
    /// What the store says; then the former map stays.
    pub fn store_map(&self, map: &ClusterMap) -> Result<()> {
        let bytes = manager::Map::from(map).encode_to_vec();
        self.kv.write(Batch::new().put(MAP_KEY, &bytes))?;
        self.kv.sync().map(drop)
    }

    /// Keeps that client identities below `limit` may have been given out. On stable storage when
    /// this returns.
    ///
    /// # Errors
    /// What the store says.
    pub fn store_client_limit(&self, limit: u64) -> Result<()> {
        self.kv.write(Batch::new().put(CLIENTS_KEY, &limit.to_le_bytes()))?;
        self.kv.sync().map(drop)
    }

    /// Keeps a client, for the list only: a power cut may forget it.
    ///
    /// # Errors
    /// What the store says.
    pub fn store_client(&self, client: &manager::Client) -> Result<()> {
        let key = client_key(ClientId(client.id));
        self.kv.write(Batch::new().put(&key, &client.encode_to_vec())).map(drop)
    }

    /// Forgets clients.
    ///
    /// # Errors
    /// What the store says.
    pub fn remove_clients(&self, clients: &[ClientId]) -> Result<()> {
        let mut batch = Batch::new();
        for &client in clients {
            batch.delete(&client_key(client));
        }
        self.kv.write(&batch).map(drop)
    }
}

fn client_key(client: ClientId) -> Vec<u8> {
    [CLIENT_PREFIX, &client.0.to_be_bytes()].concat()
}

fn corrupt(key: &[u8], why: impl std::fmt::Display) -> FsError {
    FsError::new(ErrorKind::Corrupt, "open manager's book")
        .on(format_args!("key={}", key.escape_ascii()))
        .because(why)
}

fn read_clients(kv: &dyn Kv) -> Result<Vec<manager::Client>> {
    let mut clients = Vec::new();
    let mut failed = None;
    kv.scan(CLIENT_PREFIX, &prefix_end(CLIENT_PREFIX), &mut |key, value| {
        match manager::Client::decode(value) {
            Ok(client) => {
                clients.push(client);
                ControlFlow::Continue(())
            }
            Err(error) => {
                failed = Some(corrupt(key, error));
                ControlFlow::Break(())
            }
        }
    })?;
    failed.map_or(Ok(clients), Err)
}
