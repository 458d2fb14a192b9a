//! The names of jobs that only some accounts could see, on any [`Records`].
//!
//! | name | kind | holds |
//! | --- | --- | --- |
//! | `hidden` | table | name of a job: `1` |

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::shared::{decide, rows, set};
use crate::Result;
use crate::hidden::HiddenNames;
use crate::records::{Look, Plan, Records};
use soloist_domain::name::JobName;

pub(super) const HIDDEN: &str = "hidden";

/// Names in one change.
const AT_ONCE: usize = 100;

#[async_trait]
impl HiddenNames for dyn Records + '_ {
    async fn hidden_names(&self) -> Result<BTreeSet<String>> {
        let looked = self.look(&[Look::Rows(HIDDEN.to_owned())]).await?;
        Ok(rows(&looked, 0).map(|(name, _)| name.to_owned()).collect())
    }

    async fn note_hidden(&self, names: &[JobName]) -> Result<()> {
        for names in names.chunks(AT_ONCE) {
            decide(self, &[Look::Rows(HIDDEN.to_owned())], |looked| {
                let known: BTreeSet<&str> = rows(looked, 0).map(|(name, _)| name).collect();
                let new = names.iter().filter(|name| !known.contains(name.as_str()));
                let writes: Vec<_> =
                    new.map(|name| set(HIDDEN, name.as_str(), "1".to_owned())).collect();
                let plan = Plan { writes, ..Plan::default() };
                Ok(((), (!plan.writes.is_empty()).then_some(plan)))
            })
            .await?;
        }
        Ok(())
    }
}
