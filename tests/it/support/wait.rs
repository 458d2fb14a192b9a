//! Waiting for something to become true, with an end to the patience. The only place where tests poll.

use std::time::Duration;

use soloist::clock;

/// How long a test waits for what should happen within milliseconds: a full machine is slow, never that slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until `look` answers something; `what` is what the failure says was waited for.
///
/// # Panics
/// After [`PATIENCE`].
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = clock::boot();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(clock::boot().since(begun) < PATIENCE, "waited {PATIENCE:?} in vain until {what}");
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
