//! A board: rows that are read together, rendered once for every seat that follows them, and told only when they changed.
//!
//! A change of one task or of one turn is no event here: thousands a second would drown every browser. While a seat follows a
//! board, the board is read twice a second, and the seat is told the rows that changed since it was last told. Sources and
//! rotations are boards; [`Row`] says how their rows are read and rendered. Jobs are no board: each change of a job is an event
//! with a version of its own, and to read all jobs for each would cost too much (`super::jobs`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Notify;

use super::Hub;
use super::seats::{Pending, Seat};
use crate::auth::Caller;
use crate::frames::{self, Protocol};
use crate::parts::dispatch::more;
use soloist_domain::time::{Boot, Stamp};
use soloist_process::clock;
use soloist_store::StoreError;
use soloist_view::words::{Arg, Language, say};

/// How often a follower is told something, at most.
const PUSH_EVERY: Duration = Duration::from_millis(500);
/// The same for programs, which get all rows each time.
const PROGRAM_EVERY: Duration = Duration::from_secs(1);

/// One row of a board, as it was read, and what was rendered of it so far.
pub(super) trait Row: Sized + Send + Sync + 'static {
    /// The `type` of its frames.
    const FRAME: &'static str;
    /// The member of a frame's row that holds its name.
    const NOUN: &'static str;
    /// The message that says how many rows are left out.
    const MORE: &'static str;
    /// The pause between two looks while no seat follows.
    const REST: Duration;
    /// What stands beside the rows.
    type Aside: Default + PartialEq + Send + Sync;
    /// What of the board a seat follows.
    type Look: Copy + Send;

    fn board(hub: &Hub) -> &Board<Self>;
    /// Which mark of a seat says that this board has news.
    fn mark(pending: &mut Pending) -> &mut bool;
    /// A seat follows at most one look of each place.
    fn place(_: Self::Look) -> u8 {
        0
    }

    /// Reads all rows; `None` when that is not due.
    fn read(
        hub: &Hub,
        followed: bool,
    ) -> impl Future<Output = Option<Result<Reading<Self>, StoreError>>> + Send;

    fn name(&self) -> &str;
    /// The store's clock at the reading.
    fn at(&self) -> Stamp;
    /// Whether a later reading says the same.
    fn is_same(&self, later: &Self) -> bool;

    fn html(&self, caller: &Caller) -> &str;
    fn aside(_: &Shown<Self::Aside>, _: Language, _: Self::Look) -> Option<&str> {
        None
    }
    fn totals<'a>(rows: impl Iterator<Item = &'a Self>, lang: Language) -> String;
    /// How many rows a page shows.
    fn most(look: Self::Look) -> usize;
    /// The frame of programs.
    fn json(picture: &Picture<Self>) -> String;
    /// What is told to a seat that was told the generation `told` before.
    fn frame(_: &Hub, picture: &Picture<Self>, seat: &Seat, told: u64, look: Self::Look) -> String {
        match seat.protocol {
            Protocol::Json => Self::json(picture),
            Protocol::Html => picture.fragments(&seat.caller, told, look),
        }
    }
}

/// All rows of a board, read at one time.
pub(super) struct Reading<R: Row> {
    pub(super) rows: Vec<R>,
    /// `None`: not read this time.
    pub(super) aside: Option<R::Aside>,
}

/// What is known, and who wants to be told.
pub(super) struct Board<R: Row> {
    followers: Mutex<HashMap<(u64, u8), Follower<R>>>,
    /// A seat came.
    came: Notify,
    picture: Mutex<Arc<Picture<R>>>,
}

struct Follower<R: Row> {
    seat: Arc<Seat>,
    /// The generation of the newest picture it was told; 0 before the first.
    told: u64,
    at: Option<Boot>,
    look: R::Look,
}

/// Everything at one reading.
pub(super) struct Picture<R: Row> {
    /// Grows with every reading that differs from the one before.
    pub(super) generation: u64,
    /// When a row came or went for the last time.
    pub(super) shape: u64,
    pub(super) rows: Vec<Arc<Shown<R>>>,
    pub(super) aside: Arc<Shown<R::Aside>>,
    /// The store's clock.
    pub(super) at: Stamp,
    /// Why this is not the newest.
    pub(super) trouble: Option<String>,
}

