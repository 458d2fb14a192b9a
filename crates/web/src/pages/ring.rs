//! One rotation: `GET /rotations/ring/{rotation}`, and the forms that make one and change its rules. The word before the name keeps
//! a rotation called `new` or `remove` from being taken for a form.
//!
//! There is no button that passes a turn on: a turn ends by its holder's word or its lease.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::form::{Field, Group, Refused, RulesPage, Typed, Wrong, answer, field_of};
use super::{Frame, html, seen_other, whole};
use crate::Web;
use crate::acts::rotation;
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::rotation::RotationRow;
use soloist_domain::name::{RotationName, TypeName};
use soloist_domain::rotation::{Rules, TypeRules};
use soloist_store::rotation::{RotationView, TURNS_KEPT};
use soloist_view::words::{Arg, Language, say};

/// Empty rows for more types.
const SPARE: usize = 3;
/// Most types.
const MOST: usize = 50;

#[derive(Template)]
#[template(path = "pages/ring.html")]
pub(super) struct RingPage<'a> {
    pub(super) frame: Frame,
    pub(super) name: String,
    pub(super) said: Option<String>,
    pub(super) row: RotationRow<'a>,
    pub(super) operator: bool,
    /// No worker has ever had a turn.
    pub(super) begin: bool,
    /// A type for the commands that tell how to begin.
    pub(super) kind: String,
}

impl RingPage<'_> {
    fn about(&self, id: &str) -> String {
        say(self.frame.lang, id, &[("rotation", Arg::from(self.name.as_str()))])
    }
}

/// The page of a rotation.
pub(super) fn at(name: &RotationName) -> String {
    format!("/rotations/ring/{name}")
}

async fn named(web: &Web, name: &str, past: usize) -> Result<RotationView, WebError> {
    let name = RotationName::new(name).map_err(|wrong| rotation::no_name(&wrong))?;
    rotation::one(web, &name, past).await
}

/// `?said=`: which form led here.
#[derive(Debug, Deserialize)]
pub struct Query {
    said: Option<String>,
}

/// Shows a rotation with as many of its past turns as are kept.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    let view = named(&web, &name, TURNS_KEPT).await?;
    let lang = caller.language;
    let mut frame = Frame::of(&web, &caller, "rotations", at(&view.name), view.name.to_string());
    frame.now = Some(view.now.floor());
    Ok(html(&RingPage {
        name: view.name.to_string(),
        said: query.said.as_ref().map(|_| say(lang, "rules-saved", &[])),
        operator: caller.is_operator(),
        begin: view.ring.turn.is_none() && view.past.is_empty(),
        kind: view.rules.types.first().map_or_else(String::new, |kind| kind.name.to_string()),
        row: RotationRow::new(&view, lang).with_all_turns(),
        frame,
    }))
}

/// Rules as they stand in the form.
pub(super) fn typed(rules: &Rules) -> Typed {
    let mut typed = Typed::default();
    for (nth, kind) in rules.types.iter().enumerate() {
        typed.set(&format!("type-{nth}"), &kind.name);
        typed.put_rules(kind, Some(nth));
    }
    typed.put_rules(rules, None);
    typed
}

/// The rules that were typed. Rows without a name are left out.
pub(super) fn rules(typed: &Typed) -> Result<Rules, Wrong> {
    let mut rules = Rules::default();
    let mut rows = Vec::new();
    for nth in 0..MOST {
        let of_type = format!("type-{nth}");
        let Some(name) = typed.read(&of_type, |text| TypeName::new(text).ok())? else {
            // Something that belongs to a type without a name was typed by mistake.
            match typed.any_rule::<TypeRules>(nth) {
                true => return Err(Wrong(of_type)),
                false => continue,
            }
        };
        let kind = TypeRules::of(name);
        let kind = typed.rules(&kind, Some(nth))?.onto(kind);
        rules.types.push(kind.map_err(|wrong| field(&wrong.of_type(0).field, &[nth]))?);
        rows.push(nth);
    }
    let rules = typed.rules(&rules, None)?.onto(rules);
    let rules = rules.and_then(|rules| rules.check().map(|()| rules));
    rules.map_err(|wrong| field(&wrong.field, &rows))
}

/// The field of the form, by that of JSON; `rows` are those of the types.
fn field(json: &str, rows: &[usize]) -> Wrong {
    let row = json.strip_prefix("types[").and_then(|rest| rest.split_once("]."));
    let row = row.and_then(|(nth, of)| Some((*rows.get(nth.parse::<usize>().ok()?)?, of)));
    let field = match row {
        None => field_of::<Rules>(json, None),
        Some((nth, of)) => field_of::<TypeRules>(of, Some(nth)),
    };
    field.unwrap_or_else(|| Wrong(format!("type-{}", row.map_or(0, |(nth, _)| nth))))
}

