//! The configuration's jobs as definitions that nodes tell each other, and back: a job that only other nodes define.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Config, JobConfig, Repeat, Runner, Scheduled, Secret, Title, address};
use soloist_domain::backoff::Backoff;
use soloist_domain::definition::{Definition, Definitions, ZONE_TABLE};
use soloist_domain::lease::Timing;
use soloist_domain::name::JobName;
use soloist_domain::time::{StoreTime, millis};

/// What a lease is taken for of which its node tells an impossible length.
const LEASE: Duration = Duration::from_secs(5);

impl Config {
    /// Every job as this node tells it at `now`, which only says of which month it is.
    #[must_use]
    pub fn definitions(&self, now: StoreTime) -> Definitions {
        let base = self.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let base = address::absolute(base, Path::new("."));
        self.jobs.iter().map(|job| (job.name.clone(), job.definition(&base, now))).collect()
    }
}

impl JobConfig {
    /// As this node reports it. A directory under `base`, the one of the file, is reported relative to it: the same file may
    /// lie elsewhere on another machine.
    #[must_use]
    pub fn definition(&self, base: &Path, now: StoreTime) -> Definition {
        // Taken apart, so that a new key cannot be forgotten here.
        let Self {
            name,
            title,
            runner,
            elsewhere: _,
            group,
            command,
            dir,
            env,
            timing,
            stop_grace,
            repeat,
            schedule,
            backoff,
            max_runtime,
            max_silence,
            // Of another part of the file.
            stuck_after: _,
            missing_after: _,
            nodes,
            operators,
            viewers,
            user,
            secrets,
            rotation,
            heartbeat_url,
        } = self;
        let Backoff { first, max, give_up_after, min_uptime } = backoff;
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names
        };
        let secrets: std::collections::BTreeMap<_, _> = secrets
            .iter()
            .map(|(name, file)| (name, file.strip_prefix(base).unwrap_or(file).to_string_lossy()))
            .collect();
        let scheduled = schedule.as_ref().map_or(Value::Null, |scheduled| {
            json!([
                scheduled.law.text,
                format!("{:?}", scheduled.law.rules),
                format!("{:?}", scheduled.params),
            ])
        });
        let keys = [
            ("schedule", scheduled),
            ("title", json!([title.en, title.zh])),
            ("runner", json!(runner.as_str())),
            ("group", json!(group)),
            ("command", json!(command)),
            ("dir", json!(dir.strip_prefix(base).unwrap_or(dir).to_string_lossy())),
            ("env", json!(env)),
            ("lease_ttl", length(timing.ttl)),
            ("stop_grace", length(*stop_grace)),
            (
                "repeat",
                match repeat {
                    Repeat::After(pause) => length(*pause),
                    Repeat::Never => json!("never"),
                },
            ),
            ("min_uptime", length(*min_uptime)),
            ("backoff", json!([length(*first), length(*max)])),
            ("give_up_after", json!(give_up_after)),
            ("max_runtime", json!(max_runtime.map(millis))),
            ("max_silence", json!(max_silence.map(millis))),
            ("nodes", json!(sorted(nodes))),
            ("operators", json!(sorted(operators))),
            ("viewers", json!(sorted(viewers))),
            ("user", json!(user)),
            // Where they are; a value is read when a run starts and is never told.
            ("secrets", json!(secrets)),
            ("rotation", json!(rotation.as_ref().map(ToString::to_string))),
            ("heartbeat_url", json!(heartbeat_url.as_ref().map(Secret::reveal))),
        ];
        let hash = |key: &str, value: &Value| short_hash(&[name.as_str(), key, &value.to_string()]);
        let hashes = keys.each_ref().map(|(key, value)| hash(key, value));
        let names_of_env = hash("env", &json!(env.keys().collect::<Vec<_>>()));
        let has_heartbeat = hash("heartbeat_url", &json!(heartbeat_url.is_some()));
        let shown: Vec<&str> = keys
            .iter()
            .zip(&hashes)
            .map(|((key, _), hash)| match *key {
                "env" => &names_of_env,
                "heartbeat_url" => &has_heartbeat,
                _ => hash.as_str(),
            })
            .collect();
        Definition {
            title_en: title.en.clone(),
            title_zh: title.zh.clone(),
            lease_ttl_ms: millis(timing.ttl),
            min_uptime_ms: millis(*min_uptime),
            stop_grace_ms: millis(*stop_grace),
            external: self.is_external(),
            group: group.clone(),
            max_runtime_ms: max_runtime.map(millis),
            nodes: nodes.clone(),
            operators: operators.clone(),
            viewers: viewers.clone(),
            rotation: rotation.clone(),
            schedule: schedule.as_ref().map(|scheduled| scheduled.law.text.clone()),
            hash: short_hash(&shown),
            keys: keys
                .iter()
                .map(|(key, _)| (*key).to_owned())
                .zip(hashes)
                .chain(self.zone_table(now).map(|told| (ZONE_TABLE.to_owned(), told)))
                .collect(),
        }
    }

    /// What this machine's table says of the zone of its schedule, from the month of `now` on for 400 days: nodes tell the same if their
    /// tables give the same times there, whatever the versions are.
    fn zone_table(&self, now: StoreTime) -> Option<String> {
        let scheduled = self.schedule.as_ref()?;
        let month = month(now);
        let changes = scheduled.plan.zone_changes(month, 400);
        let name = jiff::Timestamp::from_millisecond(month.0).ok()?.strftime("%Y-%m").to_string();
        (!changes.is_empty()).then(|| format!("{name}:{changes}"))
    }

    /// A job that only other nodes define, as they tell it: to be shown, switched and moved, never to be run here.
    #[must_use]
    pub fn elsewhere(name: &JobName, told: &Definition) -> Self {
        let second = Duration::from_secs(1);
        let timing = Timing::from_ttl(Duration::from_millis(told.lease_ttl_ms));
        Self {
            name: name.clone(),
            title: Title { en: told.title_en.clone(), zh: told.title_zh.clone() },
            runner: if told.external { Runner::External } else { Runner::Soloist },
            elsewhere: true,
            group: told.group.clone(),
            command: Vec::new(),
            dir: PathBuf::new(),
            env: std::collections::BTreeMap::new(),
            timing: timing.unwrap_or_else(|_| usual()),
            stop_grace: Duration::from_millis(told.stop_grace_ms),
            repeat: Repeat::Never,
            schedule: told.schedule.as_deref().and_then(|text| Scheduled::told(name, text)),
            backoff: Backoff {
                first: second,
                max: second,
                give_up_after: 0,
                min_uptime: Duration::from_millis(told.min_uptime_ms),
            },
            max_runtime: told.max_runtime_ms.map(Duration::from_millis),
            max_silence: None,
            stuck_after: None,
            missing_after: None,
            nodes: told.nodes.clone(),
            operators: told.operators.clone(),
            viewers: told.viewers.clone(),
            user: None,
            secrets: std::collections::BTreeMap::new(),
            rotation: told.rotation.clone(),
            heartbeat_url: None,
        }
    }

    /// Only other nodes define it.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }
}

