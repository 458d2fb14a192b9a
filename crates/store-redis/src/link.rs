//! One connection to Redis that comes back by itself; every call on it is bounded in time.
//!
//! redis-rs reconnects neither on READONLY nor on a server that accepts and never answers; here any such
//! trouble drops the connection, so that the next call dials again, where the [`Route`] says by then: the first time
//! at once, then after 50 to 500 ms. Calls in flight on a dropped connection are not disturbed. It decides nothing
//! about leases; what went wrong becomes a [`StoreError`] in words.

use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, PushInfo, PushKind, RedisResult, Script,
    ServerErrorKind, Value,
};
use parking_lot::Mutex;

use super::fault::{self, in_words};
use super::route::{Master, Route};
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::{Result, StoreError};

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// A call given up sooner by its caller says nothing about the connection.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(50);

/// How often a call may be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Twice does what once does: sent again when the connection broke.
    Harmless,
    /// Twice would be wrong: the caller hears that the outcome is unknown.
    Never,
}

/// Why a call came back without an answer.
pub(super) struct Failure {
    pub(super) words: StoreError,
    /// Nothing was done, because another member of the cluster has the slot, or will have it in a moment.
    pub(super) elsewhere: bool,
}

impl From<StoreError> for Failure {
    fn from(words: StoreError) -> Self {
        Self { words, elsewhere: false }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        failure.words
    }
}

/// What to send.
#[derive(Clone, Copy)]
pub(super) enum Work<'a> {
    /// A call of that script, which the server may not know yet.
    Script(&'a Script, &'a Cmd),
    Command(&'a Cmd),
}

impl Work<'_> {
    async fn ask(self, connection: &mut MultiplexedConnection) -> RedisResult<Value> {
        match self {
            Self::Command(command) => command.query_async(connection).await,
            Self::Script(script, call) => match call.query_async(connection).await {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    script.load_async(connection).await?;
                    call.query_async(connection).await
                }
                answer => answer,
            },
        }
    }
}

/// Which of a link's connections, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Generation(u64);

/// One connection, made when needed.
pub(super) struct Link {
    route: Arc<Route>,
    timeout: Duration,
    slot: Arc<Mutex<Dialled>>,
    /// One caller dials, the others wait for what it finds.
    dial: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Dialled {
    connection: Option<MultiplexedConnection>,
    /// Where it leads.
    master: Option<Arc<Master>>,
    /// What it is called in `CLIENT LIST`.
    name: Option<String>,
    /// Counts dialled connections, so that only the one that failed is dropped.
    generation: u64,
    /// In a row, without a call that succeeded between.
    failures: u32,
    not_before: Boot,
    /// When a call on this connection was given up with none answered since.
    doubted: Option<Boot>,
    refused: Option<StoreError>,
    attempts: u64,
}

impl Dialled {
    fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let wait = match self.failures {
            0 | 1 => Duration::ZERO,
            n => (FIRST_WAIT * 2_u32.saturating_pow(n.min(10) - 2)).min(LONGEST_WAIT),
        };
        self.not_before = clock::boot() + wait;
    }

    fn discard(&mut self, generation: u64) {
        if self.generation == generation && self.connection.take().is_some() {
            self.failed();
        }
    }

    /// Of two calls given up one after the other the second ends the connection. After the first it may just be slow:
    /// a first use of a script takes three round trips, and a new connection takes more.
    fn given_up(&mut self, generation: u64, begun: Boot) {
        match self.doubted {
            _ if self.generation != generation => {}
            Some(doubted) if begun >= doubted => self.discard(generation),
            Some(_) => {}
            None => self.doubted = Some(clock::boot()),
        }
    }
}

impl Link {
    pub(super) fn new(route: Arc<Route>, timeout: Duration) -> Self {
        Self { route, timeout, slot: Arc::default(), dial: tokio::sync::Mutex::default() }
    }

