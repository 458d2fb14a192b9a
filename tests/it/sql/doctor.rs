//! What `soloist doctor` says of an SQL server.

use serde_json::Value;

use crate::doctor::{examined, found};
use crate::support::node::Ground;

fn ground(url: &str) -> Ground {
    Ground::new(url, "[[job]]\nname = \"outbound\"\ncommand = [\"true\"]\n")
}

/// It is well in each of these respects; returns what was said.
pub(crate) fn says_well(url: &str, checks: &[&str]) -> Vec<Value> {
    let (code, findings) = examined(&ground(url), &[]);
    assert_eq!(code, 0, "{findings:#?}");
    for check in checks {
        found(&findings, check, "ok");
    }
    findings
}

/// A finding of this weight has these words, in what was found or in what to do.
pub(crate) fn says(url: &str, verdict: &str, words: &str) {
    let (code, findings) = examined(&ground(url), &[]);
    assert_eq!(code == 1, verdict == "bad", "{words}: {findings:#?}");
    let said = findings.iter().any(|one| {
        one["verdict"] == verdict
            && [&one["what"], &one["remedy"]]
                .iter()
                .any(|text| text.as_str().is_some_and(|text| text.contains(words)))
    });
    assert!(said, "nothing {verdict} says {words:?}: {findings:#?}");
}
