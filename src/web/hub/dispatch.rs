//! Dispatch on live sockets: one reading of all sources for everybody who looks, told only when it changed.
//!
//! A change of one task is not an event here: thousands a second would drown every browser. While somebody follows, the
//! sources are read twice a second, the collectors once, and each socket is told the rows that changed since it was last
//! told; while nobody does, only the counters are read now and then, so that rates are known when somebody comes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;

use super::seats::Seat;
use super::{Hub, lock};
use crate::clock;
use crate::domain::name::SourceName;
use crate::domain::time::{Boot, Stamp};
use crate::picture::pace::{Pace, Paces, READ_EVERY};
use crate::store::dispatch::{CollectorView, SourceView, Sources};
use crate::web::api::sources::Source;
use crate::web::auth::Caller;
use crate::web::frames::{self, Protocol};
use crate::web::parts::dispatch::{self as parts, Extent};
use crate::words::{Arg, Language, say};

/// How often somebody who follows is told something, at most.
const PUSH_EVERY: Duration = Duration::from_millis(500);
/// The same for programs, which get all sources each time.
const PROGRAM_EVERY: Duration = Duration::from_secs(1);
/// How often the collectors are read while somebody follows.
const COLLECTORS_EVERY: Duration = Duration::from_secs(1);

/// What is known of dispatch, and who wants to be told.
#[derive(Default)]
pub(super) struct Board {
    followers: Mutex<HashMap<u64, Follower>>,
    /// Somebody came while nobody was there.
    came: Notify,
    known: Mutex<Known>,
}

struct Follower {
    seat: Arc<Seat>,
    /// The generation of the newest picture it was told; 0 before the first.
    told: u64,
    at: Option<Boot>,
    /// How long its lists are.
    extent: Extent,
}

#[derive(Default)]
struct Known {
    paces: Paces,
    picture: Arc<Picture>,
}

/// Everything at one reading, and what was rendered of it so far.
#[derive(Default)]
struct Picture {
    /// Grows with every reading that differs from the one before.
    generation: u64,
    /// When a source came or went for the last time.
    shape: u64,
    sources: Vec<Arc<Row>>,
    collectors: Arc<Table>,
    /// The store's clock.
    at: Stamp,
    /// Why this is not the newest.
    trouble: Option<String>,
}

struct Row {
    view: SourceView,
    pace: Option<Pace>,
    /// The generation that brought it.
    changed: u64,
    /// By language, then by whether the reader may act.
    html: [OnceLock<String>; 4],
}

#[derive(Default)]
struct Table {
    collectors: Vec<CollectorView>,
    at: Stamp,
    changed: u64,
    /// By language, then by how long it is.
    html: [OnceLock<String>; 4],
}

/// What a page shows when the store does not answer.
pub struct LastKnown {
    /// Every source, by name.
    pub sources: Vec<SourceView>,
    /// Every collector.
    pub collectors: Vec<CollectorView>,
}

/// A frame of fragments.
#[derive(Serialize)]
struct Fragments<'a> {
    r#type: &'static str,
    /// The store's clock, in milliseconds.
    at: i64,
    /// These are all rows, in order; otherwise those that changed.
    whole: bool,
    rows: Vec<Fragment<'a>>,
    totals: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    collectors: Option<&'a str>,
    /// How many sources are left out, in words.
    more: String,
    trouble: String,
}

#[derive(Serialize)]
struct Fragment<'a> {
    source: &'a str,
    html: &'a str,
}