    /// Runs one command.
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        command: &Cmd,
        repeat: Repeat,
    ) -> Result<T> {
        Ok(self.call(Work::Command(command), repeat, None).await?.0)
    }

    /// Runs one command on that connection and no other.
    pub(super) async fn command_on<T: FromRedisValue>(
        &self,
        command: &Cmd,
        generation: Generation,
    ) -> Result<T> {
        Ok(self.call(Work::Command(command), Repeat::Never, Some(generation)).await?.0)
    }

    /// For messages.
    pub(super) fn address(&self) -> String {
        self.route.name().to_string()
    }

    /// Gives connections that are made from now on a name.
    pub(super) fn name_next(&self, name: &str) {
        self.slot.lock().name = Some(name.to_owned());
    }

    /// Gives this connection, and those that come after it, a name, if the server permits that.
    pub(super) async fn call_itself(&self, name: &str) {
        self.slot.lock().name = Some(name.to_owned());
        if let Err(error) = self.command::<()>(&naming(name), Repeat::Harmless).await {
            tracing::debug!(%error, "the connection stays without a name");
        }
    }

    /// Does `work`, on the connection `only` if one is given, and says on which.
    pub(super) async fn call<T: FromRedisValue>(
        &self,
        work: Work<'_>,
        repeat: Repeat,
        only: Option<Generation>,
    ) -> std::result::Result<(T, Generation), Failure> {
        let sending = self.send(work, repeat, only);
        let (value, generation) = match tokio::time::timeout(self.timeout, sending).await {
            Ok(answer) => answer?,
            Err(_) => {
                self.route.doubt();
                let hint = if self.slot.lock().generation == 0 { self.route.silence() } else { "" };
                return Err(Failure::from(StoreError::Unavailable(format!(
                    "Redis at {} did not answer within {:?}{hint}",
                    self.route.name(),
                    self.timeout
                ))));
            }
        };
        match ::redis::from_redis_value(value) {
            Ok(value) => Ok((value, generation)),
            Err(error) => Err(Failure::from(StoreError::Corrupt(format!(
                "an answer of Redis at {}: {error}",
                self.route.name()
            )))),
        }
    }

    async fn send(
        &self,
        work: Work<'_>,
        repeat: Repeat,
        only: Option<Generation>,
    ) -> std::result::Result<(Value, Generation), Failure> {
        let mut again = repeat == Repeat::Harmless;
        loop {
            let (generation, mut connection) = match only {
                Some(generation) => (generation, self.still_open(generation)?),
                None => self.connection().await?,
            };
            let mut flight = Flight {
                slot: &self.slot,
                generation: generation.0,
                begun: clock::boot(),
                landed: false,
            };
            let answer = work.ask(&mut connection).await;
            flight.landed = true;
            self.slot.lock().doubted = None;
            match answer {
                Ok(value) => {
                    self.slot.lock().failures = 0;
                    return Ok((value, generation));
                }
                Err(error) => {
                    if elsewhere(&error) {
                        self.route.doubt();
                        let words = in_words(&error, &self.route.name());
                        return Err(Failure { words, elsewhere: true });
                    }
                    if breaks(&error) {
                        self.route.doubt();
                        self.slot.lock().discard(generation.0);
                        if again && error.is_io_error() {
                            again = false;
                            continue;
                        }
                    }
                    return Err(in_words(&error, &self.route.name()).into());
                }
            }
        }
    }

    fn still_open(&self, generation: Generation) -> Result<MultiplexedConnection> {
        let slot = self.slot.lock();
        let open = slot.connection.clone().filter(|_| slot.generation == generation.0);
        open.ok_or_else(|| {
            let name = self.route.name();
            StoreError::Unavailable(format!("the connection to Redis at {name} broke"))
        })
    }

    async fn connection(&self) -> Result<(Generation, MultiplexedConnection)> {
        let master = self.route.master().await?;
        let attempts = {
            let mut slot = self.slot.lock();
            if slot.master.as_ref().is_some_and(|led| !Arc::ptr_eq(led, &master)) {
                // The old one may answer still, and must not be asked any more.
                slot.connection = None;
            }
            if let Some(connection) = &slot.connection {
                return Ok((Generation(slot.generation), connection.clone()));
            }
            slot.attempts
        };
        let _turn = self.dial.lock().await;
        let not_before = {
            let slot = self.slot.lock();
            match (&slot.connection, &slot.refused) {
                (Some(connection), _) => {
                    return Ok((Generation(slot.generation), connection.clone()));
                }
                // Another call dialled while we queued; its answer is ours.
                (None, Some(refused)) if slot.attempts != attempts => return Err(refused.clone()),
                (None, _) => slot.not_before,
            }
        };
        tokio::time::sleep(not_before.since(clock::boot())).await;
        let generation = self.slot.lock().generation + 1;
        let result = self.dial(&master, generation).await;
        let mut slot = self.slot.lock();
        slot.attempts += 1;
        match result {
            Ok(connection) => {
                slot.generation = generation;
                slot.connection = Some(connection.clone());
                slot.master = Some(master);
                slot.refused = None;
                slot.doubted = None;
                Ok((Generation(generation), connection))
            }
            Err(words) => {
                self.route.doubt();
                slot.failed();
                slot.refused = Some(words.clone());
                Err(words)
            }
        }
    }

    async fn dial(&self, master: &Master, generation: u64) -> Result<MultiplexedConnection> {
        let words = |error| in_words(&error, &master.address);
        let config = self.config(generation);
        let connected = master.client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = match connected {
            Ok(connection) => connection,
            Err(error) => return Err(fault::of_dialling(error, master).await),
        };
        if self.route.may_move() {
            expect_master(&mut connection, &master.address).await?;
        }
        let name = self.slot.lock().name.clone();
        if let Some(name) = name {
            match naming(&name).query_async::<()>(&mut connection).await {
                Err(error) if error.is_io_error() => return Err(words(error)),
                // A user who may not do that goes without.
                Ok(()) | Err(_) => {}
            }
        }
        Ok(connection)
    }

    fn config(&self, generation: u64) -> AsyncConnectionConfig {
        let slot = Arc::downgrade(&self.slot);
        AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            // Bounded here, for the whole call; redis-rs's own 500 ms would come on top of nothing.
            .set_response_timeout(None)
            .set_push_sender(move |push: PushInfo| {
                if push.kind == PushKind::Disconnection
                    && let Some(slot) = slot.upgrade()
                {
                    slot.lock().discard(generation);
                }
                Ok::<(), std::convert::Infallible>(())
            })
    }
}

