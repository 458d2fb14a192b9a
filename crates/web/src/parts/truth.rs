//! The truth bar: the line at the top of every page that says why what stands below may be old, and who is lost.
//!
//! It is empty while all is well. What is true is gathered in `web::hub::truth`; here it gets its words.

use std::time::Duration;

use askama::Template;

use soloist_domain::name::{JobName, NodeName};
use soloist_domain::time::StoreTime;
use soloist_view::DriftView;
use soloist_view::words::{Arg, Language, Piece, clock, duration, exactly, phrase, say};

/// Something that every page must say before anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// This node cannot reach its store.
    StoreAway {
        /// By the store's clock, as well as it is known.
        since: StoreTime,
        /// What is wrong.
        detail: String,
    },
    /// A node fell silent without a word.
    NodeLost {
        /// Which.
        node: NodeName,
        /// When it was renewed for the last time, or its first run was found dead.
        at: StoreTime,
        /// Who took its jobs over.
        taken: Option<Taken>,
    },
    /// A living node defines jobs otherwise than most do.
    Drift {
        /// Which.
        node: String,
        /// Each job with the keys that differ.
        jobs: Vec<(JobName, Vec<String>)>,
    },
}

/// Jobs that a line names; the others are counted.
const NAMED: usize = 3;

/// Jobs of a lost node that run elsewhere now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// By which nodes, in order.
    pub by: Vec<NodeName>,
    /// How many jobs.
    pub jobs: usize,
    /// The longest time that one of them had no holder.
    pub within: Duration,
}

/// How an error of the store begins; the line says that already.
const UNREACHABLE: &str = "the store is not reachable: ";

/// The bar in one language.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bar {
    /// Its lines, rendered.
    pub html: String,
    /// How many lines.
    pub n: usize,
    /// The store is out of reach.
    pub away: bool,
}

#[derive(Template)]
#[template(path = "parts/truth.html")]
struct Lines {
    facts: Vec<Line>,
}

struct Line {
    kind: &'static str,
    pieces: Vec<Piece>,
    detail: Option<String>,
}

impl Bar {
    /// The bar for `facts` at `now` by the store's clock.
    #[must_use]
    pub fn new(facts: &[Fact], lang: Language, now: StoreTime) -> Self {
        let away = facts.iter().any(|fact| matches!(fact, Fact::StoreAway { .. }));
        let lines = Lines { facts: facts.iter().map(|fact| line(fact, lang, now)).collect() };
        Self { html: super::render(&lines), n: facts.len(), away }
    }

    /// What strangers are told: that the store is away, and nothing of nodes or addresses.
    #[must_use]
    pub fn for_strangers(facts: &[Fact], lang: Language, now: StoreTime) -> Self {
        let away = facts.iter().find_map(|fact| match fact {
            Fact::StoreAway { since, .. } => {
                Some(Fact::StoreAway { since: *since, detail: String::new() })
            }
            Fact::NodeLost { .. } | Fact::Drift { .. } => None,
        });
        Self::new(away.as_slice(), lang, now)
    }
}

/// What one fact says.
#[must_use]
pub fn words(fact: &Fact, lang: Language, now: StoreTime) -> Vec<Piece> {
    line(fact, lang, now).pieces
}

