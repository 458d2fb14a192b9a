//! *Who held it*: a lane for each person who wanted the job and for each node that held it, and a lane of the gaps; the table beside says the same.
//!
//! Places are percentages, as in the lanes of rotations. The axis tells how long ago: that is right in every time zone and without
//! scripts; the table has the instants, which a browser says in its own zone.

use std::time::Duration;

use askama::Template;

use soloist_domain::job::RunEnd;
use soloist_domain::time::StoreTime;
use soloist_domain::timeline::tell::{Gap, Takeover, Why};
use soloist_domain::timeline::{Timeline, WantKind};
use soloist_view::words::{Arg, Language, Piece, exactly, say};

mod scale;
mod table;

use self::scale::Scale;
pub(super) use self::scale::joined;
pub use self::table::Line;

/// Lanes of people, and of nodes, at most.
const LANES: usize = 8;
/// Heights, in pixels.
const LANE: usize = 34;
const AXIS: usize = 22;
/// Take-overs that are written into the picture; the table has all.
const MARKED: usize = 12;
/// Words of marks need so much of the width, in thousandths of a per cent.
const ROOM: i64 = 12_000;

/// In which language it is told, and of whom: a node holds the job, or an external program.
#[derive(Debug, Clone, Copy)]
pub struct Voice {
    /// The reader's.
    pub lang: Language,
    /// It is an external job.
    pub external: bool,
    /// How long its leases last unrenewed.
    pub lease: Duration,
}

impl Voice {
    /// The first of two messages where nodes run the job, the second where a program does.
    fn by_runner(self, node: &'static str, program: &'static str) -> &'static str {
        if self.external { program } else { node }
    }

    /// A program was lost, and nobody saw when: the recorded end is that of its lease.
    fn ran_out(self, one: &Takeover) -> bool {
        self.external && one.end == RunEnd::Lost
    }
}

/// How much of the past is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Extent {
    Hour,
    #[default]
    Day,
    Week,
}

impl Extent {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Week];

    /// The word in the address.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "7d",
        }
    }

    /// Of the word in the address; what is none is the usual one.
    #[must_use]
    pub fn named(text: Option<&str>) -> Self {
        Self::ALL.into_iter().find(|one| Some(one.as_str()) == text).unwrap_or_default()
    }

    /// How long it is.
    #[must_use]
    pub fn length(self) -> Duration {
        let hours = match self {
            Self::Hour => 1,
            Self::Day => 24,
            Self::Week => 7 * 24,
        };
        Duration::from_secs(hours * 3_600)
    }

    /// Of the axis: the length of a unit, how many of them are between two marks, and the message that says how many ago.
    fn steps(self) -> (i64, i64, &'static str) {
        match self {
            Self::Hour => (60_000, 15, "hold-minutes-ago"),
            Self::Day => (3_600_000, 6, "hold-hours-ago"),
            Self::Week => (86_400_000, 2, "hold-days-ago"),
        }
    }

    fn word(self, lang: Language) -> String {
        let id = match self {
            Self::Hour => "hold-hour",
            Self::Day => "hold-day",
            Self::Week => "hold-week",
        };
        say(lang, id, &[])
    }
}

/// The class that colours a node: names that differ in one letter differ.
#[must_use]
pub fn hue(node: &str) -> &'static str {
    const HUES: [&str; 6] = ["h0", "h1", "h2", "h3", "h4", "h5"];
    HUES[node.bytes().map(usize::from).sum::<usize>() % HUES.len()]
}

/// A bar of a lane.
#[derive(Debug, Clone)]
pub struct Bar {
    pub(super) x: String,
    pub(super) width: String,
    pub(super) hue: &'static str,
    pub(super) kind: &'static str,
    pub(super) title: String,
}

struct Lane {
    name: String,
    kind: &'static str,
    text: usize,
    rail: usize,
    y: usize,
    bars: Vec<Bar>,
}

struct Mark {
    place: i64,
    x: String,
    text: String,
    y: usize,
    title: String,
    anchor: &'static str,
}

struct Legend {
    class: &'static str,
    text: String,
}

/// A choice of how much is shown.
struct Choice {
    word: &'static str,
    text: String,
    chosen: bool,
}

