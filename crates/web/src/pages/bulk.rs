//! Several jobs at once: rows are ticked, a page lists what will become of each and takes one reason, another says what became.
//!
//! It decides nothing itself: each job is switched or held as if it were the only one, by its own rule and with its own entry in
//! the audit, so that one that is refused keeps none of the others.

use actix_web::{HttpResponse, web};
use askama::Template;

use super::{Frame, html, local, picture, viewer};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::detail::Detail;
use soloist_ops::jobs;
use soloist_view::JobView;
use soloist_view::words::{Arg, Language, say};

/// What is done to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    On,
    Off,
    Hold,
}

impl What {
    fn of(word: &str) -> Option<Self> {
        [Self::On, Self::Off, Self::Hold].into_iter().find(|what| what.as_str() == word)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Hold => "hold",
        }
    }

    fn title(self, lang: Language, n: usize) -> String {
        let id = match self {
            Self::On => "bulk-title-on",
            Self::Off => "bulk-title-off",
            Self::Hold => "bulk-title-hold",
        };
        say(lang, id, &[("n", Arg::from(i64::try_from(n).unwrap_or(i64::MAX)))])
    }

    fn word(self, lang: Language) -> String {
        let id = match self {
            Self::On => "bulk-on",
            Self::Off => "bulk-off",
            Self::Hold => "bulk-hold",
        };
        say(lang, id, &[])
    }

    /// What will become of a job.
    fn means(self, view: &JobView, mine: bool, lang: Language) -> String {
        let others = view.participants.len() - usize::from(mine);
        let id = match self {
            Self::On if mine => "bulk-already-on",
            Self::On if view.hold.is_some() => "bulk-held",
            Self::On => "bulk-joins",
            Self::Off if !mine => "bulk-already-off",
            Self::Off if others == 0 => "bulk-stops",
            Self::Off => "bulk-goes-on",
            Self::Hold if view.hold.is_some() => "bulk-held",
            Self::Hold => "bulk-forbids",
        };
        say(lang, id, &[("n", Arg::from(i64::try_from(others).unwrap_or(i64::MAX)))])
    }
}

/// A job in one of the two lists.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) state: &'static str,
    pub(super) text: String,
    /// It was refused.
    pub(super) failed: bool,
}

/// The question.
#[derive(Template)]
#[template(path = "pages/bulk.html")]
pub(super) struct Preview {
    pub(super) frame: Frame,
    pub(super) what: What,
    pub(super) lines: Vec<Line>,
    pub(super) back: String,
}

impl Preview {
    fn no_goes(&self) -> &str {
        local(&self.back)
    }

    fn yes(&self) -> String {
        self.what.word(self.frame.lang)
    }
}

/// The answer.
#[derive(Template)]
#[template(path = "pages/bulk_done.html")]
pub(super) struct BulkDone {
    pub(super) frame: Frame,
    pub(super) lines: Vec<Line>,
    pub(super) back: String,
}

impl BulkDone {
    fn back_goes(&self) -> &str {
        local(&self.back)
    }
}

/// What the form says; `job` as often as there are ticks.
struct Wish {
    what: What,
    jobs: Vec<String>,
    reason: Option<String>,
    confirmed: bool,
    back: String,
}

impl Wish {
    fn of(fields: Vec<(String, String)>) -> Result<Self, WebError> {
        let (mut act, mut jobs, mut reason) = (None, Vec::new(), None);
        let (mut confirmed, mut back) = (false, "/".to_owned());
        for (name, value) in fields {
            match name.as_str() {
                "act" => act = What::of(&value),
                "job" if !jobs.contains(&value) => jobs.push(value),
                "reason" => reason = Some(value).filter(|said| !said.trim().is_empty()),
                "confirm" => confirmed = value == "yes",
                "back" => back = value,
                _ => {}
            }
        }
        let what = act.ok_or_else(|| {
            WebError::bad(
                Detail::new("field act must be on, off or hold").told("refused-form", &[]),
            )
        })?;
        Ok(Self { what, jobs, reason, confirmed, back })
    }
}

/// `POST /bulk`: asks back, and acts with `confirm=yes`.
///
/// # Errors
/// [`WebError::BadRequest`], [`WebError::NotFound`] for a job that the caller may not see. What is refused of single jobs is said
/// on the page.
pub async fn act(
    web: web::Data<Web>,
    caller: Caller,
    form: web::Form<Vec<(String, String)>>,
) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let wish = Wish::of(form.into_inner())?;
    let mut chosen = Vec::new();
    for name in &wish.jobs {
        let job = web.job(&caller, name)?;
        let view = picture(&web, &caller, &job);
        chosen.push((job, view));
    }
    let title = wish.what.title(lang, chosen.len());
    let frame = Frame::of(&web, &caller, "jobs", local(&wish.back).to_owned(), title);
    let line = |view: &JobView, text: String, failed: bool| Line {
        name: view.name.clone(),
        title: view.title.clone(),
        state: view.state.as_str(),
        text,
        failed,
    };
    if !wish.confirmed || chosen.is_empty() {
        let lines = chosen.iter().map(|(job, view)| {
            let mine = viewer(&caller, job, view).mine;
            line(view, wish.what.means(view, mine, lang), false)
        });
        let lines = lines.collect();
        return Ok(html(&Preview { frame, what: wish.what, lines, back: wish.back }));
    }
    let (store, actor) = (&web.store, caller.actor());
    let mut lines = Vec::new();
    for (job, view) in &chosen {
        let reason = wish.reason.as_deref();
        let done = match wish.what {
            What::On => jobs::participate(store, &actor, job, None, true, reason).await.map(drop),
            What::Off => jobs::participate(store, &actor, job, None, false, reason).await.map(drop),
            What::Hold => jobs::hold(store, &actor, job, reason.unwrap_or("")).await.map(drop),
        };
        lines.push(match done.map_err(WebError::from) {
            Ok(()) => line(view, say(lang, "bulk-done", &[]), false),
            Err(error) => line(view, error.sentence(lang), true),
        });
    }
    Ok(html(&BulkDone { frame, lines, back: wish.back }))
}
