//! The content of `PATH-wake` for the next process: which files were used last at this path, what was last seen in them, until when nothing may
//! be granted, how far the store had come, and whether another program wrote into the files.
//!
//! The file is also the bell (`file.rs`), which is its first byte. The parts have fixed places, because processes that know nothing of each
//! other write them; each is one small write.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::mark::Mark;
use super::same::{Id, Said};
use soloist_process::clock;

/// Where the bell ends: its byte, and when it was rung, so that each ring writes other bytes.
const RUNG: usize = 16;
const MARK: u64 = 16;
const KEEPS: u64 = 24;
const BACKS: u64 = 32;
const RECORD: u64 = 64;
const SAID: u64 = 1_024;
const SPOILED: u64 = 2_048;
const ROOM: usize = 512;

/// Which files are used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The main file, the log, its index.
    pub(super) files: [Id; 3],
    /// Of which boot `calm_ns` is.
    pub(super) boot: String,
    /// CLOCK_BOOTTIME; nothing is granted before.
    pub(super) calm_ns: u64,
}

/// What another program did to the files while they were in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spoiled {
    /// For people.
    pub(super) why: String,
    /// Only the index, which SQLite makes anew from the log.
    pub(super) index: bool,
}

impl Record {
    /// Of the files that were used last, if that is known.
    pub(super) fn read(bell: &File) -> Option<Self> {
        read(bell, RECORD)
    }

    pub(super) fn write(&self, bell: &File) {
        write(bell, RECORD, self);
    }

    /// How far the store had come when somebody last rang, and how often it was found to have gone back.
    pub(super) fn mark(bell: &File) -> (Mark, u64) {
        let mut room = [0; 24];
        // What an older program left is shorter, and nothing.
        bell.read_at(&mut room, MARK).ok();
        let [event, keeps, backs] = [0, 8, 16].map(|at| {
            let mut number = [0; 8];
            number.copy_from_slice(&room[at..at + 8]);
            number
        });
        let mark = Mark { event: i64::from_le_bytes(event), keeps: i64::from_le_bytes(keeps) };
        (mark, u64::from_le_bytes(backs))
    }

    /// Rings because something was published, and says how far the store has come.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn ring(bell: &File, mark: Mark) -> io::Result<()> {
        let mut room = [0; BACKS as usize];
        room[0] = b'!';
        room[8..RUNG].copy_from_slice(&clock::boot().0.to_le_bytes());
        room[16..24].copy_from_slice(&mark.event.to_le_bytes());
        room[24..].copy_from_slice(&mark.keeps.to_le_bytes());
        bell.write_all_at(&room, 0)
    }

    /// Writes how often leases were kept. inotify wakes the listeners for that, too; they see that nobody rang, and sleep again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn count(bell: &File, mark: Mark) -> io::Result<()> {
        bell.write_all_at(&mark.keeps.to_le_bytes(), KEEPS)
    }

    /// The bytes of the bell. They differ from earlier ones if somebody has rung since.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn rung(bell: &File) -> io::Result<[u8; RUNG]> {
        let mut room = [0; RUNG];
        bell.read_exact_at(&mut room, 0)?;
        Ok(room)
    }

    /// The store was found to have gone back, for the `backs`th time.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn went_back(bell: &File, backs: u64) -> io::Result<()> {
        bell.write_all_at(&backs.to_le_bytes(), BACKS)
    }

    pub(super) fn said(bell: &File) -> Option<Said> {
        read(bell, SAID)
    }

    pub(super) fn write_said(bell: &File, said: &Said) {
        write(bell, SAID, said);
    }

    pub(super) fn spoiled(bell: &File) -> Option<Spoiled> {
        read(bell, SPOILED)
    }

    pub(super) fn write_spoiled(bell: &File, spoiled: &Spoiled) {
        write(bell, SPOILED, spoiled);
    }

    /// Whoever spoiled them, they are made anew.
    pub(super) fn forgive(bell: &File) {
        write(bell, SPOILED, "");
    }
}

fn read<T: DeserializeOwned>(bell: &File, at: u64) -> Option<T> {
    let mut room = [0; ROOM];
    let length = bell.read_at(&mut room, at).ok()?;
    let text = room[..length].split(|byte| *byte == 0).next()?;
    serde_json::from_slice(text).ok()
}

fn write<T: Serialize + ?Sized>(bell: &File, at: u64, value: &T) {
    let Ok(mut text) = serde_json::to_vec(value) else { return };
    text.resize(ROOM, 0);
    if let Err(error) = bell.write_all_at(&text, at) {
        // Who comes next knows less, and waits.
        tracing::debug!(%error, "the record of the store's files was not written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_of_an_older_program_has_no_record_and_each_part_is_read_again() {
        let bell = tempfile::tempfile().unwrap();
        bell.write_all_at(b"!", 0).unwrap();
        assert_eq!((Record::read(&bell), Record::said(&bell)), (None, None));
        assert_eq!(Record::mark(&bell), (Mark::default(), 0));
        let id = Id::of(&bell.metadata().unwrap());
        let record = Record { files: [id; 3], boot: "b".repeat(60), calm_ns: u64::MAX };
        record.write(&bell);
        let spoiled = Spoiled { why: "soloist.db was overwritten".to_owned(), index: false };
        Record::write_spoiled(&bell, &spoiled);
        Record::went_back(&bell, 3).unwrap();
        let mark = Mark { event: 7, keeps: i64::MAX };
        Record::ring(&bell, mark).unwrap();
        assert_eq!(Record::mark(&bell), (mark, 3));
        let rung = Record::rung(&bell).unwrap();
        Record::count(&bell, Mark { keeps: 9, ..mark }).unwrap();
        assert_eq!(Record::mark(&bell), (Mark { keeps: 9, ..mark }, 3));
        assert_eq!(Record::rung(&bell).unwrap(), rung, "it was not rung");
        Record::ring(&bell, mark).unwrap();
        assert_ne!(Record::rung(&bell).unwrap(), rung);
        assert_eq!(Record::mark(&bell), (mark, 3));
        assert_eq!(Record::read(&bell), Some(record));
        assert_eq!(Record::spoiled(&bell), Some(spoiled));
        Record::forgive(&bell);
        assert_eq!(Record::spoiled(&bell), None);
    }
}
