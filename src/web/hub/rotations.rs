//! Rotations on live sockets: one reading for everybody who looks, told only when it changed.
//!
//! As with dispatch (`super::dispatch`), a single turn is not an event here: while somebody follows, the rotations are read
//! twice a second, and each socket is told those that changed since it was last told. A page of rotations follows their
//! cards, a dashboard only the rings of the jobs that are members. While nobody follows, nothing is read.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;

use super::seats::Seat;
use super::{Hub, lock};
use crate::clock;
use crate::domain::name::{JobName, RotationName};
use crate::domain::time::{Boot, Stamp};
use crate::picture::rotation::Standing;
use crate::store::rotation::{RotationView, Rotations};
use crate::web::api::rotations::{Rotation, TURNS_LISTED};
use crate::web::frames::{self, Protocol};
use crate::web::parts::dispatch::more;
use crate::web::parts::rotation::{self as parts, ROTATIONS_SHOWN, TURNS_SHOWN};
use crate::words::{Arg, Language, say};

/// How often somebody who follows is told something, at most.
const PUSH_EVERY: Duration = Duration::from_millis(500);
/// The same for programs, which get all rotations each time.
const PROGRAM_EVERY: Duration = Duration::from_secs(1);
/// While nobody follows: how often it looks whether the node is going away.
const REST: Duration = Duration::from_secs(5);
/// The bar of a turn that is had grows in such steps, in microseconds.
const GROWS_BY: i64 = 2_000_000;

/// What of rotations a seat is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Everything.
    Whole,
    /// The rings of the jobs that are members.
    Rings,
}

/// What is known of rotations, and who wants to be told.
#[derive(Default)]
pub(super) struct Board {
    followers: Mutex<HashMap<(u64, bool), Follower>>,
    /// Somebody came while nobody was there.
    came: Notify,
    picture: Mutex<Arc<Picture>>,
}

struct Follower {
    seat: Arc<Seat>,
    /// The generation of the newest picture it was told; 0 before the first.
    told: u64,
    at: Option<Boot>,
}

/// Everything at one reading, and what was rendered of it so far.
#[derive(Default)]
struct Picture {
    /// Grows with every reading that differs from the one before.
    generation: u64,
    /// When a rotation came or went for the last time.
    shape: u64,
    rows: Vec<Arc<Row>>,
    /// The store's clock.
    at: Stamp,
    /// Why this is not the newest.
    trouble: Option<String>,
}

struct Row {
    view: RotationView,
    standing: Standing,
    /// The generation that brought it.
    changed: u64,
    /// By language.
    html: [OnceLock<String>; 2],
    rings: [OnceLock<Vec<(JobName, String)>>; 2],
}

/// A frame of cards.
#[derive(Serialize)]
struct Cards<'a> {
    r#type: &'static str,
    /// The store's clock, in milliseconds.
    at: i64,
    /// These are all cards, in order; otherwise those that changed.
    whole: bool,
    rows: Vec<Card<'a>>,
    totals: String,
    /// How many rotations are left out, in words.
    more: String,
    trouble: String,
}

#[derive(Serialize)]
struct Card<'a> {
    rotation: &'a str,
    html: &'a str,
}

/// A frame of rings.
#[derive(Serialize)]
struct Rings<'a> {
    r#type: &'static str,
    at: i64,
    rings: Vec<Ring<'a>>,
}

#[derive(Serialize)]
struct Ring<'a> {
    job: &'a str,
    html: String,
}

impl Hub {
    /// Reads the rotations for as long as this node serves and somebody looks.
    pub(super) async fn watch_rotations(self: Arc<Self>) {
        while !self.is_draining() {
            if lock(&self.rings.followers).is_empty() {
                tokio::select! {
                    () = self.rings.came.notified() => {}
                    () = tokio::time::sleep(REST) => {}
                }
                continue;
            }
            match self.store.rotations(None, TURNS_SHOWN).await {
                Ok(views) => self.rings.change(|picture| picture.next(views)),
                Err(error) => {
                    tracing::debug!(%error, "the rotations could not be read; the next look tries again");
                    self.rings.change(|picture| picture.doubted(error.to_string()));
                }
            }
            self.tell_rotations();
            tokio::time::sleep(PUSH_EVERY).await;
        }
    }

