//! What all readers are told about a rotation: whose turn it is, who waits for what, and until when.
//!
//! Which reason holds is decided by the rules of [`soloist_domain::rotation`]; here it only becomes a sentence.

use std::time::Duration;

use crate::rules::clauses;
use crate::words::{Language, Piece, phrase, say, until};
use soloist_domain::fields::Lists;
use soloist_domain::name::TypeName;
use soloist_domain::rotation::{Choice, Reason, Rules, TypeRules};
use soloist_domain::time::Stamp;
use soloist_store::rotation::RotationView;

/// How a rotation stands: all that time alone can change about a reading, without the clock of the reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Whose turn it is.
    pub choice: Choice,
    /// Whose turn comes after the present one, as far as is known.
    pub next: Option<TypeName>,
    /// What each type waits for, in the order of the rules.
    pub waits: Vec<Wait>,
    /// No worker waits: no turn could start before this.
    pub shut_until: Option<Stamp>,
}

/// What the waiters of a type wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// There are none.
    Nobody,
    /// It is their turn.
    Turn,
    /// A worker has the turn.
    Held,
    /// A gap, a quota, or an order of who had the last turn.
    Until(Reason, Stamp),
    /// This type comes first.
    Behind(TypeName),
    /// This type comes first, and no worker waits for it.
    Absent(TypeName),
}

impl Standing {
    /// How the rotation stood when `view` was read.
    #[must_use]
    pub fn of(view: &RotationView) -> Self {
        let RotationView { rules, ring, now, .. } = view;
        let asked = |kind: &TypeName| view.types.iter().any(|t| t.kind == *kind && t.waiting > 0);
        let choice = ring.choose(rules, asked, *now);
        let next = match &ring.turn {
            None => named(&choice),
            Some(_) => {
                let mut free = ring.clone();
                free.turn = None;
                named(&free.choose(rules, asked, *now))
            }
        };
        let waits = rules.types.iter().map(|kind| match asked(&kind.name) {
            true => wait(view, &choice, kind),
            false => Wait::Nobody,
        });
        let starts = rules.types.iter().map(|kind| ring.earliest(rules, kind, *now).0);
        let shut_until = starts.min().filter(|at| at > now);
        Self { waits: waits.collect(), choice, next, shut_until }
    }
}

fn named(choice: &Choice) -> Option<TypeName> {
    match choice {
        Choice::Now(kind) => Some(kind.clone()),
        Choice::Later { kind, .. } => kind.clone(),
    }
}

fn wait(view: &RotationView, choice: &Choice, kind: &TypeRules) -> Wait {
    if view.ring.turn.is_some() {
        return Wait::Held;
    }
    match view.ring.earliest(&view.rules, kind, view.now) {
        (_, Reason::Order) => {}
        (at, reason) => return Wait::Until(reason, at),
    }
    match choice {
        Choice::Later { reason: Reason::Absent, kind: Some(first), .. } => {
            Wait::Absent(first.clone())
        }
        Choice::Now(first) | Choice::Later { kind: Some(first), .. } if *first != kind.name => {
            Wait::Behind(first.clone())
        }
        _ => Wait::Turn,
    }
}

/// A rotation in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotationWords {
    /// `taken`, `pacing`, `open`, `absent` or `idle`.
    pub state: &'static str,
    /// The same for people.
    pub word: String,
    /// Whose turn it is, and until when.
    pub why: Vec<Piece>,
    /// Its rules, one clause each.
    pub rules: Vec<String>,
    /// Why the waiters of each type wait, in the order of the rules.
    pub waits: Vec<Vec<Piece>>,
}

impl RotationWords {
    /// Words for `view` in the state `standing`.
    #[must_use]
    pub fn of(view: &RotationView, standing: &Standing, lang: Language) -> Self {
        let (state, word, why) = sentence(view, standing, lang);
        let waits = standing.waits.iter().map(|wait| waiting(wait, view.now, lang));
        Self {
            state,
            word: say(lang, word, &[]),
            why,
            rules: clauses(&view.rules, lang, Lists::has_page),
            waits: waits.collect(),
        }
    }
}

