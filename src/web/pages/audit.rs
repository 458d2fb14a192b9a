//! `GET /audit`: who did what, when, from where, why.

use actix_web::{HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::{Frame, html};
use crate::domain::rotation::Rules;
use crate::ops::Act;
use crate::store::StoreError;
use crate::store::journal::{AuditEntry, Journal};
use crate::view::{rotation, source};
use crate::web::Web;
use crate::web::api::rotations::RotationBody;
use crate::web::api::sources::RulesBody;
use crate::web::auth::Caller;
use crate::web::error::WebError;
use crate::words::{Language, Piece, day_clock, say};

/// Entries on a page.
const ENTRIES: usize = 50;

#[derive(Template)]
#[template(path = "pages/audit.html")]
pub(super) struct AuditPage {
    pub(super) frame: Frame,
    pub(super) entries: Vec<Entry>,
    /// They could not be read.
    pub(super) unread: bool,
    /// Where the next page begins.
    pub(super) older: Option<u64>,
    /// This is not the first page.
    pub(super) paged: bool,
}

/// One act.
pub(super) struct Entry {
    pub(super) at: Vec<Piece>,
    pub(super) who: String,
    pub(super) from: String,
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
            who: entry.who,
            from: entry.from,
            act: Act::of_code(&entry.act)
                .map_or_else(|| entry.act.clone(), |act| say(lang, act.message(), &[])),
            code: entry.act,
            target: entry.target,
            reason: reason.or(entry.reason).unwrap_or_default(),
        }
    }
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

/// `?before=`.
#[derive(Debug, Deserialize)]
pub struct Query {
    /// Only entries with a lower id.
    pub before: Option<u64>,
}

/// Shows a page of the audit.
///
/// # Errors
/// None of the store's being away: that is shown, not failed on.
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    let (mut entries, unread) = match web.store.audits(None, query.before, ENTRIES + 1).await {
        Ok(entries) => (entries, false),
        Err(StoreError::Unavailable(_)) => (Vec::new(), true),
        Err(error) => return Err(error.into()),
    };
    let more = entries.len() > ENTRIES;
    entries.truncate(ENTRIES);
    let title = say(caller.language, "audit-title", &[]);
    Ok(html(&AuditPage {
        frame: Frame::of(&web, &caller, "audit", "/audit".to_owned(), title),
        older: entries.last().filter(|_| more).map(|entry| entry.id),
        paged: query.before.is_some(),
        unread,
        entries: entries.into_iter().map(|entry| Entry::of(entry, caller.language)).collect(),
    }))
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
