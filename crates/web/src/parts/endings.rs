//! Why a run ended, in words: for the history, and for the rule in the output where another node goes on.
//!
//! The record of a run says that it was stopped, not by whom. The audit does: the newest act while it ran that stops
//! such a run is the reason. Without one nothing is claimed.

use std::collections::HashMap;

use soloist_domain::job::{Exit, RunEnd};
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::time::StoreTime;
use soloist_ops::Act;
use soloist_store::journal::{AuditEntry, RunEntry};
use soloist_view::words::{Arg, Language, Piece, lasted, phrase, say, second};

/// An act is written down after it was done: it may bear a later instant than what it caused.
const WRITTEN_LATER_MS: i64 = 1_000;

/// What ended each run of a stretch of the history, and which run came before which.
#[derive(Debug, Default)]
pub struct Endings {
    /// By the id of a run: the run before it.
    before: HashMap<String, String>,
    /// By the id of a run that is over: where it ended, and why.
    over: HashMap<String, (NodeName, String)>,
    /// By the id of a run: the runs alike before it, of which nothing stands in the output.
    alike: HashMap<String, Vec<Piece>>,
}

/// The acts on one job, newest first, as far as they were read.
#[derive(Debug, Clone, Copy)]
pub struct Acts<'a> {
    /// Of any target.
    pub entries: &'a [AuditEntry],
    /// Whose runs are explained.
    pub job: &'a JobName,
}

impl Endings {
    /// The endings of `runs`, newest first.
    #[must_use]
    pub fn new(runs: &[RunEntry], acts: Acts<'_>, lang: Language) -> Self {
        let pairs = || runs.iter().zip(runs.iter().skip(1));
        let before = pairs().map(|(run, before)| (run.id.to_string(), before.id.to_string()));
        let over = runs.iter().filter_map(|run| {
            Some((run.id.to_string(), (run.node.clone(), why(run, acts, lang)?)))
        });
        let alike = pairs()
            .filter_map(|(run, before)| Some((run.id.to_string(), alike(before, second, lang)?)));
        Self { before: before.collect(), over: over.collect(), alike: alike.collect() }
    }

    /// The runs alike before `run`.
    #[must_use]
    pub fn alike(&self, run: &str) -> Option<&[Piece]> {
        self.alike.get(run).map(Vec::as_slice)
    }

    /// Why the run before `run` ended.
    #[must_use]
    pub fn before(&self, run: &str) -> Option<&str> {
        self.why(self.before.get(run)?)
    }

    /// Why `run` ended.
    #[must_use]
    pub fn why(&self, run: &str) -> Option<&str> {
        self.over.get(run).map(|(_, why)| why.as_str())
    }

    /// The rule before the first line of `run` on `node`: how the run before it ended, else how `shown` did, whose line is the last
    /// before it.
    #[must_use]
    pub fn rule(
        &self,
        shown: Option<&str>,
        run: &str,
        node: &NodeName,
        lang: Language,
    ) -> Option<String> {
        let before = self.before.get(run).map(String::as_str);
        let over = before.and_then(|run| self.over.get(run));
        let (on, why) = over.or_else(|| self.over.get(shown.filter(|shown| *shown != run)?))?;
        let why = why.as_str();
        Some(match on == node {
            true => why.to_owned(),
            false => {
                let node = ("node", Arg::from(node.as_str()));
                say(lang, "output-after", &[("why", Arg::from(why)), node])
            }
        })
    }
}

/// How many runs alike the entry `run` stands for, and from when to when; `None` for a single one.
#[must_use]
pub fn alike(
    run: &RunEntry,
    at: impl Fn(StoreTime) -> Piece,
    lang: Language,
) -> Option<Vec<Piece>> {
    let ended = run.ended.filter(|_| run.folded > 1)?;
    let n = Piece::Number(i64::from(run.folded));
    let args = [("n", n), ("from", at(run.started)), ("to", at(ended))];
    Some(phrase(lang, "runs-alike", &args))
}

