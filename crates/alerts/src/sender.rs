//! Watches on every node, decides and sends on one.
//!
//! The node with the sender's seat in the store records what begins and ends, then sends, one message at a time for each channel, and
//! records what was accepted. When it dies, another node acquires the seat within seconds and continues from the records: a message may
//! come twice, none is lost. Each node reports an unreachable store for itself, from memory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::task::JoinSet;

use super::channel::{self, Kind, Message, Text};
use super::heartbeat::{self, Heartbeats};
use super::sight::{Picture, overdue, page, worded, zone};
use soloist_config::{Channel, Config, Current};
use soloist_domain::alert::{Begin, Holds, Mark, On, Rule, Sight, Subject, Watch, When};
use soloist_domain::name::{NodeName, SourceName};
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;
use soloist_store::alerts::{Alerts as _, Book, Incident, Noted, Sent, Told, Tried};
use soloist_store::feed::Feed;
use soloist_store::{Result, Store};
use soloist_view::words::{Language, iso};

/// How often a node looks.
const TICK: Duration = Duration::from_millis(500);
/// How long the seat is kept without being renewed.
const SEAT: Duration = Duration::from_secs(5);
/// How often it is renewed or asked for.
const SEAT_EVERY: Duration = Duration::from_secs(2);
/// How often tasks are examined.
const TASKS_EVERY: Duration = Duration::from_secs(5);
/// Pauses between two attempts: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// More incidents are not kept: the oldest that is over and that some channel does not take goes first.
const KEPT: usize = 500;

/// A message on its way, and its outcome.
struct Delivery {
    letter: Letter,
    result: channel::Result<String>,
}

/// Which message of which incident by which channel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Letter {
    channel: String,
    incident: String,
    is_end: bool,
}

/// The task of a node; ends when it is dropped.
pub struct Alerting {
    store: Store,
    feed: Feed,
    config: Current,
    node: NodeName,
    boot: String,
    /// Of the cluster.
    watch: Watch,
    /// Of this node's way to the store.
    cut: Watch,
    seat_until: Boot,
    seat_asked: Option<Boot>,
    tasks_read: Option<Boot>,
    overdue: Vec<(SourceName, StoreTime)>,
    /// As of the newest reading.
    book: Book,
    /// Of this node alone.
    own: Vec<Incident>,
    /// What was taken and is not written down yet.
    taken: BTreeMap<Letter, StoreTime>,
    tried: BTreeMap<String, Tried>,
    /// Attempts that failed, and when the next one may be.
    failed: BTreeMap<Letter, (u32, Boot)>,
    busy: BTreeSet<String>,
    sending: JoinSet<Delivery>,
    heartbeats: Heartbeats,
}

/// The id of a message.
#[must_use]
pub fn id_of_message() -> String {
    format!("msg_{:032x}", rand::random::<u128>())
}

impl Alerting {
    /// Nothing is watched before [`Alerting::run`].
    #[must_use]
    pub fn new(store: Store, feed: Feed, config: Current) -> Self {
        let node = config.get().node.clone();
        Self {
            store,
            feed,
            config,
            node,
            boot: format!("{:016x}", rand::random::<u64>()),
            watch: Watch::default(),
            cut: Watch::default(),
            seat_until: Boot(0),
            seat_asked: None,
            tasks_read: None,
            overdue: Vec::new(),
            book: Book::default(),
            own: Vec::new(),
            taken: BTreeMap::new(),
            tried: BTreeMap::new(),
            failed: BTreeMap::new(),
            busy: BTreeSet::new(),
            sending: JoinSet::new(),
            heartbeats: Heartbeats::default(),
        }
    }

