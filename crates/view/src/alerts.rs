//! Alerts and channels as the API, the page and the command line show them: no secret and no address of a channel is in them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::incident::{self, sentence};
use super::undelivered::Undelivered;
use crate::words::{At, Language, Piece, Zone, instants, visible};
use soloist_config::Alerting;
use soloist_domain::alert::{On, When};
use soloist_domain::name::JobName;
use soloist_domain::time::millis;
use soloist_store::alerts::{Book, Incident, Told};

/// Which messages a channel took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SentView {
    /// The channel.
    pub channel: String,
    /// When it took the message that the alert began; null as long as it did not.
    pub begin: Option<At>,
}

/// Of whom an alert is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OnView {
    /// The job, if it is of one.
    pub job: Option<String>,
    /// The node, if it is of one.
    pub node: Option<String>,
    /// The source of tasks, if it is of one.
    pub source: Option<String>,
    /// Since when.
    pub since: At,
    /// Whether the alert is mute now.
    pub muted: bool,
    /// What is so now, in the caller's language: made when it is read.
    pub text: String,
    /// The same for a page.
    #[serde(skip)]
    pub pieces: Vec<Piece>,
    /// By channel, without those that hear of it by another alert of the same job.
    pub sent: Vec<SentView>,
}

/// What was on and is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PastView {
    /// The name of the alert.
    pub alert: String,
    /// The job, if it was of one.
    pub job: Option<String>,
    /// The node, if it was of one.
    pub node: Option<String>,
    /// The source of tasks, if it was of one.
    pub source: Option<String>,
    /// Since when it was on.
    pub since: At,
    /// When it was over.
    pub over: At,
    /// What was told when it began, in the caller's language.
    pub text: String,
    /// The same for a page.
    #[serde(skip)]
    pub pieces: Vec<Piece>,
}

/// An alert, as this node's configuration has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Alert)]
pub struct AlertView {
    /// Its name.
    pub name: String,
    /// What it is about.
    #[schema(example = "wanted_not_running")]
    pub when: String,
    /// How long that lasts before anybody is told.
    pub for_ms: u64,
    /// Which jobs it is about; `*` all.
    pub jobs: Vec<String>,
    /// The channels that are told.
    pub to: Vec<String>,
    /// Of whom it is on now, as far as the caller may see them.
    pub on: Vec<OnView>,
    /// Until when it is mute; null when it is not.
    pub muted_until: Option<At>,
}

/// The newest attempt to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriedView {
    /// When.
    pub at: At,
    /// Whether it was taken.
    pub ok: bool,
    /// What was in the way, in English: for the common kinds the kind, then what was said.
    #[schema(example = "connection refused: error sending request")]
    pub error: Option<String>,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Channel)]
pub struct ChannelView {
    /// Its name.
    pub name: String,
    /// Which way it goes.
    #[schema(example = "webhook")]
    pub kind: String,
    /// The newest attempt to send by it; null when there was none.
    pub last: Option<TriedView>,
    /// Since when it takes nothing, once the other channels are told of that; null while it is well.
    #[serde(default)]
    pub lost_since: Option<At>,
    /// What is so then, for a page.
    #[serde(skip)]
    pub pieces: Vec<Piece>,
}

/// Alerts and channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Alerts)]
pub struct AlertsView {
    /// In the order of the file.
    pub alerts: Vec<AlertView>,
    /// By name.
    pub channels: Vec<ChannelView>,
    /// What is over, as far as the caller may see it; newest first, at most 50.
    pub past: Vec<PastView>,
    /// The node that sends; null while none does.
    pub sender: Option<String>,
}

/// How a test went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tested {
    /// Whether the message was taken.
    pub ok: bool,
    /// What the service answered, or what was in the way.
    pub said: String,
}

/// How many of those that are over are shown.
const PAST_SHOWN: usize = 50;

