//! What is read from a disk: superblocks, batches, records and keys of an MDT, access lists, names of objects.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_mds::{keys, record};
use weft_model::acl::Acl;
use weft_model::{Fid, Layout, ObjectId, TargetId};
use weft_rpc::pb;
use weft_store::superblock::Uuid;
use weft_store::{Batch, Superblock};

fn records(key: &[u8], value: &[u8]) {
    if let Ok(inode) = record::decode::<record::Inode>(key, value) {
        let _ = (inode.kind(), inode.is_dir(), inode.attr(Fid(1)), inode.written_by_others(7));
        let _ = inode.layout.map(Layout::try_from);
    }
    let _ = record::decode::<record::Dirent>(key, value);
    let _ = record::decode::<record::Garbage>(key, value).map(|g| g.layout.map(Layout::try_from));
    let _ = record::decode::<record::Truncation>(key, value);
    let _ = record::decode::<record::Session>(key, value);
    let _ = record::decode::<record::SavedReply>(key, value);
    let _ = record::decode::<record::ObjectCheck>(key, value);
    let _ = record::decode::<record::Counters>(key, value);
    let _ = record::decode::<pb::manager::Map>(key, value).map(weft_model::ClusterMap::try_from);
    let _ = (keys::split_dirent(value), keys::number(value), keys::last_number(value));
}

fuzz_target!(|data: &[u8]| {
    let Some((&what, data)) = data.split_first() else { return };
    match what % 4 {
        0 => {
            if let Ok(superblock) = Superblock::parse(data) {
                let text = superblock.to_text();
                assert_eq!(Superblock::parse(text.as_bytes()).unwrap(), superblock);
            }
        }
        1 => {
            if let Ok(batch) = Batch::decode(data) {
                assert_eq!((batch.iter().count(), batch.as_bytes()), (batch.len(), data));
            }
        }
        2 => records(&[1, 2, 3], data),
        _ => {
            if let Ok(acl) = Acl::decode(data) {
                // Ids of entries that have none are not kept.
                assert_eq!(Acl::decode(&acl.encode()).unwrap().encode(), acl.encode());
                let _ = (acl.mode_bits(), acl.is_minimal(), acl.inherit(0o777));
            }
            let Ok(text) = std::str::from_utf8(data) else { return };
            let object = text.parse::<ObjectId>();
            assert!(object.is_err() || object.is_ok_and(|id| id.to_string() == text));
            let _ = (text.parse::<TargetId>(), text.parse::<Uuid>(), text.parse::<Fid>());
        }
    }
});
