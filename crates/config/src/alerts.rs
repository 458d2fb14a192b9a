//! `[[alert]]` and `[channel.NAME]`: which alerts are sent, and where.
//!
//! It checks text and files and sends nothing; that is the business of `alerts`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use email_address::EmailAddress;
use url::Url;

use super::document::{Field, Section};
use super::{JobConfig, Secret, address, closed};
use soloist_domain::alert::{Rule, When};
use soloist_domain::name::JobName;
use soloist_process::parts;

const ALERTS: &str = "begin each alert with a line [[alert]]";
const CHANNELS: &str = "write [channel.ops] and below it kind = \"webhook\"";
const WHEN: &str = "write when = \"wanted_not_running\"";
const TO: &str = "write to = [\"ops\"], names of [channel.NAME]";
const JOBS: &str = "write jobs = [\"*\"], or names of jobs";
const KIND: &str =
    "write kind = \"webhook\", \"wecom\", \"dingtalk\", \"feishu\", \"slack\" or \"mail\"";
const FOR: &str = "write for = \"26h\": after how long without a success it is told";
/// How the address of a heartbeat is written.
const HEARTBEAT: &str =
    "write heartbeat_url = \"https://hc-ping.com/...\", as the service shows it";
const URL: &str = "write url = \"https://hooks.example.org/...\", as the service shows it";
const SMTP: &str =
    "write url = \"smtps://USER:PASSWORD@mail.example.org:465\", or smtp:// for STARTTLS";
const WHSEC: &str = "write secret = \"whsec_...\", base64 of 24 to 64 random bytes: echo whsec_$(head -c 32 /dev/urandom | base64)";
const SECRET: &str = "write the secret that the service shows, or its file as secret_file";
const FROM: &str = "write from = \"soloist@example.org\"";
const MAIL_TO: &str = "write to = [\"ops@example.org\"]";
/// A file of secrets that is longer is another file by mistake.
const LONGEST_FILE: u64 = 4_096;
/// In the place of a secret that was not read: a key of 24 zeros.
const UNREAD: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// `[channel.NAME]`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// Which way.
    pub way: Way,
}

/// How a message goes out. Addresses are secrets: most carry a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Way {
    /// As Standard Webhooks say; `key` is what `whsec_` stands before, decoded.
    Webhook {
        url: Secret,
        key: Vec<u8>,
    },
    Wecom {
        url: Secret,
    },
    Dingtalk {
        url: Secret,
        secret: Option<Secret>,
    },
    Feishu {
        url: Secret,
        secret: Option<Secret>,
    },
    Slack {
        url: Secret,
    },
    Mail {
        url: Secret,
        from: String,
        to: Vec<String>,
    },
}

impl Way {
    /// The word of `kind`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Webhook { .. } => "webhook",
            Self::Wecom { .. } => "wecom",
            Self::Dingtalk { .. } => "dingtalk",
            Self::Feishu { .. } => "feishu",
            Self::Slack { .. } => "slack",
            Self::Mail { .. } => "mail",
        }
    }
}

/// Everything about alerts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alerting {
    /// In the order of the file.
    pub rules: Vec<Rule>,
    /// By name.
    pub channels: BTreeMap<String, Channel>,
    /// The IANA name of the zone in which messages say instants; `None`: that of the machine which sends.
    pub zone: Option<String>,
}

/// `alert_zone`, checked.
pub(super) fn zone(text: &str) -> Result<String, String> {
    match jiff::tz::TimeZone::get(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!(
            "{text:?} is no time zone that this machine knows: write for example \"Asia/Shanghai\" or \"UTC\" (package tzdata)"
        )),
    }
}

impl Alerting {
    /// How long `job` may be missing until the first of the rules tells it; `None`: no rule says it.
    #[must_use]
    pub fn missing_after(&self, job: &JobName) -> Option<Duration> {
        self.shortest(When::WantedNotRunning, job)
    }

