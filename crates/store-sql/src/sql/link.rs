//! One task that owns one connection, and runs what it is sent in order.
//!
//! A caller waits no longer than the time for one call. When it gives up a call that had begun, the connection is closed: no future of the
//! driver is ever dropped half way on a connection that stays in use. The next call connects anew, at once the first time, then after 50 to
//! 500 ms.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use super::fault::{Fault, Outcome};
use super::follow::Hint;
use super::packet::{Answers, Packet, Repeat};
use super::session::{Dialect, Row, Statement};
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::engine::Way;
use soloist_store::{Result, StoreError};

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A connection of a driver, as its task owns it.
pub(crate) trait Wire: Sized + Send + 'static {
    /// What must be known to connect.
    type Place: Send + Sync + 'static;

    /// Its words.
    const DIALECT: Dialect;

    /// What the server is called in messages.
    const KIND: &'static str;

    /// For messages; never a password.
    fn name(place: &Self::Place) -> &str;

    /// A new connection, set up for our statements. `called`: what the server knows it by; empty: nothing.
    fn connect(
        place: &Self::Place,
        timeout: Duration,
        called: &str,
    ) -> impl Future<Output = Outcome<Self>> + Send;

    /// Whether it can be used, as far as this is known.
    fn is_alive(&mut self) -> impl Future<Output = bool> + Send;

    /// Carries a packet out, in one transaction that is sent as a whole: the server does not wait for the client between its statements.
    fn carry_out(&mut self, packet: &Packet) -> impl Future<Output = Outcome<Answers>> + Send;

    /// Begins a transaction that is a conversation; one that only `looks` sees one instant.
    fn begin(&mut self, looks: bool) -> impl Future<Output = Outcome<()>> + Send;

    /// Ends it.
    fn end(&mut self, last: &[Statement], commit: bool)
    -> impl Future<Output = Outcome<()>> + Send;

    /// What these statements find, all sent before the first answer is awaited.
    fn ask_all(
        &mut self,
        statements: &[Statement],
    ) -> impl Future<Output = Outcome<Vec<Vec<Row>>>> + Send;

    /// Tells everybody who listens what no commit told.
    fn tell(&mut self, place: &Self::Place, hint: Hint)
    -> impl Future<Output = Outcome<()>> + Send;
}

/// What becomes of the connection.
type Doing<'c> = Pin<Box<dyn Future<Output = Outcome<()>> + Send + 'c>>;
type Work<W> = Box<dyn for<'c> FnOnce(Outcome<&'c mut W>) -> Doing<'c> + Send>;

/// The caller's end. The task ends, and closes its connection, when all of them are dropped.
pub(crate) struct Link<W: Wire> {
    pub(crate) place: Arc<W::Place>,
    timeout: Duration,
    work: mpsc::UnboundedSender<Work<W>>,
    abandoned: Arc<Notify>,
    /// Begun by the first call: a store may be named where no task can run yet.
    task: OnceLock<()>,
    todo: Mutex<Option<mpsc::UnboundedReceiver<Work<W>>>>,
    /// What the connection is called at the server from its next beginning on.
    called: Arc<Mutex<String>>,
}

/// The links of a store, and who rings for it.
pub(crate) struct Links<W: Wire> {
    /// A renewal waits for nothing else.
    pub(crate) leases: Link<W>,
    pub(crate) grants: Link<W>,
    pub(crate) rest: Link<W>,
    /// Dispatch is busy on its own account.
    pub(crate) dispatch: Link<W>,
}

impl<W: Wire> Links<W> {
    pub(crate) fn new(place: &Arc<W::Place>, timeout: Duration) -> Self {
        let link = || Link::new(Arc::clone(place), timeout);
        Self { leases: link(), grants: link(), rest: link(), dispatch: link() }
    }

