//! `GET /nodes`, the drain form and the one that forgets a node: who is there, how fresh, what it holds; and everything that is held, by
//! nodes, commands and programs.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::confirm::Confirm;
use super::failover::Failover;
use super::{Frame, done, html};
use crate::auth::Caller;
use crate::error::WebError;
use crate::{Web, acts};
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::placement::departures;
use soloist_domain::time::{StoreTime, millis};
use soloist_ops::nodes;
use soloist_store::leases::{HeldLease, Leases as _};
use soloist_store::nodes::takers;
use soloist_view::DriftView;
use soloist_view::words::{Arg, Language, Piece, clock, day_clock, duration, exactly, phrase, say};
use soloist_view::{HeldLeaseView, LeaseKind, NodeView, VitalsView};

#[derive(Template)]
#[template(path = "pages/nodes.html")]
pub(super) struct NodesPage {
    pub(super) frame: Frame,
    /// The store could not be asked.
    pub(super) unread: bool,
    pub(super) nodes: Vec<NodeRow>,
    /// Everything that is held; `None`: the store could not be asked.
    pub(super) held: Option<Vec<HeldRow>>,
    /// How many more are held than stand there.
    pub(super) more: Option<String>,
    /// Whether the reader may drain.
    pub(super) operator: bool,
    /// How a fail-over is seen here; only for admins, as it names files of this machine.
    pub(super) failover: Option<Failover>,
}

/// One lease.
pub(super) struct HeldRow {
    pub(super) name: String,
    pub(super) is_job: bool,
    pub(super) kind: String,
    pub(super) holder: String,
    pub(super) since: Vec<Piece>,
    pub(super) left: String,
}

impl HeldRow {
    pub(super) fn of(held: &HeldLease, kind: LeaseKind, watched: bool, lang: Language) -> Self {
        let word = match kind {
            LeaseKind::Job => "lease-job",
            LeaseKind::Command => "lease-command",
            LeaseKind::Program => "lease-program",
        };
        Self {
            name: held.name.to_string(),
            is_job: kind == LeaseKind::Job,
            kind: match watched && kind == LeaseKind::Program {
                true => say(lang, "lease-program-watched", &[]),
                false => say(lang, word, &[]),
            },
            holder: held.lease.node.to_string(),
            since: vec![day_clock(held.lease.since)],
            left: duration(lang, held.lease.expires_in),
        }
    }
}

/// Most leases on the page.
const ROWS: usize = 200;

/// What is held and the caller may see; and how many that are more than the page has room for.
async fn held(web: &Web, caller: &Caller) -> Option<(Vec<HeldRow>, usize)> {
    let held = web.store.held().await.ok()?;
    let hidden = web.live.hidden_from(Some(caller));
    let mut seen = held.iter().filter(|held| !hidden.has(held.name.as_str()));
    let is_job = |name: &JobName| web.live.job_named(name.as_str()).is_some();
    let watches = web.watches();
    let is_watched = |name: &JobName, token| watches.iter().any(|watched| watched.has(name, token));
    let row = |held| {
        let view = HeldLeaseView::of(held, is_job, is_watched);
        HeldRow::of(held, view.kind, view.watched, caller.language)
    };
    let rows = seen.by_ref().take(ROWS).map(row).collect();
    Some((rows, seen.count()))
}

/// One node.
pub(super) struct NodeRow {
    pub(super) view: NodeView,
    pub(super) here: bool,
    pub(super) state: &'static str,
    pub(super) word: String,
    pub(super) heard: Vec<Piece>,
    /// Of a lost one: since when, and who took its jobs.
    pub(super) story: Option<Vec<Piece>>,
    /// Of a lost one: what it held, until when, and where it is now.
    pub(super) held: Vec<Vec<Piece>>,
    /// What it defines otherwise than most.
    pub(super) drift: Vec<String>,
    /// Its machine, a name and a value each.
    pub(super) machine: Vec<(String, String)>,
}