/// The page of the form; `name` is `None` for a new one.
pub(super) fn form(
    frame: Frame,
    name: Option<&RotationName>,
    typed: &Typed,
    refused: Option<&Refused>,
) -> RulesPage {
    let lang = frame.lang;
    let wrong = refused.and_then(Refused::field);
    let one = |name: &str| Field::new((name, name), typed, wrong, lang);
    let group = |title: &str, fields: Vec<Field>| Group { title: say(lang, title, &[]), fields };
    let mut groups = Vec::new();
    if name.is_none() {
        groups.push(group("rules-name", vec![one("name")]));
    }
    let own = Field::of_rules::<Rules>(None, typed, wrong, lang).into_iter();
    groups.extend(own.map(|(title, fields)| group(title, fields)));
    for nth in 0..rows(typed) {
        let n = ("n", Arg::from(i64::try_from(nth + 1).unwrap_or(0)));
        let mut fields = vec![Field::new((&format!("type-{nth}"), "type"), typed, wrong, lang)];
        let rules = Field::of_rules::<TypeRules>(Some(nth), typed, wrong, lang).into_iter();
        fields.extend(rules.flat_map(|(_, fields)| fields));
        groups.push(Group { title: say(lang, "rules-type", &[n]), fields });
    }
    groups.push(group("rules-why", vec![one("reason")]));
    RulesPage {
        about: say(lang, "rotation-rules-about", &[]),
        error: None,
        action: name.map_or_else(|| "/rotations".to_owned(), |name| at(name) + "/rules"),
        groups,
        yes: say(lang, if name.is_some() { "save" } else { "rotation-new-yes" }, &[]),
        back: name.map_or_else(|| "/rotations".to_owned(), at),
        frame,
    }
    .refusing(refused)
}

/// Rows of the form: up to the last in which something stands, and some to spare.
fn rows(typed: &Typed) -> usize {
    let filled = |nth: &usize| {
        typed.some(&format!("type-{nth}")).is_some() || typed.any_rule::<TypeRules>(*nth)
    };
    ((0..MOST).rev().find(filled).map_or(0, |last| last + 1) + SPARE).min(MOST)
}

fn show(
    web: &Web,
    caller: &Caller,
    name: Option<&RotationName>,
    typed: &Typed,
    refused: Option<&Refused>,
) -> HttpResponse {
    let (title, path) = title(caller.language, name);
    let frame = Frame::of(web, caller, "rotations", path, title);
    answer(whole(&form(frame, name, typed, refused)), refused)
}

fn title(lang: Language, name: Option<&RotationName>) -> (String, String) {
    match name {
        None => (say(lang, "rotation-new", &[]), "/rotations/new".to_owned()),
        Some(name) => {
            let title = say(lang, "rotation-rules-of", &[("rotation", Arg::from(name.as_str()))]);
            (title, at(name) + "/rules")
        }
    }
}

/// `GET /rotations/new`.
///
/// # Errors
/// None.
pub async fn new(web: web::Data<Web>, caller: Caller) -> Result<HttpResponse, WebError> {
    Ok(show(&web, &caller, None, &Typed::default(), None))
}

/// `POST /rotations`: a new rotation; one of that name must not exist.
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

async fn add_typed(web: &Web, caller: &Caller, typed: &Typed) -> Result<RotationName, Refused> {
    let name = RotationName::new(typed.get("name")).map_err(|_| Wrong("name".to_owned()))?;
    let rules = rules(typed)?;
    rotation::check_seen(web, caller, &name, true).await?;
    match rotation::one(web, &name, 0).await {
        Err(WebError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
        Ok(_) => {
            let there = [("name", name.as_str())];
            return Err(WebError::told(StatusCode::CONFLICT, "rotation-exists", &there).into());
        }
    }
    rotation::put(web, caller, &name, &rules, typed.some("reason")).await?;
    Ok(name)
}

/// `GET /rotations/ring/{rotation}/rules`.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn rules_page(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let view = named(&web, &name, 0).await?;
    caller.actor().check_operator()?;
    Ok(show(&web, &caller, Some(&view.name), &typed(&view.rules), None))
}

/// `POST /rotations/ring/{rotation}/rules`.
///
/// # Errors
/// As [`rules_page`]; others are shown on the page.
pub async fn change(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    form: web::Form<Vec<(String, String)>>,
) -> Result<HttpResponse, WebError> {
    let view = named(&web, &name, 0).await?;
    let typed = Typed::from(form.into_inner());
    let done = async {
        let rules = rules(&typed)?;
        rotation::put(&web, &caller, &view.name, &rules, typed.some("reason")).await?;
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
    use soloist_domain::rotation::Skip;

    fn three() -> Rules {
        let kind = |name: &str, gap: u64, quota| TypeRules {
            name: TypeName::new(name).expect("a valid name"),
            gap: Duration::from_millis(gap),
            quota,
        };
        let quota = Some(Window { count: 4, span: Duration::from_secs(3_600) });
        Rules {
            types: vec![kind("orders", 0, None), kind("stock", 1_500, quota)],
            min_gap: Duration::from_secs(2),
            lease: Duration::from_secs(30),
            skip: Skip::Never,
        }
    }

    #[test]
    fn rules_come_out_of_the_form_as_they_went_in_also_with_an_empty_row_between() {
        assert_eq!(rules(&typed(&three())), Ok(three()));
        let mut apart = typed(&three());
        apart.set("type-0", "");
        apart.set("type-4", "orders");
        let order: Vec<_> =
            rules(&apart).expect("rules").types.into_iter().map(|kind| kind.name).collect();
        assert_eq!(order.iter().map(TypeName::as_str).collect::<Vec<_>>(), ["stock", "orders"]);
    }

    #[test]
    fn the_field_that_is_wrong_is_named_in_its_row() {
        for (name, text, wrong) in [
            ("type-4", "stock", "type-4"),
            ("type-4", "NO", "type-4"),
            ("quota-count-1", "0", "quota-count-1"),
            ("quota-span-1", "", "quota-span-1"),
            ("type-gap-7", "1s", "type-7"),
            ("min-gap", "x", "min-gap"),
            ("turn-lease", "1ms", "turn-lease"),
        ] {
            let mut typed = typed(&three());
            typed.set(name, text);
            assert_eq!(rules(&typed), Err(Wrong(wrong.to_owned())), "{name} = {text}");
        }
        assert_eq!(rules(&Typed::default()), Err(Wrong("type-0".to_owned())));
    }
}
