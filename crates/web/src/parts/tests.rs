//! What every fragment must hold, whatever the data.

use super::endings::Endings;
use super::output::Lines;
use super::*;
use crate::csrf::tests::posting_forms;
use soloist_domain::name::{NodeName, RunId};
use soloist_domain::time::StoreTime;
use soloist_store::journal::{LogLine, Stream};
use soloist_view::fixtures::{config, every_state, look, node, wanted};

const HOSTILE: &str = "\"><script>alert(1)</script>&'";
const OPERATOR: RowViewer = RowViewer { mine: true, last: true, may_switch: true };

#[test]
fn every_state_shows_its_word_and_its_own_shape_in_both_languages() {
    let icons = include_str!("../../../../static/icons.svg");
    for lang in Language::ALL {
        for (_, view) in every_state(lang) {
            let state = view.state.as_str();
            for html in [job_row(&view, OPERATOR, lang, None), job_head(&view, OPERATOR, lang)] {
                assert!(html.contains(&format!("data-state=\"{state}\"")), "{html}");
                assert!(html.contains(&format!("icons.svg#{state}\"")), "{html}");
                assert!(html.contains(&view.shown.word), "{html}");
            }
            assert!(icons.contains(&format!("id=\"{state}\"")), "no shape for {state}");
        }
    }
}

#[test]
fn what_people_and_scripts_wrote_is_escaped_everywhere() {
    let job = config("outbound", HOSTILE, HOSTILE);
    let mut record = wanted(&job, &[]);
    record.last_line = Some(HOSTILE.to_owned());
    record.last_switch = Some(soloist_domain::job::LastSwitch {
        user: soloist_view::fixtures::user("li"),
        on: false,
        at: StoreTime(0),
        reason: Some(HOSTILE.to_owned()),
    });
    let mut running = wanted(&job, &["li"]);
    soloist_view::fixtures::at_work(&mut running, "node-a", 60, 5_000);
    running.last_line = Some(HOSTILE.to_owned());
    if let Some(run) = &mut running.run {
        let note = HOSTILE.to_owned();
        run.progress = Some(soloist_domain::job::Progress { done: 9, total: 3, note });
    }
    let line = LogLine {
        seq: 1,
        at: StoreTime(0),
        run: RunId(HOSTILE.to_owned()),
        node: NodeName::new("node-a").expect("a valid name"),
        stream: Stream::Stderr,
        text: HOSTILE.to_owned(),
    };
    let mut all = vec![Lines::new(&[line], &Endings::default(), Language::En).html()];
    for record in [record, running] {
        let nodes = [node("node-a", 0, &["outbound"], false)];
        let view = look(record, &job, &nodes, Language::En, std::time::Duration::ZERO);
        all.push(job_row(&view, OPERATOR, Language::En, None));
        all.push(job_head(&view, OPERATOR, Language::En));
    }
    for html in all {
        assert!(html.contains("script"), "it should be shown: {html}");
        assert!(!html.contains("<script") && !html.contains(HOSTILE), "{html}");
    }
}

#[test]
fn nothing_inline_stands_in_any_template() {
    fn walk(dir: &std::path::Path) {
        for entry in std::fs::read_dir(dir).expect("a readable directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("readable");
            for banned in [" style=", "<style", " onclick", " onsubmit", "javascript:", "http://"] {
                assert!(!text.contains(banned), "{} has {banned}", path.display());
            }
            let scripts = text.matches("<script").count();
            assert_eq!(scripts, text.matches("<script type=\"module\" src=").count());
        }
    }
    walk(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates"));
}

#[test]
fn the_switch_says_what_pressing_it_does() {
    let (_, view) = every_state(Language::En).swap_remove(0);
    let on = job_row(&view, OPERATOR, Language::En, None);
    assert!(
        on.contains("aria-checked=\"true\"") && on.contains("name=\"on\" value=\"false\""),
        "{on}"
    );
    let head = job_head(&view, OPERATOR, Language::En);
    assert!(head.contains("data-last=\"Nobody else wants “Outbound shipping”: this stops it.\""));
    assert!(on.contains("form=\"acts\" formaction=\"/jobs/outbound/participation\""), "{on}");
    assert_eq!(posting_forms(&on, csrf::mark()), 1, "all rows share one form, but for reasons");
    assert_eq!(posting_forms(&head, csrf::mark()), 2);
    let viewer = RowViewer { may_switch: false, ..RowViewer::default() };
    let off = job_row(&view, viewer, Language::En, None);
    assert!(off.contains("aria-checked=\"false\"") && off.contains("name=\"on\" value=\"true\""));
    assert!(off.contains("disabled") && !off.contains("data-last"));
    assert_eq!(posting_forms(&off, csrf::mark()), 0, "nor may they say why");
}

#[test]
fn a_rule_stands_where_another_node_goes_on_and_claims_no_move() {
    let line = |seq, node: &str| LogLine {
        seq,
        at: StoreTime(0),
        run: RunId("r".to_owned()),
        node: NodeName::new(node).expect("a valid name"),
        stream: Stream::Stdout,
        text: format!("line {seq}"),
    };
    let lines = [line(1, "node-b"), line(2, "node-b"), line(3, "node-a")];
    let html = Lines::new(&lines, &Endings::default(), Language::En).html();
    assert_eq!(html.matches("class=\"rule\"").count(), 1);
    assert!(html.contains("from here on node-a") && !html.contains("moved"), "{html}");
}

#[test]
fn the_counters_name_only_states_that_occur_and_the_living_nodes() {
    let views: Vec<_> = every_state(Language::En).into_iter().map(|(_, view)| view).collect();
    let html = summary(views[..1].iter(), &Sieve::default(), 0, Language::En);
    assert!(
        html.contains("<strong>1</strong> running") && html.contains("<strong>2</strong> nodes")
    );
    assert!(!html.contains("held"));
    assert!(html.contains("<a href=\"/?state=running\">"), "{html}");
    let chosen = Sieve::of("state=held&q=a");
    let html = summary(views[..1].iter(), &chosen, 0, Language::En);
    // Also with nothing in it, the one that is chosen leads back.
    assert!(
        html.contains("<a href=\"/?q=a\" aria-current=\"true\"><strong>0</strong> held"),
        "{html}"
    );
}
