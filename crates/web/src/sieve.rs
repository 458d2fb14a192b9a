//! What of the jobs a page shows, and in which order: read from the query of the dashboard's address, once for the page and
//! once for its socket, so that both mean the same rows.
//!
//! A query that says something unknown is read as if it did not: addresses are kept as bookmarks. It reads pictures and
//! decides no state.

use std::collections::HashMap;

use actix_web::web::Query;

use soloist_domain::job::State;
use soloist_view::words::{Language, say};
use soloist_view::{JobView, state_word};

/// Letters of a search that count.
const SEARCH_MAX: usize = 100;

/// Which jobs a counter stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Those that need a person.
    Trouble,
    /// Those that crash again and again.
    Looping,
    /// Those in one state.
    State(State),
}

impl Only {
    /// The word for it in an address.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::Looping => "crash_looping",
            Self::State(state) => state.as_str(),
        }
    }

    /// Whether a job is one of them.
    #[must_use]
    pub fn fits(self, job: &JobView) -> bool {
        match self {
            Self::Trouble => job.shown.among_needy,
            Self::Looping => job.shown.looping,
            Self::State(state) => job.state == state && !job.shown.looping,
        }
    }

    fn of(word: &str) -> Option<Self> {
        let states = State::ALL.into_iter().map(Self::State);
        states.chain([Self::Trouble, Self::Looping]).find(|only| only.as_str() == word)
    }
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// Those that need a person, then by group.
    #[default]
    Need,
    /// By title.
    Name,
    /// By state.
    State,
}

impl Sort {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Need, Self::Name, Self::State];

    /// The word for it in an address.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Need => "need",
            Self::Name => "name",
            Self::State => "state",
        }
    }
}

/// Where a row stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Rows stand in the order of their keys; scripts compare them, too.
    pub key: String,
    /// The heading above the first of those that have the same.
    pub under: Option<String>,
}

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sieve {
    /// The page has no rows of jobs at all.
    pub without_rows: bool,
    /// Only these.
    pub only: Option<Only>,
    /// What is searched for, as it was typed.
    pub search: String,
    words: Vec<String>,
    /// Only this group.
    pub group: Option<String>,
    /// In which order.
    pub sort: Sort,
    /// What the page shows already: a mark of the hub.
    pub have: Option<String>,
}

/// How a page without rows says that to its socket.
pub const NO_ROWS: &str = "rows=none";

impl Sieve {
    /// As the query of an address says.
    #[must_use]
    pub fn of(query: &str) -> Self {
        let fields = Query::<HashMap<String, String>>::from_query(query);
        let mut fields = fields.map(Query::into_inner).unwrap_or_default();
        let mut take = |name: &str| fields.remove(name).filter(|value| !value.is_empty());
        let search: String =
            take("q").unwrap_or_default().trim().chars().take(SEARCH_MAX).collect();
        let sort = take("sort");
        Self {
            without_rows: take("rows").as_deref() == Some("none"),
            only: take("state").and_then(|word| Only::of(&word)),
            words: search.split_whitespace().map(str::to_lowercase).collect(),
            search,
            group: take("group"),
            sort: Sort::ALL
                .into_iter()
                .find(|known| Some(known.as_str()) == sort.as_deref())
                .unwrap_or_default(),
            have: take("have"),
        }
    }

    /// The query of the same with other jobs; empty when everything is shown.
    #[must_use]
    pub fn query(&self, only: Option<Only>) -> String {
        let sort = Some(self.sort).filter(|sort| *sort != Sort::default());
        let fields = [
            ("state", only.map_or("", Only::as_str)),
            ("q", &self.search),
            ("group", self.group.as_deref().unwrap_or("")),
            ("sort", sort.map_or("", Sort::as_str)),
        ];
        let said = fields.iter().filter(|(_, value)| !value.is_empty());
        let said: Vec<String> =
            said.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        said.join("&")
    }

    /// The address of the same with other jobs.
    #[must_use]
    pub fn address(&self, only: Option<Only>) -> String {
        let query = self.query(only);
        if query.is_empty() { "/".to_owned() } else { format!("/?{query}") }
    }

