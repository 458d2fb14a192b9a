//! Where every command sits: the configuration, the open store, and who is acting.
//!
//! A person who can reach the store from a terminal could do anything to it; the checks of [`soloist_ops`] keep honest people from
//! mistakes and give the audit a name.

use std::sync::Arc;

use super::Failure;
use soloist_config::{Config, Examination, JobConfig, elsewhere, in_groups};
use soloist_domain::ensemble;
use soloist_domain::name::{JobName, UserName};
use soloist_domain::time::StoreTime;
use soloist_ops::audit::TERMINAL;
use soloist_ops::{Actor, Signature};
use soloist_process::clock;
use soloist_store::accounts::{Accounts, Role, User};
use soloist_store::feed::Seen;
use soloist_store::jobs::Jobs;
use soloist_store::journal::Kind;
use soloist_store::nodes::{NodeRecord, listed};
use soloist_store::rotation::{RotationView, Rotations as _};
use soloist_store::{Options, Store, StoreError};

/// The open store with its configuration.
pub struct CommandContext {
    /// As checked.
    pub config: Config,
    /// As opened.
    pub store: Store,
    /// Jobs that only nodes with another configuration define.
    elsewhere: Vec<JobConfig>,
}

impl CommandContext {
    /// Opens the store that the configuration names; makes it if there is none and it is to `make` one.
    ///
    /// # Errors
    /// [`Failure`]: the configuration has problems, there is no store, or it cannot be used.
    pub async fn open(examined: Examination, make: bool) -> Result<Self, Failure> {
        let config = examined.config?;
        let options = Options {
            prefix: config.prefix.clone(),
            longest_lease: config.longest_lease(),
            make,
            ..Options::default()
        };
        let store =
            soloist_stores::connect(&config.address(), &options).await.map_err(|error| {
                if let StoreError::Absent(_) = error {
                    return Failure::NotFound(absent(&config));
                }
                let url = shown(&config.store);
                match Failure::from(error) {
                    Failure::Usage(text) => Failure::Usage(format!("{url}: {text}")),
                    other => Failure::Failed(format!("{url}: {other}")),
                }
            })?;
        let elsewhere = elsewhere(
            &config.jobs,
            &config.alerting,
            listed(&store).await?.iter().map(NodeRecord::telling),
        );
        Ok(Self { config, store, elsewhere })
    }

    /// All jobs: those of this configuration, then those that only other nodes define.
    pub(super) fn jobs(&self) -> Vec<&JobConfig> {
        let mut jobs: Vec<&JobConfig> = self.config.jobs.iter().chain(&self.elsewhere).collect();
        in_groups(&mut jobs, |job| job);
        jobs
    }

    /// The job of that name.
    pub(super) fn job(&self, name: &str) -> Result<&JobConfig, Failure> {
        let known = self.jobs().into_iter().find(|job| job.name.as_str() == name);
        known.ok_or_else(|| {
            let names: Vec<&str> = self.jobs().iter().map(|job| job.name.as_str()).collect();
            Failure::NotFound(match names.as_slice() {
                [] => format!(
                    "there is no job {name:?}: the configuration has no jobs (is --config right?)"
                ),
                names => {
                    format!("there is no job {name:?}; the configuration has: {}", names.join(", "))
                }
            })
        })
    }

    /// The account of that name.
    pub(super) async fn account(&self, name: &UserName) -> Result<User, Failure> {
        self.store.user(name).await?.ok_or_else(|| no_account(name.as_str()))
    }

    /// The account that acts: `given` (`--user` or `$SOLOIST_USER`), else the one of the login name.
    pub(super) async fn actor(&self, given: Option<&str>) -> Result<Actor, Failure> {
        let name = given.map(ToOwned::to_owned).or_else(login_name).ok_or_else(|| {
            Failure::Usage("who are you? say --user NAME, or set SOLOIST_USER".to_owned())
        })?;
        match UserName::new(&name) {
            Ok(name) => {
                let user = self.account(&name).await?;
                Ok(acting(user.name, Some(user.role)))
            }
            Err(problem) if given.is_some() => Err(Failure::Usage(problem.to_string())),
            Err(_) => Err(Failure::NotFound(format!(
                "the login name {name:?} is no account: say --user NAME, or set SOLOIST_USER"
            ))),
        }
    }

