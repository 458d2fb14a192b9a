//! A source's row: read, judged, shown, written back.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::super::fault::Outcome;
use super::super::row::{corrupt, find, int, text, uint};
use crate::domain::dispatch::{Reason, Rules, Shut, Standing};
use crate::domain::name::SourceName;
use crate::domain::time::Stamp;
use crate::store::dispatch::SourceView;

/// Where a source stands among the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Ring {
    /// In the ring: lower is sooner.
    pub(super) turn: Option<u64>,
    /// It has ready tasks, and cannot be served all the same.
    pub(super) shut: Option<Reason>,
    /// When that ends by itself.
    pub(super) opens: Option<Stamp>,
}

/// A row of `sources`.
pub(super) struct Source {
    pub(super) name: SourceName,
    pub(super) rules: Rules,
    pub(super) blocked_until: Stamp,
    pub(super) last_start: Option<Stamp>,
    /// Counts places.
    pub(super) nth: u64,
    pub(super) ready: u64,
    pub(super) due: u64,
    pub(super) in_flight: u64,
    pub(super) dead: u64,
    pub(super) done: u64,
    pub(super) started: u64,
    pub(super) finished: u64,
    pub(super) retried: u64,
    pub(super) expired: u64,
    /// Waiters who were woken for it and have not claimed yet.
    pub(super) promised: u64,
    /// How long they are counted.
    pub(super) promised_until: Stamp,
    pub(super) ring: Ring,
    /// As it stands in the file.
    pub(super) ring_kept: Ring,
    /// How many tasks could be served when it was last judged.
    pub(super) servable: u64,
    /// To be judged again.
    pub(super) touched: bool,
    /// To be written back.
    pub(super) changed: bool,
}

const COLUMNS: &str = "name, rules, blocked_until, last_start, nth, ready, due, in_flight, dead, done, started, \
    finished, retried, expired, promised, promised_until, turn, shut, opens";

impl Source {
    /// A new one, not yet in the file.
    pub(super) fn new(name: &SourceName, rules: &Rules) -> Self {
        Self {
            name: name.clone(),
            rules: rules.clone(),
            blocked_until: Stamp(0),
            last_start: None,
            nth: 0,
            ready: 0,
            due: 0,
            in_flight: 0,
            dead: 0,
            done: 0,
            started: 0,
            finished: 0,
            retried: 0,
            expired: 0,
            promised: 0,
            promised_until: Stamp(0),
            ring: Ring::default(),
            ring_kept: Ring::default(),
            servable: 0,
            touched: true,
            changed: true,
        }
    }

    pub(super) fn load(db: &Connection, name: &SourceName) -> Outcome<Option<Self>> {
        let mut found =
            db.prepare_cached(&format!("SELECT {COLUMNS} FROM sources WHERE name = ?"))?;
        let mut rows = found.query([name.as_str()])?;
        rows.next()?.map(Self::read).transpose()
    }

