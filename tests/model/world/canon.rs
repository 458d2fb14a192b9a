//! One state for all histories that differ in nothing that matters: what is past is as good as now, and numbers are ranks.

use std::iter;

use soloist::domain::supervise::Doing;
use soloist::domain::time::Boot;

use super::{Ask, Life, NODES, NOW, Scope, TIMING, UNIT, World};
use crate::store::Answer;

impl World {
    /// Makes states that differ in nothing that matters equal.
    pub(super) fn normalise(&mut self) {
        for node in &mut self.nodes {
            // What lies in the past is as good as now, and a courtesy lasts one unit at most.
            let facts = &mut node.slot.facts;
            for at in [&mut facts.held_until, &mut facts.reserved_until, &mut facts.not_before] {
                *at = at.filter(|at| *at > NOW);
            }
            node.wake = node.wake.map(|at| at.max(NOW));
            if let Doing::Idle { pause_until, free_since } = &mut node.slot.doing {
                *pause_until = (*pause_until).max(NOW);
                let counts = |since: Boot| since.max(NOW - UNIT);
                *free_since = free_since.filter(|_| self.scope == Scope::Lapses).map(counts);
            }
            if let Some((_, due, _)) = &mut node.kept {
                *due = (*due).max(NOW);
            }
        }
        for tree in &mut self.trees {
            if tree.life != Life::Alive {
                tree.deadline = NOW;
            }
        }
        for flight in &mut self.flights {
            // Past this no answer to it is worth anything.
            flight.sent = flight.sent.max(NOW - TIMING.ttl);
            if matches!(flight.ask, Ask::End { .. } | Ask::Release) || !flight.awaited {
                flight.sent = NOW;
            }
        }
        self.rank_tokens();
        self.rank_attempts();
        self.sort();
    }

    fn sort(&mut self) {
        self.flights.sort_unstable();
        self.trees.sort_unstable_by_key(|tree| tree.owner);
    }

    /// The same with the nodes' names exchanged: what may happen in one may happen in the other.
    pub(crate) fn mirrored(&self) -> World {
        let mut other = self.clone();
        other.nodes.reverse();
        let owners = (other.flights.iter_mut().map(|flight| &mut flight.owner))
            .chain(other.trees.iter_mut().map(|tree| &mut tree.owner))
            .chain(other.store.lease.iter_mut().map(|lease| &mut lease.owner))
            .chain(other.replica.iter_mut().filter_map(|r| Some(&mut r.lease.as_mut()?.owner)));
        for owner in owners {
            owner.node = NODES - 1 - owner.node;
        }
        let moves = iter::once(&mut other.store).chain(other.replica.iter_mut());
        for moving in moves.filter_map(|store| store.moving.as_mut()) {
            for node in [&mut moving.from, &mut moving.to].into_iter().flatten() {
                *node = NODES - 1 - *node;
            }
        }
        other.sort();
        other
    }

    fn rank_tokens(&mut self) {
        let mut tokens: Vec<&mut u64> = vec![&mut self.highest];
        for store in iter::once(&mut self.store).chain(&mut self.replica) {
            tokens.extend([&mut store.minted, &mut store.released]);
            tokens.extend(store.lease.iter_mut().map(|lease| &mut lease.token));
        }
        for node in &mut self.nodes {
            tokens.extend(node.kept.iter_mut().map(|(token, ..)| token));
            if let Doing::Holding { token, .. } = &mut node.slot.doing {
                tokens.push(&mut token.0);
            }
        }
        tokens.extend(self.trees.iter_mut().map(|tree| &mut tree.token));
        for flight in &mut self.flights {
            match &mut flight.ask {
                Ask::Renew { token } | Ask::End { token, .. } => tokens.push(token),
                Ask::Acquire | Ask::Release => {}
            }
            if let Some(Answer::Granted(token)) = &mut flight.answer {
                tokens.push(token);
            }
        }
        rank(tokens);
    }

    fn rank_attempts(&mut self) {
        for n in 0..NODES {
            let mut attempts = vec![&mut self.nodes[usize::from(n)].slot.attempt.0];
            let owners = self
                .flights
                .iter_mut()
                .map(|flight| &mut flight.owner)
                .chain(self.trees.iter_mut().map(|tree| &mut tree.owner))
                .chain(self.store.lease.iter_mut().map(|lease| &mut lease.owner))
                .chain(self.replica.iter_mut().filter_map(|r| Some(&mut r.lease.as_mut()?.owner)));
            attempts.extend(owners.filter(|owner| owner.node == n).map(|owner| &mut owner.attempt));
            rank(attempts);
        }
    }
}

/// Replaces numbers by their rank; zero stays zero.
fn rank(mut numbers: Vec<&mut u64>) {
    let mut sorted: Vec<u64> = numbers.iter().map(|number| **number).collect();
    sorted.push(0);
    sorted.sort_unstable();
    sorted.dedup();
    for number in &mut numbers {
        **number = sorted.binary_search(*number).unwrap_or(0) as u64;
    }
}
