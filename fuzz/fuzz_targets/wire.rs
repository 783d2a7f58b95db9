//! Frames, messages and their conversions: what is decoded is encoded to the same, and layouts and maps that
//! pass their checks can be calculated with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_model::layout::LayoutSpec;
use weft_model::{Attr, ClusterMap, Fid, Layout, checksum};
use weft_rpc::frame::{HEADER_LEN, Header};
use weft_rpc::message::ALL;
use weft_rpc::pb::{manager, mds};
use weft_rpc::{ClusterKey, Reply, Request};

fn header(data: &[u8]) {
    let Some(bytes) = data.first_chunk::<HEADER_LEN>() else { return };
    // With the right checksum, which no mutation would find.
    let mut bytes = *bytes;
    bytes[..4].copy_from_slice(b"WEFT");
    let crc = checksum::compute(0, &bytes[..60])[0];
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    if let Ok(header) = Header::decode(&bytes) {
        assert_eq!(Header::decode(&header.encode()).ok(), Some(header));
        assert!(header.bulk_follows() <= weft_rpc::frame::MAX_BULK as usize);
        let _ = header.check_body(&data[HEADER_LEN..]);
    }
}

fn messages(number: u16, body: &[u8]) {
    let mut out = Vec::new();
    if let Ok(request) = Request::decode(number, body) {
        request.encode(&mut out);
        assert!(Request::decode(number, &out).is_ok_and(|again| again == request));
    }
    out.clear();
    let Ok(reply) = Reply::decode(number, body) else { return };
    reply.encode(&mut out);
    assert!(Reply::decode(number, &out).is_ok_and(|again| again == reply));
    match reply {
        Reply::GetMap(manager::GetMapReply { map: Some(map) })
        | Reply::RegisterClient(manager::RegisterClientReply { map: Some(map), .. }) => {
            let _ = ClusterMap::try_from(map);
        }
        Reply::Lookup(mds::LookupReply {
            entry: Some(mds::Entry { attr, layout, .. }), ..
        })
        | Reply::Open(mds::Entry { attr, layout, .. }) => {
            let _ = attr.map(Attr::try_from);
            layout.into_iter().for_each(|layout| calculate(layout, body));
        }
        _ => {}
    }
}

fn calculate(layout: weft_rpc::pb::Layout, numbers: &[u8]) {
    let Ok(layout) = Layout::try_from(layout) else { return };
    let number = |at: usize| {
        numbers.get(at..at + 8).map_or(u64::MAX, |n| u64::from_le_bytes(n.try_into().unwrap()))
    };
    let (fid, offset, len) = (Fid(number(0)), number(8), number(16) % (16 << 20));
    let pieces = layout.split(fid, offset, len).unwrap_or_default();
    assert!(pieces.iter().map(|piece| piece.len).sum::<u64>() <= len);
    for object in layout.objects(fid).take(1000) {
        let index = object.object.index;
        let size = layout.object_size(index, offset);
        assert!(layout.size_from_object(index, size) <= offset);
    }
    assert_eq!(Layout::try_from(weft_rpc::pb::Layout::from(&layout)).ok(), Some(layout));
}

fuzz_target!(|data: &[u8]| {
    header(data);
    let Some((&which, body)) = data.split_first() else { return };
    messages(ALL[usize::from(which) % ALL.len()].0, body);
    if let Ok(Request::SetLayout(mds::SetLayout { spec: Some(spec), .. })) =
        Request::decode(0x0270, body)
    {
        let _ = LayoutSpec::try_from(spec);
    }
    if let Ok(text) = std::str::from_utf8(body) {
        let _ = ClusterKey::parse(text);
    }
});
