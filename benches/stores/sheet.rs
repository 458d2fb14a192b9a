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

    /// p50, p99 and the greatest, in milliseconds; p99 is promised.
    pub(crate) fn times(&mut self, what: &str, bound: Bound, all: &[(Kind, Vec<Duration>)]) {
        let of = |percent: usize| {
            all.iter().map(|(kind, spans)| (*kind, rank(spans, percent))).collect::<Vec<_>>()
        };
        let times = all.iter().map(|(_, spans)| spans.len()).max().unwrap_or(0);
        self.row(&format!("{what}, p50 ms of {times}"), Bound::None, 2, of(50));
        self.row(&format!("{what}, p99 ms"), bound, 2, of(99));
        self.row(&format!("{what}, max ms"), Bound::None, 2, of(100));
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

/// In milliseconds. Nearest rank: with fewer than a hundred measurements, p99 is the maximum.
pub(crate) fn rank(spans: &[Duration], percent: usize) -> f64 {
    let mut sorted = spans.to_vec();
    sorted.sort();
    let at = (sorted.len() * percent).div_ceil(100).clamp(1, sorted.len());
    sorted[at - 1].as_secs_f64() * 1_000.0
}
