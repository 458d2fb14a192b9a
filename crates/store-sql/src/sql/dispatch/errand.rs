//! What a transition must look at, as statements, each of which an index answers.
//!
//! The errands of one round depend on nothing but what is known: they are sent together. Some bring others with them, as tasks
//! do their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::row::count;
use super::super::session::{Statement, Value};
use super::in_hand::Hints;
use super::{claims, source, task, waiters};
use soloist_domain::dispatch::{ClaimId, Need, TaskId, Wanted};
use soloist_domain::name::SourceName;
use soloist_domain::time::Stamp;

/// How many sources at their cap are asked which of them can be served the soonest.
const CAPPED: usize = 16;
/// How that question begins.
pub(super) const OVERDUE: &str =
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM tasks WHERE state = 'leased' AND ";
/// Sources of the ring, in its order; the number of them is the parameter.
pub(super) const RING: &str = "WHERE turn IS NOT NULL ORDER BY turn LIMIT ?";
/// Mostly the clock has made nothing due: one question instead of four.
const IS_OVERDUE: &str = "SELECT CASE WHEN EXISTS (SELECT 1 FROM tasks WHERE state = 'leased' AND {until} <= ?) \
     OR EXISTS (SELECT 1 FROM tasks WHERE state = 'due' AND {due} <= ?) \
     OR EXISTS (SELECT 1 FROM sources WHERE opens IS NOT NULL AND opens <= ?) \
     OR EXISTS (SELECT 1 FROM sources WHERE promised > 0 AND promised_until <= ?) THEN 1 ELSE 0 END";

fn texts(ids: &BTreeSet<TaskId>) -> Vec<Value> {
    ids.iter().map(|id| id.0.as_str().into()).collect()
}

/// Something to be loaded.
#[derive(Debug)]
pub(super) enum Errand {
    /// By name, each with the starts that its window counts.
    Sources(BTreeSet<SourceName>),
    /// By id; [`Errand::of_tasks`] brings their sources and claims.
    Tasks(BTreeSet<TaskId>),
    /// The sources of these tasks.
    SourcesOf(BTreeSet<TaskId>),
    /// The claims that these tasks are leased in.
    ClaimsOf(BTreeSet<TaskId>),
    /// The tasks that those claims name.
    GrantedOf(BTreeSet<TaskId>),
    /// By id, with the tasks that they name.
    Claims(BTreeSet<ClaimId>),
    /// The tasks of the claim in that row.
    Granted(ClaimId, i64),
    /// The starts of a source that a window so long counts.
    Recent(SourceName, Duration),
    /// Whether the clock has made anything due, and then at most so many of each kind.
    Clock(usize),
    /// Whether anybody waits, and then so many of each queue.
    Queues(BTreeMap<Option<SourceName>, usize>),
    /// The first so many of a list.
    List(List, usize),
}

/// Rows in an order.
#[derive(Debug)]
pub(super) enum List {
    /// Sources that can be served, by turn.
    Ring,
    /// Sources that open by themselves, the earliest first.
    Opening,
    /// Sources at their cap.
    Capped,
    /// Sources that are paused.
    Paused,
    /// Sources that open by now.
    Opened,
    /// Sources with promises that are over.
    Lapsed,
    /// Ready tasks of a source.
    Heads(SourceName),
    /// Leased tasks of a source, the earliest end first.
    Ends(SourceName),
    /// Due tasks of a source, or (none) of all.
    Dues(Option<SourceName>),
    /// Tasks whose leases are over.
    Ended,
    /// Tasks that are due by now.
    Due,
    /// Who waits for a source, or (none) for any.
    Waiting(Option<SourceName>),
}

impl List {
    /// What the clock makes due.
    pub(super) const OVERDUE: [Self; 4] = [Self::Ended, Self::Due, Self::Opened, Self::Lapsed];

    pub(super) fn is_of_sources(&self) -> bool {
        match self {
            Self::Ring | Self::Opening | Self::Capped => true,
            Self::Paused | Self::Opened | Self::Lapsed => true,
            Self::Heads(_) | Self::Ends(_) | Self::Dues(_) => false,
            Self::Ended | Self::Due | Self::Waiting(_) => false,
        }
    }

