//! Independent keys of `[[job]]`: its group on the page, and how long a run may last or be silent.

use std::time::Duration;

use super::document::Section;

/// The shortest limit of a run.
const LEAST: Duration = Duration::from_secs(1);
/// A heading must fit a line.
const LONGEST_GROUP: usize = 64;

/// `group`: any text of 1 to 64 characters.
pub(super) fn group(section: &Section<'_>) -> Option<Option<String>> {
    let Some(field) = section.get("group") else { return Some(None) };
    let text = field.text("write group = \"Warehouse\", the heading on the page")?;
    let wrong = match text.chars().count() {
        _ if text.trim().is_empty() => "is empty: write a heading, or leave it out".to_owned(),
        _ if text.chars().any(char::is_control) => {
            "has a control character: a heading is one line of text".to_owned()
        }
        long if long > LONGEST_GROUP => {
            format!("has {long} characters: use {LONGEST_GROUP} at most")
        }
        _ => return Some(Some(text.to_owned())),
    };
    field.wrong(wrong);
    None
}

/// `max_runtime`: after which a run is stopped.
pub(super) fn max_runtime(section: &Section<'_>) -> Option<Option<Duration>> {
    limit(section, "max_runtime")
}

/// `max_silence`: how long a run may say nothing.
pub(super) fn max_silence(section: &Section<'_>) -> Option<Option<Duration>> {
    limit(section, "max_silence")
}

fn limit(section: &Section<'_>, key: &str) -> Option<Option<Duration>> {
    let Some(field) = section.get(key) else { return Some(None) };
    let limit = field.duration()?;
    if limit < LEAST {
        field.wrong(format!("{limit:?} is too short for a run: use 1s or more, or leave it out"));
        return None;
    }
    Some(Some(limit))
}

/// Notes a silence that can never end a run, because the run has ended before.
pub(super) fn compare(
    section: &Section<'_>,
    silence: Option<Option<Duration>>,
    runtime: Option<Duration>,
) {
    if let (Some(field), Some(Some(silence)), Some(runtime)) =
        (section.get("max_silence"), silence, runtime)
        && silence >= runtime
    {
        field.wrong(format!(
            "{silence:?} is not less than max_runtime {runtime:?}, so it would never count: make it shorter, or leave it out"
        ));
    }
}
