//! The newest record that this process saw of each job: a transition decides on it first.
//!
//! It may be old, and then the commit is refused. So nothing wrong is ever written; it only saves a read.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use super::record::Case;
use crate::Result;
use crate::engine::Stored;
use soloist_domain::job::JobRecord;
use soloist_domain::name::JobName;

/// More jobs than any store has; names of leases that come and go must not fill the memory.
const MOST: usize = 20_000;

/// What is remembered.
#[derive(Default)]
pub struct Known {
    cases: Mutex<HashMap<JobName, Case>>,
}

impl Known {
    /// What is known of `job`.
    pub fn of(&self, job: &JobName) -> Option<Case> {
        self.cases.lock().get(job).cloned()
    }

    /// Remembers what was read or written just now; hands it on.
    pub fn put(&self, case: Case) -> Case {
        let mut cases = self.cases.lock();
        if cases.len() >= MOST && !cases.contains_key(&case.job.record.name) {
            cases.clear();
        }
        cases.insert(case.job.record.name.clone(), case.clone());
        case
    }

    /// As [`Known::put`], unless what is known was written later.
    fn put_newer(&self, case: Case) -> Case {
        let newer =
            self.of(&case.job.record.name).is_some_and(|known| known.written() > case.written());
        if newer { case } else { self.put(case) }
    }

    /// A record that came with an event; hands it on, also when a newer one is known.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`](crate::StoreError::Corrupt).
    pub fn heard(&self, job: &JobName, stored: Stored) -> Result<JobRecord> {
        Ok(self.put_newer(Case::read(job, stored)?).job.record)
    }

    /// The length of the lease of `job`.
    pub fn ttl(&self, job: &JobName) -> Option<Duration> {
        self.cases.lock().get(job)?.job.record.lease.as_ref().map(|lease| lease.ttl)
    }

    /// It must be read anew.
    pub fn forget(&self, job: &JobName) {
        self.cases.lock().remove(job);
    }
}