/// Why `run` ended; `None` while it goes on.
#[must_use]
pub fn why(run: &RunEntry, acts: Acts<'_>, lang: Language) -> Option<String> {
    let node = ("node", Arg::from(run.node.as_str()));
    let lasted = run.ended.map_or_else(String::new, |ended| lasted(lang, ended.since(run.started)));
    let lasted = ("lasted", Arg::from(lasted));
    Some(match run.end? {
        RunEnd::Lost => say(lang, "after-lost", &[node]),
        RunEnd::Died if run.exit.signal.is_some() => say(lang, "after-guard-died", &[node]),
        RunEnd::Died => say(lang, "after-died", &[node]),
        RunEnd::Fenced => say(lang, "after-fenced", &[node]),
        RunEnd::TimedOut => say(lang, "after-timed-out", &[node]),
        RunEnd::Exited => say(lang, "after-exited", &[node, lasted]),
        RunEnd::Crashed => {
            say(lang, "after-crashed", &[node, lasted, ("exit", exit(lang, run.exit))])
        }
        RunEnd::Stopped => {
            stopped(run, acts, lang).unwrap_or_else(|| say(lang, "after-stopped", &[node]))
        }
    })
}

/// Who stopped a run that was stopped, and how; `None` when the audit does not tell.
#[must_use]
pub fn stopped(run: &RunEntry, acts: Acts<'_>, lang: Language) -> Option<String> {
    if run.end != Some(RunEnd::Stopped) {
        return None;
    }
    let last = StoreTime(run.ended?.0.saturating_add(WRITTEN_LATER_MS));
    let stops = |act: &&AuditEntry| {
        let done = Act::of_code(&act.act);
        let on_job = act.target == acts.job.as_str()
            && matches!(done, Some(Act::ParticipationOff | Act::JobHold | Act::JobMove));
        let on_node = act.target == run.node.as_str() && done == Some(Act::NodeDrain);
        (on_job || on_node) && (run.started..=last).contains(&act.at)
    };
    let act = acts.entries.iter().find(stops)?;
    // Who did it, not by which door.
    let who = act.who.strip_prefix("cli:").unwrap_or(&act.who);
    let user = ("user", Arg::from(who));
    Some(match Act::of_code(&act.act) {
        Some(Act::ParticipationOff) => say(lang, "after-off", &[user]),
        Some(Act::JobHold) => say(lang, "after-held", &[user]),
        Some(Act::NodeDrain) => {
            say(lang, "after-drained", &[user, ("node", Arg::from(run.node.as_str()))])
        }
        // Behind it stands why, if that was said.
        _ => match act
            .reason
            .as_deref()
            .and_then(|said| said.split(": ").next()?.strip_prefix("to "))
        {
            Some(to) => say(lang, "after-moved-to", &[user, ("node", Arg::from(to))]),
            None => say(lang, "after-moved", &[user]),
        },
    })
}

