//! Fragments of rotations: the ring, which a member's row shows in one line, and the card of a whole rotation.
//!
//! They stand in pages and in every push. Lists are cut here: a page shows what a person can look through, the API lists
//! all.

use askama::Template;

use super::lanes::{Drawn, Lanes, about, turns};
use super::render;
use crate::assets;
use soloist_domain::name::{JobName, RotationName, TypeName};
use soloist_store::rotation::{RotationView, TURNS_KEPT, TypeView};
use soloist_view::rotation::{RotationWords, Standing, type_rules};
use soloist_view::source::ago;
use soloist_view::words::{Arg, Language, Piece, clock, grouped, phrase, say};

pub use super::lanes::TURNS_SHOWN;

/// Rotations on the page.
pub const ROTATIONS_SHOWN: usize = 30;
/// Waiters of a rotation.
const WAITERS_SHOWN: usize = 12;
/// Types in a line.
const LINKS_SHOWN: usize = 8;

/// The types in their order, and whose turn it is.
#[derive(Template)]
#[template(path = "parts/ring.html")]
pub struct Ring {
    label: String,
    links: Vec<Link>,
    more: Option<String>,
}

struct Link {
    name: String,
    /// `now`, `next`, `waits` or `idle`.
    mark: &'static str,
    /// The reader's row is about this one.
    mine: bool,
    /// What the mark means.
    means: Option<String>,
    waiting: Option<String>,
}

impl Ring {
    /// The ring of `view`, with at most `most` types; `mine` is marked, and never left out.
    fn new(
        view: &RotationView,
        standing: &Standing,
        mine: Option<&TypeName>,
        most: usize,
        lang: Language,
    ) -> Self {
        let now = view.ring.turn.as_ref().map(|turn| &turn.kind);
        let mut shown: Vec<&TypeView> = view.types.iter().collect();
        if shown.len() > most {
            // Those that matter now, in the rules' order.
            let matters = |view: &&TypeView| {
                let kind = Some(&view.kind);
                let named = kind == now || kind == standing.next.as_ref() || kind == mine;
                (!named, view.waiting == 0)
            };
            let mut first = shown.clone();
            first.sort_by_key(matters);
            first.truncate(most);
            shown.retain(|view| first.iter().any(|one| one.kind == view.kind));
        }
        let left = i64::try_from(view.types.len() - shown.len()).unwrap_or(0);
        let link = |one: &TypeView| {
            let (mark, means) = match () {
                () if now == Some(&one.kind) => ("now", Some(say(lang, "ring-now", &[]))),
                () if standing.next.as_ref() == Some(&one.kind) => {
                    ("next", Some(say(lang, "ring-next", &[])))
                }
                () if one.waiting > 0 => ("waits", None),
                () => ("idle", None),
            };
            let n = Arg::from(i64::try_from(one.waiting).unwrap_or(i64::MAX));
            Link {
                name: one.kind.to_string(),
                mark,
                mine: mine == Some(&one.kind),
                means,
                waiting: (one.waiting > 0).then(|| say(lang, "ring-waiting", &[("n", n)])),
            }
        };
        // A type that was removed while a worker has its turn.
        let gone = now.filter(|kind| view.rules.of(kind).is_none()).map(|kind| Link {
            name: kind.to_string(),
            mark: "now",
            mine: mine == Some(kind),
            means: Some(say(lang, "ring-now", &[])),
            waiting: None,
        });
        Self {
            label: say(lang, "ring-label", &[("rotation", Arg::from(view.name.as_str()))]),
            links: shown.into_iter().map(link).chain(gone).collect(),
            more: (left > 0).then(|| say(lang, "ring-more", &[("n", Arg::from(left))])),
        }
    }
}

/// The ring of a job that is a member, in one line.
#[derive(Template)]
#[template(path = "parts/ring_line.html")]
pub struct RingLine {
    rotation: String,
    icon: String,
    ring: Option<Ring>,
    why: Vec<Piece>,
}

impl RingLine {
    /// The ring of the rotation called `name`, which may not be defined yet, for the row of `job`.
    #[must_use]
    pub fn new(
        name: &RotationName,
        view: Option<&RotationView>,
        job: &JobName,
        lang: Language,
    ) -> Self {
        let (rotation, icon) = (name.to_string(), format!("{}#rotation", assets::url("icons.svg")));
        let Some(view) = view else {
            let command = Piece::code(name);
            let why = phrase(lang, "rotation-undefined", &[("rotation", command)]);
            return Self { rotation, icon, ring: None, why };
        };
        let standing = Standing::of(view);
        let why = RotationWords::of(view, &standing, lang).why;
        let ring = Ring::new(view, &standing, Some(&TypeName::of(job)), LINKS_SHOWN, lang);
        Self { rotation, icon, ring: Some(ring), why }
    }
}

