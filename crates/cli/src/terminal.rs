//! The terminal at which a command opens the store itself: the handlers of a node in this process, and who sits here.
//!
//! A person who can reach the store from a terminal could do anything to it; the checks of [`soloist_ops`] keep honest people from
//! mistakes and give the audit a name.

use std::sync::Arc;

use super::Failure;
use super::tokens::served_at;
use soloist_config::{Config, Examination};
use soloist_domain::ensemble;
use soloist_domain::name::UserName;
use soloist_ops::audit::TERMINAL;
use soloist_ops::{Actor, Signature};
use soloist_remote::Client;
use soloist_store::accounts::{Accounts, Role, User};
use soloist_store::journal::Kind;
use soloist_store::nodes::Nodes as _;
use soloist_store::{Options, Store, StoreError};
use soloist_web::here::{self, Here};

/// The open store with what answers for it.
pub(super) struct Terminal {
    /// As opened.
    pub(super) store: Store,
    /// Where links lead to.
    pub(super) served: String,
    here: Here,
}

impl Terminal {
    /// Opens the store that the configuration names; makes it if there is none and it is to `make` one. The future answers the calls
    /// of [`Terminal::client`]: whoever makes them drives it.
    ///
    /// # Errors
    /// [`Failure`]: the configuration has problems, there is no store, or it cannot be used.
    pub(super) async fn open(
        examined: Examination,
        make: bool,
    ) -> Result<(Self, impl Future<Output = ()>), Failure> {
        let mut config = examined.config?;
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
        // The handlers make links, too.
        config.public_url = served_at(&store.nodes().await?, &config.public_url).to_owned();
        let served = config.public_url.clone();
        let (here, answering) = here::open(store.clone(), config);
        Ok((Self { store, served, here }, answering))
    }

    /// A client whose calls `actor` makes.
    pub(super) fn client(&self, actor: Actor) -> Client {
        self.here.client(actor)
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
