//! `GET /audit`: who did what, when, from where, why.

use actix_web::{HttpResponse, web};
use askama::Template;

use super::{Frame, html};
use crate::Web;
use crate::api::audit::{Wanted, sight};
use crate::api::words;
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::told::Told;
use soloist_domain::time::StoreTime;
use soloist_ops::Act;
use soloist_ops::audit::{Sight, TERMINAL};
use soloist_store::StoreError;
use soloist_store::journal::{self, AuditEntry, Journal, Kind};
use soloist_view::words::{Arg, Language, Piece, Zone, day_clock, grouped, iso, say, visible};

/// Entries on a page.
const ENTRIES: usize = 50;

#[derive(Template)]
#[template(path = "pages/audit.html")]
pub(super) struct AuditPage {
    pub(super) frame: Frame,
    pub(super) entries: Vec<Entry>,
    /// They could not be read.
    pub(super) unread: bool,
    /// Where the pages before and behind this one are.
    pub(super) older: Option<String>,
    pub(super) newer: Option<String>,
    /// This is not the first page.
    pub(super) paged: bool,
    /// Not all entries are asked for.
    pub(super) filtered: bool,
    pub(super) who: String,
    pub(super) target: String,
    /// As the form takes them.
    pub(super) since: String,
    pub(super) until: String,
    /// The same as instants.
    pub(super) since_at: String,
    pub(super) until_at: String,
    pub(super) acts: Vec<Choice>,
    pub(super) kinds: Vec<Choice>,
    /// Where all of it can be downloaded.
    pub(super) csv: String,
    pub(super) ndjson: String,
}

/// One of several.
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) text: String,
    pub(super) chosen: bool,
}

/// One act.
pub(super) struct Entry {
    pub(super) at: Vec<Piece>,
    pub(super) kind: &'static str,
    pub(super) told: Told,
    /// How often, if more than once.
    pub(super) times: Vec<Piece>,
    pub(super) code: String,
    /// Its name, where the sentence calls it otherwise.
    pub(super) target: String,
    pub(super) from: String,
}

impl Entry {
    /// As an account with this sight may see it.
    pub(super) fn seen(
        entry: AuditEntry,
        title: Option<&str>,
        sight: &Sight,
        lang: Language,
    ) -> Self {
        let from = sight.sees_address(&entry);
        let shown = Self::of(entry, title, lang);
        if from { shown } else { Self { from: String::new(), ..shown } }
    }

    /// `title` is what the target is called.
    pub(super) fn of(entry: AuditEntry, title: Option<&str>, lang: Language) -> Self {
        let is_named_otherwise = title.is_some_and(|title| title != entry.target);
        Self {
            at: vec![day_clock(entry.at)],
            kind: entry.kind.as_str(),
            told: Told::of(&entry, title, lang),
            times: times(&entry, lang),
            from: match entry.from.as_str() {
                TERMINAL => say(lang, "audit-from-terminal", &[]),
                from => visible(from).into_owned(),
            },
            code: visible(&entry.act).into_owned(),
            target: match is_named_otherwise {
                true => visible(&entry.target).into_owned(),
                false => String::new(),
            },
        }
    }
}

/// How often, and when it was done last.
fn times(entry: &AuditEntry, lang: Language) -> Vec<Piece> {
    if entry.count < 2 {
        return Vec::new();
    }
    let said = say(lang, "audit-times", &[("n", Arg::from(grouped(entry.count).as_str()))]);
    let last = entry.until.map(day_clock);
    let last = last.into_iter().flat_map(|at| {
        [Piece::Text(say(lang, "audit-times-last", &[])), Piece::Text(" ".to_owned()), at]
    });
    std::iter::once(Piece::Text(said)).chain(last).collect()
}

