//! Which account a person from a provider of single sign-on gets, and with which role.
//!
//! The link is the issuer with the subject, never a name and never an e-mail address: people can choose those, and a provider may give
//! them to another person later. Groups set the role at every sign-in. `web::oidc` verified the provider's answer before; this room knows
//! no HTTP.

use std::collections::{BTreeMap, BTreeSet};

use super::accounts::display_name;
use super::{Act, OpsError, Result, Signature, noting, quota};
use soloist_config::{Config, DefaultRole, Oidc, RolesOfGroups};
use soloist_domain::name::UserName;
use soloist_secrets::sha256_hex;
use soloist_store::accounts::{Accounts as _, Changes, External, NO_PASSWORD, Role, User};
use soloist_store::credentials::Credentials as _;
use soloist_store::journal::Kind;
use soloist_store::{Store, StoreError};

/// Longest name of an account, in bytes.
const LONGEST_NAME: usize = 64;
/// Longest subject (OpenID Connect Core 1.0, section 2).
const LONGEST_SUBJECT: usize = 255;

/// A person as the provider knows them, verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Who it is.
    pub external: External,
    /// The name they would like to have here.
    pub name: Option<String>,
    /// How they are called, in any script.
    pub called: Option<String>,
    /// Their groups.
    pub groups: Vec<String>,
}

/// Why a person whom the provider vouches for is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Refusal {
    /// No group of theirs has a role.
    NoRole { name: UserName },
    /// They have no account, and none is made.
    NoAccount { name: UserName, subject: String },
    /// They have no account, and another one has their name.
    NameTaken { name: UserName, subject: String },
    /// Their account is for a program.
    Collector { name: UserName },
    /// There is no admin with a password yet, who must come first.
    NoLocalAdmin,
    /// The provider says nothing by which they could be known again.
    NoSubject,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Admission {
    In(User),
    Refused(Refusal),
}

/// The account of `who`: the linked one with the role that their groups have now, or a new one where `rules` allow it.
///
/// Another role ends all sessions of the account, and its tokens can do no more than it. The last admin with a password stays admin,
/// whatever the groups say. Who has lost every group that has a role only looks from then on, and loses sessions and tokens.
///
/// # Errors
/// [`OpsError::Store`].
pub async fn admit(store: &Store, rules: &Oidc, who: &Identity, from: &str) -> Result<Admission> {
    let by = |name: &UserName| Signature {
        who: format!("oidc:{name}"),
        from: from.to_owned(),
        kind: Kind::Person,
    };
    if !is_subject(&who.external.subject) {
        return Ok(Admission::Refused(Refusal::NoSubject));
    }
    // Twice: of two first sign-ins at the same time, the later finds the account that the other made.
    for last in [false, true] {
        let users = store.users().await?;
        let wanted = role_of(&rules.roles, &who.groups);
        if let Some(user) = users.iter().find(|user| user.external.as_ref() == Some(&who.external))
        {
            return known(store, user, wanted, &who.groups, &by(&user.name)).await;
        }
        let name = wanted_name(who);
        let subject = who.external.subject.clone();
        let Some(role) = wanted else { return Ok(Admission::Refused(Refusal::NoRole { name })) };
        if users.iter().any(|user| user.name == name) {
            return Ok(Admission::Refused(Refusal::NameTaken { name, subject }));
        }
        if !rules.create_accounts {
            return Ok(Admission::Refused(Refusal::NoAccount { name, subject }));
        }
        if !users.iter().any(|user| user.role == Role::Admin && user.is_local()) {
            return Ok(Admission::Refused(Refusal::NoLocalAdmin));
        }
        quota::user(store).await?;
        // One that cannot be shown is none.
        let called =
            who.called.as_deref().map(display_name).and_then(|called| called.ok().flatten());
        let user = User {
            display_name: called,
            external: Some(who.external.clone()),
            groups: who.groups.clone(),
            ..User::new(name, role, NO_PASSWORD.to_owned())
        };
        let name = user.name.as_str();
        let noted = noting(store, &by(&user.name), Act::UserAdd, name, Some(role.as_str()));
        match noted.add_user(&user, false).await {
            Ok(()) => return Ok(Admission::In(user)),
            Err(StoreError::Exists(_)) if !last => {}
            Err(error) => return Err(error.into()),
        }
    }
    let (name, subject) = (wanted_name(who), who.external.subject.clone());
    Ok(Admission::Refused(Refusal::NameTaken { name, subject }))
}

