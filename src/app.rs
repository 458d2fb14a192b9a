//! The composition root: builds everything, lets it run, and shuts it down in order.
//!
//! Order matters twice. At start what an earlier process left is cleared away before the first word to the store, and the
//! heartbeat comes before any lease; the web server begins beside that and lets clients in after it. A store that is away is waited for, with the page open. At the end the scripts are handed over first (the others take them at once),
//! then browsers are sent away, then the node leaves the list.

mod hangup;
mod notify;
mod reload;
mod start;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

pub use self::hangup::block as block_hangups;
use self::hangup::{Asked, Hangups};
use self::notify::Manager;
pub use self::reload::Read;
use self::reload::Reload;
use self::start::{Begun, begin, go_on_when_it_is_there, greet_at_last, stay_ready, unusable};
use soloist_alerts::Alerting;
use soloist_config::{Config, Current};
use soloist_desk::dispatch;
use soloist_desk::rotation;
use soloist_desk::waiting::WaitingRoom;
use soloist_domain::containment::Containment;
use soloist_guard::choice::Choice;
use soloist_guard::containment;
use soloist_guard::descriptors;
use soloist_guard::message::Nursing;
use soloist_lifeline::LifeLine;
use soloist_process::telemetry::Metrics;
use soloist_runner::beat::{self, Offer};
use soloist_runner::child;
use soloist_runner::fitness;
use soloist_runner::keeper::Keeper;
use soloist_runner::leftovers::{self, Swept};
use soloist_runner::node_context::NodeContext;
use soloist_runner::nursery::Nursery;
use soloist_runner::supervisor::{Mode, supervise};
use soloist_store::Options;
use soloist_store::feed::Feed;
use soloist_store::nodes::{Nodes, Watched};
use soloist_web::{Desks, Web, followed};