impl NodeRow {
    /// `old`: the list could not be read lately, and a node that was alive then may be so no more.
    pub(super) fn of(
        view: NodeView,
        lang: Language,
        here: &str,
        now: Option<StoreTime>,
        old: bool,
    ) -> Self {
        let (state, word) = match (view.alive, view.draining) {
            (false, _) => ("silent", say(lang, "node-silent", &[])),
            (true, _) if old => ("unknown", say(lang, "state-unknown", &[])),
            (true, true) => ("draining", say(lang, "node-draining", &[])),
            (true, false) => ("alive", say(lang, "node-alive", &[])),
        };
        let text = duration(lang, std::time::Duration::from_millis(view.age_ms));
        // A living node reports again every second, so its age does not grow on the page.
        let ago = match now.filter(|_| !view.alive || old) {
            Some(now) => {
                let age = i64::try_from(view.age_ms).unwrap_or(0);
                Piece::Since { ms: now.0.saturating_sub(age), text }
            }
            None => Piece::Text(text),
        };
        let heard = phrase(lang, "heard-ago", &[("ago", ago)]);
        let mut machine: Vec<_> =
            view.vitals.iter().flat_map(|vitals| machine(vitals, lang)).collect();
        if let Some(programs) = view.watched {
            let args = [("n", Arg::from(i64::from(programs)))];
            machine.push((say(lang, "node-lifeline", &[]), say(lang, "node-watches", &args)));
        }
        Self {
            here: view.name == here,
            state,
            word,
            heard,
            story: None,
            held: Vec::new(),
            drift: Vec::new(),
            // How the machine of a silent node was tells nothing of now.
            machine: if view.alive && !old { machine } else { Vec::new() },
            view,
        }
    }
}

/// What a node tells of its machine, in words.
fn machine(vitals: &VitalsView, lang: Language) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if let Some(load) = vitals.load_percent {
        let load = format!("{}.{:02}", load / 100, load % 100);
        let said = match vitals.cores {
            Some(cores) => {
                let args = [("load", Arg::from(load)), ("n", Arg::from(i64::from(cores)))];
                say(lang, "node-load-of", &args)
            }
            None => load,
        };
        facts.push((say(lang, "node-load", &[]), said));
    }
    let rooms = [
        ("node-memory", vitals.free_mb.zip(vitals.memory_mb)),
        ("node-disk", vitals.disk_free_mb.zip(vitals.disk_mb)),
    ];
    for (id, room) in rooms {
        let Some((free, all)) = room else { continue };
        let gigabytes = |mb: u64| format!("{}.{}", mb / 1_024, mb % 1_024 * 10 / 1_024);
        let args = [("free", Arg::from(gigabytes(free))), ("all", gigabytes(all).into())];
        facts.push((say(lang, id, &[]), say(lang, "node-memory-of", &args)));
    }
    if let Some(ahead) = vitals.clock_ahead_ms {
        let by = exactly(lang, std::time::Duration::from_millis(ahead.unsigned_abs()));
        let id = match ahead {
            // The way to the store is in it.
            -250..=250 => "node-clock-right",
            251.. => "node-clock-ahead",
            _ => "node-clock-behind",
        };
        facts.push((say(lang, "node-clock", &[]), say(lang, id, &[("by", by.into())])));
    }
    facts
}

/// What a lost node held, and where that is now.
fn once_held(web: &Web, caller: &Caller, node: &str, now: Option<StoreTime>) -> Vec<Vec<Piece>> {
    let (lang, hidden) = (caller.language, web.live.hidden_from(Some(caller)));
    let holders = web.feed.held();
    let lost =
        web.live.lost_jobs(node).into_iter().filter(|(job, ..)| !hidden.has_job(job.as_str()));
    lost.map(|(job, ended, by)| {
        let until = clock(lang, ended, now.unwrap_or(ended));
        let holder = holders.iter().find(|(held, _)| *held == job).map(|(_, node)| node);
        let args = [("job", Piece::strong(&job)), ("until", until)];
        match holder {
            Some(holder) => {
                let node = ("node", Piece::strong(holder));
                phrase(lang, "node-held-now", &[args.as_slice(), &[node]].concat())
            }
            None => {
                let node = ("node", Piece::strong(&by));
                phrase(lang, "node-held-then", &[args.as_slice(), &[node]].concat())
            }
        }
    })
    .collect()
}

