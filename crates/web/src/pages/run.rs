//! `/jobs/{job}/run`: the form of a run that is wanted now, with the parameters of the job; and runs that are taken back.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _, web};
use askama::Template;
use serde::Deserialize;

use super::form::Typed;
use super::{Frame, html, picture, seen_other};
use crate::Web;
use crate::api::{query, read_now};
use crate::auth::Caller;
use crate::error::WebError;
use soloist_config::params::{Param, ParamKind};
use soloist_config::{JobConfig, Scheduled};
use soloist_domain::tick::{Clock, Params, TickName};
use soloist_ops::ticks::{self, RunAsk, own_schedule};
use soloist_view::tick_words::{called, run_of};
use soloist_view::words::{Arg, Language, say};

/// The page.
#[derive(Template)]
#[template(path = "pages/run.html")]
pub(super) struct RunPage {
    pub(super) frame: Frame,
    pub(super) error: Option<String>,
    /// The page of the job.
    pub(super) back: String,
    /// It will wait, and for what.
    pub(super) waits: Option<String>,
    /// The open tick that the page names.
    pub(super) seen: String,
    /// Two clicks are one run.
    pub(super) request: String,
    /// A tick of the schedule that is run again.
    pub(super) tick: Option<String>,
    pub(super) fields: Vec<Field>,
    pub(super) reason: String,
}

/// A parameter.
pub(super) struct Field {
    pub(super) name: String,
    /// The type of the input, or `choice`.
    pub(super) kind: &'static str,
    pub(super) value: String,
    pub(super) choices: Vec<String>,
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
    pub(super) pattern: Option<String>,
    pub(super) most: Option<usize>,
    pub(super) required: bool,
    pub(super) wrong: bool,
    /// What it may be.
    pub(super) means: String,
}

impl Field {
    pub(super) fn new(param: &Param, value: String, wrong: bool, lang: Language) -> Self {
        let args = |list: &[(&'static str, String)]| -> Vec<(&'static str, Arg)> {
            list.iter().map(|(name, text)| (*name, Arg::from(text.as_str()))).collect()
        };
        let mut field = Self {
            name: param.name.clone(),
            kind: "text",
            value,
            choices: Vec::new(),
            min: None,
            max: None,
            pattern: None,
            most: None,
            required: param.default.is_none(),
            wrong,
            means: String::new(),
        };
        let number = |n: &i64| n.to_string();
        field.means = match &param.kind {
            ParamKind::Date => {
                field.kind = "date";
                say(lang, "run-param-date", &[])
            }
            ParamKind::Choice(of) => {
                (field.kind, field.choices) = ("choice", of.clone());
                say(lang, "run-param-choice", &[])
            }
            ParamKind::Int { min, max } => {
                (field.kind, field.min, field.max) = ("number", *min, *max);
                match (min, max) {
                    (None, None) => say(lang, "run-param-int", &[]),
                    (Some(min), None) => {
                        say(lang, "run-param-int-from", &args(&[("min", number(min))]))
                    }
                    (None, Some(max)) => {
                        say(lang, "run-param-int-to", &args(&[("max", number(max))]))
                    }
                    (Some(min), Some(max)) => {
                        let both = args(&[("min", number(min)), ("max", number(max))]);
                        say(lang, "run-param-int-within", &both)
                    }
                }
            }
            ParamKind::Text { pattern, most } => {
                (field.pattern, field.most) = (pattern.clone(), Some(*most));
                let most = ("most", most.to_string());
                match pattern {
                    None => say(lang, "run-param-text", &args(&[most])),
                    Some(pattern) => {
                        say(lang, "run-param-pattern", &args(&[most, ("pattern", pattern.clone())]))
                    }
                }
            }
        };
        if field.required {
            field.means = say(lang, "run-param-needed", &[("means", Arg::from(field.means))]);
        }
        field
    }
}

/// The civil day in whose words `today` and `yesterday` are settled: that of the tick, or today in the zone of the job.
fn day(scheduled: &Scheduled, tick: Option<&str>) -> jiff::civil::Date {
    let named = tick.and_then(|name| scheduled.plan.named(&TickName(name.to_owned())));
    let at = named.and_then(|tick| jiff::Timestamp::from_millisecond(tick.due.0).ok());
    let zone = scheduled.plan.zone().and_then(|zone| jiff::tz::TimeZone::get(zone).ok());
    let at = at.unwrap_or_else(jiff::Timestamp::now);
    at.to_zoned(zone.unwrap_or(jiff::tz::TimeZone::UTC)).date()
}

/// Which tick.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    tick: Option<String>,
}

/// What was typed, and why it was not done.
#[derive(Default)]
struct Before {
    typed: Typed,
    refused: Option<WebError>,
}

/// The name of the tick that is open.
async fn open(web: &Web, job: &JobConfig) -> Result<Option<TickName>, WebError> {
    let seen = read_now(web, job).await?;
    let clock = seen.record.clock.as_deref();
    Ok(clock.and_then(Clock::open).map(|open| open.tick.name.clone()))
}

