//! What a transition is decided on, and how it is looked at: in one call, at one instant.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::known::{Heads, KnownTurns, Place, Queue, Remembered};
use super::names::{self, ASKED, ROTATIONS};
use super::record::{Case, Standing, had, past};
use super::{ATTEMPTS, Errand, too_often};
use crate::records::{Check, Found, Look, Looked, Records};
use crate::{Result, StoreError};
use soloist_domain::lease::Token;
use soloist_domain::name::{TypeName, Waiter};
use soloist_domain::rotation::{Memory, PastTurn, Queues, Round, TURNS_KEPT, TypeRules};
use soloist_domain::time::Stamp;

/// So many are looked at of each queue: some may go before it is looked at again.
pub(super) const DEPTH: usize = 8;
/// When the first of a queue are all over, so many more are looked at.
const DEEPER: usize = 16;
/// No queue has more of them.
pub(super) const DEEPEST: usize = 100_000;

/// How many wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// For each type.
    pub(super) waiting: BTreeMap<TypeName, u64>,
    /// For the type that is asked for, before who asks.
    pub(super) before: u64,
}

/// What a transition is decided on.
pub(super) struct Seen {
    /// `None`: there is no such rotation.
    pub(super) case: Option<Case>,
    pub(super) memory: Memory,
    pub(super) heads: Arc<HashMap<Queue, Heads>>,
    /// The row of the request.
    pub(super) asked: Option<String>,
    /// The row of who asks, as one who waits.
    pub(super) waiting: Option<String>,
    /// How the turn ended that the call is about.
    pub(super) past: Option<PastTurn>,
    pub(super) counts: Option<Counts>,
    /// When it was read, all of it in this call; `None`: some of it is remembered.
    pub(super) at: Option<Stamp>,
}

/// Why the queues cannot be told.
pub(super) enum Unknown {
    /// One was not looked at.
    NotSeen,
    /// In one of them, the time of all who were looked at is over.
    TooFew,
}

/// The queues as `domain` takes them, and what that depends on.
#[derive(Default)]
pub(super) struct Lined {
    pub(super) queues: Queues,
    /// These were looked at.
    pub(super) checks: Vec<Check>,
    /// They stand there, and their time is over; with the text of the row.
    pub(super) over: Vec<(Queue, Waiter, Option<String>)>,
    /// Until when those wait who were looked at.
    pub(super) edges: Vec<Stamp>,
}

impl Seen {
    /// From memory.
    pub(super) fn remembered(known: &KnownTurns, errand: &Errand<'_>) -> Option<Self> {
        let Remembered { case, memory, heads } = known.of(errand.name)?;
        let waiter = errand.ask().and_then(|ask| ask.waiter());
        Some(Self {
            case: Some(case),
            memory,
            heads,
            asked: None,
            waiting: waiter.and_then(|waiter| known.row(errand.name, waiter)),
            past: None,
            counts: None,
            at: None,
        })
    }

    /// The record was written by what is known of the store's memory.
    pub(super) fn knows_the_store(&self) -> bool {
        let of = |case: &Case| case.body.rotation.known.server == self.memory.server;
        self.case.as_ref().is_some_and(of)
    }

    /// As it is remembered from now on.
    pub(super) fn to_remember(&self) -> Option<Remembered> {
        let case = self.case.clone()?;
        Some(Remembered { case, memory: self.memory.clone(), heads: Arc::clone(&self.heads) })
    }

    /// The turn that the request had, while that is known.
    pub(super) fn had(&self, errand: &Errand<'_>) -> Result<Option<(Token, Stamp)>> {
        let request = errand.ask().map(names::asked);
        request.zip(self.asked.as_deref()).map(|(of, text)| had(&of, text)).transpose()
    }