    /// Carries a packet out on the link for `way`.
    pub(crate) async fn send(&self, way: Way, packet: &Packet, repeat: Repeat) -> Result<Answers> {
        let link = match way {
            Way::Grant => &self.grants,
            Way::Lease => &self.leases,
            Way::Rest => &self.rest,
        };
        link.send(packet, repeat).await
    }

    /// From now on they are called so.
    pub(crate) fn call_themselves(&self, name: &str) {
        for link in [&self.leases, &self.grants, &self.rest] {
            let mut called = link.called.lock();
            name.clone_into(&mut called);
        }
    }
}

impl<W: Wire> Link<W> {
    pub(crate) fn new(place: Arc<W::Place>, timeout: Duration) -> Self {
        let (work, todo) = mpsc::unbounded_channel();
        let todo = Mutex::new(Some(todo));
        Self {
            place,
            timeout,
            work,
            abandoned: Arc::default(),
            task: OnceLock::new(),
            todo,
            called: Arc::default(),
        }
    }

    /// Carries a packet out, and once more if others were in its way, or if that is harmless and the connection broke.
    pub(crate) async fn send(&self, packet: &Packet, repeat: Repeat) -> Result<Answers> {
        let until = clock::boot() + self.timeout;
        let mut broke = false;
        loop {
            let whole = packet.clone();
            let done = self
                .call(until, move |conn: &mut W| {
                    Box::pin(async move { conn.carry_out(&whole).await })
                })
                .await;
            match done {
                Ok(answers) => return Ok(answers),
                Err(Fault::Again(_)) if clock::boot() < until => {}
                Err(Fault::Broken(_)) if repeat == Repeat::Harmless && !broke => broke = true,
                Err(fault) => return Err(fault.told(W::name(&self.place))),
            }
        }
    }

    /// Has `work` done on the connection, and hands its outcome on.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        until: Boot,
        work: impl for<'c> FnOnce(&'c mut W) -> Pin<Box<dyn Future<Output = Outcome<T>> + Send + 'c>>
        + Send
        + 'static,
    ) -> Outcome<T> {
        self.begin();
        let (answer, answered) = oneshot::channel();
        let begun = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&begun);
        let whole: Work<W> = Box::new(move |conn| {
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
                let (kind, name, timeout) = (W::KIND, W::name(&self.place), self.timeout);
                Err(Fault::Ours(StoreError::Unavailable(format!(
                    "{kind} at {name} did not answer within {timeout:?}"
                ))))
            }
        }
    }

    fn begin(&self) {
        self.task.get_or_init(|| {
            let mut todo = self.todo.lock();
            if let Some(todo) = todo.take() {
                let task = Task::<W> {
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

struct Task<W: Wire> {
    place: Arc<W::Place>,
    timeout: Duration,
    abandoned: Arc<Notify>,
    called: Arc<Mutex<String>>,
    /// To connect, in a row.
    failures: u32,
    not_before: Boot,
}

impl<W: Wire> Task<W> {
    async fn run(mut self, mut todo: mpsc::UnboundedReceiver<Work<W>>) {
        let mut open: Option<W> = None;
        while let Some(work) = todo.recv().await {
            let abandoned = Arc::clone(&self.abandoned);
            // What was given up in the moment in which it was done is no reason to give this up.
            if abandoned.notified().now_or_never().is_some() {
                open = None;
            }
            let doing = async {
                let alive = match open.as_mut() {
                    Some(conn) => conn.is_alive().await,
                    None => false,
                };
                if !alive {
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

    async fn connect(&mut self) -> Outcome<W> {
        let wait = self.not_before.since(clock::boot());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let called = self.called.lock().clone();
        let connected = W::connect(&self.place, self.timeout, &called).await.inspect_err(|_| {
            self.failures = self.failures.saturating_add(1);
            let wait = FIRST_WAIT * 2_u32.saturating_pow(self.failures.min(10) - 1);
            self.not_before = clock::boot() + wait.min(LONGEST_WAIT);
        })?;
        self.failures = 0;
        Ok(connected)
    }
}
