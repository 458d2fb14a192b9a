//! Sessions, API tokens, sign-in links and the count of failures, on any [`Records`].
//!
//! Each has its end in its row. A reader compares that with the store's clock; a writer removes those that are over.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::accounts::USERS;
use super::shared::{decide, json, look_at, of, parsed, row, rows, set, still, unset};
use super::sign_in;
use crate::accounts::User;
use crate::credentials::{
    ApiToken, Count, Credentials, Link, MOST_SESSIONS, OpenSession, Session, SignIn, Tried,
};
use crate::records::{Found, Look, Looked, Plan, Records, Tell, Write};
use crate::{Result, StoreError};
use soloist_domain::name::UserName;
use soloist_domain::time::StoreTime;

pub(super) const SESSIONS: &str = "sessions";
/// The table of tokens.
pub const TOKENS: &str = "tokens";
pub(super) const LINKS: &str = "links";
/// By what is counted: instants in milliseconds, oldest first.
pub(super) const FAILURES: &str = "failures";
/// The list of what is counted, by its newest failure.
pub(super) const COUNTED: &str = "failures_by_age";
/// Failures of one kind that are remembered.
const MOST_FAILURES: usize = 1_000;
/// What is forgotten of other counts when one is added to.
pub(super) const SWEPT: usize = 8;
/// No throttle looks back further.
const FAILURES_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// A session as its row has it.
#[derive(Serialize, Deserialize)]
pub(super) struct Opened {
    #[serde(flatten)]
    pub session: Session,
    /// When it was used last, to a twentieth of the time after which it is idle.
    used: StoreTime,
}

/// A link as its row has it.
#[derive(Serialize, Deserialize)]
pub(super) struct Linked {
    pub user: Option<UserName>,
    expires: StoreTime,
    #[serde(default)]
    sets_password: bool,
    /// When the account was made that it is for: a later one of that name is another. Links of older programs have none.
    #[serde(default)]
    account: Option<StoreTime>,
}

impl Opened {
    fn lasts(&self, now: StoreTime, idle: Duration) -> bool {
        self.session.expires > now && now.since(self.used) < idle
    }
}

