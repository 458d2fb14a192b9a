//! What a member of a rotation waits for under its lease, in words.
//!
//! The store decides whose turn it is; this file only says what a reading of the rotation shows.

use std::time::Duration;

use super::Scene;
use crate::words::{Piece, exactly};
use soloist_config::JobConfig;
use soloist_domain::lease::Timing;
use soloist_domain::name::{RotationName, TypeName, WorkerName};
use soloist_domain::rotation::{Choice, Reason, TypeRules};
use soloist_domain::time::Stamp;
use soloist_store::rotation::RotationView;

/// A message and what it is about.
type Cause = (&'static str, Vec<(&'static str, Piece)>);

/// Where a job stands in its rotation.
enum Standing<'a> {
    /// The rotation was not read.
    Unread,
    /// It is not defined.
    Undefined,
    /// It has no type of the job's name.
    NoType,
    /// Its turns are too short to kill a script in time.
    TooShort(Duration),
    /// Its turn comes.
    Member(&'a RotationView, &'a TypeRules),
}

fn standing<'a>(
    rotation: &RotationName,
    own: &TypeName,
    rotations: Option<&'a [RotationView]>,
) -> Standing<'a> {
    let Some(rotations) = rotations else { return Standing::Unread };
    let Some(view) = rotations.iter().find(|view| view.name == *rotation) else {
        return Standing::Undefined;
    };
    match view.rules.of(own) {
        None => Standing::NoType,
        Some(_) if Timing::from_ttl(view.rules.lease).is_err() => {
            Standing::TooShort(view.rules.lease)
        }
        Some(rules) => Standing::Member(view, rules),
    }
}

/// Whether the turn of `job` cannot come before an operator changes the rotation.
pub(super) fn is_barred(job: &JobConfig, rotations: Option<&[RotationView]>) -> bool {
    let Some(rotation) = &job.rotation else { return false };
    let standing = standing(rotation, &TypeName::of(&job.name), rotations);
    matches!(standing, Standing::Undefined | Standing::NoType | Standing::TooShort(_))
}

impl Scene<'_> {
    /// Why the turn is not this job's yet.
    pub(super) fn turn(&self, rotation: &RotationName) -> Cause {
        let named = ("rotation", Piece::strong(rotation));
        let own = TypeName::of(&self.record.name);
        let (view, rules) = match standing(rotation, &own, self.rotations) {
            Standing::Unread => return ("turn-unread", Vec::new()),
            Standing::Undefined => return ("turn-undefined", vec![named]),
            Standing::NoType => {
                return ("turn-no-type", vec![named, ("type", Piece::strong(own))]);
            }
            Standing::TooShort(lease) => {
                let lease = Piece::Text(exactly(self.lang, lease));
                return ("turn-too-short", vec![named, ("lease", lease)]);
            }
            Standing::Member(view, rules) => (view, rules),
        };
        if let Some(turn) = &view.ring.turn {
            if turn.worker == WorkerName::of(&self.record.name) {
                return ("turn-own", Vec::new());
            }
            let since = self.clock(turn.since.floor());
            return ("turn-held", vec![("type", Piece::strong(&turn.kind)), ("since", since)]);
        }
        let now = Stamp::from(self.now);
        let (at, reason) = view.ring.earliest(&view.rules, rules, now);
        let left = || vec![("left", self.until(at.ceil()))];
        match reason {
            Reason::Gap => ("turn-gap", left()),
            Reason::Quota => ("turn-quota", left()),
            Reason::NotBefore => ("turn-not-before", left()),
            Reason::Recovery => ("turn-recovery", left()),
            Reason::Held | Reason::Order | Reason::Absent | Reason::Idle => first(view, &own, now),
        }
    }
}

