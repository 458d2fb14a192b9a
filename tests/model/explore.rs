//! Breadth-first, so that the history that breaks a promise is the shortest one.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::rules::{self, Rules};
use super::world::{Act, Scope, World};

/// From one state in so many it is tried whether all ends well.
const PROBE_ONE_IN: u64 = 7;
/// Units of time within which all must be well.
const PATIENCE: usize = 24;

/// What a promise was broken by.
pub(crate) struct Broken {
    pub promise: &'static str,
    pub trace: Vec<Act>,
}

/// What exploring found.
pub(crate) struct Found {
    pub states: usize,
    pub steps: usize,
    pub depth: usize,
    pub probes: usize,
    pub grants: u8,
    pub finished: bool,
    pub broken: Option<Broken>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, steps, depth, probes, grants, finished, broken } = self;
        let all = if *finished { "all there are" } else { "more exist" };
        write!(
            f,
            "model: {states} states ({all}), {steps} steps, depth {depth}, up to {grants} leases, {probes} futures followed to their end"
        )?;
        if let Some(Broken { promise, trace }) = broken {
            writeln!(f, "; BROKEN: {promise}")?;
            for act in trace {
                writeln!(f, "  {act:?}")?;
            }
        }
        Ok(())
    }
}

/// Visits states breadth-first until a promise is broken or there are `most`.
pub(crate) fn explore(rules: Rules, scope: Scope, faults: u8, most: usize) -> Found {
    // The same in every run, so that what is found can be found again.
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    // Of a state and its mirror image one is enough.
    let hash = |world: &World| hasher.hash_one(world).min(hasher.hash_one(world.mirrored()));
    let begin = World::new(scope, faults);
    let mut parents: HashMap<u64, (u64, Act)> = HashMap::new();
    let first = hash(&begin);
    parents.insert(first, (first, Act::Tick));
    let mut frontier = VecDeque::from([(begin, first, 0)]);
    let mut found = Found {
        states: 1,
        steps: 0,
        depth: 0,
        probes: 0,
        grants: 0,
        finished: false,
        broken: None,
    };
    while let Some((world, id, depth)) = frontier.pop_front() {
        found.depth = depth;
        found.grants = found.grants.max(world.grants);
        if id.is_multiple_of(PROBE_ONE_IN) || depth == 0 {
            found.probes += 1;
            let mut future = Vec::new();
            if let Err(promise) = ends_well(&world, rules, &mut future) {
                let mut trace = trace(&parents, id, None);
                trace.append(&mut future);
                found.broken = Some(Broken { promise, trace });
                return found;
            }
        }
        if found.states >= most {
            return found;
        }
        for act in world.acts() {
            found.steps += 1;
            match world.after(act, rules) {
                Ok(None) => {}
                Ok(Some(next)) => {
                    let next_id = hash(&next);
                    if let std::collections::hash_map::Entry::Vacant(new) = parents.entry(next_id) {
                        new.insert((id, act));
                        found.states += 1;
                        frontier.push_back((next, next_id, depth + 1));
                    }
                }
                Err(promise) => {
                    found.broken = Some(Broken { promise, trace: trace(&parents, id, Some(act)) });
                    return found;
                }
            }
        }
    }
    found.finished = true;
    found
}

fn trace(parents: &HashMap<u64, (u64, Act)>, mut id: u64, last: Option<Act>) -> Vec<Act> {
    let mut acts: Vec<Act> = last.into_iter().collect();
    while let Some((parent, act)) = parents.get(&id).filter(|(parent, _)| *parent != id) {
        acts.push(*act);
        id = *parent;
    }
    acts.reverse();
    acts
}

/// When nothing goes wrong any more: a wanted job runs, and an unwanted one ends. A node that is down stays down if
/// another lives, because one living node is enough.
fn ends_well(world: &World, rules: Rules, acts: &mut Vec<Act>) -> Result<(), &'static str> {
    let mut world = world.clone();
    world.heal();
    for _ in 0..PATIENCE {
        // Everything that can be done in this unit of time, and then the next.
        for _ in 0..40 {
            let mut changed = false;
            for act in world.helpful_acts() {
                // Acts name positions, which the one before may have moved.
                if act == Act::Tick || !world.helpful_acts().contains(&act) {
                    continue;
                }
                if matches!(act, Act::Restart(_)) && world.nodes.iter().any(|node| node.up) {
                    continue;
                }
                acts.push(act);
                if let Some(next) = world.after(act, rules)?
                    && next != world
                {
                    world = next;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let well = if world.store.wanted { world.runs() } else { world.is_over() };
        if well {
            return Ok(());
        }
        acts.push(Act::Tick);
        match world.after(Act::Tick, rules)? {
            Some(next) => world = next,
            None => return Ok(()),
        }
    }
    Err(if world.store.wanted { rules::RUNS } else { rules::ENDS })
}