fn sentence(
    view: &RotationView,
    standing: &Standing,
    lang: Language,
) -> (&'static str, &'static str, Vec<Piece>) {
    let strong = |kind: &TypeName| ("kind", Piece::strong(kind));
    let left = |at: Stamp| ("left", until(lang, at.ceil(), view.now.floor()));
    if let Some(turn) = &view.ring.turn {
        let text = crate::words::duration(lang, view.now.since(turn.since));
        let args = [
            strong(&turn.kind),
            ("worker", Piece::strong(&turn.worker)),
            ("ago", Piece::Since { ms: turn.since.floor().0, text }),
            left(turn.until),
        ];
        return ("taken", "rotation-taken", phrase(lang, "rotation-why-taken", &args));
    }
    match &standing.choice {
        Choice::Now(kind) => {
            ("open", "rotation-open", phrase(lang, "rotation-why-open", &[strong(kind)]))
        }
        Choice::Later { reason: Reason::Absent, kind: Some(kind), .. } => {
            ("absent", "rotation-absent", phrase(lang, "rotation-why-absent", &[strong(kind)]))
        }
        Choice::Later { reason, until: Some(at), kind: Some(kind) } => {
            // A countdown of less than a second is over before it is read.
            let id = match reason {
                _ if at.since(view.now) < Duration::from_secs(1) => "rotation-why-soon",
                Reason::Quota => "rotation-why-quota",
                Reason::NotBefore => "rotation-why-not-before",
                Reason::Recovery => "rotation-why-recovery",
                _ => "rotation-why-gap",
            };
            ("pacing", "rotation-pacing", phrase(lang, id, &[strong(kind), left(*at)]))
        }
        Choice::Later { .. } => {
            let why = match standing.shut_until {
                Some(at) if at.since(view.now) >= Duration::from_secs(1) => {
                    phrase(lang, "rotation-why-idle-until", &[left(at)])
                }
                _ => phrase(lang, "rotation-why-idle", &[]),
            };
            ("idle", "rotation-idle", why)
        }
    }
}

fn waiting(wait: &Wait, now: Stamp, lang: Language) -> Vec<Piece> {
    let strong = |kind: &TypeName| [("kind", Piece::strong(kind))];
    match wait {
        Wait::Nobody => Vec::new(),
        Wait::Turn => phrase(lang, "wait-turn", &[]),
        Wait::Held => phrase(lang, "wait-held", &[]),
        Wait::Behind(kind) => phrase(lang, "wait-behind", &strong(kind)),
        Wait::Absent(kind) => phrase(lang, "wait-absent", &strong(kind)),
        Wait::Until(reason, at) => {
            let id = match reason {
                Reason::Quota => "wait-quota",
                Reason::NotBefore => "wait-not-before",
                Reason::Recovery => "wait-recovery",
                _ => "wait-gap",
            };
            phrase(lang, id, &[("left", until(lang, at.ceil(), now.floor()))])
        }
    }
}

/// The rules of a rotation with those of its types, one clause each; of types without rules of their own nothing.
#[must_use]
pub fn all_rules(of: &Rules, lang: Language) -> Vec<String> {
    let gap = say(lang, "list-separator", &[]);
    let types = of.types.iter().filter_map(|kind| {
        let own = type_rules(kind, lang);
        (!own.is_empty()).then(|| format!("{} ({})", kind.name, own.join(&gap)))
    });
    types.chain(clauses(of, lang, Lists::has_page)).collect()
}