fn line(fact: &Fact, lang: Language, now: StoreTime) -> Line {
    match fact {
        Fact::StoreAway { since, detail } => {
            let text = duration(lang, now.since(*since));
            let ago = Piece::Since { ms: since.0, text };
            // To strangers nothing is shown that could be old.
            let id = if detail.is_empty() { "truth-store-away" } else { "truth-store" };
            let detail = detail.strip_prefix(UNREACHABLE).unwrap_or(detail);
            Line {
                kind: "store",
                pieces: phrase(lang, id, &[("ago", ago)]),
                detail: Some(detail.to_owned()).filter(|detail| !detail.is_empty()),
            }
        }
        Fact::NodeLost { node, at, taken } => {
            let mut args = vec![("node", Piece::strong(node)), ("at", clock(lang, *at, now))];
            let id = match taken {
                None => "truth-lost",
                Some(Taken { by, jobs, within }) => {
                    let names: Vec<&str> = by.iter().map(NodeName::as_str).collect();
                    args.push(("by", Piece::strong(names.join(&say(lang, "list-separator", &[])))));
                    args.push(("n", Piece::Number(i64::try_from(*jobs).unwrap_or(i64::MAX))));
                    args.push(("took", Piece::text(exactly(lang, *within))));
                    "truth-lost-taken"
                }
            };
            Line { kind: "lost", pieces: phrase(lang, id, &args), detail: None }
        }
        Fact::Drift { node, jobs } => {
            let gap = say(lang, "list-separator", &[]);
            let named = jobs.iter().take(NAMED).map(|(job, differs)| {
                let keys = DriftView::words(differs, lang);
                say(
                    lang,
                    "drift-of",
                    &[("job", Arg::from(job.as_str())), ("keys", Arg::from(keys))],
                )
            });
            let named: Vec<String> = named.collect();
            let more = jobs.len().saturating_sub(NAMED);
            let mut args =
                vec![("node", Piece::strong(node)), ("jobs", Piece::text(named.join(&gap)))];
            let id = if more == 0 {
                "truth-drift"
            } else {
                args.push(("n", Piece::Number(i64::try_from(more).unwrap_or(i64::MAX))));
                "truth-drift-more"
            };
            Line { kind: "drift", pieces: phrase(lang, id, &args), detail: None }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::definition::MISSING;
    use soloist_store::StoreError;

    fn node(name: &str) -> NodeName {
        NodeName::new(name).expect("a valid name")
    }

    fn facts() -> Vec<Fact> {
        let taken = Taken { by: vec![node("node-a")], jobs: 3, within: Duration::from_millis(4) };
        vec![
            Fact::StoreAway {
                since: StoreTime(5_000),
                detail: format!("{}Redis at h:1 <is> gone", StoreError::Unavailable(String::new())),
            },
            Fact::NodeLost { node: node("node-b"), at: StoreTime(1_000), taken: Some(taken) },
            Fact::NodeLost { node: node("node-c"), at: StoreTime(2_000), taken: None },
        ]
    }

    #[test]
    fn the_bar_says_who_is_lost_who_took_over_and_for_how_long_the_store_is_away() {
        let bar = Bar::new(&facts(), Language::En, StoreTime(18_000));
        assert_eq!((bar.n, bar.away), (3, true));
        for said in [
            "data-since=\"5000\">13 s<",
            "node-b",
            "node-a",
            "took 3 jobs in 4 ms",
            ">Redis at h:1 &#60;is&#62;",
        ] {
            assert!(bar.html.contains(said), "{said}: {}", bar.html);
        }
        assert_eq!(Bar::new(&[], Language::Zh, StoreTime(0)), Bar::default());
    }

    #[test]
    fn a_node_with_another_configuration_is_named_with_the_jobs_and_keys_that_differ() {
        let job = |name: &str, keys: &[&str]| {
            let keys = keys.iter().map(|key| (*key).to_owned()).collect();
            (JobName::new(name).expect("a valid name"), keys)
        };
        let mut jobs = vec![job("outbound", &["command", "env"]), job("labels", &[MISSING])];
        let said = |jobs: &[(JobName, Vec<String>)]| {
            let fact = Fact::Drift { node: "node-c".to_owned(), jobs: jobs.to_vec() };
            soloist_view::words::plain(&words(&fact, Language::En, StoreTime(0)))
        };
        assert_eq!(
            said(&jobs),
            "node-c has another configuration: outbound (command, env), labels (missing there)."
        );
        jobs.extend([job("prices", &["repeat"]), job("returns", &["repeat"])]);
        assert!(said(&jobs).ends_with("prices (repeat) and 1 more."), "{}", said(&jobs));
    }

    #[test]
    fn strangers_hear_of_no_node_and_no_address() {
        let bar = Bar::for_strangers(&facts(), Language::En, StoreTime(18_000));
        assert_eq!((bar.n, bar.away), (1, true));
        for told in ["node-", "Redis", "what you see"] {
            assert!(!bar.html.contains(told), "{}", bar.html);
        }
    }
}
