//! Removing a source or a rotation from the page: the question says what would be lost, the answer removes it.
//!
//! The name is typed into a form of its own: what ends so much is no button in a row.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;

use super::confirm::Confirm;
use super::{Frame, ask_back, done};
use crate::Web;
use crate::acts;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::name::RotationName;
use soloist_ops::quota;
use soloist_view::words::{Arg, say};

/// What to remove; asked back for.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Removal {
    pub name: String,
    /// Where "no" goes.
    pub back: Option<String>,
    pub confirm: Option<String>,
}

impl Removal {
    fn is_sure(&self) -> bool {
        self.confirm.as_deref() == Some("yes")
    }
}

/// `POST /dispatch/remove`.
///
/// # Errors
/// As [`acts::source::remove`].
pub async fn source(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    form: web::Form<Removal>,
) -> Result<HttpResponse, WebError> {
    let view = acts::source::named(&web, form.name.trim()).await?;
    if form.is_sure() {
        acts::source::remove(&web, &caller, &view.name, true).await?;
        return Ok(done(&request, "/dispatch"));
    }
    let number = |count: u64| Arg::from(i64::try_from(count).unwrap_or(i64::MAX));
    let args = [("tasks", number(quota::kept(&view))), ("flight", number(view.in_flight))];
    let text = say(caller.language, "remove-source-text", &args);
    let name = view.name.to_string();
    Ok(ask_back(&request, &question(&web, &caller, ("dispatch", "/dispatch"), &form, name, text)))
}

/// `POST /rotations/remove`.
///
/// # Errors
/// As [`acts::rotation::remove`].
pub async fn rotation(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    form: web::Form<Removal>,
) -> Result<HttpResponse, WebError> {
    let name =
        RotationName::new(form.name.trim()).map_err(|wrong| acts::rotation::no_name(&wrong))?;
    acts::rotation::check_seen(&web, &caller, &name, false).await?;
    let view = acts::rotation::one(&web, &name, 0).await?;
    if form.is_sure() {
        acts::rotation::remove(&web, &caller, &name, true).await?;
        return Ok(done(&request, "/rotations"));
    }
    let waiting: u64 = view.types.iter().map(|kind| kind.waiting).sum();
    let waiting = ("waiting", Arg::from(i64::try_from(waiting).unwrap_or(i64::MAX)));
    let text = match &view.ring.turn {
        Some(turn) => {
            let worker = ("worker", Arg::from(turn.worker.to_string()));
            say(caller.language, "remove-rotation-held", &[worker, waiting])
        }
        None => say(caller.language, "remove-rotation-free", &[waiting]),
    };
    let name = name.to_string();
    Ok(ask_back(&request, &question(&web, &caller, ("rotations", "/rotations"), &form, name, text)))
}

fn question(
    web: &Web,
    caller: &Caller,
    (section, list): (&'static str, &str),
    form: &Removal,
    name: String,
    text: String,
) -> Confirm {
    let lang = caller.language;
    let title = say(lang, "remove-title", &[("name", Arg::from(name.as_str()))]);
    Confirm {
        frame: Frame::of(web, caller, section, list.to_owned(), title),
        text,
        action: format!("{list}/remove"),
        fields: vec![("name", name)],
        asks: false,
        yes: say(lang, "remove-yes", &[]),
        no: say(lang, "cancel", &[]),
        back: form.back.clone().unwrap_or_else(|| list.to_owned()),
    }
}
