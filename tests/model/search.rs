//! The search of the models of rotations, dispatch and ticks: breadth-first, so that the acts that break a promise are few.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher, Hash};

/// One game: a first state, and what may follow each.
pub(crate) trait Game {
    type World: Hash;
    type Act: Copy;
    /// Of so many states one is followed to its end.
    const LOOKED_AT: usize;

    fn begin(&self) -> Self::World;
    fn acts(&self, world: &Self::World) -> Vec<Self::Act>;
    /// The state after `act`, or the promise that it broke.
    fn after(&self, world: &Self::World, act: Self::Act) -> Result<Self::World, &'static str>;
    /// Whether all ends well from here, or the promise that is broken.
    fn ends_well(&self, world: &Self::World) -> Result<(), &'static str>;
}

/// A promise, and the acts that broke it.
pub(crate) type Broken<A> = (&'static str, Vec<A>);

/// Visits up to `most` states; how many there were, or what was broken.
pub(crate) fn explore<G: Game>(game: &G, most: usize) -> Result<usize, Broken<G::Act>> {
    // The same in every run, so that what is found can be found again.
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let begin = game.begin();
    let mut seen = HashSet::from([hasher.hash_one(&begin)]);
    let mut parents: Vec<Option<(usize, G::Act)>> = vec![None];
    let mut frontier = VecDeque::from([(begin, 0)]);
    while let Some((world, at)) = frontier.pop_front() {
        let looks = at < G::LOOKED_AT.min(20) || at % G::LOOKED_AT == 0;
        let mut found = if looks { game.ends_well(&world).err() } else { None };
        let mut last = None;
        if found.is_none() {
            for act in game.acts(&world) {
                match game.after(&world, act) {
                    Ok(next) if parents.len() < most && seen.insert(hasher.hash_one(&next)) => {
                        parents.push(Some((at, act)));
                        frontier.push_back((next, parents.len() - 1));
                    }
                    Ok(_) => {}
                    Err(promise) => (found, last) = (Some(promise), Some(act)),
                }
            }
        }
        if let Some(promise) = found {
            let mut acts: Vec<G::Act> = last.into_iter().collect();
            let mut step = parents[at];
            while let Some((before, act)) = step {
                acts.push(act);
                step = parents[before];
            }
            acts.reverse();
            return Err((promise, acts));
        }
    }
    Ok(parents.len())
}

/// Holds a game without a planted fault to its promises.
pub(crate) fn keeps_every_promise<G: Game>(name: &str, game: &G, most: usize)
where
    G::Act: std::fmt::Debug,
{
    match explore(game, most) {
        Ok(states) => {
            println!("{name}: {states} states, of at most {most}");
            assert!(states > 1_000, "only {states}");
        }
        Err((promise, acts)) => panic!("{name}: {promise}: {acts:#?}"),
    }
}

/// Holds the search to what it is to find: one of `promises` is broken.
pub(crate) fn is_found<G: Game>(plant: &str, game: &G, most: usize, promises: &[&'static str])
where
    G::Act: std::fmt::Debug,
{
    let Err((found, acts)) = explore(game, most) else { panic!("{plant} was not found") };
    println!("{plant}: {found} after {acts:?}");
    assert!(promises.contains(&found), "{plant}: {found}: {acts:#?}");
}
