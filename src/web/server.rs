//! The HTTP server: the framework's parts, put together as its `HttpServer` does it, but over a stream of our own ([`Courteous`]) and
//! without HTTP/2. Whatever is served is decided elsewhere; here stands only how connections are made and how long they may do nothing.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_http::{HttpService, Request, Response};
use actix_server::{GracefulShutdownSignal, Server};
use actix_service::{
    IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt as _, fn_service, map_config,
};
use actix_tls::accept::TlsError;
use actix_tls::accept::rustls_0_23::{Acceptor, TlsStream};
use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::AppConfig;
use actix_web::rt::net::TcpStream;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::connections::Connections;
use super::courteous::{Always, Courteous};

/// Threads that serve.
const WORKERS: usize = 2;
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// A head of a request must arrive within this time.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// How long the server waits for a connection that ends.
const DISCONNECT_MAX: Duration = Duration::from_secs(1);
/// How many seconds a stop waits for requests under way.
const STOP_MAX: u64 = 2;

/// How the connections of a server are made.
#[derive(Clone)]
pub struct Manners {
    /// Counts and tunes them.
    pub connections: Connections,
    /// What every answer carries.
    pub always: Always,
    /// Whether clients are let in yet.
    pub opened: watch::Receiver<bool>,
}

impl Manners {
    /// Returns when clients are let in, or never will be.
    async fn let_in(mut opened: watch::Receiver<bool>) {
        drop(opened.wait_for(|open| *open).await);
    }
}

/// Serves what `app` makes on `listener`, with TLS if there is a certificate, until its handle stops it.
///
/// # Errors
/// When the listener cannot be used.
pub fn serve<F, I, S, B>(
    app: F,
    listener: TcpListener,
    tls: Option<ServerConfig>,
    manners: Manners,
) -> io::Result<Server>
where
    F: Fn() -> I + Send + Clone + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as Service<Request>>::Future: 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let address = listener.local_addr()?;
    // The cap is that of each worker.
    let each = manners.connections.cap().div_ceil(WORKERS);
    let builder = Server::build()
        .workers(WORKERS)
        .max_concurrent_connections(each)
        .disable_signals()
        .shutdown_timeout(STOP_MAX);
    let stops = builder.graceful_shutdown_signal();
    let builder = match tls {
        Some(mut tls) => {
            tls.alpn_protocols = vec![b"http/1.1".to_vec()];
            builder.listen("https", listener, move || {
                let (always, opened) = (Arc::clone(&manners.always), manners.opened.clone());
                let wrap = move |io: TlsStream<TcpStream>| {
                    let peer = io.get_ref().0.peer_addr().ok();
                    let (io, opened) = (Courteous::new(io, Arc::clone(&always)), opened.clone());
                    async move {
                        Manners::let_in(opened).await;
                        Ok((io, peer))
                    }
                };
                Acceptor::new(tls.clone())
                    .map_err(TlsError::into_service_error)
                    .and_then(fn_service(wrap))
                    .and_then(
                        http(app(), address, &manners, &stops, below_tls)
                            .map_err(TlsError::Service),
                    )
            })?
        }
        None => builder.listen("http", listener, move || {
            let (always, opened) = (Arc::clone(&manners.always), manners.opened.clone());
            fn_service(move |io: TcpStream| {
                let peer = io.peer_addr().ok();
                let (io, opened) = (Courteous::new(io, Arc::clone(&always)), opened.clone());
                async move {
                    Manners::let_in(opened).await;
                    Ok((io, peer))
                }
            })
            .and_then(http(app(), address, &manners, &stops, |io| io))
        })?,
    };
    Ok(builder.run())
}

fn below_tls(io: &TlsStream<TcpStream>) -> &TcpStream {
    io.get_ref().0
}

/// HTTP/1.1 over one sort of stream; `tcp` finds the socket below it.
fn http<T, I, S, B>(
    app: I,
    address: SocketAddr,
    manners: &Manners,
    stops: &GracefulShutdownSignal,
    tcp: fn(&T) -> &TcpStream,
) -> impl ServiceFactory<
    (Courteous<T>, Option<SocketAddr>),
    Config = (),
    Response = (),
    Error = actix_http::error::DispatchError,
    InitError = (),
> + use<T, I, S, B>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as Service<Request>>::Future: 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let (connections, stops) = (manners.connections.clone(), stops.clone());
    let app = app.into_factory().map_err(|error| error.into().error_response());
    HttpService::build()
        .graceful_shutdown_signal(move || {
            let stops = stops.clone();
            async move { stops.notified().await }
        })
        .keep_alive(KEEP_ALIVE)
        .client_request_timeout(HEAD_MAX)
        .client_disconnect_timeout(DISCONNECT_MAX)
        .h1_allow_half_closed(false)
        .local_addr(address)
        .on_connect_ext(move |io: &Courteous<T>, of| connections.on_connect(tcp(io.get_ref()), of))
        .h1(map_config(app, |()| AppConfig::default()))
}