    /// How long a run of `job` stands still until the first of the rules says that it is stuck; `None`: no rule says it.
    #[must_use]
    pub fn stuck_after(&self, job: &JobName) -> Option<Duration> {
        self.shortest(When::Stuck, job)
    }

    fn shortest(&self, when: When, job: &JobName) -> Option<Duration> {
        let rules = self.rules.iter().filter(|rule| rule.when == when && rule.is_of_job(job));
        rules.map(|rule| rule.lasting).min()
    }
}

/// Reads both; what is wrong is noted. A command that only `looks` leaves the files of secrets unread.
pub(super) fn read(root: &Section<'_>, base: &Path, looks: bool) -> Alerting {
    let mut channels = BTreeMap::new();
    let mut named = BTreeSet::new();
    if let Some(table) = root.get("channel").and_then(|field| field.table(CHANNELS)) {
        for (name, field) in table.fields() {
            named.insert(name);
            if let Err(error) = JobName::new(name) {
                field.wrong(error.to_string());
            }
            let section = field.table(CHANNELS);
            if let Some(way) = section.and_then(|section| way(&section, base, looks)) {
                channels.insert(name.to_owned(), Channel { name: name.to_owned(), way });
            }
        }
    }
    let mut rules: Vec<Rule> = Vec::new();
    let sections = root.get("alert").map(|field| field.tables(ALERTS)).unwrap_or_default();
    let given: Vec<Option<String>> = sections.iter().map(own_name).collect();
    for (section, own) in sections.iter().zip(&given) {
        let Some(mut rule) = rule(section, &named) else { continue };
        let taken = |name: &str| rules.iter().any(|rule| rule.name == name);
        match own {
            Some(name) => {
                if taken(name)
                    && let Some(field) = section.get("name")
                {
                    field.wrong(format!(
                        "alert {name:?} exists already: give one of them another name"
                    ));
                }
                rule.name.clone_from(name);
            }
            None => {
                let free =
                    |name: &str| !taken(name) && !given.iter().flatten().any(|other| other == name);
                let word = rule.when.as_str();
                rule.name = (1u32..)
                    .map(|nth| if nth == 1 { word.to_owned() } else { format!("{word}-{nth}") })
                    .find(|name| free(name))
                    .unwrap_or_default();
            }
        }
        rules.push(rule);
    }
    Alerting { rules, channels, zone: None }
}

fn own_name(section: &Section<'_>) -> Option<String> {
    let field = section.get("name")?;
    let text = field.text("write name = \"shipping-stands-still\"")?;
    if let Err(error) = JobName::new(text) {
        field.wrong(error.to_string());
    }
    Some(text.to_owned())
}

/// Without its name.
fn rule(section: &Section<'_>, channels: &BTreeSet<&str>) -> Option<Rule> {
    section.only(&["name", "when", "for", "jobs", "to"]);
    let when = match section.get("when") {
        Some(field) => field.text(WHEN).and_then(|text| {
            let found = When::ALL.into_iter().find(|when| when.as_str() == text);
            if found.is_none() {
                let words = When::ALL.map(When::as_str).join(", ");
                field.wrong(format!("{text:?} is no such thing: use one of {words}"));
            }
            found
        }),
        None => {
            section.missing("when", WHEN);
            None
        }
    };
    let lasting = match section.get("for") {
        Some(field) => match (field.duration(), when) {
            (Some(Duration::ZERO), Some(When::NoSuccessFor)) => {
                field.wrong(format!("is zero, so it would always be on: {FOR}"));
                None
            }
            (lasting, _) => lasting,
        },
        // How long is too long depends on the job.
        None if when == Some(When::NoSuccessFor) => {
            section.missing("for", FOR);
            None
        }
        None => when.map(When::lasting),
    };
    let jobs = match section.get("jobs") {
        Some(field) => {
            let jobs = list(&field, JOBS, |text| match text {
                "*" => Ok(()),
                name => JobName::new(name).map(drop).map_err(|error| error.to_string()),
            });
            if when.is_some_and(|when| !when.is_of_jobs())
                && jobs.as_ref().is_some_and(|jobs| jobs.iter().any(|job| job != "*"))
            {
                field.wrong("this alert is about no job: remove jobs");
            }
            jobs
        }
        None => Some(vec!["*".to_owned()]),
    };
    let to = match section.get("to") {
        Some(field) => list(&field, TO, |text| match channels.contains(text) {
            true => Ok(()),
            false => Err(format!(
                "there is no channel {text:?}: write [channel.{text}], or name another"
            )),
        }),
        None => {
            section.missing("to", TO);
            None
        }
    };
    Some(Rule { name: String::new(), when: when?, lasting: lasting?, jobs: jobs?, to: to? })
}

