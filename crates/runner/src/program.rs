//! A program and where it runs; shared by jobs, `soloist run`, `soloist collect` and `soloist turn`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use super::entrusted::Entrusted;
use super::leftovers;
use soloist_domain::name::NodeName;
use soloist_guard::choice::Choice;
use soloist_remote::Access;
use soloist_store::Options;

/// What is run, and what its guard must know of this node and the store.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in JobConfig and Config")]
pub struct Program {
    pub argv: Vec<OsString>,
    pub dir: PathBuf,
    /// Its environment, in addition to `SOLOIST_JOB`, `SOLOIST_RUN`, `SOLOIST_NODE` and `SOLOIST_TOKEN`.
    pub env: BTreeMap<OsString, OsString>,
    pub stop_grace: Duration,
    pub node: NodeName,
    pub store_url: String,
    /// The nodes to ask instead; then `store_url` only names them.
    pub server: Option<Access>,
    pub prefix: String,
    pub containment: Choice,
    /// The user that it runs as, and the secrets that it is given.
    pub entrusted: Entrusted,
}

impl Program {
    /// The same, with more in its environment.
    #[must_use]
    pub(super) fn with<'a>(mut self, more: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        self.env.extend(more.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// How its store is opened by a process that knows of leases as long as that.
    pub(super) fn options(&self, longest_lease: Duration) -> Options {
        Options { prefix: self.prefix.clone(), longest_lease, ..Options::default() }
    }

    /// Looks whether there is such a program.
    ///
    /// # Errors
    /// Why not, and what to do about it.
    pub(super) fn find(&self) -> Result<(), String> {
        let command = self.argv.first().map_or(OsStr::new(""), OsString::as_os_str);
        let path = self.env.get(OsStr::new("PATH")).map_or(OsStr::new(""), OsString::as_os_str);
        soloist_config::find_program(command, &self.dir, path).map(drop)
    }

    /// Ends what runs of this store on this machine left behind when their guards were killed.
    pub(super) fn sweep(&self) -> std::io::Result<()> {
        leftovers::sweep(&leftovers::notes_of(&self.store_url, &self.prefix)).map(drop)
    }
}
