//! Sources and collectors on live sockets: the board of dispatch (`super::board`).
//!
//! The collectors are read once a second while a seat follows. While none does, only the counters of the sources are read
//! now and then, so that rates are known when a reader comes.

use std::sync::OnceLock;
use std::time::Duration;

use super::Hub;
use super::board::{Board, Picture, Reading, Row, Shown};
use super::seats::{Pending, Seat};
use crate::auth::Caller;
use crate::frames::{self, Protocol};
use crate::parts::dispatch::{self as parts, Extent};
use soloist_domain::name::SourceName;
use soloist_domain::time::{Boot, Stamp};
use soloist_process::clock;
use soloist_store::StoreError;
use soloist_store::dispatch::{CollectorView, SourceView, Sources as _};
use soloist_store::throughput::Throughput as _;
use soloist_view::day::{self, Days, Step};
use soloist_view::json::Source;
use soloist_view::pace::{Pace, Paces, READ_EVERY};
use soloist_view::words::Language;

/// How often the collectors are read while a seat follows.
const COLLECTORS_EVERY: Duration = Duration::from_secs(1);

/// A source at one reading.
pub(super) struct SourceRow {
    view: SourceView,
    pace: Option<Pace>,
    /// By language, then by whether the reader may act.
    html: [OnceLock<String>; 4],
}

/// All collectors at one reading.
#[derive(Default)]
pub(super) struct Table {
    collectors: Vec<CollectorView>,
    /// By language, then by how long it is.
    html: [OnceLock<String>; 4],
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.collectors == other.collectors
    }
}

/// The rates of the sources, and when was read what.
#[derive(Default)]
pub(super) struct Rates {
    paces: Paces,
    days: Days,
    sampled: Option<Boot>,
    collectors: Option<Boot>,
}

/// What a page shows when the store does not answer.
pub struct LastKnown {
    /// Every source, by name.
    pub sources: Vec<SourceView>,
    /// Every collector.
    pub collectors: Vec<CollectorView>,
}

impl Hub {
    /// The rates of `sources`, in order, as far as they are known.
    #[must_use]
    pub fn paces(&self, sources: &[SourceView]) -> Vec<Option<Pace>> {
        let rates = self.rates.lock();
        sources.iter().map(|source| rates.paces.of(&source.name)).collect()
    }

    /// What a source did in the last day; empty until that was read.
    #[must_use]
    pub fn day(&self, source: &SourceName) -> Vec<Step> {
        self.rates.lock().days.of(source)
    }

    /// The newest reading of sources and collectors, however old.
    #[must_use]
    pub fn last_dispatch(&self) -> LastKnown {
        let picture = self.sources.now();
        LastKnown {
            sources: picture.rows.iter().map(|row| row.what.view.clone()).collect(),
            collectors: picture.aside.what.collectors.clone(),
        }
    }
}

impl Hub {
    /// When a step of the day is over, it is written down for all nodes, and what they remember is read.
    async fn keep_days(&self, sources: &[SourceView]) {
        let Some((step, counts)) = day::counted(sources) else { return };
        if !self.rates.lock().days.lacks(step) {
            return;
        }
        let read = async {
            self.store.note_throughput(step, &counts).await?;
            self.store.throughput().await
        };
        match read.await {
            Ok(past) => self.rates.lock().days.learn(step, past),
            Err(error) => {
                tracing::debug!(%error, "the last day of sources could not be read; the next reading tries again");
            }
        }
    }
}

impl Row for SourceRow {
    const FRAME: &'static str = "dispatch";
    const NOUN: &'static str = "source";
    const MORE: &'static str = "sources-more";
    const REST: Duration = READ_EVERY;
    type Aside = Table;
    type Look = Extent;

    fn board(hub: &Hub) -> &Board<Self> {
        &hub.sources
    }

    fn mark(pending: &mut Pending) -> &mut bool {
        &mut pending.sources
    }

    async fn read(hub: &Hub, followed: bool) -> Option<Result<Reading<Self>, StoreError>> {
        let due = |last: &mut Option<Boot>, every| {
            let now = clock::boot();
            let due = last.is_none_or(|at| now.since(at) >= every);
            *last = if due { Some(now) } else { *last };
            due
        };
        let (sample, with_collectors) = {
            let rates = &mut *hub.rates.lock();
            let sample = due(&mut rates.sampled, READ_EVERY);
            (sample, followed && due(&mut rates.collectors, COLLECTORS_EVERY))
        };
        if !followed && !sample {
            return None;
        }
        let sources = match hub.store.sources(None).await {
            Ok(sources) => sources,
            Err(error) => return Some(Err(error)),
        };
        let aside = match with_collectors {
            true => match hub.store.collectors().await {
                Ok(collectors) => Some(Table { collectors, ..Table::default() }),
                Err(error) => return Some(Err(error)),
            },
            false => None,
        };
        if sample {
            hub.keep_days(&sources).await;
        }
        let rates = &mut *hub.rates.lock();
        if sample {
            rates.paces.note(&sources);
            rates.days.note(&sources);
        }
        let paces = &rates.paces;
        let row = |view: SourceView| Self::of(paces.of(&view.name), view);
        Some(Ok(Reading { rows: sources.into_iter().map(row).collect(), aside }))
    }