    /// Wakes whoever has not been told the newest.
    fn tell_rotations(&self) {
        let generation = self.rings.now().generation;
        let now = clock::boot();
        let seats: Vec<Arc<Seat>> = lock(&self.rings.followers)
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
            seat.mark(|pending| pending.rotations = true);
        }
    }

    /// Begins to tell a seat how rotations stand (everything now, then what changes), or ends it.
    pub fn follow_rotations(&self, seat: &Arc<Seat>, look: Look, on: bool) {
        let key = (seat.id, look == Look::Whole);
        let mut followers = lock(&self.rings.followers);
        if !on {
            followers.remove(&key);
            return;
        }
        let follower = Follower { seat: Arc::clone(seat), told: 0, at: None };
        followers.entry(key).or_insert(follower);
        drop(followers);
        self.rings.came.notify_one();
    }

    /// Tells a seat no more of rotations.
    pub(super) fn unfollow_rotations(&self, seat: &Seat) {
        let mut followers = lock(&self.rings.followers);
        followers.remove(&(seat.id, true));
        followers.remove(&(seat.id, false));
    }

    /// The newest reading, however old.
    #[must_use]
    pub fn last_rotations(&self) -> Vec<RotationView> {
        self.rings.now().rows.iter().map(|row| row.view.clone()).collect()
    }

    /// What a seat has not been told; `None` when it follows no more, or was told already.
    pub(super) fn rotations_frame(&self, seat: &Seat) -> Option<String> {
        let picture = self.rings.now();
        let due = |whole: bool| {
            let mut followers = lock(&self.rings.followers);
            let follower = followers.get_mut(&(seat.id, whole))?;
            if follower.told >= picture.generation {
                return None;
            }
            follower.at = Some(clock::boot());
            Some(std::mem::replace(&mut follower.told, picture.generation))
        };
        let lang = seat.caller.language;
        match due(true) {
            Some(_) if seat.protocol == Protocol::Json => Some(picture.json()),
            Some(told) => Some(picture.cards(lang, told)),
            None => due(false).map(|told| picture.rings(self, lang, told)),
        }
    }
}

impl Board {
    fn now(&self) -> Arc<Picture> {
        Arc::clone(&lock(&self.picture))
    }

    fn change(&self, next: impl FnOnce(&Picture) -> Option<Picture>) {
        let mut picture = lock(&self.picture);
        if let Some(next) = next(&picture) {
            *picture = Arc::new(next);
        }
    }
}

impl Picture {
    /// After another reading; `None` when that says the same.
    fn next(&self, views: Vec<RotationView>) -> Option<Self> {
        let generation = self.generation + 1;
        let known: HashMap<&RotationName, &Arc<Row>> =
            self.rows.iter().map(|row| (&row.view.name, row)).collect();
        let at = views.first().map_or(self.at, |view| view.now);
        let names: HashSet<&RotationName> = views.iter().map(|view| &view.name).collect();
        let reshaped = names.len() != known.len() || names.iter().any(|n| !known.contains_key(*n));
        let mut changed = reshaped || self.trouble.is_some() || self.generation == 0;
        let mut rows = Vec::with_capacity(views.len());
        for view in views {
            let standing = Standing::of(&view);
            rows.push(match known.get(&view.name) {
                Some(row) if same(row, &view, &standing) => Arc::clone(row),
                _ => {
                    changed = true;
                    let (html, rings) = (Default::default(), Default::default());
                    Arc::new(Row { view, standing, changed: generation, html, rings })
                }
            });
        }
        let shape = if reshaped { generation } else { self.shape };
        changed.then_some(Self { generation, shape, rows, at, trouble: None })
    }

    /// After a reading that failed; `None` when that was known.
    fn doubted(&self, trouble: String) -> Option<Self> {
        (self.trouble.as_ref() != Some(&trouble)).then(|| Self {
            generation: self.generation + 1,
            shape: self.shape,
            rows: self.rows.clone(),
            at: self.at,
            trouble: Some(trouble),
        })
    }

    fn json(&self) -> String {
        let listed = |row: &Arc<Row>| {
            let mut view = row.view.clone();
            view.past.truncate(TURNS_LISTED);
            Rotation::from(view)
        };
        frames::rotations_frame(&self.rows.iter().map(listed).collect::<Vec<_>>())
    }

    fn cards(&self, lang: Language, told: u64) -> String {
        let whole = told < self.shape || told == 0;
        let shown = self.rows.iter().take(ROTATIONS_SHOWN);
        let left = self.rows.len().saturating_sub(ROTATIONS_SHOWN);
        frames::text(&Cards {
            r#type: "rotations",
            at: self.at.floor().0,
            whole,
            rows: shown
                .filter(|row| whole || row.changed > told)
                .map(|row| Card { rotation: row.view.name.as_str(), html: row.html(lang) })
                .collect(),
            totals: parts::totals(self.rows.iter().map(|row| &row.view), lang),
            more: more(lang, "rotations-more", left).unwrap_or_default(),
            trouble: self.trouble.as_ref().map_or_else(String::new, |detail| {
                say(lang, "store-trouble", &[("detail", Arg::from(detail.as_str()))])
            }),
        })
    }

