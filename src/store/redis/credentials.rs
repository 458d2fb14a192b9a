//! Sessions, API tokens, links and the login throttle in Redis; keyed by hashes, expired by the store's clock.

use std::time::Duration;

use serde::Serialize;

use super::link::Repeat;
use super::record::{from_json, inside, to_json};
use super::{RedisStore, millis, scripts};
use crate::domain::name::UserName;
use crate::store::credentials::{ApiToken, Count, Credentials, Link, Session};
use crate::store::{Result, StoreError};

impl Credentials for RedisStore {
    async fn open_session(&self, hash: &str, session: &Session, lifetime: Duration) -> Result<()> {
        let sessions = self.keys().global("sessions");
        let mut call = self.call(&scripts::OPEN_SESSION);
        call.key(&sessions);
        call.arg(hash).arg(without_times(&sessions, session)?).arg(millis(lifetime));
        let _done: u8 = self.shared.rest.script(&call, Repeat::Harmless).await?;
        Ok(())
    }

    async fn session(&self, hash: &str, idle: Duration) -> Result<Option<Session>> {
        let sessions = self.keys().global("sessions");
        let mut call = self.call(&scripts::USE_SESSION);
        call.key(&sessions);
        call.arg(hash).arg(millis(idle));
        let found: Vec<String> = self.shared.rest.script(&call, Repeat::Harmless).await?;
        let [created, expires, rest] = &found[..] else { return Ok(None) };
        with_times(&sessions, created, expires, rest).map(Some)
    }

    async fn close_sessions(&self, user: &UserName, hash: Option<&str>) -> Result<()> {
        let mut call = self.call(&scripts::CLOSE_SESSIONS);
        call.key(self.keys().global("sessions")).key(self.keys().nodes_events());
        call.arg(user.as_str()).arg(hash.unwrap_or_default());
        let _ended: u64 = self.shared.rest.script(&call, Repeat::Harmless).await?;
        Ok(())
    }

    async fn add_token(
        &self,
        hash: &str,
        token: &ApiToken,
        lifetime: Option<Duration>,
    ) -> Result<()> {
        let tokens = self.keys().global("tokens");
        let mut call = self.call(&scripts::ADD_TOKEN);
        call.key(&tokens);
        call.arg(hash)
            .arg(without_times(&tokens, token)?)
            .arg(lifetime.map(|lifetime| millis(lifetime).to_string()).unwrap_or_default());
        let _done: u8 = self.shared.rest.script(&call, Repeat::Harmless).await?;
        Ok(())
    }

    async fn token(&self, hash: &str) -> Result<Option<ApiToken>> {
        Ok(self.read_tokens(hash).await?.pop())
    }

    async fn tokens(&self) -> Result<Vec<ApiToken>> {
        let mut tokens = self.read_tokens("").await?;
        tokens.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(tokens)
    }

    async fn revoke_token(&self, id: &str) -> Result<()> {
        let mut call = self.call(&scripts::REVOKE_TOKEN);
        call.key(self.keys().global("tokens")).key(self.keys().nodes_events());
        call.arg(id);
        match self.shared.rest.script(&call, Repeat::Never).await? {
            0_u64 => Err(StoreError::NotFound(format!("token {id}"))),
            _ => Ok(()),
        }
    }

    async fn add_link(&self, hash: &str, link: &Link, lifetime: Duration) -> Result<()> {
        let links = self.keys().global("links");
        let mut call = self.call(&scripts::ADD_LINK);
        call.key(&links);
        call.arg(hash).arg(to_json(&links, link)?).arg(millis(lifetime));
        let _done: u8 = self.shared.rest.script(&call, Repeat::Harmless).await?;
        Ok(())
    }

    async fn link(&self, hash: &str, take: bool) -> Result<Option<Link>> {
        let links = self.keys().global("links");
        let mut call = self.call(&scripts::READ_LINK);
        call.key(&links);
        call.arg(hash).arg(u8::from(take));
        let repeat = if take { Repeat::Never } else { Repeat::Harmless };
        let text: Option<String> = self.shared.rest.script(&call, repeat).await?;
        text.map(|text| from_json(&links, &text)).transpose()
    }

    async fn failures(&self, key: &str, step: Count, window: Duration) -> Result<u32> {
        let mut call = self.call(&scripts::COUNT_FAILURES);
        call.key(self.keys().failures(key));
        let (word, repeat) = match step {
            Count::Look => ("look", Repeat::Harmless),
            Count::Add => ("add", Repeat::Never),
            Count::Clear => ("clear", Repeat::Harmless),
        };
        call.arg(word).arg(millis(window)).arg(ulid::Ulid::generate().to_string());
        self.shared.rest.script(&call, repeat).await
    }
}

impl RedisStore {
    async fn read_tokens(&self, hash: &str) -> Result<Vec<ApiToken>> {
        let tokens = self.keys().global("tokens");
        let mut call = self.call(&scripts::READ_TOKENS);
        call.key(&tokens);
        call.arg(hash);
        let read: Vec<String> = self.shared.rest.script(&call, Repeat::Harmless).await?;
        read.chunks_exact(3)
            .map(|token| with_times(&tokens, &token[0], &token[1], &token[2]))
            .collect()
    }
}

fn without_times(key: &str, value: &impl Serialize) -> Result<String> {
    Ok(format!("{{{}}}", inside(key, value, &["created", "expires"])?))
}

/// Puts the store's instants back in front of the other members; `expires` 0 is never.
fn with_times<T: serde::de::DeserializeOwned>(
    key: &str,
    created: &str,
    expires: &str,
    rest: &str,
) -> Result<T> {
    let expires = if expires == "0" { "null" } else { expires };
    let members = rest
        .strip_prefix('{')
        .ok_or_else(|| StoreError::Corrupt(format!("{key}: {rest:?} is no JSON object")))?;
    from_json(key, &format!("{{\"created\":{created},\"expires\":{expires},{members}"))
}
