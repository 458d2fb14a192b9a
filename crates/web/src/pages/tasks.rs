//! Several tasks of a source at once: they are ticked, a page lists what will become of each, another says what became.
//!
//! Each is revived or removed as if it were the only one, by its own rule and with its own entry in the audit. One that is in a
//! collector's hands is removed only if the page said so: what it was when the person agreed is part of the answer.

use actix_web::{HttpResponse, web};
use askama::Template;

use super::source::{id, word};
use super::{Frame, html, local};
use crate::Web;
use crate::acts::source;
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::dispatch::short_key;
use soloist_domain::detail::Detail;
use soloist_domain::dispatch::TaskState;
use soloist_store::dispatch::{Dispatch as _, TaskId, TaskView};
use soloist_view::words::{Arg, Language, say};

/// Most at once: a page of the list, and room.
const MOST: usize = 100;

/// What is done to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Revive,
    Remove,
}

/// A task in one of the two lists.
pub(super) struct Line {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) state: &'static str,
    pub(super) text: String,
    /// It is in a collector's hands, and that was said.
    pub(super) held: bool,
}

/// The question, and the answer.
#[derive(Template)]
#[template(path = "pages/tasks.html")]
pub(super) struct TasksPage {
    pub(super) frame: Frame,
    pub(super) what: What,
    pub(super) asks: bool,
    pub(super) lines: Vec<Line>,
    pub(super) back: String,
}

impl TasksPage {
    fn back_goes(&self) -> &str {
        local(&self.back)
    }

    fn yes(&self) -> String {
        self.frame.say(match self.what {
            What::Revive => "tasks-revive",
            What::Remove => "tasks-remove",
        })
    }

    fn act(&self) -> &'static str {
        match self.what {
            What::Revive => "revive",
            What::Remove => "remove",
        }
    }
}

struct Wish {
    what: What,
    tasks: Vec<TaskId>,
    /// The tasks of which the page said that a collector has them.
    held: Vec<TaskId>,
    confirmed: bool,
    back: String,
}

impl Wish {
    fn of(fields: Vec<(String, String)>) -> Result<Self, WebError> {
        let (mut what, mut tasks, mut held) = (None, Vec::new(), Vec::new());
        let (mut confirmed, mut back) = (false, "/dispatch".to_owned());
        for (name, value) in fields {
            match (name.as_str(), value.as_str()) {
                ("act", "revive") => what = Some(What::Revive),
                ("act", "remove") => what = Some(What::Remove),
                ("task", _) if !tasks.contains(&id(&value)) => tasks.push(id(&value)),
                ("held", _) => held.push(id(&value)),
                ("confirm", said) => confirmed = said == "yes",
                ("back", _) => back = value,
                _ => {}
            }
        }
        let what = what.ok_or_else(|| {
            WebError::bad(
                Detail::new("field act must be revive or remove").told("refused-form", &[]),
            )
        })?;
        if tasks.len() > MOST {
            return Err(WebError::bad(
                Detail::new(format!("field task: at most {MOST} at once"))
                    .told("refused-tasks-many", &[("most", &MOST)]),
            ));
        }
        Ok(Self { what, tasks, held, confirmed, back })
    }
}

/// What will become of a task.
pub(super) fn means(what: What, task: &TaskView, lang: Language) -> String {
    let id = match (what, task.state) {
        (What::Revive, TaskState::Dead) => "tasks-comes-back",
        (What::Revive, _) => "tasks-not-dead",
        (What::Remove, TaskState::Leased) => {
            let who = task.held.as_ref().map_or_else(String::new, |(who, ..)| who.to_string());
            return say(lang, "tasks-in-hands", &[("collector", Arg::from(who))]);
        }
        (What::Remove, _) => "tasks-goes",
    };
    say(lang, id, &[])
}

pub(super) fn line(task: &TaskView, text: String) -> Line {
    Line {
        id: task.id.0.clone(),
        key: short_key(&task.key),
        state: word(task.state).0,
        text,
        held: task.state == TaskState::Leased,
    }
}

/// `POST /dispatch/tasks`: asks back, and acts with `confirm=yes`.
///
/// # Errors
/// [`WebError::BadRequest`], [`WebError::Unavailable`]. What is refused of single tasks is said on the page.
pub async fn act(
    web: web::Data<Web>,
    caller: Caller,
    form: web::Form<Vec<(String, String)>>,
) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let wish = Wish::of(form.into_inner())?;
    let asks = !wish.confirmed || wish.tasks.is_empty();
    let mut lines = Vec::new();
    for id in &wish.tasks {
        let Some(task) = web.store.task(id).await? else { continue };
        caller.bound.check_source(&task.source)?;
        if asks {
            lines.push(line(&task, means(wish.what, &task, lang)));
            continue;
        }
        let done = match wish.what {
            What::Revive if task.state != TaskState::Dead => {
                lines.push(line(&task, say(lang, "tasks-not-dead", &[])));
                continue;
            }
            What::Revive => source::revive(&web, &caller, id).await,
            What::Remove => source::remove_task(&web, &caller, id, wish.held.contains(id)).await,
        };
        lines.push(line(
            &task,
            match done {
                Ok(_) if wish.what == What::Revive => say(lang, "tasks-came-back", &[]),
                Ok(_) => say(lang, "tasks-gone", &[]),
                Err(error @ WebError::Unavailable { .. }) => return Err(error),
                Err(error) => error.sentence(lang),
            },
        ));
    }
    let n = ("n", Arg::from(i64::try_from(lines.len()).unwrap_or(i64::MAX)));
    let title = match (wish.what, asks) {
        (What::Revive, true) => "tasks-revive-title",
        (What::Remove, true) => "tasks-remove-title",
        (_, false) => "tasks-done-title",
    };
    let title = say(lang, title, &[n]);
    let frame = Frame::of(&web, &caller, "dispatch", local(&wish.back).to_owned(), title);
    Ok(html(&TasksPage { frame, what: wish.what, asks, lines, back: wish.back }))
}