    /// Who waits, of those who count.
    pub(super) fn line(
        &self,
        errand: &Errand<'_>,
        round: &Round,
    ) -> std::result::Result<Lined, Unknown> {
        let mut lined = Lined::default();
        let Some(case) = &self.case else { return Ok(lined) };
        let asker = errand.ask().and_then(|ask| ask.waiter());
        for TypeRules { name: kind, .. } in &case.body.rotation.rules.types {
            let mut whole: Vec<(u64, Waiter)> = Vec::new();
            let goes = errand.rules.is_some_and(|rules| rules.of(kind).is_none());
            for incarnation in &case.body.incarnations {
                if round.rotation().silent.contains_key(incarnation) && !goes {
                    continue;
                }
                let queue = (kind.clone(), incarnation.clone());
                let heads = self.heads.get(&queue).ok_or(Unknown::NotSeen)?;
                let (mut wait, mut looked_at) = (0, 0);
                for place in &heads.first {
                    if wait == Queues::FIRST && !goes {
                        break;
                    }
                    looked_at += 1;
                    let until = place.standing.as_ref().map(|(standing, _)| standing.until);
                    let waits = until.is_some_and(|until| until > round.now());
                    lined.edges.extend(until);
                    if waits || Some(&place.waiter) == asker {
                        wait += 1;
                        whole.push((place.number, place.waiter.clone()));
                    } else {
                        let text = place.standing.as_ref().map(|(_, text)| text.clone());
                        lined.over.push((queue.clone(), place.waiter.clone(), text));
                    }
                }
                if !heads.all && (wait < Queues::FIRST && heads.first.len() < DEEPEST || goes) {
                    return Err(Unknown::TooFew);
                }
                let whole_queue = heads.all && looked_at == heads.first.len();
                let are = heads.first[..looked_at].iter().map(|place| place.waiter.0.clone());
                lined.checks.push(Check::First {
                    list: names::queue(errand.name, kind, incarnation),
                    most: looked_at + usize::from(whole_queue),
                    are: are.collect(),
                });
            }
            whole.sort();
            let line = whole.into_iter().map(|(_, waiter)| waiter).collect();
            lined.queues.0.insert(kind.clone(), line);
        }
        Ok(lined)
    }
}

/// What is looked at.
pub(super) struct Wanted<'a> {
    errand: &'a Errand<'a>,
    queues: Vec<Queue>,
    depth: usize,
    /// Types and incarnations of which it is counted who waits.
    counts: Option<(Vec<TypeName>, BTreeSet<String>)>,
    /// What is known of the store's memory, if that need not be looked at.
    memory: Option<Memory>,
    /// The newest record that is known: when it is found again, it need not be read.
    case: Option<&'a Case>,
}

impl<'a> Wanted<'a> {
    /// Whatever `errand` may need; `case` is the newest that is known, `depth` how many of each queue (0: of none).
    pub(super) fn of(errand: &'a Errand<'a>, case: Option<&'a Case>, depth: usize) -> Self {
        let mut queues = Vec::new();
        let mut counts = None;
        if let Some(case) = case {
            let kinds: Vec<TypeName> =
                case.body.rotation.rules.types.iter().map(|kind| kind.name.clone()).collect();
            if depth > 0 {
                for kind in &kinds {
                    queues.extend(
                        case.body
                            .incarnations
                            .iter()
                            .map(|incarnation| (kind.clone(), incarnation.clone())),
                    );
                }
            }
            counts = errand.ask().map(|_| (kinds, case.body.incarnations.clone()));
        }
        Self { errand, queues, depth, counts, memory: None, case }
    }

    /// What a place is decided on, once it is taken. What the store may have forgotten concerns only who begins.
    pub(super) fn entered(
        errand: &'a Errand<'a>,
        seen: &'a Seen,
        depth: usize,
        own: Option<Queue>,
    ) -> Self {
        let whole = Self::of(errand, seen.case.as_ref(), depth);
        let memory = Some(seen.memory.clone());
        if depth > 0 {
            return Self { memory, ..whole };
        }
        Self { memory, queues: own.into_iter().collect(), depth: DEPTH, ..whole }
    }

