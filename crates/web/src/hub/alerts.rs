//! Alerts that are on, as pages show them: whatever has one needs somebody.
//!
//! The sender writes them into the store; each node reads them there every two seconds, so that a row, the list of what needs somebody,
//! the number in the navigation and the page of alerts tell the same. While the store is away one thing needs somebody: the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;

use super::Hub;
use crate::auth::Caller;
use crate::frames::{self, Protocol};
use crate::parts::alerts::{Need, needs};
use crate::parts::truth::{Fact, words};
use soloist_domain::alert::{Subject, When};
use soloist_domain::name::JobName;
use soloist_process::clock;
use soloist_store::alerts::{Alerts as _, Book, Incident};
use soloist_view::alerts::now;
use soloist_view::words::Language;

/// How often they are read.
const EVERY: Duration = Duration::from_secs(2);

/// As last read.
#[derive(Default)]
pub(super) struct Alarms(Mutex<Arc<Book>>);

impl Hub {
    /// Reads them for as long as this node serves, if its configuration has any.
    pub(super) async fn watch_alerts(self: Arc<Self>) {
        while !self.is_draining() {
            let config = self.config.get();
            let none = config.alerting.rules.is_empty() && config.alerting.channels.is_empty();
            let read = match none {
                true => Ok(Book::default()),
                false => self.store.alert_book().await,
            };
            match read {
                Ok(book) => self.note_alerts(book),
                Err(error) => {
                    tracing::debug!(%error, "alerts could not be read; they are soon again")
                }
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    fn note_alerts(&self, book: Book) {
        let book = Arc::new(book);
        let before = std::mem::replace(&mut *self.alarms.0.lock(), Arc::clone(&book));
        let ids = |book: &Book| book.on().map(|one| one.id.clone()).collect::<Vec<_>>();
        if ids(&before) == ids(&book) {
            return;
        }
        let (old, new) = (by_job(&before), by_job(&book));
        let named = old.keys().chain(new.keys());
        let changed = named.filter(|job| old.get(*job) != new.get(*job));
        let roster = self.roster();
        self.refresh(changed.filter_map(|job| roster.number_of(job)).collect());
        self.tell_alerts();
    }

    /// Every page is told what needs somebody, and counts anew.
    pub(super) fn tell_alerts(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        for seat in self.everybody() {
            if seat.protocol == Protocol::Html {
                seat.mark(|pending| (pending.alerts, pending.summary) = (true, true));
            }
        }
    }

    /// The names of the alerts about a job that are on.
    #[must_use]
    pub fn alerts_of(&self, job: &JobName) -> Vec<String> {
        let book = Arc::clone(&self.alarms.0.lock());
        let its = book.on().filter(|one| one.subject.job.as_ref() == Some(job));
        its.map(|one| one.alert.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// How many things that `caller` may see have an alert on, as the dashboard counts them: a job once, however many rules tell of it.
    #[must_use]
    pub fn alerts_on(&self, caller: &Caller) -> usize {
        if self.feed.outage().is_some() {
            return 1;
        }
        let (book, hidden) = (Arc::clone(&self.alarms.0.lock()), self.hidden_from(Some(caller)));
        let hides = |one: &Incident| {
            one.subject.job.as_ref().is_some_and(|job| hidden.has_job(job.as_str()))
        };
        let thing = |one: &Incident| match &one.subject.job {
            Some(job) => Subject { job: Some(job.clone()), ..Subject::default() },
            None => one.subject.clone(),
        };
        book.on().filter(|one| !hides(one)).map(thing).collect::<BTreeSet<_>>().len()
    }

    /// How many things need somebody that are no jobs.
    pub(super) fn others_in_need(&self) -> usize {
        if self.feed.outage().is_some() {
            return 1;
        }
        self.alarms.0.lock().on().filter(|one| one.subject.job.is_none()).count()
    }

    /// What needs somebody and is no job, for the top of the dashboard; empty while there is nothing.
    #[must_use]
    pub fn needs(&self, lang: Language) -> (String, usize) {
        let at = self.store_time(clock::boot());
        if let Some(outage) = self.feed.outage() {
            let since = self.store_time(outage.since);
            // The line at the top quotes what is wrong.
            let fact = Fact::StoreAway { since, detail: String::new() };
            let pieces = words(&fact, lang, at);
            let store = Need { key: "store".to_owned(), href: "/nodes", pieces };
            return (needs(&[store], lang), 1);
        }
        let book = Arc::clone(&self.alarms.0.lock());
        let others = book.on().filter(|one| one.subject.job.is_none());
        let lines: Vec<Need> = others
            .map(|one| Need {
                key: one.id.clone(),
                href: page(one.when, &one.subject),
                pieces: now(one, &book, &|_, _| None, lang),
            })
            .collect();
        (needs(&lines, lang), lines.len())
    }

    /// `{"type":"alerts",...}` for our page.
    pub(super) fn alerts_frame(&self, caller: &Caller) -> String {
        frames::alerts_frame(self.alerts_on(caller), &self.needs(caller.language).0)
    }
}

fn by_job(book: &Book) -> BTreeMap<JobName, BTreeSet<String>> {
    let mut names: BTreeMap<JobName, BTreeSet<String>> = BTreeMap::new();
    for one in book.on() {
        if let Some(job) = &one.subject.job {
            names.entry(job.clone()).or_default().insert(one.alert.clone());
        }
    }
    names
}

/// Where more stands about it.
fn page(when: When, subject: &Subject) -> &'static str {
    match (when, subject) {
        (When::ChannelLost, _) => "/alerts",
        (_, Subject { source: Some(_), .. }) => "/dispatch",
        _ => "/nodes",
    }
}