fn of(
    (web, caller): (&Web, &Caller),
    (job, scheduled): (&JobConfig, &Scheduled),
    open: Option<&TickName>,
    before: Option<&Before>,
    tick: Option<String>,
) -> RunPage {
    let lang = caller.language;
    let view = picture(web, caller, job);
    let title = ("title", Arg::from(view.title.as_str()));
    let named = |name: &str| Arg::from(called(lang, &TickName(name.to_owned())));
    let title = match &tick {
        None => say(lang, "run-now-title", &[title]),
        Some(tick) => say(lang, "run-again-title", &[title, ("tick", named(tick))]),
    };
    let nothing = Before::default();
    let Before { typed, refused } = before.unwrap_or(&nothing);
    let error = refused.as_ref().map(|error| error.sentence(lang));
    let today = day(scheduled, tick.as_deref());
    let field = |param: &Param| {
        let default = param.default.as_deref().unwrap_or_default();
        let value = match before.is_some() {
            true => typed.get(&format!("p-{}", param.name)).to_owned(),
            // A field for a day takes a day.
            false => param.value(default, today).unwrap_or_else(|_| default.to_owned()),
        };
        let wrong = before.is_some() && !value.is_empty() && param.value(&value, today).is_err();
        Field::new(param, value, wrong, lang)
    };
    RunPage {
        frame: Frame::of(web, caller, "jobs", format!("/jobs/{}/run", job.name), title),
        error,
        back: format!("/jobs/{}", job.name),
        waits: open.map(|open| say(lang, "run-waits", &[("run", Arg::from(run_of(lang, open)))])),
        seen: open.map(|open| open.0.clone()).unwrap_or_default(),
        request: match typed.get("request") {
            "" => format!("{:032x}", rand::random::<u128>()),
            known => known.to_owned(),
        },
        fields: scheduled.params.iter().map(field).collect(),
        reason: typed.get("reason").to_owned(),
        tick,
    }
}

/// The form.
///
/// # Errors
/// As [`ticks::ask_run`], before anything is filled in.
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    name: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    let Wanted { tick } = query(&request)?;
    ticks::may_run(&caller.actor(), &job)?;
    let (scheduled, open) = (own_schedule(&job)?, open(&web, &job).await?);
    let tick = tick.map(|name| name.replace(' ', "+"));
    let page = of((&web, &caller), (&job, scheduled), open.as_ref(), None, tick);
    Ok(html(&page))
}

/// What was filled in. A field that is left empty has its default; a text may be empty.
fn given(scheduled: &Scheduled, typed: &Typed) -> Params {
    let is_text = |param: &Param| matches!(param.kind, ParamKind::Text { .. });
    let of = |param: &Param| {
        let key = format!("p-{}", param.name);
        let text = match is_text(param) && param.default.is_some() {
            true => typed.raw(&key),
            false => typed.some(&key),
        };
        Some((param.name.clone(), text?.to_owned()))
    };
    scheduled.params.iter().filter_map(of).collect()
}

/// `POST /jobs/{job}/run`.
///
/// # Errors
/// As [`ticks::ask_run`]; what the form can mend stands above the form.
pub async fn run(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    form: web::Form<Vec<(String, String)>>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    let typed = Typed::from(form.into_inner());
    ticks::may_run(&caller.actor(), &job)?;
    let scheduled = own_schedule(&job)?;
    let open = open(&web, &job).await?;
    let tick = typed.some("tick").map(str::to_owned);
    // Another run began while the form was filled in: that this one waits is said first.
    let is_known = open.as_ref().is_none_or(|open| open.0 == typed.get("seen"));
    let ask = RunAsk {
        params: given(scheduled, &typed),
        reason: typed.some("reason").map(str::to_owned),
        request: typed.some("request").map(str::to_owned),
        tick: tick.clone(),
    };
    let refused = match is_known {
        false => None,
        true => match ticks::ask_run(&web.store, &caller.actor(), &job, &ask).await {
            Ok(name) => {
                let name = url::form_urlencoded::byte_serialize(name.0.as_bytes());
                let name: String = name.collect();
                return Ok(seen_other(&format!("/jobs/{}?asked={name}#ticks", job.name)));
            }
            Err(error) => Some(WebError::from(error)),
        },
    };
    let status = refused.as_ref().map_or(StatusCode::CONFLICT, WebError::status_code);
    let before = Before { typed, refused };
    let page = of((&web, &caller), (&job, scheduled), open.as_ref(), Some(&before), tick);
    let mut answer = html(&page);
    *answer.status_mut() = status;
    Ok(answer)
}

/// The tick of a run that is taken back.
#[derive(Debug, Deserialize)]
pub struct Back {
    tick: String,
}

/// `POST /jobs/{job}/take-back`.
///
/// # Errors
/// As [`ticks::take_back`].
pub async fn take_back(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    form: web::Form<Back>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    let tick = TickName(form.into_inner().tick);
    ticks::take_back(&web.store, &caller.actor(), &job, &tick).await?;
    Ok(seen_other(&format!("/jobs/{}#ticks", job.name)))
}