/// Warns of rules about ticks that can never tell anything: no job of this file, as far as they are about it, has what they need.
pub(super) fn warn_of_idle(root: &Section<'_>, rules: &[Rule], jobs: &[JobConfig]) {
    let Some(field) = root.get("alert") else { return };
    if field.value.as_array().is_none_or(|all| all.len() != rules.len()) {
        // Some are wrong, and that is reported already.
        return;
    }
    for (rule, section) in rules.iter().zip(field.tables(ALERTS)) {
        if !rule.when.is_of_ticks() {
            continue;
        }
        let of_it = jobs.iter().filter(|job| rule.is_of_job(&job.name));
        let mut schedules = of_it.filter_map(|job| job.schedule.as_ref());
        let (key, is_idle) = match rule.when {
            When::NotStarted => {
                ("start_within", !schedules.any(|one| one.law.rules.start_within.is_some()))
            }
            When::NotFinished => {
                ("finish_within", !schedules.any(|one| one.law.rules.finish_within.is_some()))
            }
            When::TooQuick => ("at_least", !schedules.any(|one| one.law.rules.at_least.is_some())),
            _ => ("schedule", schedules.next().is_none()),
        };
        if let Some(when) = section.get("when").filter(|_| is_idle) {
            when.warn(format!(
                "none of its jobs has {key}, so nobody is ever told: write {key} in [[job]], or remove this alert"
            ));
        }
    }
}

/// A list with something in it, each once.
fn list(
    field: &Field<'_>,
    remedy: &str,
    check: impl Fn(&str) -> Result<(), String>,
) -> Option<Vec<String>> {
    let texts = field.texts(remedy)?;
    if texts.is_empty() {
        field.wrong(format!("is empty: {remedy}"));
        return None;
    }
    let mut whole = true;
    let mut good: Vec<String> = Vec::new();
    for (item, text) in texts {
        if let Err(why) = check(text) {
            item.wrong(why);
            whole = false;
        } else if !good.iter().any(|other| other == text) {
            good.push(text.to_owned());
        }
    }
    whole.then_some(good)
}

fn way(section: &Section<'_>, base: &Path, looks: bool) -> Option<Way> {
    let Some(field) = section.get("kind") else {
        section.missing("kind", KIND);
        return None;
    };
    let known: &[&str] = match field.text(KIND)? {
        "webhook" | "dingtalk" | "feishu" => &["kind", "url", "secret", "secret_file"],
        "wecom" | "slack" => &["kind", "url"],
        "mail" => &["kind", "url", "from", "to"],
        other => {
            field.wrong(format!("{other:?} is no kind of channel: {KIND}"));
            return None;
        }
    };
    section.only(known);
    let kind = field.text(KIND)?;
    if kind == "mail" {
        field.needs(parts::MAIL);
        return mail(section);
    }
    let url = url(section, URL, &["http", "https"]);
    match kind {
        "wecom" => return Some(Way::Wecom { url: url? }),
        "slack" => return Some(Way::Slack { url: url? }),
        _ => {}
    }
    let secret = secret(section, base, looks)?;
    match kind {
        "dingtalk" => Some(Way::Dingtalk { url: url?, secret }),
        "feishu" => Some(Way::Feishu { url: url?, secret }),
        _ => {
            let Some(secret) = secret else {
                section.missing("secret", WHSEC);
                return None;
            };
            match key(secret.reveal()) {
                Some(key) => Some(Way::Webhook { url: url?, key }),
                None => {
                    let given = section.get("secret").or_else(|| section.get("secret_file"));
                    if let Some(field) = given {
                        field.wrong(format!("is no secret of a webhook: {WHSEC}"));
                    }
                    None
                }
            }
        }
    }
}

