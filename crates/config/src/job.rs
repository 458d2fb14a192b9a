//! One `[[job]]`: reads it, checks it, and notes every problem.
//!
//! A job with any problem is dropped from the result; the configuration as a whole is then refused.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::alerts;
use super::document::{Field, Section};
use super::limits;
use super::schedule;
use super::{JobConfig, Repeat, Runner, Title, address, check, entrusted};
use soloist_domain::backoff::Backoff;
use soloist_domain::lease::Timing;
use soloist_domain::name::{JobName, NodeName, RotationName, UserName};

const KEYS: [&str; 22] = [
    "name",
    "title",
    "command",
    "dir",
    "env",
    "lease_ttl",
    "stop_grace",
    "repeat",
    "min_uptime",
    "backoff",
    "give_up_after",
    "nodes",
    "operators",
    "viewers",
    "rotation",
    "secrets",
    "user",
    "group",
    "runner",
    "max_runtime",
    "max_silence",
    "heartbeat_url",
];
const COMMAND: &str =
    r#"write command = ["sh", "ship.sh"], a program and its arguments; there is no shell"#;
/// What a job with an external program cannot have, and why.
const NOT_EXTERNAL: [(&str, &str); 8] = [
    ("command", "Soloist starts nothing for it: remove it, or remove runner"),
    ("dir", "Soloist starts nothing for it, so there is no directory to start it in: remove it"),
    ("env", "Soloist starts nothing for it: remove it, and set the environment of your program"),
    ("user", "Soloist starts nothing for it: remove it, and start your program as that user"),
    ("secrets", "Soloist starts nothing for it: remove it, and give them to your program yourself"),
    ("nodes", "no node runs it: remove it; which programs may take it is decided by their tokens"),
    (
        "rotation",
        "a turn is part of a run that a node starts: remove it, and let the program take turns itself (POST /api/v1/rotations/{rotation}/turns)",
    ),
    (
        "max_silence",
        "the node that starts a script listens to it, and nobody starts this one: remove it; a program that is silent loses its lease after lease_ttl, and max_runtime ends a run that takes too long",
    ),
];
/// What Soloist itself tells a script; a job's own `env` may not set it.
const OWN_ENV: [&str; 8] = [
    "SOLOIST_JOB",
    "SOLOIST_RUN",
    "SOLOIST_NODE",
    "SOLOIST_TOKEN",
    "SOLOIST_TICK",
    "SOLOIST_TICK_TIME",
    "SOLOIST_ATTEMPT",
    "SOLOIST_LATE_MS",
];
/// How the variables of its parameters begin.
const PARAM_ENV: &str = "SOLOIST_PARAM_";

/// What a job is read against.
pub(super) struct Surroundings<'a> {
    /// Relative directories start here.
    pub(super) base: &'a Path,
    /// The node's own name: a job that runs elsewhere may use commands that only exist there.
    pub(super) node: Option<&'a NodeName>,
    /// `zone` at the top of the file.
    pub(super) zone: Option<&'a str>,
    /// The lease of a job that gives none.
    pub(super) timing: Option<Timing>,
    /// `PATH` of the node.
    pub(super) path: &'a str,
    /// Groups of accounts, as the file has them.
    pub(super) groups: &'a Groups,
    /// As in [`Overrides`](super::Overrides): then nothing of this machine is checked.
    pub(super) looks: bool,
    /// What was looked for on this machine already.
    pub(super) found: &'a check::Found,
}