/// The picture and its table.
#[derive(Template)]
#[template(path = "parts/holders.html")]
pub struct Holders {
    voice: Voice,
    job: String,
    choices: Vec<Choice>,
    label: String,
    height: usize,
    bottom: usize,
    lanes: Vec<Lane>,
    takeovers: Vec<Mark>,
    ticks: Vec<Mark>,
    legend: Vec<Legend>,
    /// Some bar stands for runs that went wrong.
    failed: bool,
    lines: Vec<Line>,
    /// How many lines the table leaves out.
    left_out: usize,
    nothing: bool,
    /// How the runs of that time went.
    share: Option<String>,
}

impl Holders {
    /// Draws what of `line` lies in `extent` before `now`.
    #[must_use]
    pub fn of(job: &str, line: &Timeline, extent: Extent, now: StoreTime, voice: Voice) -> Self {
        let lang = voice.lang;
        let from = now - extent.length();
        let scale = Scale { from, to: now };
        let takeovers = line.takeovers();
        let takeovers: Vec<&Takeover> = takeovers.iter().filter(|one| one.at > from).collect();
        let gaps = line.gaps(from, now);
        let shown = line.within(from, now);
        let mut lanes = people(&shown, &scale, lang);
        lanes.extend(nodes(&shown, &scale, lang));
        let nothing = shown.spans.is_empty() && shown.present.is_none() && shown.wants.is_empty();
        lanes.push(nobody(&gaps, &scale, voice));
        for (nth, lane) in lanes.iter_mut().enumerate() {
            (lane.text, lane.rail, lane.y) = (nth * LANE + 12, nth * LANE + 24, nth * LANE + 17);
        }
        let bottom = lanes.len() * LANE + 2;
        let marks = takeovers.iter().rev().take(MARKED);
        let mut marks: Vec<Mark> =
            marks.filter_map(|one| mark(&shown, one, &lanes, &scale, voice)).collect();
        apart(&mut marks);
        let whys = Why::ALL.into_iter().filter(|why| gaps.iter().any(|gap| gap.why == *why));
        let legend = whys.map(|why| Legend { class: why.as_str(), text: why_word(why, voice) });
        let failed = shown.spans.iter().any(|span| span.failed > 0);
        let (lines, left_out) = table::lines(&shown, &gaps, &takeovers, now, voice);
        let picture = voice.by_runner("hold-picture", "hold-program-picture");
        Self {
            voice,
            job: job.to_owned(),
            choices: Extent::ALL
                .into_iter()
                .map(|one| Choice {
                    word: one.as_str(),
                    text: one.word(lang),
                    chosen: one == extent,
                })
                .collect(),
            label: say(lang, picture, &[("time", Arg::from(extent.word(lang)))]),
            height: bottom + AXIS,
            bottom,
            lanes,
            takeovers: marks,
            ticks: scale.ticks(extent, lang),
            legend: legend.collect(),
            failed,
            lines,
            left_out,
            nothing,
            share: share(&shown, extent, lang),
        }
    }

    fn say(&self, id: &str) -> String {
        say(self.voice.lang, id, &[])
    }

    fn nothing_there(&self) -> String {
        self.say(self.voice.by_runner("hold-nothing", "hold-program-nothing"))
    }

    fn more(&self) -> String {
        let n = i64::try_from(self.left_out).unwrap_or(i64::MAX);
        let args = [("n", Arg::from(n)), ("job", Arg::from(self.job.as_str()))];
        say(self.voice.lang, "hold-more", &args)
    }
}

/// How many of the runs of that time went well.
fn share(line: &Timeline, extent: Extent, lang: Language) -> Option<String> {
    let runs: u64 = line.spans.iter().map(|span| u64::from(span.runs)).sum();
    let failed: u64 = line.spans.iter().map(|span| u64::from(span.failed)).sum();
    if runs == 0 {
        return None;
    }
    // Rounded down: 100 % is said only of all.
    let tenths = (runs - failed.min(runs)) * 1_000 / runs;
    let percent = match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    };
    let args = [
        ("percent", Arg::from(percent)),
        ("n", Arg::from(i64::try_from(runs).unwrap_or(i64::MAX))),
        ("time", Arg::from(extent.word(lang))),
    ];
    Some(say(lang, "runs-share", &args))
}

pub(super) fn why_word(why: Why, voice: Voice) -> String {
    let id = match why {
        Why::Off => "gap-off",
        Why::Held => "gap-held",
        Why::Resting => "gap-resting",
        Why::Scheduled => "gap-scheduled",
        Why::BackingOff => voice.by_runner("gap-backing-off", "gap-program-failed"),
        Why::TakingOver => "gap-taking-over",
        Why::Waiting => voice.by_runner("gap-waiting", "gap-program-waiting"),
        Why::Unknown => "gap-unknown",
    };
    say(voice.lang, id, &[])
}

