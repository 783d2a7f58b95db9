use super::*;
use crate::auth::Role;
use crate::message::Message;
use crate::pb::oss;
use crate::registry::Registry;
use std::time::Duration;
use weft_model::{Epoch, ErrorKind, Xid};

/// Answers reads with as much as is asked for, fails on everything else.
struct Fake;

impl Service for Fake {
    fn serve(&self, _: &CallInfo, request: &Request, _: Bulk<'_>) -> Result<Reply> {
        match request {
            Request::Read(read) => Ok(Reply::Read(oss::ReadReply { len: read.len, sums: vec![] })),
            _ => Err(FsError::new(ErrorKind::NoSpace, "fake")),
        }
    }
}

fn info(client: u64) -> CallInfo {
    CallInfo {
        role: Role::Client,
        client: ClientId(client),
        xid: Xid::NONE,
        epoch: Epoch(0),
        target: TargetId::ost(1),
        wire: true,
    }
}

/// The text with the parts that depend on the clock replaced.
fn without_times(text: &str) -> String {
    let timed = |line: &&str| line.contains("_bucket") || line.contains("_sum");
    text.lines().filter(|line| !timed(line)).map(|line| format!("{line}\n")).collect()
}

const GOLDEN: &str = r#"# HELP weft_request_duration_seconds Time from taking a request up to having its answer.
# TYPE weft_request_duration_seconds histogram
weft_request_duration_seconds_count{target="OST0001",op="Write"} 1
weft_request_duration_seconds_count{target="OST0001",op="Read"} 2
# HELP weft_request_errors_total Requests that failed, by class of error.
# TYPE weft_request_errors_total counter
weft_request_errors_total{target="OST0001",op="Write",class="space"} 1
# HELP weft_received_bytes_total Bytes of file data that requests brought.
# TYPE weft_received_bytes_total counter
weft_received_bytes_total{target="OST0001",op="Write"} 9
# HELP weft_sent_bytes_total Bytes of file data that answers took along.
# TYPE weft_sent_bytes_total counter
weft_sent_bytes_total{target="OST0001",op="Read"} 60
# HELP weft_requests_refused_total Requests refused before they reached a target, by class of error.
# TYPE weft_requests_refused_total counter
weft_requests_refused_total{class="session"} 1
# HELP weft_client_requests_total Requests of a client.
# TYPE weft_client_requests_total counter
weft_client_requests_total{client="7"} 2
# HELP weft_client_received_bytes_total Bytes of file data that a client has written to this process.
# TYPE weft_client_received_bytes_total counter
weft_client_received_bytes_total{client="7"} 9
# HELP weft_client_sent_bytes_total Bytes of file data that a client has read from this process.
# TYPE weft_client_sent_bytes_total counter
weft_client_sent_bytes_total{client="7"} 50
# HELP weft_free_bytes Bytes \\ free.
# TYPE weft_free_bytes gauge
weft_free_bytes{dir="/a\"b\\c\n"} 0.5
"#;

#[test]
fn text_is_as_prometheus_reads_it() {
    let registry = Registry::default();
    registry.add(TargetId::ost(1), Arc::new(Fake));
    let read = |len| oss::Read { len, ..Default::default() }.into_request();
    registry.dispatch(&info(7), &read(50), Bulk::None).unwrap();
    let write = oss::Write::default().into_request();
    registry.dispatch(&info(7), &write, Bulk::Send(&[0; 9])).unwrap_err();
    // Within the process, and by nobody in particular.
    let service = registry.get(TargetId::ost(1)).unwrap();
    service.serve(&info(0), &read(10), Bulk::None).unwrap();
    registry.dispatch(&info(7), &oss::Destroy::default().into_request(), Bulk::None).unwrap_err();
    let figure = |name, read: fn() -> Option<f64>| Figure {
        name,
        help: "Bytes \\ free.",
        kind: FigureKind::Gauge,
        labels: vec![("dir", "/a\"b\\c\n".into())],
        read: Box::new(read),
    };
    registry.metrics().register(figure("weft_free_bytes", || Some(0.5)));
    registry.metrics().register(figure("weft_gone_bytes", || None));
    let text = registry.metrics().text();
    assert_eq!(without_times(&text), GOLDEN);
    assert!(text.contains(r#"_bucket{target="OST0001",op="Read",le="0.000000128"} "#), "{text}");
    assert!(text.contains(r#"_bucket{target="OST0001",op="Read",le="+Inf"} 2"#), "{text}");
    assert_eq!(registry.metrics().figures.lock().len(), 1);
}

#[test]
fn messages_carry_counts_and_quantiles() {
    let metrics = Arc::new(Metrics::default());
    let service = metrics.measure(TargetId::ost(1), Arc::new(Fake));
    service.serve(&info(7), &oss::Read::default().into_request(), Bulk::None).unwrap();
    let messages = metrics.messages();
    let find = |name: &str| messages.iter().filter(|m| m.name == name).collect::<Vec<_>>();
    let count = find("weft_request_duration_seconds_count");
    assert_eq!((count[0].value, count[0].labels[1].as_str()), (1.0, "OST0001"));
    let quantiles = find("weft_request_duration_seconds");
    assert_eq!(quantiles.len(), 2);
    assert!(quantiles[0].value > 0.0 && quantiles[0].value < Duration::from_secs(1).as_secs_f64());
}

#[test]
fn a_target_that_comes_back_goes_on_counting() {
    let metrics = Arc::new(Metrics::default());
    for _ in 0..2 {
        let service = metrics.measure(TargetId::ost(1), Arc::new(Fake));
        service.serve(&info(7), &oss::Read::default().into_request(), Bulk::None).unwrap();
    }
    assert!(metrics.text().contains(r#"_count{target="OST0001",op="Read"} 2"#));
}
