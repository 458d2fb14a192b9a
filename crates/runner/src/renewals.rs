//! When each owner's renewal is due, and which owners share a call.
//!
//! Calls are worth filling: the next in order are renewed with them, before they must. But never all at once: renewals sent in one burst
//! (thousands of leases after a start, or after the store was away) would be due in one burst for ever, and delay every other caller of
//! the store; so each burst is spread a little before its next time. This file knows names and instants, and nothing of leases or the
//! store.

use std::collections::BTreeMap;
use std::time::Duration;

use soloist_domain::name::Owner;
use soloist_domain::time::Boot;

/// The part of its period by which a renewal may come early.
const EARLY: u32 = 8;

/// Owners in the order in which they are due. One that is taken is out until it is put back.
#[derive(Debug, Default)]
pub(super) struct Renewals {
    by_due: BTreeMap<(Boot, Owner), Duration>,
}

/// Those who go in one call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Party {
    /// Who.
    pub(super) owners: Vec<Owner>,
    /// Which of the calls sent at this moment it is, from 0, and how many they are.
    pub(super) place: (u32, u32),
}

impl Party {
    /// How long after this call the next one is due, in a round of `period`.
    pub(super) fn next_after(&self, period: Duration) -> Duration {
        let (nth, of) = self.place;
        period - period / EARLY * nth / of.max(1)
    }
}

impl Renewals {
    /// Puts an owner in, whose renewal is due at `due` and then every `period`.
    pub(super) fn put(&mut self, owner: Owner, due: Boot, period: Duration) {
        self.by_due.insert((due, owner), period / EARLY);
    }

    /// Takes an owner out that was put in with `due`.
    pub(super) fn remove(&mut self, owner: Owner, due: Boot) {
        self.by_due.remove(&(due, owner));
    }

    /// When the first is due.
    pub(super) fn next(&self) -> Option<Boot> {
        self.by_due.first_key_value().map(|((due, _), _)| *due)
    }

    /// Takes all owners that are due, in calls of at most `size`, and fills the last call with those that are due soon.
    pub(super) fn take(&mut self, now: Boot, size: usize) -> Vec<Party> {
        let mut parties: Vec<Vec<Owner>> = Vec::new();
        while let Some(first) = self.by_due.first_entry() {
            let due = first.key().0;
            let room = parties.last().is_some_and(|party| party.len() < size);
            if due > now && !(room && due <= now + *first.get()) {
                break;
            }
            let ((_, owner), _) = first.remove_entry();
            match parties.last_mut() {
                Some(party) if room => party.push(owner),
                _ => parties.push(vec![owner]),
            }
        }
        let of = u32::try_from(parties.len()).unwrap_or(u32::MAX);
        let place = |(nth, owners)| Party { owners, place: (nth, of) };
        (0..of).zip(parties).map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(2);

    fn owner(n: usize) -> Owner {
        Owner(n.to_string())
    }

    fn at(ms: u64) -> Boot {
        Boot(ms * 1_000_000)
    }

    fn sizes(parties: &[Party]) -> Vec<usize> {
        parties.iter().map(|party| party.owners.len()).collect()
    }

    #[test]
    fn nobody_goes_before_somebody_is_due_and_the_last_call_is_filled_with_who_is_due_soon() {
        let mut rounds = Renewals::default();
        for n in 0..30 {
            rounds.put(owner(n), at(1_000 + 10 * n as u64), PERIOD);
        }
        assert_eq!(rounds.next(), Some(at(1_000)));
        assert_eq!(rounds.take(at(999), 10), []);
        // 1,000 and 1,010 are due; a quarter of a second ahead there are more than the eight that find room.
        assert_eq!(sizes(&rounds.take(at(1_010), 10)), [10]);
        assert_eq!(rounds.next(), Some(at(1_100)));
        assert_eq!(sizes(&rounds.take(at(1_200), 10)), [10, 10]);
        assert_eq!(rounds.next(), None);
    }

    #[test]
    fn nobody_is_taken_long_before_the_time() {
        let mut rounds = Renewals::default();
        rounds.put(owner(1), at(1_000), PERIOD);
        rounds.put(owner(2), at(1_251), PERIOD);
        assert_eq!(rounds.take(at(1_000), 10)[0].owners, [owner(1)]);
        assert_eq!(rounds.next(), Some(at(1_251)));
    }

    #[test]
    fn who_was_removed_is_not_taken() {
        let mut rounds = Renewals::default();
        rounds.put(owner(1), at(1_000), PERIOD);
        rounds.put(owner(2), at(1_000), PERIOD);
        rounds.remove(owner(1), at(1_000));
        assert_eq!(rounds.take(at(1_000), 10)[0].owners, [owner(2)]);
        assert_eq!(rounds.next(), None);
    }

    #[test]
    fn a_burst_of_ten_thousand_is_spread_within_some_rounds_and_nobody_waits_longer_than_a_period()
    {
        let mut rounds = Renewals::default();
        (0..10_000).for_each(|n| rounds.put(owner(n), at(1_000), PERIOD));
        let (mut sent, mut largest) = (vec![at(0); 10_000], Vec::new());
        for _round in 0..12 {
            let end = rounds.next().unwrap() + PERIOD;
            let mut most = 0;
            while let Some(now) = rounds.next().filter(|&next| next < end) {
                let parties = rounds.take(now, 100);
                most = most.max(parties.len());
                for party in parties {
                    let due = now + party.next_after(PERIOD);
                    for who in party.owners {
                        let n: usize = who.0.parse().unwrap();
                        assert!(sent[n] == at(0) || now.since(sent[n]) <= PERIOD);
                        sent[n] = now;
                        rounds.put(who, due, PERIOD);
                    }
                }
            }
            largest.push(most);
        }
        assert_eq!(largest[0], 100, "at first all hundred calls leave at once");
        assert!(*largest.last().unwrap() <= 5, "calls that leave together: {largest:?}");
    }
}
