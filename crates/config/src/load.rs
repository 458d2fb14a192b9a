//! Finds the configuration and puts it together: command line over environment over file over defaults.
//!
//! The environment arrives as a function, so that a test owns it. Every value keeps its place until it is checked.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::Metadata;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::document::{self, Field, Report, Section};
use super::job::{self, Surroundings};
use super::problem::{Place, Problems};
use super::{
    Alerting, Config, JobConfig, LiveLimits, address, alerts, check, doors, history, log, oidc,
};
use soloist_domain::lease::Timing;
use soloist_domain::name::NodeName;
use soloist_process::parts::{self, Part};

/// Reads an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the command line says; it outranks the environment, which outranks the file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--store`; a relative SQLite path starts at the current directory.
    pub store: Option<String>,
    /// `--listen`.
    pub listen: Option<String>,
    /// `--node`.
    pub node: Option<String>,
    /// The name that a running node has, for when none is given; else one is made up.
    pub own_name: Option<NodeName>,
    /// For a command that runs no job and serves no page: only the file itself is read then, nothing else of this machine: no
    /// directory, program or user of a job, no secret and no certificate. An operator who reads the cluster's state may be any user of
    /// any machine.
    pub only_looks: bool,
}

/// A configuration that was checked as a whole.
#[derive(Debug)]
pub struct Examination {
    /// The configuration, or everything that is wrong with it.
    pub config: Result<Config, Problems>,
    /// What is allowed but deserves a thought.
    pub warnings: Problems,
    /// What the file says about having no jobs.
    pub without_jobs: WithoutJobs,
}

/// What a file says about having no jobs: a node that has some does not give all of them up because of a file that was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WithoutJobs {
    /// There is no word about it.
    #[default]
    Unsaid,
    /// `no_jobs = true`: it is meant.
    Meant,
    /// There is nothing in the file at all, or nothing but comments.
    Blank,
}

const FILE: &str = "soloist.toml";
const KEYS: [&str; 29] = [
    "no_jobs",
    "store",
    "coordination",
    "prefix",
    "listen",
    "public_url",
    "node",
    "lease_ttl",
    "lease_ttl_max",
    "lifeline",
    "history",
    "containment",
    "log_lines",
    "log_bytes",
    "live",
    "groups",
    "limits",
    "trusted_proxies",
    "local_proxy",
    "allowed_hosts",
    "allowed_origins",
    "tls",
    "oidc",
    "alert",
    "channel",
    "alert_zone",
    "zone",
    "heartbeat_url",
    "job",
];
const DEFAULT_STORE: &str = "sqlite:data/soloist.db";
const DEFAULT_LEASE: Duration = Duration::from_secs(5);
/// What programs may ask for, unless the configuration allows less.
const LONGEST_LEASE: Duration = Duration::from_secs(600);
const JOBS: &str = "begin each job with a line [[job]]";
const NO_JOBS: &str = "write no_jobs = true if this node is to have none";
const LIVE: &str = "write live = { sockets_per_node = 10000 }";

/// Loads and checks the configuration.
///
/// The file is `path` (`--config`), else `$SOLOIST_CONFIG`, else `soloist.toml` in the current directory if there is
/// one, else none: the defaults, without jobs.
///
/// # Errors
/// [`Problems`]: every one that was found, in the order of the file.
pub fn load(
    path: Option<&Path>,
    overrides: Overrides,
    env: Environment<'_>,
) -> Result<Config, Problems> {
    examine(path, overrides, env).config
}