fn naming(name: &str) -> Cmd {
    let mut command = ::redis::cmd("CLIENT");
    command.arg("SETNAME").arg(name);
    command
}

/// Sentinels may name a server before it knows of its new part.
pub(super) async fn expect_master(
    connection: &mut impl ::redis::aio::ConnectionLike,
    address: &str,
) -> Result<()> {
    let role: Vec<Value> = ::redis::cmd("ROLE")
        .query_async(connection)
        .await
        .map_err(|error| in_words(&error, address))?;
    match role.first() {
        Some(Value::BulkString(role)) if role == b"master" => Ok(()),
        _ => Err(StoreError::Unavailable(format!(
            "Redis at {address} is no master, though sentinels name it"
        ))),
    }
}

/// Doubts a connection for whose call no caller waited any more: the server hangs, or the network swallows packets, or either
/// is slow.
struct Flight<'a> {
    slot: &'a Mutex<Dialled>,
    generation: u64,
    begun: Boot,
    landed: bool,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.landed && clock::boot().since(self.begun) >= GIVEN_UP_AFTER {
            self.slot.lock().given_up(self.generation, self.begun);
        }
    }
}

/// Refused before anything was done, by a member of a cluster that may be healthy.
fn elsewhere(error: &::redis::RedisError) -> bool {
    matches!(error.code(), Some("MOVED" | "ASK" | "TRYAGAIN"))
}

/// Errors after which the connection, or the server behind it, is the wrong one.
fn breaks(error: &::redis::RedisError) -> bool {
    match error.code() {
        Some(
            "OOM" | "MISCONF" | "NOREPLICAS" | "BUSY" | "ERR" | "WRONGTYPE" | "NOSCRIPT" | "NOPERM"
            | "CLUSTERDOWN",
        ) => false,
        Some(_) => true,
        None => error.is_io_error() || error.is_unrecoverable_error(),
    }
}
