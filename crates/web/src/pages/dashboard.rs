//! `GET /`: the jobs, one row each: all of them, or those that the address asks for.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::{Frame, html, picture, rings, viewer};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::strip::Strip;
use crate::parts::{Row, Summary};
use crate::sieve::{Place, Sieve, Sort};
use soloist_view::JobView;
use soloist_view::words::{Language, say};

#[derive(Template)]
#[template(path = "pages/dashboard.html")]
pub(super) struct Dashboard<'a> {
    pub(super) frame: Frame,
    pub(super) epoch: String,
    pub(super) summary: Summary,
    /// What needs somebody and is no job.
    pub(super) needs: String,
    pub(super) picks: Vec<Choice>,
    pub(super) sieve: Sieve,
    /// There are jobs, shown or not.
    pub(super) any: bool,
    /// May tick rows and act on them together.
    pub(super) operator: bool,
    pub(super) rows: Vec<Placed<'a>>,
}

impl Dashboard<'_> {
    fn only(&self) -> Option<&'static str> {
        self.sieve.only.map(super::super::sieve::Only::as_str)
    }
}

/// A row, and the heading above it if it is the first below that.
pub(super) struct Placed<'a> {
    pub(super) heading: Option<String>,
    pub(super) row: Row<'a>,
}

/// Rows in their order, each with the heading that stands before it.
pub(super) fn placed<'a>(rows: impl Iterator<Item = (Place, Row<'a>)>) -> Vec<Placed<'a>> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|one, two| one.0.cmp(&two.0));
    let mut last: Option<String> = None;
    rows.into_iter()
        .map(|(Place { under, .. }, row)| {
            let other = under != last;
            last.clone_from(&under);
            Placed { heading: under.filter(|_| other), row }
        })
        .collect()
}

/// A field of the form that chooses what is shown.
pub(super) struct Choice {
    pub(super) name: &'static str,
    pub(super) label: String,
    /// Value, word, and whether it is chosen.
    pub(super) options: Vec<(String, String, bool)>,
}

impl Choice {
    /// Which group, where there are groups; and in which order.
    pub(super) fn all<'v>(
        sieve: &Sieve,
        jobs: impl Iterator<Item = &'v JobView>,
        lang: Language,
    ) -> Vec<Self> {
        let mut groups: Vec<&str> = Vec::new();
        for group in jobs.filter_map(|job| job.group.as_deref()) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        let chosen = |group: &str| sieve.group.as_deref() == Some(group);
        let any = (String::new(), say(lang, "sift-any-group", &[]), sieve.group.is_none());
        let named =
            groups.iter().map(|group| ((*group).to_owned(), (*group).to_owned(), chosen(group)));
        let group = Self {
            name: "group",
            label: say(lang, "sift-group", &[]),
            options: std::iter::once(any).chain(named).collect(),
        };
        let order = |sort: Sort| {
            let id = match sort {
                Sort::Need => "sift-sort-need",
                Sort::Name => "sift-sort-name",
                Sort::State => "sift-sort-state",
            };
            (sort.as_str().to_owned(), say(lang, id, &[]), sieve.sort == sort)
        };
        let sort = Self {
            name: "sort",
            label: say(lang, "sift-sort", &[]),
            options: Sort::ALL.into_iter().map(order).collect(),
        };
        [group, sort].into_iter().filter(|choice| choice.options.len() > 1).collect()
    }
}

/// Shows the dashboard.
///
/// # Errors
/// None: a store out of reach is shown, not failed on.
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let sieve = Sieve::of(request.query_string());
    // Before the pictures: what changes meanwhile is told once more.
    let mark = web.live.mark();
    let mut frame =
        Frame::of(&web, &caller, "jobs", sieve.address(sieve.only), say(lang, "nav-jobs", &[]));
    frame.rows = [sieve.query(sieve.only), format!("have={mark}")]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("&");
    let jobs = web.live.jobs_for(&caller);
    let views: Vec<JobView> = jobs.iter().map(|job| picture(&web, &caller, job)).collect();
    let mut rings = rings(&web, &caller, &jobs).await;
    let shown = jobs.iter().zip(&views).enumerate().filter(|(_, (_, view))| sieve.shows(view));
    let rows = placed(shown.map(|(nth, (job, view))| {
        let place = sieve.place(view, nth, lang);
        let row = Row::new(view, viewer(&caller, job, view), lang);
        let hour = web.history.hour(&job.name);
        let strip = hour.map(|(hour, now)| Strip::of(&hour, now, lang));
        let row = row.with_ring(rings.remove(&job.name)).with_strip(strip);
        (place.clone(), row.at(place))
    }));
    let (needs, others) = web.live.needs(lang);
    Ok(html(&Dashboard {
        needs,
        epoch: web.feed.epoch(),
        summary: Summary::new(views.iter(), &sieve, others, lang),
        picks: Choice::all(&sieve, views.iter(), lang),
        any: !views.is_empty(),
        operator: caller.is_operator(),
        rows,
        sieve,
        frame,
    }))
}
