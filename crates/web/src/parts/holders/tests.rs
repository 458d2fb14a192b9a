//! What the picture must show.

use super::*;
use crate::parts::render;
use soloist_domain::lease::Token;
use soloist_domain::name::{NodeName, UserName};
use soloist_domain::timeline::{Present, Span, Wanted};

const HOUR: i64 = 3_600_000;
const NOW: StoreTime = StoreTime(1_000 * HOUR);
const EN: Voice = Voice { lang: Language::En, external: false, lease: LEASE };
const LEASE: Duration = Duration::from_secs(5);

pub(in crate::parts) fn span(
    token: u64,
    node: &str,
    from: i64,
    lasted: i64,
    runs: u32,
    failed: u32,
) -> Span {
    Span {
        node: NodeName::new(node).expect("a valid name"),
        first: Token(token),
        token: Token(token),
        from: StoreTime(from),
        to: StoreTime(from + lasted),
        end: if failed > 0 { RunEnd::Lost } else { RunEnd::Exited },
        runs,
        failed,
        held_ms: u64::try_from(lasted).expect("positive"),
    }
}

fn line() -> Timeline {
    let wanted = |who: &str, kind, from, to: Option<i64>| Wanted {
        kind,
        who: UserName::new(who).expect("a valid name"),
        from: StoreTime(from),
        to: to.map(StoreTime),
    };
    let node = NodeName::new("node-b").expect("a valid name");
    Timeline {
        since: Some(StoreTime(0)),
        spans: vec![
            span(1, "node-a", NOW.0 - 5 * HOUR, HOUR, 3_600, 0),
            span(2, "node-a", NOW.0 - 2 * HOUR, HOUR, 1, 1),
        ],
        present: Some(Present { node, token: Token(3), from: StoreTime(NOW.0 - HOUR + 7) }),
        wants: vec![
            wanted("li", WantKind::Participation, NOW.0 - 5 * HOUR, Some(NOW.0 - 4 * HOUR)),
            wanted("li", WantKind::Participation, NOW.0 - 2 * HOUR, None),
            wanted("ada", WantKind::Hold, NOW.0 - 4 * HOUR, Some(NOW.0 - 3 * HOUR)),
        ],
        ..Timeline::default()
    }
}

fn html(extent: Extent, lang: Language) -> String {
    render(&Holders::of(
        "outbound",
        &line(),
        extent,
        NOW,
        Voice { lang, external: false, lease: LEASE },
    ))
}

#[test]
fn people_come_above_nodes_and_a_take_over_has_its_milliseconds() {
    let picture = Holders::of("outbound", &line(), Extent::Day, NOW, EN);
    let names: Vec<_> = picture.lanes.iter().map(|lane| (lane.kind, lane.name.as_str())).collect();
    assert_eq!(
        names,
        [
            ("person", "wanted by li"),
            ("hold", "forbidden by ada"),
            ("node", "node-a"),
            ("node", "node-b"),
            ("nobody", "nobody"),
        ]
    );
    assert_eq!(picture.takeovers.len(), 1);
    assert_eq!(picture.takeovers[0].text, "7 ms");
    let text = html(Extent::Day, Language::En);
    assert!(text.contains("node-b took over from node-a in 7 ms"), "{text}");
    assert!(html(Extent::Day, Language::Zh).contains("7 毫秒"));
}

#[test]
fn gaps_are_classed_by_their_reason() {
    let text = html(Extent::Day, Language::En);
    for class in ["gap off", "gap held"] {
        assert!(text.contains(&format!("class=\"stint {class}\"")), "{class}: {text}");
    }
    assert!(!text.contains("gap unknown"), "{text}");
}

