//! The composition root: builds everything, lets it run, and shuts it down in order.
//!
//! Order matters twice. At start the store is checked before the port is taken and the heartbeat before any lease, so
//! that a wrong set-up touches nothing. At the end the scripts are handed over first (the others take them at once),
//! then browsers are sent away, then the node leaves the list.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::config::Config;
use crate::dispatch;
use crate::domain::containment::Containment;
use crate::domain::name::NodeName;
use crate::domain::time::StoreTime;
use crate::feed::{Feed, Followed};
use crate::guard::containment::{self, Choice};
use crate::rotation;
use crate::runner::keeper::Keeper;
use crate::runner::leftovers::{self, Swept};
use crate::runner::supervisor::{Mode, Surroundings, supervise};
use crate::runner::{beat, child};
use crate::secrets;
use crate::store::accounts::Accounts;
use crate::store::jobs::Jobs;
use crate::store::nodes::{Beat, Heard, Nodes};
use crate::store::{Options, Store};
use crate::telemetry::Metrics;
use crate::waiting::Room;
use crate::web::{Desks, Web};

/// What a script gets of the node's own environment; everything else stays out, secrets above all.
const PASSED_ON: [&str; 8] =
    ["PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "TMPDIR"];

/// Runs a node until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting, worded for the operator.
pub async fn serve(config: Config) -> anyhow::Result<()> {
    let metrics = Metrics::global();
    let options = store_options(&config, crate::telemetry::observe_store_call);
    let store = Store::connect(&config.store, &options)
        .await
        .with_context(|| format!("cannot use the store {}", without_password(&config.store)))?;
    let about = store.describe().await.context("cannot ask the store what it is")?;
    let listener = TcpListener::bind(config.listen).with_context(|| {
        format!(
            "cannot listen on {}: stop the program that uses it, or choose another with --listen",
            config.listen
        )
    })?;
    let address = listener.local_addr().context("cannot read the listening address")?;
    listener.set_nonblocking(true).context("cannot prepare the listening socket")?;
    let config = Arc::new(with_real_port(config, address.port()));

    child::become_subreaper();
    let containment = contain(&config)?;
    // Before the first word to the store: whoever lives on from an earlier life must not meet a new run of this one.
    let notes = leftovers::notes_of(&config.store, &config.prefix);
    for swept in leftovers::sweep(&notes).context("cannot clear away what an earlier life left")? {
        let Swept { job, run, node, processes } = swept;
        tracing::warn!(%job, %run, %node, processes, "killed what was left of a run whose node and guard were killed");
    }
    let level = containment.level;
    let beat = first_beat(&config, &store, level).await?;
    let (holds_tx, holds) = watch::channel(Vec::new());
    let boot_id = beat.boot.clone();
    let beating = tokio::spawn(beat::go_on(store.clone(), beat, level, holds));

    config.jobs.iter().for_each(|job| metrics.know(&job.name));
    let followed = config.jobs.iter().map(|job| Followed {
        job: job.name.clone(),
        timing: job.timing,
        min_uptime: job.backoff.min_uptime,
        takes_turns: job.rotation.is_some(),
    });
    let feed = Feed::start(store.clone(), followed.collect()).await;
    let keeper = Keeper::start(store.clone(), Arc::clone(&metrics));
    let room = Room::open(store.clone(), &feed, &config.node);
    let work = dispatch::Desk::start(room.clone(), Arc::clone(&metrics));
    let turns = rotation::Desk::start(room.clone(), Arc::clone(&metrics));
    let around = Surroundings {
        store: store.clone(),
        store_url: config.store.clone(),
        prefix: config.prefix.clone(),
        node: config.node.clone(),
        env: script_env(),
        containment,
        keeper,
        turns: turns.clone(),
        metrics: Arc::clone(&metrics),
    };
    let (mode_tx, mode) = watch::channel(Mode::Serve);
    let jobs = config.jobs.clone();
    let supervisor = tokio::spawn(supervise(around, jobs, feed.clone(), holds_tx, mode));

    let web =
        Web::new(store.clone(), feed, Arc::clone(&config), metrics, Desks { room, work, turns });
    let (server, drain) = crate::web::serve(web, listener)?;
    let serving = tokio::spawn(server);
    tracing::info!("scripts are contained by {level}");
    greet(&config, &store, &about.what, about.shared, &about.warnings, &address.to_string())
        .await?;

    wait_for_the_end(&mode_tx, supervisor).await?;
    tracing::info!("every script is handed over; closing connections");
    drain.run().await;
    serving.await.context("the web server broke")?.context("the web server failed")?;
    beating.abort();
    if let Err(error) = store.leave(&config.node, &boot_id).await {
        tracing::debug!(%error, "the node's record is left to fade");
    }
    Ok(())
}

/// How every command connects.
#[must_use]
pub fn store_options(config: &Config, observe: fn(&'static str, Duration)) -> Options {
    Options {
        prefix: config.prefix.clone(),
        longest_lease: config.longest_lease(),
        observe,
        ..Options::default()
    }
}

/// The part of the node's environment that scripts get, with this program's directory first in PATH, so that
/// `soloist fence` is found.
#[must_use]
pub fn script_env() -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, _)| PASSED_ON.contains(&key.as_str()) || key.starts_with("LC_"))
        .collect();
    let own = std::env::current_exe().ok();
    if let Some(dir) = own.as_deref().and_then(|exe| exe.parent()).and_then(|dir| dir.to_str()) {
        let rest = env.get("PATH").cloned();
        let rest = rest.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
        env.insert("PATH".to_owned(), format!("{dir}:{rest}"));
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
    let available = containment::available();
    let choice = available.choose(config.containment).map_err(anyhow::Error::msg)?;
    let better = Containment::ALL.into_iter().filter(|level| *level < choice.level);
    for (level, why) in better.filter_map(|level| Some((level, available.why_not(level)?))) {
        tracing::info!("containment by {level} cannot be had: {why}");
    }
    Ok(choice)
}