/// A rotation with everything that is known of it.
#[derive(Template)]
#[template(path = "parts/rotation_row.html")]
pub struct RotationRow<'a> {
    view: &'a RotationView,
    shown: RotationWords,
    ring: Ring,
    types: Vec<TypeRow>,
    waiters: Vec<WaiterRow>,
    more_waiters: Option<String>,
    lanes: Option<Lanes>,
    span: Vec<Piece>,
    turns: Vec<TurnRow>,
    lang: Language,
}

struct TypeRow {
    name: String,
    rules: Vec<String>,
    waiting: String,
    why: Vec<Piece>,
    /// `done`, `empty`, `failed` and `lost`, with how many.
    counts: [(&'static str, String); 4],
}

struct WaiterRow {
    kind: String,
    worker: String,
    node: String,
    since: Vec<Piece>,
}

struct TurnRow {
    token: u64,
    outcome: &'static str,
    began: Vec<Piece>,
    after: Option<String>,
    kind: String,
    worker: String,
    lasted: String,
    word: String,
}

impl<'a> RotationRow<'a> {
    /// The same, with every turn in its table that was read.
    #[must_use]
    pub fn with_all_turns(self) -> Self {
        let turns = told(&turns(self.view, TURNS_KEPT), self.view, self.lang);
        Self { turns, ..self }
    }

    /// Puts the card together.
    #[must_use]
    pub fn new(view: &'a RotationView, lang: Language) -> Self {
        let standing = Standing::of(view);
        let shown = RotationWords::of(view, &standing, lang);
        let types = view.types.iter().zip(&shown.waits).map(|(one, why)| TypeRow {
            name: one.kind.to_string(),
            rules: view.rules.of(&one.kind).map_or_else(Vec::new, |kind| type_rules(kind, lang)),
            waiting: grouped(one.waiting),
            why: why.clone(),
            counts: [
                ("done", grouped(one.done)),
                ("empty", grouped(one.empty)),
                ("failed", grouped(one.failed)),
                ("lost", grouped(one.lost)),
            ],
        });
        let waiters = view.waiters.iter().take(WAITERS_SHOWN).map(|waiter| WaiterRow {
            kind: waiter.kind.to_string(),
            worker: waiter.worker.to_string(),
            node: waiter.node.to_string(),
            since: ago(lang, waiter.since, view.now),
        });
        let waiting: u64 = view.types.iter().map(|one| one.waiting).sum();
        let left = waiting.saturating_sub(WAITERS_SHOWN.min(view.waiters.len()) as u64);
        let drawn = turns(view, TURNS_SHOWN);
        let at = |stamp: soloist_domain::time::Stamp| clock(lang, stamp.floor(), view.now.floor());
        let span = drawn.first().zip(drawn.last()).map(|(first, last)| {
            let to = last.ended.unwrap_or(view.now);
            phrase(lang, "turns-span", &[("from", at(first.since)), ("to", at(to))])
        });
        Self {
            types: types.collect(),
            waiters: waiters.collect(),
            more_waiters: (left > 0)
                .then(|| say(lang, "waiters-more", &[("n", Arg::from(grouped(left)))])),
            lanes: Lanes::of(view, &drawn, view.now, lang),
            span: span.unwrap_or_default(),
            turns: told(&drawn, view, lang),
            ring: Ring::new(view, &standing, None, usize::MAX, lang),
            view,
            shown,
            lang,
        }
    }

    fn say(&self, id: &str) -> String {
        say(self.lang, id, &[])
    }

    /// A shape for the state.
    fn icon(&self) -> String {
        let id = match self.shown.state {
            "taken" => "rotation",
            "pacing" => "source-pacing",
            "open" => "source-open",
            "absent" => "waiting",
            _ => "off",
        };
        format!("{}#{id}", assets::url("icons.svg"))
    }
}

/// The same turns as in the picture, newest first.
fn told(drawn: &[Drawn], view: &RotationView, lang: Language) -> Vec<TurnRow> {
    let before = std::iter::once(None).chain(drawn.iter().map(Some));
    let row = |(turn, before): (&Drawn, Option<&Drawn>)| TurnRow {
        token: turn.token,
        outcome: turn.outcome,
        began: vec![clock(lang, turn.since.floor(), view.now.floor())],
        after: before.map(|before| about(lang, turn.since.since(before.since))),
        kind: turn.kind.to_string(),
        worker: turn.worker.clone(),
        lasted: about(lang, turn.ended.unwrap_or(view.now).since(turn.since)),
        word: turn.word(lang),
    };
    let mut rows: Vec<TurnRow> = drawn.iter().zip(before).map(row).collect();
    rows.reverse();
    rows
}

/// The line above the cards.
#[derive(Template)]
#[template(path = "parts/summary.html")]
pub struct TurnTotals {
    counters: Vec<super::Counter>,
}

impl TurnTotals {
    /// Counts over all rotations.
    #[must_use]
    pub fn new<'v>(views: impl Iterator<Item = &'v RotationView>, lang: Language) -> Self {
        let (mut all, mut taken, mut waiting) = (0_u64, 0_u64, 0_u64);
        for view in views {
            all += 1;
            taken += u64::from(view.ring.turn.is_some());
            waiting += view.types.iter().map(|one| one.waiting).sum::<u64>();
        }
        let counter = |(state, id, n): (&'static str, &str, u64)| {
            let count = Piece::Number(i64::try_from(n).unwrap_or(i64::MAX));
            let args = [("n", Piece::strong(grouped(n))), ("count", count)];
            super::Counter::plain(state, phrase(lang, id, &args))
        };
        let totals = [
            ("rotations", "count-rotations", all),
            ("taken", "count-taken", taken),
            ("waiters", "count-waiters", waiting),
        ];
        Self { counters: totals.map(counter).into() }
    }
}

/// A card, as text for a push.
#[must_use]
pub fn rotation_row(view: &RotationView, lang: Language) -> String {
    render(&RotationRow::new(view, lang))
}

/// A line, as text for a push.
#[must_use]
pub fn ring_line(
    name: &RotationName,
    view: Option<&RotationView>,
    job: &JobName,
    lang: Language,
) -> String {
    render(&RingLine::new(name, view, job, lang))
}

/// The line of counters, as text for a push.
#[must_use]
pub fn totals<'v>(views: impl Iterator<Item = &'v RotationView>, lang: Language) -> String {
    render(&TurnTotals::new(views, lang))
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::rotation::TypeRules;
    use soloist_view::fixtures::rotation::{every_state, rotation};

    fn text(ring: &Ring) -> Vec<(&str, &str)> {
        ring.links.iter().map(|link| (link.name.as_str(), link.mark)).collect()
    }

    #[test]
    fn the_ring_shows_whose_turn_it_is_who_comes_next_and_who_waits() {
        let view = every_state().remove(0);
        let ring = Ring::new(&view, &Standing::of(&view), None, 8, Language::En);
        assert_eq!(text(&ring), [("orders", "now"), ("stock", "next"), ("returns", "waits")]);
        assert_eq!(ring.links[1].waiting.as_deref(), Some("2 wait"));
    }

    #[test]
    fn a_line_leaves_out_whoever_does_not_matter_now_but_never_its_own() {
        let mut view = rotation("long", [0, 0, 1]);
        for nth in 0..20 {
            let name = TypeName::new(&format!("type-{nth}")).expect("a valid name");
            let rules = TypeRules { name: name.clone(), ..view.rules.types[0].clone() };
            view.rules.types.push(rules);
            view.types.push(TypeView { kind: name, waiting: 0, ..view.types[0].clone() });
        }
        let mine = TypeName::new("type-19").expect("a valid name");
        let ring = Ring::new(&view, &Standing::of(&view), Some(&mine), 4, Language::En);
        let names: Vec<_> = text(&ring).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["orders", "stock", "returns", "type-19"]);
        assert_eq!(ring.more.as_deref(), Some("and 19 more"));
    }

    #[test]
    fn a_type_that_was_removed_while_it_has_the_turn_is_still_shown() {
        let mut view = every_state().remove(0);
        view.rules.types.remove(0);
        view.types.remove(0);
        let ring = Ring::new(&view, &Standing::of(&view), None, 8, Language::En);
        assert_eq!(text(&ring), [("stock", "next"), ("returns", "waits"), ("orders", "now")]);
    }

    #[test]
    fn picture_and_table_tell_the_same_turns() {
        for view in every_state() {
            let html = rotation_row(&view, Language::En);
            let tokens = |element: &str| {
                let mut found: Vec<&str> = html
                    .split(element)
                    .skip(1)
                    .filter_map(|rest| rest.split('>').next()?.split("data-turn=\"").nth(1))
                    .filter_map(|rest| rest.split('"').next())
                    .collect();
                found.sort_unstable();
                found
            };
            let expected = turns(&view, TURNS_SHOWN).len();
            assert_eq!(tokens("<rect").len(), expected, "{}", view.name);
            assert_eq!(tokens("<rect"), tokens("<tr"), "{}", view.name);
        }
    }
}