/// As [`load`], with the warnings.
#[must_use]
pub fn examine(path: Option<&Path>, overrides: Overrides, env: Environment<'_>) -> Examination {
    // An empty variable is what a container's set-up makes of one that is not given.
    let env = &|key: &str| env(key).filter(|value| !value.is_empty());
    let file = match path.map(Path::to_owned).or_else(|| env("SOLOIST_CONFIG").map(PathBuf::from)) {
        Some(named) => Some(named),
        // Anything but its absence is a problem of that file.
        None => Some(PathBuf::from(FILE)).filter(|file| match file.symlink_metadata() {
            Ok(_) => true,
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }),
    };
    let (text, unreadable) = match &file {
        Some(file) => read(file, overrides.own_name.is_some()),
        None => (String::new(), None),
    };
    let report = Report::new(file.clone().unwrap_or_else(|| PathBuf::from(FILE)), &text);
    if let Some((place, why)) = unreadable {
        report.wrong(place.unwrap_or_else(|| report.whole_file()), "", why);
    }
    if file.as_deref().is_some_and(check::writable_by_others) {
        let why = "others may write this file, and with it run any command as this user: chmod o-w";
        report.warn(report.whole_file(), "", why);
    }
    // Without a usable file the command line and the environment are still checked.
    let empty = DeTable::new();
    let parsed = document::parse(&report, &text);
    let base = file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let root = Section {
        report: &report,
        prefix: String::new(),
        place: report.whole_file(),
        table: parsed.as_ref().map_or(&empty, |table| table.get_ref()),
    };
    let base = address::absolute(base, Path::new("."));
    let blank = file.is_some() && parsed.as_ref().is_some_and(|table| table.get_ref().is_empty());
    let no_jobs = root.get("no_jobs").and_then(|field| {
        let meant = field.flag(NO_JOBS)?;
        if meant && root.get("job").is_some() {
            field.wrong("goes not with [[job]]: remove it, or the jobs");
        }
        Some(meant)
    });
    let without_jobs = match no_jobs {
        Some(true) => WithoutJobs::Meant,
        _ if blank => WithoutJobs::Blank,
        _ => WithoutJobs::Unsaid,
    };
    let looks = overrides.only_looks;
    let config = Loader { root, env, overrides, base }.config(file);
    let (mut problems, mut warnings) =
        (RefCell::into_inner(report.problems), RefCell::into_inner(report.warnings));
    // A command that only looks does without single sign-on and mail. The person who repairs the file gets the same message from all.
    if !looks || !problems.is_empty() {
        problems.0.append(&mut RefCell::into_inner(report.lacking).0);
    }
    problems.sort();
    warnings.sort();
    let config = match config {
        Some(config) if problems.is_empty() => Ok(config),
        _ => Err(problems),
    };
    Examination { config, warnings, without_jobs }
}

type Unreadable = Option<(Option<Place>, String)>;

/// `again`: for a node that runs. Nobody may ever write into a pipe again from which it was started.
fn read(file: &Path, again: bool) -> (String, Unreadable) {
    let strange = |kind: &Metadata| !kind.is_file() && !kind.is_dir();
    if again && file.metadata().is_ok_and(|kind| strange(&kind)) {
        let why = "is no regular file: a pipe or a device is read at the start alone; put a file there, and send SIGHUP again";
        return (String::new(), Some((None, why.to_owned())));
    }
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            let why = format!("cannot be read: {error}; correct the path or the permissions");
            return (String::new(), Some((None, why)));
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
            let place = Place::File { path: file.to_owned(), line: Some(line), column: None };
            let why = "is not UTF-8: save the file in UTF-8".to_owned();
            (String::new(), Some((Some(place), why)))
        }
    }
}

struct Loader<'a> {
    root: Section<'a>,
    env: Environment<'a>,
    overrides: Overrides,
    /// The directory of the file, or the current one; absolute.
    base: PathBuf,
}

/// A setting and where it came from.
struct Given {
    key: &'static str,
    text: String,
    place: Place,
}