impl Hub {
    /// Reads the sources for as long as this node serves.
    pub(super) async fn watch_dispatch(self: Arc<Self>) {
        let mut sampled: Option<Boot> = None;
        let mut asked: Option<Boot> = None;
        let due =
            |last: Option<Boot>, every| last.is_none_or(|at| clock::boot().since(at) >= every);
        while !self.is_draining() {
            let followed = !lock(&self.board.followers).is_empty();
            let sample = due(sampled, READ_EVERY);
            if followed || sample {
                let collectors = followed && due(asked, COLLECTORS_EVERY);
                let now = Some(clock::boot());
                self.read_dispatch(sample, collectors).await;
                sampled = if sample { now } else { sampled };
                asked = if collectors { now } else { asked };
                self.tell_dispatch();
            }
            let came = async {
                match followed {
                    true => std::future::pending().await,
                    false => self.board.came.notified().await,
                }
            };
            let pause = if followed { PUSH_EVERY } else { READ_EVERY };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = came => {}
            }
        }
    }

    async fn read_dispatch(&self, sample: bool, collectors: bool) {
        let sources = self.store.sources(None).await;
        let collectors = match collectors {
            true => Some(self.store.collectors().await).transpose(),
            false => Ok(None),
        };
        let mut known = lock(&self.board.known);
        match sources.and_then(|sources| Ok((sources, collectors?))) {
            Ok((sources, collectors)) => known.take_in(sources, collectors, sample),
            Err(error) => {
                tracing::debug!(%error, "the sources could not be read; the next look tries again");
                known.doubt(error.to_string());
            }
        }
    }

    /// Wakes whoever has not been told the newest.
    fn tell_dispatch(&self) {
        let generation = lock(&self.board.known).picture.generation;
        let now = clock::boot();
        let seats: Vec<Arc<Seat>> = lock(&self.board.followers)
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
            seat.mark(|pending| pending.dispatch = true);
        }
    }

    /// Begins to tell a seat how dispatch stands (everything now, then what changes), or ends it.
    pub fn follow_dispatch(&self, seat: &Arc<Seat>, extent: Extent, on: bool) {
        if !on {
            return self.unfollow_dispatch(seat);
        }
        let follower = Follower { seat: Arc::clone(seat), told: 0, at: None, extent };
        lock(&self.board.followers).entry(seat.id).or_insert(follower);
        self.board.came.notify_one();
    }

    /// Tells a seat no more of dispatch.
    pub(super) fn unfollow_dispatch(&self, seat: &Seat) {
        lock(&self.board.followers).remove(&seat.id);
    }

    /// The rates of `sources`, in order, as far as they are known.
    #[must_use]
    pub fn paces(&self, sources: &[SourceView]) -> Vec<Option<Pace>> {
        let known = lock(&self.board.known);
        sources.iter().map(|source| known.paces.of(&source.name)).collect()
    }

    /// The newest reading, however old.
    #[must_use]
    pub fn last_dispatch(&self) -> LastKnown {
        let picture = Arc::clone(&lock(&self.board.known).picture);
        LastKnown {
            sources: picture.sources.iter().map(|row| row.view.clone()).collect(),
            collectors: picture.collectors.collectors.clone(),
        }
    }

    /// What a seat has not been told; `None` when it follows no more, or was told already.
    pub(super) fn dispatch_frame(&self, seat: &Seat) -> Option<String> {
        let picture = Arc::clone(&lock(&self.board.known).picture);
        let (told, extent) = {
            let mut followers = lock(&self.board.followers);
            let follower = followers.get_mut(&seat.id)?;
            if follower.told >= picture.generation {
                return None;
            }
            follower.at = Some(clock::boot());
            (std::mem::replace(&mut follower.told, picture.generation), follower.extent)
        };
        Some(match seat.protocol {
            Protocol::Json => picture.json(),
            Protocol::Html => picture.fragments(&seat.caller, told, extent),
        })
    }
}

impl Known {
    fn take_in(
        &mut self,
        sources: Vec<SourceView>,
        collectors: Option<Vec<CollectorView>>,
        sample: bool,
    ) {
        if sample {
            self.paces.note(&sources);
        }
        let old = &self.picture;
        let generation = old.generation + 1;
        let known: HashMap<&SourceName, &Arc<Row>> =
            old.sources.iter().map(|row| (&row.view.name, row)).collect();
        let now = sources.first().map_or(old.at, |source| source.now);
        let mut changed = old.trouble.is_some() || old.generation == 0;
        let names: HashSet<&SourceName> = sources.iter().map(|source| &source.name).collect();
        let reshaped = names.len() != known.len() || names.iter().any(|n| !known.contains_key(*n));
        let rows = sources
            .iter()
            .map(|view| {
                let pace = self.paces.of(&view.name);
                match known.get(&view.name) {
                    Some(row) if row.pace == pace && same(&row.view, view) => Arc::clone(row),
                    _ => {
                        changed = true;
                        let (view, html) = (view.clone(), Default::default());
                        Arc::new(Row { view, pace, changed: generation, html })
                    }
                }
            })
            .collect();
        let table = match collectors {
            Some(collectors) if old.generation == 0 || collectors != old.collectors.collectors => {
                changed = true;
                let html = Default::default();
                Arc::new(Table { collectors, at: now, changed: generation, html })
            }
            _ => Arc::clone(&old.collectors),
        };
        if !changed && !reshaped {
            return;
        }
        self.picture = Arc::new(Picture {
            generation,
            shape: if reshaped { generation } else { old.shape },
            sources: rows,
            collectors: table,
            at: now,
            trouble: None,
        });
    }