/// What a node defines otherwise than most.
fn drift(web: &Web, caller: &Caller, node: &str) -> Vec<String> {
    let (lang, hidden) = (caller.language, web.live.hidden_from(Some(caller)));
    let jobs = web.live.drift_of(node).into_iter().filter(|(job, _)| !hidden.has_job(job.as_str()));
    jobs.map(|(job, differs)| {
        let keys = DriftView::words(&differs, lang);
        say(lang, "drift-of", &[("job", Arg::from(job.as_str())), ("keys", Arg::from(keys))])
    })
    .collect()
}

/// Shows the nodes.
///
/// # Errors
/// None: the list is the feed's.
pub async fn page(web: web::Data<Web>, caller: Caller) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let title = say(lang, "nodes-title", &[]);
    let frame = Frame::of(&web, &caller, "nodes", "/nodes".to_owned(), title);
    let here = web.config().node.to_string();
    let old = frame.truth.away;
    let read = web.feed.nodes();
    // An old list says when each was last renewed by the clock of now.
    let heard = |name: &str| {
        let node = read.iter().find(|node| node.beat.node.as_str() == name)?;
        Some(frame.now?.since(web.feed.heard(node)?))
    };
    let nodes = NodeView::list(&read, &web.feed.held(), frame.now);
    let nodes = web.live.hidden_from(Some(&caller)).strike(nodes).into_iter().map(|mut node| {
        if let Some(age) = heard(&node.name).filter(|_| old) {
            node.age_ms = millis(age);
        }
        let story = web.live.story(&node.name, lang);
        let held = match node.alive {
            true => Vec::new(),
            false => once_held(&web, &caller, &node.name, frame.now),
        };
        let drift = drift(&web, &caller, &node.name);
        NodeRow { story, held, drift, ..NodeRow::of(node, lang, &here, frame.now, old) }
    });
    let nodes = nodes.collect();
    let (held, more) = held(&web, &caller).await.unzip();
    let more = more.filter(|more| *more > 0);
    let more = more.map(|more| {
        say(lang, "leases-more", &[("count", Arg::Number(i64::try_from(more).unwrap_or(i64::MAX)))])
    });
    let (unread, operator) = (frame.truth.away, caller.is_operator());
    let failover = caller.is_admin().then(|| Failover::of(&web, &caller));
    Ok(html(&NodesPage { unread, nodes, held, more, operator, failover, frame }))
}

/// `on=true|false`; draining is asked back for.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Drain {
    pub on: bool,
    pub confirm: Option<String>,
    pub reason: Option<String>,
}

/// `POST /nodes/{node}/drain`.
///
/// # Errors
/// As [`nodes::drain`].
pub async fn drain(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    node: web::Path<String>,
    form: web::Form<Drain>,
) -> Result<HttpResponse, WebError> {
    if form.on && form.confirm.as_deref() != Some("yes") && caller.is_operator() {
        // A person is not asked whether to do what would be refused.
        nodes::check_drain(&web.store, &caller.actor(), &acts::node(&node)?).await?;
        let lang = caller.language;
        let shown: String = node.chars().take(64).collect();
        let title = say(lang, "drain-title", &[("node", Arg::from(shown.as_str()))]);
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "nodes", "/nodes".to_owned(), title),
            text: drain_text(&web, &caller, &shown),
            action: format!("/nodes/{shown}/drain"),
            fields: vec![("on", "true".to_owned())],
            asks: true,
            yes: say(lang, "drain-yes", &[]),
            no: say(lang, "cancel", &[]),
            back: "/nodes".to_owned(),
        };
        return Ok(confirm.answer());
    }
    let (node, reason) = (acts::node(&node)?, form.reason.as_deref());
    nodes::drain(&web.store, &caller.actor(), &node, form.on, reason).await?;
    Ok(done(&request, "/nodes"))
}

/// What draining `node` does to the jobs it holds: where each is expected to go, and which have nowhere to go.
fn drain_text(web: &Web, caller: &Caller, node: &str) -> String {
    let (lang, hidden) = (caller.language, web.live.hidden_from(Some(caller)));
    let nodes = web.feed.nodes();
    let all = web.feed.held();
    let mut holds: BTreeMap<NodeName, usize> = BTreeMap::new();
    for (_, holder) in &all {
        *holds.entry(holder.clone()).or_default() += 1;
    }
    let jobs: Vec<JobName> = all
        .into_iter()
        .filter(|(job, holder)| holder.as_str() == node && !hidden.has_job(job.as_str()))
        .map(|(job, _)| job)
        .collect();
    let Ok(from) = NodeName::new(node) else { return say(lang, "drain-text", &[]) };
    let goals = departures(&from, &jobs, |job| takers(job, &nodes), holds);
    told_departures(&goals, lang)
}

