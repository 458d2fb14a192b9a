//! One transition of dispatch: the instant, the sources it touches, and what follows for the ring and for waiters.
//!
//! Sources are read once, changed in memory, and judged again before anybody is served and at the end. Only a source
//! that was touched can have become servable, so closing costs nothing for the others.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::super::clock;
use super::super::fault::Outcome;
use super::super::row::{int, uint};
use super::super::step::Step;
use super::source::Source;
use super::waiters;
use crate::domain::dispatch::Rules;
use crate::domain::lease::Token;
use crate::domain::name::SourceName;
use crate::domain::time::Stamp;
use crate::store::StoreError;
use crate::store::dispatch::DONE_KEPT;

/// What a transition of dispatch works on.
pub(super) struct Desk<'s> {
    pub(super) step: &'s Step<'s>,
    pub(super) now: Stamp,
    token: u64,
    turn: u64,
    done: u64,
    sources: BTreeMap<SourceName, Source>,
    /// Something was written down that carries `now`.
    changed: bool,
}

impl<'s> Desk<'s> {
    pub(super) fn open(step: &'s Step<'s>) -> Outcome<Self> {
        let (newest, token, turn, done): (i64, i64, i64, i64) = step
            .prepare_cached("SELECT newest, token, turn, done FROM dispatch")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        Ok(Self {
            step,
            now: clock::take(step, newest)?,
            token: uint(token),
            turn: uint(turn),
            done: uint(done),
            sources: BTreeMap::new(),
            changed: false,
        })
    }

    /// A source, to be changed.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub(super) fn source(&mut self, name: &SourceName) -> Outcome<&mut Source> {
        self.changed = true;
        let source = self.look(name)?;
        source.touched = true;
        source.changed = true;
        Ok(source)
    }

    /// The same, only to be read.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub(super) fn look(&mut self, name: &SourceName) -> Outcome<&mut Source> {
        match self.sources.entry(name.clone()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let source = Source::load(self.step, name)?.ok_or_else(|| unknown(name))?;
                Ok(place.insert(source))
            }
        }
    }

    /// A source under these rules, made if it is new.
    pub(super) fn define(&mut self, name: &SourceName, rules: &Rules) -> Outcome<&mut Source> {
        if !self.sources.contains_key(name) {
            let source = Source::load(self.step, name)?;
            let source = source.unwrap_or_else(|| Source::new(name, rules));
            self.sources.insert(name.clone(), source);
        }
        let step = self.step;
        let source = self.source(name)?;
        source.rules = rules.clone();
        source.save_rules(step)?;
        Ok(source)
    }

    /// The next token.
    pub(super) fn mint(&mut self) -> Token {
        let clock = uint(self.now.floor().0).saturating_mul(1_024);
        self.token = clock.max(self.token + 1);
        self.changed = true;
        Token(self.token)
    }

    /// One more done task is remembered, and the oldest beyond [`DONE_KEPT`] are not.
    pub(super) fn remember_done(&mut self) -> Outcome<()> {
        self.done += 1;
        self.changed = true;
        while self.done > DONE_KEPT {
            let oldest: i64 = self
                .step
                .prepare_cached(
                    "SELECT n FROM tasks WHERE state = 'done' ORDER BY changed, n LIMIT 1",
                )?
                .query_row([], |row| row.get(0))?;
            for forget in [
                "DELETE FROM tasks WHERE n = ?",
                "DELETE FROM payloads WHERE task = ?",
                "DELETE FROM pasts WHERE task = ?",
            ] {
                self.step.prepare_cached(forget)?.execute([oldest])?;
            }
            self.done -= 1;
        }
        Ok(())
    }

    /// Brings the ring up to date with everything that was touched.
    pub(super) fn settle(&mut self) -> Outcome<()> {
        for source in self.sources.values_mut().filter(|source| source.touched) {
            source.settle(self.step, self.now, &mut self.turn)?;
        }
        Ok(())
    }

    /// Touches the sources whose gap, window or block is over, at most `most`, the earliest first.
    pub(super) fn open_sources(&mut self, most: u32) -> Outcome<()> {
        let opened: Vec<String> = self
            .step
            .prepare_cached(
                "SELECT name FROM sources WHERE opens IS NOT NULL AND opens <= ? ORDER BY opens LIMIT ?",
            )?
            .query_map((self.now.0, most), |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for name in opened {
            self.source(&super::source::source_name(&name)?)?;
            // One by one, so that they enter the ring in this order.
            self.settle()?;
        }
        Ok(())
    }

    /// Judges a source again whose gap, window or block is over.
    pub(super) fn open_source(&mut self, name: &SourceName) -> Outcome<()> {
        let now = self.now;
        if self.look(name)?.ring.opens.is_some_and(|opens| opens <= now) {
            self.source(name)?;
            self.settle()?;
        }
        Ok(())
    }

    /// Wakes who can be served now, and writes down what is left.
    pub(super) fn close(mut self) -> Outcome<()> {
        self.settle()?;
        waiters::wake(self.step, self.now, self.sources.values_mut())?;
        for source in self.sources.values().filter(|source| source.changed) {
            source.save_counts(self.step)?;
        }
        if self.changed {
            self.step
                .prepare_cached("UPDATE dispatch SET newest = ?, token = ?, turn = ?, done = ?")?
                .execute((self.now.0, int(self.token), int(self.turn), int(self.done)))?;
        }
        Ok(())
    }
}

/// No such source.
pub(super) fn unknown(name: &SourceName) -> StoreError {
    StoreError::NotFound(format!("source {name}"))
}