fn exit(lang: Language, exit: Exit) -> Arg {
    let number = |n: i32| [("n", Arg::from(n.to_string()))];
    Arg::from(match exit {
        Exit { code: Some(code), .. } => say(lang, "exit-code", &number(code)),
        Exit { signal: Some(signal), .. } => say(lang, "exit-signal", &number(signal)),
        _ => say(lang, "exit-none", &[]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::lease::Token;
    use soloist_domain::name::RunId;

    fn run(id: &str, node: &str, end: RunEnd, from: i64, to: i64) -> RunEntry {
        RunEntry {
            id: RunId(id.to_owned()),
            job: JobName::new("outbound").expect("a valid name"),
            node: NodeName::new(node).expect("a valid name"),
            token: Token(1),
            started: StoreTime(from),
            ended: Some(StoreTime(to)),
            exit: Exit { code: Some(1), signal: None },
            end: Some(end),
            processes_killed: 0,
            folded: 0,
        }
    }

    #[test]
    fn runs_alike_are_told_before_the_run_that_came_after_them() {
        let idle = RunEntry { folded: 12, ..run("b", "node-a", RunEnd::Exited, 0, 780_000) };
        let runs = [run("c", "node-a", RunEnd::Exited, 800_000, 900_000), idle];
        let job = JobName::new("outbound").expect("a valid name");
        let acts = Acts { entries: &[], job: &job };
        for (lang, words) in [(Language::En, "12 runs alike, "), (Language::Zh, "12 次")] {
            let endings = Endings::new(&runs, acts, lang);
            let said: String =
                endings.alike("c").expect("told").iter().map(ToString::to_string).collect();
            assert!(said.contains(words) && said.contains(":13:00"), "{said}");
            assert_eq!(endings.alike("b"), None);
        }
    }

    fn act(at: i64, who: &str, act: &str, target: &str, reason: Option<&str>) -> AuditEntry {
        AuditEntry {
            id: 1,
            at: StoreTime(at),
            who: who.to_owned(),
            from: "127.0.0.1".to_owned(),
            act: act.to_owned(),
            target: target.to_owned(),
            reason: reason.map(str::to_owned),
            kind: soloist_store::journal::Kind::Person,
            count: 1,
            until: None,
        }
    }

    fn said(run: &RunEntry, entries: &[AuditEntry]) -> String {
        let job = JobName::new("outbound").expect("a valid name");
        why(run, Acts { entries, job: &job }, Language::En).expect("it ended")
    }

    #[test]
    fn only_a_run_that_somebody_moved_is_called_moved() {
        let entries = [
            act(9_000, "li", "job.move", "inbound", None),
            act(5_010, "cli:li", "job.move", "outbound", Some("to node-b: new disk")),
            act(1_000, "wang", "job.move", "outbound", None),
        ];
        let moved = run("1", "node-a", RunEnd::Stopped, 2_000, 5_000);
        assert_eq!(said(&moved, &entries), "li moved it to node-b");
        assert_eq!(said(&moved, &entries[2..]), "it was stopped on node-a", "that was before it");
        let lost = run("1", "node-a", RunEnd::Lost, 2_000, 5_000);
        assert_eq!(said(&lost, &entries), "node-a was lost");
        let crashed = run("1", "node-a", RunEnd::Crashed, 2_000, 5_000);
        assert_eq!(said(&crashed, &entries), "exit 1 after 3 s on node-a");
    }

    #[test]
    fn the_newest_act_that_stops_is_the_reason() {
        let entries = [
            act(4_999, "wang", "participation.off", "outbound", None),
            act(4_000, "li", "participation.on", "outbound", None),
            act(3_000, "li", "node.drain", "node-a", None),
        ];
        let stopped = run("1", "node-a", RunEnd::Stopped, 2_000, 5_000);
        assert_eq!(said(&stopped, &entries), "wang switched it off");
        assert_eq!(said(&stopped, &entries[1..]), "li drained node-a");
        let elsewhere = run("1", "node-b", RunEnd::Stopped, 2_000, 5_000);
        assert_eq!(said(&elsewhere, &entries[1..]), "it was stopped on node-b");
    }

    #[test]
    fn a_run_knows_why_the_one_before_it_ended() {
        let job = JobName::new("outbound").expect("a valid name");
        let runs = [
            run("2", "node-b", RunEnd::Exited, 6_000, 7_000),
            run("1", "node-a", RunEnd::Lost, 1_000, 5_000),
        ];
        let endings = Endings::new(&runs, Acts { entries: &[], job: &job }, Language::Zh);
        assert!(endings.before("2").is_some_and(|why| why.contains("node-a")));
        assert_eq!(endings.before("1"), None);
        let node = |name| NodeName::new(name).expect("a valid name");
        let rule = |shown, run, on| endings.rule(shown, run, &node(on), Language::En);
        assert_eq!(rule(None, "2", "node-a"), rule(Some("0"), "2", "node-a"));
        assert!(rule(None, "2", "node-b").is_some_and(|rule| rule.contains("node-b")));
        assert!(
            rule(Some("2"), "3", "node-b").is_some() && rule(Some("1"), "1", "node-a").is_none()
        );
    }
}