    fn needs_now(&self) -> bool {
        match self {
            Self::Opened | Self::Lapsed | Self::Ended | Self::Due | Self::Waiting(_) => true,
            Self::Ring | Self::Opening | Self::Capped | Self::Paused => false,
            Self::Heads(_) | Self::Ends(_) | Self::Dues(_) => false,
        }
    }

    fn ask(&self, most: usize, now: Stamp) -> Statement {
        // Words of states are no parameters, so that the index of that state is used.
        let (rest, first): (&str, Vec<Value>) = match self {
            Self::Ring => (RING, vec![]),
            Self::Opening => ("WHERE opens IS NOT NULL ORDER BY opens LIMIT ?", vec![]),
            Self::Capped => ("WHERE shut = ? LIMIT ?", vec!["cap".into()]),
            Self::Paused => ("WHERE shut = ? LIMIT ?", vec!["paused".into()]),
            Self::Opened => (
                "WHERE opens IS NOT NULL AND opens <= ? ORDER BY opens LIMIT ?",
                vec![now.0.into()],
            ),
            Self::Lapsed => (
                "WHERE promised > 0 AND promised_until <= ? ORDER BY promised_until LIMIT ?",
                vec![now.0.into()],
            ),
            Self::Heads(source) => (
                "t.source = ? AND t.state = 'ready' ORDER BY t.{place} LIMIT ?",
                vec![source.as_str().into()],
            ),
            Self::Ends(source) => (
                "t.source = ? AND t.state = 'leased' ORDER BY t.{until} LIMIT ?",
                vec![source.as_str().into()],
            ),
            Self::Dues(Some(source)) => (
                "t.source = ? AND t.state = 'due' ORDER BY t.{due} LIMIT ?",
                vec![source.as_str().into()],
            ),
            Self::Dues(None) => ("t.state = 'due' ORDER BY t.{due} LIMIT ?", vec![]),
            Self::Ended => (
                "t.state = 'leased' AND t.{until} <= ? ORDER BY t.{until}, t.token LIMIT ?",
                vec![now.0.into()],
            ),
            Self::Due => (
                "t.state = 'due' AND t.{due} <= ? ORDER BY t.{due}, t.n LIMIT ?",
                vec![now.0.into()],
            ),
            Self::Waiting(source) => return waiters::first(now, source.as_ref(), most),
        };
        let head = match self {
            _ if self.is_of_sources() => source::SOURCES,
            // They are asked for to be handed out.
            Self::Heads(_) => task::FREE,
            _ => task::TASKS,
        };
        let mut params = first;
        params.push(count(most).into());
        Statement::new(format!("{head}{rest}"), params)
    }
}

impl Errand {
    /// All that a transition needs; `hints` say what the tasks among it mostly come to.
    pub(super) fn all_of(needs: Vec<Need>, hints: &Hints) -> Vec<Self> {
        let mut errands = Vec::with_capacity(needs.len());
        for need in needs {
            match need {
                Need::Records(Wanted { mut sources, tasks, mut claims }) => {
                    sources.extend(hints.sources.iter().cloned());
                    claims.extend(hints.claims.iter().cloned());
                    let wanted = [Self::Sources(sources), Self::Claims(claims)];
                    errands.extend(wanted.into_iter().filter(|one| !one.is_idle()));
                    errands.extend(Self::of_tasks(tasks, &hints.tasks));
                }
                Need::Recent(keys) => {
                    errands.extend(keys.into_iter().map(|(name, span)| Self::Recent(name, span)));
                }
                Need::Overdue(most) => {
                    errands.push(Self::Clock(usize::try_from(most).unwrap_or(usize::MAX)));
                }
                Need::Ring(most) => errands.push(Self::List(List::Ring, most)),
                Need::Heads(counts) => errands.extend(
                    counts.into_iter().map(|(name, most)| Self::List(List::Heads(name), most)),
                ),
                Need::Shut(most) => {
                    let lists = [(List::Opening, most), (List::Capped, CAPPED), (List::Paused, 1)];
                    errands.extend(lists.map(|(list, most)| Self::List(list, most)));
                }
                Need::Firsts { ends, dues } => {
                    let ends = ends.into_iter().map(|(name, most)| (List::Ends(name), most));
                    let dues = dues.into_iter().map(|(name, most)| (List::Dues(name), most));
                    errands.extend(ends.chain(dues).map(|(list, most)| Self::List(list, most)));
                }
                Need::Queues(counts) => errands.push(Self::Queues(counts)),
            }
        }
        errands
    }

