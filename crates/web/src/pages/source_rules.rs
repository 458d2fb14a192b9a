//! The forms that make a source and change its rules: `/dispatch/new`, `/dispatch/sources/{source}/rules`.

use actix_web::{HttpResponse, web};

use super::form::{Field, Group, Refused, RulesPage, Typed, Wrong, answer, field_of};
use super::{Frame, seen_other, whole};
use crate::Web;
use crate::acts::source::{self, seen};
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::dispatch::Rules;
use soloist_domain::name::SourceName;
use soloist_view::words::{Arg, Language, say};

/// Rules as they stand in the form.
pub(super) fn typed(rules: &Rules) -> Typed {
    let mut typed = Typed::default();
    typed.put_rules(rules, None);
    typed
}

/// The rules that were typed. Pausing is another form: that stays as it is in `present`.
pub(super) fn rules(typed: &Typed, present: &Rules) -> Result<Rules, Wrong> {
    let rules = typed.rules(present, None)?.onto(Rules::default());
    rules
        .and_then(|rules| rules.check().map(|()| rules))
        .map_err(|wrong| field_of::<Rules>(&wrong.field, None).unwrap_or(Wrong(wrong.field)))
}

/// The page of the form; `source` is `None` for a new one.
pub(super) fn form(
    frame: Frame,
    source: Option<&SourceName>,
    typed: &Typed,
    refused: Option<&Refused>,
) -> RulesPage {
    let lang = frame.lang;
    let wrong = refused.and_then(Refused::field);
    let one = |title, name| (title, Field::all(&[name], typed, wrong, lang));
    let mut groups = Field::of_rules::<Rules>(None, typed, wrong, lang);
    groups.push(one("rules-why", "reason"));
    if source.is_none() {
        groups.insert(0, one("rules-name", "name"));
    }
    let group = |(title, fields)| Group { title: say(lang, title, &[]), fields };
    let groups = groups.into_iter().map(group).collect();
    RulesPage {
        about: say(lang, "source-rules-about", &[]),
        error: None,
        action: source.map_or_else(|| "/dispatch/sources".to_owned(), |name| at(name) + "/rules"),
        groups,
        yes: say(lang, if source.is_some() { "save" } else { "source-new-yes" }, &[]),
        back: source.map_or_else(|| "/dispatch".to_owned(), at),
        frame,
    }
    .refusing(refused)
}

/// The page of a source.
pub(super) fn at(source: &SourceName) -> String {
    format!("/dispatch/sources/{source}")
}

fn show(
    web: &Web,
    caller: &Caller,
    source: Option<&SourceName>,
    typed: &Typed,
    refused: Option<&Refused>,
) -> HttpResponse {
    let (title, path) = title(caller.language, source);
    let frame = Frame::of(web, caller, "dispatch", path, title);
    answer(whole(&form(frame, source, typed, refused)), refused)
}

fn title(lang: Language, source: Option<&SourceName>) -> (String, String) {
    match source {
        None => (say(lang, "source-new", &[]), "/dispatch/new".to_owned()),
        Some(name) => {
            let title = say(lang, "source-rules-of", &[("source", Arg::from(name.as_str()))]);
            (title, at(name) + "/rules")
        }
    }
}

/// `GET /dispatch/new`.
///
/// # Errors
/// None.
pub async fn new(web: web::Data<Web>, caller: Caller) -> Result<HttpResponse, WebError> {
    Ok(show(&web, &caller, None, &typed(&Rules::default()), None))
}

/// `POST /dispatch/sources`: a new source; one of that name must not exist.
///
/// # Errors
/// None that is not shown on the page.
pub async fn add(
    web: web::Data<Web>,
    caller: Caller,
    form: web::Form<Vec<(String, String)>>,
) -> Result<HttpResponse, WebError> {
    let typed = Typed::from(form.into_inner());
    match add_typed(&web, &caller, &typed).await {
        Ok(name) => Ok(seen_other(&at(&name))),
        Err(refused) => Ok(show(&web, &caller, None, &typed, Some(&refused))),
    }
}

async fn add_typed(web: &Web, caller: &Caller, typed: &Typed) -> Result<SourceName, Refused> {
    let name = SourceName::new(typed.get("name")).map_err(|_| Wrong("name".to_owned()))?;
    let rules = rules(typed, &Rules::default())?;
    match seen(web, caller, name.as_str()).await {
        Err(WebError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
        Ok(_) => {
            let there = [("name", name.as_str())];
            let status = actix_web::http::StatusCode::CONFLICT;
            return Err(WebError::told(status, "source-exists", &there).into());
        }
    }
    source::put(web, caller, &name, &rules, typed.some("reason")).await?;
    Ok(name)
}

/// `GET /dispatch/sources/{source}/rules`.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let view = seen(&web, &caller, &name).await?;
    caller.actor().check_operator()?;
    Ok(show(&web, &caller, Some(&view.name), &typed(&view.rules), None))
}

/// `POST /dispatch/sources/{source}/rules`.
///
/// # Errors
/// As [`page`]; others are shown on the page.
pub async fn change(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    form: web::Form<Vec<(String, String)>>,
) -> Result<HttpResponse, WebError> {
    let view = seen(&web, &caller, &name).await?;
    let typed = Typed::from(form.into_inner());
    let done = async {
        let rules = rules(&typed, &view.rules)?;
        source::put(&web, &caller, &view.name, &rules, typed.some("reason")).await?;
        Ok::<_, Refused>(())
    };
    match done.await {
        Ok(()) => Ok(seen_other(&(at(&view.name) + "?said=rules"))),
        Err(refused) => Ok(show(&web, &caller, Some(&view.name), &typed, Some(&refused))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use soloist_domain::dispatch::Window;

    #[test]
    fn rules_come_out_of_the_form_as_they_went_in() {
        let rules_in = Rules {
            gap: Duration::from_millis(1_500),
            window: Some(Window { count: 100, span: Duration::from_secs(90) }),
            cap: Some(4),
            max_attempts: 0,
            paused: true,
            ..Rules::default()
        };
        assert_eq!(rules(&typed(&rules_in), &rules_in), Ok(rules_in));
        let default = Rules::default();
        assert_eq!(rules(&typed(&default), &default), Ok(default));
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        for (name, text) in [
            ("gap", "soon"),
            ("cap", "0"),
            ("lease", "5ms"),
            ("attempts", "-1"),
            ("window-count", "7"),
            ("backoff-first", "2d"),
        ] {
            let mut typed = typed(&Rules::default());
            typed.set(name, text);
            let named = if name == "window-count" { "window-span" } else { name };
            assert_eq!(rules(&typed, &Rules::default()), Err(Wrong(named.to_owned())), "{name}");
        }
    }
}