/// Shows a page of the audit.
///
/// # Errors
/// [`WebError::BadRequest`] for words that ask for nothing that there is, [`WebError::Forbidden`]; none of the store's being away:
/// that is shown, not failed on.
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    query: web::Query<Wanted>,
) -> Result<HttpResponse, WebError> {
    let (mut wanted, lang) = (query.into_inner(), caller.language);
    let zone = caller.zone();
    for typed in [&mut wanted.from, &mut wanted.to] {
        // A form sends what a clock on the wall shows; an address may have an instant.
        if let Some(at) = typed.as_deref().and_then(|text| zone.typed(text)) {
            *typed = Some(iso(at));
        }
    }
    let sight = sight(&web, &caller).await;
    let filter = sight.narrow(wanted.filter()?)?;
    let read = match wanted.after {
        Some(after) => web.store.audit_after(&filter, after, ENTRIES).await.map(|mut page| {
            page.entries.reverse();
            page
        }),
        None => web.store.audit_page(&filter, wanted.before, ENTRIES).await,
    };
    let (page, unread) = match read {
        Ok(page) => (page, false),
        Err(StoreError::Unavailable(_)) => (journal::AuditPage::default(), true),
        Err(error) => return Err(error.into()),
    };
    let ends =
        page.entries.first().zip(page.entries.last()).map(|(first, last)| (first.id, last.id));
    let (older, newer) = match (wanted.after, wanted.before) {
        (Some(_), _) => (ends.map(|(_, oldest)| oldest), page.next),
        (None, None) => (page.next, None),
        (None, Some(before)) => (page.next, Some(ends.map_or(before, |(newest, _)| newest))),
    };
    let link =
        |id: Option<u64>, name: &str| id.map(|id| format!("/audit?{}{name}={id}", wanted.words()));
    let kinds = sight.kinds().into_iter().map(|kind| Choice {
        value: kind.as_str(),
        text: say(lang, kind_message(kind), &[]),
        chosen: filter.kinds == [kind],
    });
    let acts = Act::ALL.iter().map(|act| Choice {
        value: act.code(),
        text: say(lang, act.message(), &[]),
        chosen: wanted.act.as_deref() == Some(act.code()),
    });
    let [csv, ndjson] =
        ["csv", "ndjson"].map(|format| format!("/api/v1/audit?{}format={format}", wanted.words()));
    Ok(html(&AuditPage {
        frame: Frame::of(
            &web,
            &caller,
            "audit",
            "/audit".to_owned(),
            say(lang, "audit-title", &[]),
        ),
        older: link(older, "before"),
        newer: link(newer, "after"),
        paged: wanted.before.is_some() || wanted.after.is_some(),
        filtered: !wanted.words().is_empty(),
        unread,
        who: wanted.who.clone().unwrap_or_default(),
        target: wanted.target.clone().unwrap_or_default(),
        since: wanted.from.as_deref().map(|at| typed(at, &zone)).unwrap_or_default(),
        until: wanted.to.as_deref().map(|at| typed(at, &zone)).unwrap_or_default(),
        since_at: wanted.from.clone().unwrap_or_default(),
        until_at: wanted.to.clone().unwrap_or_default(),
        acts: acts.collect(),
        kinds: kinds.collect(),
        csv,
        ndjson,
        entries: page
            .entries
            .into_iter()
            .map(|entry| {
                let job = of_job(&entry.act).then(|| web.live.job_named(&entry.target)).flatten();
                let title = job.as_ref().map(|job| match lang {
                    Language::En => job.title.en.as_str(),
                    Language::Zh => job.title.zh.as_str(),
                });
                Entry::seen(entry, title, &sight, lang)
            })
            .collect(),
    }))
}

/// Whether acts of this code are done to jobs.
pub(super) fn of_job(code: &str) -> bool {
    code.starts_with("job.") || code.starts_with("participation.")
}

/// An instant of an address as a form takes it in this zone.
pub(super) fn typed(text: &str, zone: &Zone) -> String {
    let at = text.parse::<jiff::Timestamp>();
    at.map_or_else(|_| String::new(), |at| zone.wall(StoreTime(at.as_millisecond())))
}

fn kind_message(kind: Kind) -> &'static str {
    match kind {
        Kind::Person => "audit-kind-person",
        Kind::Program => "audit-kind-program",
        Kind::Refusal => "audit-kind-refusal",
    }
}

impl Wanted {
    /// The filters as they stand in an address, with `&` at the end if there are any.
    fn words(&self) -> String {
        let all = [
            ("who", &self.who),
            ("act", &self.act),
            ("target", &self.target),
            ("kind", &self.kind),
            ("from", &self.from),
            ("to", &self.to),
        ];
        words(all)
    }
}
