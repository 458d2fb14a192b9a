//! Leases as nodes: taken, extended, given back. [`keep`](super::keep) renews them, and [`read`](super::read) reads them.
//!
//! | node | kind | data |
//! | --- | --- | --- |
//! | `leases/JOB` | ephemeral, in the session of the lease's length | the text of the lease |
//! | `terms/JOB` | persistent | nothing; its version is the *term*: how many nodes of that lease were made |
//!
//! The version of a node begins at 0 with each node, so it does not tell a node from a later one. The term does: a process that changes or deletes
//! a node names the term in which it saw it, in the same step; and in a session that had begun before it saw it, because terms begin anew in
//! an ensemble that was emptied.

use std::sync::Arc;
use std::time::Duration;

use zookeeper_client::{Client, CreateMode, Error, MultiWriteError, MultiWriteResult, MultiWriter};

use super::Locks;
use super::era::ERA;
use super::link::{Reading, Session};
use super::step::Step;
use crate::clock;
use crate::domain::name::JobName;
use crate::domain::time::Boot;
use crate::store::{Result, StoreError};

pub(super) const LEASES: &str = "/leases";
pub(super) const TERMS: &str = "/terms";
/// How often a step is tried anew whose term or era was another.
pub(super) const ATTEMPTS: usize = 8;

pub(super) fn lease_of(job: &JobName) -> String {
    format!("{LEASES}/{job}")
}

pub(super) fn term_of(job: &JobName) -> String {
    format!("{TERMS}/{job}")
}

/// A lease as it was read.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) text: String,
    /// Of its data.
    pub(super) version: i32,
    pub(super) term: i32,
    /// Which session ends it.
    pub(super) session: i64,
    pub(super) read: Reading,
}

/// A lease that this process has.
#[derive(Clone)]
pub(super) struct Mine {
    pub(super) session: Arc<Session>,
    pub(super) term: i32,
    pub(super) version: i32,
    pub(super) text: String,
    pub(super) ttl: Duration,
    /// It ends then unless it is renewed.
    pub(super) until: Boot,
    /// Of the record store, when its record was there for certain; `None`: not known.
    pub(super) epoch: Option<String>,
}

impl Mine {
    /// Whether it is the node of that term, and whether its time is over.
    pub(super) fn is_over(&self, term: i32) -> bool {
        self.term == term && self.until.since(clock::boot()).is_zero()
    }
}

/// How taking ended.
pub(super) enum Taken {
    /// The node is there; the lease is granted when the step is finished.
    Had(Step),
    /// There is a node already.
    Exists,
    /// Nothing is granted for so long.
    Quiet(Duration),
}

type Written = std::result::Result<Vec<MultiWriteResult>, MultiWriteError>;

/// The stat of the term is the last that is written.
fn term_in(results: &[MultiWriteResult]) -> Option<(i32, i64)> {
    results.iter().rev().find_map(|result| match result {
        MultiWriteResult::SetData { stat } => Some((stat.version, stat.mzxid)),
        _ => None,
    })
}

