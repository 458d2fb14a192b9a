//! `log_lines` and `log_bytes`: how much output of each job is kept.

use std::ops::RangeInclusive;

use super::document::Section;
use super::doors::given;
use super::load::Environment;
use soloist_domain::log::LogBounds;

/// Both bounds; `None` when one of them is wrong, which is noted.
pub(super) fn read(root: &Section<'_>, env: Environment<'_>) -> Option<LogBounds> {
    let mut log = LogBounds::default();
    let lines = number(root, env, "log_lines", "lines", &LogBounds::LINES, &mut log.lines);
    let bytes = number(root, env, "log_bytes", "bytes", &LogBounds::BYTES, &mut log.bytes);
    (lines && bytes).then_some(log)
}

fn number(
    root: &Section<'_>,
    env: Environment<'_>,
    key: &'static str,
    unit: &str,
    range: &RangeInclusive<u64>,
    into: &mut u64,
) -> bool {
    let (least, most) = (range.start(), range.end());
    let meaning = format!("use a whole number of {unit} from {least} to {most}");
    let mut good = true;
    let read = given(root, env, key, false, |field| match field.integer::<u64>(0, &meaning) {
        Some(number) if range.contains(&number) => *into = number,
        Some(number) => {
            field.wrong(format!("{number} is out of range: {meaning}"));
            good = false;
        }
        None => good = false,
    });
    read && good
}
