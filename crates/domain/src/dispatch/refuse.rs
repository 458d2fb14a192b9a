//! A claim that gets nothing: why, until when, and what becomes of the request.
//!
//! A final answer of nothing is remembered for [`REMEMBERED`]; another waits. It says why, of the source that can be served the soonest.

use std::collections::{BTreeMap, BTreeSet};

use super::asks::ClaimAsk;
use super::record::{Answer, Claim, Kept, REMEMBERED};
use super::round::{Out, Round};
use super::rules::{Reason, Shut};
use super::sets::Need;
use super::task::TaskState;
use crate::name::SourceName;
use crate::time::Stamp;

impl Round<'_> {
    /// No task can be granted: why, and what becomes of the request.
    pub(super) fn refuse(&mut self, ask: &ClaimAsk) -> Out<Answer> {
        let (reason, next_at) = self.why_nothing(&ask.sources)?;
        match &ask.wait {
            Some((waiter, patience)) => {
                self.enter(waiter, &ask.sources, self.now + *patience);
            }
            None => {
                let claim = Claim {
                    id: ask.id(),
                    collector: ask.collector.clone(),
                    request: ask.request.clone(),
                    kept: Kept::Nothing { reason, next_at },
                    forget: self.now + REMEMBERED,
                };
                self.set_claim(&ask.id(), Some(claim));
            }
        }
        Ok(Answer::Nothing { reason, next_at })
    }

    /// Of the source that can be served the soonest; one without a known instant comes last.
    fn why_nothing(&self, only: &[SourceName]) -> Out<(Reason, Option<Stamp>)> {
        let mut candidates: BTreeSet<&SourceName> = only.iter().collect();
        if only.is_empty() {
            let Some(shut) = &self.sets.shut else {
                return Err(Need::Shut(1 + self.sources.len()).into());
            };
            candidates = shut.iter().chain(self.sources.keys()).collect();
        }
        let (mut ends, mut dues) = (BTreeMap::new(), BTreeMap::new());
        for name in &candidates {
            let source = self.source(name)?;
            // Those of which something changed in this transition may stand there still.
            let changed = 1 + self.tasks.values().filter(|task| task.source == **name).count();
            if source.ready > 0 && source.is_full() {
                ends.insert((*name).clone(), changed);
            } else if source.ready == 0 && source.due > 0 && !only.is_empty() {
                dues.insert(Some((*name).clone()), changed);
            }
        }
        if only.is_empty() {
            dues.insert(None, 1 + self.tasks.len());
        }
        ends.retain(|name, _| !self.sets.ends.contains_key(name));
        dues.retain(|name, _| !self.sets.dues.contains_key(name));
        if !ends.is_empty() || !dues.is_empty() {
            return Err(Need::Firsts { ends, dues }.into());
        }
        let mut shuts: Vec<Shut> = Vec::new();
        for name in &candidates {
            if self.source(name)?.ready > 0 {
                shuts.extend(self.room(name, self.first_end(name)?)?.err());
            }
        }
        let first = shuts.into_iter().min_by_key(|shut| (shut.until.is_none(), shut.until));
        Ok(match first {
            Some(shut) => (shut.reason, shut.until),
            None => (Reason::Empty, self.first_due(only)?),
        })
    }

    /// When the first lease of a source ends, as far as that is loaded.
    fn first_end(&self, name: &SourceName) -> Out<Option<Stamp>> {
        let mut first = None;
        let changed = self.tasks.values().filter(|task| task.source == *name).map(|task| &task.id);
        for id in self.sets.ends.get(name).into_iter().flatten().chain(changed) {
            let task = self.task(id)?.filter(|task| task.state == TaskState::Leased);
            first = first.into_iter().chain(task.and_then(|task| task.until)).min();
        }
        Ok(first)
    }

    /// When the first task is due, of these sources or (none) of all.
    fn first_due(&self, only: &[SourceName]) -> Out<Option<Stamp>> {
        let stored = self.sets.dues.values().flatten();
        let mut first = None;
        for id in stored.chain(self.tasks.keys()) {
            let task = self.task(id)?.filter(|task| task.state == TaskState::Due);
            let task = task.filter(|task| only.is_empty() || only.contains(&task.source));
            first = first.into_iter().chain(task.and_then(|task| task.at)).min();
        }
        Ok(first)
    }
}
