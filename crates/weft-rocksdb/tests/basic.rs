//! The binding against a real database.

use weft_rocksdb::{DB, Options, ReadOptions, WriteBatch, WriteOptions};

fn open(dir: &std::path::Path) -> DB {
    let mut options = Options::default();
    options.create_if_missing(true);
    DB::open(&options, dir).unwrap()
}

#[test]
fn writes_reads_walks_and_copies() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let mut batch = WriteBatch::default();
    for key in [b"a", b"b", b"c", b"d"] {
        batch.put(key, &[key[0]; 3]);
    }
    batch.put(b"empty", b"");
    batch.delete(b"b");
    batch.delete_range(b"c", b"d");
    db.write_opt(batch, &WriteOptions::new()).unwrap();
    db.flush_wal(true).unwrap();
    assert_eq!(db.get_pinned(b"a").unwrap().as_deref(), Some(&b"aaa"[..]));
    assert!(db.get_pinned(b"b").unwrap().is_none());
    assert_eq!(db.get_pinned(b"empty").unwrap().as_deref(), Some(&b""[..]));
    let mut options = ReadOptions::default();
    options.set_iterate_upper_bound(b"e");
    let mut cursor = db.raw_iterator_opt(options);
    cursor.seek(b"");
    let mut keys = Vec::new();
    while let Some((key, _)) = cursor.item() {
        keys.push(key.to_vec());
        cursor.next();
    }
    cursor.status().unwrap();
    assert_eq!(keys, [b"a", b"d"]);
    drop(cursor);
    let copy = dir.path().join("copy");
    db.create_checkpoint(&copy).unwrap();
    assert!(open(&copy).get_pinned(b"d").unwrap().is_some());
    assert!(db.latest_sequence_number() > 0);
}

#[test]
fn errors_have_kinds() {
    let dir = tempfile::tempdir().unwrap();
    let error = DB::open(&Options::default(), &dir.path().join("none")).err().unwrap();
    assert_eq!(error.kind(), weft_rocksdb::ErrorKind::InvalidArgument);
    let held = open(&dir.path().join("db"));
    let error = DB::open(&Options::default(), &dir.path().join("db")).err().unwrap();
    assert_eq!(error.kind(), weft_rocksdb::ErrorKind::IOError);
    drop(held);
}