    /// Watches and sends until `end`; then the seat is given up, so that another node has it at once.
    pub async fn run(mut self, mut end: tokio::sync::oneshot::Receiver<()>) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = &mut end => break,
                _ = tick.tick() => {}
                Some(done) = self.sending.join_next() => match done {
                    Ok(outcome) => self.settle(outcome),
                    // It can only have been ended with everything else.
                    Err(error) => {
                        tracing::error!(%error, "a message of an alert was not sent to its end");
                        self.busy.clear();
                    }
                }
            }
            let config = self.config.get();
            if let Err(error) = self.turn(&config).await {
                tracing::debug!(%error, "alerts wait for the store");
            }
            self.send(&config);
        }
        if self.seat_until > clock::boot()
            && let Err(error) = self.store.stop_sending(&self.node, &self.boot).await
        {
            tracing::debug!(%error, "the seat of the sender of alerts is left to lapse");
        }
    }

    fn has_seat(&self) -> bool {
        self.seat_until > clock::boot()
    }

    async fn turn(&mut self, config: &Config) -> Result<()> {
        let is_own = |rule: &&Rule| rule.when == When::StoreLost;
        let (own, rules): (Vec<&Rule>, Vec<&Rule>) = config.alerting.rules.iter().partition(is_own);
        self.look_at_store(config, &own);
        // Nobody needs the look at all jobs then. With 1,000 jobs it took more than a third of an idle node's time.
        let idle = rules.is_empty();
        if idle {
            self.watch = Watch::default();
        }
        if idle && !heartbeat::any(config) {
            return Ok(());
        }
        let picture = if idle { None } else { Picture::take(&self.feed, config) };
        if let Some(picture) = &picture {
            self.watch.look(&picture.sight(&self.overdue));
        }
        if self.feed.trouble().is_some() {
            return Ok(());
        }
        let now = clock::boot();
        if self.seat_asked.is_none_or(|asked| now.since(asked) >= SEAT_EVERY) {
            self.seat_asked = Some(now);
            let had = self.has_seat();
            let has = self.store.keep_sending(&self.node, &self.boot, SEAT).await?;
            self.seat_until = if has { now + SEAT } else { Boot(0) };
            if has && !had {
                tracing::info!("this node sends the alerts and heartbeats of the cluster");
            }
        }
        if !self.has_seat() {
            self.taken.retain(|letter, _| self.own.iter().any(|own| own.id == letter.incident));
            return Ok(());
        }
        self.heartbeats.beat(config, &self.feed);
        if idle {
            return Ok(());
        }
        let about_tasks = rules.iter().any(|rule| rule.when == When::OverdueClaims);
        if about_tasks && self.tasks_read.is_none_or(|read| now.since(read) >= TASKS_EVERY) {
            self.tasks_read = Some(now);
            self.overdue = overdue(&self.store).await?;
        }
        self.book = self.store.alert_book().await?;
        let noted = self.decide(config, &rules, picture.as_ref());
        if noted == Noted::default() {
            return Ok(());
        }
        if !self.store.note_alerts(&self.node, &self.boot, &noted).await? {
            self.seat_until = Boot(0);
            return Ok(());
        }
        self.written(noted);
        Ok(())
    }

    /// The store has it: from here on the book says so.
    fn written(&mut self, noted: Noted) {
        for incident in noted.incidents {
            match self.book.incidents.iter_mut().find(|known| known.id == incident.id) {
                Some(known) => *known = incident,
                None => self.book.incidents.push(incident),
            }
        }
        let is_past = |id: &str| noted.past.iter().any(|past| past.id == id);
        self.book.incidents.retain(|incident| !is_past(&incident.id));
        self.book.channels.extend(noted.channels.clone());
        self.taken.retain(|letter, _| self.own.iter().any(|own| own.id == letter.incident));
        self.tried.clear();
        let known = |letter: &Letter| self.all(true).any(|incident| incident.id == letter.incident);
        let gone: Vec<Letter> =
            self.failed.keys().filter(|letter| !known(letter)).cloned().collect();
        for letter in gone {
            self.failed.remove(&letter);
        }
    }

    /// Everything that may have to be told: of the cluster, of channels and of this node; without a seat only the last.
    fn all(&self, has_seat: bool) -> impl Iterator<Item = &Incident> {
        let lost = self.book.channels.values().filter_map(|tried| tried.lost.as_deref());
        let of_cluster = self.book.incidents.iter().chain(lost).filter(move |_| has_seat);
        of_cluster.chain(&self.own)
    }

    /// What is to be written: what begins, what is over, what was taken, what is done.
    fn decide(&self, config: &Config, rules: &[&Rule], picture: Option<&Picture>) -> Noted {
        let mut incidents = self.book.incidents.clone();
        let mut changed = BTreeSet::new();
        for (letter, at) in &self.taken {
            let found = incidents.iter_mut().find(|incident| incident.id == letter.incident);
            if let Some(incident) = found {
                mark(incident, letter, *at);
                changed.insert(incident.id.clone());
            }
        }
        if let Some(picture) = picture {
            let on: Vec<usize> =
                (0..incidents.len()).filter(|nth| incidents[*nth].end.is_none()).collect();
            let told: Vec<On> = on.iter().map(|nth| self.told(&incidents[*nth])).collect();
            let changes = self.watch.changes(rules, &told, picture.now());
            for nth in changes.end {
                let incident = &mut incidents[on[nth]];
                end(config, incident, picture.now(), Some(picture));
                // Who was not told that it began is not told that it is over.
                let mute = told[nth].muted;
                let sent = &incident.sent;
                incident.to.retain(|channel| {
                    sent.get(channel).is_some_and(|sent| sent.begin.is_some())
                        || !(mute || told[nth].is_told_by_another(&told, channel))
                });
                changed.insert(incident.id.clone());
            }
            for begun in changes.begin {
                let incident = begin(config, rules, &begun, picture.now(), Some(picture));
                changed.insert(incident.id.clone());
                incidents.push(incident);
            }
        }
        let mut gone: Vec<String> = incidents
            .iter()
            .filter(|incident| is_done(incident, config))
            .map(|incident| incident.id.clone())
            .collect();
        let over = incidents.len().saturating_sub(KEPT + gone.len());
        let old = incidents
            .iter()
            .filter(|incident| incident.end.is_some() && !gone.contains(&incident.id));
        let old: Vec<String> = old.take(over).map(|incident| incident.id.clone()).collect();
        for id in old {
            tracing::error!(
                id,
                "an alert that is over is forgotten before every channel took it: there are too many"
            );
            gone.push(id);
        }
        let (past, rest): (Vec<_>, Vec<_>) =
            incidents.into_iter().partition(|incident| gone.contains(&incident.id));
        let incidents =
            rest.into_iter().filter(|incident| changed.contains(&incident.id)).collect();
        Noted { incidents, past, channels: self.channels(config) }
    }

    /// What is recorded of channels: the outcome of sending, and that one accepts nothing, which the others report once.
    fn channels(&self, config: &Config) -> BTreeMap<String, Tried> {
        let now = self.now();
        let mut changed = self.tried.clone();
        for (name, known) in &self.book.channels {
            let tried = self.tried.get(name).unwrap_or(known);
            let mut lost = known.lost.clone();
            for (letter, at) in &self.taken {
                if let Some(incident) = lost.as_mut().filter(|one| one.id == letter.incident) {
                    mark(incident, letter, *at);
                }
            }
            let is_there = config.alerting.channels.contains_key(name);
            let failing = tried.failing.filter(|_| is_there && !tried.ok);
            match (&mut lost, failing) {
                (None, Some(since)) if now.since(since) >= When::ChannelLost.lasting() => {
                    lost = Some(Box::new(lost_channel(config, name, since, now)));
                }
                (Some(incident), None) if incident.end.is_none() => {
                    end(config, incident, now, None);
                    let sent = &incident.sent;
                    incident.to.retain(|channel| {
                        sent.get(channel).is_some_and(|sent| sent.begin.is_some())
                    });
                }
                _ => {}
            }
            lost = lost.filter(|incident| !is_done(incident, config));
            if lost != known.lost || self.tried.contains_key(name) {
                changed.insert(name.clone(), Tried { lost, ..tried.clone() });
            }
        }
        changed
    }

    /// Whether this node reaches the store: told from memory.
    fn look_at_store(&mut self, config: &Config, rules: &[&Rule]) {
        let now = self.now();
        let cut_off = self.feed.outage().map(|outage| {
            let lasted = clock::boot().since(outage.since);
            (self.node.clone(), now - lasted)
        });
        self.cut.look(&Sight { now, cut_off, ..Sight::default() });
        let on: Vec<usize> =
            (0..self.own.len()).filter(|nth| self.own[*nth].end.is_none()).collect();
        let told: Vec<On> = on.iter().map(|nth| self.told(&self.own[*nth])).collect();
        let changes = self.cut.changes(rules, &told, now);
        for nth in changes.end {
            end(config, &mut self.own[on[nth]], now, None);
        }
        for begun in changes.begin {
            self.own.push(begin(config, rules, &begun, now, None));
        }
        for (letter, at) in &self.taken {
            let found = self.own.iter_mut().find(|incident| incident.id == letter.incident);
            if let Some(incident) = found {
                mark(incident, letter, *at);
            }
        }
        self.own.retain(|incident| !is_done(incident, config));
    }

    /// The store's clock, or this machine's before the store's first answer.
    fn now(&self) -> StoreTime {
        let known = self.feed.store_time(clock::boot());
        known.unwrap_or_else(|| StoreTime(jiff::Timestamp::now().as_millisecond()))
    }

    fn is_muted(&self, alert: &str) -> bool {
        self.book.muted.get(alert).is_some_and(|until| *until > self.now())
    }

    /// An alert that is on, as the rules see it.
    fn told(&self, incident: &Incident) -> On {
        let mut on = incident.as_on(self.is_muted(&incident.alert));
        let begins = self.taken.keys().filter(|letter| !letter.is_end);
        let its = begins.filter(|letter| letter.incident == incident.id);
        on.heard.extend(its.map(|letter| letter.channel.clone()));
        on
    }

    /// Starts what can be sent now.
    fn send(&mut self, config: &Config) {
        for (letter, channel, message) in self.due(config, self.has_seat()) {
            self.busy.insert(letter.channel.clone());
            self.sending.spawn(async move {
                let result = channel::send(&channel.way, &message).await;
                Delivery { letter, result }
            });
        }
    }

    /// What can be sent now: by each channel one message at a time, of each alert in order.
    fn due(&self, config: &Config, has_seat: bool) -> Vec<(Letter, Channel, Message)> {
        let now = clock::boot();
        let all: Vec<&Incident> = self.all(has_seat).collect();
        let on = all.iter().filter(|incident| incident.end.is_none());
        let on: Vec<On> = on.map(|incident| self.told(incident)).collect();
        let by_another = |incident: &Incident, channel: &str| {
            let mut its =
                on.iter().filter(|on| on.alert == incident.alert && on.subject == incident.subject);
            incident.end.is_none() && its.any(|one| one.is_told_by_another(&on, channel))
        };
        let mut chosen = Vec::new();
        for channel in config.alerting.channels.values() {
            if self.busy.contains(&channel.name) {
                continue;
            }
            let mut behind: BTreeSet<(&str, &Subject)> = BTreeSet::new();
            for incident in all.iter().filter(|incident| incident.to.contains(&channel.name)) {
                let Some(letter) = self.next(incident, channel) else { continue };
                let is_first = behind.insert((&incident.alert, &incident.subject));
                let is_due = self.failed.get(&letter).is_none_or(|(_, at)| *at <= now);
                let is_mute = !letter.is_end
                    && (self.is_muted(&incident.alert) || by_another(incident, &channel.name));
                if is_first && is_due && !is_mute {
                    chosen.push((
                        letter.clone(),
                        channel.clone(),
                        message(incident, letter.is_end),
                    ));
                    break;
                }
            }
        }
        chosen
    }

    /// The next message of an incident that a channel did not take; `None` when there is none yet.
    fn next(&self, incident: &Incident, channel: &Channel) -> Option<Letter> {
        let letter = |is_end| Letter {
            channel: channel.name.clone(),
            incident: incident.id.clone(),
            is_end,
        };
        let sent = incident.sent.get(&channel.name).copied().unwrap_or_default();
        let (begin, end) = (letter(false), letter(true));
        if sent.begin.is_none() && !self.taken.contains_key(&begin) {
            return Some(begin);
        }
        let is_open = sent.end.is_none() && !self.taken.contains_key(&end);
        (incident.end.is_some() && is_open).then_some(end)
    }

    fn settle(&mut self, outcome: Delivery) {
        let Delivery { letter, result } = outcome;
        self.busy.remove(&letter.channel);
        let at = self.now();
        let (ok, error) = match result {
            Ok(said) => {
                tracing::debug!(channel = letter.channel, said, "a message of an alert was taken");
                (true, None)
            }
            Err(why) => (false, Some(why.to_string())),
        };
        let known = self.tried.get(&letter.channel).or(self.book.channels.get(&letter.channel));
        let failing = known.and_then(|known| known.failing).or(Some(at)).filter(|_| !ok);
        let lost = known.and_then(|known| known.lost.clone());
        let tried = Tried { at, ok, error: error.clone(), failing, lost };
        self.tried.insert(letter.channel.clone(), tried);
        if ok {
            self.failed.remove(&letter);
            self.taken.insert(letter, at);
            return;
        }
        let failures = self.failed.get(&letter).map_or(0, |(failures, _)| *failures);
        let pause =
            PAUSE.0.saturating_mul(1u32.checked_shl(failures).unwrap_or(u32::MAX)).min(PAUSE.1);
        tracing::warn!(
            channel = letter.channel,
            error,
            again_in = ?pause,
            "a message of an alert was not taken"
        );
        self.failed.insert(letter, (failures.saturating_add(1).min(16), clock::boot() + pause));
    }
}