    /// Everything is shown, in the usual order.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.without_rows && self.query(self.only).is_empty()
    }

    /// Whether a job is shown.
    #[must_use]
    pub fn shows(&self, job: &JobView) -> bool {
        !self.without_rows
            && self.only.is_none_or(|only| only.fits(job))
            && self.group.as_ref().is_none_or(|group| job.group.as_ref() == Some(group))
            && self.finds(job)
    }

    /// Every word stands in its title, name, group or state, or is a node or a person of it.
    fn finds(&self, job: &JobView) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let node = job.lease.iter().map(|lease| lease.node.as_str());
        let people = job.shown.people.iter();
        let people = people.flat_map(|one| [Some(one.name.as_str()), one.display_name.as_deref()]);
        let own = [&job.title, &job.name, &job.shown.word].into_iter().map(String::as_str);
        let all = own.chain(job.group.as_deref()).chain(node).chain(people.flatten());
        let text = all.collect::<Vec<_>>().join("\n").to_lowercase();
        self.words.iter().all(|word| text.contains(word))
    }

    /// Where a job stands that is the `nth` of the configuration.
    #[must_use]
    pub fn place(&self, job: &JobView, nth: usize, lang: Language) -> Place {
        match self.sort {
            Sort::Need if job.shown.among_needy => {
                Place { key: format!("0-{nth:05}"), under: Some(say(lang, "needs-you", &[])) }
            }
            Sort::Need => Place { key: format!("1-{nth:05}"), under: job.group.clone() },
            Sort::Name => {
                Place { key: format!("{} {}", job.title.to_lowercase(), job.name), under: None }
            }
            Sort::State => {
                let rank =
                    RANKS.iter().position(|state| *state == job.state).unwrap_or(RANKS.len());
                let under = Some(state_word(lang, job.state));
                Place { key: format!("{rank:02}-{nth:05}"), under }
            }
        }
    }
}

/// States in the order in which they are looked for.
const RANKS: [State; 13] = [
    State::GivenUp,
    State::Unknown,
    State::BackingOff,
    State::FailingOver,
    State::Late,
    State::Waiting,
    State::Stopping,
    State::Starting,
    State::Running,
    State::Resting,
    State::Scheduled,
    State::Held,
    State::Off,
];

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_view::fixtures::every_state;

    fn shown(query: &str) -> Vec<(String, JobView)> {
        let sieve = Sieve::of(query);
        let views = every_state(Language::En).into_iter().map(|(_, view)| view);
        let shown = views.enumerate().filter(|(_, view)| sieve.shows(view));
        let mut placed: Vec<_> =
            shown.map(|(nth, view)| (sieve.place(&view, nth, Language::En).key, view)).collect();
        placed.sort_by(|one, two| one.0.cmp(&two.0));
        placed
    }

    #[test]
    fn a_counter_shows_the_jobs_that_it_counts() {
        let all = shown("").len();
        let mut found = 0;
        for only in State::ALL.into_iter().map(Only::State).chain([Only::Looping]) {
            let some = shown(&format!("state={}", only.as_str()));
            assert!(some.iter().all(|(_, view)| only.fits(view)));
            found += some.len();
        }
        assert_eq!(found, all, "every job is counted once");
        assert_eq!(shown("state=nonsense&sort=nonsense&what=ever").len(), all);
        assert_eq!(shown(NO_ROWS).len(), 0);
    }

    #[test]
    fn those_that_need_somebody_stand_first_and_have_a_heading() {
        let rows = shown("");
        let needs: Vec<bool> = rows.iter().map(|(_, view)| view.shown.among_needy).collect();
        assert!(needs[0] && !needs[needs.len() - 1]);
        assert!(needs.is_sorted_by(|one, two| one >= two), "{needs:?}");
        for (_, view) in &rows {
            let calm = [
                State::Running,
                State::Resting,
                State::Scheduled,
                State::Off,
                State::Held,
                State::Stopping,
            ];
            assert!(!(view.shown.needs && calm.contains(&view.state)), "{view:?}");
            let broken = view.state == State::GivenUp;
            assert!(view.shown.needs || !(broken || view.shown.looping), "{view:?}");
            assert!(
                !(view.shown.needs && view.state == State::Unknown),
                "the store does: {view:?}"
            );
            let place = Sieve::default().place(view, 3, Language::Zh);
            assert_eq!(place.under.is_some(), view.shown.among_needy || view.group.is_some());
        }
    }

    #[test]
    fn every_word_of_a_search_must_be_found_somewhere() {
        let all = shown("");
        let (_, one) = &all[0];
        let title = one.title.to_uppercase();
        let found = shown(&format!("q={}", escaped(&format!("  {title} {}  ", one.name))));
        assert!(found.iter().any(|(_, view)| view.name == one.name));
        assert_eq!(shown("q=no-such-thing").len(), 0);
        assert_eq!(shown(&format!("q={}+no-such-thing", one.name)).len(), 0);
    }

    #[test]
    fn an_address_says_what_is_shown_and_is_read_as_it_was_written() {
        let sieve = Sieve::of("state=trouble&q=a+b%26c&group=%E4%BB%93%E5%BA%93&sort=name&have=x");
        assert_eq!(
            sieve.query(sieve.only),
            "state=trouble&q=a%20b%26c&group=%E4%BB%93%E5%BA%93&sort=name"
        );
        let again = Sieve::of(&sieve.query(sieve.only));
        assert_eq!(Sieve { have: None, ..sieve }, again);
        assert_eq!(Sieve::default().address(None), "/");
        assert!(Sieve::of("").is_open() && !again.is_open());
    }
}
