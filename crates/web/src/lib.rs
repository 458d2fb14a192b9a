//! The web room: pages, API and live sockets of one node.
//!
//! It reads the feed and writes to the store, and never speaks to the supervisor: a toggle becomes a write, and the
//! supervisor learns of it as all others do. [`routes`] is the only URL table; [`door`] lets no request past it.

pub mod acts;
pub mod address;
pub mod api;
pub mod assets;
pub mod asyncapi;
pub mod auth;
pub mod badge;
mod body;
mod compress;
pub mod connections;
mod cors;
pub mod courteous;
pub mod csrf;
pub mod door;
pub mod error;
pub mod frames;
pub mod gate;
pub mod headers;
pub mod health;
pub mod here;
mod history;
pub mod hub;
pub mod live;
pub mod login;
pub mod loglines;
pub mod metrics;
pub mod named;
#[cfg(feature = "oidc")]
pub mod oidc;
#[cfg(not(feature = "oidc"))]
#[path = "oidc/absent.rs"]
pub mod oidc;
pub mod openapi;
pub mod pages;
pub mod parts;
pub mod refusals;
pub mod refused;
pub mod routes;
pub mod server;
pub mod sieve;
pub mod sse;
pub mod throttle;
mod timing;
pub mod tls;
pub mod wire;

use std::net::TcpListener;
use std::sync::Arc;

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, web as actix};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use self::auth::{Caller, Identities};
use self::connections::Connections;
use self::error::WebError;
use self::hub::Hub;
use self::server::Manners;
use crate::history::History;
use soloist_config::{Config, Current, JobConfig};
use soloist_desk::dispatch;
use soloist_desk::leases;
use soloist_desk::rotation;
use soloist_desk::waiting::WaitingRoom;
use soloist_domain::detail::Detail;
use soloist_domain::name::JobName;
use soloist_process::clock;
use soloist_process::telemetry::Metrics;
use soloist_secrets::Passwords;
use soloist_store::Store;
use soloist_store::feed::{Feed, Followed};
use soloist_store::nodes::Watched;
use soloist_view::JobView;
use soloist_view::words::Language;

/// Largest body of a request.
pub const BODY_MAX: usize = 64 * 1024;
/// Largest body where many tasks or results come at once.
pub const LARGE_BODY_MAX: usize = 1024 * 1024;
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
    /// Who held which job, for longer than runs are listed.
    pub history: History,
    /// Live sockets.
    pub live: Arc<Hub>,
    /// Connections of any kind.
    pub connections: Connections,
    /// What `/readyz` said last.
    readiness: Arc<health::Readiness>,
    /// What is known of the provider of single sign-on.
    pub sso: oidc::SingleSignOn,
    /// Where work is asked for.
    pub desk: dispatch::ClaimDesk,
    /// Where turns are asked for.
    pub turns: rotation::TurnDesk,
    /// Where programs ask for leases.
    pub leases: leases::LeaseDesk,
    /// What was refused of late.
    pub refused: refused::Ledger,
    /// Where clients wait for any of them.
    room: WaitingRoom,
}

/// Whether an API token is valid; an error: not known now, with why.
pub type CheckToken = Arc<dyn Fn(String) -> BoxFuture<'static, Result<bool, String>> + Send + Sync>;

