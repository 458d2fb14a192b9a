//! Rotations on live sockets: their board (`super::board`).
//!
//! A page of rotations follows their cards, a dashboard only the rings of the jobs that are members. While no seat follows,
//! nothing is read.

use std::sync::OnceLock;
use std::time::Duration;

use serde::Serialize;

use super::Hub;
use super::board::{Board, Picture, Reading, Row};
use super::seats::{Pending, Seat};
use crate::api::rotations::TURNS_LISTED;
use crate::auth::Caller;
use crate::frames::{self, Protocol};
use crate::parts::rotation::{self as parts, ROTATIONS_SHOWN, TURNS_SHOWN};
use soloist_domain::name::JobName;
use soloist_domain::time::Stamp;
use soloist_store::StoreError;
use soloist_store::rotation::{RotationView, Rotations as _};
use soloist_view::json::Rotation;
use soloist_view::rotation::Standing;
use soloist_view::words::Language;

/// The bar of a turn that is held grows in such steps, in microseconds.
const GROWS_BY: i64 = 2_000_000;

/// What of rotations a seat is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Everything.
    Whole,
    /// The rings of the jobs that are members.
    Rings,
}

/// A rotation at one reading.
pub(super) struct RotationRow {
    view: RotationView,
    standing: Standing,
    /// By language.
    html: [OnceLock<String>; 2],
    rings: [OnceLock<Vec<(JobName, String)>>; 2],
}

/// A frame of rings.
#[derive(Serialize)]
struct Rings<'a> {
    r#type: &'static str,
    rings: Vec<Ring<'a>>,
}

#[derive(Serialize)]
struct Ring<'a> {
    job: &'a str,
    html: String,
}

impl Hub {
    /// The newest reading of the rotations, however old.
    #[must_use]
    pub fn last_rotations(&self) -> Vec<RotationView> {
        self.cards.now().rows.iter().map(|row| row.what.view.clone()).collect()
    }
}

impl Row for RotationRow {
    const FRAME: &'static str = "rotations";
    const NOUN: &'static str = "rotation";
    const MORE: &'static str = "rotations-more";
    const REST: Duration = Duration::from_secs(5);
    type Aside = ();
    type Look = Look;

    fn board(hub: &Hub) -> &Board<Self> {
        &hub.cards
    }

    fn mark(pending: &mut Pending) -> &mut bool {
        &mut pending.rotations
    }

    fn place(look: Look) -> u8 {
        look as u8
    }

    async fn read(hub: &Hub, followed: bool) -> Option<Result<Reading<Self>, StoreError>> {
        if !followed {
            return None;
        }
        let views = hub.store.rotations(None, TURNS_SHOWN).await;
        let rows = |views: Vec<RotationView>| views.into_iter().map(Self::of).collect();
        Some(views.map(|views| Reading { rows: rows(views), aside: None }))
    }

    fn name(&self) -> &str {
        self.view.name.as_str()
    }

    fn at(&self) -> Stamp {
        self.view.now
    }

    fn is_same(&self, later: &Self) -> bool {
        let (old, new) = (&self.view, &later.view);
        // Only the clock of the reading may differ; a bar that grows is drawn anew now and then.
        let grown = old.ring.turn.is_some() && old.now.0 / GROWS_BY != new.now.0 / GROWS_BY;
        let moved = RotationView { now: old.now, ..new.clone() };
        !grown && moved == *old && self.standing == later.standing
    }

    fn html(&self, caller: &Caller) -> &str {
        let lang = caller.language;
        self.html[frames::slot(lang)].get_or_init(|| parts::rotation_row(&self.view, lang))
    }