impl Locks {
    /// Makes the node of a lease, in a session of its length, or in the one that looks if it has none. `calm`: refused while the ensemble may have forgotten leases.
    pub(super) async fn take(
        self: &Arc<Self>,
        job: &JobName,
        text: &str,
        ttl: Option<Duration>,
        calm: bool,
    ) -> Result<Taken> {
        let mut era = self.era().await?;
        for _ in 0..ATTEMPTS {
            // What is refused must not make the wait of others longer.
            if calm && !era.quiet().is_zero() {
                return Ok(Taken::Quiet(era.quiet()));
            }
            let session = self.session(ttl).await?;
            if !era.is_of(&session) {
                // The ensemble may have been emptied before it began.
                era = self.look_at_era(false).await?;
                continue;
            }
            era = self.reach_for(era, ttl.unwrap_or_default()).await?;
            // It may have found another era, which is looked at first.
            if !era.is_of(&session) || !era.reaches(ttl.unwrap_or_default()) {
                continue;
            }
            if calm && !era.quiet().is_zero() {
                return Ok(Taken::Quiet(era.quiet()));
            }
            let term = self.ensemble.bounded(session.client.check_stat(&term_of(job))).await?;
            let step = Step::begin(self, job, text, &session);
            let mut writer = session.client.new_multi_writer();
            let made =
                self.ask_for(&mut writer, job, text, term.map(|stat| stat.version), era.version);
            made.map_err(|error| self.ensemble.told(&error))?;
            match self.ensemble.within(writer.commit()).await {
                Ok(results) => {
                    let Some((term, zxid)) = term_in(&results) else {
                        return Err(StoreError::Unavailable(
                            "ZooKeeper answered nonsense".to_owned(),
                        ));
                    };
                    if era.has(zxid) {
                        return Ok(Taken::Had(step.made(term)));
                    }
                    // A leader that may have forgotten something.
                    if !calm {
                        self.look_at_era(false).await?;
                        return Ok(Taken::Had(step.made(term)));
                    }
                    step.made(term).undo().await?;
                    era = self.look_at_era(false).await?;
                }
                Err(MultiWriteError::OperationFailed { index, source }) => {
                    step.nothing();
                    match (index, source) {
                        (0, Error::BadVersion | Error::NoNode) => {
                            era = self.look_at_era(false).await?;
                        }
                        (_, Error::BadVersion) => self.catch_up(&session).await?,
                        (_, Error::NodeExists) => {
                            if self.exists(&session, job).await? {
                                return Ok(Taken::Exists);
                            }
                        }
                        (_, error) => return Err(self.ensemble.told(&error)),
                    }
                }
                Err(MultiWriteError::RequestFailed { source }) => {
                    return Err(self.ensemble.told(&source));
                }
            }
        }
        Err(StoreError::Unavailable(format!(
            "the lease of {job} is changed too often at this moment"
        )))
    }

    fn ask_for(
        &self,
        writer: &mut MultiWriter<'_>,
        job: &JobName,
        text: &str,
        term: Option<i32>,
        era: i32,
    ) -> std::result::Result<(), Error> {
        let acls = self.ensemble.acls();
        writer.add_check_version(ERA, era)?;
        if term.is_none() {
            writer.add_create(&term_of(job), b"", &CreateMode::Persistent.with_acls(acls))?;
        }
        writer.add_create(
            &lease_of(job),
            text.as_bytes(),
            &CreateMode::Ephemeral.with_acls(acls),
        )?;
        writer.add_set_data(&term_of(job), b"", Some(term.unwrap_or(0)))
    }

    /// What this session's server says is as new as what the leader knows.
    async fn catch_up(&self, session: &Session) -> Result<()> {
        self.ensemble.bounded(session.client.sync("/")).await
    }

    /// Whether it was the lease that existed, and not only its term.
    async fn exists(&self, session: &Session, job: &JobName) -> Result<bool> {
        self.catch_up(session).await?;
        Ok(self.ensemble.bounded(session.client.check_stat(&lease_of(job))).await?.is_some())
    }

    async fn session(&self, ttl: Option<Duration>) -> Result<Arc<Session>> {
        match ttl {
            Some(ttl) => self.ensemble.session(ttl).await,
            None => self.ensemble.looking().await,
        }
    }

    /// Notes a lease that is granted, or extended, now.
    pub(super) fn note(
        self: &Arc<Self>,
        job: &JobName,
        session: &Arc<Session>,
        (term, version): (i32, i32),
        text: &str,
        ttl: Duration,
    ) {
        let mine = Mine {
            session: Arc::clone(session),
            term,
            version,
            text: text.to_owned(),
            ttl,
            until: clock::boot() + ttl,
            epoch: self.lock(&self.epoch).clone(),
        };
        let before = self.lock(&self.mine).insert(job.clone(), mine);
        if before.is_none_or(|before| before.term != term) {
            self.attend(job.clone(), term);
        }
    }