/// Where clients wait, and what for.
pub struct Desks {
    /// Where.
    pub room: WaitingRoom,
    /// For work.
    pub work: dispatch::ClaimDesk,
    /// For turns.
    pub turns: rotation::TurnDesk,
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
        let leases = leases::LeaseDesk::start(room.clone(), feed.clone(), config.clone());
        let identities = Identities::default();
        let connections = Connections::new(config.clone());
        let history = History::new(store.clone(), feed.clone(), config.clone());
        let live = Arc::new(Hub::new(
            store.clone(),
            feed.clone(),
            config.clone(),
            Arc::clone(&metrics),
            identities.clone(),
            history.clone(),
        ));
        Self {
            store,
            feed,
            config,
            metrics,
            passwords: Passwords::default(),
            identities,
            history,
            live,
            connections,
            readiness: Arc::default(),
            sso: oidc::SingleSignOn::default(),
            desk: work,
            turns,
            leases,
            refused: refused::Ledger::default(),
            room,
        }
    }

    /// This node's configuration, as it is in force now.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        self.config.get()
    }

    /// Which programs this node and the others watch.
    pub(crate) fn watches(&self) -> Vec<Watched> {
        let own = self.leases.watched().borrow().clone();
        let nodes = self.feed.nodes();
        let others =
            nodes.iter().filter(|node| node.is_alive() && !self.feed.is_own(&node.beat.node));
        own.into_iter().chain(others.filter_map(|node| node.beat.watched.clone())).collect()
    }

    /// Whether an API token is valid, for those who do not come by HTTP.
    #[must_use]
    pub fn check_token(&self) -> CheckToken {
        let (store, identities) = (self.store.clone(), self.identities.clone());
        Arc::new(move |token| {
            let (store, identities) = (store.clone(), identities.clone());
            Box::pin(async move {
                let shown = auth::Shown::token(&token);
                let ask = auth::Ask { looking: false, renews: false };
                match identities.identify(&store, &shown, ask).await {
                    Ok(caller) => Ok(caller.is_some()),
                    Err(error) => Err(format!("the store cannot be asked now ({error})")),
                }
            })
        })
    }

    /// The picture of a job as it is now, for readers of `lang`; `None` as long as nothing is known of it.
    #[must_use]
    pub(crate) fn view(&self, job: &JobName, lang: Language) -> Option<JobView> {
        let (defined, seen) = (self.live.job_named(job.as_str())?, self.feed.job(job)?);
        let (nodes, rotations) = (self.feed.nodes(), self.live.rotations());
        let rotations = rotations.as_ref().map(|views| &views[..]);
        let view = JobView::of(&seen, &defined, &nodes, rotations, lang, clock::boot());
        Some(view.with_names(&self.live.display_names()))
    }

    /// A job of the configuration, or one that only other nodes define.
    ///
    /// # Errors
    /// [`WebError::NotFound`], also for one that `caller` may not see: nothing tells the one from the other.
    /// [`WebError::Forbidden`] for a token that is bound to others, whether there is such a job or not.
    pub fn job(&self, caller: &Caller, name: &str) -> Result<Arc<JobConfig>, WebError> {
        if let Ok(name) = JobName::new(name) {
            caller.bound.check_reads_job(&name)?;
        }
        let found = self.live.job_named(name).filter(|job| caller.sees(job));
        found.ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            let text = format!(
                "there is no job {shown:?} in the configuration of any node: GET /api/v1/jobs lists them"
            );
            WebError::not_found(Detail::new(text).told("refused-no-job", &[("job", &shown)]))
        })
    }
}

/// The way in and out of the web server: it can begin before the node has anything to show, and ends without cutting off a client
/// in the middle of an answer.
pub struct Drain {
    live: Arc<Hub>,
    room: WaitingRoom,
    connections: Connections,
    server: ServerHandle,
    open: watch::Sender<bool>,
}

impl Drain {
    /// Lets clients wait: what connects from now on is not answered until [`Drain::open`].
    pub fn hold(&self) {
        self.open.send_replace(false);
    }

    /// Answers those who wait, and all who come.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Answers those who wait for work or a turn, closes the live sockets with 1012, a few at a time, parts from the other connections,
    /// then stops the server. Takes at most about nine seconds.
    pub async fn run(self) {
        self.room.close();
        self.live.drain().await;
        self.connections.quiet().await;
        self.server.stop(true).await;
    }
}

/// What a feed follows of a configuration.
#[must_use]
pub fn followed(config: &Config) -> Vec<Followed> {
    let followed = |job: &JobConfig| Followed {
        job: job.name.clone(),
        timing: job.timing,
        min_uptime: job.backoff.min_uptime,
        takes_turns: job.rotation.is_some(),
        external: job.is_external(),
        schedule: job.schedule.as_ref().map(|scheduled| scheduled.law.clone()),
    };
    config.jobs.iter().map(followed).collect()
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
    tokio::spawn(web.history.clone().run());
    let connections = web.connections.clone();
    let pair = web.config().doors.tls.clone().map(tls::Pair::open).transpose()?;
    tracing::info!(
        connections = connections.cap(),
        "at most so many connections at once (limits.max_connections)"
    );
    let config = web.config.clone();
    let always = Arc::new(move || headers::lines(&config.get()));
    let data = actix::Data::new(web);
    let app = move || {
        App::new()
            .app_data(data.clone())
            .app_data(actix::PayloadConfig::new(BODY_MAX))
            .app_data(actix::FormConfig::default().limit(BODY_MAX))
            .wrap(from_fn(door::door))
            .wrap(from_fn(compress::compress))
            .wrap(from_fn(timing::timing))
            .configure(routes::mount)
    };
    let tls = pair.map(tls::Pair::server_config).transpose()?;
    let (open, opened) = watch::channel(true);
    let manners = Manners { connections: connections.clone(), always, opened };
    let server = server::serve(app, listener, tls, manners)?;
    let drain = Drain { live, room, connections, server: server.handle(), open };
    Ok((server, drain))
}