/// What `whsec_` stands before, decoded.
fn key(secret: &str) -> Option<Vec<u8>> {
    let key = STANDARD.decode(secret.strip_prefix("whsec_")?).ok()?;
    (24..=64).contains(&key.len()).then_some(key)
}

fn url(section: &Section<'_>, remedy: &str, schemes: &[&str]) -> Option<Secret> {
    let Some(field) = section.get("url") else {
        section.missing("url", remedy);
        return None;
    };
    secret_url(field.text(remedy)?, remedy, schemes).map_err(|why| field.wrong(why)).ok()
}

/// An address that may hold a key: what is wrong is said without it.
fn secret_url(text: &str, remedy: &str, schemes: &[&str]) -> Result<Secret, String> {
    match Url::parse(text) {
        Ok(url) if !schemes.contains(&url.scheme()) => {
            Err(format!("must begin with {}://: {remedy}", schemes.join(":// or ")))
        }
        Ok(url) if url.host_str().is_none_or(str::is_empty) => {
            Err(format!("names no host: {remedy}"))
        }
        Ok(_) => Ok(Secret::new(text)),
        Err(error) => Err(format!("is no URL, {error}: {remedy}")),
    }
}

/// `heartbeat_url`, of a job or of the cluster.
pub(super) fn heartbeat(text: &str) -> Result<Secret, String> {
    secret_url(text, HEARTBEAT, &["http", "https"])
}

/// `heartbeat_url` of a job.
pub(super) fn heartbeat_of(section: &Section<'_>) -> Option<Option<Secret>> {
    let Some(field) = section.get("heartbeat_url") else { return Some(None) };
    let text = field.text(HEARTBEAT)?;
    heartbeat(text).map(Some).map_err(|why| field.wrong(why)).ok()
}

/// `secret`, or the content of `secret_file`. `Some(None)`: neither is given.
fn secret(section: &Section<'_>, base: &Path, looks: bool) -> Option<Option<Secret>> {
    let file = section.get("secret_file");
    if let Some(field) = section.get("secret") {
        if file.is_some() {
            field.wrong("secret_file is given, too: remove one of them");
            return None;
        }
        let text = field.text(SECRET)?;
        if text.is_empty() || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            field.wrong(format!("is empty or has spaces in it: {SECRET}"));
            return None;
        }
        return Some(Some(Secret::new(text)));
    }
    let Some(field) = file else { return Some(None) };
    let path = address::absolute(base, Path::new(field.text(SECRET)?));
    if looks {
        // It sends nothing; a secret of the right shape stands for the one that it need not be able to read.
        return Some(Some(Secret::new(UNREAD)));
    }
    let unfit = |c: char| c.is_control() || c.is_whitespace();
    match closed::read(&path, LONGEST_FILE, SECRET).map(closed::text) {
        Ok(Some(text)) if !text.is_empty() && !text.chars().any(unfit) => {
            Some(Some(Secret::new(text)))
        }
        Ok(_) => {
            let shown = path.display();
            field.wrong(format!("{shown} holds no secret: it must be one line of text"));
            None
        }
        Err(why) => {
            field.wrong(why);
            None
        }
    }
}