/// In words, by goal.
fn told_departures(goals: &[(&JobName, Option<NodeName>)], lang: Language) -> String {
    let gap = say(lang, "list-separator", &[]);
    let mut by_goal: BTreeMap<&Option<NodeName>, Vec<&str>> = BTreeMap::new();
    for (job, goal) in goals {
        by_goal.entry(goal).or_default().push(job.as_str());
    }
    let mut said = vec![say(lang, "drain-text", &[])];
    for (goal, mut jobs) in by_goal.into_iter().rev() {
        jobs.sort_unstable();
        let list = ("jobs", Arg::from(jobs.join(&gap)));
        said.push(match goal {
            Some(node) => {
                let n = ("n", Arg::from(i64::try_from(jobs.len()).unwrap_or(i64::MAX)));
                say(lang, "drain-goes", &[n, list, ("node", Arg::from(node.as_str()))])
            }
            None => say(lang, "drain-nowhere", &[list]),
        });
    }
    if goals.is_empty() {
        said.push(say(lang, "drain-nothing", &[]));
    }
    said.join(if lang == Language::En { " " } else { "" })
}

/// Asked back for, as draining is.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Forget {
    pub reason: Option<String>,
    pub confirm: Option<String>,
}

/// `POST /nodes/{node}/forget`.
///
/// # Errors
/// As [`nodes::forget`].
pub async fn forget(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    node: web::Path<String>,
    form: web::Form<Forget>,
) -> Result<HttpResponse, WebError> {
    if form.confirm.as_deref() != Some("yes") && caller.is_operator() {
        let lang = caller.language;
        let shown: String = node.chars().take(64).collect();
        let title = say(lang, "forget-title", &[("node", Arg::from(shown.as_str()))]);
        let mut fields = Vec::new();
        fields.extend(form.reason.clone().map(|reason| ("reason", reason)));
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "nodes", "/nodes".to_owned(), title),
            text: say(lang, "forget-text", &[]),
            action: format!("/nodes/{shown}/forget"),
            fields,
            asks: false,
            yes: say(lang, "forget-yes", &[]),
            no: say(lang, "cancel", &[]),
            back: "/nodes".to_owned(),
        };
        return Ok(confirm.answer());
    }
    let node = acts::node(&node)?;
    nodes::forget(&web.store, &caller.actor(), &node, form.reason.as_deref()).await?;
    Ok(done(&request, "/nodes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_says_where_each_job_goes_and_which_has_nowhere_to_go() {
        let jobs = ["customs", "labels", "outbound"].map(|job| JobName::new(job).unwrap());
        let b = NodeName::new("node-b").ok();
        let goals = [(&jobs[0], b.clone()), (&jobs[1], None), (&jobs[2], b)];
        let said = told_departures(&goals, Language::En);
        assert!(said.contains("2 jobs are expected to go to node-b: customs, outbound."), "{said}");
        assert!(said.contains("labels has nowhere to go"), "{said}");
        let said = told_departures(&goals, Language::Zh);
        assert!(said.contains("2 个任务预计转到 node-b：customs、outbound。"), "{said}");
        assert!(told_departures(&[], Language::En).contains("It holds nothing now."));
        let load = VitalsView {
            load_percent: Some(105),
            cores: Some(2),
            memory_mb: Some(16_384),
            free_mb: Some(1_536),
            disk_mb: Some(102_400),
            disk_free_mb: Some(2_048),
            clock_ahead_ms: Some(-1_500),
        };
        let words: Vec<_> =
            machine(&load, Language::En).into_iter().map(|(_, said)| said).collect();
        assert_eq!(
            words,
            [
                "1.05 on 2 cores",
                "1.5 of 16.0 GiB free",
                "2.0 of 100.0 GiB free",
                "1.5 s behind the store"
            ]
        );
    }
}