/// Reads a job; the problems are in the section's report.
pub(super) fn read(mut section: Section<'_>, around: &Surroundings<'_>) -> Option<JobConfig> {
    let name = name(&section);
    if let Some(name) = &name {
        section.prefix = format!("job.{name}.");
    }
    let later = schedule::LATER.map(|(key, _)| key);
    section.only(&[&KEYS[..], &schedule::KEYS, &later].concat());
    let title = title(&section, name.as_ref());
    let runner = runner(&section);
    if runner == Some(Runner::External) {
        return external(&section, around, name, title);
    }
    let nodes = names(&section, "nodes", |text| NodeName::new(text).map(drop));
    let env = env(&section);
    let here = match (&nodes, around.node) {
        (Some(nodes), Some(own)) => nodes.iter().any(|node| node == "*" || node == own.as_str()),
        _ => true,
    };
    let machine = (!around.looks).then_some(Machine { here, found: around.found });
    let dir = dir(&section, around.base, machine);
    // In a directory that is missing nothing else can be looked for.
    let enters = |dir: &&Path| machine.is_some_and(|here| here.found.directory(dir).is_ok());
    let entered = dir.as_deref().filter(enters);
    let user = user(&section, entered, machine);
    let secrets = secrets(&section, env.as_ref(), around.base, machine);
    let path = env.as_ref().and_then(|env| env.get("PATH")).map_or(around.path, String::as_str);
    let command = command(&section, entered, path.as_ref(), machine);
    let rotation = rotation(&section);
    let common = common(&section, around, name, title);
    let max_silence = limits::max_silence(&section);
    limits::compare(&section, max_silence, common.as_ref().and_then(|job| job.max_runtime));
    let (runner, max_silence) = (runner?, max_silence?);
    Some(JobConfig {
        runner,
        command: command?,
        dir: dir?,
        env: env?,
        nodes: nodes?,
        user: user?,
        secrets: secrets?,
        rotation: rotation?,
        max_silence,
        ..common?
    })
}

/// A job whose program takes the lease itself.
fn external(
    section: &Section<'_>,
    around: &Surroundings<'_>,
    name: Option<JobName>,
    title: Option<Title>,
) -> Option<JobConfig> {
    let mut whole = true;
    for (key, why) in NOT_EXTERNAL {
        if let Some(field) = section.get(key) {
            field.wrong(format!("goes not with runner = \"external\": {why}"));
            whole = false;
        }
    }
    let common = common(section, around, name, title);
    common.filter(|_| whole)
}

/// What every job has, as of one that a program runs.
fn common(
    section: &Section<'_>,
    around: &Surroundings<'_>,
    name: Option<JobName>,
    title: Option<Title>,
) -> Option<JobConfig> {
    let operators = accounts(section, "operators", around.groups);
    let viewers = accounts(section, "viewers", around.groups);
    let timing = timing(section, around.timing);
    let stop_grace = duration(section, "stop_grace", Duration::from_secs(2));
    let repeat = repeat(section);
    let backoff = backoff(section);
    let max_runtime = limits::max_runtime(section);
    let beside = schedule::Beside {
        name: name.as_ref(),
        zone: around.zone,
        timing,
        backoff,
        max_runtime: max_runtime.flatten(),
    };
    let schedule = schedule::read(section, &beside);
    let group = limits::group(section);
    let heartbeat_url = alerts::heartbeat_of(section);
    Some(JobConfig {
        name: name?,
        title: title?,
        runner: Runner::External,
        elsewhere: false,
        group: group?,
        command: Vec::new(),
        dir: PathBuf::new(),
        env: BTreeMap::new(),
        timing: timing?,
        stop_grace: stop_grace?,
        repeat: repeat?,
        schedule: schedule?,
        backoff: backoff?,
        max_runtime: max_runtime?,
        max_silence: None,
        stuck_after: None,
        missing_after: None,
        nodes: vec!["*".to_owned()],
        operators: operators?,
        viewers: viewers?,
        user: None,
        secrets: BTreeMap::new(),
        rotation: None,
        heartbeat_url: heartbeat_url?,
    })
}

fn runner(section: &Section<'_>) -> Option<Runner> {
    const REMEDY: &str = r#"write runner = "soloist" for a command, or runner = "external" for a program of your own that takes the lease"#;
    let Some(field) = section.get("runner") else { return Some(Runner::Soloist) };
    match field.text(REMEDY)? {
        "soloist" => Some(Runner::Soloist),
        "external" => Some(Runner::External),
        other => {
            field.wrong(format!("{other:?} is no runner: {REMEDY}"));
            None
        }
    }
}

fn name(section: &Section<'_>) -> Option<JobName> {
    let Some(field) = section.get("name") else {
        section.missing("name", "write name = \"outbound\"");
        return None;
    };
    let text = field.text("write name = \"outbound\"")?;
    JobName::new(text).map_err(|problem| field.wrong(problem.to_string())).ok()
}

