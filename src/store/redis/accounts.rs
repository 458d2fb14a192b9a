//! Accounts in Redis: one hash, name to JSON.

use ::redis::cmd;

use super::link::Repeat;
use super::record::{from_json, inside};
use super::{RedisStore, scripts};
use crate::domain::name::UserName;
use crate::store::accounts::{Accounts, User};
use crate::store::{Result, StoreError};

impl Accounts for RedisStore {
    async fn add_user(&self, user: &User, only_if_first: bool) -> Result<()> {
        let users = self.keys().global("users");
        let mut call = self.call(&scripts::ADD_USER);
        call.key(&users);
        call.arg(user.name.as_str())
            .arg(inside(&users, user, &["created"])?)
            .arg(u8::from(only_if_first));
        match self.shared.rest.script(&call, Repeat::Never).await? {
            0_u8 if only_if_first => Err(StoreError::Exists("an account".to_owned())),
            0_u8 => Err(StoreError::Exists(format!("user {}", user.name))),
            _ => Ok(()),
        }
    }

    async fn update_user(&self, user: &User) -> Result<()> {
        let users = self.keys().global("users");
        let mut call = self.call(&scripts::UPDATE_USER);
        call.key(&users).key(self.keys().nodes_events());
        call.arg(user.name.as_str()).arg(inside(&users, user, &["created"])?);
        existed(self.shared.rest.script(&call, Repeat::Harmless).await?, &user.name)
    }

    async fn remove_user(&self, name: &UserName) -> Result<()> {
        let keys = self.keys();
        let mut call = self.call(&scripts::REMOVE_USER);
        call.key(keys.global("users")).key(keys.global("sessions")).key(keys.global("tokens"));
        call.key(keys.nodes_events());
        call.arg(name.as_str());
        existed(self.shared.rest.script(&call, Repeat::Never).await?, name)
    }

    async fn user(&self, name: &UserName) -> Result<Option<User>> {
        let users = self.keys().global("users");
        let mut get = cmd("HGET");
        get.arg(&users).arg(name.as_str());
        let text: Option<String> = self.shared.rest.command(&users, &get, Repeat::Harmless).await?;
        text.map(|text| from_json(&users, &text)).transpose()
    }

    async fn users(&self) -> Result<Vec<User>> {
        let users = self.keys().global("users");
        let mut get = cmd("HVALS");
        get.arg(&users);
        let texts: Vec<String> = self.shared.rest.command(&users, &get, Repeat::Harmless).await?;
        let mut all =
            texts.iter().map(|text| from_json(&users, text)).collect::<Result<Vec<User>>>()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}

fn existed(count: u8, name: &UserName) -> Result<()> {
    if count == 0 { Err(StoreError::NotFound(format!("user {name}"))) } else { Ok(()) }
}
