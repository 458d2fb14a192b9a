//! Subscriptions: a thread that waits for the bell and hands new events to all subscribers of this process.
//!
//! The bell (`PATH-wake`, see `file.rs`) is rung *after* a commit that published something, by the process that made it, and inotify(7) wakes
//! this thread: no polling, and nothing to do while nothing happens. A bell that was never rung (its process died in between) costs at most
//! [`LOOK_EVERY`]. No event is lost silently: a slow subscriber is told to take a snapshot.
//!
//! An event in the table names its job. The record is read with it in the same transaction, so a follower of the job reads nothing; it may be
//! newer than the event, and never older.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc as commands};
use std::time::Duration;

use inotify::{EventMask, Inotify, WatchMask};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::engine::stored;
use super::fault::{Fault, SqliteResult};
use super::file::Place;
use super::row::{corrupt, uint};
use super::step::{ACCOUNTS, Moment};
use soloist_domain::event::JobEvent;
use soloist_domain::name::JobName;
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::core::{self, Known};
use soloist_store::events::StoreEvent;
use soloist_store::{Result, StoreError};

/// What a subscriber may leave unread before hints are dropped.
const CHANNEL: usize = 1_024;
/// Look without having heard the bell.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same where the machine has no inotify to spare.
const LOOK_EVERY_WITHOUT_BELL: Duration = Duration::from_millis(15);
/// Retry to tell a slow subscriber.
const NUDGE_EVERY: Duration = Duration::from_millis(50);
/// A file is removed, moved, or written by another program than SQLite.
const REPLACED: WatchMask =
    WatchMask::ATTRIB.union(WatchMask::DELETE_SELF).union(WatchMask::MOVE_SELF);
/// Events read at once.
const BATCH: usize = 500;

type Confirmation = oneshot::Sender<Result<mpsc::Receiver<StoreEvent>>>;

enum Command {
    Subscribe(Confirmation),
    Stop,
}

/// The thread's handle; dropping it ends the thread and all subscriptions.
pub(super) struct Notifier {
    commands: commands::Sender<Command>,
    waker: Arc<EventFd>,
}

impl Notifier {
    pub(super) fn start(place: Arc<Place>, timeout: Duration, known: Arc<Known>) -> Result<Self> {
        let failed = |error: std::io::Error| {
            StoreError::Unavailable(format!("no subscription: {error}; raise ulimit -n and -u"))
        };
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let waker = EventFd::from_flags(flags).map_err(|errno| failed(errno.into()))?;
        let waker = Arc::new(waker);
        let (commands, inbox) = commands::channel();
        let ear = Arc::clone(&waker);
        std::thread::Builder::new()
            .name("soloist-notify".to_owned())
            .spawn(move || Listener::new(place, timeout, known, inbox, ear).run())
            .map_err(failed)?;
        Ok(Self { commands, waker })
    }

    /// Asks for a subscription; it begins when the answer comes.
    pub(super) fn subscribe(
        &self,
    ) -> Result<oneshot::Receiver<Result<mpsc::Receiver<StoreEvent>>>> {
        let (confirm, confirmed) = oneshot::channel();
        self.say(Command::Subscribe(confirm)).map_err(|()| {
            StoreError::Unavailable("the thread of the subscriptions has ended".to_owned())
        })?;
        Ok(confirmed)
    }

    fn say(&self, command: Command) -> std::result::Result<(), ()> {
        self.commands.send(command).map_err(|_| ())?;
        // Fails only when it has been rung 2^64 times unheard.
        self.waker.write(1).map(|_| ()).map_err(|_| ())
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        if self.say(Command::Stop).is_err() {
            tracing::debug!("the thread of the subscriptions has ended already");
        }
    }
}

struct Subscriber {
    events: mpsc::Sender<StoreEvent>,
    /// Missed something; is notified as soon as there is room.
    behind: bool,
}

impl Subscriber {
    fn tell(&mut self, event: &StoreEvent) {
        if !self.behind && self.events.try_send(event.clone()).is_err() {
            self.behind = true;
        }
    }

    /// Tells one that missed something; it must read everything again.
    fn catch_up(&mut self) {
        if self.behind && self.events.try_send(StoreEvent::Subscribed).is_ok() {
            self.behind = false;
        }
    }
}

struct Listener {
    place: Arc<Place>,
    timeout: Duration,
    known: Arc<Known>,
    inbox: commands::Receiver<Command>,
    waker: Arc<EventFd>,
    bell: Option<Inotify>,
    /// Opened by the first subscription that can be confirmed.
    db: Option<Connection>,
    subscribers: Vec<Subscriber>,
    /// The newest event that was handed out.
    heard: i64,
    /// The bell at the last look, and when the files were last checked.
    rung: Option<[u8; 16]>,
    looked: Boot,
    /// The next look is at the files, too.
    thorough: bool,
    /// Another file than the bell has changed its name, its attributes, or is gone.
    touched: bool,
    /// The store could not be read at the last attempt.
    broken: bool,
}

