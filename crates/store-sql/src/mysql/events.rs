//! The bell: rows with hints, read every 20 to 60 ms by each process that listens. Numbers may become visible out of order.
//! See [ADR 0023](../../../../docs/adr/0023-mysql.md).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::place::Place;
use super::session::Conn;
use crate::sql::SqlStore;
use crate::sql::fault::Outcome;
use crate::sql::follow::{Follower, Hint};
use crate::sql::link::{Link, Wire as _};
use crate::sql::listen::{self, SWEEP_EVERY};
use crate::sql::session::{Row, Statement, Value};
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::Result;
use soloist_store::outlet::Outlet;

/// How often a process that listens looks whether anybody rang, and after how long a silence less often.
const POLL_EVERY: Duration = Duration::from_millis(20);
const QUIET_POLL_EVERY: Duration = Duration::from_millis(60);
const QUIET_AFTER: Duration = Duration::from_secs(2);
/// Rings in one look.
const AT_ONCE: i64 = 256;
/// So long a number that is missing is looked for: its commit may wait for the disk. Then the sweep tells.
const MISSING_FOR: Duration = Duration::from_secs(2);
/// Numbers looked for at the same time: of a server that counts in steps most are missing for ever.
const MOST_MISSING: usize = 64;
/// So many rings are kept for listeners that are late; who is later is told by the sweep.
const RINGS_KEPT: i64 = 1_000;
/// A listener removes older ones with the first ring that it hears, and then once in so many; at most so many at once.
const TIDY_EVERY: i64 = 64;
const TIDIED_AT_ONCE: i64 = 1_000;

/// A connection that looks for rings, and what was told of what it heard.
pub(super) struct Ear {
    link: Link<Conn>,
    timeout: Duration,
    heard: Heard,
    /// The newest ring when it removed older ones.
    tidied: i64,
    follower: Follower,
    swept: Boot,
    rang: Boot,
}

impl listen::Ear for Ear {
    type Place = Place;

    async fn open(place: &Arc<Place>, store: &SqlStore) -> Result<Self> {
        let timeout = store.shared.server.timeout();
        let link = Link::new(Arc::clone(place), timeout);
        let newest = format!("SELECT n FROM rings ORDER BY n DESC LIMIT {MOST_MISSING}");
        let found = rings(&link, timeout, Statement::new(newest, Vec::new())).await;
        let found = found.map_err(|fault| fault.told(&place.name))?;
        let mut numbers = found.iter().map(|row| row.int(0)).collect::<Result<Vec<_>>>()?;
        numbers.reverse();
        let heard = Heard::of(&numbers, clock::boot());
        // Behind the number: what is committed from now on rings later.
        let follower = Follower::start(store.clone()).await?;
        Ok(Self {
            link,
            timeout,
            heard,
            tidied: 0,
            follower,
            swept: clock::boot(),
            rang: clock::boot(),
        })
    }

    async fn follow(&mut self, outlet: &mut Outlet) -> String {
        let mut next = tokio::time::Instant::now();
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next) => {
                    if let Err(why) = self.look(outlet).await {
                        return why;
                    }
                    let is_quiet = clock::boot().since(self.rang) > QUIET_AFTER;
                    let every = if is_quiet { QUIET_POLL_EVERY } else { POLL_EVERY };
                    next = tokio::time::Instant::now() + every;
                }
                listened = outlet.settle() => if !listened { return "nobody listens".to_owned() },
            }
        }
    }
}

