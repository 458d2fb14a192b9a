//! The page of alerts with made-up data.

use super::*;
use crate::pages::alerts::AlertsPage;
use soloist_view::alerts::{
    AlertView, AlertsView, ChannelView, OnView, PastView, SentView, TriedView,
};
use soloist_view::words::{At, Piece};

fn frame_of(lang: Language, theme: &str) -> Frame {
    frame(lang, theme, "alerts", &say(lang, "alerts-title", &[]))
}

pub(super) fn empty(lang: Language, theme: &str) -> String {
    let none =
        AlertsView { alerts: Vec::new(), channels: Vec::new(), past: Vec::new(), sender: None };
    whole(&AlertsPage::of(frame_of(lang, theme), Some(&none), (true, true)))
}

pub(super) fn page(lang: Language, theme: &str) -> String {
    let text = |en: &str, zh: &str| if lang == Language::En { en } else { zh }.to_owned();
    let pieces = |en: &str, zh: &str| vec![Piece::Text(text(en, zh))];
    let on = OnView {
        job: Some("outbound".to_owned()),
        node: None,
        source: None,
        since: At(before(600)),
        muted: false,
        text: text(
            "Outbound shipping (outbound) is wanted and has not been running since 09:12. No living node may run it.",
            "“出库任务（outbound）”应当运行，但自 09:12 起没有运行。没有可用的节点。",
        ),
        pieces: pieces(
            "Outbound shipping (outbound) is wanted and has not been running since 09:12. No living node may run it.",
            "“出库任务（outbound）”应当运行，但自 09:12 起没有运行。没有可用的节点。",
        ),
        sent: vec![
            SentView { channel: "ops".to_owned(), begin: Some(At(before(570))) },
            SentView { channel: "wecom-night-shift".to_owned(), begin: None },
        ],
    };
    let lost = OnView {
        job: None,
        node: Some("node-c".to_owned()),
        since: At(before(60)),
        muted: true,
        text: text(
            "Node node-c has not reported since 09:21: it is dead or cut off.",
            "节点 node-c 自 09:21 起没有消息，可能已宕机或断网。",
        ),
        pieces: pieces(
            "Node node-c has not reported since 09:21: it is dead or cut off.",
            "节点 node-c 自 09:21 起没有消息，可能已宕机或断网。",
        ),
        sent: vec![SentView { channel: "ops".to_owned(), begin: None }],
        ..on.clone()
    };
    let rule = |name: &str, when: &str, jobs: &[&str], on: Vec<OnView>, muted: bool| AlertView {
        name: name.to_owned(),
        when: when.to_owned(),
        for_ms: 30_000,
        jobs: jobs.iter().map(|job| (*job).to_owned()).collect(),
        to: vec!["ops".to_owned(), "wecom-night-shift".to_owned()],
        on,
        muted_until: muted.then(|| At(before(-7_200))),
    };
    let channel = |name: &str, kind: &str, last: Option<(bool, Option<&str>)>| ChannelView {
        name: name.to_owned(),
        kind: kind.to_owned(),
        last: last.map(|(ok, error)| TriedView {
            at: At(before(570)),
            ok,
            error: error.map(str::to_owned),
        }),
        lost_since: None,
        pieces: Vec::new(),
    };
    let past = |alert: &str, began: i64, ended: i64| PastView {
        alert: alert.to_owned(),
        job: Some("labels".to_owned()),
        node: None,
        source: None,
        since: At(before(began)),
        over: At(before(ended)),
        text: text("Labels (labels) crashes repeatedly.", "“打印标签（labels）”反复崩溃。"),
        pieces: pieces("Labels (labels) crashes repeatedly.", "“打印标签（labels）”反复崩溃。"),
    };
    let view = AlertsView {
        alerts: vec![
            rule("wanted_not_running", "wanted_not_running", &["*"], vec![on], false),
            rule("node_lost", "node_lost", &["*"], vec![lost], true),
            rule("shipping-loop", "crash_loop", &["outbound", "labels"], Vec::new(), false),
        ],
        channels: vec![
            channel("mail", "mail", None),
            channel("ops", "webhook", Some((true, None))),
            channel(
                "wecom-night-shift",
                "wecom",
                Some((false, Some("503 Service Unavailable upstream connect error"))),
            ),
        ],
        past: vec![past("shipping-loop", 9_000, 8_400), past("shipping-loop", 90_000, 86_000)],
        sender: Some("node-a".to_owned()),
    };
    let page = AlertsPage::of(frame_of(lang, theme), Some(&view), (true, true));
    whole(&page)
}