    fn rings(&self, hub: &Hub, lang: Language, told: u64) -> String {
        let whole = told < self.shape || told == 0;
        let mut rings = Vec::new();
        let jobs = hub.jobs();
        for job in &jobs {
            let Some(name) = &job.rotation else { continue };
            let row = self.rows.iter().find(|row| row.view.name == *name);
            let html = match row {
                Some(row) if whole || row.changed > told => row.ring(hub, &job.name, lang),
                None if whole => parts::ring_line(name, None, &job.name, lang),
                _ => continue,
            };
            rings.push(Ring { job: job.name.as_str(), html });
        }
        frames::text(&Rings { r#type: "rings", at: self.at.floor().0, rings })
    }
}

/// Whether a reading says what is known, whenever it was made.
fn same(row: &Row, view: &RotationView, standing: &Standing) -> bool {
    let old = &row.view;
    // Only the clock of the reading may differ; a bar that grows is drawn anew now and then.
    let grown = old.ring.turn.is_some() && old.now.0 / GROWS_BY != view.now.0 / GROWS_BY;
    let moved = RotationView { now: old.now, ..view.clone() };
    !grown && moved == *old && row.standing == *standing
}

fn slot(language: Language) -> usize {
    usize::from(language == Language::Zh)
}

impl Row {
    fn html(&self, lang: Language) -> &str {
        self.html[slot(lang)].get_or_init(|| parts::rotation_row(&self.view, lang))
    }

    /// The line of a member.
    fn ring(&self, hub: &Hub, job: &JobName, lang: Language) -> String {
        let name = &self.view.name;
        let rings = self.rings[slot(lang)].get_or_init(|| {
            let jobs = hub.jobs();
            let members = jobs.iter().filter(|job| job.rotation.as_ref() == Some(name));
            let line = |job: &JobName| parts::ring_line(name, Some(&self.view), job, lang);
            members.map(|job| (job.name.clone(), line(&job.name))).collect()
        });
        let mine = rings.iter().find(|(member, _)| member == job);
        mine.map_or_else(String::new, |(_, html)| html.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::rotation::tests::{every_state, rotation};

    fn first(views: Vec<RotationView>) -> Picture {
        Picture::default().next(views).expect("the first is news, even if it were empty")
    }

    #[test]
    fn a_reading_that_says_the_same_makes_no_new_picture() {
        let picture = first(every_state());
        assert_eq!((picture.generation, picture.shape), (1, 1));
        let mut later = every_state();
        for view in &mut later {
            view.now = view.now + Duration::from_millis(100);
        }
        assert!(picture.next(later.clone()).is_none());
        later[6].types[1].waiting += 1;
        let next = picture.next(later.clone()).expect("news");
        let changed: Vec<&str> = next
            .rows
            .iter()
            .filter(|row| row.changed == 2)
            .map(|row| row.view.name.as_str())
            .collect();
        assert_eq!((changed, next.shape), (vec!["absent"], 1));
        later.push(rotation("zebra", [0, 0, 0]));
        assert_eq!(next.next(later).expect("news").shape, 3);
    }

    #[test]
    fn a_gap_that_is_over_and_a_turn_that_goes_on_are_changes() {
        let gap = every_state().remove(1);
        let mut over = gap.clone();
        over.now = over.now + Duration::from_secs(20);
        assert!(first(vec![gap]).next(vec![over]).is_some());
        let taken = every_state().remove(0);
        let mut later = taken.clone();
        later.now = later.now + Duration::from_secs(2);
        assert!(first(vec![taken]).next(vec![later]).is_some());
        let idle = every_state().remove(7);
        let mut later = idle.clone();
        later.now = later.now + Duration::from_secs(60);
        assert!(first(vec![idle]).next(vec![later]).is_none());
    }

    #[test]
    fn trouble_is_said_once_and_ends() {
        let picture = first(every_state());
        let away = picture.doubted("away".to_owned()).expect("news");
        assert!(away.doubted("away".to_owned()).is_none());
        assert_eq!(away.rows.len(), every_state().len(), "what was known stays");
        let back = away.next(every_state()).expect("news");
        assert_eq!((back.generation, &back.trouble), (3, &None));
    }
}