/// When the month of `at` began, in UTC.
fn month(at: StoreTime) -> StoreTime {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    let day = at.to_zoned(jiff::tz::TimeZone::UTC).first_of_month();
    let begin = day.and_then(|day| day.start_of_day());
    StoreTime(begin.map_or(0, |begin| begin.timestamp().as_millisecond()))
}

/// A short hash of texts; no two lists of texts have one.
fn short_hash(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    let bytes = hash.finalize();
    let first: u64 = bytes.iter().take(8).fold(0, |all, byte| (all << 8) | u64::from(*byte));
    format!("{first:016x}")
}

/// One hash of everything that a node defines.
#[must_use]
pub fn digest(definitions: &Definitions) -> String {
    let mut texts = Vec::new();
    for (name, definition) in definitions {
        texts.push(name.as_str());
        texts.extend(definition.keys.iter().flat_map(|(key, hash)| [key.as_str(), hash.as_str()]));
    }
    short_hash(&texts)
}

fn usual() -> Timing {
    #[expect(clippy::expect_used, reason = "the default of the configuration is safe")]
    Timing::from_ttl(LEASE).expect("five seconds are enough")
}

fn length(duration: Duration) -> Value {
    json!(millis(duration))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Overrides, examine};

    /// In the middle of November 2026.
    const NOW: StoreTime = StoreTime(1_795_000_000_000);

    fn read(dir: &Path, job: &str) -> Config {
        let file = dir.join("soloist.toml");
        let text = format!("[[job]]\nname = \"outbound\"\n{job}");
        std::fs::write(&file, text).unwrap();
        examine(Some(&file), Overrides::default(), &|_| None).config.unwrap()
    }

    fn told(dir: &Path, job: &str) -> Definition {
        read(dir, job).definitions(NOW).into_values().next().unwrap()
    }

    #[test]
    fn the_same_text_in_another_directory_is_the_same_definition() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let text = "command = [\"true\"]\nnodes = [\"node-a\", \"node-b\"]\n";
        let other = "nodes = [\"node-b\", \"node-a\"]\ncommand = [\"true\"]\n";
        let left = told(here.path(), text);
        assert_eq!(left.keys, told(there.path(), other).keys);
        assert_ne!(left.keys, told(there.path(), "command = [\"false\"]\n").keys);
    }

    #[test]
    fn every_key_of_a_job_is_told_and_no_secret_is_in_what_everybody_sees() {
        let dir = tempfile::tempdir().unwrap();
        let job = |secret: &str| {
            told(dir.path(), &format!("command = [\"true\"]\nenv = {{ PIN = \"{secret}\" }}\n"))
        };
        let (left, right) = (job("1234"), job("4321"));
        assert_ne!(left.keys["env"], right.keys["env"], "the nodes notice it");
        assert_eq!(left.hash, right.hash, "nobody can try four digits on what he is shown");
        assert!(!serde_json::to_string(&left).unwrap().contains("1234"));
    }

    #[test]
    fn the_zone_table_is_told_of_jobs_with_a_zone_the_same_all_month() {
        let dir = tempfile::tempdir().unwrap();
        let cron = "command = [\"true\"]\nschedule = \"30 2 * * *\"\nzone = \"Europe/Berlin\"\n";
        let table = |job: &str, now: i64| {
            let definitions = read(dir.path(), job).definitions(StoreTime(now));
            definitions.into_values().next().unwrap().keys.get(ZONE_TABLE).cloned()
        };
        let told = table(cron, NOW.0).unwrap();
        assert!(told.starts_with("2026-11:") && told.len() > 12, "{told}");
        let day = 86_400_000;
        assert_eq!(table(cron, NOW.0 + 5 * day), Some(told.clone()));
        assert!(table(cron, NOW.0 + 20 * day).unwrap().starts_with("2026-12:"));
        let other = table(&cron.replace("Berlin", "London"), NOW.0).unwrap();
        assert!(other != told && other.starts_with("2026-11:"));
        assert_eq!(table("command = [\"true\"]\nevery = \"1h\"\n", NOW.0), None);
        assert_eq!(table("command = [\"true\"]\n", NOW.0), None);
    }

    #[test]
    fn a_heartbeat_is_told_and_its_address_shown_to_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let job = |key: &str| {
            let url = format!("heartbeat_url = \"https://hc.example.org/{key}\"\n");
            told(dir.path(), &format!("command = [\"true\"]\n{url}"))
        };
        let (left, right) = (job("one"), job("two"));
        assert_ne!(left.keys["heartbeat_url"], right.keys["heartbeat_url"]);
        assert_eq!(left.hash, right.hash);
        assert_ne!(left.hash, told(dir.path(), "command = [\"true\"]\n").hash);
        assert!(!serde_json::to_string(&left).unwrap().contains("example.org"));
    }

    #[test]
    fn a_job_that_others_define_can_be_shown_and_not_be_run() {
        let dir = tempfile::tempdir().unwrap();
        let text = "command = [\"true\"]\nlease_ttl = \"9s\"\noperators = [\"li\"]\ntitle = { en = \"Out\", zh = \"出库\" }\nschedule = \"30 2 * * 1-5\"\nzone = \"UTC\"\n";
        let config = read(dir.path(), text);
        let told = config.definitions(NOW).into_values().next().unwrap();
        let job = JobConfig::elsewhere(&config.jobs[0].name, &told);
        assert!(job.is_elsewhere() && !config.jobs[0].is_elsewhere());
        assert_eq!((&job.title, job.timing), (&config.jobs[0].title, config.jobs[0].timing));
        assert_eq!(job.operators, ["li"]);
        let text = |job: &JobConfig| job.schedule.as_ref().map(|one| one.law.text.clone());
        assert_eq!(text(&job).as_deref(), Some("30 2 * * 1-5 [UTC]"), "its ticks are shown");
        assert_eq!(text(&job), text(&config.jobs[0]));
    }
}