/// A part of a picture.
#[derive(Default)]
pub(super) struct Shown<T> {
    pub(super) what: T,
    /// The generation that brought it, and the store's clock then.
    pub(super) changed: u64,
    pub(super) at: Stamp,
}

/// A frame of fragments.
#[derive(Serialize)]
struct Fragments<'a> {
    r#type: &'static str,
    /// These are all rows, in order; otherwise those that changed.
    whole: bool,
    rows: Vec<BTreeMap<&'static str, &'a str>>,
    totals: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    collectors: Option<&'a str>,
    /// How many rows are left out, in words.
    more: String,
    trouble: String,
}

impl<R: Row> Default for Board<R> {
    fn default() -> Self {
        Self { followers: Mutex::default(), came: Notify::new(), picture: Mutex::default() }
    }
}

impl<R: Row> Default for Picture<R> {
    fn default() -> Self {
        let (rows, aside) = (Vec::new(), Arc::default());
        Self { generation: 0, shape: 0, rows, aside, at: Stamp::default(), trouble: None }
    }
}

impl<R: Row> Board<R> {
    /// Reads the rows for as long as this node serves.
    pub(super) async fn watch(hub: Arc<Hub>) {
        let board = R::board(&hub);
        while !hub.is_draining() {
            let followed = !board.followers.lock().is_empty();
            match R::read(&hub, followed).await {
                None => {}
                Some(Ok(reading)) => board.change(|picture| picture.next(reading)),
                Some(Err(error)) => {
                    tracing::debug!(%error, board = R::FRAME, "a board could not be read; the next look tries again");
                    board.change(|picture| picture.doubted(error.to_string()));
                }
            }
            board.tell();
            if followed {
                tokio::time::sleep(PUSH_EVERY).await;
            } else {
                tokio::select! {
                    () = tokio::time::sleep(R::REST) => {}
                    () = board.came.notified() => {}
                }
            }
        }
    }

    /// Wakes each follower that has not been told the newest.
    fn tell(&self) {
        let generation = self.now().generation;
        let now = clock::boot();
        let seats: Vec<Arc<Seat>> = self
            .followers
            .lock()
            .values()
            .filter(|follower| {
                let rested = |at| now.since(at) >= PROGRAM_EVERY;
                let ready =
                    follower.seat.protocol == Protocol::Html || follower.at.is_none_or(rested);
                ready && follower.told < generation
            })
            .map(|follower| Arc::clone(&follower.seat))
            .collect();
        for seat in seats {
            seat.mark(|pending| *R::mark(pending) = true);
        }
    }

    /// Begins to tell a seat how the rows stand (everything now, then what changes), or ends it.
    pub(super) fn follow(&self, seat: &Arc<Seat>, look: R::Look, on: bool) {
        let key = (seat.id, R::place(look));
        if !on {
            self.followers.lock().remove(&key);
            return;
        }
        let follower = Follower { seat: Arc::clone(seat), told: 0, at: None, look };
        self.followers.lock().entry(key).or_insert(follower);
        self.came.notify_one();
    }

    /// Tells a seat no more.
    pub(super) fn leave(&self, seat: &Seat) {
        self.followers.lock().retain(|(id, _), _| *id != seat.id);
    }

    /// What a seat has not been told; `None` when it follows no more, or was told already.
    pub(super) fn frame(&self, hub: &Hub, seat: &Seat) -> Option<String> {
        let picture = self.now();
        let (told, look) = [0, 1].into_iter().find_map(|place| {
            let mut followers = self.followers.lock();
            let follower = followers.get_mut(&(seat.id, place))?;
            if follower.told >= picture.generation {
                return None;
            }
            follower.at = Some(clock::boot());
            Some((std::mem::replace(&mut follower.told, picture.generation), follower.look))
        })?;
        Some(R::frame(hub, &picture, seat, told, look))
    }

