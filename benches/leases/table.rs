//! Figures of several rounds as Markdown: of each cell the median.

use std::time::Duration;

/// Rows with so many figures each.
pub(crate) struct Sheet {
    head: &'static str,
    digits: &'static [usize],
    rows: Vec<(String, Vec<Vec<f64>>)>,
}

impl Sheet {
    fn new(head: &'static str, digits: &'static [usize]) -> Self {
        Self { head, digits, rows: Vec::new() }
    }

    /// One round's figures of a row; they are also said at once, because the whole takes long.
    pub(crate) fn note(&mut self, row: &str, figures: &[f64]) {
        assert_eq!(figures.len(), self.digits.len(), "{row}");
        eprintln!("{row}: {figures:.2?}");
        let at = self.rows.iter().position(|(known, _)| known == row);
        let at = at.unwrap_or_else(|| {
            self.rows.push((row.to_owned(), Vec::new()));
            self.rows.len() - 1
        });
        self.rows[at].1.push(figures.to_vec());
    }

    fn print(&self) {
        if self.rows.is_empty() {
            return;
        }
        let columns = self.head.matches('|').count() - 1;
        println!("\n{}\n|{}", self.head, " --- |".repeat(columns));
        for (row, rounds) in &self.rows {
            let cell = |nth: usize| {
                let mut all: Vec<f64> = rounds.iter().map(|figures| figures[nth]).collect();
                all.sort_by(f64::total_cmp);
                match rank(&all, 50) {
                    none if none.is_nan() => "-".to_owned(),
                    median => format!("{median:.*}", self.digits[nth]),
                }
            };
            let cells: Vec<String> = (0..self.digits.len()).map(cell).collect();
            println!("| {row} | {} |", cells.join(" | "));
        }
    }
}

/// All tables.
pub(crate) struct Sheets {
    pub times: Sheet,
    pub pairs: Sheet,
    pub renewals: Sheet,
}

impl Default for Sheets {
    fn default() -> Self {
        Self {
            times: Sheet::new(
                "| store | milliseconds | times a round | wanted p99 | p50 | p99 | max |",
                &[2, 2, 2],
            ),
            pairs: Sheet::new(
                "| store | clients | acquire + release | p50 ms | a second |",
                &[3, 0],
            ),
            renewals: Sheet::new(
                "| store | leases | node, % of a core | Redis, % | bench, % | renewal p50 ms | p99 ms | longest time without a renewal, ms | lost |",
                &[1, 1, 1, 2, 2, 0, 0],
            ),
        }
    }
}

impl Sheets {
    pub(crate) fn print(&self, rounds: usize) {
        println!("Each figure is the median of {rounds} rounds.");
        for sheet in [&self.times, &self.pairs, &self.renewals] {
            sheet.print();
        }
    }
}

/// p50, p99 and maximum in milliseconds.
pub(crate) fn times(spans: Vec<Duration>) -> [f64; 3] {
    let mut sorted: Vec<f64> = spans.iter().map(|span| span.as_secs_f64() * 1_000.0).collect();
    sorted.sort_by(f64::total_cmp);
    [rank(&sorted, 50), rank(&sorted, 99), rank(&sorted, 100)]
}

/// Nearest rank: with fewer than a hundred measurements, p99 is the maximum.
pub(crate) fn rank(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent).div_ceil(100).clamp(1, sorted.len());
    sorted[at - 1]
}