/// What a script gets of the node's own environment; everything else stays out, secrets above all.
const PASSED_ON: [&str; 8] =
    ["PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "TMPDIR"];

/// Runs a node until it is told to stop. It waits for a store that cannot be reached: until the store is there the node
/// serves what it can and starts nothing.
///
/// # Errors
/// What keeps it from starting, worded for the operator.
pub async fn serve(asked: Config, read: Read) -> anyhow::Result<()> {
    let metrics = Metrics::global();
    let options = store_options(&asked, soloist_process::telemetry::observe_store_call);
    let mut signals = Signals::listen()?;
    // Before anything is opened, and before the cap of connections follows from it.
    let descriptors = descriptors::raise().context("cannot raise the limit of open files")?;
    tracing::debug!(descriptors, "files that this node may have open");
    let config = asked.clone();
    let store = soloist_stores::named(&config.address(), &options)
        .await
        .with_context(|| unusable(&config))?;
    let listener = TcpListener::bind(config.listen).map_err(|error| {
        anyhow::anyhow!("cannot listen on {}: {}", config.listen, why_not(&error))
    })?;
    let address = listener.local_addr().context("cannot read the listening address")?;
    listener.set_nonblocking(true).context("cannot prepare the listening socket")?;
    let config = with_real_port(config, address.port());

    child::become_subreaper();
    // Another process tries what this machine allows; meanwhile this one goes on.
    let wanted = config.containment;
    let env = script_env();
    let path = env.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let trying = tokio::task::spawn_blocking(move || contained(wanted));
    let defining = {
        let (config, path) = (config.clone(), path.clone());
        tokio::task::spawn_blocking(move || (Offer::of(&config), fitness::look(&config, &path)))
    };
    // Before the first call to the store: a script that an earlier process left must not meet a new run of this one.
    let notes = leftovers::notes_of(&config.store, &config.prefix);
    for swept in
        leftovers::sweep(&notes).context("cannot clear away what an earlier process left")?
    {
        let Swept { job, run, node, processes } = swept;
        tracing::warn!(%job, %run, %node, processes, "killed what was left of a run whose node and guard were killed");
    }
    know(&metrics, &config);

    let feed = Feed::idle();
    feed.own(config.node.clone());
    let (follow, following) = watch::channel(followed(&config));
    let keeper = Keeper::start(store.clone(), Arc::clone(&metrics));
    let room = WaitingRoom::open(store.clone(), &feed, &config.node);
    let work = dispatch::ClaimDesk::start(room.clone(), Arc::clone(&metrics));
    let turns = rotation::TurnDesk::start(room.clone(), Arc::clone(&metrics));
    let current = Current::new(config.clone());
    let desks = Desks { room, work, turns: turns.clone() };
    let web = Web::new(store.clone(), feed.clone(), current.clone(), Arc::clone(&metrics), desks);
    let (watched, line) = lifeline_of(&config, &current, &web);
    let (server, drain) = soloist_web::serve(web, listener)?;
    // The web server needs as long to begin as the store does. Clients wait until both have begun.
    drain.hold();
    let serving = tokio::spawn(server);

    let containment = trying.await.context("the look at this machine broke")??;
    let level = containment.level;
    let (offer, unfit) = defining.await.context("the look at the jobs broke")?;
    let (offer, offered) = watch::channel(Arc::new(offer));
    let (unfit, lacking) = watch::channel(Arc::new(unfit));
    let looking = tokio::spawn(fitness::follow(current.clone(), path, unfit));
    let offered = (offered, lacking.clone());
    let said = (level, offered.clone());
    let begun = begin(&config, &store, &options, (&feed, following.clone()), &said).await?;
    let around = NodeContext {
        store: store.clone(),
        store_url: config.address(),
        prefix: config.prefix.clone(),
        node: config.node.clone(),
        env,
        unfit: lacking.clone(),
        nursery: Some(Nursery::start(Nursing {
            node: config.node.clone(),
            containment: containment.clone(),
            store_url: config.address(),
            prefix: config.prefix.clone(),
        })),
        containment,
        keeper,
        turns,
        metrics: Arc::clone(&metrics),
    };
    let month = tokio::spawn(beat::follow_the_month(current.clone(), offer.clone()));
    let mut reload = Reload {
        read,
        asked,
        port: address.port(),
        current: current.clone(),
        followed: follow,
        offer,
        metrics,
        reading: None,
        again: false,
    };
    drain.open();
    let scheme = if config.doors.tls.is_some() { "https" } else { "http" };
    tracing::info!("scripts are contained by {level}");
    tracing::info!(node = %config.node, store = without_password(&config.store),
        jobs = config.jobs.len(), "listening on {scheme}://{address}");
    signals.manager.ready();
    let watching = line.map(|line| tokio::spawn(line.keep()));

    // Also before the store is there: that it is not may be an alert.
    let (end_alerts, alerts_end) = tokio::sync::oneshot::channel();
    let alerting = Alerting::new(store.clone(), feed.clone(), current.clone());
    let alerting = tokio::spawn(alerting.run(alerts_end));

    let mut going_on = std::pin::pin!(async {
        match begun {
            Begun::Beating(beat) => Ok(*beat),
            Begun::Away => {
                let following = (&feed, following);
                go_on_when_it_is_there(&current, &store, &options, following, &said).await
            }
        }
    });
    let beat = loop {
        tokio::select! {
            biased;
            beat = &mut going_on => break beat?,
            examined = reload.read() => reload.take(examined),
            asked = signals.next() => match asked {
                Asked::Reload => reload.begin(),
                Asked::Nothing => {}
                Asked::End => {
                    drain.run().await;
                    return serving.await.context("the web server broke")?.context("the web server failed");
                }
            }
        }
    };
    let holds = watch::Sender::default();
    let boot_id = beat.boot.clone();
    let beating = beat::go_on(store.clone(), beat, level, holds.subscribe(), offered, watched);
    let beating = tokio::spawn(beating);
    let (mode_tx, mode) = watch::channel(Mode::Serve);
    let supervisor =
        tokio::spawn(supervise(around, current.subscribe(), feed.clone(), holds, mode));
    let settling = soloist_runner::ticks::settle(store.clone(), feed.clone(), current.clone());
    let settling = tokio::spawn(settling);
    let greeting = tokio::spawn(greet_at_last(current.clone(), store.clone()));
    let ready = tokio::spawn(stay_ready(store.clone()));

    wait_for_the_end(&mode_tx, &mut signals, &mut reload, supervisor).await?;
    greeting.abort();
    settling.abort();
    month.abort();
    if let Some(watching) = watching {
        watching.abort();
    }
    ready.abort();
    looking.abort();
    // Another node sends from now on.
    drop(end_alerts);
    if let Err(error) = alerting.await {
        tracing::warn!(%error, "the sender of alerts broke");
    }
    tracing::info!("every script is handed over; closing connections");
    drain.run().await;
    serving.await.context("the web server broke")?.context("the web server failed")?;
    beating.abort();
    if let Err(error) = store.leave(&config.node, &boot_id).await {
        tracing::debug!(%error, "the node's record is left to fade");
    }
    Ok(())
}

/// Counts what may become of jobs from zero.
fn know(metrics: &Metrics, config: &Config) {
    for job in &config.jobs {
        metrics.know(&job.name);
        if job.schedule.is_some() {
            metrics.know_ticks(&job.name);
        }
    }
}

/// What this node watches, and the line to its watcher, if the configuration has one.
fn lifeline_of(
    config: &Config,
    current: &Current,
    web: &Web,
) -> (watch::Receiver<Option<Watched>>, Option<LifeLine>) {
    let line = config.lifeline.clone().map(|path| LifeLine {
        path,
        node: config.node.clone(),
        desk: web.leases.clone(),
        config: current.clone(),
        check_token: web.check_token(),
        start: soloist_runner::watcher::start,
    });
    (web.leases.watched().subscribe(), line)
}

/// How every command connects.
#[must_use]
pub fn store_options(config: &Config, observe: fn(&'static str, Duration)) -> Options {
    Options {
        prefix: config.prefix.clone(),
        longest_lease: config.longest_lease(),
        log: config.log,
        observe,
        ..Options::default()
    }
}

/// The part of the node's environment that scripts get, with this program's directory first in PATH, so that
/// `soloist fence` is found.
#[must_use]
pub fn script_env() -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = std::env::vars_os()
        .filter(|(key, _)| {
            let key = key.to_str().unwrap_or_default();
            PASSED_ON.contains(&key) || key.starts_with("LC_")
        })
        .collect();
    let own = std::env::current_exe().ok();
    if let Some(dir) = own.as_deref().and_then(|exe| exe.parent()) {
        let path = OsString::from("PATH");
        let mut all = dir.as_os_str().to_owned();
        all.push(":");
        all.push(env.get(&path).map_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"), |rest| rest));
        env.insert(path, all);
    }
    env
}

/// `--listen 127.0.0.1:0` takes any free port; the public address follows when it was derived from it.
fn with_real_port(mut config: Config, port: u16) -> Config {
    if config.listen.port() == 0 {
        config.listen.set_port(port);
        if config.public_url.ends_with(":0") {
            config.public_url = format!("{}{port}", config.public_url.trim_end_matches('0'));
        }
    }
    config
}

/// What guards of this process are told about containment: what the configuration demands, or the strongest that works.
///
/// # Errors
/// When what it demands does not work here, with the remedy.
pub fn contain(config: &Config) -> anyhow::Result<Choice> {
    contained(config.containment)
}

/// As [`contain`], with the level that is `wanted`, or else the best.
///
/// # Errors
/// As [`contain`].
pub fn contained(wanted: Option<Containment>) -> anyhow::Result<Choice> {
    let available = containment::available();
    let choice = available.choose(wanted).map_err(anyhow::Error::msg)?;
    let better = Containment::ALL.into_iter().filter(|level| *level < choice.level);
    for (level, why) in better.filter_map(|level| Some((level, available.why_not(level)?))) {
        tracing::info!("containment by {level} cannot be had: {why}");
    }
    Ok(choice)
}

/// Why an address cannot be listened on, and what to do about it.
fn why_not(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => {
            "another program uses it: stop that, or choose another port with --listen".to_owned()
        }
        ErrorKind::AddrNotAvailable => {
            "this machine has no such address: name one of its own with --listen, or 0.0.0.0 for all of them"
                .to_owned()
        }
        ErrorKind::PermissionDenied => {
            "this user may not use that port: choose one from 1024 with --listen, or give the program CAP_NET_BIND_SERVICE"
                .to_owned()
        }
        _ => format!("{error}: choose another address with --listen"),
    }
}

/// What a node is asked by signals.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangups: Hangups,
    manager: Manager,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
            hangups: Hangups::listen().context("cannot listen for SIGHUP")?,
            manager: Manager::of_environment(),
        })
    }

    /// The next one; that this node is to end is passed on to the service manager.
    async fn next(&mut self) -> Asked {
        let asked = tokio::select! {
            _ = self.terminate.recv() => Asked::End,
            _ = self.interrupt.recv() => Asked::End,
            asked = self.hangups.next() => {
                if asked == Asked::End {
                    tracing::warn!("the terminal is gone");
                }
                asked
            }
        };
        if asked == Asked::End {
            self.manager.stopping();
        }
        asked
    }
}

