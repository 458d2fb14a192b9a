//! The order in which jobs are shown: by group, in the order in which groups first appear; those without one come last.

use super::JobConfig;

/// `items` in that order; within a group they stay in theirs. `job` says of which job an item is.
pub fn in_groups<T>(items: &mut [T], job: impl Fn(&T) -> &JobConfig) {
    let mut groups: Vec<String> = Vec::new();
    for group in items.iter().filter_map(|item| job(item).group.as_ref()) {
        if !groups.contains(group) {
            groups.push(group.clone());
        }
    }
    let place = |group: &String| groups.iter().position(|known| known == group);
    // Stable; one that has no group comes after all that have one.
    items.sort_by_key(|item| job(item).group.as_ref().and_then(place).unwrap_or(usize::MAX));
}
