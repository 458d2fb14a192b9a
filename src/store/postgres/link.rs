//! One task that owns one connection, and does what it is sent, one thing after the other.
//!
//! A caller waits no longer than the time for one call. When it gives up something that had begun, the connection is thrown away with it:
//! no future of the driver is ever dropped half way on a connection that goes on. The next call connects anew, at once the first time,
//! then after 50 to 500 ms.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_postgres::NoTls;

use super::fault::Fault;
use super::place::Place;
use super::session::Conn;
use crate::clock;
use crate::domain::time::Boot;
use crate::store::sql::packet::{Answers, Packet, Repeat};
use crate::store::{Result, StoreError};

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// A lock of a transaction that is sent as a whole is held for milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_millis(900);

/// What becomes of the connection.
pub(super) type Fate = std::result::Result<(), Fault>;
type Doing<'c> = Pin<Box<dyn Future<Output = Fate> + Send + 'c>>;
type Work = Box<dyn for<'c> FnOnce(std::result::Result<&'c mut Conn, Fault>) -> Doing<'c> + Send>;

/// The caller's end. The task ends, and closes its connection, when all of them are dropped.
pub(super) struct Link {
    place: Arc<Place>,
    timeout: Duration,
    work: mpsc::UnboundedSender<Work>,
    abandoned: Arc<Notify>,
    /// Begun by the first call: a store may be named where no task can run yet.
    task: OnceLock<()>,
    todo: std::sync::Mutex<Option<mpsc::UnboundedReceiver<Work>>>,
    /// What the connection is called in `pg_stat_activity` from its next beginning on.
    called: Arc<std::sync::Mutex<String>>,
}

impl Link {
    pub(super) fn new(place: Arc<Place>, timeout: Duration) -> Self {
        let (work, todo) = mpsc::unbounded_channel();
        let called = Arc::new(std::sync::Mutex::new("soloist".to_owned()));
        let todo = std::sync::Mutex::new(Some(todo));
        Self {
            place,
            timeout,
            work,
            abandoned: Arc::default(),
            task: OnceLock::new(),
            todo,
            called,
        }
    }

    /// Carries a packet out, and once more if others were in its way, or if that is harmless and the connection broke.
    pub(super) async fn send(&self, packet: &Packet, repeat: Repeat) -> Result<Answers> {
        let until = clock::boot() + self.timeout;
        let mut broke = false;
        loop {
            let whole = packet.clone();
            let done = self
                .call(until, move |conn| Box::pin(async move { conn.carry_out(&whole).await }))
                .await;
            match done {
                Ok(answers) => return Ok(answers),
                Err(Fault::Again(_)) if clock::boot() < until => {}
                Err(Fault::Broken(_)) if repeat == Repeat::Harmless && !broke => broke = true,
                Err(fault) => return Err(fault.told(&self.place.name)),
            }
        }
    }

    /// Has `work` done on the connection, and hands its outcome on.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        until: Boot,
        work: impl for<'c> FnOnce(
            &'c mut Conn,
        ) -> Pin<
            Box<dyn Future<Output = std::result::Result<T, Fault>> + Send + 'c>,
        > + Send
        + 'static,
    ) -> std::result::Result<T, Fault> {
        self.begin();
        let (answer, answered) = oneshot::channel();
        let begun = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&begun);
        let whole: Work = Box::new(move |conn| {
            Box::pin(async move {
                // A caller that stopped waiting has been told "unknown" already.
                if answer.is_closed() {
                    return Ok(());
                }
                mark.store(true, Ordering::SeqCst);
                let outcome = match conn {
                    Ok(conn) => work(conn).await,
                    Err(fault) => Err(fault),
                };
                mark.store(false, Ordering::SeqCst);
                let fate = match &outcome {
                    Err(Fault::Broken(why)) => Err(Fault::Broken(why.clone())),
                    _ => Ok(()),
                };
                drop(answer.send(outcome));
                fate
            })
        });
        if self.work.send(whole).is_err() {
            return Err(Fault::Broken("its task has ended".to_owned()));
        }
        let waiting = until.since(clock::boot());
        match tokio::time::timeout(waiting, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Fault::Broken("the connection was given up".to_owned())),
            Err(_) => {
                if begun.load(Ordering::SeqCst) {
                    self.abandoned.notify_one();
                }
                let timeout = self.timeout;
                Err(Fault::Ours(StoreError::Unavailable(format!(
                    "PostgreSQL at {} did not answer within {timeout:?}",
                    self.place.name
                ))))
            }
        }
    }

    /// From now on it is called so.
    pub(super) fn call_itself(&self, name: &str) {
        let mut called = self.called.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        name.clone_into(&mut called);
    }

    fn begin(&self) {
        self.task.get_or_init(|| {
            let mut todo = self.todo.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(todo) = todo.take() {
                let task = Task {
                    place: Arc::clone(&self.place),
                    timeout: self.timeout,
                    abandoned: Arc::clone(&self.abandoned),
                    called: Arc::clone(&self.called),
                    failures: 0,
                    not_before: clock::boot(),
                };
                tokio::spawn(task.run(todo));
            }
        });
    }
}

