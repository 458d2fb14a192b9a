//! The table: a row a figure, a column a store, and beside each the ratio to Redis.

use std::fmt::Write as _;
use std::time::Duration;

use super::server::Kind;

/// What is promised of a row.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    None,
    /// At most so much on PostgreSQL, and on MariaDB.
    Most(f64, f64),
    /// At least so much on PostgreSQL, and on MariaDB.
    Least(f64, f64),
}

/// What was measured, its bound, how many digits are shown, and the figure of each store.
type Row = (String, Bound, usize, Vec<(Kind, f64)>);

/// What a round measured at each store.
pub(crate) type Spans = Vec<(Kind, Vec<Duration>)>;

pub(crate) struct Sheet {
    kinds: Vec<Kind>,
    rows: Vec<Row>,
}

impl Sheet {
    pub(crate) fn new(kinds: &[Kind]) -> Self {
        Self { kinds: kinds.to_vec(), rows: Vec::new() }
    }

    /// A row, also said at once, because the whole takes long.
    pub(crate) fn row(&mut self, what: &str, bound: Bound, digits: usize, all: Vec<(Kind, f64)>) {
        let said: Vec<String> =
            all.iter().map(|(kind, value)| format!("{} {value:.digits$}", kind.label())).collect();
        eprintln!("{what}: {}", said.join(", "));
        self.rows.push((what.to_owned(), bound, digits, all));
    }

    /// p50 and p99, medians of the rounds, and the greatest of all, in milliseconds; p99 is promised.
    pub(crate) fn times(&mut self, what: &str, bound: Bound, rounds: &[Spans]) {
        let of = |percent: usize| median_of_rounds(rounds, |spans| rank(spans, percent));
        let times = rounds.iter().flatten().map(|(_, spans)| spans.len()).max().unwrap_or(0);
        let times = match rounds.len() {
            1 => times.to_string(),
            many => format!("{many} rounds of {times}"),
        };
        self.row(&format!("{what}, p50 ms of {times}"), Bound::None, 2, of(50));
        self.row(&format!("{what}, p99 ms"), bound, 2, of(99));
        let greatest = |(kind, _): &(Kind, Vec<Duration>)| {
            let of_it = rounds.iter().flatten().filter(|(other, _)| other == kind);
            (*kind, of_it.map(|(_, spans)| rank(spans, 100)).fold(0.0, f64::max))
        };
        let greatest = rounds.first().into_iter().flatten().map(greatest).collect();
        self.row(&format!("{what}, max ms"), Bound::None, 2, greatest);
    }

    /// As Markdown. What misses its bound is in bold.
    pub(crate) fn render(&self) -> String {
        let mut text = "\n| | wanted |".to_owned();
        for kind in &self.kinds {
            write!(text, " {} |", kind.label()).expect("a string");
        }
        text += "\n| --- | --- |";
        text += &" --- |".repeat(self.kinds.len());
        for (what, bound, digits, all) in &self.rows {
            write!(text, "\n| {what} | {} |", bound.words()).expect("a string");
            let redis = all.iter().find(|(kind, _)| *kind == Kind::Redis).map(|(_, value)| *value);
            for kind in &self.kinds {
                let Some((_, value)) = all.iter().find(|(other, _)| other == kind) else {
                    text += " |";
                    continue;
                };
                let shown = format!("{value:.digits$}");
                let shown = if bound.kept(*kind, *value) { shown } else { format!("**{shown}**") };
                let ratio = redis.filter(|redis| *kind != Kind::Redis && *redis > 0.0);
                let ratio =
                    ratio.map_or(String::new(), |redis| format!(" ({:.2} x)", value / redis));
                write!(text, " {shown}{ratio} |").expect("a string");
            }
        }
        text + "\n"
    }
}

impl Bound {
    fn words(self) -> String {
        let both = |word: &str, one: f64, other: f64| {
            if (one - other).abs() < f64::EPSILON {
                format!("{word} {one}")
            } else {
                format!("{word} {one}; MariaDB {other}")
            }
        };
        match self {
            Self::None => String::new(),
            Self::Most(one, other) => both("<=", one, other),
            Self::Least(one, other) => both(">=", one, other),
        }
    }

    fn kept(self, kind: Kind, value: f64) -> bool {
        let of = |postgres: f64, maria: f64| match kind {
            Kind::Redis | Kind::RedisAlways => None,
            Kind::Postgres | Kind::PostgresZookeeper => Some(postgres),
            Kind::Maria | Kind::MariaZookeeper => Some(maria),
        };
        match self {
            Self::None => true,
            Self::Most(one, other) => of(one, other).is_none_or(|most| value <= most),
            Self::Least(one, other) => of(one, other).is_none_or(|least| value >= least),
        }
    }
}

/// Of each store the median of what `figure` makes of its rounds: others use this machine, too, and a bad minute is not the store's.
pub(crate) fn median_of_rounds<T>(
    rounds: &[Vec<(Kind, T)>],
    figure: impl Fn(&T) -> f64,
) -> Vec<(Kind, f64)> {
    let kinds = rounds.first().into_iter().flatten().map(|(kind, _)| *kind);
    let of = |kind: Kind| {
        let of_it = rounds.iter().flatten().filter(|(other, _)| *other == kind);
        let mut all: Vec<f64> = of_it.map(|(_, measured)| figure(measured)).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    kinds.map(|kind| (kind, of(kind))).collect()
}

/// In milliseconds. Nearest rank: with fewer than a hundred measurements, p99 is the maximum.
pub(crate) fn rank(spans: &[Duration], percent: usize) -> f64 {
    let mut sorted = spans.to_vec();
    sorted.sort();
    let at = (sorted.len() * percent).div_ceil(100).clamp(1, sorted.len());
    sorted[at - 1].as_secs_f64() * 1_000.0
}