fn mail(section: &Section<'_>) -> Option<Way> {
    let url = url(section, SMTP, &["smtp", "smtps"]);
    if let (Some(url), Some(field)) = (&url, section.get("url"))
        && let Ok(parsed) = Url::parse(url.reveal())
        && (parsed.query().is_some() || parsed.fragment().is_some())
    {
        field.wrong(format!("must not have a query or fragment: {SMTP}"));
    }
    let mailbox = |field: &Field<'_>, text: &str, remedy: &str| match EmailAddress::from_str(text) {
        Ok(_) => Some(text.to_owned()),
        Err(_) => {
            field.wrong(format!("{text:?} is no mail address: {remedy}"));
            None
        }
    };
    let from = match section.get("from") {
        Some(field) => field.text(FROM).and_then(|text| mailbox(&field, text, FROM)),
        None => {
            section.missing("from", FROM);
            None
        }
    };
    let to = match section.get("to") {
        Some(field) => {
            let texts = field.texts(MAIL_TO)?;
            if texts.is_empty() {
                field.wrong(format!("is empty: {MAIL_TO}"));
                return None;
            }
            let all: Vec<_> =
                texts.iter().map(|(item, text)| mailbox(item, text, MAIL_TO)).collect();
            all.into_iter().collect::<Option<Vec<_>>>()
        }
        None => {
            section.missing("to", MAIL_TO);
            None
        }
    };
    Some(Way::Mail { url: url?, from: from?, to: to? })
}

#[cfg(test)]
mod tests {
    use super::key;
    use crate::{Config, Overrides, Problems, examine};