impl Ear {
    async fn look(&mut self, outlet: &mut Outlet) -> std::result::Result<(), String> {
        let now = clock::boot();
        let found = rings(&self.link, self.timeout, self.heard.asked(now)).await;
        for ring in found.map_err(|fault| fault.told("MySQL").to_string())? {
            let (n, hint) = ring
                .int(0)
                .and_then(|n| Ok((n, ring.text(1)?)))
                .map_err(|error| error.to_string())?;
            self.heard.note(n, now);
            self.rang = now;
            let hint = serde_json::from_str::<Hint>(hint).unwrap_or_else(|error| {
                tracing::debug!(%error, "a hint that is not understood");
                Hint::default()
            });
            self.follower.hear(hint, outlet).await.map_err(|error| error.to_string())?;
        }
        if self.heard.last - self.tidied >= TIDY_EVERY {
            self.tidied = self.heard.last;
            self.tidy().await;
        }
        if clock::boot().since(self.swept) >= SWEEP_EVERY {
            self.swept = clock::boot();
            self.follower.sweep(outlet).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    async fn tidy(&self) {
        let old = Value::Int(self.heard.last - RINGS_KEPT);
        let sql = format!("DELETE FROM rings WHERE n <= ? ORDER BY n LIMIT {TIDIED_AT_ONCE}");
        let removed = rings(&self.link, self.timeout, Statement::new(sql, vec![old])).await;
        if let Err(fault) = removed {
            tracing::debug!(?fault, "old rings stay for now");
        }
    }
}

/// Which rings were heard. A number is drawn before the commit that shows it: one that is missing may still come.
#[derive(Debug, Default)]
struct Heard {
    last: i64,
    /// With the moment from which it was missing.
    missing: BTreeMap<i64, Boot>,
}

impl Heard {
    /// From these on, in order; those before them were not there in time.
    fn of(numbers: &[i64], now: Boot) -> Self {
        let first = numbers.first().map_or(0, |first| first - 1);
        let mut heard = Self { last: first, missing: BTreeMap::new() };
        numbers.iter().for_each(|n| heard.note(*n, now));
        heard
    }

    fn note(&mut self, n: i64, now: Boot) {
        if n <= self.last {
            self.missing.remove(&n);
            return;
        }
        let most = i64::try_from(MOST_MISSING).unwrap_or(i64::MAX);
        self.missing.extend(((self.last + 1).max(n - most)..n).map(|missing| (missing, now)));
        self.last = n;
        while self.missing.len() > MOST_MISSING {
            self.missing.pop_first();
        }
    }

    /// What finds those that were not heard yet.
    fn asked(&mut self, now: Boot) -> Statement {
        self.missing.retain(|_, since| now.since(*since) < MISSING_FOR);
        let mut values = vec![Value::Int(self.last)];
        let mut or = String::new();
        if !self.missing.is_empty() {
            or = format!(" OR n IN ({})", vec!["?"; self.missing.len()].join(", "));
            values.extend(self.missing.keys().copied().map(Value::Int));
        }
        let sql = format!("SELECT n, hint FROM rings WHERE n > ?{or} ORDER BY n LIMIT {AT_ONCE}");
        Statement::new(sql, values)
    }
}

async fn rings(link: &Link<Conn>, timeout: Duration, statement: Statement) -> Outcome<Vec<Row>> {
    let statement = [statement];
    let asked = link.call(clock::boot() + timeout, move |conn: &mut Conn| {
        Box::pin(async move { conn.ask_all(&statement).await })
    });
    Ok(asked.await?.pop().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(heard: &mut Heard, now: Boot) -> Vec<i64> {
        let values = heard.asked(now).params;
        values
            .iter()
            .filter_map(|one| if let Value::Int(n) = one { Some(*n) } else { None })
            .collect()
    }

    #[test]
    fn a_number_that_is_missing_is_looked_for_until_it_comes_or_is_late() {
        let begin = clock::boot();
        let mut heard = Heard::of(&[4, 5, 7], begin);
        assert_eq!(asked(&mut heard, begin), [7, 6], "6 may still come");
        heard.note(6, begin);
        assert_eq!(asked(&mut heard, begin), [7]);
        heard.note(9, begin);
        let later = begin + MISSING_FOR / 2;
        heard.note(11, later);
        assert_eq!(asked(&mut heard, later), [11, 8, 10]);
        assert_eq!(asked(&mut heard, begin + MISSING_FOR), [11, 10]);
        heard.note(10, later);
        assert_eq!((asked(&mut heard, later), heard.last), (vec![11], 11));
    }

    #[test]
    fn a_server_that_counts_in_steps_has_few_numbers_looked_for() {
        let now = clock::boot();
        let mut heard = Heard::of(&[], now);
        (1..1_000).for_each(|nth| heard.note(nth * 7, now));
        heard.note(1_000_000_000, now);
        let asked = asked(&mut heard, now);
        assert_eq!((asked.len(), asked[0]), (MOST_MISSING + 1, 1_000_000_000));
        assert_eq!(asked.last(), Some(&999_999_999), "the newest of them");
    }
}
