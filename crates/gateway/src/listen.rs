//! Accepts connections and speaks HTTP on them, with limits on headers, time and number.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, StatusCode, header, server};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

use crate::admission::{Admission, AdmissionLimits, CLOSING_MAX, NoPlace, Place};
use crate::gateway::Gateway;
use crate::head_watch::WatchedStream;
use crate::http::{self, AmbiguousLength};
use crate::ip_network::counted_address;
use crate::log_limit::LogLimit;
use crate::meters::Meters;

/// Bytes of a request line and its headers.
const HEAD_BYTES_MAX: usize = 32 * 1024;
const HEADERS_MAX: usize = 100;

/// Places for health checks while clients have all the others.
const PROBES_MAX: usize = 8;
/// How long such a request may take to arrive.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Places of the private listener of `/metrics`.
const METRICS_MAX: usize = 16;

/// File descriptors that connections may use beyond `connections_max`.
pub const DESCRIPTORS_BESIDE: usize = PROBES_MAX + METRICS_MAX + 3 * CLOSING_MAX;

/// Places for connections, and what is served on them.
pub struct Entrance {
    admission: Arc<Admission>,
    router: Router,
    header_timeout: Duration,
    /// Whether a connection may send several requests.
    keeps_alive: bool,
}

impl Entrance {
    /// The entrances of clients: the first that has a place serves a connection. The last one is for health
    /// checks and has a few places of its own.
    pub fn for_clients(gateway: &Arc<Gateway>) -> Vec<Self> {
        let options = &gateway.options;
        let clients = Self {
            admission: Arc::clone(&gateway.admission),
            router: http::router(Arc::clone(gateway)),
            header_timeout: options.header_timeout,
            keeps_alive: true,
        };
        let probes = Self {
            router: http::probe_router(Arc::clone(gateway)),
            header_timeout: options.header_timeout.min(PROBE_TIMEOUT),
            keeps_alive: false,
            ..Self::with_places(PROBES_MAX, options.header_timeout)
        };
        vec![clients, probes]
    }

    /// The entrance of the operator's private listener.
    pub fn for_metrics(gateway: &Arc<Gateway>) -> Vec<Self> {
        let router = http::metrics_router(Arc::clone(gateway));
        let places = Self::with_places(METRICS_MAX, gateway.options.header_timeout);
        vec![Self { router, ..places }]
    }

    fn with_places(places: usize, header_timeout: Duration) -> Self {
        let limits = AdmissionLimits {
            connections: places,
            unauthenticated: places,
            per_address: 0,
            patience_ms: 0,
        };
        let admission = Admission::new(limits);
        Self { admission, router: Router::new(), header_timeout, keeps_alive: true }
    }
}

/// Accepts connections until the shutdown begins, then waits for the open ones to end.
pub async fn listen(gateway: Arc<Gateway>, listener: TcpListener, entrances: Vec<Entrance>) {
    let entrances: Arc<[Entrance]> = entrances.into();
    let mut tasks = tokio::task::JoinSet::new();
    let mut log = AcceptLog::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            () = gateway.drain_started() => break,
        };
        match accepted {
            Ok((stream, peer)) => match admit(&gateway, &entrances, peer, &mut log) {
                Some((entrance, place)) => {
                    let (gateway, entrances) = (Arc::clone(&gateway), Arc::clone(&entrances));
                    tasks.spawn(async move {
                        serve(gateway, stream, peer, &entrances[entrance], place).await;
                    });
                }
                None => drop(stream),
            },
            Err(error) => {
                // Most likely out of file descriptors: retrying at once would only spin.
                if let Some(left_out) = log.failed.take(gateway.chat.clock.ticks()) {
                    tracing::warn!(%error, left_out, "could not accept a connection");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    let finished = async {
        gateway.sessions_ended().await;
        while tasks.join_next().await.is_some() {}
    };
    if tokio::time::timeout(gateway.options.drain, finished).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
}

/// Limits the warnings of the accept loop, each kind by itself.
#[derive(Default)]
struct AcceptLog {
    failed: LogLimit,
    full: LogLimit,
    address: LogLimit,
}

/// A place for a connection in the first entrance that has one, or none.
fn admit(
    gateway: &Gateway,
    entrances: &[Entrance],
    peer: SocketAddr,
    log: &mut AcceptLog,
) -> Option<(usize, Place)> {
    let address = counted_address(peer.ip());
    let is_proxied = gateway.options.is_trusted_proxy(peer.ip());
    let now = gateway.chat.clock.ticks();
    for (number, entrance) in entrances.iter().enumerate() {
        let refused = match entrance.admission.admit(address, is_proxied, now) {
            Ok(place) => return Some((number, place)),
            Err(refused) => refused,
        };
        if number > 0 {
            break; // counted and logged already
        }
        Meters::count_no_place(refused);
        match refused {
            NoPlace::Full => {
                if let Some(left_out) = log.full.take(now) {
                    tracing::warn!(%peer, left_out, "all places are taken, a connection was refused");
                }
            }
            NoPlace::Address => {
                if let Some(left_out) = log.address.take(now) {
                    tracing::warn!(
                        %address,
                        left_out,
                        "an address has limits.connections_per_address connections, another was refused"
                    );
                }
            }
        }
    }
    None
}

/// Disables Nagle's algorithm, and lets the kernel reset a connection whose peer acknowledges nothing
/// for the write timeout.
fn set_tcp_options(stream: &TcpStream, write_timeout: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let ms = u32::try_from(write_timeout.as_millis()).unwrap_or(u32::MAX);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, ms)?)
}

async fn serve(
    gateway: Arc<Gateway>,
    stream: TcpStream,
    peer: SocketAddr,
    entrance: &Entrance,
    place: Place,
) {
    if let Err(error) = set_tcp_options(&stream, gateway.options.write_timeout) {
        tracing::debug!(%peer, %error, "the peer has disconnected");
        return;
    }
    let place = Arc::new(place);
    let (stream, head) = WatchedStream::new(stream, HEAD_BYTES_MAX);
    let (router, kept) = (entrance.router.clone(), Arc::clone(&place));
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        // An upgraded socket outlives this service: it keeps the place by this.
        request.extensions_mut().insert(Arc::clone(&kept));
        if request.headers().contains_key(header::TRANSFER_ENCODING) && head.has_content_length() {
            request.extensions_mut().insert(AmbiguousLength);
        }
        let (answering, head) = (router.clone().oneshot(request), Arc::clone(&head));
        async move {
            let response = answering.await?;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                head.stop();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(entrance.keeps_alive)
        .header_read_timeout(entrance.header_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = place.evicted() => {
            Meters::count_eviction();
            return;
        }
        () = gateway.drain_started() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%peer, %error, "an HTTP connection ended badly");
    }
}