/// A rotation need not exist yet: it is defined over HTTP or with `soloist rotation set`.
fn rotation(section: &Section<'_>) -> Option<Option<RotationName>> {
    let Some(field) = section.get("rotation") else { return Some(None) };
    let text = field.text("write rotation = \"supplier-api\", the name of a rotation")?;
    RotationName::new(text).map(Some).map_err(|problem| field.wrong(problem.to_string())).ok()
}

fn title(section: &Section<'_>, name: Option<&JobName>) -> Option<Title> {
    const REMEDY: &str = r#"write title = "Outbound" or title = { en = "Outbound", zh = "出库" }"#;
    let same = |text: &str| Title { en: text.to_owned(), zh: text.to_owned() };
    let Some(field) = section.get("title") else {
        return name.map(|name| same(name.as_str()));
    };
    if let Some(text) = field.value.as_str() {
        return Some(same(text));
    }
    let table = field.table(REMEDY)?;
    table.only(&["en", "zh"]);
    let language = |key: &str| {
        let Some(field) = table.get(key) else {
            table.missing(key, &format!("a title needs both languages; {REMEDY}"));
            return None;
        };
        field.text(REMEDY).map(ToOwned::to_owned)
    };
    let (en, zh) = (language("en"), language("zh"));
    Some(Title { en: en?, zh: zh? })
}

/// This machine, when a job is held against it. What is wrong with it is wrong with this job here and now, and with nothing
/// else: it is warned of, and a node starts the job once it is mended.
#[derive(Clone, Copy)]
struct Machine<'a> {
    /// Whether the job may run on this node.
    here: bool,
    found: &'a check::Found,
}

impl Machine<'_> {
    /// Warns that the job cannot be started here, because of `why`.
    fn lacks(self, field: &Field<'_>, why: &str) {
        field.warn(match self.here {
            true => format!("{why}; until then this node does not start the job"),
            false => format!("on this node, which does not run the job, {why}"),
        });
    }
}

fn command(
    section: &Section<'_>,
    dir: Option<&Path>,
    path: &OsStr,
    machine: Option<Machine<'_>>,
) -> Option<Vec<String>> {
    let Some(field) = section.get("command") else {
        section.missing(
            "command",
            &format!("{COMMAND}; or runner = \"external\" if your own program does the work"),
        );
        return None;
    };
    let words = field.texts(COMMAND)?;
    let argv: Vec<String> = words.iter().map(|(_, word)| (*word).to_owned()).collect();
    let Some((first, program)) = words.first() else {
        field.wrong(format!("is empty: {COMMAND}"));
        return None;
    };
    if program.is_empty() {
        first.wrong(format!("names no program: {COMMAND}"));
        return None;
    }
    if let (Some(dir), Some(machine)) = (dir, machine) {
        match machine.found.program(program, dir, path) {
            Err(why) => machine.lacks(first, &why),
            Ok(()) => {
                if let Some(why) = check::first_line(&argv, dir, path).filter(|_| machine.here) {
                    first.warn(why);
                }
                if let Some(why) = check::unreadable_script(&argv, dir).filter(|_| machine.here) {
                    words.get(1).map_or(&field, |(second, _)| second).warn(why);
                }
            }
        }
    }
    Some(argv)
}

fn dir(section: &Section<'_>, base: &Path, machine: Option<Machine<'_>>) -> Option<PathBuf> {
    let Some(field) = section.get("dir") else {
        return Some(address::absolute(base, Path::new(".")));
    };
    let text = field.text("write dir = \".\"; it is relative to this file")?;
    let dir = address::absolute(base, Path::new(text));
    if let Some(machine) = machine
        && let Err(why) = machine.found.directory(&dir)
    {
        machine.lacks(&field, &why);
    }
    Some(dir)
}