impl AlertsView {
    /// As `alerting` has them and the store knows them; `past` are those that have left the book, newest end first. What is
    /// of a job of which `hides` is true is left out. `about` says what a job is called and why it is what it is now.
    #[must_use]
    pub fn of(
        alerting: &Alerting,
        book: &Book,
        past: &[Incident],
        hides: impl Fn(&str) -> bool,
        about: impl Fn(&JobName, When) -> Option<(String, Vec<Piece>)>,
        lang: Language,
    ) -> Self {
        let now = |incident: &Incident| now(incident, book, &about, lang);
        let is_mute = |name: &str| book.muted.get(name).is_some_and(|until| *until > book.now);
        let all: Vec<&Incident> = book.on().collect();
        let told: Vec<On> = all.iter().map(|one| one.as_on(is_mute(&one.alert))).collect();
        // Who hears of it by another alert is not waited for.
        let is_told = |incident: &Incident, channel: &str| {
            let its = all.iter().position(|one| one.id == incident.id);
            its.is_some_and(|nth| told[nth].is_told_by_another(&told, channel))
        };
        let zone = alerting.zone.as_deref().and_then(Zone::known);
        let zone = zone.unwrap_or_else(|| Zone::here().clone());
        let is_seen = |incident: &&Incident| {
            incident.subject.job.as_ref().is_none_or(|job| !hides(job.as_str()))
        };
        let alerts = alerting.rules.iter().map(|rule| {
            let muted = book.muted.get(&rule.name).copied().filter(|until| *until > book.now);
            let on = book
                .incidents
                .iter()
                .filter(|incident| incident.alert == rule.name && incident.end.is_none())
                .filter(is_seen)
                .map(|incident| {
                    let mut on = on(incident, muted.is_some(), now(incident), &zone);
                    on.sent.retain(|sent| !is_told(incident, &sent.channel));
                    on
                });
            AlertView {
                name: rule.name.clone(),
                when: rule.when.as_str().to_owned(),
                for_ms: millis(rule.lasting),
                jobs: rule.jobs.iter().filter(|job| !hides(job)).cloned().collect(),
                to: rule.to.clone(),
                on: on.collect(),
                muted_until: muted.map(At),
            }
        });
        let channels = alerting.channels.values().map(|channel| {
            let tried = book.channels.get(&channel.name);
            let lost = tried.and_then(|tried| tried.lost.as_deref());
            let lost = lost.filter(|incident| incident.end.is_none());
            ChannelView {
                name: channel.name.clone(),
                kind: channel.way.kind().to_owned(),
                last: tried.map(|tried| TriedView {
                    at: At(tried.at),
                    ok: tried.ok,
                    error: tried.error.clone(),
                }),
                lost_since: lost.map(|incident| At(incident.since)),
                pieces: lost.map(now).unwrap_or_default(),
            }
        });
        // What some channel has not taken yet is in the book still.
        let mut over: Vec<(&Incident, &Told)> = book
            .incidents
            .iter()
            .chain(past)
            .filter(is_seen)
            .filter_map(|incident| Some((incident, incident.end.as_ref()?)))
            .collect();
        over.sort_by_key(|(_, one)| std::cmp::Reverse(one.at));
        let past = over.into_iter().take(PAST_SHOWN);
        Self {
            alerts: alerts.collect(),
            channels: channels.collect(),
            past: past.map(|(incident, end)| over_view(incident, end, lang)).collect(),
            sender: book.sender.as_ref().map(ToString::to_string),
        }
    }
}

fn text(told: &Told, lang: Language) -> String {
    match lang {
        Language::En => told.en.clone(),
        Language::Zh => told.zh.clone(),
    }
}

/// What is said of an alert that is on, from the facts of this moment.
#[must_use]
pub fn now(
    incident: &Incident,
    book: &Book,
    about: &impl Fn(&JobName, When) -> Option<(String, Vec<Piece>)>,
    lang: Language,
) -> Vec<Piece> {
    let Incident { when, subject, since, .. } = incident;
    let (title, why) = match (&subject.job, &subject.channel) {
        (Some(job), _) => match about(job, *when) {
            Some(known) => known,
            // Of a job that nobody knows here, what was said is all there is.
            None => return instants(&visible(&text(&incident.begin, lang))),
        },
        (None, Some(channel)) => {
            let error = book.channels.get(channel).and_then(|tried| tried.error.as_deref());
            let why = error.map(|error| Piece::text(Undelivered::read(error).worded(lang)));
            (String::new(), why.into_iter().collect())
        }
        (None, None) => Default::default(),
    };
    sentence(lang, true, *when, subject, *since, Some(&title), why)
}

fn on(incident: &Incident, muted: bool, pieces: Vec<Piece>, zone: &Zone) -> OnView {
    let sent = incident.to.iter().map(|channel| SentView {
        channel: channel.clone(),
        begin: incident.sent.get(channel).and_then(|sent| sent.begin).map(At),
    });
    OnView {
        job: incident.subject.job.as_ref().map(ToString::to_string),
        node: incident.subject.node.as_ref().map(ToString::to_string),
        source: incident.subject.source.as_ref().map(ToString::to_string),
        since: At(incident.since),
        muted,
        text: incident::text(&pieces, zone),
        pieces,
        sent: sent.collect(),
    }
}

fn over_view(incident: &Incident, end: &Told, lang: Language) -> PastView {
    PastView {
        alert: incident.alert.clone(),
        job: incident.subject.job.as_ref().map(ToString::to_string),
        node: incident.subject.node.as_ref().map(ToString::to_string),
        source: incident.subject.source.as_ref().map(ToString::to_string),
        since: At(incident.since),
        over: At(end.at),
        pieces: instants(&visible(&text(&incident.begin, lang))),
        text: text(&incident.begin, lang),
    }
}
