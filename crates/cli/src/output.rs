//! What is printed: aligned tables whose states may have colours (`colour`), JSON, and instants as people and programs read them.
//!
//! Everything goes through [`print()`], so that a reader who leaves early (`| head`) is no error.

use std::io::Write as _;

use serde::Serialize;

use super::Failure;
use super::colour::painted;
use soloist_view::words::{At, Zone, is_hidden};

/// Prints `text` with a line end, if it has none.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Prints `value` as JSON on several lines.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&json(value, false)?)
}

/// `value` as JSON, for a person or on one line for a program that reads as it comes.
pub(super) fn json(value: &impl Serialize, one_line: bool) -> Result<String, Failure> {
    let text = match one_line {
        true => serde_json::to_string(value),
        false => serde_json::to_string_pretty(value),
    };
    let text = text.map_err(|error| Failure::Failed(format!("cannot write JSON: {error}")))?;
    Ok(escaped(text))
}

/// The same JSON with what a terminal could obey, or a reader not see, as `\u202e`: it stands in strings only.
fn escaped(text: String) -> String {
    if !text.chars().any(|c| is_hidden(c) && c != '\n') {
        return text;
    }
    let mut units = [0; 2];
    text.chars().fold(String::with_capacity(text.len() + 64), |mut out, c| {
        match is_hidden(c) && c != '\n' {
            true => c.encode_utf16(&mut units).iter().for_each(|unit| {
                out.push_str(&format!("\\u{unit:04x}"));
            }),
            false => out.push(c),
        }
        out
    })
}

/// The column that may have colours.
const STATE: &str = "STATE";

/// Rows under headings, each column as wide as its widest cell.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut lines = vec![headings.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| row.iter().map(|cell| visible(cell)).collect()));
    let widths: Vec<usize> = (0..headings.len())
        .map(|column| lines.iter().map(|line| width(&line[column])).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in &lines {
        let mut padded = String::new();
        for ((cell, wide), heading) in line.iter().zip(&widths).zip(headings) {
            padded.push_str(&if *heading == STATE { painted(cell) } else { cell.clone() });
            padded.push_str(&" ".repeat(wide - width(cell) + 2));
        }
        text.push_str(padded.trim_end());
        text.push('\n');
    }
    text
}

/// Columns of a terminal: Chinese, Japanese and Korean letters and full-width signs take two.
fn width(text: &str) -> usize {
    let wide = |c: char| matches!(u32::from(c), 0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD);
    text.chars().map(|c| if wide(c) { 2 } else { 1 }).sum()
}

/// What others wrote must not move the cursor or colour the terminal.
pub(super) fn visible(text: &str) -> String {
    soloist_view::words::visible(text).into_owned()
}

/// Local time, to the second.
pub(super) fn local(At(at): At) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map(|at| {
            let zoned = at.to_zoned(jiff::tz::TimeZone::system());
            zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
        })
        .unwrap_or_default()
}

/// The same of a job with a schedule, in the zone of that and with its offset.
pub(super) fn instant_in(zone: Option<&str>, at: At) -> String {
    zone.and_then(Zone::known).map_or_else(|| local(at), |zone| zone.stamped(at.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::time::StoreTime;

    #[test]
    fn columns_line_up_also_under_chinese_and_hostile_text() {
        let rows = [
            vec!["出库".to_owned(), "x".to_owned()],
            vec!["a\u{1b}[31m".to_owned(), "y".to_owned()],
        ];
        let text = table(&["JOB", "STATE"], &rows);
        assert_eq!(text, "JOB     STATE\n出库    x\na\u{fffd}[31m  y\n");
    }

    #[test]
    fn no_json_moves_a_cursor_or_turns_text_and_it_says_the_same() {
        let hostile = "a\u{9b}2J\u{7f}\u{202e}b\u{e0041}\u{1b}\n出库";
        for one_line in [false, true] {
            let text = json(&[hostile], one_line).unwrap();
            assert!(!text.chars().any(|c| is_hidden(c) && c != '\n'), "{text:?}");
            assert!(text.contains("\\u009b2J\\u007f\\u202eb\\udb40\\udc41"), "{text}");
            let read: Vec<String> = serde_json::from_str(&text).unwrap();
            assert_eq!(read, [hostile]);
        }
    }

    #[test]
    fn an_instant_of_a_job_with_a_schedule_has_its_zone() {
        let at = At(StoreTime(1_792_888_200_000));
        assert_eq!(instant_in(Some("Europe/Berlin"), at), "2026-10-25 02:30 +02:00");
        assert_eq!(instant_in(Some("Asia/Shanghai"), at), "2026-10-25 08:30 +08:00");
        assert_eq!(instant_in(None, at), local(at));
    }
}