async fn known(
    store: &Store,
    user: &User,
    wanted: Option<Role>,
    groups: &[String],
    by: &Signature,
) -> Result<Admission> {
    let name = user.name.clone();
    if user.role == Role::Collector {
        return Ok(Admission::Refused(Refusal::Collector { name }));
    }
    let Some(role) = wanted else {
        lose(store, user, by).await?;
        return Ok(Admission::Refused(Refusal::NoRole { name }));
    };
    // Groups say which jobs they see and operate, too.
    let regrouped = Changes { groups: Some(groups.to_vec()), ..Changes::default() };
    let user = match user.groups == groups {
        true => user.clone(),
        false => store.change_user(&name, &regrouped).await?,
    };
    if role == user.role {
        return Ok(Admission::In(user));
    }
    Ok(Admission::In(take_role(store, &user, role, by).await?))
}

/// No group has a role for the person any more: the account only looks, is a member of nothing, and whatever stands for it ends.
async fn lose(store: &Store, user: &User, by: &Signature) -> Result<()> {
    let name = &user.name;
    for token in store.tokens().await?.into_iter().filter(|token| token.user == *name) {
        let noted = noting(store, by, Act::TokenRevoke, name.as_str(), Some(&token.id));
        match noted.revoke_token(&token.id).await {
            // Another sign-in was faster.
            Ok(()) | Err(StoreError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if !user.groups.is_empty() {
        let groups = Changes { groups: Some(Vec::new()), ..Changes::default() };
        store.change_user(name, &groups).await?;
    }
    if user.role != Role::Viewer {
        take_role(store, user, Role::Viewer, by).await?;
    }
    store.close_sessions(name, None).await?;
    Ok(())
}

/// Gives the account another role; the last admin with a password stays what they are.
async fn take_role(store: &Store, user: &User, role: Role, by: &Signature) -> Result<User> {
    let name = &user.name;
    let changes = Changes { role: Some(role), ..Changes::default() };
    let noted = noting(store, by, Act::UserRole, name.as_str(), Some(role.as_str()));
    match noted.change_user(name, &changes).await {
        Ok(user) => Ok(user),
        Err(StoreError::LastAdmin(_)) => {
            tracing::warn!(
                user = %name,
                "the groups say {}, but this is the last admin with a password, and stays admin: make another with soloist user add NAME --role admin",
                role.as_str()
            );
            Ok(user.clone())
        }
        Err(error) => Err(error.into()),
    }
}

/// Names among the `operators` and `viewers` of jobs without an account, while a first sign-in makes one: a person of that name at the
/// provider gets what was meant for somebody else. A sentence for each name.
#[must_use]
pub fn unclaimed(config: &Config, users: &[User]) -> Vec<String> {
    if !config.oidc.as_ref().is_some_and(|rules| rules.create_accounts) {
        return Vec::new();
    }
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for job in &config.jobs {
        let names = job.operators.iter().chain(&job.viewers).map(String::as_str);
        for name in names.filter(|name| *name != "*" && !name.starts_with('@')) {
            named.entry(name).or_default().insert(job.name.as_str());
        }
    }
    let accounts: BTreeSet<&str> = users.iter().map(|user| user.name.as_str()).collect();
    let loose = named.into_iter().filter(|(name, _)| !accounts.contains(name));
    loose
        .map(|(name, jobs)| {
            let jobs = jobs.into_iter().collect::<Vec<_>>().join(", ");
            format!(
                "operators or viewers of {jobs} name {name}, which is no account yet: with oidc.create_accounts, whoever the provider calls {name} gets it; make the account first (soloist user add {name}), or take the name out"
            )
        })
        .collect()
}

/// Whether this can be who a person is at the provider.
fn is_subject(subject: &str) -> bool {
    (1..=LONGEST_SUBJECT).contains(&subject.len()) && !subject.contains(char::is_control)
}

/// Links an account to a person at the provider, or to no person.
///
/// # Errors
/// [`OpsError::Field`], [`OpsError::Conflict`] when another account is that person's, [`OpsError::Store`].
pub async fn link(
    store: &Store,
    by: &Signature,
    name: &UserName,
    external: Option<External>,
) -> Result<User> {
    if let Some(external) = &external {
        let subject = &external.subject;
        if !is_subject(subject) {
            let what = format!("must be 1 to {LONGEST_SUBJECT} characters on one line");
            return Err(OpsError::Field { field: "subject", what: what.into() });
        }
        let users = store.users().await?;
        let taken = |user: &&User| user.external.as_ref() == Some(external) && user.name != *name;
        if let Some(other) = users.iter().find(taken) {
            return Err(OpsError::conflict(format!(
                "{} is that person already: unlink it first with soloist user link {} --none",
                other.name, other.name
            )));
        }
    }
    let said = external.as_ref().map_or("nobody", |external| external.subject.as_str()).to_owned();
    let changes = Changes { external: Some(external), ..Changes::default() };
    let store = noting(store, by, Act::UserLink, name.as_str(), Some(&said));
    Ok(store.change_user(name, &changes).await?)
}

/// The highest role that any of `groups` has.
#[must_use]
pub fn role_of(roles: &RolesOfGroups, groups: &[String]) -> Option<Role> {
    let has = |those: &[String]| those.iter().any(|group| groups.contains(group));
    if has(&roles.admin) {
        Some(Role::Admin)
    } else if has(&roles.operator) {
        Some(Role::Operator)
    } else if has(&roles.viewer) {
        Some(Role::Viewer)
    } else {
        roles.otherwise.map(|role| match role {
            DefaultRole::Viewer => Role::Viewer,
            DefaultRole::Operator => Role::Operator,
        })
    }
}

/// What the person is called here: their name with other characters replaced, or one made of who they are.
#[must_use]
pub fn wanted_name(who: &Identity) -> UserName {
    let lower = who.name.as_deref().unwrap_or_default().trim().to_lowercase();
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let mapped: String = lower.chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    let cut: String = mapped.trim_matches(['.', '_', '-']).chars().take(LONGEST_NAME).collect();
    // A name of which nothing is left tells no two people apart.
    UserName::new(&cut).unwrap_or_else(|_| {
        let External { issuer, subject } = &who.external;
        let hash = sha256_hex(&format!("{issuer}\n{subject}"));
        #[expect(clippy::expect_used, reason = "letters, digits and a hyphen")]
        UserName::new(&format!("user-{}", &hash[..12])).expect("a valid name")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str) -> String {
        let external = External { issuer: "https://a".to_owned(), subject: "1".to_owned() };
        let name = Some(name.to_owned());
        let who = Identity { external, name, called: None, groups: Vec::new() };
        wanted_name(&who).to_string()
    }

    #[test]
    fn any_name_of_a_provider_becomes_a_name_of_ours() {
        assert_eq!(called("Li.Wei"), "li.wei");
        assert_eq!(called("li@example.org"), "li-example.org");
        assert_eq!(called(" -Ada Lovelace- "), "ada-lovelace");
        assert_eq!(called(&"x".repeat(200)).len(), 64);
        for none in ["", "李伟", "...", "\u{202e}"] {
            let made = called(none);
            assert!(made.starts_with("user-") && made.len() == 17, "{none}: {made}");
        }
    }

    #[test]
    fn the_highest_role_of_all_groups_counts() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut roles = RolesOfGroups {
            admin: names(&["root"]),
            operator: names(&["shift"]),
            viewer: names(&["all", "shift"]),
            otherwise: None,
        };
        for (groups, role) in [
            (&["all", "root"][..], Some(Role::Admin)),
            (&["shift"], Some(Role::Operator)),
            (&["all"], Some(Role::Viewer)),
            (&["ROOT", "roots"], None),
            (&[], None),
        ] {
            assert_eq!(role_of(&roles, &names(groups)), role, "{groups:?}");
        }
        roles.otherwise = Some(DefaultRole::Viewer);
        assert_eq!(role_of(&roles, &[]), Some(Role::Viewer));
        assert_eq!(role_of(&roles, &names(&["root"])), Some(Role::Admin));
    }
}