    /// The lease in the node that was read has this text from now on, for `ttl`; false when the node is another by now.
    pub(super) async fn extend(
        self: &Arc<Self>,
        job: &JobName,
        node: &Node,
        text: &str,
        ttl: Duration,
    ) -> Result<bool> {
        let session = self.ensemble.session(ttl).await?;
        if !node.read.is_of(&session) {
            return Ok(false);
        }
        self.reach_surely(&session, ttl).await?;
        // One that is about to be ended here gets a new term, in which it is not.
        let has = |mine: &Mine| mine.term == node.term && mine.session.id == session.id;
        let has = self.lock(&self.mine).get(job).is_some_and(has);
        let stays = has && node.session == session.id;
        let (lease, terms) = (lease_of(job), term_of(job));
        let mut writer = session.client.new_multi_writer();
        let acls = self.ensemble.acls();
        let mut fill = || {
            if stays {
                writer.add_check_version(&terms, node.term)?;
                return writer.add_set_data(&lease, text.as_bytes(), Some(node.version));
            }
            writer.add_delete(&lease, Some(node.version))?;
            writer.add_create(&lease, text.as_bytes(), &CreateMode::Ephemeral.with_acls(acls))?;
            writer.add_set_data(&terms, b"", Some(node.term))
        };
        fill().map_err(|error| self.ensemble.told(&error))?;
        if !stays {
            self.end_unheard(job, &session, node.term + 1, ttl);
        }
        let Some(results) = self.settled(self.ensemble.within(writer.commit()).await)? else {
            return Ok(false);
        };
        let Some((version, _)) = term_in(&results) else { return Ok(false) };
        if !stays {
            self.confirm(&session).await?;
        }
        let now = if stays { (node.term, version) } else { (version, 0) };
        self.note(job, &session, now, text, ttl);
        Ok(true)
    }

    /// The lease in the node that was read has this text from now on, if the node is still that one.
    pub(super) async fn retext(&self, job: &JobName, node: &Node, text: &str) -> Result<()> {
        let mut writer = node.read.looking.client.new_multi_writer();
        let filled = writer.add_check_version(&term_of(job), node.term).and_then(|()| {
            writer.add_set_data(&lease_of(job), text.as_bytes(), Some(node.version))
        });
        filled.map_err(|error| self.ensemble.told(&error))?;
        let written = self.settled(self.ensemble.within(writer.commit()).await)?;
        if let Some((version, _)) = written.as_deref().and_then(term_in)
            && let Some(mine) = self.lock(&self.mine).get_mut(job)
            && mine.term == node.term
        {
            (mine.version, mine.text) = (version, text.to_owned());
        }
        Ok(())
    }

    /// Deletes the node that was read; done as well when it is another by now.
    pub(super) async fn remove(&self, job: &JobName, node: &Node) -> Result<()> {
        self.delete(&node.read.looking.client, job, node.term).await?;
        // By now this process may have another one.
        let mut all = self.lock(&self.mine);
        if all.get(job).is_some_and(|mine| mine.term == node.term) {
            all.remove(job);
        }
        Ok(())
    }

    /// Deletes the node of that term, if it is there.
    pub(super) async fn delete(&self, client: &Client, job: &JobName, term: i32) -> Result<()> {
        let mut writer = client.new_multi_writer();
        let filled = writer
            .add_check_version(&term_of(job), term)
            .and_then(|()| writer.add_delete(&lease_of(job), None));
        filled.map_err(|error| self.ensemble.told(&error))?;
        self.settled(self.ensemble.within(writer.commit()).await).map(drop)
    }

    /// `None`: nothing was done, as something is not there or another.
    fn settled(&self, written: Written) -> Result<Option<Vec<MultiWriteResult>>> {
        match written {
            Ok(results) => Ok(Some(results)),
            Err(MultiWriteError::OperationFailed {
                source: Error::BadVersion | Error::NoNode | Error::NodeExists,
                ..
            }) => Ok(None),
            Err(error) => Err(self.ensemble.told_multi(error)),
        }
    }
}
