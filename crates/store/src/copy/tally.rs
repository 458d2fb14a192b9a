//! Counts what was copied.

use serde::Serialize;

/// How many of what were copied, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Users.
    pub accounts: usize,
    /// API tokens.
    pub tokens: usize,
    /// Jobs, and leases of programs and commands: their switches, holds, states and tokens.
    pub jobs: usize,
    /// Runs that ended.
    pub runs: usize,
    /// Lines of output.
    pub lines: usize,
    /// All else that is a row or an entry of a list: sign-ins, links, folded history, alerts and mutes.
    pub records: usize,
    /// Entries of the audit.
    pub audit: usize,
    /// Sources of tasks.
    pub sources: usize,
    /// Tasks in every state.
    pub tasks: usize,
    /// Collectors that were seen.
    pub collectors: usize,
    /// Rotations.
    pub rotations: usize,
    /// Turns that ended.
    pub turns: usize,
}

impl Tally {
    /// What a table shows, in its order.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, usize); 12] {
        [
            ("accounts", self.accounts),
            ("API tokens", self.tokens),
            ("jobs and leases", self.jobs),
            ("runs", self.runs),
            ("lines of output", self.lines),
            ("sign-ins, history, alerts", self.records),
            ("audit entries", self.audit),
            ("sources", self.sources),
            ("tasks", self.tasks),
            ("collectors", self.collectors),
            ("rotations", self.rotations),
            ("past turns", self.turns),
        ]
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.rows().iter().map(|(_, count)| count).sum()
    }
}
