//! The rows of `schedules.md` 3.1 and 3.2, as fixed expectations.

use super::*;

#[test]
fn a_fixed_time_in_the_gap_is_due_once_at_its_end_and_in_the_fold_once_the_first_time() {
    let daily = cron("30 2 * * *", "Europe/Berlin");
    let gap = daily.after(at("2026-03-28T12:00:00Z")).unwrap();
    assert_eq!(gap.name.0, "job@2026-03-29T02:30+01:00[Europe/Berlin]");
    assert_eq!(gap.due, at("2026-03-29T01:00:00Z"));
    assert_eq!(gap.due, gap.starts);
}
