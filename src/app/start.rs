//! The first words of a node to its store, and to the person who started it. It waits for a store that is away.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::watch;

use super::without_password;
use soloist_config::{Config, Current};
use soloist_domain::containment::Containment;
use soloist_domain::name::NodeName;
use soloist_domain::time::StoreTime;
use soloist_ops::external::unclaimed;
use soloist_process::outlet::STDOUT;
use soloist_runner::beat::{self, Offered};
use soloist_secrets as secrets;
use soloist_store::accounts::Accounts;
use soloist_store::feed::{Feed, Followed};
use soloist_store::jobs::Jobs;
use soloist_store::nodes::{Beat, Heard};
use soloist_store::{For, Options, Store, StoreError};

/// How often a store is tried again that was away at the start.
const TRY_AGAIN: Duration = Duration::from_millis(250);
/// How often the connections for a take-over are used at least.
const READY_EVERY: Duration = Duration::from_secs(10);

/// What a node says of itself beside its name: how well it contains scripts, and what it may run.
pub(super) type Said = (Containment, Offered);

/// What came of the first words to the store.
pub(super) enum Begun {
    /// This node is known to the others and follows what they do.
    Beating(Box<Beat>),
    /// The store cannot be reached.
    Away,
}

/// Opens the store, says who we are, and begins to follow all changes in the cluster.
///
/// # Errors
/// What is wrong with the store and time does not mend; that it cannot be reached is none.
pub(super) async fn begin(
    config: &Config,
    store: &Store,
    options: &Options,
    (feed, followed): (&Feed, watch::Receiver<Vec<Followed>>),
    said: &Said,
) -> anyhow::Result<Begun> {
    let beginning = async {
        store.open(options).await.with_context(|| unusable(config))?;
        first_beat(config, store, said).await
    };
    let beat = match beginning.await {
        Ok(beat) => beat,
        Err(error) => {
            let why = error.chain().find_map(|cause| match cause.downcast_ref::<StoreError>() {
                Some(StoreError::Unavailable(why)) => Some(why.clone()),
                _ => None,
            });
            let Some(why) = why else { return Err(error) };
            if store.refuses_login().await {
                return Err(error);
            }
            if feed.still_away(why.clone()) {
                tracing::error!(
                    "the store {} cannot be reached: {why}. Start it, or correct `store` and start again; until it is there this node starts nothing and shows every job as unknown, then it goes on by itself",
                    without_password(&config.store)
                );
            }
            return Ok(Begun::Away);
        }
    };
    feed.begin(store.clone(), followed).await;
    Ok(Begun::Beating(Box::new(beat)))
}

/// Keeps the store ready for a take-over: connections are open, and a server that was restarted knows the scripts again.
pub(super) async fn stay_ready(store: Store) {
    loop {
        if let Err(error) = store.be_ready(For::TakingOver).await {
            tracing::debug!(%error, "the store is not ready for a take-over");
        }
        tokio::time::sleep(READY_EVERY).await;
    }
}

/// As [`begin`], as often as it takes.
pub(super) async fn go_on_when_it_is_there(
    config: &Current,
    store: &Store,
    options: &Options,
    (feed, followed): (&Feed, watch::Receiver<Vec<Followed>>),
    said: &Said,
) -> anyhow::Result<Beat> {
    loop {
        tokio::time::sleep(TRY_AGAIN).await;
        let (now, following) = (config.get(), (feed, followed.clone()));
        if let Begun::Beating(beat) = begin(&now, store, options, following, said).await? {
            tracing::info!("the store is there: this node goes on");
            return Ok(*beat);
        }
    }
}

pub(super) fn unusable(config: &Config) -> String {
    format!("cannot use the store {}", without_password(&config.store))
}

async fn first_beat(
    config: &Config,
    store: &Store,
    (level, offered): &Said,
) -> anyhow::Result<Beat> {
    let (offer, unfit) = offered;
    let now = store.snapshot(&[]).await.context("cannot read the store's clock")?.at;
    let mut beat = Beat {
        node: config.node.clone(),
        boot: format!("{:032x}", rand::random::<u128>()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: StoreTime(now.0),
        containment: level.to_string(),
        url: String::new(),
        jobs: BTreeSet::new(),
        digest: String::new(),
        holds: Vec::new(),
        unfit: Default::default(),
        vitals: None,
        watched: None,
    };
    offer.borrow().put_into(&mut beat, &unfit.borrow());
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

/// As [`greet`], also when the store has gone away again.
pub(super) async fn greet_at_last(config: Current, store: Store) {
    while let Err(error) = greet(&config.get(), &store).await {
        tracing::debug!("not greeted yet: {error:#}");
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

async fn greet(config: &Config, store: &Store) -> anyhow::Result<()> {
    let about = store.describe().await.context("cannot ask the store what it is")?;
    let users = store.users().await.context("cannot read the accounts")?;
    for warning in unclaimed(config, &users) {
        tracing::warn!("{warning}");
    }
    let link = match users.is_empty() {
        true => Some(secrets::new_link(store, None, &config.public_url).await?),
        false => None,
    };
    for warning in &about.warnings {
        tracing::warn!("{warning}");
    }
    tracing::info!(store = about.what, "the store is open");
    if !about.shared {
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
    let said = match link {
        Some(link) => format!(
            "No account exists yet. Create the first admin here (works once, for 30 minutes):\n\n  {link}\n\n"
        ),
        None => format!("Soloist is at {}\n", config.public_url),
    };
    STDOUT.put_or(said.as_bytes(), |error| {
        tracing::info!("nobody reads the standard output ({error}): soloist link prints a link");
    });
    Ok(())
}
