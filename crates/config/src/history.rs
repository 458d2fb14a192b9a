//! `history`: how long runs and participations of a job are kept.

use std::time::Duration;

use super::document::parse_duration;

/// When the configuration does not say.
pub(super) const DEFAULT: Duration = Duration::from_secs(30 * 24 * 3_600);
/// The page shows a week in one look, so less than an hour would be none.
const LEAST: Duration = Duration::from_secs(3_600);
/// More would not be told any better: the number of spans has a bound of its own.
const MOST: Duration = Duration::from_secs(366 * 24 * 3_600);

/// The time, if it is one.
///
/// # Errors
/// What is wrong with it, and what to write.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let kept = parse_duration(text)?;
    if (LEAST..=MOST).contains(&kept) {
        return Ok(kept);
    }
    Err(format!("{text:?} is out of range: write history = \"30d\", from \"1h\" to \"366d\""))
}