    /// As [`Self::actor`], but a login name without an account is let through under its own name: a person who has
    /// the store's address could as well make an account.
    pub(super) async fn operator(&self, given: Option<&str>) -> Result<Actor, Failure> {
        if given.is_none()
            && let Some(login) = login_name().and_then(|name| UserName::new(&name).ok())
            && self.store.user(&login).await?.is_none()
        {
            return Ok(acting(login, None));
        }
        self.actor(given).await
    }

    /// All records of `jobs` as a feed would have seen them just now.
    pub(super) async fn see(&self, jobs: &[&JobConfig]) -> Result<Vec<Seen>, Failure> {
        let names: Vec<JobName> = jobs.iter().map(|job| job.name.clone()).collect();
        let confirmed = clock::boot();
        let snapshot = self.store.snapshot(&names).await?;
        let at: StoreTime = snapshot.at;
        let doubted_until = clock::boot() + snapshot.quarantine;
        let seen = |record| Seen {
            record: Arc::new(record),
            at,
            confirmed,
            doubted_until,
            progressed: None,
            ended_here: None,
        };
        Ok(snapshot.jobs.into_iter().map(seen).collect())
    }

    /// The nodes as last reported, with what they define.
    pub(super) async fn nodes(&self) -> Result<Vec<NodeRecord>, Failure> {
        Ok(listed(&self.store).await?)
    }

    /// All rotations, if one of `jobs` takes turns.
    pub(super) async fn rotations(
        &self,
        jobs: &[&JobConfig],
    ) -> Result<Option<Vec<RotationView>>, Failure> {
        if jobs.iter().all(|job| job.rotation.is_none()) {
            return Ok(None);
        }
        Ok(Some(self.store.rotations(None, 0).await?))
    }
}

/// As whom operations act that need a name.
fn acting(user: UserName, role: Option<Role>) -> Actor {
    let signature = signature(user.as_str());
    let (groups, bound) = (Arc::default(), Arc::default());
    Actor { user, role, groups, signature, bound, by_token: false }
}

/// Those who administer: they need no account.
pub(super) fn administrator() -> Actor {
    let login = login_name();
    let login = login.as_deref().unwrap_or("unknown");
    // An account's name may be no login name, and the other way round.
    let user = UserName::new(login).or_else(|_| UserName::new("unknown"));
    #[expect(clippy::expect_used, reason = "that is a name")]
    Actor { signature: signature(login), ..acting(user.expect("a name"), None) }
}

fn signature(name: &str) -> Signature {
    Signature { who: format!("cli:{name}"), from: TERMINAL.to_owned(), kind: Kind::Person }
}

fn no_account(name: &str) -> Failure {
    Failure::NotFound(format!(
        "there is no account {name}: add it with: soloist user add {name} --role operator (or act for another with --user)"
    ))
}

/// That the store is not there which the configuration names, and where that name came from.
#[must_use]
pub fn absent(config: &Config) -> String {
    let from = match &config.file {
        Some(file) => format!("{} was read", file.display()),
        None => "no soloist.toml in this directory: defaults were used; name it with --config"
            .to_owned(),
    };
    format!(
        "there is no store at {} ({from}); a node makes it: soloist serve",
        shown(&config.store)
    )
}

/// The name of the account that this process runs under.
fn login_name() -> Option<String> {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid());
    user.ok().flatten().map(|user| user.name)
}

/// A store URL, which may be followed by its coordination, without passwords.
pub(super) fn shown(address: &str) -> String {
    let (store, coordination) = ensemble::split(address);
    let coordination = coordination.map(without_login);
    ensemble::joined(&without_login(store), coordination.as_deref())
}

fn without_login(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}{}", &url[..scheme + 3], &url[at + 1..])
        }
        _ => url.to_owned(),
    }
}
