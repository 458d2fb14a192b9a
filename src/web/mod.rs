//! The web room: pages, API and live sockets of one node.
//!
//! It reads the feed and writes to the store, and never speaks to the supervisor: a toggle becomes a write, and the
//! supervisor hears of it as everybody else does. [`routes`] is the only URL table; [`door`] lets nobody past it.

pub mod acts;
pub mod api;
pub mod assets;
pub mod auth;
pub mod csrf;
pub mod door;
pub mod error;
pub mod frames;
pub mod gate;
pub mod health;
pub mod hub;
pub mod live;
pub mod login;
pub mod loglines;
pub mod metrics;
pub mod oidc;
pub mod openapi;
pub mod pages;
pub mod parts;
pub mod refusals;
pub mod routes;
pub mod throttle;

use std::any::Any;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::rt::net::TcpStream;
use actix_web::{App, HttpServer, web as actix};
use nix::sys::socket::{setsockopt, sockopt};

use self::auth::Identities;
use self::error::WebError;
use self::hub::Hub;
use crate::config::{Config, Current, JobConfig};
use crate::dispatch;
use crate::feed::Feed;
use crate::rotation;
use crate::secrets::Passwords;
use crate::store::Store;
use crate::telemetry::Metrics;
use crate::waiting::WaitingRoom;

/// Largest body of a request.
pub const BODY_MAX: usize = 64 * 1024;
/// Largest body where many tasks or results come at once.
pub const LARGE_BODY_MAX: usize = 1024 * 1024;
/// A connection whose peer acknowledges nothing for this long is dropped by the kernel: only that frees a client
/// which stopped reading (the framework stops polling it, and with it every timer of ours).
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(15);

/// What every handler needs; cheap to clone.
#[derive(Clone)]
pub struct Web {
    /// Shared state.
    pub store: Store,
    /// The newest pictures.
    pub feed: Feed,
    config: Current,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Checks passwords.
    pub passwords: Passwords,
    /// Knows callers.
    pub identities: Identities,
    /// Live sockets.
    pub live: Arc<Hub>,
    /// What is known of the provider of single sign-on.
    pub sso: oidc::SingleSignOn,
    /// Where work is asked for.
    pub desk: dispatch::Desk,
    /// Where turns are asked for.
    pub turns: rotation::Desk,
    /// Where clients wait for either.
    room: WaitingRoom,
}

/// Where clients wait, and what for.
pub struct Desks {
    /// Where.
    pub room: WaitingRoom,
    /// For work.
    pub work: dispatch::Desk,
    /// For turns.
    pub turns: rotation::Desk,
}

impl Web {
    /// Puts the parts together; nothing runs yet.
    #[must_use]
    pub fn new(
        store: Store,
        feed: Feed,
        config: Current,
        metrics: Arc<Metrics>,
        desks: Desks,
    ) -> Self {
        let Desks { room, work, turns } = desks;
        let identities = Identities::default();
        let live = Arc::new(Hub::new(
            store.clone(),
            feed.clone(),
            config.clone(),
            Arc::clone(&metrics),
            identities.clone(),
        ));
        Self {
            store,
            feed,
            config,
            metrics,
            passwords: Passwords::default(),
            identities,
            live,
            sso: oidc::SingleSignOn::default(),
            desk: work,
            turns,
            room,
        }
    }

    /// This node's configuration, as it is in force now.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        self.config.get()
    }

    /// A job of the configuration, or one that only other nodes define.
    ///
    /// # Errors
    /// [`WebError::NotFound`].
    pub fn job(&self, name: &str) -> Result<Arc<JobConfig>, WebError> {
        self.live.job_named(name).ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            WebError::not_found(format!(
                "there is no job {shown:?} in the configuration of any node: GET /api/v1/jobs lists them"
            ))
        })
    }
}

/// Ends the web server without cutting anybody off in the middle of a word.
pub struct Drain {
    live: Arc<Hub>,
    room: WaitingRoom,
    server: ServerHandle,
}

impl Drain {
    /// Answers those who wait for work or a turn, closes the live sockets with 1012, a few at a time, then stops the server. Takes at most about seven seconds.
    pub async fn run(self) {
        self.room.close();
        self.live.drain().await;
        self.server.stop(true).await;
    }
}

/// Serves on `listener`; the server is a future that ends after [`Drain::run`].
///
/// Must be called inside a tokio runtime: the hub of the live sockets runs there.
///
/// # Errors
/// When the listener cannot be used.
pub fn serve(web: Web, listener: TcpListener) -> std::io::Result<(Server, Drain)> {
    let live = Arc::clone(&web.live);
    let room = web.room.clone();
    tokio::spawn(Arc::clone(&live).run());
    let data = actix::Data::new(web);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .app_data(actix::PayloadConfig::new(BODY_MAX))
            .app_data(actix::FormConfig::default().limit(BODY_MAX))
            .wrap(from_fn(door::door))
            .configure(routes::mount)
    })
    .workers(2)
    .client_request_timeout(Duration::from_secs(5))
    .h1_allow_half_closed(false)
    .on_connect(on_connect)
    .disable_signals()
    .shutdown_timeout(2)
    .listen(listener)?
    .run();
    let drain = Drain { live, room, server: server.handle() };
    Ok((server, drain))
}

fn on_connect(connection: &dyn Any, _: &mut actix_web::dev::Extensions) {
    let Some(stream) = connection.downcast_ref::<TcpStream>() else { return };
    let unacknowledged = u32::try_from(UNACKNOWLEDGED_MAX.as_millis()).unwrap_or(u32::MAX);
    let set = stream.set_nodelay(true).map_err(|error| error.to_string()).and_then(|()| {
        setsockopt(stream, sockopt::TcpUserTimeout, &unacknowledged)
            .map_err(|error| error.to_string())
    });
    if let Err(error) = set {
        // A peer that is gone already; it costs nothing.
        tracing::debug!(%error, "the connection could not be tuned");
    }
}
