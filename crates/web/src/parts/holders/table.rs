//! The table beside the picture: the same for those who hear the page, and with the instants.

use super::super::lanes::about;
use super::{Voice, why_word};
use soloist_domain::job::RunEnd;
use soloist_domain::time::StoreTime;
use soloist_domain::timeline::tell::{Gap, Takeover, Why};
use soloist_domain::timeline::{Timeline, WantKind};
use soloist_view::words::{Arg, Language, Piece, day_clock, duration, exactly, say};

/// Lines of the table, the newest.
const SHOWN: usize = 100;

/// A line of the table.
pub struct Line {
    pub(super) kind: &'static str,
    pub(super) what: String,
    pub(super) from: Vec<Piece>,
    pub(super) to: Vec<Piece>,
    pub(super) lasted: Vec<Piece>,
    pub(super) note: Vec<String>,
    at: StoreTime,
}

/// How a run ended, in a word or two.
fn ended(end: RunEnd, voice: Voice) -> String {
    let id = match end {
        RunEnd::Exited => "end-exited",
        RunEnd::Crashed => voice.by_runner("hold-crashed", "hold-program-failed"),
        RunEnd::Stopped => "end-stopped",
        RunEnd::Lost => voice.by_runner("end-lost", "end-lost-program"),
        RunEnd::Died => "end-died",
        RunEnd::Fenced => "end-fenced",
        RunEnd::TimedOut => "end-timed-out",
    };
    say(voice.lang, id, &[])
}

fn line(
    kind: &'static str,
    what: String,
    (from, to, now): (StoreTime, Option<StoreTime>, StoreTime),
    lang: Language,
) -> Line {
    let lasted = match to {
        Some(to) => Piece::Text(about(lang, to.since(from))),
        None => Piece::Since { ms: from.0, text: about(lang, now.since(from)) },
    };
    let to = to.map_or_else(|| Piece::Text(say(lang, "hold-now", &[])), day_clock);
    Line {
        kind,
        what,
        from: vec![day_clock(from)],
        to: vec![to],
        lasted: vec![lasted],
        note: Vec::new(),
        at: from,
    }
}

/// Everything that the picture shows, newest first, and how many lines are left out. Rests are between the runs to be seen.
pub(super) fn lines(
    shown: &Timeline,
    gaps: &[Gap],
    takeovers: &[&Takeover],
    now: StoreTime,
    voice: Voice,
) -> (Vec<Line>, usize) {
    let lang = voice.lang;
    let node = |name: &str| say(lang, "hold-by", &[("node", Arg::from(name))]);
    let took = |token| {
        let one = takeovers.iter().find(|one| one.token == token)?;
        let args = [
            ("before", Arg::from(one.before.as_str())),
            ("ms", Arg::from(exactly(lang, one.took))),
            ("lease", Arg::from(duration(lang, voice.lease))),
        ];
        let id = if voice.ran_out(one) { "hold-program-took" } else { "hold-took" };
        Some(say(lang, id, &args))
    };
    let mut all = Vec::new();
    for span in &shown.spans {
        let when = (span.from, Some(span.to), now);
        let mut one = line("node", node(span.node.as_str()), when, lang);
        one.note.push(ended(span.end, voice));
        if span.runs > 1 {
            let n = [("n", Arg::from(i64::from(span.runs)))];
            one.note.push(say(lang, "hold-runs", &n));
        }
        if span.failed > 0 && span.runs > 1 {
            let n = [("n", Arg::from(i64::from(span.failed)))];
            one.note.push(say(lang, "hold-failed", &n));
        }
        one.note.extend(took(span.first));
        all.push(one);
    }
    if let Some(run) = &shown.present {
        let mut one = line("node", node(run.node.as_str()), (run.from, None, now), lang);
        one.note.extend(took(run.token));
        all.push(one);
    }
    for want in &shown.wants {
        let (kind, id) = match want.kind {
            WantKind::Participation => ("person", "hold-wanted"),
            WantKind::Hold => ("hold", "hold-forbade"),
        };
        let user = [("user", Arg::from(want.who.as_str()))];
        all.push(line(kind, say(lang, id, &user), (want.from, want.to, now), lang));
    }
    for gap in gaps.iter().filter(|gap| gap.why != Why::Resting) {
        let when = (gap.from, Some(gap.to), now);
        let mut one = line("nobody", say(lang, "hold-nobody", &[]), when, lang);
        one.note.push(why_word(gap.why, voice));
        all.push(one);
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.at));
    let left_out = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    (all, left_out)
}
