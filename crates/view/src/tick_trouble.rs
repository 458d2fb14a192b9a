//! What is said of ticks in an alert, behind its first sentence: which tick, and what was in the way.

use std::time::Duration;

use super::Scene;
use super::incident::lasting;
use super::tick_words::{called, run_of, why};
use crate::words::{Piece, exactly, phrase};
use soloist_domain::alert::When;
use soloist_domain::job::State;
use soloist_domain::tick::{Kind, Obstacle, Overdue, Trouble, unfinished, unstarted};

impl Scene<'_> {
    /// What is so now, by what an alert may be about; nothing of what is not so.
    pub(super) fn troubles(&self) -> Vec<(When, Vec<Piece>)> {
        let Some(clock) = self.record.clock.as_deref() else { return Vec::new() };
        let law = self.job.schedule.as_ref().map(|scheduled| &scheduled.law);
        let late = law.and_then(|law| unstarted(self.record, law, self.now));
        let long = law.and_then(|law| unfinished(self.record, law, self.now));
        let overdue = [(When::NotStarted, late), (When::NotFinished, long)];
        let overdue =
            overdue.into_iter().filter_map(|(when, one)| Some((when, self.overdue(&one?))));
        let told = When::ALL.into_iter().filter_map(|when| {
            let trouble = clock.trouble(when.trouble()?)?;
            trouble.lasts(self.record, self.now).then(|| (when, self.trouble(trouble)))
        });
        overdue.chain(told).collect()
    }

    fn overdue(&self, overdue: &Overdue) -> Vec<Piece> {
        let tick = Piece::text(called(self.lang, &overdue.tick.name));
        let mut pieces = phrase(self.lang, "trouble-tick", &[("tick", tick)]);
        let (id, args) = match &overdue.obstacle {
            Some(Obstacle::Held { by, reason }) => {
                let args = vec![("user", Piece::text(by)), ("reason", Piece::text(reason))];
                ("trouble-held", args)
            }
            Some(Obstacle::Behind(open)) => {
                let run = Piece::Text(run_of(self.lang, open));
                ("trouble-behind", vec![("run", run)])
            }
            Some(Obstacle::NotBegun) if self.job.rotation.is_some() => ("trouble-turn", Vec::new()),
            // What the job itself says: no node may run it, it runs since, it waits for its next try.
            _ => {
                pieces.extend(phrase(self.lang, "sentence-gap", &[]));
                pieces.extend(self.job_says());
                return pieces;
            }
        };
        pieces.extend(phrase(self.lang, "sentence-gap", &[]));
        pieces.extend(phrase(self.lang, id, &args));
        pieces
    }

    /// Why a tick is overdue, by what the job says of itself.
    fn job_says(&self) -> Vec<Piece> {
        let missed = self.record.clock.as_ref().and_then(|clock| clock.trouble(Kind::Missed));
        let said = match self.state {
            State::Scheduled if self.is_barred() => {
                lasting(&self.why_barred(), &[self.waits()], self.lang)
            }
            // Another tick is to come.
            State::Scheduled => match missed {
                Some(missed) => {
                    phrase(self.lang, "trouble-missed", &[("why", self.why_of(missed))])
                }
                None => Vec::new(),
            },
            _ => lasting(&self.why(), &self.evidence(), self.lang),
        };
        match said.is_empty() {
            true => phrase(self.lang, self.by_runner("trouble-no-node", "trouble-no-program"), &[]),
            false => said,
        }
    }

    fn why_of(&self, trouble: &Trouble) -> Piece {
        Piece::text(trouble.why.as_ref().map(|because| why(self.lang, because)).unwrap_or_default())
    }

    fn trouble(&self, trouble: &Trouble) -> Vec<Piece> {
        let length = |ms| Piece::text(exactly(self.lang, Duration::from_millis(ms)));
        let mut args = vec![
            ("tick", Piece::text(called(self.lang, &trouble.tick.name))),
            ("n", Piece::Number(i64::from(trouble.count))),
            ("job", Piece::text(&self.record.name)),
            ("name", Piece::text(&trouble.tick.name)),
            ("why", self.why_of(trouble)),
        ];
        let least = self.job.schedule.as_ref().and_then(|one| one.law.rules.at_least);
        let id = match (trouble.kind, trouble.took_ms) {
            (Kind::Lost, _) => "trouble-lost",
            (Kind::TooQuick, Some(took)) => {
                args.push(("took", length(took)));
                args.push(("least", length(least.map_or(0, soloist_domain::time::millis))));
                "trouble-quick"
            }
            _ if trouble.count > 1 => "trouble-why-of-several",
            _ => "trouble-why",
        };
        phrase(self.lang, id, &args)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{at_work, before, config, look, node, scheduled, user, wanted};
    use super::*;
    use crate::incident::why;
    use crate::words::{Language, plain};
    use soloist_config::JobConfig;
    use soloist_domain::job::{Hold, JobRecord};
    use soloist_domain::name::NodeName;
    use soloist_domain::tick::{Clock, Pending, Tick, TickName, Why};
    use soloist_domain::time::StoreTime;

    fn tick(at: StoreTime) -> Tick {
        let name = TickName("settle@2026-11-27T02:30+08:00[Asia/Shanghai]".to_owned());
        Tick { name, due: at, starts: at, note: None }
    }

    /// A job whose tick has been due for five minutes.
    fn late() -> (JobConfig, JobRecord) {
        let mut job = config("settle", "Settlement", "结算");
        let mut scheduled = scheduled(&job.name);
        scheduled.law.rules.start_within = Some(Duration::from_secs(60));
        scheduled.law.rules.at_least = Some(Duration::from_secs(10));
        job.schedule = Some(scheduled);
        let mut record = wanted(&job, &["li"]);
        let mut clock = Clock::begin("", &record, before(1));
        let tick = tick(before(300));
        clock.pending.push(Pending {
            since: tick.starts,
            tick,
            behind: false,
            why: None,
            older: Vec::new(),
        });
        record.clock = Some(Box::new(clock));
        (job, record)
    }

    fn said(record: &JobRecord, job: &JobConfig, of: &str, lang: Language, when: When) -> String {
        let nodes = [node("node-a", 300, &[of], false)];
        plain(&why(&look(record.clone(), job, &nodes, lang, Duration::ZERO), when))
    }

    #[test]
    fn a_tick_that_has_not_started_names_what_is_in_the_way() {
        let (job, mut record) = late();
        let when = When::NotStarted;
        let named = "It is the tick 2026-11-27 02:30 +08:00.";
        let text = said(&record, &job, "other", Language::En, when);
        assert!(text.starts_with(named) && text.contains("no living node may run it"), "{text}");
        let text = said(&record, &job, "other", Language::Zh, when);
        assert!(text.contains("2026-11-27 02:30 +08:00 那次") && text.contains("不允许"), "{text}");
        let text = said(&record, &job, "settle", Language::En, when);
        assert_eq!(text, format!("{named} No node has taken it yet."));
        let (by, reason) = (user("chen"), "stocktaking".to_owned());
        record.hold = Some(Hold { by, reason, since: before(900) });
        let text = said(&record, &job, "settle", Language::En, when);
        assert_eq!(text, format!("{named} The job is held by chen: stocktaking."));
        record.hold = None;
        record.participants.clear();
        let text = said(&record, &job, "settle", Language::En, when);
        assert!(!text.contains("02:30"), "nobody wants it: {text}");
        let (_, mut started) = late();
        started.clock.as_mut().unwrap().pending.clear();
        at_work(&mut started, "node-a", 9, 4_000);
        let text = said(&started, &job, "settle", Language::En, when);
        assert!(text.contains("Running on node-a"), "nothing is late: {text}");
    }

    #[test]
    fn a_trouble_says_which_tick_why_and_what_to_do() {
        let (job, mut record) = late();
        let clock = record.clock.as_mut().unwrap();
        let gone = Why::Gone { node: NodeName::new("node-b").unwrap() };
        let trouble = |kind, count, why, took_ms| Trouble {
            kind,
            tick: tick(before(300)),
            count,
            why,
            took_ms,
            at: before(9),
            over: None,
        };
        clock.troubles = vec![
            trouble(Kind::Missed, 3, Some(Why::NoNode), None),
            trouble(Kind::Lost, 1, Some(gone), None),
            trouble(Kind::TooQuick, 1, None, Some(300)),
        ];
        for (lang, when, part) in [
            (
                Language::En,
                When::MissedTick,
                "3 ticks, the first of them 2026-11-27 02:30 +08:00: nobody took it in time.",
            ),
            (
                Language::Zh,
                When::MissedTick,
                "共 3 次，第一次是 2026-11-27 02:30 +08:00：没有节点能及时运行它。",
            ),
            (
                Language::En,
                When::TickLost,
                "node-b was lost. Find out how far its run came. To repeat it: soloist trigger settle --tick 'settle@2026-11-27T02:30+08:00[Asia/Shanghai]'",
            ),
            (Language::Zh, When::TickLost, "node-b 失联"),
            (Language::En, When::TooQuick, "its run took 300 ms, and at_least is 10 s."),
            (Language::Zh, When::TooQuick, "at_least 是"),
        ] {
            let text = said(&record, &job, "settle", lang, when);
            assert!(text.contains(part), "{part}: {text}");
        }
        record.clock.as_mut().unwrap().troubles[0].at = before(900);
        record.clock.as_mut().unwrap().troubles[0].over = Some(before(800));
        let text = said(&record, &job, "settle", Language::En, When::MissedTick);
        assert!(!text.contains("3 ticks"), "that is over: {text}");
    }
}
