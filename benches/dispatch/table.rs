//! Figures as Markdown.

use std::fmt::Write as _;

/// One run of one system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    /// Claimed and done.
    pub tasks: usize,
    pub seconds: f64,
    /// Of Redis; on SQLite of this process, which is the store. In seconds.
    pub cpu: f64,
    /// At most, as seen in the store.
    pub in_flight: usize,
}

impl Figure {
    fn per_second(&self) -> f64 {
        self.tasks as f64 / self.seconds
    }

    fn micros(&self) -> f64 {
        self.cpu * 1e6 / self.tasks as f64
    }
}

/// All runs at one load.
pub(crate) struct Row {
    pub in_flight: usize,
    pub systems: Vec<(String, Vec<Figure>)>,
}

impl Row {
    pub(crate) fn note(&mut self, name: String, figure: Figure) {
        match self.systems.iter_mut().find(|(other, _)| *other == name) {
            Some((_, figures)) => figures.push(figure),
            None => self.systems.push((name, vec![figure])),
        }
    }
}

fn median(figures: &[Figure], of: impl Fn(&Figure) -> f64) -> f64 {
    let mut all: Vec<f64> = figures.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// The first system of a row is what the others are compared with.
pub(crate) fn render(rows: &[Row], whose: &str, tasks: usize, rounds: usize) -> String {
    let mut text = format!(
        "Claim + done of {tasks} tasks, medians of {rounds}. Times better than the first line of each load in brackets; \
         the last column compares the CPU with the same system at the smallest load.\n\n\
         | in flight (seen) | system | tasks a second | {whose} CPU, us a task | against {} in flight |\n\
         | --- | --- | --- | --- | --- |\n",
        rows.first().map_or(0, |row| row.in_flight)
    );
    for row in rows {
        let base = row.systems.first().map(|(_, figures)| figures.as_slice()).unwrap_or_default();
        for (name, figures) in &row.systems {
            let (speed, cpu) =
                (median(figures, Figure::per_second), median(figures, Figure::micros));
            let (faster, cheaper) =
                (speed / median(base, Figure::per_second), median(base, Figure::micros) / cpu);
            let least = rows[0].systems.iter().find(|(other, _)| other == name);
            let change =
                least.map_or(0.0, |(_, least)| (cpu / median(least, Figure::micros) - 1.0) * 100.0);
            let seen = figures.iter().map(|figure| figure.in_flight).max().unwrap_or_default();
            writeln!(
                text,
                "| {} ({seen}) | {name} | {speed:.0} ({faster:.2}x) | {cpu:.1} ({cheaper:.2}x) | {change:+.0} % |",
                row.in_flight
            )
            .expect("text");
        }
    }
    text
}