    /// Tasks and all that goes with them, in one round; of those that are `known` the rest is looked for by its name. Claims stand before
    /// what they name.
    fn of_tasks(ids: BTreeSet<TaskId>, known: &BTreeSet<TaskId>) -> Vec<Self> {
        if ids.is_empty() {
            return Vec::new();
        }
        let rest: BTreeSet<TaskId> = ids.difference(known).cloned().collect();
        let mut errands = Vec::with_capacity(4);
        if !rest.is_empty() {
            errands.extend([Self::SourcesOf(rest.clone()), Self::ClaimsOf(rest.clone())]);
            errands.push(Self::GrantedOf(rest));
        }
        errands.push(Self::Tasks(ids));
        errands
    }

    fn is_idle(&self) -> bool {
        match self {
            Self::Sources(names) => names.is_empty(),
            Self::Claims(ids) => ids.is_empty(),
            _ => false,
        }
    }

    /// The statement that a server answers before this process knows the instant; `None` when the errand needs the instant.
    pub(super) fn ask_at_once(&self) -> Option<Statement> {
        let needs_now = match self {
            Self::Clock(_) => {
                return Some(Statement::new(IS_OVERDUE.replace('?', "{at}"), Vec::new()));
            }
            Self::Recent(..) => true,
            Self::List(list, _) => list.needs_now(),
            Self::Sources(_) | Self::Tasks(_) | Self::SourcesOf(_) | Self::ClaimsOf(_) => false,
            Self::GrantedOf(_) | Self::Claims(_) | Self::Granted(..) | Self::Queues(_) => false,
        };
        (!needs_now).then(|| self.ask(Stamp(0)))
    }

    /// The statement that finds it.
    pub(super) fn ask(&self, now: Stamp) -> Statement {
        match self {
            Self::Sources(names) => {
                let names = names.iter().map(|name| name.as_str().into()).collect();
                Statement::within(&format!("{}{}", source::SOURCES, source::NAMED), names, "")
            }
            Self::Tasks(ids) => Statement::within(&format!("{}t.id", task::TASKS), texts(ids), ""),
            Self::SourcesOf(ids) => {
                // The inner query is answered first. With `WHERE name IN (...)` MariaDB looks at all tasks of each source.
                let head =
                    format!("{}JOIN (SELECT DISTINCT source FROM tasks WHERE id", source::SOURCES);
                Statement::within(&head, texts(ids), ") o ON o.source = name")
            }
            Self::ClaimsOf(ids) => {
                Statement::within(claims::CLAIMS_OF.0, texts(ids), claims::CLAIMS_OF.1)
            }
            Self::GrantedOf(ids) => {
                Statement::within(claims::GRANTED_OF.0, texts(ids), claims::GRANTED_OF.1)
            }
            Self::Claims(ids) => {
                let ids = ids.iter().map(|id| id.0.as_str().into()).collect();
                Statement::within(claims::CLAIMS, ids, "")
            }
            Self::Granted(_, n) => claims::granted(*n),
            Self::Recent(name, span) => source::oldest_start(name, *span, now),
            Self::Clock(_) => Statement::new(IS_OVERDUE, vec![now.0.into(); 4]),
            Self::Queues(_) => Statement::new(waiters::ARE_THERE, Vec::new()),
            Self::List(list, most) => list.ask(*most, now),
        }
    }
}