/// Who comes before `own`, which could start at `now` by itself.
fn first(view: &RotationView, own: &TypeName, now: Stamp) -> Cause {
    let waits = |kind: &TypeName| {
        kind == own || view.types.iter().any(|t| t.kind == *kind && t.waiting > 0)
    };
    let (id, kind) = match view.ring.choose(&view.rules, waits, now) {
        Choice::Later { reason: Reason::Absent, kind, .. } => ("turn-absent", kind),
        Choice::Later { kind, .. } => ("turn-first", kind),
        Choice::Now(kind) => ("turn-first", Some(kind)),
    };
    match kind.filter(|kind| kind != own) {
        Some(kind) => (id, vec![("type", Piece::strong(kind))]),
        None => ("turn-next", Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::JobView;
    use super::*;
    use crate::fixtures::{NOW, at_work, before, config, look_among, node, wanted};
    use crate::words::Language;
    use soloist_domain::dispatch::Window;
    use soloist_domain::job::State;
    use soloist_domain::lease::Token;
    use soloist_domain::name::RequestId;
    use soloist_domain::rotation::{Ring, Rules, Skip, Starts, Turn};
    use soloist_store::rotation::TypeView;

    const SECOND: Duration = Duration::from_secs(1);

    fn kind(name: &str) -> TypeName {
        TypeName::new(name).expect("a valid name")
    }

    fn member() -> JobConfig {
        let rotation = RotationName::new("supplier-api").expect("a valid name");
        JobConfig { rotation: Some(rotation), ..config("stock", "Stock levels", "库存水位") }
    }

    fn view() -> RotationView {
        let types = ["stock", "prices"].map(|name| TypeRules {
            name: kind(name),
            gap: Duration::ZERO,
            quota: None,
        });
        let shown = types.iter().map(|rules| TypeView {
            kind: rules.name.clone(),
            waiting: 0,
            done: 0,
            empty: 0,
            failed: 0,
            lost: 0,
        });
        RotationView {
            name: RotationName::new("supplier-api").expect("a valid name"),
            types: shown.collect(),
            rules: Rules {
                types: types.to_vec(),
                min_gap: SECOND * 5,
                lease: SECOND * 30,
                skip: Skip::Absent,
            },
            ring: Ring::default(),
            waiters: Vec::new(),
            past: Vec::new(),
            now: Stamp::from(NOW),
        }
    }

    fn turn(of: &str, worker: &str) -> Turn {
        Turn {
            lease: Duration::from_secs(30),
            token: Token(7),
            kind: kind(of),
            worker: WorkerName::new(worker).expect("a valid name"),
            request: RequestId::new("r").expect("a valid name"),
            since: Stamp::from(before(3)),
            until: Stamp::from(NOW) + SECOND * 27,
        }
    }

    fn shown(rotations: Option<&[RotationView]>, lang: Language) -> JobView {
        let job = member();
        let mut record = wanted(&job, &["li"]);
        at_work(&mut record, "node-a", 4, 4_900);
        record.run = None;
        let nodes = [node("node-a", 100, &["stock"], false)];
        look_among(record, &job, &nodes, rotations, lang, Duration::ZERO)
    }

    /// Every cause, with what its sentence must have.
    fn causes() -> Vec<(Option<Vec<RotationView>>, &'static str)> {
        let with = |change: fn(&mut RotationView)| {
            let mut view = view();
            change(&mut view);
            Some(vec![view])
        };
        vec![
            (None, "reading whose turn it is"),
            (Some(Vec::new()), "is not defined: soloist rotation set supplier-api"),
            (with(|view| drop(view.rules.types.remove(0))), "it has no type stock"),
            (with(|view| view.rules.lease = SECOND / 2), "its turns last 500 ms"),
            (
                with(|view| view.ring.turn = Some(turn("prices", "job/prices"))),
                "prices has it since",
            ),
            (
                with(|view| view.ring.turn = Some(turn("stock", "job/stock"))),
                "it has just got the turn",
            ),
            (
                with(|view| view.ring.last_start = Some(Stamp::from(before(2)))),
                "the gap ends in 3 s",
            ),
            (
                with(|view| {
                    view.rules.types[0].quota = Some(Window { count: 1, span: SECOND * 60 });
                    let newest = Stamp::from(before(20));
                    let starts = Starts { newest, recent: [newest].into() };
                    view.ring.starts.insert(kind("stock"), starts);
                }),
                "its quota is used up for 40 s",
            ),
            (
                with(|view| view.ring.not_before = Stamp::from(NOW) + SECOND * 9),
                "no turn starts for 9 s",
            ),
            (
                with(|view| {
                    view.types[1].waiting = 1;
                    view.ring.after = Some(kind("stock"));
                }),
                "prices is next.",
            ),
            (
                with(|view| {
                    view.rules.skip = Skip::Never;
                    view.ring.after = Some(kind("stock"));
                }),
                "prices is next, but no worker is asking for it",
            ),
            (with(|_| ()), "it is next"),
        ]
    }

    #[test]
    fn a_member_that_waits_for_its_turn_says_for_what_and_what_to_do() {
        for (rotations, part) in causes() {
            let view = shown(rotations.as_deref(), Language::En);
            let barred = ["not defined", "no type", "turns last"].iter().any(|b| part.contains(b));
            assert_eq!(view.state, if barred { State::Waiting } else { State::Resting }, "{part}");
            assert_eq!(view.lease.as_ref().map(|lease| lease.node.as_str()), Some("node-a"));
            for part in [part, "Wanted by li", "node-a", "turn in rotation supplier-api"] {
                assert!(view.why.contains(part), "{} lacks {part}", view.why);
            }
            let row: String = view
                .shown
                .evidence
                .iter()
                .flat_map(|c| &c.pieces)
                .map(ToString::to_string)
                .collect();
            assert!(row.contains(part.trim_end_matches('.')), "{row} lacks {part}");
        }
    }

    #[test]
    fn the_same_is_said_in_chinese() {
        for (rotations, part) in causes() {
            let view = shown(rotations.as_deref(), Language::Zh);
            assert!(view.why.contains("supplier-api") && view.why.ends_with('。'), "{}", view.why);
            assert!(!view.why.contains("turn-") && !view.why.contains('{'), "{part}: {}", view.why);
        }
    }
}
