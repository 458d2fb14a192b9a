//! What sources did in the last day, on any [`Records`].
//!
//! | name | kind | holds |
//! | --- | --- | --- |
//! | `throughput` | table | `mark`: how far the counters have come; number of a quarter of an hour since 1970: what was done in it; both in JSON |

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::shared::{decide, json, look_at, parsed, row, rows, set, still, unset};
use crate::Result;
use crate::records::{Look, Plan, Records};
use crate::throughput::{Counts, Past, Throughput};
use soloist_domain::throughput::{Mark, Next};

pub(super) const THROUGHPUT: &str = "throughput";
const MARK: &str = "mark";

#[async_trait]
impl Throughput for dyn Records + '_ {
    async fn throughput(&self) -> Result<Option<Past>> {
        let looked = self.look(&[Look::Rows(THROUGHPUT.to_owned())]).await?;
        let mut mark = None;
        let mut steps = BTreeMap::new();
        for (name, text) in rows(&looked, 0) {
            match name.parse() {
                Ok(step) => _ = steps.insert(step, parsed(THROUGHPUT, text)?),
                Err(_) if name == MARK => mark = Some(parsed(THROUGHPUT, text)?),
                Err(_) => {}
            }
        }
        Ok(mark.map(|mark| Past { mark, steps }))
    }

    async fn note_throughput(&self, step: i64, counted: &Counts) -> Result<()> {
        decide(self, &[look_at(THROUGHPUT, MARK)], |looked| {
            let old = row(looked, 0);
            let next = match old {
                Some(text) => parsed::<Mark>(THROUGHPUT, text)?.next(step, counted),
                None => {
                    let mark = Mark::begin(step, counted);
                    Some(Next { mark, over: None, forgotten: 0..0 })
                }
            };
            let Some(Next { mark, over, forgotten }) = next else { return Ok(((), None)) };
            let mut writes = vec![set(THROUGHPUT, MARK, json(THROUGHPUT, &mark)?)];
            writes.extend(forgotten.map(|step| unset(THROUGHPUT, &step.to_string())));
            if let Some((step, counts)) = over {
                writes.push(set(THROUGHPUT, &step.to_string(), json(THROUGHPUT, &counts)?));
            }
            let checks = vec![still(THROUGHPUT, MARK, old)];
            Ok(((), Some(Plan { checks, writes, ..Plan::default() })))
        })
        .await
    }
}
