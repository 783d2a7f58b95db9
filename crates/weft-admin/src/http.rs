//! `/metrics` and `/healthz`.

use crate::Health;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use weft_rpc::Metrics;

/// The form of `/metrics`.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the pages show.
#[derive(Clone)]
struct Shown {
    metrics: Arc<Metrics>,
    health: Arc<Health>,
}

/// A running HTTP server. Dropping it ends it.
pub struct HttpServer {
    address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Listens at `address` (port 0: any).
    ///
    /// # Errors
    /// Those of the socket, or of starting a thread.
    pub fn start(
        address: SocketAddr,
        metrics: Arc<Metrics>,
        health: Arc<Health>,
    ) -> io::Result<HttpServer> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let pages = Router::new()
            .route("/metrics", get(show_metrics))
            .route("/healthz", get(show_health))
            .with_state(Shown { metrics, health });
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tokio::select! {
                served = axum::serve(listener, pages) => served,
                _ = stopped => Ok(()),
            }
        };
        let body = move || {
            if let Err(error) = runtime.block_on(serve) {
                tracing::error!(%address, %error, "no more metrics: HTTP server has ended");
            }
        };
        let thread = std::thread::Builder::new().name("weft-http".into()).spawn(body)?;
        Ok(HttpServer { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // Both fail only when the thread has ended by itself.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn show_metrics(State(shown): State<Shown>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], shown.metrics.text())
}

async fn show_health(State(shown): State<Shown>) -> impl IntoResponse {
    match shown.health.report() {
        well if well.is_empty() => (StatusCode::OK, "ok\n".to_string()),
        problems => (StatusCode::SERVICE_UNAVAILABLE, problems),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    fn fetch(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn shows_figures_and_health_until_dropped() {
        let (metrics, health) = (Arc::new(Metrics::default()), Arc::new(Health::default()));
        let any = "127.0.0.1:0".parse().unwrap();
        let server = HttpServer::start(any, metrics, health.clone()).unwrap();
        let address = server.address();
        assert!(fetch(address, "/metrics").starts_with("HTTP/1.1 200"));
        assert!(fetch(address, "/healthz").ends_with("ok\n"));
        health.fail("OST0001", "disk gone");
        let answer = fetch(address, "/healthz");
        assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with("OST0001: disk gone\n"));
        assert!(fetch(address, "/nonsense").starts_with("HTTP/1.1 404"));
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }
}