fn lane(name: String, kind: &'static str, bars: Vec<Bar>) -> Lane {
    Lane { name, kind, text: 0, rail: 0, y: 0, bars }
}

/// In the order in which they first come up, so many at most.
fn first<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for name in names {
        if all.len() < LANES && !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

fn people(line: &Timeline, scale: &Scale, lang: Language) -> Vec<Lane> {
    let mut lanes = Vec::new();
    for (kind, class) in [(WantKind::Participation, "person"), (WantKind::Hold, "hold")] {
        let of_kind = || line.wants.iter().filter(move |want| want.kind == kind);
        for who in first(of_kind().map(|want| want.who.as_str())) {
            let theirs = of_kind().filter(|want| want.who.as_str() == who);
            let pieces = theirs.map(|want| scale.piece(want.from, want.to, "", class));
            let user = [("user", Arg::from(who))];
            let id = if kind == WantKind::Hold { "hold-forbade" } else { "hold-wanted" };
            let name = say(lang, id, &user);
            lanes.push(lane(name, class, scale.bars(pieces.collect(), lang)));
        }
    }
    lanes
}

fn nodes(line: &Timeline, scale: &Scale, lang: Language) -> Vec<Lane> {
    let spans = line.spans.iter().map(|span| span.node.as_str());
    let mut names = first(spans.chain(line.present.iter().map(|run| run.node.as_str())));
    names.sort_unstable();
    let lane_of = |name: &&str| {
        let hue = hue(name);
        let theirs = line.spans.iter().filter(|span| span.node.as_str() == *name);
        let spans = theirs.map(|span| {
            let kind = match (span.failed, span.runs) {
                (0, 1) => "ok",
                (0, _) => "many",
                _ => "bad",
            };
            scale.piece(span.from, Some(span.to), hue, kind)
        });
        let present = line.present.iter().filter(|run| run.node.as_str() == *name);
        let present = present.map(|run| scale.piece(run.from, None, hue, "ok"));
        lane((*name).to_owned(), "node", scale.bars(spans.chain(present).collect(), lang))
    };
    names.iter().map(lane_of).collect()
}

fn nobody(gaps: &[Gap], scale: &Scale, voice: Voice) -> Lane {
    let pieces =
        gaps.iter().map(|gap| scale.piece(gap.from, Some(gap.to), gap.why.as_str(), "gap"));
    let mut bars = scale.bars(pieces.collect(), voice.lang);
    for bar in &mut bars {
        let why = Why::ALL.into_iter().find(|why| why.as_str() == bar.hue);
        let word = why.map(|why| why_word(why, voice)).unwrap_or_default();
        bar.title = format!("{word}: {}", bar.title);
    }
    lane(say(voice.lang, "hold-nobody", &[]), "nobody", bars)
}

fn mark(
    line: &Timeline,
    one: &Takeover,
    lanes: &[Lane],
    scale: &Scale,
    voice: Voice,
) -> Option<Mark> {
    let lang = voice.lang;
    let spans = line.spans.iter().map(|span| (span.first, &span.node));
    let mut all = spans.chain(line.present.iter().map(|run| (run.token, &run.node)));
    let (_, node) = all.find(|(token, _)| *token == one.token)?;
    let lane = lanes.iter().find(|lane| lane.kind == "node" && lane.name == node.as_str())?;
    let ms = exactly(lang, one.took);
    let place = scale.place(one.at);
    let args = [
        ("node", Arg::from(node.as_str())),
        ("before", Arg::from(one.before.as_str())),
        ("ms", Arg::from(ms.clone())),
    ];
    let id = if voice.ran_out(one) { "hold-program-takeover" } else { "hold-takeover" };
    let title = say(lang, id, &args);
    let anchor = if place > 85_000 { "end" } else { "start" };
    Some(Mark { place, x: scale::percent(place), text: ms, y: lane.y, title, anchor })
}

/// Where the words of marks would cover each other, only the newest mark keeps them.
fn apart(marks: &mut [Mark]) {
    for nth in 1..marks.len() {
        let (newer, rest) = marks.split_at_mut(nth);
        let Some(mark) = rest.first_mut() else { return };
        let covers = |one: &Mark| {
            one.y == mark.y && !one.text.is_empty() && (one.place - mark.place).abs() < ROOM
        };
        if newer.iter().any(covers) {
            mark.text.clear();
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
