//! A rendered page in the zone of its reader: the text of each `<time>` is said again.
//!
//! Fragments are rendered once for all readers, in this machine's zone, so the zone is put in at the end. Only tags of our own
//! templates are found: what people wrote is escaped and holds no tag. What is pushed later is said again by `clock.js`.

use soloist_domain::time::StoreTime;
use soloist_view::words::{Language, Zone};

/// `html` with each instant as it is in `zone`; `now` decides what is today.
#[must_use]
pub(crate) fn in_zone(html: &str, zone: &Zone, lang: Language, now: StoreTime) -> String {
    let mut out = String::with_capacity(html.len() + 256);
    let mut rest = html;
    while let Some(end) = rest.find("<time ").and_then(|at| Some(at + rest[at..].find('>')? + 1)) {
        let (before, after) = rest.split_at(end);
        out.push_str(before);
        rest = after;
        let tag = &before[before.rfind("<time ").unwrap_or(0)..];
        let ms = attribute(tag, "data-ms").and_then(|ms| ms.parse().ok());
        let told = attribute(tag, "data-clock").zip(ms);
        if let (Some((form, ms)), Some(text)) = (told, rest.find('<')) {
            out.push_str(&zone.told(lang, StoreTime(ms), now, form));
            rest = &rest[text..];
        }
    }
    out.push_str(rest);
    out
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = tag.split_once(&format!(" {name}=\""))?;
    value.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::render;
    use soloist_view::words::{Piece, day_clock, second};

    #[derive(askama::Template)]
    #[template(
        source = "{% import \"parts/words.html\" as words %}<p>{% call words::pieces(list) %}{% endcall %}</p>",
        ext = "html"
    )]
    struct Sentence {
        list: Vec<Piece>,
    }

    #[test]
    fn each_instant_is_said_in_the_zone_and_nothing_else_changes() {
        let at = StoreTime(1_777_924_800_000);
        let shanghai = Zone::named("Asia/Shanghai").expect("this machine has the IANA database");
        let told = |list| in_zone(&render(&Sentence { list }), &shanghai, Language::En, at);
        let html =
            told(vec![day_clock(at), Piece::text(" <time data-clock=\"day\" data-ms=\"0\">x")]);
        assert!(html.contains(">2026-05-05 04:00:00</time> "), "{html}");
        assert!(html.contains("datetime=\"2026-05-04T20:00:00.000Z\""), "{html}");
        assert!(!html.contains("1970"), "what people wrote is no instant: {html}");
        let two = told(vec![second(at), Piece::text(" – "), second(StoreTime(at.0 + 61_000))]);
        assert!(
            two.contains(">04:00:00</time> – <time ") && two.contains(">04:01:01</time></p>"),
            "{two}"
        );
        for odd in ["", "<time >x</time>", "<time datetime=\"x\">x</time>", "<time data-ms=\"1\""] {
            assert_eq!(in_zone(odd, &shanghai, Language::En, at), odd);
        }
    }
}