    /// Only how many wait, and who is first in `queue`.
    pub(super) fn after(errand: &'a Errand<'a>, case: &'a Case, queue: Option<Queue>) -> Self {
        let whole = Self::of(errand, Some(case), 0);
        Self { queues: queue.into_iter().collect(), depth: DEPTH, ..whole }
    }

    pub(super) fn looks(&self) -> Vec<Look> {
        let name = self.errand.name;
        let mut looks = vec![Look::Row(ROTATIONS.to_owned(), name.to_string())];
        if self.memory.is_none() {
            looks.push(Look::Memory);
        }
        if let Some(ask) = self.errand.ask() {
            looks.push(Look::Row(ASKED.to_owned(), names::asked(ask)));
            if let Some(waiter) = ask.waiter() {
                looks.push(Look::Row(names::waiting(name), waiter.0.clone()));
            }
        }
        if self.errand.about.is_some() {
            looks.push(Look::Last(names::ended(name), TURNS_KEPT));
        }
        looks.extend(self.beside());
        looks
    }

    /// Without what is known after a change.
    pub(super) fn beside(&self) -> Vec<Look> {
        let name = self.errand.name;
        let described = |(kind, incarnation): &Queue| Look::Described {
            list: names::queue(name, kind, incarnation),
            table: names::waiting(name),
            most: self.depth,
        };
        let mut looks: Vec<Look> = self.queues.iter().map(described).collect();
        if let Some((kinds, incarnations)) = &self.counts {
            let of = |kind: &TypeName| -> Vec<String> {
                incarnations
                    .iter()
                    .map(|incarnation| names::queue(name, kind, incarnation))
                    .collect()
            };
            looks.extend(kinds.iter().map(|kind| Look::Count(of(kind))));
            if let Some((ask, waiter)) = self.errand.sitting() {
                let own = names::queue(name, &ask.kind, waiter.incarnation());
                let (lists, text) = (of(&ask.kind), waiter.0.clone());
                looks.push(Look::Ahead { lists, of: own, text });
            }
        }
        looks
    }

    /// What was found at [`Self::looks`].
    pub(super) fn read(&self, looked: Looked) -> Result<Seen> {
        let at = looked.at;
        let mut found = looked.found.into_iter();
        let name = self.errand.name;
        let known = |text: &str| {
            self.case
                .filter(|case| text.split_once('\n').is_some_and(|(head, _)| head == case.head))
        };
        let read = |text: String| known(&text).cloned().map_or_else(|| Case::read(name, &text), Ok);
        let case = row(&mut found)?.map(read).transpose()?;
        let (mut memory, emptied) = match &self.memory {
            Some(memory) => (memory.clone(), false),
            None => match found.next() {
                Some(Found::Memory { memory, emptied }) => (memory, emptied),
                _ => return Err(no_answer()),
            },
        };
        // One that is new in a store that was emptied a moment ago may be an old one, and a worker may hold its turn.
        if emptied && case.is_none() {
            memory.forgot = Some(at);
        }
        let (mut asked, mut waiting) = (None, None);
        if let Some(ask) = self.errand.ask() {
            asked = row(&mut found)?;
            if ask.waiter().is_some() {
                waiting = row(&mut found)?;
            }
        }
        let mut ended = None;
        if let Some(token) = self.errand.about {
            let Some(Found::Entries(entries)) = found.next() else { return Err(no_answer()) };
            let is = |(number, _): &&(u64, String)| *number == token.0;
            ended = entries.iter().find(is).map(|(_, text)| past(name, text)).transpose()?;
        }
        let (heads, counts) = self.read_beside(&mut found)?;
        // What was looked at besides is of other types or incarnations than there are now.
        let same = |case: &Case| {
            let (kinds, incarnations) = self.counts.as_ref()?;
            let rules = &case.body.rotation.rules;
            let types = kinds.iter().eq(rules.types.iter().map(|kind| &kind.name));
            (types && *incarnations == case.body.incarnations).then_some(())
        };
        let counts = counts.filter(|_| case.as_ref().is_some_and(|case| same(case).is_some()));
        let heads = Arc::new(heads);
        Ok(Seen { case, memory, heads, asked, waiting, past: ended, counts, at: Some(at) })
    }