    fn name(&self) -> &str {
        self.view.name.as_str()
    }

    fn at(&self) -> Stamp {
        self.view.now
    }

    fn is_same(&self, later: &Self) -> bool {
        // Only the clock of the reading may differ.
        let moved = SourceView { now: self.view.now, ..later.view.clone() };
        let lifted = |view: &SourceView| view.blocked_until > view.now;
        self.pace == later.pace && moved == self.view && lifted(&self.view) == lifted(&later.view)
    }

    fn html(&self, caller: &Caller) -> &str {
        let (lang, operator) = (caller.language, caller.is_operator());
        self.html[frames::slot(lang) | usize::from(operator) << 1]
            .get_or_init(|| parts::source_row(&self.view, self.pace.as_ref(), lang, operator))
    }

    fn aside(table: &Shown<Table>, lang: Language, extent: Extent) -> Option<&str> {
        let (what, at) = (&table.what, table.at);
        let html = &what.html[frames::slot(lang) | usize::from(extent == Extent::All) << 1];
        Some(html.get_or_init(|| parts::collectors(&what.collectors, at, lang, extent)))
    }

    fn totals<'a>(rows: impl Iterator<Item = &'a Self>, lang: Language) -> String {
        parts::totals(&rows.map(|row| &row.view).collect::<Vec<_>>(), lang)
    }

    fn most(extent: Extent) -> usize {
        extent.sources()
    }

    fn frame(_: &Hub, picture: &Picture<Self>, seat: &Seat, told: u64, look: Extent) -> String {
        let bound = &seat.caller.bound;
        let seen;
        let picture = if bound.names_any() {
            seen = picture.with_only(|row| bound.reads_source(row.name()));
            &seen
        } else {
            picture
        };
        match seat.protocol {
            Protocol::Json => Self::json(picture),
            Protocol::Html => picture.fragments(&seat.caller, told, look),
        }
    }

    fn json(picture: &Picture<Self>) -> String {
        let sources = picture.rows.iter().map(|row| Source::from(row.what.view.clone()));
        frames::sources_frame(&sources.collect::<Vec<_>>())
    }
}

impl SourceRow {
    fn of(pace: Option<Pace>, view: SourceView) -> Self {
        Self { view, pace, html: Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_view::fixtures::source::{every_state, source};

    fn reading(sources: Vec<SourceView>, with_collectors: bool) -> Reading<SourceRow> {
        let rows = sources.into_iter().map(|view| SourceRow::of(None, view)).collect();
        Reading { rows, aside: with_collectors.then(Table::default) }
    }

    #[test]
    fn a_reading_that_says_the_same_makes_no_new_picture() {
        let first = Picture::default().next(reading(every_state(), true)).expect("news");
        assert_eq!(first.generation, 1, "the first is news, even if it were empty");
        let mut later = every_state();
        for view in &mut later {
            view.now = view.now + Duration::from_secs(1);
        }
        assert!(first.next(reading(later.clone(), false)).is_none());
        later[0].ready += 1;
        let next = first.next(reading(later.clone(), false)).expect("news");
        let changed: Vec<&str> =
            next.rows.iter().filter(|row| row.changed == 2).map(|row| row.what.name()).collect();
        assert_eq!((next.generation, changed), (2, vec!["open"]));
        assert_eq!(next.shape, 1, "no source came or went");
        later.push(source("zebra"));
        assert_eq!(next.next(reading(later, false)).expect("news").shape, 3);
    }

    #[test]
    fn trouble_is_said_once_and_ends() {
        let first = Picture::default().next(reading(every_state(), true)).expect("news");
        let away = first.doubted("away".to_owned()).expect("news");
        assert!(away.doubted("away".to_owned()).is_none());
        assert_eq!(away.rows.len(), every_state().len(), "what was known stays");
        let back = away.next(reading(every_state(), false)).expect("news");
        assert_eq!((back.generation, &back.trouble), (3, &None));
    }

    #[test]
    fn collectors_that_were_never_read_are_not_told_as_none() {
        let away = Picture::<SourceRow>::default().doubted("away".to_owned()).expect("news");
        assert!(!away.tells_aside(0));
        let unread = away.next(reading(every_state(), false)).expect("news");
        assert!(!unread.tells_aside(0));
        let read = unread.next(reading(every_state(), true)).expect("news, although there is none");
        assert!(read.tells_aside(0) && read.tells_aside(unread.generation));
        assert!(!read.tells_aside(read.generation));
    }

    #[test]
    fn a_block_that_is_over_is_a_change() {
        let mut blocked = source("pages");
        blocked.blocked_until = blocked.now + Duration::from_secs(1);
        let mut over = blocked.clone();
        over.now = over.now + Duration::from_secs(2);
        assert!(!SourceRow::of(None, blocked).is_same(&SourceRow::of(None, over)));
    }
}
