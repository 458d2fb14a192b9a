//! The number of a store's schema, and the one way to a higher one: steps.
//!
//! Schema 1 is that of Soloist 1.0. A change that an older program would misread is a step: a text at the end of the list of each kind of
//! store that it concerns, never edited once released. A program knows as many schemas as it has steps, and makes a new store with all of them.
//!
//! | store | the number stands in | a step is | it is applied |
//! | --- | --- | --- | --- |
//! | SQLite | `user_version` | SQL | in one transaction with the number, by a process that has the file alone |
//! | PostgreSQL | `soloist_store.number` | SQL | in one transaction with the number, under an advisory lock |
//! | MySQL | `soloist_store.number`, `done` | statements, each harmless when it is carried out again | under a named lock, as these servers change tables in no transaction: `number` is written first, so that no older program uses what is half done, and `done` when it is whole |
//! | Redis | `soloist:schema` | Lua | in one call with the number; on a cluster it reaches what belongs to no job |
//!
//! Both directions are refused in words. An older program does not open a newer store. A newer one upgrades an older store only if it may
//! make stores, and only while no process is seen that uses it: that one would go on with what was there before. A process that is cut off
//! at this moment is not seen. So people stop all of them (`docs/operations.md`), and a step gives what it changes another name. All steps
//! together have half a minute.
//!
//! What builds before 1.0 made carries another mark or another form of the number, and is refused: nothing reads it.

use super::{Options, Result, StoreError};

/// The steps of this program, for one store.
#[derive(Clone)]
pub struct Steps {
    /// Of the store, for messages.
    name: String,
    all: Vec<&'static str>,
    /// Whether this process may make a store, or upgrade one.
    pub make: bool,
}

impl Steps {
    /// `own` are those of the kind of store; the first one makes schema 1.
    pub fn new(name: String, own: &[&'static str], options: &Options) -> Self {
        let all = own.iter().chain(options.steps).copied().collect();
        Self { name, all, make: options.make }
    }

    /// The schema that this program makes.
    pub fn known(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    /// What a store of schema `found` lacks; 0: there is none yet.
    ///
    /// # Errors
    /// [`StoreError::NewerSchema`]; for a process that makes nothing [`StoreError::Absent`], [`StoreError::Unsupported`].
    pub fn missing(&self, found: u32) -> Result<&[&'static str]> {
        let known = self.known();
        if found > known {
            return Err(StoreError::NewerSchema { found, known });
        }
        if found == known || self.make {
            return Ok(self.all.get(found as usize..).unwrap_or_default());
        }
        Err(match found {
            0 => StoreError::Absent(self.name.clone()),
            _ => StoreError::Unsupported(format!(
                "{} has schema {found} of the version before: start a node of this version (soloist serve), which upgrades it to schema {known}; looking changes nothing",
                self.name
            )),
        })
    }

    /// Why a store of schema `found` stays as it is.
    pub fn in_use(&self, found: u32) -> StoreError {
        StoreError::Unsupported(format!(
            "{} has schema {found} of the version before, and other processes use it: stop every node of that version and whatever else uses the store, then start this one, which upgrades it to schema {} (back it up before: the version before cannot use it afterwards)",
            self.name,
            self.known()
        ))
    }

    /// Why a store from before schema 1 is not opened.
    pub fn development(&self) -> StoreError {
        StoreError::Unsupported(format!(
            "{} was made by a development version before 1.0, which nothing converts: name another file, database or prefix for the store, or empty this one, and add accounts, sources and rotations anew",
            self.name
        ))
    }
}
