//! A timeline that was read some time ago, brought up to the newest record of its job.
//!
//! A page that shows the last hour of a thousand jobs cannot read each of them at each change. What happened between two records
//! that were seen is read at the next full reading.

use super::{Present, Span, Timeline, WantKind, Wanted};
use crate::job::JobRecord;
use crate::time::StoreTime;

impl Timeline {
    /// Takes in what `record`, seen at `now`, says beyond it.
    pub fn follow(&mut self, record: &JobRecord, now: StoreTime) {
        let run = record.run.as_ref().map(|run| Present {
            node: run.node.clone(),
            token: run.token,
            from: run.started,
        });
        let same = |one: &Present, other: &Present| one.token == other.token;
        let goes_on = self.present.as_ref().zip(run.as_ref()).is_some_and(|(a, b)| same(a, b));
        if let Some(over) = self.present.take().filter(|_| !goes_on) {
            self.close(over, record);
        }
        self.present = run;
        self.again = record.clock.as_ref().is_some_and(|clock| clock.waits_again());
        self.follow_wants(record, now);
    }

    fn close(&mut self, run: Present, record: &JobRecord) {
        let Some(exit) = record.last_exit.as_ref().filter(|exit| exit.at >= run.from) else {
            return;
        };
        let known = self.spans.last().map(|last| last.token);
        if exit.node != run.node || known >= Some(run.token) {
            return;
        }
        self.spans.push(Span {
            first: run.token,
            token: run.token,
            from: run.from,
            to: exit.at,
            end: exit.end,
            runs: 1,
            failed: u32::from(exit.end.is_failure()),
            held_ms: crate::time::millis(exit.at.since(run.from)),
            node: run.node,
        });
    }

    fn follow_wants(&mut self, record: &JobRecord, now: StoreTime) {
        let on =
            record.participants.iter().map(|one| (WantKind::Participation, &one.user, one.since));
        let hold = record.hold.iter().map(|hold| (WantKind::Hold, &hold.by, hold.since));
        let open: Vec<_> = on.chain(hold).collect();
        let is_open = |want: &Wanted| {
            open.iter()
                .any(|(kind, who, from)| (want.kind, &want.who, want.from) == (*kind, *who, *from))
        };
        let switched = record.last_switch.as_ref().map_or(now, |last| last.at);
        for want in self.wants.iter_mut().filter(|want| want.to.is_none()) {
            if !is_open(want) {
                want.to = Some(switched.max(want.from).min(now.max(want.from)));
            }
        }
        for (kind, who, from) in open {
            let known = |want: &Wanted| (want.kind, &want.who, want.from) == (kind, who, from);
            if !self.wants.iter().any(known) {
                self.wants.push(Wanted { kind, who: who.clone(), from, to: None });
            }
        }
    }
}