/// SIGTERM, SIGINT and the end of the terminal hand every job over; a second one hurries. SIGHUP reloads.
async fn wait_for_the_end(
    mode: &watch::Sender<Mode>,
    signals: &mut Signals,
    reload: &mut Reload,
    mut supervisor: tokio::task::JoinHandle<()>,
) -> anyhow::Result<()> {
    loop {
        let asked = tokio::select! {
            ended = &mut supervisor => return ended.context("the supervisor broke"),
            examined = reload.read(), if *mode.borrow() == Mode::Serve => {
                reload.take(examined);
                continue;
            }
            asked = signals.next() => asked,
        };
        let now = *mode.borrow();
        match (asked, now) {
            (Asked::Nothing, _) => {}
            (Asked::Reload, Mode::Serve) => reload.begin(),
            (Asked::Reload, _) => {
                tracing::info!("this node is ending: the configuration is not read again")
            }
            (Asked::End, _) => {
                let hurry = now != Mode::Serve;
                tracing::info!(hurry, "stopping: handing every job over");
                mode.send_replace(if hurry { Mode::Hurry } else { Mode::HandOver });
            }
        }
    }
}

/// A store URL that may be shown.
#[must_use]
pub fn without_password(url: &str) -> String {
    // The password of sentinels stands there, and any of PostgreSQL may.
    let url = match url.split_once('?') {
        Some((front, _)) if !url.starts_with("sqlite") => front,
        _ => url,
    };
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}{}", &url[..scheme + 3], &url[at + 1..])
        }
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::{why_not, without_password};

    #[test]
    fn each_reason_not_to_listen_has_its_own_remedy() {
        for (kind, remedy) in [
            (ErrorKind::AddrInUse, "stop that"),
            (ErrorKind::AddrNotAvailable, "name one of its own"),
            (ErrorKind::PermissionDenied, "CAP_NET_BIND_SERVICE"),
        ] {
            let why = why_not(&kind.into());
            assert!(why.contains(remedy) && why.contains("--listen"), "{why}");
        }
    }

    #[test]
    fn a_store_url_is_shown_without_any_password() {
        for (url, shown) in [
            ("redis://u:p@ss@h:1/0", "redis://h:1/0"),
            ("redis+sentinel://:p@a,b/jobs?sentinel_password=x@y", "redis+sentinel://a,b/jobs"),
            ("sqlite:/data/a?b.db", "sqlite:/data/a?b.db"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