struct Task {
    place: Arc<Place>,
    timeout: Duration,
    abandoned: Arc<Notify>,
    called: Arc<std::sync::Mutex<String>>,
    /// To connect, in a row.
    failures: u32,
    not_before: Boot,
}

impl Task {
    async fn run(mut self, mut todo: mpsc::UnboundedReceiver<Work>) {
        let mut open: Option<Conn> = None;
        while let Some(work) = todo.recv().await {
            let abandoned = Arc::clone(&self.abandoned);
            // What was given up in the moment in which it was done is no reason to give this up.
            if abandoned.notified().now_or_never().is_some() {
                open = None;
            }
            let doing = async {
                if open.as_ref().is_none_or(|conn| conn.client.is_closed()) {
                    open = None;
                    match self.connect().await {
                        Ok(conn) => open = Some(conn),
                        Err(fault) => return work(Err(fault)).await,
                    }
                }
                match open.as_mut() {
                    Some(conn) => work(Ok(conn)).await,
                    None => Ok(()),
                }
            };
            let fate = tokio::select! {
                fate = doing => fate,
                () = abandoned.notified() => Err(Fault::Broken("given up".to_owned())),
            };
            if fate.is_err() {
                open = None;
            }
        }
    }

    async fn connect(&mut self) -> std::result::Result<Conn, Fault> {
        let wait = self.not_before.since(clock::boot());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let called = self.called.lock().map(|name| name.clone()).unwrap_or_default();
        let (connected, _) =
            connect(&self.place, self.timeout, &called).await.inspect_err(|_| {
                self.failures = self.failures.saturating_add(1);
                let wait = FIRST_WAIT * 2_u32.saturating_pow(self.failures.min(10) - 1);
                self.not_before = clock::boot() + wait.min(LONGEST_WAIT);
            })?;
        self.failures = 0;
        Ok(connected)
    }
}

/// What the server says without being asked.
pub(super) type Heard = mpsc::UnboundedReceiver<tokio_postgres::Notification>;

/// A new connection, set up for our statements; its own task moves the bytes, and ends with it.
pub(super) async fn connect(
    place: &Place,
    timeout: Duration,
    called: &str,
) -> std::result::Result<(Conn, Heard), Fault> {
    let connecting = async {
        let (heard, hears) = mpsc::unbounded_channel();
        let client = match &place.tls {
            Some(tls) => {
                let (client, connection) = place.config.connect(tls.clone()).await?;
                tokio::spawn(pump(connection, heard));
                client
            }
            None => {
                let (client, connection) = place.config.connect(NoTls).await?;
                tokio::spawn(pump(connection, heard));
                client
            }
        };
        client.batch_execute(&settings(place, timeout, called)).await?;
        Ok((Conn::new(client), hears))
    };
    let late = || Fault::Broken(format!("no connection within {timeout:?}"));
    tokio::time::timeout(timeout, connecting).await.unwrap_or_else(|_| Err(late()))
}

/// `SET` and no start-up parameter, which a pooler would refuse in words that help nobody.
fn settings(place: &Place, timeout: Duration, called: &str) -> String {
    let lock = LOCK_TIMEOUT.min(timeout / 2).as_millis().max(1);
    format!(
        "SET search_path = \"{}\"; SET application_name = '{called}'; SET statement_timeout = {}; SET lock_timeout = {lock}; \
         SET idle_in_transaction_session_timeout = 1000; SET client_min_messages = warning; \
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
        place.schema,
        timeout.as_millis().max(1),
    )
}

async fn pump<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    heard: mpsc::UnboundedSender<tokio_postgres::Notification>,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        let message = std::future::poll_fn(|context| connection.poll_message(context)).await;
        match message {
            Some(Ok(tokio_postgres::AsyncMessage::Notification(said))) => {
                // Only the listener listens.
                drop(heard.send(said));
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "a connection to PostgreSQL has ended");
                return;
            }
            None => return,
        }
    }
}
