//! Accounts in SQLite.

use rusqlite::{Row, params};

use super::SqliteStore;
use super::fault::Outcome;
use super::row::{corrupt, find};
use crate::domain::name::UserName;
use crate::domain::time::StoreTime;
use crate::store::accounts::{Accounts, User};
use crate::store::{Result, StoreError};

impl Accounts for SqliteStore {
    async fn add_user(&self, user: &User, only_if_first: bool) -> Result<()> {
        let user = user.clone();
        self.write(move |step| {
            let first: Option<String> = find(step, "SELECT name FROM users LIMIT 1", [])?;
            if let Some(first) = first.filter(|_| only_if_first) {
                return Err(StoreError::Exists(format!("user {first}")).into());
            }
            let added = step
                .prepare_cached(
                    "INSERT OR IGNORE INTO users (name, role, password, created, language, theme) \
                     VALUES (?, ?, ?, ?, ?, ?)",
                )?
                .execute(params![
                    user.name.as_str(),
                    user.role.as_str(),
                    user.password,
                    step.at.wall.0,
                    user.language,
                    user.theme
                ])?;
            match added {
                0 => Err(StoreError::Exists(format!("user {}", user.name)).into()),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn update_user(&self, user: &User) -> Result<()> {
        let user = user.clone();
        self.write(move |step| {
            let updated = step
                .prepare_cached(
                    "UPDATE users SET role = ?, password = ?, language = ?, theme = ? WHERE name = ?",
                )?
                .execute(params![
                    user.role.as_str(),
                    user.password,
                    user.language,
                    user.theme,
                    user.name.as_str()
                ])?;
            found(updated, &user.name)?;
            step.publish_accounts()
        })
        .await
    }

    async fn remove_user(&self, name: &UserName) -> Result<()> {
        let name = name.clone();
        self.write(move |step| {
            let remove = |sql| step.prepare_cached(sql)?.execute([name.as_str()]);
            found(remove("DELETE FROM users WHERE name = ?")?, &name)?;
            remove("DELETE FROM sessions WHERE user = ?")?;
            remove("DELETE FROM tokens WHERE user = ?")?;
            remove("DELETE FROM links WHERE user = ?")?;
            step.publish_accounts()
        })
        .await
    }

    async fn user(&self, name: &UserName) -> Result<Option<User>> {
        let name = name.clone();
        self.read(move |db, _| {
            let mut statement = db.prepare_cached("SELECT * FROM users WHERE name = ?")?;
            let mut rows = statement.query([name.as_str()])?;
            rows.next()?.map(read).transpose()
        })
        .await
    }

    async fn users(&self) -> Result<Vec<User>> {
        self.read(|db, _| {
            let mut statement = db.prepare_cached("SELECT * FROM users ORDER BY name")?;
            let mut rows = statement.query([])?;
            let mut users = Vec::new();
            while let Some(row) = rows.next()? {
                users.push(read(row)?);
            }
            Ok(users)
        })
        .await
    }
}

fn found(rows: usize, name: &UserName) -> Outcome<()> {
    match rows {
        0 => Err(StoreError::NotFound(format!("user {name}")).into()),
        _ => Ok(()),
    }
}

fn read(row: &Row<'_>) -> Outcome<User> {
    let (name, role): (String, String) = (row.get("name")?, row.get("role")?);
    Ok(User {
        name: UserName::new(&name).map_err(|why| corrupt("users, name", &why.to_string()))?,
        role: role.parse().map_err(|why: String| corrupt("users, role", &why))?,
        password: row.get("password")?,
        created: StoreTime(row.get("created")?),
        language: row.get("language")?,
        theme: row.get("theme")?,
    })
}