    /// What was found at [`Self::beside`].
    pub(super) fn read_beside(
        &self,
        found: &mut impl Iterator<Item = Found>,
    ) -> Result<(HashMap<Queue, Heads>, Option<Counts>)> {
        let mut heads = HashMap::new();
        for queue in &self.queues {
            let Some(Found::Described(entries)) = found.next() else { return Err(no_answer()) };
            heads.insert(queue.clone(), read_heads(entries, self.depth)?);
        }
        let Some((kinds, _)) = &self.counts else { return Ok((heads, None)) };
        let mut counts = Counts::default();
        let mut count = || match found.next() {
            Some(Found::Count(count)) => Ok(count),
            _ => Err(no_answer()),
        };
        for kind in kinds {
            counts.waiting.insert(kind.clone(), count()?);
        }
        if let Some(ask) = self.errand.ask() {
            let all = counts.waiting.get(&ask.kind).copied().unwrap_or(0);
            counts.before = if ask.waiter().is_some() { count()? } else { all };
        }
        Ok((heads, Some(counts)))
    }
}

/// The first of a queue, of which `depth` were looked at.
pub(super) fn read_heads(
    entries: Vec<(u64, String, Option<String>)>,
    depth: usize,
) -> Result<Heads> {
    let all = entries.len() < depth;
    let place = |(number, text, row): (u64, String, Option<String>)| {
        let waiter = Waiter(text);
        let read = |row: String| -> Result<_> { Ok((Standing::read(&waiter, &row)?, row)) };
        let standing = row.map(read).transpose()?;
        Ok(Place { number, waiter, standing })
    };
    Ok(Heads { first: entries.into_iter().map(place).collect::<Result<_>>()?, all })
}

/// Looks until what was looked at belongs to the record.
pub(super) async fn look(
    store: &dyn Records,
    errand: &Errand<'_>,
    mut case: Option<Case>,
    depth: usize,
) -> Result<Seen> {
    for _ in 0..ATTEMPTS {
        let wanted = Wanted::of(errand, case.as_ref(), depth);
        let seen = wanted.read(store.look(&wanted.looks()).await?)?;
        let complete = |case: &Case| {
            let body = &case.body;
            let has = |kind: &TypeRules, incarnation: &String| {
                seen.heads.contains_key(&(kind.name.clone(), incarnation.clone()))
            };
            let mut types = body.rotation.rules.types.iter();
            let queues = depth == 0
                || types
                    .all(|kind| body.incarnations.iter().all(|incarnation| has(kind, incarnation)));
            queues && (errand.ask().is_none() || seen.counts.is_some())
        };
        match &seen.case {
            Some(found) if !complete(found) => case = Some(found.clone()),
            found => {
                match found {
                    Some(_) => {
                        if let Some(read) = seen.to_remember() {
                            store.turns().put(errand.name, read);
                        }
                    }
                    None => store.turns().forget(errand.name),
                }
                if let Some((_, waiter)) = errand.sitting() {
                    store.turns().put_row(errand.name, waiter, seen.waiting.clone());
                }
                return Ok(seen);
            }
        }
    }
    Err(too_often(errand.name))
}

/// The next depth.
pub(super) fn deeper(depth: usize) -> usize {
    (depth * DEEPER).clamp(DEPTH, DEEPEST)
}

fn row(found: &mut impl Iterator<Item = Found>) -> Result<Option<String>> {
    match found.next() {
        Some(Found::Row(row)) => Ok(row),
        _ => Err(no_answer()),
    }
}

pub(super) fn no_answer() -> StoreError {
    StoreError::Corrupt("a look at a rotation was answered with something else".to_owned())
}