impl Loader<'_> {
    fn config(&self, file: Option<PathBuf>) -> Option<Config> {
        self.root.only(&KEYS);
        let over = &self.overrides;
        let store = self.store(self.given("store", over.store.as_deref()));
        let coordination = self.coordination(store.as_deref());
        let prefix = self.prefix(self.given("prefix", None));
        let given_listen = self.given("listen", over.listen.as_deref());
        let listen = match &given_listen {
            Some(given) => self.checked(given, address::listen),
            None => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))),
        };
        let doors = doors::read(&self.root, self.env, &self.base, over.only_looks);
        let tls = doors.as_ref().is_some_and(|doors| doors.tls.is_some());
        let public_url = self.public_url(listen, given_listen.as_ref(), tls);
        let node = match self.given("node", over.node.as_deref()) {
            Some(given) => self.checked(&given, NodeName::new),
            None => over.own_name.clone().or_else(address::own_node_name),
        };
        let timing = match self.given("lease_ttl", None) {
            Some(given) => self
                .checked(&given, document::parse_duration)
                .and_then(|ttl| self.checked(&given, |_| Timing::from_ttl(ttl))),
            None => Timing::from_ttl(DEFAULT_LEASE).ok(),
        };
        let lease_ttl_max = match self.given("lease_ttl_max", None) {
            Some(given) => self.checked(&given, lease_ttl_max),
            None => Some(LONGEST_LEASE),
        };
        let lifeline = match self.given("lifeline", None) {
            Some(given) => self.checked(&given, |text| lifeline(&self.base, text)).map(Some),
            None => Some(None),
        };
        let history = match self.given("history", None) {
            Some(given) => self.checked(&given, history::parse),
            None => Some(history::DEFAULT),
        };
        let containment = match self.given("containment", None) {
            Some(given) if given.text == "auto" => Some(None),
            Some(given) => self.checked(&given, str::parse).map(Some),
            None => Some(None),
        };
        let live = self.live();
        let log = log::read(&self.root, self.env);
        let oidc = oidc::read(&self.root, self.env, &self.base, over.only_looks);
        let zone = self.given("alert_zone", None).map(|given| self.checked(&given, alerts::zone));
        let alerting = alerts::read(&self.root, &self.base, over.only_looks);
        let alerting = Arc::new(Alerting { zone: zone.flatten(), ..alerting });
        let mut jobs = self.jobs(node.as_ref(), timing);
        for job in &mut jobs {
            job.stuck_after = alerting.stuck_after(&job.name);
            job.missing_after = alerting.missing_after(&job.name);
        }
        alerts::warn_of_idle(&self.root, &alerting.rules, &jobs);
        let heartbeat_url = match self.given("heartbeat_url", None) {
            Some(given) => self.checked(&given, alerts::heartbeat).map(Some),
            None => Some(None),
        };
        Some(Config {
            file,
            store: store?,
            coordination: coordination?,
            prefix: prefix?,
            listen: listen?,
            public_url: public_url?,
            node: node?,
            timing: timing?,
            lease_ttl_max: lease_ttl_max?,
            lifeline: lifeline?,
            history: history?,
            containment: containment?,
            live: live?,
            log: log?,
            doors: doors?,
            oidc: oidc?.map(Arc::new),
            alerting,
            heartbeat_url: heartbeat_url?,
            jobs,
        })
    }

    /// The value in force. One in the file must be a string even when it is outranked.
    fn given(&self, key: &'static str, option: Option<&str>) -> Option<Given> {
        let field = self.root.get(key);
        let in_file = field.and_then(|field| {
            let text = field.text(&format!("write {key} = \"...\""))?.to_owned();
            Some(Given { key, text, place: field.place })
        });
        let variable = variable(key);
        let in_env =
            (self.env)(&variable).map(|text| Given { key, text, place: Place::Env(variable) });
        let in_option = option.map(|text| Given {
            key,
            text: text.to_owned(),
            place: Place::Option(match key {
                "store" => "--store",
                "listen" => "--listen",
                _ => "--node",
            }),
        });
        in_option.or(in_env).or(in_file)
    }

    fn checked<T, E: std::fmt::Display>(
        &self,
        given: &Given,
        check: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let wrong = |problem: E| {
            self.root.report.wrong(given.place.clone(), given.key, problem.to_string())
        };
        check(&given.text).map_err(wrong).ok()
    }

    /// No command does without what has the store and its leases.
    fn needs(&self, given: &Given, part: Part) {
        if let Some(why) = part.missing() {
            self.root.report.wrong(given.place.clone(), given.key, why);
        }
    }

    fn store(&self, given: Option<Given>) -> Option<String> {
        let given = given.unwrap_or(Given {
            key: "store",
            text: DEFAULT_STORE.to_owned(),
            place: self.root.place.clone(),
        });
        let base = match given.place {
            Place::File { .. } => self.base.as_path(),
            _ => Path::new(""),
        };
        if matches!(given.text.split(':').next(), Some("mysql" | "mariadb")) {
            self.needs(&given, parts::MYSQL);
        }
        let store = self.checked(&given, |text| address::store(text, base))?;
        if store.contains('\u{fffd}') && !given.text.contains('\u{fffd}') {
            let why = format!(
                "the name of its directory is not UTF-8, so the store lies at {store} instead: give the path of another directory"
            );
            self.root.report.warn(given.place, "store", why);
        }
        Some(store)
    }

    /// The outer `None`: there is something wrong with it.
    #[expect(clippy::option_option, reason = "whether it is right, and whether it is there")]
    fn coordination(&self, store: Option<&str>) -> Option<Option<String>> {
        let Some(given) = self.given("coordination", None) else { return Some(None) };
        self.needs(&given, parts::ZOOKEEPER);
        self.checked(&given, |text| {
            if store.is_some_and(|store| store.starts_with("sqlite:")) {
                return Err("is for nodes on many machines, and sqlite: is a file on one: set `store` to a server store, or leave this out".to_owned());
            }
            soloist_domain::ensemble::Ensemble::read(text)?;
            Ok(Some(text.to_owned()))
        })
    }

    fn prefix(&self, given: Option<Given>) -> Option<String> {
        let Some(given) = given else { return Some("soloist:".to_owned()) };
        self.checked(&given, |text| {
            // Braces would move the hash tag, `*?[` would widen a key pattern.
            if text.is_empty() || text.contains(|c: char| c.is_whitespace() || "{}*?[]\\".contains(c)) {
                return Err(format!(
                    "{text:?} cannot begin a Redis key here: use letters, digits and ':', for example \"soloist:\""
                ));
            }
            Ok(text.to_owned())
        })
    }

    fn public_url(
        &self,
        listen: Option<SocketAddr>,
        from: Option<&Given>,
        tls: bool,
    ) -> Option<String> {
        if let Some(given) = self.given("public_url", None) {
            return self.checked(&given, |text| {
                let url = address::origin(text)?;
                match tls && url.starts_with("http://") {
                    true => Err(format!(
                        "{url} is not what browsers use when `tls` is set: write https:// instead"
                    )),
                    false => Ok(url),
                }
            });
        }
        let listen = listen?;
        let url = address::origin_of(listen, tls);
        if let Some(given) = from.filter(|_| listen.ip().is_unspecified()) {
            self.root.report.warn(
                given.place.clone(),
                "public_url",
                format!("is not set, so only browsers on this machine are let in ({url}): set it to the address that browsers use"),
            );
        }
        Some(url)
    }

    fn live(&self) -> Option<LiveLimits> {
        let mut limits = LiveLimits {
            sockets_per_node: 10_000,
            sockets_per_user: 200,
            sockets_per_address: 200,
        };
        let report = self.root.report;
        let variable = variable("live");
        let from_env = (self.env)(&variable);
        let parsed = from_env.as_deref().map(DeValue::parse);
        let field = match &parsed {
            Some(Ok(value)) => Some(Field {
                report,
                key: "live".to_owned(),
                place: Place::Env(variable),
                value: value.get_ref(),
            }),
            Some(Err(error)) => {
                let why = format!("not valid TOML: {}: {LIVE}", error.message());
                report.wrong(Place::Env(variable), "live", why);
                return None;
            }
            None => self.root.get("live"),
        };
        let Some(field) = field else { return Some(limits) };
        let table = field.table(LIVE)?;
        let caps = [
            ("sockets_per_node", &mut limits.sockets_per_node),
            ("sockets_per_user", &mut limits.sockets_per_user),
            ("sockets_per_address", &mut limits.sockets_per_address),
        ];
        table.only(&caps.each_ref().map(|(key, _)| *key));
        let mut whole = true;
        for (key, cap) in caps {
            if let Some(field) = table.get(key) {
                match field.integer::<u32>(1, "use a whole number from 1") {
                    Some(number) => *cap = number as usize,
                    None => whole = false,
                }
            }
        }
        whole.then_some(limits)
    }

    fn jobs(&self, node: Option<&NodeName>, timing: Option<Timing>) -> Vec<JobConfig> {
        let Some(field) = self.root.get("job") else { return Vec::new() };
        let mut path =
            (self.env)("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
        // Scripts find `soloist` itself: its directory is put into their PATH.
        if let Some(own) = std::env::current_exe().ok().as_deref().and_then(Path::parent) {
            path = format!("{}:{path}", own.display());
        }
        let groups = match self.root.get("groups") {
            Some(field) => job::groups(&field).unwrap_or_default(),
            None => job::Groups::default(),
        };
        let looks = self.overrides.only_looks;
        let (base, path, groups) = (&*self.base, &*path, &groups);
        let found = &check::Found::default();
        let zone = self.given("zone", None).map(|given| self.checked(&given, alerts::zone));
        let zone = zone.flatten();
        let zone = zone.as_deref();
        let around = Surroundings { base, node, zone, timing, path, groups, looks, found };
        let sections = field.tables(JOBS);
        duplicates(&sections);
        let jobs: Vec<JobConfig> =
            sections.into_iter().filter_map(|section| job::read(section, &around)).collect();
        for (nth, job) in jobs.iter().enumerate().filter(|(_, job)| job.rotation.is_some()) {
            let beside =
                |other: &&JobConfig| other.rotation == job.rotation && other.viewers != job.viewers;
            if let Some(other) = jobs[..nth].iter().find(beside) {
                field.warn(format!(
                    "{} and {} take turns with each other and have different viewers: the sentences of one name the other; give both the same viewers",
                    other.name, job.name
                ));
            }
        }
        jobs
    }
}