    fn read(text: &str) -> Result<Config, Problems> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("open"), "sesame\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        std::fs::set_permissions(dir.path().join("open"), mode).unwrap();
        let file = dir.path().join("soloist.toml");
        std::fs::write(&file, text).unwrap();
        examine(Some(&file), Overrides::default(), &|_| None).config
    }

    const OPS: &str =
        "[channel.ops]\nkind = \"slack\"\nurl = \"https://hooks.example.org/T/B/x\"\n";

    #[test]
    fn a_rule_without_a_name_has_the_word_and_each_name_is_there_once() {
        let rule = "[[alert]]\nwhen = \"given_up\"\nto = [\"ops\"]\n";
        let named = "[[alert]]\nname = \"given_up-2\"\nwhen = \"stuck\"\nto = [\"ops\"]\n";
        let config = read(&format!("{rule}{rule}{named}{OPS}")).unwrap();
        let rules = &config.alerting.rules;
        let names: Vec<_> = rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, ["given_up", "given_up-3", "given_up-2"]);
        let seconds: Vec<_> = rules.iter().map(|rule| rule.lasting.as_secs()).collect();
        assert_eq!(seconds, [30, 30, 300]);
    }

    #[test]
    fn what_is_wrong_is_told_with_key_and_remedy_and_never_with_a_secret() {
        let alert = |more: &str| format!("[[alert]]\nwhen = \"given_up\"\n{more}\n{OPS}");
        let channel = |more: &str| format!("[channel.ops]\n{more}\n");
        for (text, key, said) in [
            (alert("to = [\"nobody\"]"), "alert[1].to[0]", "no channel \"nobody\""),
            (alert("to = []"), "alert[1].to", "is empty"),
            (alert(""), "alert[1].to", "is missing"),
            (alert("to = [\"ops\"]\nfor = \"soon\""), "alert[1].for", "not a duration"),
            (alert("to = [\"ops\"]\njobs = []"), "alert[1].jobs", "is empty"),
            (
                format!("[[alert]]\nwhen = \"no_success_for\"\nto = [\"ops\"]\n{OPS}"),
                "alert[1].for",
                "write for = \"26h\"",
            ),
            (
                format!(
                    "[[alert]]\nwhen = \"no_success_for\"\nfor = \"0s\"\nto = [\"ops\"]\n{OPS}"
                ),
                "alert[1].for",
                "always be on",
            ),
            ("heartbeat_url = \"sesame\"".to_owned(), "heartbeat_url", "is no URL"),
            (
                "[[job]]\nname = \"a\"\ncommand = [\"true\"]\nheartbeat_url = \"ftp://sesame/\""
                    .to_owned(),
                "job.a.heartbeat_url",
                "must begin with http",
            ),
            (
                format!("[[alert]]\nwhen = \"rain\"\nto = [\"ops\"]\n{OPS}"),
                "alert[1].when",
                "use one of",
            ),
            (
                format!("[[alert]]\nwhen = \"node_lost\"\njobs = [\"a\"]\nto = [\"ops\"]\n{OPS}"),
                "alert[1].jobs",
                "about no job",
            ),
            (channel("kind = \"pigeon\""), "channel.ops.kind", "no kind of channel"),
            (channel("kind = \"slack\"\nurl = \"sesame\""), "channel.ops.url", "is no URL"),
            (
                channel("kind = \"slack\"\nurl = \"ftp://sesame/\""),
                "channel.ops.url",
                "must begin with",
            ),
            (
                channel("kind = \"slack\"\nurl = \"https://a/\"\nsecret = \"x\""),
                "channel.ops.secret",
                "unknown key",
            ),
            (
                channel("kind = \"webhook\"\nurl = \"https://a/\""),
                "channel.ops.secret",
                "is missing",
            ),
            (
                channel("kind = \"webhook\"\nurl = \"https://a/\"\nsecret = \"whsec_sesame\""),
                "channel.ops.secret",
                "no secret of a webhook",
            ),
            (
                channel("kind = \"feishu\"\nurl = \"https://a/\"\nsecret_file = \"open\""),
                "channel.ops.secret_file",
                "chmod 600",
            ),
            (
                channel("kind = \"mail\"\nurl = \"smtp://h\"\nfrom = \"x\"\nto = [\"a@b.c\"]"),
                "channel.ops.from",
                "no mail address",
            ),
        ] {
            let problems = read(&text).unwrap_err();
            let all = problems.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            assert!(all.contains(key) && all.contains(said), "{text}\n{all}");
            assert!(!all.contains("sesame"), "{all}");
        }
    }

    #[test]
    fn a_rule_about_ticks_that_no_job_can_have_is_warned_of_where_it_stands() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("soloist.toml");
        let warned = |when: &str, keys: &str| {
            let job = format!("[[job]]\nname = \"a\"\ncommand = [\"true\"]\n{keys}\n");
            let text = format!("[[alert]]\nwhen = \"{when}\"\nto = [\"ops\"]\n{OPS}{job}");
            std::fs::write(&file, text).unwrap();
            let warnings = examine(Some(&file), Overrides::default(), &|_| None).warnings.0;
            let all = warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            all.contains(":2: alert[1].when: none of its jobs has ").then_some(all)
        };
        for (when, keys, key) in [
            ("not_started", "every = \"1h\"", "start_within"),
            ("not_finished", "every = \"1h\"\nstart_within = \"1m\"", "finish_within"),
            ("too_quick", "every = \"1h\"", "at_least"),
            ("missed_tick", "", "schedule"),
            ("tick_lost", "", "schedule"),
        ] {
            assert!(warned(when, keys).is_some_and(|all| all.contains(key)), "{when}");
            let more = if key == "schedule" {
                "every = \"1h\""
            } else {
                &format!("{keys}\n{key} = \"2m\"")
            };
            assert_eq!(warned(when, more), None, "{when}");
        }
        assert_eq!(warned("given_up", ""), None);
    }

    #[test]
    fn a_key_is_what_stands_behind_its_mark() {
        assert_eq!(key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").map(|key| key.len()), Some(24));
        for wrong in ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_MfKQ", "whsec_%%%"] {
            assert!(key(wrong).is_none(), "{wrong}");
        }
    }
}