async fn first_beat(
    config: &Config,
    store: &Store,
    containment: Containment,
) -> anyhow::Result<Beat> {
    let now = store.snapshot(&[]).await.context("cannot read the store's clock")?.at;
    let own = |job: &&crate::config::JobConfig| job.runs_on(&config.node);
    let beat = Beat {
        node: config.node.clone(),
        boot: format!("{:032x}", rand::random::<u128>()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: StoreTime(now.0),
        containment: containment.to_string(),
        jobs: config.jobs.iter().filter(own).map(|job| job.name.clone()).collect(),
        holds: Vec::new(),
    };
    match beat::first(store, &beat).await.context("cannot report to the store")? {
        Heard::Welcome { .. } => Ok(beat),
        Heard::Duplicate => Err(duplicate(&config.node)),
    }
}

fn duplicate(node: &NodeName) -> anyhow::Error {
    anyhow::anyhow!(
        "another living process reports as node {node}: give each node its own `node` in the configuration, or --node"
    )
}

async fn greet(
    config: &Config,
    store: &Store,
    what: &str,
    shared: bool,
    warnings: &[String],
    address: &str,
) -> anyhow::Result<()> {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    tracing::info!(node = %config.node, store = what, jobs = config.jobs.len(),
        "listening on http://{address}");
    if !shared {
        tracing::info!(
            "one machine, embedded store: no fail-over to another machine (use redis:// for a cluster)"
        );
    }
    if !config.listen.ip().is_loopback() && !config.public_url.starts_with("https://") {
        tracing::warn!(
            "listening beyond loopback while public_url is {}: put TLS in front and set public_url to its https:// address, or passwords travel in the clear",
            config.public_url
        );
    }
    if store.users().await.context("cannot read the accounts")?.is_empty() {
        let link = secrets::new_link(store, None, &config.public_url).await?;
        println!(
            "No account exists yet. Create the first admin here (works once, for 30 minutes):\n\n  {link}\n"
        );
    } else {
        println!("Soloist is at {}", config.public_url);
    }
    Ok(())
}

/// SIGTERM or SIGINT hands every job over; a second one hurries.
async fn wait_for_the_end(
    mode: &watch::Sender<Mode>,
    mut supervisor: tokio::task::JoinHandle<()>,
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    loop {
        tokio::select! {
            ended = &mut supervisor => return ended.context("the supervisor broke"),
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        let hurry = *mode.borrow() != Mode::Serve;
        tracing::info!(hurry, "stopping: handing every job over");
        mode.send_replace(if hurry { Mode::Hurry } else { Mode::HandOver });
    }
}

/// A store URL that may be shown.
#[must_use]
pub fn without_password(url: &str) -> String {
    // The password of sentinels stands there.
    let url = match url.split_once('?') {
        Some((front, _)) if url.starts_with("redis") => front,
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
    use super::without_password;

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
