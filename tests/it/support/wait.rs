//! Waiting for something to become true, with an end to the patience. The only place where tests poll.

use std::time::Duration;

use soloist::clock;

/// How long a test waits for what should happen within milliseconds: a full machine is slow, never that slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until `look` answers something; `what` is what the failure says was waited for.
///
/// # Panics
/// After [`PATIENCE`].
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, look).unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain until {what}"))
}

/// Looks until `look` answers something; `None` when it has not done so for `patience`.
pub(crate) fn within<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = clock::boot();
    loop {
        let found = look();
        if found.is_some() || clock::boot().since(begun) >= patience {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// As [`until`], for tests that are asynchronous and must let others run meanwhile.
///
/// # Panics
/// After [`PATIENCE`].
pub(crate) async fn until_async<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = clock::boot();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(clock::boot().since(begun) < PATIENCE, "waited {PATIENCE:?} in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
