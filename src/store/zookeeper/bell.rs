//! Wakes: who is woken stands in the name of a node that is made and deleted in one step. The watch of every process hears that it was made, in
//! order and with all that must be known; nothing is read for it, and nothing stays.

use zookeeper_client::CreateMode;

use super::Locks;
use crate::domain::name::Waiter;

pub(super) const WAKES: &str = "/wakes";
/// Of the waiters in one name; so a path stays below 8,000 bytes.
const MOST: usize = 30;

/// The waiters as a name: numbered, so that no two wakes are one node.
fn name(waiters: &[Waiter]) -> String {
    let escaped =
        |waiter: &Waiter| waiter.0.replace('%', "%25").replace('/', "%2F").replace(',', "%2C");
    let waiters: Vec<String> = waiters.iter().map(escaped).collect();
    format!("{WAKES}/{},{}", ulid::Ulid::generate(), waiters.join(","))
}

/// The way back; nothing if it is no such name.
pub(super) fn woken(path: &str) -> Option<Vec<Waiter>> {
    let name = path.strip_prefix(WAKES)?.strip_prefix('/')?;
    let plain =
        |text: &str| Waiter(text.replace("%2C", ",").replace("%2F", "/").replace("%25", "%"));
    Some(name.split(',').skip(1).map(plain).collect())
}

impl Locks {
    /// Tells every process that it is the turn of these waiters; false when that failed, or it is not known.
    pub(super) async fn wake(&self, waiters: &[Waiter]) -> bool {
        let Ok(looking) = self.ensemble.looking().await else { return false };
        let options = CreateMode::Persistent.with_acls(self.ensemble.acls());
        for some in waiters.chunks(MOST) {
            let name = name(some);
            let mut writer = looking.client.new_multi_writer();
            let filled = writer
                .add_create(&name, b"", &options)
                .and_then(|()| writer.add_delete(&name, None));
            if filled.is_err() || self.ensemble.within(writer.commit()).await.is_err() {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_woken_is_read_from_the_name() {
        let waiters: Vec<Waiter> =
            ["node-a/0af3/1", "odd,name%2F/x/22"].map(|one| Waiter(one.to_owned())).to_vec();
        let name = name(&waiters);
        assert_eq!(name.matches('/').count(), 2, "{name}");
        assert_eq!(woken(&name), Some(waiters));
        assert_eq!(woken("/leases/outbound"), None);
        assert_eq!(woken(WAKES), None);
    }
}
