//! Which server to talk to: the one of the URL, the master that sentinels name, or one member of a cluster.
//!
//! A connection asks here before every call, so that one to a server which is the master no more is left by itself.
//! It neither connects to that server nor judges it.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    ProtocolVersion,
};

use super::cluster::{self, Cluster};
use super::sentinel::{self, Sentinels};
use soloist_store::{Result, StoreError};

/// How long the kernel keeps trying to deliver what the peer does not acknowledge.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);

/// The server to talk to.
pub(super) struct Master {
    pub(super) client: ::redis::Client,
    /// `HOST:PORT`.
    pub(super) address: Arc<str>,
}

/// The way to it.
pub(super) enum Route {
    /// It stands in the URL.
    Fixed(Arc<Master>),
    /// Sentinels name it.
    Sentinels(Box<Sentinels>),
    /// One member of a cluster, whichever slots it has.
    Member(Arc<Master>, Arc<Cluster>),
}

impl Route {
    /// Reads `url`, and connects to nothing.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`], without the URL's password.
    pub(super) fn new(url: &str, timeout: Duration) -> Result<Self> {
        match sentinel::Parts::of(url) {
            Some(parts) => Ok(Self::Sentinels(Box::new(Sentinels::new(parts?, timeout)?))),
            None => Ok(Self::Fixed(Arc::new(Master::new(url)?))),
        }
    }

    /// The server to talk to now.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when too few sentinels answer or they do not agree.
    pub(super) async fn master(&self) -> Result<Arc<Master>> {
        match self {
            Self::Fixed(master) | Self::Member(master, _) => Ok(Arc::clone(master)),
            Self::Sentinels(sentinels) => sentinels.master().await,
        }
    }

    /// Something is wrong with the server: its earlier answers count no more.
    pub(super) fn doubt(&self) {
        match self {
            Self::Fixed(_) => {}
            Self::Sentinels(sentinels) => sentinels.doubt(),
            Self::Member(master, cluster) => cluster.doubt(&master.address),
        }
    }

    /// Whether another server may become the master, so that a new connection has to ask for its role. A member of a
    /// cluster says by itself what is not its own.
    pub(super) fn may_move(&self) -> bool {
        matches!(self, Self::Sentinels(_))
    }

    /// For how long a former master may be taken for the master; new leases wait that much longer after a move.
    pub(super) fn lag(&self) -> Duration {
        match self {
            Self::Fixed(_) => Duration::ZERO,
            Self::Sentinels(_) => sentinel::BELIEVED_FOR,
            Self::Member(..) => cluster::BELIEVED_FOR,
        }
    }

    /// What to look at when it never answered.
    pub(super) fn silence(&self) -> &'static str {
        match self {
            Self::Fixed(master) | Self::Member(master, _) => master.silence(),
            Self::Sentinels(_) => "",
        }
    }

    /// For messages: `HOST:PORT`, or `NAME (HOST:PORT)`.
    pub(super) fn name(&self) -> Arc<str> {
        match self {
            Self::Fixed(master) | Self::Member(master, _) => Arc::clone(&master.address),
            Self::Sentinels(sentinels) => sentinels.label().into(),
        }
    }

    /// For people: `HOST:PORT/DB`, and by whose word.
    pub(super) fn place(&self, database: i64) -> String {
        match self {
            Self::Fixed(master) | Self::Member(master, _) => {
                format!("{}/{database}", master.address)
            }
            Self::Sentinels(sentinels) => {
                format!(
                    "{}/{database}, master by the word of {} sentinels",
                    sentinels.label(),
                    sentinels.count()
                )
            }
        }
    }
}

impl Master {
    /// Of a URL with one host.
    pub(super) fn new(url: &str) -> Result<Self> {
        let info = url.into_connection_info().map_err(|error| unusable(&error))?;
        let address: Arc<str> = match info.addr() {
            ConnectionAddr::Tcp(host, port) => format!("{host}:{port}").into(),
            ConnectionAddr::TcpTls { host, port, .. } => {
                choose_tls_provider();
                format!("{host}:{port}").into()
            }
            _ => {
                return Err(StoreError::Unsupported(
                    "use redis://HOST:PORT/DB or rediss://HOST:PORT/DB".to_owned(),
                ));
            }
        };
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = ::redis::Client::open(prompt(info.set_redis_settings(settings)))
            .map_err(|error| unusable(&error))?;
        Ok(Self { client, address })
    }

    /// Whether it is there and wants another user or password.
    pub(super) async fn refuses_login(&self, timeout: Duration) -> bool {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout));
        let asking = async {
            let connection = self.client.get_multiplexed_async_connection_with_config(&config);
            ::redis::cmd("PING").query_async::<::redis::Value>(&mut connection.await?).await
        };
        asking.await.is_err_and(|error| {
            error.kind() == ErrorKind::AuthenticationFailed
                || matches!(error.code(), Some("NOAUTH" | "WRONGPASS"))
        })
    }

    /// Whether it is spoken to over TLS.
    pub(super) fn over_tls(&self) -> bool {
        matches!(self.client.get_connection_info().addr(), ConnectionAddr::TcpTls { .. })
    }

    /// What to look at when it never answered.
    pub(super) fn silence(&self) -> &'static str {
        if self.over_tls() {
            ": if it does not speak TLS on this port, write redis:// in the store URL"
        } else {
            ": look whether it runs, and whether host and port in the store URL are right"
        }
    }

    /// The number of the database.
    pub(super) fn database(&self) -> i64 {
        self.client.get_connection_info().redis_settings().db()
    }
}

/// Sends at once, and notices a network that swallows packets.
pub(super) fn prompt(info: ConnectionInfo) -> ConnectionInfo {
    let tcp = info.tcp_settings().clone().set_nodelay(true).set_user_timeout(UNACKNOWLEDGED);
    info.set_tcp_settings(tcp)
}

/// Never the URL in a message: it may hold a password.
pub(super) fn unusable(error: &::redis::RedisError) -> StoreError {
    StoreError::Unsupported(format!(
        "the store URL cannot be used ({}): write redis://USER:PASSWORD@HOST:PORT/DB",
        error.category()
    ))
}

/// rustls takes no cryptography without being told which.
fn choose_tls_provider() {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a TLS provider was chosen before");
    }
}
