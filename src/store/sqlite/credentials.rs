//! Credentials in SQLite. What has expired is skipped by every reading and deleted by the next writing.

use std::time::Duration;

use rusqlite::{OptionalExtension, Row, params};

use super::SqliteStore;
use super::fault::Outcome;
use super::row::{corrupt, ms};
use crate::domain::name::{CollectorName, SourceName, UserName};
use crate::domain::time::StoreTime;
use crate::store::credentials::{ApiToken, Count, Credentials, Link, Session};
use crate::store::{Result, StoreError};

/// No throttle looks back further.
const FAILURES_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

impl Credentials for SqliteStore {
    async fn open_session(&self, hash: &str, session: &Session, lifetime: Duration) -> Result<()> {
        let (hash, session) = (hash.to_owned(), session.clone());
        self.write(move |step| {
            let now = step.at.wall;
            step.prepare_cached("DELETE FROM sessions WHERE expires <= ?")?.execute([now.0])?;
            step.prepare_cached(
                "INSERT OR REPLACE INTO sessions (hash, user, csrf, created, expires, used) \
                 VALUES (?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                hash,
                session.user.as_str(),
                session.csrf,
                now.0,
                (now + lifetime).0,
                now.0
            ])?;
            Ok(())
        })
        .await
    }

    async fn session(&self, hash: &str, idle: Duration) -> Result<Option<Session>> {
        let key = hash.to_owned();
        let found = self
            .read(move |db, at| {
                let mut statement = db.prepare_cached("SELECT * FROM sessions WHERE hash = ?")?;
                let mut rows = statement.query([&key])?;
                let Some(row) = rows.next()? else { return Ok(None) };
                let used = StoreTime(row.get("used")?);
                let session = session(row)?;
                let unused = at.wall.since(used);
                let alive = session.expires > at.wall && unused < idle;
                Ok(Some((alive.then_some(session), unused)))
            })
            .await?;
        let hash = hash.to_owned();
        match found {
            None => Ok(None),
            Some((None, _)) => {
                // Gone for good, also for a later reader that allows more idleness.
                self.write(move |step| {
                    step.prepare_cached("DELETE FROM sessions WHERE hash = ?")?.execute([hash])?;
                    Ok(None)
                })
                .await
            }
            Some((session, unused)) => {
                // Not a write for every request: a twentieth of `idle` is near enough.
                if unused >= idle / 20 {
                    self.write(move |step| {
                        step.prepare_cached("UPDATE sessions SET used = ? WHERE hash = ?")?
                            .execute(params![step.at.wall.0, hash])?;
                        Ok(())
                    })
                    .await?;
                }
                Ok(session)
            }
        }
    }

    async fn close_sessions(&self, user: &UserName, hash: Option<&str>) -> Result<()> {
        let (user, hash) = (user.clone(), hash.map(str::to_owned));
        self.write(move |step| {
            let ended = step
                .prepare_cached(
                    "DELETE FROM sessions WHERE user = ?1 AND (?2 IS NULL OR hash = ?2)",
                )?
                .execute(params![user.as_str(), hash])?;
            if ended > 0 { step.publish_accounts() } else { Ok(()) }
        })
        .await
    }

    async fn add_token(
        &self,
        hash: &str,
        token: &ApiToken,
        lifetime: Option<Duration>,
    ) -> Result<()> {
        let (hash, token) = (hash.to_owned(), token.clone());
        let sources: Vec<&str> = token.sources.iter().map(SourceName::as_str).collect();
        let sources = sources.join(" ");
        self.write(move |step| {
            let now = step.at.wall;
            step.prepare_cached("DELETE FROM tokens WHERE expires <= ?")?.execute([now.0])?;
            let added = step
                .prepare_cached(
                    "INSERT OR IGNORE INTO tokens \
                     (hash, id, user, name, created, expires, collector, sources) \
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                )?
                .execute(params![
                    hash,
                    token.id,
                    token.user.as_str(),
                    token.name,
                    now.0,
                    lifetime.map(|lifetime| (now + lifetime).0),
                    token.collector.as_ref().map(CollectorName::as_str),
                    sources
                ])?;
            match added {
                0 => Err(StoreError::Exists(format!("token {}", token.id)).into()),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn token(&self, hash: &str) -> Result<Option<ApiToken>> {
        let hash = hash.to_owned();
        self.read(move |db, at| {
            let mut statement = db.prepare_cached(
                "SELECT * FROM tokens WHERE hash = ? AND (expires IS NULL OR expires > ?)",
            )?;
            let mut rows = statement.query(params![hash, at.wall.0])?;
            rows.next()?.map(api_token).transpose()
        })
        .await
    }

    async fn tokens(&self) -> Result<Vec<ApiToken>> {
        self.read(|db, at| {
            let mut statement = db.prepare_cached(
                "SELECT * FROM tokens WHERE expires IS NULL OR expires > ? ORDER BY created, id",
            )?;
            let mut rows = statement.query([at.wall.0])?;
            let mut tokens = Vec::new();
            while let Some(row) = rows.next()? {
                tokens.push(api_token(row)?);
            }
            Ok(tokens)
        })
        .await
    }

    async fn revoke_token(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write(move |step| {
            match step.prepare_cached("DELETE FROM tokens WHERE id = ?")?.execute([&id])? {
                0 => Err(StoreError::NotFound(format!("token {id}")).into()),
                _ => step.publish_accounts(),
            }
        })
        .await
    }

    async fn add_link(&self, hash: &str, link: &Link, lifetime: Duration) -> Result<()> {
        let (hash, link) = (hash.to_owned(), link.clone());
        self.write(move |step| {
            let now = step.at.wall;
            step.prepare_cached("DELETE FROM links WHERE expires <= ?")?.execute([now.0])?;
            step.prepare_cached(
                "INSERT OR REPLACE INTO links (hash, user, expires) VALUES (?, ?, ?)",
            )?
            .execute(params![
                hash,
                link.user.as_ref().map(UserName::as_str),
                (now + lifetime).0
            ])?;
            Ok(())
        })
        .await
    }

    async fn link(&self, hash: &str, take: bool) -> Result<Option<Link>> {
        const LOOK: &str = "SELECT user FROM links WHERE hash = ? AND expires > ?";
        const TAKE: &str = "DELETE FROM links WHERE hash = ? AND expires > ? RETURNING user";
        let hash = hash.to_owned();
        let row = |row: &Row<'_>| row.get::<_, Option<String>>(0);
        let found = if take {
            self.write(move |step| {
                let now = step.at.wall.0;
                Ok(step.prepare_cached(TAKE)?.query_row(params![hash, now], row).optional()?)
            })
            .await?
        } else {
            self.read(move |db, at| {
                let now = at.wall.0;
                Ok(db.prepare_cached(LOOK)?.query_row(params![hash, now], row).optional()?)
            })
            .await?
        };
        let Some(user) = found else { return Ok(None) };
        let user = user.as_deref().map(UserName::new).transpose();
        let user = user.map_err(|why| StoreError::Corrupt(format!("links, user: {why}")))?;
        Ok(Some(Link { user }))
    }

    async fn failures(&self, key: &str, step: Count, window: Duration) -> Result<u32> {
        const COUNT: &str = "SELECT count(*) FROM failures WHERE key = ? AND at > ?";
        let key = key.to_owned();
        match step {
            Count::Look => {
                self.read(move |db, at| {
                    let since = at.wall.0 - ms(window);
                    let mut count = db.prepare_cached(COUNT)?;
                    Ok(count.query_row(params![key, since], |row| row.get(0))?)
                })
                .await
            }
            Count::Add => {
                self.write(move |step| {
                    let now = step.at.wall.0;
                    step.prepare_cached("DELETE FROM failures WHERE at <= ?")?
                        .execute([now - ms(FAILURES_KEPT.max(window))])?;
                    step.prepare_cached("INSERT INTO failures (key, at) VALUES (?, ?)")?
                        .execute(params![key, now])?;
                    let mut count = step.prepare_cached(COUNT)?;
                    Ok(count.query_row(params![key, now - ms(window)], |row| row.get(0))?)
                })
                .await
            }
            Count::Clear => {
                self.write(move |step| {
                    step.prepare_cached("DELETE FROM failures WHERE key = ?")?.execute([key])?;
                    Ok(0)
                })
                .await
            }
        }
    }
}

fn user(row: &Row<'_>, table: &str) -> Outcome<UserName> {
    let name: String = row.get("user")?;
    UserName::new(&name).map_err(|why| corrupt(&format!("{table}, user"), &why.to_string()))
}

fn session(row: &Row<'_>) -> Outcome<Session> {
    Ok(Session {
        user: user(row, "sessions")?,
        csrf: row.get("csrf")?,
        created: StoreTime(row.get("created")?),
        expires: StoreTime(row.get("expires")?),
    })
}

fn api_token(row: &Row<'_>) -> Outcome<ApiToken> {
    Ok(ApiToken {
        id: row.get("id")?,
        user: user(row, "tokens")?,
        name: row.get("name")?,
        created: StoreTime(row.get("created")?),
        expires: row.get::<_, Option<i64>>("expires")?.map(StoreTime),
        collector: row
            .get::<_, Option<String>>("collector")?
            .map(|name| CollectorName::new(&name))
            .transpose()
            .map_err(|why| corrupt("tokens, collector", &why.to_string()))?,
        sources: row
            .get::<_, String>("sources")?
            .split_whitespace()
            .map(SourceName::new)
            .collect::<std::result::Result<_, _>>()
            .map_err(|why| corrupt("tokens, sources", &why.to_string()))?,
    })
}