    /// The newest reading, however old.
    pub(super) fn now(&self) -> Arc<Picture<R>> {
        Arc::clone(&self.picture.lock())
    }

    fn change(&self, next: impl FnOnce(&Picture<R>) -> Option<Picture<R>>) {
        let mut picture = self.picture.lock();
        if let Some(next) = next(&picture) {
            *picture = Arc::new(next);
        }
    }
}

impl<R: Row> Picture<R> {
    /// After another reading; `None` when that says the same.
    pub(super) fn next(&self, reading: Reading<R>) -> Option<Self> {
        let generation = self.generation + 1;
        let at = reading.rows.first().map_or(self.at, Row::at);
        let known: HashMap<&str, &Arc<Shown<R>>> =
            self.rows.iter().map(|row| (row.what.name(), row)).collect();
        let names: HashSet<&str> = reading.rows.iter().map(Row::name).collect();
        let reshaped = names.len() != known.len() || names.iter().any(|n| !known.contains_key(*n));
        let first = self.generation == 0;
        let mut changed = reshaped || first || self.trouble.is_some();
        let mut rows = Vec::with_capacity(reading.rows.len());
        for what in reading.rows {
            rows.push(match known.get(what.name()) {
                Some(row) if row.what.is_same(&what) => Arc::clone(row),
                _ => {
                    changed = true;
                    Arc::new(Shown { what, changed: generation, at })
                }
            });
        }
        let aside = match reading.aside {
            Some(what) if self.aside.changed == 0 || what != self.aside.what => {
                changed = true;
                Arc::new(Shown { what, changed: generation, at })
            }
            _ => Arc::clone(&self.aside),
        };
        let shape = if reshaped { generation } else { self.shape };
        changed.then_some(Self { generation, shape, rows, aside, at, trouble: None })
    }

    /// After a reading that failed; `None` when that was known.
    pub(super) fn doubted(&self, trouble: String) -> Option<Self> {
        (self.trouble.as_ref() != Some(&trouble)).then(|| Self {
            generation: self.generation + 1,
            shape: self.shape,
            rows: self.rows.clone(),
            aside: Arc::clone(&self.aside),
            at: self.at,
            trouble: Some(trouble),
        })
    }

    /// The same with fewer rows.
    pub(super) fn with_only(&self, keep: impl Fn(&R) -> bool) -> Self {
        let kept = self.rows.iter().filter(|row| keep(&row.what));
        Self {
            generation: self.generation,
            shape: self.shape,
            rows: kept.cloned().collect(),
            aside: Arc::clone(&self.aside),
            at: self.at,
            trouble: self.trouble.clone(),
        }
    }

    /// Whether a seat that was told the generation `told` before is told all rows.
    pub(super) fn is_whole(&self, told: u64) -> bool {
        told < self.shape || told == 0
    }

    /// The same of what stands beside them. What was never read is not told: it would say that there is nothing.
    pub(super) fn tells_aside(&self, told: u64) -> bool {
        let changed = self.aside.changed;
        changed > 0 && (told == 0 || changed > told)
    }

    pub(super) fn fragments(&self, caller: &Caller, told: u64, look: R::Look) -> String {
        let lang = caller.language;
        let (whole, most) = (self.is_whole(told), R::most(look));
        let shown = self.rows.iter().take(most).filter(|row| whole || row.changed > told);
        let rows = shown.map(|row| {
            BTreeMap::from([(R::NOUN, row.what.name()), ("html", row.what.html(caller))])
        });
        frames::text(&Fragments {
            r#type: R::FRAME,
            whole,
            rows: rows.collect(),
            totals: R::totals(self.rows.iter().map(|row| &row.what), lang),
            collectors: self.tells_aside(told).then(|| R::aside(&self.aside, lang, look)).flatten(),
            more: more(lang, R::MORE, self.rows.len().saturating_sub(most)).unwrap_or_default(),
            trouble: self.trouble.as_ref().map_or_else(String::new, |detail| {
                say(lang, "store-trouble", &[("detail", Arg::from(detail.as_str()))])
            }),
        })
    }
}
