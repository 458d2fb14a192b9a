//! Times as Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use super::pair::Side;

/// A table of times; each row is also said at once, because the whole takes long.
pub(crate) struct Table {
    title: &'static str,
    text: String,
}

impl Table {
    pub(crate) fn new(title: &'static str) -> Self {
        Self { title, text: String::new() }
    }

    pub(crate) fn row(
        &mut self,
        what: &str,
        side: &Side,
        times: &[Duration],
        wanted_p99_ms: Option<u64>,
    ) {
        let mut sorted: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1000.0).collect();
        sorted.sort_by(f64::total_cmp);
        let wanted = wanted_p99_ms.map_or(String::new(), |ms| ms.to_string());
        let row = format!(
            "| {what} | {} | {} | {:.2} | {:.2} | {:.2} | {wanted} |",
            side.label,
            sorted.len(),
            rank(&sorted, 50),
            rank(&sorted, 99),
            rank(&sorted, 100)
        );
        eprintln!("{row}");
        writeln!(self.text, "{row}").expect("a string");
    }

    /// Prints the rows, if there are any.
    pub(crate) fn print(&self) {
        if !self.text.is_empty() {
            println!("\n| {} | soloist | n | p50 | p99 | max | wanted p99 |", self.title);
            println!("| --- | --- | --- | --- | --- | --- | --- |\n{}", self.text);
        }
    }
}

/// Nearest rank: with fewer than a hundred measurements, p99 is the maximum.
pub(crate) fn rank(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent).div_ceil(100).clamp(1, sorted.len());
    sorted[at - 1]
}
