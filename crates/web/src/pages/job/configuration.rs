//! `GET /jobs/{job}/configuration`: how this node defines a job, and which nodes define it otherwise. It only shows: a command is
//! never set from the web.
//!
//! Values of `env` and the places of `secrets` are never shown. The command, which may have a password in it, is shown to those
//! who may operate the job.

use actix_web::{HttpResponse, web};
use askama::Template;

use super::super::{Frame, html};
use super::tabs::Tabs;
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_config::{JobConfig, Repeat};
use soloist_domain::definition::MISSING;
use soloist_store::nodes::NodeRecord;
use soloist_view::DriftView;
use soloist_view::words::{Arg, Language, exactly, say, visible};

#[derive(Template)]
#[template(path = "pages/job_configuration.html")]
pub(in crate::pages) struct ConfigurationPage {
    pub(in crate::pages) frame: Frame,
    pub(in crate::pages) tabs: Tabs,
    /// Only other nodes define it.
    pub(in crate::pages) elsewhere: bool,
    pub(in crate::pages) keys: Vec<Key>,
    pub(in crate::pages) nodes: Vec<Node>,
}

/// A key of `[[job]]`.
pub(in crate::pages) struct Key {
    pub(in crate::pages) name: &'static str,
    /// One piece a line.
    pub(in crate::pages) value: Vec<String>,
    /// Nodes that have another value.
    pub(in crate::pages) others: Option<String>,
}

/// A node and what it says of the job.
pub(in crate::pages) struct Node {
    pub(in crate::pages) name: String,
    pub(in crate::pages) containment: String,
    pub(in crate::pages) said: String,
    pub(in crate::pages) differs: bool,
}

/// Every key in the order of the file, with its value for people; of a job that is defined elsewhere those that nodes tell.
pub(in crate::pages) fn keys(
    job: &JobConfig,
    drift: &[DriftView],
    sees_command: bool,
    lang: Language,
) -> Vec<Key> {
    let word = |id: &str| vec![say(lang, id, &[])];
    let none = || word("config-none");
    let length = |time| vec![exactly(lang, time)];
    let lengths = |time: Option<_>| time.map_or_else(none, length);
    let text = |text: Option<&str>| text.map_or_else(none, |text| vec![shown(text)]);
    let list = |names: &[String]| match names {
        [] => none(),
        [all] if all == "*" => word("config-all"),
        names => names.iter().map(|name| shown(name)).collect(),
    };
    let named = |names: Vec<&String>| match names.is_empty() {
        true => none(),
        false => {
            let hidden = say(lang, "config-hidden", &[]);
            names.iter().map(|name| format!("{} = {hidden}", shown(name))).collect()
        }
    };
    let mut keys = vec![
        ("title", vec![shown(&job.title.en), shown(&job.title.zh)]),
        ("runner", vec![job.runner.as_str().to_owned()]),
        ("group", text(job.group.as_deref())),
        ("lease_ttl", length(job.timing.ttl)),
        ("stop_grace", length(job.stop_grace)),
        ("min_uptime", length(job.backoff.min_uptime)),
        ("max_runtime", lengths(job.max_runtime)),
        ("nodes", list(&job.nodes)),
        ("operators", list(&job.operators)),
        ("viewers", list(&job.viewers)),
        ("rotation", text(job.rotation.as_ref().map(AsRef::as_ref))),
    ];
    // Its address may hold a key.
    let heartbeat = || job.heartbeat_url.as_ref().map_or_else(none, |_| word("config-hidden"));
    if !job.elsewhere && !job.is_external() {
        let command = match sees_command {
            true => job.command.iter().map(|part| shown(part)).collect(),
            false => word("config-operators"),
        };
        let own = [
            ("command", command),
            (
                "dir",
                match sees_command {
                    true => vec![shown(&job.dir.to_string_lossy())],
                    false => word("config-operators"),
                },
            ),
            ("env", named(job.env.keys().collect())),
            ("secrets", named(job.secrets.keys().collect())),
            ("user", text(job.user.as_deref())),
        ];
        keys.splice(3..3, own);
    }
    if !job.elsewhere {
        keys.extend([
            (
                "repeat",
                match job.repeat {
                    Repeat::After(pause) => length(pause),
                    Repeat::Never => word("config-never"),
                },
            ),
            ("backoff", vec![exactly(lang, job.backoff.first), exactly(lang, job.backoff.max)]),
            (
                "give_up_after",
                match job.backoff.give_up_after {
                    0 => word("config-never"),
                    n => vec![n.to_string()],
                },
            ),
            ("max_silence", lengths(job.max_silence)),
            ("heartbeat_url", heartbeat()),
        ]);
    }
    let gap = say(lang, "list-separator", &[]);
    let others = |key: &str| {
        let differ = drift.iter().filter(|one| one.differs.iter().any(|other| other == key));
        let nodes: Vec<&str> = differ.map(|one| one.node.as_str()).collect();
        (!nodes.is_empty()).then(|| nodes.join(&gap))
    };
    keys.into_iter().map(|(name, value)| Key { name, value, others: others(name) }).collect()
}

fn shown(text: &str) -> String {
    visible(text).into_owned()
}

/// The living nodes, and how far each agrees with most.
fn nodes(job: &JobConfig, all: &[NodeRecord], drift: &[DriftView], lang: Language) -> Vec<Node> {
    let living = all.iter().filter(|node| node.is_alive());
    let node = living.map(|node| {
        let name = node.beat.node.as_str();
        let differs = drift.iter().find(|one| one.node == name).map(|one| one.differs.as_slice());
        let said = match differs {
            Some([one]) if one == MISSING => say(lang, "config-missing", &[]),
            Some(keys) => {
                let keys = DriftView::words(keys, lang);
                say(lang, "config-differs", &[("keys", Arg::from(keys))])
            }
            None if node.told.get(&job.name).is_some() => say(lang, "config-agrees", &[]),
            None => say(lang, "config-untold", &[]),
        };
        Node {
            name: name.to_owned(),
            containment: node.beat.containment.clone(),
            said,
            differs: differs.is_some(),
        }
    });
    node.collect()
}

/// Shows the configuration of a job.
///
/// # Errors
/// [`WebError::NotFound`].
pub async fn configuration(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    let (lang, path) = (caller.language, format!("/jobs/{}/configuration", job.name));
    let tabs = Tabs::new(&job, "configuration", lang);
    let frame = Frame::of(&web, &caller, "jobs", path, tabs.title.clone());
    let all = web.feed.nodes();
    let drift = DriftView::of(&job.name, &all);
    Ok(html(&ConfigurationPage {
        frame,
        tabs,
        elsewhere: job.elsewhere,
        keys: keys(&job, &drift, caller.may_switch(&job), lang),
        nodes: nodes(&job, &all, &drift, lang),
    }))
}