impl Listener {
    fn new(
        place: Arc<Place>,
        timeout: Duration,
        known: Arc<Known>,
        inbox: commands::Receiver<Command>,
        waker: Arc<EventFd>,
    ) -> Self {
        let bell = Inotify::init().and_then(|bell| {
            bell.watches().add(place.bell(), WatchMask::MODIFY)?;
            // Only to notice it sooner: these are checked before each transaction.
            for file in place.files() {
                bell.watches().add(file, REPLACED)?;
            }
            Ok(bell)
        });
        let bell = bell.inspect_err(|error| {
            tracing::warn!(store = %place, %error, "no inotify, so the store is asked every {LOOK_EVERY_WITHOUT_BELL:?}: raise fs.inotify.max_user_instances");
        });
        Self {
            place,
            timeout,
            known,
            inbox,
            waker,
            bell: bell.ok(),
            db: None,
            subscribers: Vec::new(),
            heard: 0,
            rung: None,
            looked: Boot(0),
            thorough: true,
            touched: false,
            broken: false,
        }
    }

    fn run(mut self) {
        loop {
            self.wait();
            // Before the events: a new subscriber gets nothing older.
            let mut newcomers = Vec::new();
            loop {
                match self.inbox.try_recv() {
                    Ok(Command::Subscribe(confirm)) => newcomers.push(confirm),
                    Ok(Command::Stop) | Err(commands::TryRecvError::Disconnected) => return,
                    Err(commands::TryRecvError::Empty) => break,
                }
            }
            self.subscribers.retain(|subscriber| !subscriber.events.is_closed());
            if self.subscribers.is_empty() && newcomers.is_empty() {
                continue;
            }
            if newcomers.is_empty() && self.heard_nothing() {
                continue;
            }
            let looked = self.look();
            self.judge(&looked);
            for confirm in newcomers {
                self.admit(confirm, &looked);
            }
            self.subscribers.iter_mut().for_each(Subscriber::catch_up);
        }
    }

    /// Sleeps until the bell, a command, or the time to look anyway.
    fn wait(&mut self) {
        let longest = if self.subscribers.is_empty() {
            PollTimeout::NONE
        } else {
            let longest = match &self.bell {
                _ if self.subscribers.iter().any(|one| one.behind) => NUDGE_EVERY,
                Some(_) => LOOK_EVERY,
                None => LOOK_EVERY_WITHOUT_BELL,
            };
            PollTimeout::try_from(longest).unwrap_or(PollTimeout::MAX)
        };
        let mut fds = vec![PollFd::new(self.waker.as_fd(), PollFlags::POLLIN)];
        if let Some(bell) = &self.bell {
            // Without a subscriber there is no reason to wake up.
            let events =
                if self.subscribers.is_empty() { PollFlags::empty() } else { PollFlags::POLLIN };
            fds.push(PollFd::new(bell.as_fd(), events));
        }
        if let Err(errno) = poll(&mut fds, longest) {
            tracing::debug!(%errno, "poll was interrupted");
        }
        // Emptied before looking: what rings from here on wakes the next wait.
        if let Err(errno) = self.waker.read() {
            tracing::trace!(%errno, "nothing was said");
        }
        if let Some(bell) = &mut self.bell {
            let mut buffer = [0; 4096];
            loop {
                let Ok(events) = bell.read_events(&mut buffer) else { break };
                let masks: Vec<EventMask> = events.map(|event| event.mask).collect();
                self.touched |= masks.iter().any(|mask| *mask != EventMask::MODIFY);
                if masks.is_empty() {
                    break;
                }
            }
        }
    }

    /// Whether nobody has rung since the last look, and that was a moment ago. Most often somebody kept a lease.
    fn heard_nothing(&mut self) -> bool {
        // Before the look: who rings from here on is heard the next time.
        let (rung, now) = (self.place.rung(), clock::boot());
        let touched = std::mem::take(&mut self.touched);
        let late = now.since(self.looked) >= LOOK_EVERY || self.bell.is_none() || self.broken;
        self.thorough |= touched || late;
        let same = rung.is_some() && rung == self.rung && !self.thorough;
        if same && self.subscribers.iter().all(|one| !one.behind) {
            return true;
        }
        self.rung = rung;
        if self.thorough {
            self.looked = now;
        }
        false
    }

