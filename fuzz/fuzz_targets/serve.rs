//! Requests as they come from the network, carried out by servers in memory: decoding, conversion and what
//! the operations do with numbers nobody has checked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_fuzz::Cluster;
use weft_rpc::Request;
use weft_rpc::message::ALL;

/// Longest wait of a request for something to happen, milliseconds: nothing does, as nobody else is there.
const MAX_WAIT: u32 = 1;

/// A request of an input: its session (the highest bit) and which one it is, the length of its body, the
/// body.
fn next<'a>(input: &mut &'a [u8]) -> Option<(u64, u16, &'a [u8])> {
    let (&[which, low, high], rest) = input.split_first_chunk()?;
    let len = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
    let (body, rest) = rest.split_at(len);
    *input = rest;
    let (client, which) = (1 + u64::from(which >> 7), usize::from(which & 0x7f));
    Some((client, ALL[which % ALL.len()].0, body))
}

fuzz_target!(|data: &[u8]| {
    let (cluster, mut input) = (Cluster::default(), data);
    let mut sequence = 1;
    while let Some((client, number, body)) = next(&mut input) {
        let Ok(mut request) = Request::decode(number, body) else { continue };
        match &mut request {
            Request::AwaitLock(await_lock) => {
                await_lock.wait_ms = await_lock.wait_ms.min(MAX_WAIT);
            }
            Request::AwaitRecalls(recalls) => recalls.wait_ms = recalls.wait_ms.min(MAX_WAIT),
            _ => {}
        }
        cluster.serve(&request, client, sequence, data);
        sequence += 1;
    }
    cluster.tick();
});