    fn doubt(&mut self, trouble: String) {
        let old = &self.picture;
        if old.trouble.as_ref() == Some(&trouble) {
            return;
        }
        self.picture = Arc::new(Picture {
            generation: old.generation + 1,
            shape: old.shape,
            sources: old.sources.clone(),
            collectors: Arc::clone(&old.collectors),
            at: old.at,
            trouble: Some(trouble),
        });
    }
}

/// Whether two readings say the same, whenever they were made.
fn same(a: &SourceView, b: &SourceView) -> bool {
    // Only the clock of the reading may differ.
    let moved = SourceView { now: a.now, ..b.clone() };
    let lifted = |view: &SourceView| view.blocked_until > view.now;
    moved == *a && lifted(a) == lifted(b)
}

fn slot(language: Language) -> usize {
    usize::from(language == Language::Zh)
}

impl Picture {
    fn json(&self) -> String {
        let sources: Vec<_> =
            self.sources.iter().map(|row| Source::from(row.view.clone())).collect();
        frames::sources_frame(&sources)
    }

    fn fragments(&self, caller: &Caller, told: u64, extent: Extent) -> String {
        let (lang, operator) = (caller.language, caller.is_operator());
        let whole = told < self.shape || told == 0;
        let shown = self.sources.iter().take(extent.sources());
        let views: Vec<&SourceView> = self.sources.iter().map(|row| &row.view).collect();
        let left = views.len().saturating_sub(extent.sources());
        let table = &self.collectors;
        let frame = Fragments {
            r#type: "dispatch",
            at: self.at.floor().0,
            whole,
            rows: shown
                .filter(|row| whole || row.changed > told)
                .map(|row| Fragment {
                    source: row.view.name.as_str(),
                    html: row.html(lang, operator),
                })
                .collect(),
            totals: parts::totals(&views, lang),
            collectors: (told == 0 || table.changed > told).then(|| table.html(lang, extent)),
            more: parts::more(lang, "sources-more", left).unwrap_or_default(),
            trouble: self.trouble.as_ref().map_or_else(String::new, |detail| {
                say(lang, "store-trouble", &[("detail", Arg::from(detail.as_str()))])
            }),
        };
        frames::text(&frame)
    }
}

impl Row {
    fn html(&self, lang: Language, operator: bool) -> &str {
        self.html[slot(lang) | usize::from(operator) << 1]
            .get_or_init(|| parts::source_row(&self.view, self.pace.as_ref(), lang, operator))
    }
}

impl Table {
    fn html(&self, lang: Language, extent: Extent) -> &str {
        self.html[slot(lang) | usize::from(extent == Extent::All) << 1]
            .get_or_init(|| parts::collectors(&self.collectors, self.at, lang, extent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::source::tests::{every_state, source};

    #[test]
    fn a_reading_that_says_the_same_makes_no_new_picture() {
        let mut known = Known::default();
        known.take_in(every_state(), Some(vec![]), false);
        assert_eq!(known.picture.generation, 1, "the first is news, even if it were empty");
        let mut later = every_state();
        for view in &mut later {
            view.now = view.now + Duration::from_secs(1);
        }
        known.take_in(later.clone(), None, false);
        assert_eq!(known.picture.generation, 1);
        later[0].ready += 1;
        known.take_in(later.clone(), None, false);
        let changed: Vec<&str> = known
            .picture
            .sources
            .iter()
            .filter(|row| row.changed == 2)
            .map(|row| row.view.name.as_str())
            .collect();
        assert_eq!((known.picture.generation, changed), (2, vec!["open"]));
        assert_eq!(known.picture.shape, 1, "no source came or went");
        later.push(source("zebra"));
        known.take_in(later, None, false);
        assert_eq!(known.picture.shape, 3);
    }

    #[test]
    fn trouble_is_said_once_and_ends() {
        let mut known = Known::default();
        known.take_in(every_state(), Some(vec![]), false);
        known.doubt("away".to_owned());
        known.doubt("away".to_owned());
        assert_eq!(known.picture.generation, 2);
        assert_eq!(known.picture.sources.len(), every_state().len(), "what was known stays");
        known.take_in(every_state(), None, false);
        assert_eq!((known.picture.generation, &known.picture.trouble), (3, &None));
    }

    #[test]
    fn a_block_that_is_over_is_a_change() {
        let mut blocked = source("pages");
        blocked.blocked_until = blocked.now + Duration::from_secs(1);
        let mut over = blocked.clone();
        over.now = over.now + Duration::from_secs(2);
        assert!(!same(&blocked, &over));
    }
}