/// The rules of one type, one clause each.
#[must_use]
pub fn type_rules(kind: &TypeRules, lang: Language) -> Vec<String> {
    clauses(kind, lang, Lists::has_page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::rotation::*;
    use crate::words::plain;
    use soloist_domain::dispatch::Window;
    use soloist_domain::rotation::Skip;

    fn words(view: &RotationView, lang: Language) -> RotationWords {
        RotationWords::of(view, &Standing::of(view), lang)
    }

    #[test]
    fn every_state_of_a_rotation_has_its_sentence_in_both_languages() {
        let expected = [
            (
                "taken",
                "worker-7 has been running orders for 4 s; the lease ends in 26 s unless it is extended.",
                "worker-7 运行 orders 已 4 秒；若不续期，租约在 26 秒后到期。",
            ),
            (
                "pacing",
                "orders is next: it may start in 5 s, when the gap is over.",
                "下一个是 orders：间隔结束后，5 秒后可以开始。",
            ),
            (
                "pacing",
                "orders is next: it may start within a second.",
                "下一个是 orders：一秒之内可以开始。",
            ),
            (
                "pacing",
                "orders is next: it may start in 40 s, when its quota has room again.",
                "下一个是 orders：配额有空余后，40 秒后可以开始。",
            ),
            (
                "pacing",
                "returns is next: it may start in 15 s, because the last holder asked for a pause.",
                "下一个是 returns：按上一回合的要求，15 秒后可以开始。",
            ),
            (
                "open",
                "It is the turn of stock: the worker that has waited longest is getting it.",
                "轮到 stock：等待最久者正在接手。",
            ),
            (
                "absent",
                "orders is next, but no worker is asking for it; no type is skipped here.",
                "下一个是 orders，但没有工作者请求它；此处不跳过任何类型。",
            ),
            (
                "idle",
                "No worker is waiting: the next one that asks gets the turn.",
                "没有工作者等待：下一个请求者即可开始。",
            ),
            (
                "idle",
                "No worker is waiting; a turn may start in 5 s.",
                "没有工作者等待；5 秒后可以开始新的回合。",
            ),
        ];
        for (view, (state, en, zh)) in every_state().iter().zip(expected) {
            let name = &view.name;
            let english = words(view, Language::En);
            assert_eq!((english.state, plain(&english.why).as_str()), (state, en), "{name}");
            let chinese = words(view, Language::Zh);
            assert_eq!((chinese.state, plain(&chinese.why).as_str()), (state, zh), "{name}");
        }
    }

    #[test]
    fn every_type_says_what_its_waiters_wait_for() {
        let said = |name: &str| {
            let states = every_state();
            let view = states.iter().find(|view| view.name.as_str() == name).expect("a state");
            words(view, Language::En).waits.iter().map(|wait| plain(wait)).collect::<Vec<_>>()
        };
        assert_eq!(said("taken"), ["", "another has the turn", "another has the turn"]);
        assert_eq!(said("gap"), ["the gap: 5 s", "", ""]);
        assert_eq!(said("quota"), ["its quota: 40 s", "", ""]);
        assert_eq!(said("ordered"), ["told to wait: 15 s", "", "told to wait: 15 s"]);
        assert_eq!(said("open"), ["", "it is its turn", "stock is next"]);
        assert_eq!(said("absent"), ["", "orders is next, but no worker is asking for it", ""]);
    }

    #[test]
    fn whose_turn_comes_after_the_present_one_is_known_while_it_is_had() {
        let states = every_state();
        assert_eq!(Standing::of(&states[0]).next, Some(kind("stock")));
        assert_eq!(Standing::of(&states[4]).next, Some(kind("returns")));
        assert_eq!(Standing::of(&states[7]).next, None);
    }

    #[test]
    fn only_what_time_changes_makes_another_standing() {
        let mut view = every_state().remove(1);
        let before = Standing::of(&view);
        view.now = NOW + seconds(1);
        assert_eq!(Standing::of(&view), before);
        view.now = NOW + seconds(6);
        assert_ne!(Standing::of(&view), before, "the gap is over");
    }

    #[test]
    fn rules_are_said_as_they_are() {
        let mut view = rotation("a", [0, 0, 0]);
        let said = |view: &RotationView| words(view, Language::En).rules;
        assert_eq!(said(&view), ["1.5 s between starts", "lease 30 s", "absent types are skipped"]);
        (view.rules.min_gap, view.rules.skip) = (Duration::ZERO, Skip::Never);
        assert_eq!(said(&view), ["lease 30 s", "absent types are waited for"]);
        view.rules.types[0].gap = Duration::from_millis(250);
        view.rules.types[0].quota = Some(Window { count: 2, span: seconds(90) });
        let clauses = type_rules(&view.rules.types[0], Language::En);
        assert_eq!(clauses, ["one start per 250 ms", "2 starts in 90 s"]);
    }
}
