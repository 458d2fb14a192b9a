//! The sources of the load: every kind of rule, alone and together, ten thousand tasks in all.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A source, and how many tasks are put into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) tasks: usize,
    pub(crate) gap_ms: i64,
    /// Count and length.
    pub(crate) window: Option<(usize, i64)>,
    pub(crate) cap: Option<usize>,
    pub(crate) lease_ms: i64,
    pub(crate) max_attempts: u32,
}

const PLAIN: Source = Source {
    name: "plain",
    tasks: 0,
    gap_ms: 0,
    window: None,
    cap: None,
    lease_ms: 800,
    max_attempts: 0,
};

/// All of them: ten thousand tasks.
pub(crate) const ALL: [Source; 10] = [
    Source { tasks: 3_900, ..PLAIN },
    Source { name: "short-lease", tasks: 1_500, lease_ms: 250, ..PLAIN },
    // Shorter than one exchange of a loaded machine: some tasks die here and are revived.
    Source { name: "mortal", tasks: 800, lease_ms: 300, max_attempts: 2, ..PLAIN },
    Source { name: "gap", tasks: 500, gap_ms: 11, lease_ms: 400, ..PLAIN },
    Source { name: "wide-gap", tasks: 150, gap_ms: 50, ..PLAIN },
    Source { name: "window", tasks: 800, window: Some((30, 500)), ..PLAIN },
    Source { name: "cap", tasks: 1_200, cap: Some(7), lease_ms: 300, ..PLAIN },
    Source { name: "one-by-one", tasks: 250, cap: Some(1), lease_ms: 200, ..PLAIN },
    Source { name: "gap-window", tasks: 400, gap_ms: 3, window: Some((25, 400)), ..PLAIN },
    Source {
        name: "all-rules",
        tasks: 500,
        gap_ms: 2,
        window: Some((40, 500)),
        cap: Some(5),
        lease_ms: 350,
        max_attempts: 4,
    },
];

impl Source {
    /// As the API takes it.
    pub(crate) fn rules(&self) -> Value {
        json!({
            "gap_ms": self.gap_ms,
            "window": self.window.map(|(count, ms)| json!({ "count": count, "ms": ms })),
            "cap": self.cap,
            "lease_ms": self.lease_ms,
            "max_attempts": self.max_attempts,
            "backoff": { "first_ms": 5, "max_ms": 40 },
        })
    }
}

/// By name.
pub(crate) fn by_name(all: &[Source]) -> BTreeMap<String, Source> {
    all.iter().map(|source| (source.name.to_owned(), source.clone())).collect()
}
