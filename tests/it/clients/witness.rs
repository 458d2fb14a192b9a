//! What drivers wrote down, and whether two of them worked at one time.
//!
//! A driver reads the boot clock *before* it asks its library, and writes after. So a line that a pause delayed says when it was allowed. The
//! clock is that of `/proc/uptime`, in every language: of two acts the later one never has the smaller number.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::support::machine::holds;
use crate::support::node::Ground;
use crate::support::wait::until;
use crate::support::witness::Act;

/// The file of one lease.
pub(super) struct Acts {
    name: String,
    file: PathBuf,
}

impl Acts {
    pub(super) fn of(ground: &Ground, name: &str) -> Self {
        Self { name: name.to_owned(), file: ground.path(&format!("{name}.acts")) }
    }

    /// Whose file it is.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn all(&self) -> Vec<Act> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| act(line).unwrap_or_else(|| panic!("odd line {line:?}"))).collect()
    }

    /// Waits for the next act that `wanted` accepts, after the first `after`.
    pub(super) fn until(&self, what: &str, after: usize, wanted: impl Fn(&Act) -> bool) -> Act {
        until(what, || self.all().into_iter().skip(after).find(&wanted))
    }

    /// Waits until the process `pid` has started and worked, and gives its first act.
    pub(super) fn until_works(&self, pid: i32) -> Act {
        let start =
            self.until(&format!("{pid} starts"), 0, |act| act.pid == pid && act.word == "start");
        self.until("it works", 0, |act| act.token == start.token && act.word == "beat");
        start
    }

    /// Waits until `count` more acts of `token` have been written; false when another token comes first.
    pub(super) fn goes_on(&self, token: u64, count: usize) -> bool {
        let before = self.all().len();
        until("the work goes on", || {
            let more = self.all().split_off(before);
            let of = more.iter().filter(|act| act.token == token).count();
            let other = more.iter().any(|act| act.token > token);
            (of >= count || other).then_some(!other)
        })
    }

    /// No act was allowed under an older token once a newer had begun; each token is one process's.
    ///
    /// # Panics
    /// With the two acts, when it was otherwise.
    pub(super) fn judge(&self) {
        judge(self.all());
    }
}

/// `token language pid boot-seconds word`.
fn act(line: &str) -> Option<Act> {
    let words: Vec<&str> = line.split(' ').collect();
    let [token, node, pid, at, word] = words.as_slice() else { return None };
    let (node, word) = ((*node).to_owned(), (*word).to_owned());
    Some(Act {
        token: token.parse().ok()?,
        node,
        pid: pid.parse().ok()?,
        at: at.parse().ok()?,
        word,
    })
}

fn judge(mut acts: Vec<Act>) {
    let mut owners = HashMap::new();
    for act in &acts {
        let owner = *owners.entry(act.token).or_insert(act.pid);
        holds(owner == act.pid, || format!("a token was used by two: {owner} and {act:?}"));
    }
    acts.sort_by(|one, other| one.at.total_cmp(&other.at).then(one.token.cmp(&other.token)));
    for pair in acts.windows(2) {
        holds(pair[0].token <= pair[1].token, || {
            format!("overlap: {:?} after {:?}", pair[1], pair[0])
        });
    }
}

#[test]
fn the_judge_finds_an_overlap() {
    let act =
        |token, pid, at| Act { token, node: "java".to_owned(), pid, at, word: "beat".to_owned() };
    judge(vec![act(5, 1, 1.0), act(6, 2, 1.1)]);
    // A line that was written late, and allowed in time.
    judge(vec![act(6, 2, 1.1), act(5, 1, 1.0), act(6, 2, 1.2)]);
    for overlap in
        [vec![act(5, 1, 1.0), act(6, 2, 1.1), act(5, 1, 1.2)], vec![act(5, 1, 1.0), act(5, 2, 1.1)]]
    {
        assert!(std::panic::catch_unwind(|| judge(overlap.clone())).is_err(), "{overlap:?}");
    }
}
