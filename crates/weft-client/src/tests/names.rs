//! Names and credentials.

use super::fake::{Fake, create};
use crate::Ctx;
use std::cell::Cell;
use weft_model::{Credentials, ErrorKind};

#[test]
fn groups_are_looked_up_only_when_they_matter() {
    let (fake, client) = Fake::start(1);
    create(&client, "f");
    let asked = Cell::new(0);
    let groups = || {
        asked.set(asked.get() + 1);
        vec![9]
    };
    let cred = Credentials { uid: 5, gid: 5, groups: None };
    let ctx = Ctx { cred, groups: &groups, ..Ctx::root() };
    client.lookup(&ctx, client.root(), b"f").unwrap();
    assert_eq!(asked.get(), 0);
    fake.world.lock().need_groups = true;
    client.lookup(&ctx, client.root(), b"f").unwrap();
    assert_eq!(asked.get(), 1);
}

#[test]
fn sizes_written_elsewhere_are_asked_of_the_osts() {
    let (fake, client) = Fake::start(2);
    let file = create(&client, "f");
    let ctx = Ctx::root();
    client.write(&ctx, &file, 0, &[1; 9000]).unwrap();
    client.close(&ctx, &file, None).unwrap();
    {
        let mut world = fake.world.lock();
        world.attrs.get_mut(&file.fid()).unwrap().0.size = 10;
        world.written_elsewhere = true;
    }
    let found = client.lookup(&ctx, client.root(), b"f").unwrap();
    assert_eq!((found.size, found.blocks), (9000, 18));
    assert_eq!(client.walk(&ctx, b"/./x/../f").unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(client.walk(&ctx, b"//f").unwrap().fid, file.fid());
}
