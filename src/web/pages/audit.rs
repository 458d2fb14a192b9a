//! `GET /audit`: who did what, when, from where, why.

use actix_web::{HttpResponse, web};
use askama::Template;

use super::{Frame, html};
use crate::domain::rotation::Rules;
use crate::ops::Act;
use crate::ops::audit::Sight;
use crate::store::StoreError;
use crate::store::journal::{self, AuditEntry, Journal, Kind};
use crate::view::{rotation, source};
use crate::web::Web;
use crate::web::api::audit::Wanted;
use crate::web::api::rotations::RotationBody;
use crate::web::api::sources::RulesBody;
use crate::web::api::words;
use crate::web::auth::Caller;
use crate::web::error::WebError;
use crate::words::{Arg, Language, Piece, day_clock, grouped, say, visible};

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
    pub(super) acts: Vec<Choice>,
    pub(super) kinds: Vec<Choice>,
    /// Where all of it can be had.
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
    pub(super) who: String,
    pub(super) from: String,
    pub(super) kind: &'static str,
    /// How often, if more than once.
    pub(super) times: Vec<Piece>,
    /// What was done, in words.
    pub(super) act: String,
    pub(super) code: String,
    pub(super) target: String,
    pub(super) reason: String,
}

impl Entry {
    pub(super) fn of(entry: AuditEntry, lang: Language) -> Self {
        let reason = in_words(&entry, lang);
        Self {
            at: vec![day_clock(entry.at)],
            kind: entry.kind.as_str(),
            times: times(&entry, lang),
            who: visible(&entry.who).into_owned(),
            from: visible(&entry.from).into_owned(),
            act: Act::of_code(&entry.act).map_or_else(
                || visible(&entry.act).into_owned(),
                |act| say(lang, act.message(), &[]),
            ),
            code: visible(&entry.act).into_owned(),
            target: visible(&entry.target).into_owned(),
            reason: visible(&reason.or(entry.reason).unwrap_or_default()).into_owned(),
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

/// Rules that were noted as JSON, as people read them.
fn in_words(entry: &AuditEntry, lang: Language) -> Option<String> {
    let noted = entry.reason.as_deref()?;
    let clauses = match Act::of_code(&entry.act)? {
        Act::SourcePut | Act::SourcePause | Act::SourceResume => {
            let body: RulesBody = serde_json::from_str(noted).ok()?;
            source::rules(&body.into(), lang)
        }
        Act::RotationPut => {
            let body: RotationBody = serde_json::from_str(noted).ok()?;
            rotation::all_rules(&Rules::try_from(body).ok()?, lang)
        }
        _ => return None,
    };
    Some(clauses.join(" · "))
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
    let (wanted, lang) = (query.into_inner(), caller.language);
    let sight = Sight::of(caller.role, &caller.user, web.live.hidden_from(Some(&caller)).names());
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
        acts: acts.collect(),
        kinds: kinds.collect(),
        csv,
        ndjson,
        entries: page
            .entries
            .into_iter()
            .map(|entry| {
                let from = sight.sees_address(&entry);
                let shown = Entry::of(entry, lang);
                if from { shown } else { Entry { from: String::new(), ..shown } }
            })
            .collect(),
    }))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::StoreTime;

    fn shown(act: &str, lang: Language) -> String {
        let text = || "li".to_owned();
        let (who, from, target) = (text(), text(), text());
        let entry = AuditEntry {
            id: 1,
            at: StoreTime(0),
            who,
            from,
            act: act.to_owned(),
            target,
            reason: None,
            kind: Kind::Person,
            count: 1,
            until: None,
        };
        Entry::of(entry, lang).act
    }

    #[test]
    fn every_act_has_a_sentence_in_both_languages_and_an_unknown_one_its_code() {
        for act in Act::ALL {
            assert_eq!(Act::of_code(act.code()), Some(*act));
            let [en, zh] = Language::ALL.map(|lang| shown(act.code(), lang));
            assert!(en != zh && ![&en, &zh].contains(&&act.message().to_owned()), "{en} {zh}");
        }
        assert_eq!(shown("moon.shot", Language::Zh), "moon.shot");
    }
}
