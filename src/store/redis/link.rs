//! One connection to Redis that comes back by itself; every call on it is bounded in time.
//!
//! redis-rs reconnects neither on READONLY nor on a server that accepts and never answers; here any such
//! trouble drops the connection, so that the next call dials (and resolves the name) again: the first time at
//! once, then after 50 to 500 ms. Calls in flight on a dropped connection are not disturbed. It decides nothing
//! about leases; what went wrong becomes a [`StoreError`] in words.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Cmd, FromRedisValue, PushInfo, PushKind, ScriptInvocation, Value,
};

use crate::clock;
use crate::domain::time::Boot;
use crate::store::{Result, StoreError};

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

/// What to send.
#[derive(Clone, Copy)]
pub(super) enum Work<'a> {
    Script(&'a ScriptInvocation<'a>),
    Command(&'a Cmd),
}

/// One connection, made when needed.
pub(super) struct Link {
    client: ::redis::Client,
    address: Arc<str>,
    timeout: Duration,
    slot: Arc<Mutex<Slot>>,
    /// One caller dials, the others wait for what it finds.
    dial: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Slot {
    connection: Option<MultiplexedConnection>,
    /// Counts dialled connections, so that only the one that failed is dropped.
    generation: u64,
    /// In a row, without a call that succeeded between.
    failures: u32,
    not_before: Boot,
    refused: Option<StoreError>,
    attempts: u64,
}

impl Slot {
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
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(super) fn new(client: ::redis::Client, address: Arc<str>, timeout: Duration) -> Self {
        Self { client, address, timeout, slot: Arc::default(), dial: tokio::sync::Mutex::default() }
    }

    /// Runs a script.
    pub(super) async fn script<T: FromRedisValue>(
        &self,
        invocation: &ScriptInvocation<'_>,
        repeat: Repeat,
    ) -> Result<T> {
        self.call(Work::Script(invocation), repeat).await
    }

    /// Runs one command.
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        command: &Cmd,
        repeat: Repeat,
    ) -> Result<T> {
        self.call(Work::Command(command), repeat).await
    }

    async fn call<T: FromRedisValue>(&self, work: Work<'_>, repeat: Repeat) -> Result<T> {
        let value = match tokio::time::timeout(self.timeout, self.send(work, repeat)).await {
            Ok(answer) => answer?,
            Err(_) => {
                return Err(StoreError::Unavailable(format!(
                    "Redis at {} did not answer within {:?}",
                    self.address, self.timeout
                )));
            }
        };
        ::redis::from_redis_value(value).map_err(|error| {
            StoreError::Corrupt(format!("an answer of Redis at {}: {error}", self.address))
        })
    }

    async fn send(&self, work: Work<'_>, repeat: Repeat) -> Result<Value> {
        let mut again = repeat == Repeat::Harmless;
        loop {
            let (generation, mut connection) = self.connection().await?;
            let mut flight =
                Flight { slot: &self.slot, generation, begun: clock::boot(), landed: false };
            let answer = match work {
                Work::Script(invocation) => invocation.invoke_async(&mut connection).await,
                Work::Command(command) => command.query_async(&mut connection).await,
            };
            flight.landed = true;
            match answer {
                Ok(value) => {
                    lock(&self.slot).failures = 0;
                    return Ok(value);
                }
                Err(error) => {
                    if breaks(&error) {
                        lock(&self.slot).discard(generation);
                        if again && error.is_io_error() {
                            again = false;
                            continue;
                        }
                    }
                    return Err(in_words(&error, &self.address));
                }
            }
        }
    }

    async fn connection(&self) -> Result<(u64, MultiplexedConnection)> {
        let attempts = {
            let slot = lock(&self.slot);
            if let Some(connection) = &slot.connection {
                return Ok((slot.generation, connection.clone()));
            }
            slot.attempts
        };
        let _turn = self.dial.lock().await;
        let not_before = {
            let slot = lock(&self.slot);
            match (&slot.connection, &slot.refused) {
                (Some(connection), _) => return Ok((slot.generation, connection.clone())),
                // Somebody dialled while we queued; its answer is ours.
                (None, Some(refused)) if slot.attempts != attempts => return Err(refused.clone()),
                (None, _) => slot.not_before,
            }
        };
        tokio::time::sleep(not_before.since(clock::boot())).await;
        let generation = lock(&self.slot).generation + 1;
        let result = self
            .client
            .get_multiplexed_async_connection_with_config(&self.config(generation))
            .await;
        let mut slot = lock(&self.slot);
        slot.attempts += 1;
        match result {
            Ok(connection) => {
                slot.generation = generation;
                slot.connection = Some(connection.clone());
                slot.refused = None;
                Ok((generation, connection))
            }
            Err(error) => {
                slot.failed();
                let words = in_words(&error, &self.address);
                slot.refused = Some(words.clone());
                Err(words)
            }
        }
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
                    lock(&slot).discard(generation);
                }
                Ok::<(), std::convert::Infallible>(())
            })
    }
}

/// Drops a connection whose call nobody waited for any more: the server hangs, or the network swallows packets.
struct Flight<'a> {
    slot: &'a Mutex<Slot>,
    generation: u64,
    begun: Boot,
    landed: bool,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.landed && clock::boot().since(self.begun) >= GIVEN_UP_AFTER {
            lock(self.slot).discard(self.generation);
        }
    }
}

/// Errors after which the connection, or the server behind it, is the wrong one.
fn breaks(error: &::redis::RedisError) -> bool {
    match error.code() {
        Some(
            "OOM" | "MISCONF" | "NOREPLICAS" | "BUSY" | "ERR" | "WRONGTYPE" | "NOSCRIPT" | "NOPERM",
        ) => false,
        Some(_) => true,
        None => error.is_io_error() || error.is_unrecoverable_error(),
    }
}

/// What happened, and what to do about it.
pub(super) fn in_words(error: &::redis::RedisError, address: &str) -> StoreError {
    let detail = error.detail().unwrap_or_default();
    let what = match error.code() {
        Some("READONLY") => "is a read-only replica: use the address of the master".to_owned(),
        Some("LOADING") => "is still loading its data".to_owned(),
        Some("MASTERDOWN") => "is a replica that lost its master".to_owned(),
        Some("OOM") => "is out of memory: raise maxmemory".to_owned(),
        Some("NOREPLICAS") => "refuses writes, because too few replicas are connected".to_owned(),
        Some("MISCONF") => {
            "refuses writes, because it cannot save to disk: free space there and look into its log"
                .to_owned()
        }
        Some("BUSY") => "is busy with a script: look at redis-cli SLOWLOG GET".to_owned(),
        Some(code @ ("NOAUTH" | "WRONGPASS")) => {
            format!("wants another user or password ({code}): correct them in the store URL")
        }
        Some("NOPERM") => format!("does not permit this user enough: {detail}"),
        Some("ERR" | "WRONGTYPE") => {
            return StoreError::Corrupt(format!("Redis at {address}: {error}"));
        }
        _ => format!("failed: {error}"),
    };
    StoreError::Unavailable(format!("Redis at {address} {what}"))
}