fn mark(incident: &mut Incident, letter: &Letter, at: StoreTime) {
    let sent: &mut Sent = incident.sent.entry(letter.channel.clone()).or_default();
    match letter.is_end {
        true => sent.end = Some(at),
        false => sent.begin = Some(at),
    }
}

/// Over, and every channel that there is took it.
fn is_done(incident: &Incident, config: &Config) -> bool {
    let took = |channel: &String| {
        let sent = incident.sent.get(channel);
        sent.is_some_and(|sent| sent.begin.is_some() && sent.end.is_some())
            || !config.alerting.channels.contains_key(channel)
    };
    incident.end.is_some() && incident.to.iter().all(took)
}

fn begin(
    config: &Config,
    rules: &[&Rule],
    begun: &Begin,
    now: StoreTime,
    picture: Option<&Picture>,
) -> Incident {
    let Begin { alert, when, subject, mark } = begun.clone();
    let zone = zone(config);
    let say = |lang| worded(lang, true, (when, &subject, mark.since), &zone, picture);
    let (en, zh) = (say(Language::En), say(Language::Zh));
    tracing::warn!(alert, "alert: {en}");
    let rule = rules.iter().find(|rule| rule.name == alert);
    Incident {
        id: format!("{:013x}{:016x}", now.0.max(0), rand::random::<u64>()),
        url: page(&config.public_url, &subject),
        to: rule.map(|rule| rule.to.clone()).unwrap_or_default(),
        begin: Told { id: id_of_message(), at: now, en, zh },
        end: None,
        sent: BTreeMap::new(),
        since: mark.since,
        print: mark.print,
        alert,
        when,
        subject,
    }
}