fn env(section: &Section<'_>) -> Option<BTreeMap<String, String>> {
    const REMEDY: &str = r#"write env = { ORDERS = "orders.csv" }"#;
    let Some(field) = section.get("env") else {
        return Some(BTreeMap::new());
    };
    let table = field.table(REMEDY)?;
    let mut whole = true;
    let mut env = BTreeMap::new();
    for (name, field) in table.fields() {
        match field.text(REMEDY).filter(|_| is_variable(name, &field)) {
            Some(text) => drop(env.insert(name.to_owned(), text.to_owned())),
            None => whole = false,
        }
    }
    whole.then_some(env)
}

/// Accounts by name, `@` and the name of a group, or `*`. The members of a group that the file has are in the list, too:
/// another group is one that accounts bring with them from where they sign in.
fn accounts(section: &Section<'_>, key: &str, groups: &Groups) -> Option<Vec<String>> {
    let mut names = names(section, key, |text| match text.strip_prefix('@') {
        Some("") => Err("@ is the beginning of a group's name, as in \"@warehouse\"".to_owned()),
        Some(_) => Ok(()),
        None => UserName::new(text).map(drop).map_err(|problem| problem.to_string()),
    })?;
    let members: Vec<String> = names
        .iter()
        .filter_map(|name| groups.get(name.strip_prefix('@')?))
        .flatten()
        .map(ToString::to_string)
        .collect();
    names.extend(members);
    Some(names)
}

/// `[groups]`: the members of each.
pub(super) type Groups = BTreeMap<String, Vec<UserName>>;

/// Reads `[groups]`.
pub(super) fn groups(field: &Field<'_>) -> Option<Groups> {
    const REMEDY: &str = r#"write [groups], and in it warehouse = ["li", "wang"]"#;
    let mut groups = Groups::new();
    let mut whole = true;
    for (name, field) in field.table(REMEDY)?.fields() {
        let Some(texts) = field.texts(REMEDY) else {
            whole = false;
            continue;
        };
        let members = groups.entry(name.to_owned()).or_default();
        for (field, text) in texts {
            match UserName::new(text) {
                Ok(user) => members.push(user),
                Err(problem) => {
                    field.wrong(problem.to_string());
                    whole = false;
                }
            }
        }
    }
    whole.then_some(groups)
}

/// Whether a job may set the variable `name`; notes why not.
fn is_variable(name: &str, field: &Field<'_>) -> bool {
    if name.is_empty() || name.contains(['=', '\0']) {
        field.wrong("is no name of an environment variable: use letters, digits and '_'");
    } else if OWN_ENV.contains(&name) || name.starts_with(PARAM_ENV) {
        field.wrong("is set by Soloist for every run: use another name");
    } else {
        return true;
    }
    false
}

/// Elsewhere there may be another user of that name, or none.
fn user(
    section: &Section<'_>,
    dir: Option<&Path>,
    machine: Option<Machine<'_>>,
) -> Option<Option<String>> {
    let Some(field) = section.get("user") else { return Some(None) };
    let name = field.text("write user = \"shop\", a user of this machine")?;
    if name.is_empty() {
        field.wrong("names no user: write user = \"shop\", or leave it out");
        return None;
    }
    match machine.map(|machine| (machine, machine.found.account(name))) {
        None => {}
        Some((_, Ok(account))) => {
            if let Some(closed) = dir.and_then(|dir| entrusted::closed_to(&account, dir)) {
                field.warn(format!(
                    "{name} may not enter {}, so the script may not start: chmod o+x, or choose another dir",
                    closed.display()
                ));
            }
        }
        Some((machine, Err(why))) => machine.lacks(&field, &why),
    }
    Some(Some(name.to_owned()))
}