    /// Reads what is new and hands it out.
    fn look(&mut self) -> SqliteResult<()> {
        match std::mem::take(&mut self.thorough) {
            true => self.place.check_all()?,
            false => self.place.check_same()?,
        }
        let db = match self.db.take() {
            Some(db) => db,
            None => self.place.open_reader(self.timeout)?,
        };
        let db = self.db.insert(db);
        if self.subscribers.is_empty() || self.broken {
            self.heard = newest(db)?;
            return Ok(());
        }
        loop {
            // Before the reading: what it says is at least so new.
            let tx = db.transaction()?;
            let at = Moment::before(&self.place, &tx)?;
            let rows = after(&tx, self.heard)?;
            let gap = rows.first().is_some_and(|row| row.seq != self.heard + 1);
            self.subscribers.iter_mut().for_each(|one| one.behind |= gap);
            let mut told = HashSet::new();
            for Event { seq, event } in &rows {
                if let StoreEvent::Job(JobEvent { job, .. }) = event
                    && told.insert(job)
                {
                    let stored = stored(&tx, job, &at)?;
                    let record = core::record(&self.known, job, stored, at.wall);
                    record.iter().for_each(|record| tell(&mut self.subscribers, record));
                }
                tell(&mut self.subscribers, event);
                self.heard = *seq;
            }
            if rows.len() < BATCH {
                return Ok(());
            }
        }
    }

    /// Tells everybody when the store goes away and comes back.
    fn judge(&mut self, looked: &SqliteResult<()>) {
        match looked {
            Err(fault) if !self.broken => {
                tracing::warn!(store = %self.place, ?fault, "subscriptions are interrupted");
                self.broken = true;
                self.close();
                for subscriber in &mut self.subscribers {
                    subscriber.tell(&StoreEvent::Interrupted);
                }
            }
            Ok(()) if self.broken => {
                self.broken = false;
                for subscriber in &mut self.subscribers {
                    subscriber.behind = true;
                }
            }
            _ => {}
        }
    }

    fn close(&mut self) {
        if let Some(db) = self.db.take() {
            self.place.close(db);
        }
    }

    fn admit(&mut self, confirm: Confirmation, looked: &SqliteResult<()>) {
        let answer = match looked {
            Ok(()) => {
                let (events, receiver) = mpsc::channel(CHANNEL);
                let mut subscriber = Subscriber { events, behind: false };
                subscriber.tell(&StoreEvent::Subscribed);
                self.subscribers.push(subscriber);
                Ok(receiver)
            }
            Err(Fault::Store(error)) => Err(error.clone()),
            Err(Fault::Sql(error)) => {
                Err(StoreError::Unavailable(format!("{}: {error}", self.place)))
            }
        };
        // One that stopped waiting has dropped its receiver, which ends the subscription.
        drop(confirm.send(answer));
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

fn tell(subscribers: &mut [Subscriber], event: &StoreEvent) {
    subscribers.iter_mut().for_each(|one| one.tell(event));
}

/// A row of the table.
struct Event {
    seq: i64,
    event: StoreEvent,
}

fn newest(db: &Connection) -> SqliteResult<i64> {
    let mut newest = db.prepare_cached("SELECT coalesce(max(seq), 0) FROM events")?;
    Ok(newest.query_row([], |row| row.get(0))?)
}

/// At most [`BATCH`], oldest first.
fn after(db: &Connection, seq: i64) -> SqliteResult<Vec<Event>> {
    let mut statement = db.prepare_cached(
        "SELECT seq, job, version, kind, wake FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
    )?;
    let mut rows = statement.query([seq, i64::try_from(BATCH).unwrap_or(i64::MAX)])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let job: Option<String> = row.get(1)?;
        let bad = |why: String| corrupt("events", &why);
        let wake: Option<String> = row.get(4)?;
        let event = match (job, wake) {
            (None, None) => match row.get::<_, Option<String>>(3)?.as_deref() {
                Some(ACCOUNTS) => StoreEvent::Accounts,
                _ => StoreEvent::Nodes,
            },
            (None, Some(wake)) => {
                StoreEvent::Wake(serde_json::from_str(&wake).map_err(|why| bad(why.to_string()))?)
            }
            (Some(job), _) => {
                let kind = serde_json::Value::String(row.get(3)?);
                StoreEvent::Job(JobEvent {
                    job: JobName::new(&job).map_err(|why| bad(why.to_string()))?,
                    version: uint(row.get(2)?),
                    event: serde_json::from_value(kind).map_err(|why| bad(why.to_string()))?,
                })
            }
        };
        events.push(Event { seq: row.get(0)?, event });
    }
    Ok(events)
}