/// A channel has taken nothing since an instant: all others are to be told, without any rule.
fn lost_channel(config: &Config, name: &str, since: StoreTime, now: StoreTime) -> Incident {
    let when = When::ChannelLost;
    let subject = Subject { channel: Some(name.to_owned()), ..Subject::default() };
    let mark = Mark { since, print: String::new(), holds: Holds::Begins };
    let begun = Begin { alert: when.as_str().to_owned(), when, subject, mark };
    let others = config.alerting.channels.keys().filter(|other| *other != name);
    let to = others.cloned().collect();
    Incident { to, ..begin(config, &[], &begun, now, None) }
}

fn end(config: &Config, incident: &mut Incident, now: StoreTime, picture: Option<&Picture>) {
    let Incident { when, subject, since, alert, .. } = &*incident;
    let zone = zone(config);
    let say = |lang| worded(lang, false, (*when, subject, *since), &zone, picture);
    let (en, zh) = (say(Language::En), say(Language::Zh));
    tracing::info!(alert, "alert: {en}");
    incident.end = Some(Told { id: id_of_message(), at: now, en, zh });
}

fn message(incident: &Incident, is_end: bool) -> Message {
    let told = incident.end.as_ref().filter(|_| is_end).unwrap_or(&incident.begin);
    Message {
        id: told.id.clone(),
        kind: if is_end { Kind::End } else { Kind::Begin },
        alert: incident.alert.clone(),
        job: incident.subject.job.as_ref().map(ToString::to_string),
        node: incident.subject.node.as_ref().map(ToString::to_string),
        channel: incident.subject.channel.clone(),
        since: iso(incident.since),
        text: Text { en: told.en.clone(), zh: told.zh.clone() },
        url: incident.url.clone(),
    }
}

#[cfg(test)]
mod tests;