/// Files that are read at each start; whether they exist and are closed to others is checked now, too.
fn secrets(
    section: &Section<'_>,
    env: Option<&BTreeMap<String, String>>,
    base: &Path,
    machine: Option<Machine<'_>>,
) -> Option<BTreeMap<String, PathBuf>> {
    const REMEDY: &str =
        r#"write secrets = { DB_PASSWORD = "secrets/db" }, a file relative to this one"#;
    let Some(field) = section.get("secrets") else { return Some(BTreeMap::new()) };
    let table = field.table(REMEDY)?;
    let mut whole = true;
    let mut secrets = BTreeMap::new();
    for (name, field) in table.fields() {
        if !is_variable(name, &field) {
            whole = false;
            continue;
        }
        if env.is_some_and(|env| env.contains_key(name)) {
            field.wrong("is set in env, too: remove one of them");
            whole = false;
            continue;
        }
        let Some(text) = field.text(REMEDY).filter(|text| !text.is_empty()) else {
            if field.value.as_str() == Some("") {
                field.wrong(format!("names no file: {REMEDY}"));
            }
            whole = false;
            continue;
        };
        let file = address::absolute(base, Path::new(text));
        if machine.is_some_and(|machine| machine.here)
            && let Err(why) = entrusted::secret(&file)
        {
            field.warn(format!("{why}; until then the job crashes at each start"));
        }
        secrets.insert(name.to_owned(), file);
    }
    whole.then_some(secrets)
}

fn timing(section: &Section<'_>, default: Option<Timing>) -> Option<Timing> {
    let Some(field) = section.get("lease_ttl") else {
        return default;
    };
    let ttl = field.duration()?;
    Timing::from_ttl(ttl).map_err(|problem| field.wrong(problem.to_string())).ok()
}

fn duration(section: &Section<'_>, key: &str, default: Duration) -> Option<Duration> {
    section.get(key).map_or(Some(default), |field| field.duration())
}

fn repeat(section: &Section<'_>) -> Option<Repeat> {
    let Some(field) = section.get("repeat") else {
        return Some(Repeat::After(Duration::from_secs(1)));
    };
    if field.value.as_str() == Some("never") {
        return Some(Repeat::Never);
    }
    let text = field.text("write repeat = \"1s\" or repeat = \"never\"")?;
    match super::document::parse_duration(text) {
        Ok(after) => Some(Repeat::After(after)),
        Err(problem) => {
            field.wrong(format!("{problem}, or \"never\""));
            None
        }
    }
}

fn backoff(section: &Section<'_>) -> Option<Backoff> {
    const REMEDY: &str = r#"write backoff = { first = "1s", max = "60s" }"#;
    let min_uptime = duration(section, "min_uptime", Duration::from_secs(5));
    let give_up_after = section.get("give_up_after").map_or(Some(0), |field| {
        field.integer(0, "use 0 for never, or how many crashes in a row are too many")
    });
    let (mut first, mut max) = (Some(Duration::from_secs(1)), Some(Duration::from_secs(60)));
    if let Some(field) = section.get("backoff") {
        let table = field.table(REMEDY)?;
        table.only(&["first", "max"]);
        let given = (table.get("first"), table.get("max"));
        first = given.0.as_ref().map_or(first, positive);
        max = given.1.as_ref().map_or(max, positive);
        if let (Some(shortest), Some(longest)) = (first, max)
            && shortest > longest
        {
            let place = given.0.or(given.1).unwrap_or(field);
            place.wrong(format!(
                "backoff.first {shortest:?} is longer than backoff.max {longest:?}: swap them, or give both"
            ));
            return None;
        }
    }
    Some(Backoff {
        first: first?,
        max: max?,
        give_up_after: give_up_after?,
        min_uptime: min_uptime?,
    })
}

fn positive(field: &Field<'_>) -> Option<Duration> {
    let duration = field.duration()?;
    if duration.is_zero() {
        field.wrong(
            "is zero, so a crashing job would be restarted without end: use for example \"1s\"",
        );
        return None;
    }
    Some(duration)
}

fn names<E: std::fmt::Display>(
    section: &Section<'_>,
    key: &str,
    valid: impl Fn(&str) -> Result<(), E>,
) -> Option<Vec<String>> {
    let remedy = format!("write {key} = [\"*\"] for all, or their names");
    let Some(field) = section.get(key) else {
        return Some(vec!["*".to_owned()]);
    };
    let texts = field.texts(&remedy)?;
    if texts.is_empty() {
        field.wrong(format!("is empty, so nobody may: {remedy}"));
        return None;
    }
    let mut whole = true;
    for (field, text) in &texts {
        if *text != "*"
            && let Err(problem) = valid(text)
        {
            field.wrong(problem.to_string());
            whole = false;
        }
    }
    whole.then(|| texts.into_iter().map(|(_, text)| text.to_owned()).collect())
}