fn lease_ttl_max(text: &str) -> Result<Duration, String> {
    let longest = document::parse_duration(text)?;
    if (Duration::from_secs(1)..=LONGEST_LEASE).contains(&longest) {
        return Ok(longest);
    }
    Err(format!("{text} is no longest lease of a program: use \"1s\" to \"10m\""))
}

/// A socket file: the kernel takes no longer path (unix(7), `sun_path`).
fn lifeline(base: &Path, text: &str) -> Result<PathBuf, String> {
    const LONGEST: usize = 107;
    let path = address::absolute(base, Path::new(text));
    if text.is_empty() || path.file_name().is_none() {
        return Err("is no path of a socket file: write lifeline = \"/run/soloist/lifeline.sock\", or leave it out".to_owned());
    }
    let bytes = path.as_os_str().len();
    if bytes > LONGEST {
        return Err(format!(
            "{} has {bytes} bytes, and the path of a socket at most {LONGEST}: choose a shorter one",
            path.display()
        ));
    }
    Ok(path)
}

fn variable(key: &str) -> String {
    format!("SOLOIST_{}", key.to_ascii_uppercase())
}

/// Two jobs of one name would share one lease: each later one is noted, with the line of the first.
fn duplicates(sections: &[Section<'_>]) {
    let mut first: HashMap<&str, Place> = HashMap::new();
    for section in sections {
        let Some(field) = section.get("name") else { continue };
        let Some(name) = field.value.as_str() else { continue };
        match first.get(name) {
            Some(place) => field.wrong(format!(
                "job {name:?} exists already at {place}: give one of them another name"
            )),
            None => {
                first.insert(name, field.place.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUSTED: &str = "[oidc]\nissuer = \"https://login.example.org\"\nclient_id = \"x\"\n";
    const POST: &str = "[channel.post]\nkind = \"mail\"\nurl = \"smtps://h\"\nfrom = \"a@b.c\"\n";

    /// What `serve` and `check` say, and what a command says that only looks; without the directory.
    fn said(text: &str) -> [Vec<String>; 2] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        std::fs::write(&file, text).unwrap();
        [false, true].map(|only_looks| {
            let over = Overrides { only_looks, ..Overrides::default() };
            let problems = examine(Some(&file), over, &|_| None).config.err().unwrap_or_default();
            let before = format!("{}/", dir.path().display());
            problems.0.iter().map(|problem| problem.to_string().replace(&before, "")).collect()
        })
    }

    /// What a build without `part` says there; nothing of one that has it.
    fn lacks(line: usize, key: &str, part: Part) -> Option<String> {
        Some(format!("soloist.toml:{line}: {key}: {}", part.missing()?))
    }

    /// `.ci/run` asks it of a build without any part, the other tests of one with all.
    #[test]
    fn what_a_build_lacks_is_told_with_all_else_that_is_wrong_by_every_command() {
        let text =
            format!("store = \"mysql://u@h\"\ncoordination = \"zookeeper://h\"\n{TRUSTED}{POST}");
        let lacking = [
            lacks(1, "store", parts::MYSQL),
            lacks(2, "coordination", parts::ZOOKEEPER),
            lacks(3, "oidc", parts::OIDC),
            lacks(7, "channel.post.kind", parts::MAIL),
        ];
        let wrong = [
            "soloist.toml:1: store: names no host, or no database",
            "soloist.toml:2: coordination: names no chroot",
            "soloist.toml:3: oidc.roles: is missing",
            "soloist.toml:6: channel.post.to: is missing",
        ];
        let [served, looked] = said(&text);
        for line in lacking.iter().flatten() {
            assert!(served.contains(line), "{line}: {served:#?}");
        }
        for part in wrong {
            assert!(served.iter().any(|line| line.starts_with(part)), "{part}: {served:#?}");
        }
        assert_eq!(served.len(), wrong.len() + lacking.iter().flatten().count(), "{served:#?}");
        assert_eq!(looked, served);
    }

    #[test]
    fn who_only_looks_does_without_mail_and_single_sign_on_and_not_without_the_store() {
        let able = format!("{TRUSTED}default_role = \"viewer\"\n{POST}to = [\"a@b.c\"]\n");
        let of_node = [lacks(1, "oidc", parts::OIDC), lacks(6, "channel.post.kind", parts::MAIL)];
        assert_eq!(said(&able), [of_node.into_iter().flatten().collect(), Vec::new()]);
        let kept = "store = \"mariadb://u@h/d\"\ncoordination = \"zookeeper://h/c\"\n";
        let of_all = [lacks(1, "store", parts::MYSQL), lacks(2, "coordination", parts::ZOOKEEPER)];
        let of_all: Vec<String> = of_all.into_iter().flatten().collect();
        assert_eq!(said(kept), [of_all.clone(), of_all]);
    }
}
