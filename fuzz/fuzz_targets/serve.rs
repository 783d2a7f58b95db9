//! Requests as they come from the network, carried out by servers in memory: decoding, conversion and what
//! the operations do with numbers nobody has checked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_fuzz::Cluster;
use weft_rpc::Request;
use weft_rpc::message::ALL;

/// Requests of an input: which one, the length of its body, the body.
fn next<'a>(input: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let (&[which, low, high], rest) = input.split_first_chunk()?;
    let len = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
    let (body, rest) = rest.split_at(len);
    *input = rest;
    Some((ALL[usize::from(which) % ALL.len()].0, body))
}

fuzz_target!(|data: &[u8]| {
    let (cluster, mut input) = (Cluster::default(), data);
    let mut sequence = 1;
    while let Some((number, body)) = next(&mut input) {
        // Nobody would come to wake up who waits for a lock.
        let Ok(request) = Request::decode(number, body) else { continue };
        if matches!(&request, Request::Lock(lock) if lock.wait) {
            continue;
        }
        cluster.serve(&request, sequence, data);
        sequence += 1;
    }
    cluster.tick();
});
