//! Whom commands ask: nodes (`--server`), or the same handlers in this process, at the store.
//!
//! Both are asked by the same calls and say the same; a command knows neither.

use serde::de::DeserializeOwned;

use super::Failure;
use super::terminal::{Terminal, administrator};
use soloist_remote::{Call, Client, RemoteError, Stream, part};
use soloist_view::lists::{Jobs, Nodes};
use soloist_view::people::Me;
use soloist_view::{JobView, NodeView};

/// Who answers calls.
pub(super) struct Office {
    client: Client,
    /// This process opened the store itself; `None`: nodes answer.
    terminal: Option<Terminal>,
}

impl From<Client> for Office {
    fn from(client: Client) -> Self {
        Self { client, terminal: None }
    }
}

impl From<Terminal> for Office {
    fn from(terminal: Terminal) -> Self {
        Self { client: terminal.client(administrator()), terminal: Some(terminal) }
    }
}

/// The address of something of a job.
pub(super) fn at(job: &str, what: &str) -> String {
    format!("/api/v1/jobs/{}{what}", part(job))
}

impl Office {
    /// The terminal at the store, if this process has it.
    pub(super) fn terminal(&self) -> Option<&Terminal> {
        self.terminal.as_ref()
    }

    /// Asks for what is at `path`, which may be seen by whoever may ask at all.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: impl Into<String>,
    ) -> Result<T, Failure> {
        self.ask(Call::get(path)).await
    }

    /// Makes one call: under the token of a node, and at the terminal as who administers there.
    pub(super) async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, Failure> {
        self.by(self.client.clone()).ask(call).await
    }

    /// As [`Self::ask`]; the answer does not matter.
    pub(super) async fn tell(&self, call: Call) -> Result<(), Failure> {
        Ok(self.client.tell(call).await?)
    }

    /// As [`Self::ask`]; the answer is read piece by piece.
    pub(super) async fn stream(&self, call: Call) -> Result<Stream, Failure> {
        Ok(self.client.stream(call).await?)
    }

    fn by(&self, client: Client) -> Acting<'_> {
        Acting { office: self, client }
    }

    /// Acts under the name of `user`, else of the login; nobody acts as another with a token.
    pub(super) async fn acting(&self, user: Option<&str>) -> Result<Acting<'_>, Failure> {
        match (&self.terminal, user) {
            (Some(terminal), user) => Ok(self.by(terminal.client(terminal.operator(user).await?))),
            // A collector's token cannot ask whose it is.
            (None, None) => Ok(self.by(self.client.clone())),
            (None, Some(user)) => {
                let me: Me = self.get("/api/v1/me").await?;
                if me.name == user {
                    return Ok(self.by(self.client.clone()));
                }
                Err(Failure::Refused(format!(
                    "under --server this is done as {}, whose token it is: leave out --user (and $SOLOIST_USER), or use a token of {user}",
                    me.name
                )))
            }
        }
    }

    /// Acts on what is an account's own, and says whose: of `user`, whom an admin's token may name, else of who asks. At a terminal they
    /// must have an account.
    pub(super) async fn owning(&self, user: Option<&str>) -> Result<(Acting<'_>, String), Failure> {
        if let Some(terminal) = &self.terminal {
            let actor = terminal.actor(user).await?;
            let user = actor.user.to_string();
            return Ok((self.by(terminal.client(actor)), user));
        }
        let user = match user {
            Some(user) => user.to_owned(),
            None => self.get::<Me>("/api/v1/me").await?.name,
        };
        Ok((self.by(self.client.clone()), user))
    }

    /// All jobs.
    pub(super) async fn jobs(&self) -> Result<Jobs, Failure> {
        self.get("/api/v1/jobs").await
    }

    /// One job.
    pub(super) async fn job(&self, name: &str) -> Result<JobView, Failure> {
        self.get(at(name, "")).await
    }

    /// All nodes.
    pub(super) async fn nodes(&self) -> Result<Vec<NodeView>, Failure> {
        Ok(self.get::<Nodes>("/api/v1/nodes").await?.nodes)
    }
}

/// Who answers, and who acts.
pub(super) struct Acting<'a> {
    office: &'a Office,
    client: Client,
}

impl Acting<'_> {
    /// Makes one call.
    pub(super) async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, Failure> {
        match self.client.ask(call).await {
            Err(RemoteError::Refused { status: 404, detail })
                if detail.starts_with("there is no job ") =>
            {
                let named = detail.split('"').nth(1).unwrap_or_default();
                let all: Jobs = self.office.client.ask(Call::get("/api/v1/jobs")).await?;
                Err(no_job(named, all.jobs.iter().map(|job| job.name.as_str())))
            }
            answer => Ok(answer?),
        }
    }

    /// As [`Self::ask`]; the answer does not matter.
    pub(super) async fn tell(&self, call: Call) -> Result<(), Failure> {
        Ok(self.client.tell(call).await?)
    }
}

/// There is no such job, but `known`.
pub(super) fn no_job<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let known: Vec<&str> = known.collect();
    Failure::NotFound(match known.as_slice() {
        [] => format!(
            "there is no job {name:?}: there are no jobs that you may see (is --config, or --server, right?)"
        ),
        known => format!("there is no job {name:?}; there are: {}", known.join(", ")),
    })
}

/// What a call names in its body or in its query is an option of a command.
fn as_option(detail: String) -> String {
    let named = ["field ", "parameter "].iter().find_map(|word| detail.strip_prefix(word));
    named.map_or(detail.clone(), |rest| format!("--{rest}"))
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        let text = error.to_string();
        match error {
            RemoteError::Setup(_) => Self::Usage(text),
            RemoteError::Token(_) => Self::Refused(text),
            RemoteError::Refused { status, detail } => match status {
                400 | 405 | 413 => Self::Usage(as_option(detail)),
                403 | 409 => Self::Refused(text),
                404 => Self::NotFound(text),
                _ => Self::Failed(text),
            },
            RemoteError::Unreachable(_) | RemoteError::Strange { .. } => Self::Failed(text),
        }
    }
}

/// That something does not exist, which was said of a wrong field, is for a command that it was not found.
pub(super) fn not_found_if(says: &str) -> impl Fn(Failure) -> Failure + '_ {
    move |failure| match failure {
        Failure::Usage(text) if text.contains(says) => Failure::NotFound(text),
        other => other,
    }
}