    fn totals<'a>(rows: impl Iterator<Item = &'a Self>, lang: Language) -> String {
        parts::totals(rows.map(|row| &row.view), lang)
    }

    fn most(_: Look) -> usize {
        ROTATIONS_SHOWN
    }

    fn json(picture: &Picture<Self>) -> String {
        let listed = picture.rows.iter().map(|row| {
            let mut view = row.what.view.clone();
            view.past.truncate(TURNS_LISTED);
            Rotation::from(view)
        });
        frames::rotations_frame(&listed.collect::<Vec<_>>())
    }

    fn frame(hub: &Hub, picture: &Picture<Self>, seat: &Seat, told: u64, look: Look) -> String {
        let hidden = hub.hidden_from(Some(&seat.caller));
        let seen;
        let picture = match picture.rows.iter().any(|row| hidden.has_ring(&row.what.view)) {
            false => picture,
            true => {
                seen = picture.with_only(|row| !hidden.has_ring(&row.view));
                &seen
            }
        };
        match (look, seat.protocol) {
            (Look::Rings, _) => rings(hub, picture, &seat.caller, told),
            (Look::Whole, Protocol::Json) => Self::json(picture),
            (Look::Whole, Protocol::Html) => picture.fragments(&seat.caller, told, look),
        }
    }
}

fn rings(hub: &Hub, picture: &Picture<RotationRow>, caller: &Caller, told: u64) -> String {
    let lang = caller.language;
    let whole = picture.is_whole(told);
    let mut rings = Vec::new();
    let jobs = hub.jobs_for(caller);
    for job in &jobs {
        let Some(name) = &job.rotation else { continue };
        let row = picture.rows.iter().find(|row| row.what.view.name == *name);
        let html = match row {
            Some(row) if whole || row.changed > told => row.what.ring(hub, &job.name, lang),
            None if whole => parts::ring_line(name, None, &job.name, lang),
            _ => continue,
        };
        rings.push(Ring { job: job.name.as_str(), html });
    }
    frames::text(&Rings { r#type: "rings", rings })
}

impl RotationRow {
    fn of(view: RotationView) -> Self {
        let standing = Standing::of(&view);
        Self { view, standing, html: Default::default(), rings: Default::default() }
    }

    /// The line of a member.
    fn ring(&self, hub: &Hub, job: &JobName, lang: Language) -> String {
        let name = &self.view.name;
        let rings = self.rings[frames::slot(lang)].get_or_init(|| {
            let jobs = hub.jobs();
            let members = jobs.iter().filter(|job| job.rotation.as_ref() == Some(name));
            let line = |job: &JobName| parts::ring_line(name, Some(&self.view), job, lang);
            members.map(|job| (job.name.clone(), line(&job.name))).collect()
        });
        let mine = rings.iter().find(|(member, _)| member == job);
        mine.map_or_else(String::new, |(_, html)| html.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_view::fixtures::rotation::{every_state, rotation};

    fn reading(views: Vec<RotationView>) -> Reading<RotationRow> {
        Reading { rows: views.into_iter().map(RotationRow::of).collect(), aside: None }
    }

    fn first(views: Vec<RotationView>) -> Picture<RotationRow> {
        Picture::default().next(reading(views)).expect("the first is news, even if it were empty")
    }

    #[test]
    fn a_reading_that_says_the_same_makes_no_new_picture() {
        let picture = first(every_state());
        assert_eq!((picture.generation, picture.shape), (1, 1));
        let mut later = every_state();
        for view in &mut later {
            view.now = view.now + Duration::from_millis(100);
        }
        assert!(picture.next(reading(later.clone())).is_none());
        later[6].types[1].waiting += 1;
        let next = picture.next(reading(later.clone())).expect("news");
        let changed: Vec<&str> =
            next.rows.iter().filter(|row| row.changed == 2).map(|row| row.what.name()).collect();
        assert_eq!((changed, next.shape), (vec!["absent"], 1));
        later.push(rotation("zebra", [0, 0, 0]));
        assert_eq!(next.next(reading(later)).expect("news").shape, 3);
    }

    #[test]
    fn a_gap_that_is_over_and_a_turn_that_goes_on_are_changes() {
        let gap = every_state().remove(1);
        let mut over = gap.clone();
        over.now = over.now + Duration::from_secs(20);
        assert!(first(vec![gap]).next(reading(vec![over])).is_some());
        let taken = every_state().remove(0);
        let mut later = taken.clone();
        later.now = later.now + Duration::from_secs(2);
        assert!(first(vec![taken]).next(reading(vec![later])).is_some());
        let idle = every_state().remove(7);
        let mut later = idle.clone();
        later.now = later.now + Duration::from_secs(60);
        assert!(first(vec![idle]).next(reading(vec![later])).is_none());
    }
}
