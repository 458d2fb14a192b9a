//! The user and the secrets of a script. Both are looked up when a run is about to start, so that a changed password or a new group
//! applies from the next run on.
//!
//! A value is never shown: not in an error, not by `Debug`, and not in the output that is kept (`Redactor`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use super::redact::Redactor;
use soloist_config::{find_account, read_secret};
use soloist_domain::account::Account;
use soloist_domain::name::NodeName;

/// Variables that say who the user is.
pub(super) const OF_THE_USER: [&str; 3] = ["HOME", "USER", "LOGNAME"];

/// By their names, and once `prepare`d, as they are now.
#[derive(Debug, Clone, Default)]
pub struct Entrusted {
    /// Another user than the node's.
    user: Option<String>,
    /// Files, by the variables in which their content goes.
    secrets: BTreeMap<String, PathBuf>,
    /// The user, looked up.
    pub(super) account: Option<Account>,
    /// The contents, to be kept out of what is shown.
    pub(super) hidden: Redactor,
}

impl Entrusted {
    /// As a job names them.
    #[must_use]
    pub fn of(user: Option<String>, secrets: BTreeMap<String, PathBuf>) -> Self {
        Self { user, secrets, ..Self::default() }
    }

    /// There is nothing to look up.
    pub(super) fn is_empty(&self) -> bool {
        self.user.is_none() && self.secrets.is_empty()
    }

    /// Looks up the user and reads the secrets into the environment `env` of a script that `node` is about to start.
    ///
    /// # Errors
    /// Why it must not be started, with the remedy and without any value.
    pub(super) fn prepare(
        &mut self,
        node: &NodeName,
        env: &mut BTreeMap<OsString, OsString>,
    ) -> Result<(), String> {
        if let Some(user) = &self.user {
            let account = find_account(user)
                .map_err(|why| format!("the script was not started on {node}: user: {why}"))?;
            let words = [&account.home, &account.name, &account.name];
            for (name, word) in OF_THE_USER.into_iter().zip(words) {
                env.entry(name.into()).or_insert_with(|| word.into());
            }
            self.account = Some(account);
        }
        let mut values = BTreeMap::new();
        for (name, file) in &self.secrets {
            let value = read_secret(file).map_err(|why| {
                format!("the script was not started on {node}: secrets.{name}: {why}")
            })?;
            values.insert(name.clone(), value);
        }
        self.hidden = Redactor::of(values.values());
        env.extend(values.into_iter().map(|(name, value)| (name.into(), value.into())));
        Ok(())
    }
}
