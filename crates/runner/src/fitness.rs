//! Which jobs cannot be started on this machine now, and why: a directory that is not mounted, a missing program or user. This node does
//! not offer them, so another node runs them; a run continues. When the machine is repaired they are offered again.
//!
//! It checks in a thread of its own. A file system that does not answer blocks only that thread: the last result stays, and a start that
//! fails says why in the log of its job. Secrets are not checked here: they are read at each start.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use soloist_config::{Config, Current, Found};
use soloist_domain::name::JobName;

/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// More of a reason is not told, in characters: it goes along with every report.
const LONGEST: usize = 300;
/// So many for all of them, if that leaves each what names its key.
const ALL: usize = 32 * 1024;
const SHORTEST: usize = 40;

/// Why each of these jobs cannot be started here.
pub type Unfit = BTreeMap<JobName, String>;

/// What this machine lacks for the jobs that may run on this node; `path` is the `PATH` of scripts.
#[must_use]
pub fn look(config: &Config, path: &OsStr) -> Unfit {
    let found = Found::default();
    let own = config.jobs.iter().filter(|job| job.runs_on(&config.node));
    let mut unfit: Unfit =
        own.filter_map(|job| Some((job.name.clone(), found.obstacle(job, path)?))).collect();
    let most = (ALL / unfit.len().max(1)).clamp(SHORTEST, LONGEST);
    for why in unfit.values_mut() {
        *why = why.chars().take(most).collect();
    }
    unfit
}

/// Looks again and again, and at once by a newer configuration, whose own warnings say what it finds then.
pub async fn follow(current: Current, path: OsString, unfit: watch::Sender<Arc<Unfit>>) {
    let mut config = current.subscribe();
    loop {
        let is_newer = tokio::select! {
            Ok(()) = config.changed() => true,
            () = tokio::time::sleep(LOOK_EVERY) => false,
        };
        let (now, path) = (Arc::clone(&config.borrow_and_update()), path.clone());
        let Ok(found) = tokio::task::spawn_blocking(move || look(&now, &path)).await else {
            continue;
        };
        let before = Arc::clone(&unfit.borrow());
        if *before == found {
            continue;
        }
        if !is_newer {
            say(&before, &found);
        }
        unfit.send_replace(Arc::new(found));
    }
}

fn say(before: &Unfit, now: &Unfit) {
    for (job, why) in now.iter().filter(|(job, why)| before.get(*job) != Some(*why)) {
        tracing::warn!(%job, "the job is not started here until this is mended: {why}");
    }
    for job in before.keys().filter(|job| !now.contains_key(*job)) {
        tracing::info!(%job, "nothing is in the way any more: the job may be started here");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_config::{Overrides, examine};

    #[test]
    fn what_a_machine_lacks_keeps_that_job_alone_from_it_until_it_is_there() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("soloist.toml");
        let job = |name: &str, more: &str| format!("[[job]]\nname = {name:?}\n{more}\n");
        let here = "command = [\"true\"]";
        let text = [
            job("well", here),
            job("unmounted", &format!("{here}\ndir = \"volume\"")),
            job("a-file", &format!("{here}\ndir = \"soloist.toml\"")),
            job("no-program", "command = [\"no-such-program\"]"),
            job("no-script", "command = [\"./ship.sh\"]"),
            job("no-user", &format!("{here}\nuser = \"no-such-user\"")),
            job("elsewhere", "command = [\"no-such-program\"]\nnodes = [\"node-b\"]"),
            job("program", "runner = \"external\""),
        ];
        std::fs::write(&file, text.concat()).unwrap();
        let over = Overrides { node: Some("node-a".to_owned()), ..Overrides::default() };
        let config = examine(Some(&file), over, &|_| None).config.unwrap();
        let path = OsStr::new("/usr/bin:/bin");
        let found = look(&config, path);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(job, why)| (job.as_str(), why.as_str())).collect();
        for ((job, why), (expected, part)) in found.iter().zip([
            ("a-file", "dir: "),
            ("no-program", "command: \"no-such-program\" is not found"),
            ("no-script", "command: "),
            ("no-user", "user: there is no user"),
            ("unmounted", "dir: directory "),
        ]) {
            assert!(*job == expected && why.starts_with(part), "{job}: {why}");
        }
        assert_eq!(found.len(), 5, "{found:?}");
        std::fs::create_dir(place.path().join("volume")).unwrap();
        assert!(!look(&config, path).contains_key(&"unmounted".parse().unwrap()));
    }
}