#[async_trait]
impl Credentials for dyn Records + '_ {
    async fn open_session(&self, hash: &str, session: &Session, lifetime: Duration) -> Result<()> {
        decide(self, &[Look::Rows(SESSIONS.to_owned())], |looked| {
            let now = looked.at.floor();
            let mut writes = of(looked, 0, SESSIONS, |one: Opened| one.session.expires <= now)?;
            let mut own = Vec::new();
            for (row, text) in rows(looked, 0) {
                let Opened { session: one, .. } = parsed(SESSIONS, text)?;
                if one.user == session.user && one.expires > now {
                    own.push((one.created, row));
                }
            }
            own.sort_unstable();
            let surplus = (own.len() + 1).saturating_sub(MOST_SESSIONS);
            writes.extend(own.iter().take(surplus).map(|(_, row)| unset(SESSIONS, row)));
            // A connection under one of those is notified.
            let tells = if surplus > 0 { vec![Tell::Accounts] } else { Vec::new() };
            let session = Session { created: now, expires: now + lifetime, ..session.clone() };
            writes.push(set(SESSIONS, hash, json(SESSIONS, &Opened { session, used: now })?));
            Ok(((), Some(Plan { writes, tells, ..Plan::default() })))
        })
        .await
    }

    async fn session(&self, hash: &str, idle: Duration) -> Result<Option<Session>> {
        decide(self, &[look_at(SESSIONS, hash)], |looked| {
            let Some(text) = row(looked, 0) else { return Ok((None, None)) };
            let opened: Opened = parsed(SESSIONS, text)?;
            let now = looked.at.floor();
            let plan = |write| Plan {
                checks: vec![still(SESSIONS, hash, Some(text))],
                writes: vec![write],
                ..Plan::default()
            };
            let lasts = opened.lasts(now, idle);
            let Opened { session, used } = opened;
            if !lasts {
                // Gone for good, also for a later reader that allows more idleness.
                return Ok((None, Some(plan(unset(SESSIONS, hash)))));
            }
            // Not a write for every request.
            if now.since(used) < idle / 20 {
                return Ok((Some(session), None));
            }
            let used = json(SESSIONS, &Opened { session: session.clone(), used: now })?;
            Ok((Some(session), Some(plan(set(SESSIONS, hash, used)))))
        })
        .await
    }

    async fn peek_session(&self, hash: &str, idle: Duration) -> Result<Option<Session>> {
        let looked = self.look(&[look_at(SESSIONS, hash)]).await?;
        let Some(text) = row(&looked, 0) else { return Ok(None) };
        let opened: Opened = parsed(SESSIONS, text)?;
        Ok(opened.lasts(looked.at.floor(), idle).then_some(opened.session))
    }

    async fn sessions(&self, user: Option<&UserName>, idle: Duration) -> Result<Vec<OpenSession>> {
        let looked = self.look(&[Look::Rows(SESSIONS.to_owned())]).await?;
        let now = looked.at.floor();
        let mut open = Vec::new();
        for (hash, text) in rows(&looked, 0) {
            let one: Opened = parsed(SESSIONS, text)?;
            if one.lasts(now, idle) && user.is_none_or(|user| one.session.user == *user) {
                let Opened { session, used } = one;
                open.push(OpenSession { hash: hash.to_owned(), session, used });
            }
        }
        open.sort_by(|a, b| (b.session.created, &b.hash).cmp(&(a.session.created, &a.hash)));
        Ok(open)
    }

    async fn close_sessions(&self, user: &UserName, hash: Option<&str>) -> Result<()> {
        decide(self, &[Look::Rows(SESSIONS.to_owned())], |looked| {
            let mut writes = of(looked, 0, SESSIONS, |one: Opened| one.session.user == *user)?;
            if let Some(hash) = hash {
                writes.retain(|write| matches!(write, Write::Unset { row, .. } if row == hash));
            }
            let ended = (!writes.is_empty()).then(|| Plan {
                writes,
                tells: vec![Tell::Accounts],
                ..Plan::default()
            });
            Ok(((), ended))
        })
        .await
    }

    async fn add_token(
        &self,
        hash: &str,
        token: &ApiToken,
        lifetime: Option<Duration>,
    ) -> Result<()> {
        let looks = [Look::Rows(TOKENS.to_owned())];
        decide(self, &looks, |looked| {
            let now = looked.at.floor();
            if rows(looked, 0).any(|(row, _)| row == hash) {
                return Err(StoreError::Exists(format!("token {}", token.id)));
            }
            let over = |one: ApiToken| one.expires.is_some_and(|expires| expires <= now);
            let mut writes = of(looked, 0, TOKENS, over)?;
            let expires = lifetime.map(|lifetime| now + lifetime);
            let made = ApiToken { created: now, expires, ..token.clone() };
            writes.push(set(TOKENS, hash, json(TOKENS, &made)?));
            let checks = vec![still(TOKENS, hash, None)];
            Ok(((), Some(Plan { checks, writes, once: true, ..Plan::default() })))
        })
        .await
    }

    async fn token(&self, hash: &str) -> Result<Option<ApiToken>> {
        let looked = self.look(&[look_at(TOKENS, hash)]).await?;
        let Some(text) = row(&looked, 0) else { return Ok(None) };
        let token: ApiToken = parsed(TOKENS, text)?;
        Ok(Some(token).filter(|token| lasts(token, &looked)))
    }

    async fn use_token(&self, hash: &str, every: Duration) -> Result<()> {
        decide(self, &[look_at(TOKENS, hash)], |looked| {
            let Some(text) = row(looked, 0) else { return Ok(((), None)) };
            let mut token: ApiToken = parsed(TOKENS, text)?;
            let now = looked.at.floor();
            let noted = token.last_used.is_some_and(|last| now.since(last) < every);
            if noted || !lasts(&token, looked) {
                return Ok(((), None));
            }
            token.last_used = Some(now);
            let checks = vec![still(TOKENS, hash, Some(text))];
            let writes = vec![set(TOKENS, hash, json(TOKENS, &token)?)];
            Ok(((), Some(Plan { checks, writes, ..Plan::default() })))
        })
        .await
    }

    async fn tokens(&self) -> Result<Vec<ApiToken>> {
        let looked = self.look(&[Look::Rows(TOKENS.to_owned())]).await?;
        let mut tokens: Vec<ApiToken> =
            rows(&looked, 0).map(|(_, text)| parsed(TOKENS, text)).collect::<Result<_>>()?;
        tokens.retain(|token| lasts(token, &looked));
        tokens.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(tokens)
    }

    async fn revoke_token(&self, id: &str) -> Result<()> {
        decide(self, &[Look::Rows(TOKENS.to_owned())], |looked| {
            let writes = of(looked, 0, TOKENS, |one: ApiToken| one.id == id)?;
            if writes.is_empty() {
                return Err(StoreError::NotFound(format!("token {id}")));
            }
            Ok((
                (),
                Some(Plan { writes, tells: vec![Tell::Accounts], once: true, ..Plan::default() }),
            ))
        })
        .await
    }

    async fn add_link(&self, hash: &str, link: &Link, lifetime: Duration) -> Result<()> {
        let mut looks = vec![Look::Rows(LINKS.to_owned())];
        looks.extend(link.user.iter().map(|user| look_at(USERS, user.as_str())));
        decide(self, &looks, |looked| {
            let now = looked.at.floor();
            let (mut checks, mut account) = (Vec::new(), None);
            if let Some(user) = &link.user {
                let text = row(looked, 1);
                let text = text.ok_or_else(|| StoreError::NotFound(format!("user {user}")))?;
                account = Some(parsed::<User>(USERS, text)?.created);
                checks.push(still(USERS, user.as_str(), Some(text)));
            }
            let mut writes = of(looked, 0, LINKS, |one: Linked| {
                let replaced = link.sets_password && one.sets_password && one.user == link.user;
                replaced || one.expires <= now
            })?;
            let Link { user, sets_password } = link.clone();
            let linked = Linked { user, expires: now + lifetime, sets_password, account };
            writes.push(set(LINKS, hash, json(LINKS, &linked)?));
            Ok(((), Some(Plan { checks, writes, ..Plan::default() })))
        })
        .await
    }

    async fn link(&self, hash: &str, take: bool) -> Result<Option<Link>> {
        let looked = self.look(&[look_at(LINKS, hash)]).await?;
        let Some(text) = row(&looked, 0) else { return Ok(None) };
        let user = parsed::<Linked>(LINKS, text)?.user;
        let mut looks = vec![look_at(LINKS, hash)];
        looks.extend(user.iter().map(|user| look_at(USERS, user.as_str())));
        decide(self, &looks, |looked| {
            let Some(text) = row(looked, 0) else { return Ok((None, None)) };
            let Linked { user, expires, sets_password, account } = parsed(LINKS, text)?;
            let found = row(looked, 1).map(|text| parsed::<User>(USERS, text)).transpose()?;
            // A removed account takes its links along; what is left was made by an older program.
            let is_of = user.is_none()
                || found.is_some_and(|found| account.is_none_or(|made| made == found.created));
            let good = is_of && expires > looked.at.floor();
            let link = good.then_some(Link { user, sets_password });
            let plan = take.then(|| Plan {
                // Of two who take it, the second finds it gone.
                checks: vec![still(LINKS, hash, Some(text))],
                writes: vec![unset(LINKS, hash)],
                once: true,
                ..Plan::default()
            });
            Ok((link, plan))
        })
        .await
    }

    async fn try_sign_in(&self, ask: &SignIn) -> Result<Duration> {
        sign_in::attempt(self, ask).await
    }

    async fn settle_sign_in(&self, ask: &SignIn, tried: Tried) -> Result<()> {
        sign_in::settle(self, ask, tried).await
    }

    async fn failures(&self, key: &str, step: Count, window: Duration) -> Result<u32> {
        let looks = [look_at(FAILURES, key), Look::First(COUNTED.to_owned(), SWEPT)];
        let looks = if step == Count::Add { &looks[..] } else { &looks[..1] };
        decide(self, looks, |looked| {
            let now = looked.at.floor();
            let old = row(looked, 0);
            let mut counted: Vec<StoreTime> =
                old.map(|text| parsed(FAILURES, text)).transpose()?.unwrap_or_default();
            let plan = |writes| {
                Some(Plan { checks: vec![still(FAILURES, key, old)], writes, ..Plan::default() })
            };
            let count = |counted: &[StoreTime]| {
                let recent = counted.iter().filter(|at| now.since(**at) < window).count();
                u32::try_from(recent).unwrap_or(u32::MAX)
            };
            match step {
                Count::Look => Ok((count(&counted), None)),
                Count::Clear if old.is_none() => Ok((0, None)),
                Count::Clear => {
                    let list = COUNTED.to_owned();
                    let strike = Write::Strike { list, text: key.to_owned() };
                    Ok((0, plan(vec![unset(FAILURES, key), strike])))
                }
                Count::Add => {
                    counted.push(now);
                    counted.drain(..counted.len().saturating_sub(MOST_FAILURES));
                    let number = u64::try_from(now.0).unwrap_or_default();
                    let list = COUNTED.to_owned();
                    let mut writes = vec![
                        set(FAILURES, key, json(FAILURES, &counted)?),
                        Write::Add { list, number, text: key.to_owned() },
                    ];
                    writes.extend(swept(looked, 1, &[key], now, window));
                    Ok((count(&counted), plan(writes)))
                }
            }
        })
        .await
    }
}

/// What forgets the oldest counts, which stand at `nth` of what was found; those of `kept` stay.
pub(super) fn swept(
    looked: &Looked,
    nth: usize,
    kept: &[&str],
    now: StoreTime,
    window: Duration,
) -> Vec<Write> {
    let mut writes = Vec::new();
    let Some(Found::Entries(oldest)) = looked.found.get(nth) else { return writes };
    for (newest, other) in oldest {
        let newest = StoreTime(i64::try_from(*newest).unwrap_or(i64::MAX));
        if !kept.contains(&other.as_str()) && now.since(newest) >= FAILURES_KEPT.max(window) {
            writes.push(unset(FAILURES, other));
            writes.push(Write::Strike { list: COUNTED.to_owned(), text: other.clone() });
        }
    }
    writes
}

fn lasts(token: &ApiToken, looked: &Looked) -> bool {
    token.expires.is_none_or(|expires| expires > looked.at.floor())
}
