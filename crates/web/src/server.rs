//! The HTTP server: the framework's parts, put together as its `HttpServer` does it, but over a stream of our own ([`Courteous`]) and
//! without HTTP/2. Whatever is served is decided elsewhere; here stands only how connections are made and how long they may do nothing.
//!
//! A connection is counted before its first byte is read, so before its TLS handshake: who says nothing takes no place of others.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpService, Request, Response};
use actix_server::{GracefulShutdownSignal, Server};
use actix_service::{
    IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt as _, fn_service, map_config,
};
use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::AppConfig;
use actix_web::rt::net::TcpStream;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::connections::{Connections, Counted};
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
    /// Over a counted connection, when clients are let in; with nothing, if they never will be.
    async fn let_in<T>(mut self, io: T, counted: Counted) -> (Courteous<T>, Option<SocketAddr>) {
        drop(self.opened.wait_for(|open| *open).await);
        let peer = counted.peer();
        (Courteous::new(io, self.always, Some(counted)), Some(peer))
    }

    fn count(&self, io: &TcpStream) -> io::Result<Counted> {
        self.connections.count_in(io).ok_or_else(|| io::ErrorKind::ConnectionRefused.into())
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
            let acceptor = TlsAcceptor::from(Arc::new(tls));
            builder.listen("https", listener, move || {
                let (entry, acceptor) = (manners.clone(), acceptor.clone());
                fn_service(move |io: TcpStream| {
                    let (manners, acceptor) = (entry.clone(), acceptor.clone());
                    async move {
                        let counted = manners.count(&io)?;
                        let io = counted.handshake(acceptor.accept(io)).await?;
                        Ok::<_, DispatchError>(manners.let_in(io, counted).await)
                    }
                })
                .and_then(http(app(), address, &stops))
            })?
        }
        None => builder.listen("http", listener, move || {
            let entry = manners.clone();
            fn_service(move |io: TcpStream| {
                let manners = entry.clone();
                async move {
                    let counted = manners.count(&io)?;
                    Ok::<_, DispatchError>(manners.let_in(io, counted).await)
                }
            })
            .and_then(http(app(), address, &stops))
        })?,
    };
    Ok(builder.run())
}

/// HTTP/1.1 over one sort of stream.
fn http<T, I, S, B>(
    app: I,
    address: SocketAddr,
    stops: &GracefulShutdownSignal,
) -> impl ServiceFactory<
    (Courteous<T>, Option<SocketAddr>),
    Config = (),
    Response = (),
    Error = DispatchError,
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
    let stops = stops.clone();
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
        .h1(map_config(app, |()| AppConfig::default()))
}
