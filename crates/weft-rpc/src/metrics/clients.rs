//! Requests and bytes by client, in a table of fixed size.

use super::FigureKind;
use super::op::Bytes;
use super::render::Family;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weft_model::ClientId;

/// Clients counted at a time.
const SLOTS: usize = 1024;
/// Slots a client may be in; when all are taken, the one idle for longest goes.
const WINDOW: usize = 8;

/// Counts by client. Nothing is locked: a count may go to the wrong client in the instant in which a
/// slot changes hands.
pub(super) struct ClientTable(Box<[Slot]>);

/// One client; a cache line of its own, so that clients on different CPUs do not disturb each other.
#[derive(Default)]
#[repr(align(64))]
struct Slot {
    /// Zero: free.
    client: AtomicU64,
    requests: AtomicU64,
    bytes: Bytes,
    /// Second of the last request.
    last: AtomicU64,
}

impl Default for ClientTable {
    fn default() -> ClientTable {
        ClientTable((0..SLOTS).map(|_| Slot::default()).collect())
    }
}

impl ClientTable {
    /// Counts one request of `client` in second `now`.
    pub(super) fn add(&self, client: ClientId, now: u64, received: u64, sent: u64) {
        let slot = self.find(client.0).unwrap_or_else(|| self.claim(client.0));
        slot.requests.fetch_add(1, Relaxed);
        slot.bytes.add(received, sent);
        if slot.last.load(Relaxed) != now {
            slot.last.store(now, Relaxed);
        }
    }

    fn window(&self, client: u64) -> impl Iterator<Item = &Slot> {
        // Fibonacci hashing: the upper bits of the product are well mixed.
        let start = (client.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
        (start..start + WINDOW).map(|at| &self.0[at % SLOTS])
    }

    fn find(&self, client: u64) -> Option<&Slot> {
        self.window(client).find(|slot| slot.client.load(Relaxed) == client)
    }

    /// A free slot of the client's window, or the one idle for longest.
    fn claim(&self, client: u64) -> &Slot {
        let idleness = |slot: &&Slot| (slot.client.load(Relaxed) != 0, slot.last.load(Relaxed));
        let slot = self.window(client).min_by_key(idleness).unwrap_or(&self.0[0]);
        slot.client.store(client, Relaxed);
        slot.requests.store(0, Relaxed);
        slot.bytes.reset();
        slot
    }

    /// What there is to show.
    pub(super) fn families(&self) -> Vec<Family> {
        let counter = |name, help| Family::new(name, help, FigureKind::Counter);
        let mut requests = counter("weft_client_requests_total", "Requests of a client.");
        let mut received = counter(
            "weft_client_received_bytes_total",
            "Bytes of file data that a client has written to this process.",
        );
        let mut sent = counter(
            "weft_client_sent_bytes_total",
            "Bytes of file data that a client has read from this process.",
        );
        let mut slots: Vec<_> = self.0.iter().filter(|s| s.client.load(Relaxed) != 0).collect();
        slots.sort_by_key(|slot| slot.client.load(Relaxed));
        for slot in slots {
            let labels = vec![("client", slot.client.load(Relaxed).to_string())];
            requests.add(labels.clone(), slot.requests.load(Relaxed) as f64);
            received.add(labels.clone(), slot.bytes.received() as f64);
            sent.add(labels, slot.bytes.sent() as f64);
        }
        vec![requests, received, sent]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idlest_client_gives_way() {
        let table = ClientTable::default();
        for client in 1..=5000 {
            table.add(ClientId(client), client, 1, 2);
        }
        table.add(ClientId(5000), 5000, 1, 2);
        let last = table.find(5000).unwrap();
        assert_eq!((last.requests.load(Relaxed), last.bytes.received()), (2, 2));
        let kept: Vec<u64> = table.0.iter().map(|slot| slot.client.load(Relaxed)).collect();
        assert!(kept.iter().filter(|&&client| client != 0).all(|&client| client > 1000));
    }
}