    /// All, by name.
    pub(super) fn load_all(db: &Connection) -> Outcome<Vec<Self>> {
        let mut found =
            db.prepare_cached(&format!("SELECT {COLUMNS} FROM sources ORDER BY name"))?;
        let mut rows = found.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(Self::read(row)?);
        }
        Ok(all)
    }

    fn read(row: &Row<'_>) -> Outcome<Self> {
        let count = |column| -> Outcome<u64> { Ok(uint(row.get(column)?)) };
        let rules: String = row.get(1)?;
        let shut: Option<String> = row.get(17)?;
        let ring = Ring {
            turn: row.get::<_, Option<i64>>(16)?.map(uint),
            shut: shut.map(|shut| reason(&shut)).transpose()?,
            opens: row.get::<_, Option<i64>>(18)?.map(Stamp),
        };
        Ok(Self {
            name: source_name(&row.get::<_, String>(0)?)?,
            rules: serde_json::from_str(&rules)
                .map_err(|why| corrupt("sources.rules", &why.to_string()))?,
            blocked_until: Stamp(row.get(2)?),
            last_start: row.get::<_, Option<i64>>(3)?.map(Stamp),
            nth: count(4)?,
            ready: count(5)?,
            due: count(6)?,
            in_flight: count(7)?,
            dead: count(8)?,
            done: count(9)?,
            started: count(10)?,
            finished: count(11)?,
            retried: count(12)?,
            expired: count(13)?,
            promised: count(14)?,
            promised_until: Stamp(row.get(15)?),
            ring_kept: ring.clone(),
            ring,
            servable: 0,
            touched: false,
            changed: false,
        })
    }

    /// Writes rules and block.
    pub(super) fn save_rules(&self, db: &Connection) -> Outcome<()> {
        db.prepare_cached(
            "INSERT INTO sources (name, rules, blocked_until, nth, ready, due, in_flight, dead, done, started, finished, \
             retried, expired, promised, promised_until) VALUES (?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) \
             ON CONFLICT (name) DO UPDATE SET rules = excluded.rules, blocked_until = excluded.blocked_until",
        )?
        .execute((self.name.as_str(), text(&self.rules)?, self.blocked_until.0))?;
        Ok(())
    }

    /// Writes what tasks change.
    pub(super) fn save_counts(&self, db: &Connection) -> Outcome<()> {
        db.prepare_cached(
            "UPDATE sources SET last_start = :last_start, nth = :nth, ready = :ready, due = :due, \
             in_flight = :in_flight, dead = :dead, done = :done, started = :started, finished = :finished, \
             retried = :retried, expired = :expired, promised = :promised, promised_until = :promised_until \
             WHERE name = :name",
        )?
        .execute(named_params! {
            ":name": self.name.as_str(),
            ":last_start": self.last_start.map(|at| at.0),
            ":nth": int(self.nth),
            ":ready": int(self.ready),
            ":due": int(self.due),
            ":in_flight": int(self.in_flight),
            ":dead": int(self.dead),
            ":done": int(self.done),
            ":started": int(self.started),
            ":finished": int(self.finished),
            ":retried": int(self.retried),
            ":expired": int(self.expired),
            ":promised": int(self.promised),
            ":promised_until": self.promised_until.0,
        })?;
        Ok(())
    }

    /// Judges where it stands at `now`, and writes that if it is news; a new place in the ring is the one after `turn`.
    pub(super) fn settle(&mut self, db: &Connection, now: Stamp, turn: &mut u64) -> Outcome<()> {
        self.touched = false;
        let room = self.room(db, now)?;
        self.servable = room.map_or(0, |room| self.ready.min(u64::from(room)));
        self.ring = match room {
            _ if self.ready == 0 => Ring::default(),
            Ok(_) => {
                let turn = self.ring.turn.unwrap_or_else(|| {
                    *turn += 1;
                    *turn
                });
                Ring { turn: Some(turn), shut: None, opens: None }
            }
            Err(shut) => {
                let by_itself = matches!(shut.reason, Reason::Gap | Reason::Blocked);
                let opens = shut.until.filter(|_| by_itself);
                Ring { turn: None, shut: Some(shut.reason), opens }
            }
        };
        if self.ring == self.ring_kept {
            return Ok(());
        }
        self.ring_kept = self.ring.clone();
        db.prepare_cached("UPDATE sources SET turn = ?, shut = ?, opens = ? WHERE name = ?")?
            .execute((
                self.ring.turn.map(int),
                self.ring.shut.map(word),
                self.ring.opens.map(|at| at.0),
                self.name.as_str(),
            ))?;
        Ok(())
    }

    /// How many tasks may start at `now`, whether or not any is ready.
    pub(super) fn room(&self, db: &Connection, now: Stamp) -> Outcome<Result<u32, Shut>> {
        Ok(self.rules.room(&self.standing(db, now)?, now))
    }

    fn standing(&self, db: &Connection, now: Stamp) -> Outcome<Standing> {
        let mut standing = Standing {
            blocked_until: self.blocked_until,
            last_start: self.last_start,
            recent: 0,
            oldest_recent: Stamp(0),
            in_flight: narrow(self.in_flight),
            first_end: None,
        };
        if let Some(window) = self.rules.window {
            let span = i64::try_from(window.span.as_micros()).unwrap_or(i64::MAX);
            let oldest: Option<(i64, i64)> = db
                .prepare_cached(
                    "SELECT at, n FROM starts WHERE source = ? AND at > ? ORDER BY at, n LIMIT 1",
                )?
                .query_row((self.name.as_str(), now.0.saturating_sub(span)), |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            if let Some((at, n)) = oldest {
                standing.recent = narrow((self.started + 1).saturating_sub(uint(n)));
                standing.oldest_recent = Stamp(at);
            }
        }
        if self.rules.cap.is_some_and(|cap| u64::from(cap) <= self.in_flight) {
            standing.first_end = first_end(db, &self.name)?;
        }
        Ok(standing)
    }

    /// When the first of its tasks becomes due.
    pub(super) fn first_due(&self, db: &Connection) -> Outcome<Option<Stamp>> {
        if self.due == 0 {
            return Ok(None);
        }
        let first = find(
            db,
            "SELECT at FROM tasks WHERE source = ? AND state = 'due' ORDER BY at LIMIT 1",
            [self.name.as_str()],
        )?;
        Ok(first.map(Stamp))
    }

    /// As callers see it.
    pub(super) fn view(&self, db: &Connection, now: Stamp) -> Outcome<SourceView> {
        let shut = if self.ready == 0 {
            Some(Shut { reason: Reason::Empty, until: self.first_due(db)? })
        } else {
            self.room(db, now)?.err()
        };
        Ok(SourceView {
            name: self.name.clone(),
            rules: self.rules.clone(),
            blocked_until: self.blocked_until,
            ready: self.ready,
            due: self.due,
            in_flight: self.in_flight,
            dead: self.dead,
            done: self.done,
            started: self.started,
            finished: self.finished,
            retried: self.retried,
            expired: self.expired,
            shut,
            now,
        })
    }
}

/// When the first lease of `source` ends.
fn first_end(db: &Connection, source: &SourceName) -> Outcome<Option<Stamp>> {
    let first = find(
        db,
        "SELECT until FROM tasks WHERE source = ? AND state = 'leased' ORDER BY until LIMIT 1",
        [source.as_str()],
    )?;
    Ok(first.map(Stamp))
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The name in a row.
pub(super) fn source_name(text: &str) -> Outcome<SourceName> {
    SourceName::new(text).map_err(|why| corrupt("sources.name", &why.to_string()))
}

/// As columns keep a reason.
pub(super) fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Empty => "empty",
        Reason::Gap => "gap",
        Reason::Cap => "cap",
        Reason::Paused => "paused",
        Reason::Blocked => "blocked",
    }
}

/// The way back.
pub(super) fn reason(word: &str) -> Outcome<Reason> {
    serde_json::from_value(serde_json::Value::String(word.to_owned()))
        .map_err(|why| corrupt("a reason", &why.to_string()))
}
