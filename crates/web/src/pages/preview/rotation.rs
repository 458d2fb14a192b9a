//! The page of rotations with made-up data, and a dashboard whose jobs are members.

use super::super::dashboard::{Dashboard, placed};
use super::super::rotations::RotationsPage;
use super::{frame, viewer_of, whole};
use crate::parts::rotation::{RingLine, RotationRow, TurnTotals};
use crate::parts::{Row, Summary};
use crate::sieve::Sieve;
use soloist_domain::name::{JobName, RotationName};
use soloist_store::rotation::RotationView;
use soloist_view::JobView;
use soloist_view::fixtures::every_state as jobs;
use soloist_view::fixtures::rotation::every_state as rotations;
use soloist_view::words::{Language, say};

pub(super) fn pages(lang: Language, theme: &str) -> Vec<(&'static str, String)> {
    let title = |id: &str| say(lang, id, &[]);
    let page = |views: &[RotationView], trouble: Option<&str>| {
        whole(&RotationsPage {
            frame: frame(lang, theme, "rotations", &title("rotations-title")),
            trouble: trouble.map(str::to_owned),
            totals: TurnTotals::new(views.iter(), lang),
            rows: views.iter().map(|view| RotationRow::new(view, lang)).collect(),
            more: None,
            removes: true,
            url: "http://127.0.0.1:8080".to_owned(),
            user: "li".to_owned(),
        })
    };
    let mut members: Vec<JobView> = jobs(lang).into_iter().map(|(_, view)| view).take(3).collect();
    let known = rotations();
    let names = ["taken", "ordered", "nowhere"];
    for (job, name) in members.iter_mut().zip(names) {
        job.shown.rotation = Some(name.to_owned());
    }
    let job = JobName::new("stock").expect("a valid name");
    let rows = members.iter().zip(names).map(|(view, name)| {
        let name = RotationName::new(name).expect("a valid name");
        let found = known.iter().find(|view| view.name == name);
        let ring = RingLine::new(&name, found, &job, lang);
        let place = Sieve::default().place(view, 0, lang);
        (place.clone(), Row::new(view, viewer_of(view), lang).with_ring(Some(ring)).at(place))
    });
    let dashboard = whole(&Dashboard {
        frame: frame(lang, theme, "jobs", &title("nav-jobs")),
        needs: String::new(),
        epoch: "e".to_owned(),
        summary: Summary::new(members.iter(), &Sieve::default(), 0, lang),
        picks: Vec::new(),
        sieve: Sieve::default(),
        any: true,
        operator: true,
        rows: placed(rows),
    });
    vec![
        ("rotations", page(&known, None)),
        ("rotations-empty", page(&[], None)),
        ("rotations-away", page(&[], Some("Trouble."))),
        ("members", dashboard),
    ]
}

#[test]
fn a_store_out_of_reach_is_not_taken_for_an_empty_one() {
    let [_, (_, empty), (_, away), _] = pages(Language::En, "light").try_into().expect("four");
    assert!(empty.contains("No rotation yet") && empty.contains("soloist rotation set"));
    assert!(!away.contains("No rotation yet") && away.contains("Trouble."));
}

#[test]
fn a_member_whose_rotation_is_not_defined_says_how_to_define_it() {
    let dashboard = pages(Language::En, "light").pop().expect("a page").1;
    assert!(dashboard.contains("not defined yet: soloist rotation set"), "{dashboard}");
    assert_eq!(dashboard.matches("data-ring=").count(), 3);
    assert_eq!(dashboard.matches("<ol class=\"ring\"").count(), 2);
}
