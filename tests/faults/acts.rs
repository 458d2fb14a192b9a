//! The records that scripts write of themselves, and the checker that finds every overlap in them.
//!
//! Every process of every run of a job appends to one file: `token node pid nanoseconds word`, the nanoseconds being
//! CLOCK_BOOTTIME. A line is one write with O_APPEND, so the order of the lines is the order of the acts whatever any
//! clock says; the times are for figures and are held against the order as well. A script that finds at its start that
//! a process of an earlier run still lives writes `overlap`, so no gap between two acts can hide one.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// One act of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Act {
    pub(crate) token: u64,
    pub(crate) node: String,
    /// As the process sees itself: inside a pid namespace it is a small number.
    pub(crate) pid: u32,
    /// CLOCK_BOOTTIME in nanoseconds, read just before the line was written.
    pub(crate) at: u64,
    pub(crate) word: Word,
}

/// What a process did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// The first act of a run.
    Start,
    /// Any later one.
    Beat,
    /// TERM came and was not obeyed.
    Ignored,
    /// The last act of a script that ends by itself or by TERM.
    End,
    /// At its start a process of another run of the same job lived.
    Overlap,
}

impl Word {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Beat => "beat",
            Self::Ignored => "ignored",
            Self::End => "end",
            Self::Overlap => "overlap",
        }
    }

    fn read(word: &str) -> Option<Self> {
        [Self::Start, Self::Beat, Self::Ignored, Self::End, Self::Overlap]
            .into_iter()
            .find(|known| known.as_str() == word)
    }
}

impl Act {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let act = Self {
            token: words.next()?.parse().ok()?,
            node: words.next()?.to_owned(),
            pid: words.next()?.parse().ok()?,
            at: words.next()?.parse().ok()?,
            word: Word::read(words.next()?)?,
        };
        words.next().is_none().then_some(act)
    }
}

/// One run as its acts tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) token: u64,
    pub(crate) node: String,
    /// Of its first act.
    pub(crate) first: u64,
    /// Of the last act of any process of its tree.
    pub(crate) last: u64,
    pub(crate) acts: usize,
}

/// Reads one job's records as they grow, and judges them.
pub(crate) struct Records {
    file: PathBuf,
    read: u64,
    rest: String,
    judge: Judge,
}

impl Records {
    pub(crate) fn of(directory: &Path, job: &str) -> Self {
        let file = directory.join(format!("{job}.acts"));
        Self { file, read: 0, rest: String::new(), judge: Judge::default() }
    }

    /// Reads what was written since.
    pub(crate) fn look(&mut self) -> &Judge {
        let mut text = String::new();
        if let Ok(mut file) = std::fs::File::open(&self.file)
            && file.seek(SeekFrom::Start(self.read)).is_ok()
        {
            file.read_to_string(&mut text).expect("records are text");
        }
        self.read += text.len() as u64;
        self.rest.push_str(&text);
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let rest = self.rest.split_off(whole);
        for line in std::mem::replace(&mut self.rest, rest).lines() {
            self.judge.hear(Act::read(line).unwrap_or_else(|| panic!("odd record {line:?}")));
        }
        &self.judge
    }
}

/// Holds every act against the first promise: no two process trees of one job at any instant.
#[derive(Default)]
pub(crate) struct Judge {
    /// By token, which is the order in which they may run.
    pub(crate) runs: BTreeMap<u64, Run>,
    /// In the order of their first acts.
    pub(crate) order: Vec<u64>,
    /// What broke the promise, in words.
    pub(crate) overlaps: Vec<String>,
    newest: Option<Act>,
}

impl Judge {
    pub(crate) fn hear(&mut self, act: Act) {
        if act.word == Word::Overlap {
            self.broken("a process of another run lived when this one started", &act);
        }
        if let Some(newest) = &self.newest {
            if act.token < newest.token {
                self.broken("an older run acted after a newer one had", &act);
            } else if act.word == Word::Start
                && act.token == newest.token
                && newest.word != Word::Overlap
            {
                self.broken("two runs had one token", &act);
            }
        }
        match self.runs.get_mut(&act.token) {
            Some(run) => {
                run.last = run.last.max(act.at);
                run.acts += 1;
            }
            None => {
                if !matches!(act.word, Word::Start | Word::Overlap) {
                    self.broken("a run acted before its start", &act);
                }
                self.order.push(act.token);
                let (token, node) = (act.token, act.node.clone());
                let (first, last) = (act.at, act.at);
                self.runs.insert(token, Run { token, node, first, last, acts: 1 });
            }
        }
        if self.newest.as_ref().is_none_or(|newest| act.token >= newest.token) {
            self.newest = Some(act);
        }
    }

    fn broken(&mut self, what: &str, act: &Act) {
        let newest = self.newest.as_ref();
        let before = newest.map_or("nothing".to_owned(), |newest| format!("{newest:?}"));
        self.overlaps.push(format!("{what}: {act:?}, after {before}"));
    }

    /// All that is wrong, now that everything is told: what the order of the lines showed, and runs whose times cross.
    pub(crate) fn wrongs(&self) -> Vec<String> {
        let mut wrongs = self.overlaps.clone();
        let runs: Vec<&Run> = self.runs.values().collect();
        for (older, newer) in runs.iter().zip(runs.iter().skip(1)) {
            if newer.first <= older.last {
                wrongs.push(format!("the times of two runs cross: {older:?} and {newer:?}"));
            }
        }
        wrongs
    }

    /// How many runs have started.
    pub(crate) fn starts(&self) -> usize {
        self.runs.len()
    }

    /// The newest run.
    pub(crate) fn newest(&self) -> Option<&Run> {
        self.runs.values().next_back()
    }
}

/// The checker is worth something only if it finds what it is there for.
pub(crate) fn the_checker_finds_every_planted_overlap() {
    let judged = |text: &str| {
        let mut judge = Judge::default();
        for line in text.lines() {
            judge.hear(Act::read(line).expect("a record"));
        }
        judge.wrongs()
    };
    let fine = "5 a 1 100 start\n5 a 1 200 beat\n5 a 2 210 ignored\n6 b 3 300 start\n6 b 3 350 beat\n9 a 4 400 start\n9 a 4 410 end\n";
    assert_eq!(judged(fine), [""; 0]);
    for (planted, what) in [
        ("5 a 1 100 start\n6 b 2 300 start\n5 a 1 200 beat\n", "acted after a newer"),
        ("5 a 1 100 start\n6 b 2 300 start\n5 a 9 400 beat\n", "acted after a newer"),
        ("5 a 1 100 start\n6 b 2 300 start\n5 a 9 400 beat\n", "times of two runs cross"),
        ("6 a 1 100 start\n5 a 2 300 start\n", "acted after a newer"),
        ("5 a 1 100 start\n5 a 2 300 start\n", "one token"),
        ("5 a 1 100 start\n6 b 2 300 overlap\n", "lived when this one started"),
        ("5 a 1 100 start\n5 a 1 400 beat\n6 b 2 300 start\n", "times of two runs cross"),
        ("5 a 1 100 beat\n", "before its start"),
    ] {
        let found = judged(planted);
        assert!(found.iter().any(|wrong| wrong.contains(what)), "{planted} gave {found:?}");
    }
}
