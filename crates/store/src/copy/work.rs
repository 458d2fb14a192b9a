//! What is read and written, in which order.
//!
//! Sources and rotations are made with their rules, as people make them; then their progress is written.

use super::mark::Mark;
use super::{CopyError, Tally, Trouble};
use crate::Store;
use crate::core::{carry, rotation};
use crate::dispatch::{Sources as _, TaskId};
use crate::portable::{AT_ONCE, Bookmark, StoredSource, StoredTask};
use crate::records::Write;
use crate::rotation::{Rotations as _, TURNS_KEPT};
use soloist_domain::dispatch::TaskState;
use soloist_domain::time::Stamp;

/// Bytes of keys and payloads that are written at once: a server takes packets of some megabytes.
const BYTES: usize = 2 << 20;

type Outcome<T> = Result<T, CopyError>;

/// Copies everything; without a mark it only counts.
pub(super) async fn copy(
    source: &Store,
    mark: Option<&mut Mark>,
    progress: &mut dyn FnMut(&Tally),
) -> Outcome<Tally> {
    let mut work = Work { source, mark, progress, tally: Tally::default() };
    work.records().await?;
    work.jobs().await?;
    work.audit().await?;
    work.dispatch().await?;
    work.rotations().await?;
    Ok(work.tally)
}

struct Work<'a> {
    source: &'a Store,
    mark: Option<&'a mut Mark>,
    progress: &'a mut dyn FnMut(&Tally),
    tally: Tally,
}

fn from(error: crate::StoreError) -> CopyError {
    CopyError::Source(error)
}

fn to(error: crate::StoreError) -> CopyError {
    CopyError::Target(error)
}

impl Work<'_> {
    fn target(&self) -> Option<Store> {
        self.mark.as_ref().map(|mark| mark.target().clone())
    }

    /// A portion is written.
    async fn wrote(&mut self) -> Outcome<()> {
        (self.progress)(&self.tally);
        match &mut self.mark {
            Some(mark) => mark.beat().await.map_err(|why: Trouble| why.of(CopyError::Target)),
            None => Ok(()),
        }
    }

    async fn records(&mut self) -> Outcome<()> {
        let jobs = self.source.dispatch.every_job().await.map_err(from)?;
        let writes = carry::read_rows(&*self.source.backend, &jobs).await.map_err(from)?;
        for some in writes.chunks(AT_ONCE) {
            if let Some(target) = self.target() {
                carry::write(&*target.backend, some.to_vec()).await.map_err(to)?;
            }
            for write in some {
                match write {
                    Write::Set { table, .. } if table == carry::USERS => self.tally.accounts += 1,
                    Write::Set { table, .. } if table == carry::TOKENS => self.tally.tokens += 1,
                    _ => self.tally.records += 1,
                }
            }
            self.wrote().await?;
        }
        Ok(())
    }

    async fn jobs(&mut self) -> Outcome<()> {
        for name in self.source.dispatch.every_job().await.map_err(from)? {
            let job = carry::read_job(&*self.source.backend, &name).await.map_err(from)?;
            // It said nothing any more, and was forgotten since.
            if !job.is_there() {
                continue;
            }
            if let Some(target) = self.target() {
                carry::write_job(&*target.backend, &job).await.map_err(to)?;
            }
            let (runs, lines) = job.counts();
            self.tally.jobs += 1;
            self.tally.runs += runs;
            self.tally.lines += lines;
            self.wrote().await?;
        }
        Ok(())
    }

    async fn audit(&mut self) -> Outcome<()> {
        let mut after = 0;
        loop {
            let entries = carry::read_audit(&*self.source.backend, after).await.map_err(from)?;
            let Some(last) = entries.last() else { return Ok(()) };
            after = last.id;
            if let Some(target) = self.target() {
                let writes = carry::audit_writes(&entries).map_err(from)?;
                carry::write(&*target.backend, writes).await.map_err(to)?;
            }
            self.tally.audit += entries.len();
            self.wrote().await?;
        }
    }

    async fn dispatch(&mut self) -> Outcome<()> {
        let sources = self.source.dispatch.every_source().await.map_err(from)?;
        self.sources(&sources).await?;
        self.tasks().await?;
        if let Some(target) = self.target() {
            // In the order of their turns: so the target's ring has the same.
            for StoredSource { source, .. } in &sources {
                target.pause_source(&source.name, source.rules.paused).await.map_err(to)?;
            }
        }
        let collectors = self.source.collectors().await.map_err(from)?;
        self.tally.collectors += collectors.len();
        if let Some(target) = self.target() {
            target.dispatch.fill_collectors(&collectors).await.map_err(to)?;
        }
        self.wrote().await
    }

    async fn sources(&mut self, sources: &[StoredSource]) -> Outcome<()> {
        for some in sources.chunks(AT_ONCE) {
            if let Some(target) = self.target() {
                for StoredSource { source, .. } in some {
                    target.put_source(&source.name, &source.rules).await.map_err(to)?;
                }
                target.dispatch.fill_sources(some).await.map_err(to)?;
            }
            self.tally.sources += some.len();
            self.wrote().await?;
        }
        Ok(())
    }

    async fn tasks(&mut self) -> Outcome<()> {
        let mut done: Vec<(Stamp, TaskId)> = Vec::new();
        let mut from_here = Some(Bookmark::default());
        while let Some(here) = from_here {
            let tasks;
            (tasks, from_here) = self.source.dispatch.next_tasks(here).await.map_err(from)?;
            for some in portions(&tasks) {
                if let Some(target) = self.target() {
                    target.dispatch.fill_tasks(some).await.map_err(to)?;
                }
                self.tally.tasks += some.len();
                self.wrote().await?;
            }
            let tasks = tasks.into_iter().map(|one| one.task);
            let finished = tasks.filter(|task| task.state == TaskState::Done);
            done.extend(finished.map(|task| (task.changed, task.id)));
        }
        if let Some(target) = self.target() {
            done.sort_by_key(|(at, _)| *at);
            let done: Vec<TaskId> = done.into_iter().map(|(_, id)| id).collect();
            target.dispatch.fill_done(&done).await.map_err(to)?;
        }
        Ok(())
    }

    async fn rotations(&mut self) -> Outcome<()> {
        for view in self.source.rotations(None, TURNS_KEPT).await.map_err(from)? {
            if let Some(target) = self.target() {
                target.put_rotation(&view.name, &view.rules).await.map_err(to)?;
                rotation::fill(&*target.records, &view).await.map_err(to)?;
            }
            self.tally.rotations += 1;
            self.tally.turns += view.past.len();
            self.wrote().await?;
        }
        Ok(())
    }
}

/// Tasks that are written at once.
fn portions(tasks: &[StoredTask]) -> Vec<&[StoredTask]> {
    let (mut portions, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (nth, task) in tasks.iter().enumerate() {
        bytes += task.size();
        if bytes > BYTES && nth > begin {
            portions.extend(tasks.get(begin..nth));
            (begin, bytes) = (nth, task.size());
        }
    }
    portions.extend(tasks.get(begin..).filter(|rest| !rest.is_empty()));
    portions
}