#[test]
fn of_an_external_job_programs_are_waited_for_and_fail_and_no_node_is_named() {
    let crashed = Span { end: RunEnd::Crashed, ..span(1, "shop-7f", NOW.0 - 3 * HOUR, HOUR, 1, 1) };
    let line = |spans| Timeline { spans, present: None, ..line() };
    for (lang, words) in [
        (Language::En, ["waiting for a program", "wait after a failure", "failed"]),
        (Language::Zh, ["等待程序", "失败后等待", "失败"]),
    ] {
        let drawn = |line: &Timeline| {
            let voice = Voice { lang, external: true, lease: LEASE };
            render(&Holders::of("thread", line, Extent::Day, NOW, voice))
        };
        let text = drawn(&line(Vec::new())) + &drawn(&line(vec![crashed.clone()]));
        let text = text.replace("data-kind=\"node\"", "");
        for word in words {
            assert!(text.contains(&format!(">{word}<")), "{word}: {text}");
        }
        for word in ["node", "节点", "crash", "崩溃"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn a_program_that_was_lost_is_told_by_the_end_of_its_lease() {
    let lost = Span { end: RunEnd::Lost, ..span(7, "shop-7f", NOW.0 - HOUR, HOUR / 2, 1, 1) };
    let present = Present {
        node: NodeName::new("shop-9c").expect("a valid name"),
        token: Token(8),
        from: lost.to,
    };
    let line = Timeline { spans: vec![lost], present: Some(present), ..line() };
    let told = |lang, external| {
        render(&Holders::of(
            "outbound",
            &line,
            Extent::Day,
            NOW,
            Voice { lang, external, lease: LEASE },
        ))
    };
    for (lang, words) in [
        (
            Language::En,
            [
                "program lost: its lease ended",
                "took over from shop-7f in 0 s after its lease ended, up to 5 s after its last renewal",
            ],
        ),
        (Language::Zh, ["程序失联，租约到期", "到期时距它最后一次续约最多 5 秒"]),
    ] {
        let text = told(lang, true);
        for word in words {
            assert!(text.contains(word), "{word}: {text}");
        }
        // A guard saw the end of a script.
        let text = told(lang, false);
        assert!(!text.contains(words[1]), "{text}");
    }
}

#[test]
fn what_is_older_than_the_extent_is_not_drawn() {
    let picture = Holders::of("outbound", &line(), Extent::Hour, NOW, EN);
    assert!(picture.lanes.iter().all(|lane| lane.kind != "hold"), "that was before");
    let text = render(&picture);
    assert!(!text.contains("3600 runs") && text.contains("?hold=7d"), "{text}");
}

#[test]
fn places_are_percentages_and_nothing_stands_outside() {
    let picture = Holders::of("outbound", &line(), Extent::Day, NOW, EN);
    for bar in picture.lanes.iter().flat_map(|lane| &lane.bars) {
        let number = |text: &str| text.trim_end_matches('%').parse::<f64>().expect("a number");
        let (x, width) = (number(&bar.x), number(&bar.width));
        assert!(x >= 0.0 && width > 0.0 && x + width <= 100.001, "{bar:?}");
    }
    // 5 h ago of 24 h, one hour long.
    let node = picture.lanes.iter().find(|lane| lane.name == "node-a").expect("a lane");
    assert_eq!((node.bars[0].x.as_str(), node.bars[0].width.as_str()), ("79.166%", "4.167%"));
    assert_eq!(node.bars[0].kind, "many");
}

#[test]
fn a_thousand_runs_of_a_week_are_few_bars() {
    let spans: Vec<_> = (0..1_000_i64)
        .map(|nth| span(nth as u64 + 1, "node-a", NOW.0 - (1_000 - nth) * 600_000, 400_000, 1, 0))
        .collect();
    let line = Timeline { since: Some(StoreTime(0)), spans, ..Timeline::default() };
    let picture = Holders::of("outbound", &line, Extent::Week, NOW, EN);
    let text = render(&picture);
    assert!(text.matches("<rect").count() < 1_000, "{}", text.len());
    assert!(picture.lines.len() <= 100 && picture.left_out > 0);
}

#[test]
fn the_table_tells_what_the_picture_shows() {
    let text = html(Extent::Day, Language::En);
    let table = text.split("<table").nth(1).expect("a table");
    for told in ["held by node-a", "wanted by li", "forbidden by ada", "nobody", "3,600 runs"] {
        assert!(table.contains(told) || table.contains(&told.replace(',', "")), "{told}: {table}");
    }
    assert!(table.contains("from node-a in 7 ms"), "{table}");
}

#[test]
fn share_is_rounded_down() {
    let spans = vec![span(1, "node-a", NOW.0 - HOUR, 1_000, 1_000, 1)];
    let line = Timeline { spans, ..Timeline::default() };
    let picture = Holders::of("outbound", &line, Extent::Day, NOW, EN);
    let share = picture.share.expect("runs");
    assert!(share.contains("99.9"), "{share}");
}
