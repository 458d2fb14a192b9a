//! What the configuration accepts and refuses, and where it says the mistake is.

mod oidc;

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use soloist::config::{Config, Examination, Overrides, Repeat, WithoutJobs, examine};
use tempfile::TempDir;

struct Bench {
    dir: TempDir,
    env: HashMap<&'static str, String>,
    overrides: Overrides,
}

impl Bench {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("soloist.toml"), text).expect("a file");
        let env = HashMap::from([("PATH", "/usr/bin:/bin".to_owned())]);
        Self { dir, env, overrides: Overrides::default() }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("soloist.toml")
    }

    fn examine(&self) -> Examination {
        let env = |key: &str| self.env.get(key).cloned();
        examine(Some(&self.file()), self.overrides.clone(), &env)
    }

    fn config(&self) -> Config {
        self.examine().config.unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// One line a problem, without the directory.
    fn problems(&self) -> Vec<String> {
        let problems = self.examine().config.expect_err("it should be refused").to_string();
        let dir = format!("{}/", self.dir.path().display());
        problems.lines().map(|line| line.replace(&dir, "")).collect()
    }
}

/// A job that a program runs, on lines 1 to 3, then `more` from line 4.
fn external(more: &str) -> String {
    format!("[[job]]\nname = \"outbound\"\nrunner = \"external\"\n{more}")
}

/// A job on lines 1 to 3, then `more` from line 4.
fn job(more: &str) -> String {
    format!("[[job]]\nname = \"outbound\"\ncommand = [\"true\"]\n{more}")
}

#[test]
fn every_mistake_has_its_line_its_key_and_a_remedy() {
    #[rustfmt::skip]
    let table: &[(&str, &str, &str)] = &[
        ("listne = \"127.0.0.1:1\"", "soloist.toml:1: listne: unknown key", "did you mean \"listen\"?"),
        ("\n\n[[jobs]]\nname=\"x\"", "soloist.toml:3: jobs: unknown key", "\"job\""),
        ("listen = 8080", "soloist.toml:1: listen: must be a string, not an integer", "\""),
        ("listen = \"localhost\"", "soloist.toml:1: listen: \"localhost\" is not an address", "127.0.0.1:8080"),
        ("public_url = \"example.org\"", "soloist.toml:1: public_url: ", "http:// or https://"),
        ("public_url = \"http://example.org/x\"", "soloist.toml:1: public_url: ", "path"),
        ("node = \"Node A\"", "soloist.toml:1: node: \"Node A\" is not a valid name", "a-z"),
        ("lease_ttl = \"5 lightyears\"", "soloist.toml:1: lease_ttl: ", "\"250ms\""),
        ("lease_ttl = 5", "soloist.toml:1: lease_ttl: must be a string", "\"...\""),
        ("lease_ttl = \"600ms\"", "soloist.toml:1: lease_ttl: ", "506ms = 846ms"),
        ("store = \"oracle://x\"", "soloist.toml:1: store: unknown kind of store \"oracle\"", "mysql://HOST"),
        ("store = \"mysql://x\"", "soloist.toml:1: store: names no host, or no database", "mysql://soloist@127.0.0.1:3306/soloist"),
        ("store = \"redis+sentinel://x\"", "soloist.toml:1: store: ", "names no sentinel or no master"),
        ("store = \"redis+cluster://x/3\"", "soloist.toml:1: store: ", "redis+cluster://10.0.0.1"),
        ("store = \"sqlite:\"", "soloist.toml:1: store: ", "sqlite:data/soloist.db"),
        ("prefix = \"a{b}\"", "soloist.toml:1: prefix: ", "\"soloist:\""),
        ("limits = { max_connections = 0 }", "soloist.toml:1: limits.max_connections: 0 is out of range", "from 1"),
        ("limits = { body_idle = \"0s\" }", "soloist.toml:1: limits.body_idle", "more than zero"),
        ("limits = { idle = 1 }", "soloist.toml:1: limits.idle: unknown key", "body_idle"),
        ("trusted_proxies = [\"proxy\"]", "soloist.toml:1: trusted_proxies[0]", "10.0.0.0/8"),
        ("trusted_proxies = [\"0.0.0.0/0\"]", "soloist.toml:1: trusted_proxies[0]: \"0.0.0.0/0\" trusts everybody", "networks of your proxies"),
        ("allowed_hosts = [\"https://a\"]", "soloist.toml:1: allowed_hosts[0]", "without scheme"),
        ("allowed_origins = [\"*\"]", "soloist.toml:1: allowed_origins[0]: \"*\" would let in more than one origin", "https://wall.example.org"),
        ("allowed_origins = [\"https://*.example.org\"]", "soloist.toml:1: allowed_origins[0]: ", "name each"),
        ("allowed_origins = [\"https://a/b\"]", "soloist.toml:1: allowed_origins[0]: ", "path"),
        ("allowed_origins = [\"a.example.org\"]", "soloist.toml:1: allowed_origins[0]: ", "http:// or https://"),
        ("allowed_origins = \"https://a\"", "soloist.toml:1: allowed_origins: must be an array of strings", "write allowed_origins = ["),
        ("tls = { cert = \"c.pem\" }", "soloist.toml:1: tls.key", "is missing"),
        ("live = { sockets_per_node = 0 }", "soloist.toml:1: live.sockets_per_node: 0 is out of range", "from 1"),
        ("[live]\nsockets = 1", "soloist.toml:2: live.sockets: unknown key", "sockets_per_node"),
        ("[job]\nname = \"x\"", "soloist.toml:1: job: must be an array of tables", "[[job]]"),
        ("[[job]]\ncommand = [\"true\"]", "soloist.toml:1: job[1].name: is missing", "name = "),
        ("[[job]]\nname = \"a b\"\ncommand = [\"true\"]", "soloist.toml:2: job[1].name: \"a b\" is not a valid name", ""),
        ("[[job]]\nname = \"x\"", "soloist.toml:1: job.x.command: is missing", "[\"sh\""),
        ("[[job]]\nname = \"x\"\ncommand = []", "soloist.toml:3: job.x.command: is empty", "[\"sh\""),
        ("[[job]]\nname = \"x\"\ncommand = [\"\"]", "soloist.toml:3: job.x.command[0]: names no program", ""),
        ("[[job]]\nname = \"x\"\ncommand = \"sh x.sh\"", "soloist.toml:3: job.x.command: must be an array of strings", "no shell"),
        ("[[job]]\nname = \"x\"\ncommand = [\n\"sh\",\n7]", "soloist.toml:5: job.x.command[1]: must be a string", ""),
        (&job("lease_ttl = \"700ms\""), "soloist.toml:4: job.outbound.lease_ttl: ", "must be less than the lease"),
        (&job("stop_grace = \"-2s\""), "soloist.toml:4: job.outbound.stop_grace: \"-2s\" is negative", ""),
        (&job("repeat = \"sometimes\""), "soloist.toml:4: job.outbound.repeat: ", "\"never\""),
        (&job("backoff = { first = \"0s\" }"), "soloist.toml:4: job.outbound.backoff.first: is zero", "\"1s\""),
        (&job("backoff = { first = \"-1s\" }"), "soloist.toml:4: job.outbound.backoff.first: \"-1s\" is negative", ""),
        (&job("[job.backoff]\nfirst = \"2m\""), "soloist.toml:5: job.outbound.backoff.first: ", "longer than backoff.max 60s"),
        (&job("give_up_after = -1"), "soloist.toml:4: job.outbound.give_up_after: -1 is out of range", "0 for never"),
        (&job("title = { en = \"Outbound\" }"), "soloist.toml:4: job.outbound.title.zh: is missing", "both languages"),
        (&job("env = { A = 1 }"), "soloist.toml:4: job.outbound.env.A: must be a string", ""),
        (&job("env = { SOLOIST_TOKEN = \"1\" }"), "soloist.toml:4: job.outbound.env.SOLOIST_TOKEN: is set by Soloist", ""),
        (&job("nodes = []"), "soloist.toml:4: job.outbound.nodes: is empty", "[\"*\"]"),
        (&job("operators = [\"Li\"]"), "soloist.toml:4: job.outbound.operators[0]: \"Li\" is not a valid name", ""),
        (&job("env = { A = \"1\" }\nsecrets = { A = \"s\" }"), "soloist.toml:5: job.outbound.secrets.A: is set in env, too", "remove one"),
        (&job("secrets = { SOLOIST_RUN = \"s\" }"), "soloist.toml:4: job.outbound.secrets.SOLOIST_RUN: is set by Soloist", ""),
        (&job("secrets = { A = \"\" }"), "soloist.toml:4: job.outbound.secrets.A: names no file", "secrets/db"),
        (&job("secrets = { A = 1 }"), "soloist.toml:4: job.outbound.secrets.A: must be a string", "secrets/db"),
        (&job("user = \"\""), "soloist.toml:4: job.outbound.user: names no user", "leave it out"),
        (&job("rotation = \"Supplier\""), "soloist.toml:4: job.outbound.rotation: \"Supplier\" is not a valid name", ""),
        (&job("runner = \"java\""), "soloist.toml:4: job.outbound.runner: \"java\" is no runner", "\"external\""),
        ("[[job]]\nname = \"a\"\nrunner = \"soloist\"", "soloist.toml:1: job.a.command: is missing", "runner = \"external\""),
        (&external("command = [\"true\"]"), "soloist.toml:4: job.outbound.command: goes not with runner = \"external\"", "remove it"),
        (&external("dir = \"gone\""), "soloist.toml:4: job.outbound.dir: goes not with", "remove it"),
        (&external("env = { A = 1 }"), "soloist.toml:4: job.outbound.env: goes not with", "your program"),
        (&external("user = \"no-such-user\""), "soloist.toml:4: job.outbound.user: goes not with", "as that user"),
        (&external("secrets = { A = \"gone\" }"), "soloist.toml:4: job.outbound.secrets: goes not with", "yourself"),
        (&external("nodes = [\"node-a\"]"), "soloist.toml:4: job.outbound.nodes: goes not with", "no node runs it"),
        (&external("rotation = \"api\""), "soloist.toml:4: job.outbound.rotation: goes not with", "/turns"),
        (&external("max_silence = \"5s\""), "soloist.toml:4: job.outbound.max_silence: goes not with", "lease_ttl"),
        (&external("stop_grace = 1"), "soloist.toml:4: job.outbound.stop_grace: must be a string", "5s"),
        (&job("max_runtime = \"900ms\""), "soloist.toml:4: job.outbound.max_runtime: 900ms is too short", "1s or more"),
        (&job("every = \"1h\"\nstart_within = \"5m\"\nfinish_within = \"5m\""), "soloist.toml:5: job.outbound.start_within: 300s is not less than finish_within 300s", "shorter"),
        (&job("every = \"1h\"\nat_least = \"1m\"\nfinish_within = \"9s\""), "soloist.toml:5: job.outbound.at_least: 60s is not less than finish_within 9s", "shorter"),
        (&job("every = \"1h\"\nat_least = \"1m\"\nmax_runtime = \"60s\""), "soloist.toml:5: job.outbound.at_least: 60s is not less than max_runtime 60s", "shorter"),
        (&job("every = \"1h\"\nat_least = \"0s\""), "soloist.toml:5: job.outbound.at_least: is zero", "leave it out"),
        (&job("start_within = \"5m\""), "soloist.toml:4: job.outbound.start_within: counts only beside schedule", "add one of them"),
        (&job("heartbeat_url = \"hc-ping.com/1\""), "soloist.toml:4: job.outbound.heartbeat_url: is no URL", "as the service shows it"),
        (&job("max_silence = \"0s\""), "soloist.toml:4: job.outbound.max_silence: 0ns is too short", "1s or more"),
        (&job("max_runtime = \"1m\"\nmax_silence = \"60s\""), "soloist.toml:5: job.outbound.max_silence: 60s is not less than max_runtime 60s", "shorter"),
        (&job("group = \" \""), "soloist.toml:4: job.outbound.group: is empty", "leave it out"),
        (&job(&format!("group = {:?}", "仓".repeat(65))), "soloist.toml:4: job.outbound.group: has 65 characters", "64"),
        (&job("comand = [\"x\"]"), "soloist.toml:4: job.outbound.comand: unknown key", "did you mean \"command\"?"),
        ("log_lines = 99", "soloist.toml:1: log_lines: 99 is out of range", "from 100 to 1000000"),
        ("log_lines = \"many\"", "soloist.toml:1: log_lines: must be an integer", "whole number of lines"),
        ("log_bytes = 1000000", "soloist.toml:1: log_bytes: 1000000 is out of range", "from 1048576 to 1073741824"),
        ("log_bytes = -1", "soloist.toml:1: log_bytes: -1 is out of range", "whole number of bytes"),
        ("store = \"x", "soloist.toml:1:", "not valid TOML"),
        ("node = \"a\"\nnode = \"b\"", "soloist.toml:2:1: not valid TOML", "duplicate key"),
    ];
    for (text, begins, contains) in table {
        let problems = Bench::new(text).problems();
        assert_eq!(problems.len(), 1, "{text}\n{problems:#?}");
        assert!(
            problems[0].starts_with(begins),
            "{text}\n{}\ndoes not begin {begins}",
            problems[0]
        );
        assert!(problems[0].contains(contains), "{text}\n{}\nlacks {contains}", problems[0]);
    }
}

/// A fault of the machine is one of that job here and now. Whoever does not run jobs is not bothered with it at all.
#[test]
fn what_this_machine_lacks_for_a_job_is_a_warning_with_its_line_and_no_problem() {
    #[rustfmt::skip]
    let table: &[(&str, &str, &str)] = &[
        ("[[job]]\nname = \"x\"\ncommand = [\"no-such-program\"]", "soloist.toml:3: job.x.command[0]: \"no-such-program\" is not found on PATH", "install"),
        ("[[job]]\nname = \"x\"\ncommand = [\"./soloist.toml\"]", "soloist.toml:3: job.x.command[0]: ", "chmod +x"),
        ("[[job]]\nname = \"x\"\ncommand = [\"./gone\"]", "soloist.toml:3: job.x.command[0]: ", "No such file"),
        (&job("dir = \"gone\""), "soloist.toml:4: job.outbound.dir: directory gone: No such file", "create it"),
        (&job("dir = \"soloist.toml\""), "soloist.toml:4: job.outbound.dir: ", "is not a directory"),
        (&job("secrets = { A = \".\" }"), "soloist.toml:4: job.outbound.secrets.A: ", "is not a file"),
        (&job("user = \"no-such-user\""), "soloist.toml:4: job.outbound.user: there is no user \"no-such-user\"", "getent"),
        (&job("secrets = { A = \"gone\" }"), "soloist.toml:4: job.outbound.secrets.A: ", "there is no file"),
    ];
    for (text, begins, contains) in table {
        let mut bench =
            Bench::new(&format!("{text}\n[[job]]\nname = \"other\"\ncommand = [\"true\"]\n"));
        let Examination { config, warnings, .. } = bench.examine();
        assert_eq!(config.unwrap_or_else(|problems| panic!("{text}\n{problems}")).jobs.len(), 2);
        let dir = format!("{}/", bench.dir.path().display());
        let warnings = warnings.to_string().replace(&dir, "");
        assert_eq!(warnings.lines().count(), 1, "{text}\n{warnings}");
        assert!(warnings.starts_with(begins), "{text}\n{warnings}\ndoes not begin {begins}");
        assert!(warnings.contains(contains), "{text}\n{warnings}\nlacks {contains}");
        bench.overrides.only_looks = true;
        let Examination { config, warnings, .. } = bench.examine();
        assert!(config.is_ok() && warnings.0.is_empty(), "{text}\n{warnings}");
    }
}

/// Nor are files that only a node needs.
#[test]
fn a_command_that_only_looks_needs_no_file_of_a_node_but_its_configuration() {
    let mut bench = Bench::new(
        "tls = { cert = \"gone.pem\", key = \"gone.key\" }\n\
         [oidc]\nissuer = \"https://login.example.org\"\nclient_id = \"soloist\"\ndefault_role = \"viewer\"\n\
         client_secret_file = \"gone\"\nca_file = \"gone\"\n\
         [channel.ops]\nkind = \"webhook\"\nurl = \"https://a.example.org/\"\nsecret_file = \"gone\"\n",
    );
    let problems = bench.problems();
    for key in ["tls", "oidc.client_secret_file", "oidc.ca_file", "channel.ops.secret_file"] {
        assert!(problems.iter().any(|line| line.contains(key)), "{key}: {problems:#?}");
    }
    bench.overrides.only_looks = true;
    assert_eq!(bench.config().alerting.channels.len(), 1);
}

#[test]
fn a_file_says_by_a_word_that_it_has_no_jobs_and_an_empty_one_is_told_from_that() {
    for (text, says) in [
        ("", WithoutJobs::Blank),
        (" \n\t\n", WithoutJobs::Blank),
        ("# [[job]]\n# name = \"a\"\n", WithoutJobs::Blank),
        ("lease_ttl = \"9s\"", WithoutJobs::Unsaid),
        ("no_jobs = false", WithoutJobs::Unsaid),
        ("no_jobs = true", WithoutJobs::Meant),
        (&job(""), WithoutJobs::Unsaid),
    ] {
        let found = Bench::new(text).examine();
        assert!(found.config.is_ok() && found.without_jobs == says, "{text:?}: {found:?}");
    }
    let both = Bench::new(&format!("no_jobs = true\n{}", job(""))).problems();
    assert!(both[0].starts_with("soloist.toml:1: no_jobs: goes not with [[job]]"), "{both:#?}");
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_file() {
    let mut bench = Bench::new(
        "listen = \"nowhere\"\nnod = \"a\"\n\n[[job]]\nname = \"a\"\ncommand = []\ndir = 7\n\n\
         [[job]]\nname = \"a\"\ncommand = [\"true\"]\nlease_ttl = \"100ms\"\nbackoff = { first = \"0s\", max = \"x\" }\n",
    );
    bench.env.insert("SOLOIST_LEASE_TTL", "soon".to_owned());
    bench.overrides.store = Some("ftp://x".to_owned());
    let problems = bench.problems();
    let places: Vec<&str> = problems.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "soloist.toml:1",
            "soloist.toml:2",
            "soloist.toml:6",
            "soloist.toml:7",
            "soloist.toml:10",
            "soloist.toml:12",
            "soloist.toml:13",
            "soloist.toml:13",
            "$SOLOIST_LEASE_TTL",
            "--store",
        ],
        "{problems:#?}"
    );
    assert!(problems[4].contains("soloist.toml:5"), "both lines are named: {}", problems[4]);
}

#[test]
fn every_mistake_of_syntax_is_reported_and_nothing_guessed_after_it() {
    let problems = Bench::new("store = \nlisten = \"x\n[[job]]\nname = \"a\"\n").problems();
    assert!(problems.len() >= 2, "{problems:#?}");
    assert!(problems.iter().all(|line| line.contains("not valid TOML")), "{problems:#?}");
    assert!(problems[1].starts_with("soloist.toml:2:"), "{problems:#?}");
}

#[test]
fn a_file_that_cannot_be_read_is_one_clear_problem() {
    let bench = Bench::new("");
    for (path, says) in [
        (bench.dir.path().join("gone.toml"), "No such file"),
        (bench.dir.path().to_owned(), "directory"),
    ] {
        let error = examine(Some(&path), Overrides::default(), &|_| None).config.unwrap_err();
        assert_eq!(error.0.len(), 1, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    std::fs::write(bench.file(), b"node = \"a\"\n# \xff\n").unwrap();
    assert!(bench.problems()[0].starts_with("soloist.toml:2: is not UTF-8"));
}

#[test]
fn the_command_line_outranks_the_environment_which_outranks_the_file() {
    let mut bench = Bench::new(
        "node = \"of-file\"\nlisten = \"127.0.0.1:1\"\nlease_ttl = \"9s\"\nprefix = \"f:\"\nlog_lines = 900\nlog_bytes = 2_000_000\n",
    );
    assert_eq!(bench.config().node.as_str(), "of-file");
    bench.env.insert("SOLOIST_NODE", "of-env".to_owned());
    bench.env.insert("SOLOIST_LISTEN", "127.0.0.1:2".to_owned());
    bench.env.insert("SOLOIST_LEASE_TTL", "20s".to_owned());
    bench.env.insert("SOLOIST_PUBLIC_URL", "https://Jobs.example.org/".to_owned());
    bench.env.insert("SOLOIST_LIVE", "{ sockets_per_user = 7 }".to_owned());
    bench.env.insert("SOLOIST_LOG_LINES", "500".to_owned());
    bench.env.insert("SOLOIST_TRUSTED_PROXIES", "10.1.2.3/8, 127.0.0.1".to_owned());
    bench.env.insert(
        "SOLOIST_ALLOWED_ORIGINS",
        "https://Wall.example.org/, http://127.0.0.1:8000".to_owned(),
    );
    bench.env.insert("SOLOIST_LIMITS", "{ body_idle = \"3s\" }".to_owned());
    bench.env.insert("SOLOIST_PREFIX", String::new());
    bench.overrides.node = Some("of-option".to_owned());
    let config = bench.config();
    assert_eq!(config.node.as_str(), "of-option");
    assert_eq!(config.listen.port(), 2);
    assert_eq!(config.timing.ttl, Duration::from_secs(20));
    assert_eq!(config.public_url, "https://jobs.example.org");
    assert_eq!(config.live.sockets_per_user, 7);
    assert_eq!((config.log.lines, config.log.bytes), (500, 2_000_000));
    let proxies: Vec<String> =
        config.doors.trusted_proxies.iter().map(ToString::to_string).collect();
    assert_eq!(proxies, ["10.0.0.0/8", "127.0.0.1/32"]);
    assert_eq!(config.doors.body_idle, Duration::from_secs(3));
    let origins = ["https://wall.example.org", "http://127.0.0.1:8000"];
    assert_eq!(config.doors.allowed_origins, origins);
    assert_eq!(config.prefix, "f:", "an empty variable is not set");
}

#[test]
fn a_relative_database_starts_where_it_was_written() {
    let mut bench = Bench::new("store = \"sqlite:x/y.db\"\n");
    let in_file = format!("sqlite:{}", bench.dir.path().join("x/y.db").display());
    assert_eq!(bench.config().store, in_file);
    bench.env.insert("SOLOIST_STORE", "sqlite:x/y.db".to_owned());
    let here = std::env::current_dir().unwrap();
    assert_eq!(bench.config().store, format!("sqlite:{}", here.join("x/y.db").display()));
    let default = Bench::new("");
    let expected = default.dir.path().join("data/soloist.db");
    assert_eq!(default.config().store, format!("sqlite:{}", expected.display()));
}

#[test]
fn an_empty_file_means_the_documented_defaults() {
    let config = Bench::new("").config();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.public_url, "http://127.0.0.1:8080");
    assert_eq!(config.prefix, "soloist:");
    assert_eq!(config.timing.ttl, Duration::from_secs(5));
    assert_eq!((config.log.lines, config.log.bytes), (20_000, 4 << 20));
    assert_eq!(config.live.sockets_per_node, 10_000);
    assert_eq!((config.live.sockets_per_user, config.live.sockets_per_address), (200, 200));
    assert!(config.jobs.is_empty());
    let (host, letters) = config.node.as_str().rsplit_once('-').unwrap();
    assert!(!host.is_empty() && letters.len() == 4, "{}", config.node);

    let bench = Bench::new(&job(""));
    let config = bench.config();
    let job = config.job("outbound").unwrap();
    assert_eq!(job.dir, bench.dir.path());
    assert_eq!((job.title.en.as_str(), job.title.zh.as_str()), ("outbound", "outbound"));
    assert_eq!(job.stop_grace, Duration::from_secs(2));
    assert_eq!(job.repeat, Repeat::After(Duration::from_secs(1)));
    assert_eq!(job.backoff.first, Duration::from_secs(1));
    assert_eq!(job.backoff.max, Duration::from_secs(60));
    assert_eq!(job.backoff.min_uptime, Duration::from_secs(5));
    assert_eq!(job.backoff.give_up_after, 0);
    assert_eq!(
        (job.nodes.as_slice(), job.operators.as_slice()),
        (&["*".to_owned()][..], &["*".to_owned()][..])
    );
}

#[test]
fn a_whole_job_is_read_as_written() {
    let bench = Bench::new(&job(
        "title = { en = \"Outbound\", zh = \"出库\" }\ndir = \".\"\nenv = { ORDERS = \"o.csv\" }\n\
         lease_ttl = \"10s\"\nstop_grace = \"500ms\"\nrepeat = \"never\"\nmin_uptime = \"1m\"\n\
         backoff = { first = \"2s\", max = \"2s\" }\ngive_up_after = 3\nnodes = [\"node-a\", \"node-b\"]\noperators = [\"li\"]\n",
    ));
    let config = bench.config();
    let job = config.job("outbound").unwrap();
    assert_eq!((job.title.en.as_str(), job.title.zh.as_str()), ("Outbound", "出库"));
    assert_eq!(job.env["ORDERS"], "o.csv");
    assert_eq!(job.timing.ttl, Duration::from_secs(10));
    assert_eq!(job.stop_grace, Duration::from_millis(500));
    assert_eq!(job.repeat, Repeat::Never);
    assert_eq!((job.backoff.min_uptime, job.backoff.give_up_after), (Duration::from_secs(60), 3));
    assert_eq!(job.nodes, ["node-a", "node-b"]);
    assert_eq!(job.operators, ["li"]);
}

#[test]
fn a_job_of_a_program_needs_no_command_and_no_node_runs_it() {
    let config = Bench::new(&external(
        "title = \"Out\"\ngroup = \"仓库 Warehouse\"\nlease_ttl = \"10s\"\nstop_grace = \"3s\"\nrepeat = \"never\"\n\
         min_uptime = \"1s\"\nbackoff = { first = \"2s\", max = \"2s\" }\ngive_up_after = 3\noperators = [\"li\"]\n\
         viewers = [\"wang\"]\nmax_runtime = \"2h\"\n[[job]]\nname = \"labels\"\ncommand = [\"true\"]\nmax_silence = \"1s\"\n",
    ))
    .config();
    let [outbound, labels] = &config.jobs[..] else { panic!("two jobs") };
    assert!(outbound.is_external() && !outbound.is_elsewhere() && !labels.is_external());
    assert!(!outbound.runs_on(&config.node) && labels.runs_on(&config.node));
    assert_eq!(outbound.group.as_deref(), Some("仓库 Warehouse"));
    assert_eq!(outbound.max_runtime, Some(Duration::from_secs(7_200)));
    assert_eq!((labels.max_runtime, labels.max_silence), (None, Some(Duration::from_secs(1))));
    let told = config.definitions(soloist::domain::time::StoreTime(0));
    assert!(told[&outbound.name].external && !told[&labels.name].external);
    let elsewhere = soloist::config::JobConfig::elsewhere(&outbound.name, &told[&outbound.name]);
    assert!(elsewhere.is_external() && elsewhere.is_elsewhere());
    assert_eq!(
        (elsewhere.group, elsewhere.max_runtime),
        (outbound.group.clone(), outbound.max_runtime)
    );
}

#[test]
fn jobs_stand_by_group_in_the_order_in_which_groups_appear_and_those_without_come_last() {
    let text = [("a", ""), ("b", "Books"), ("c", "Stock"), ("d", "Books"), ("e", "")].map(
        |(name, group)| match group {
            "" => format!("[[job]]\nname = {name:?}\ncommand = [\"true\"]\n"),
            _ => format!("[[job]]\nname = {name:?}\ncommand = [\"true\"]\ngroup = {group:?}\n"),
        },
    );
    let config = Bench::new(&text.concat()).config();
    let mut jobs: Vec<_> = config.jobs.iter().collect();
    soloist::config::in_groups(&mut jobs, |job| job);
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["b", "d", "c", "a", "e"]);
}

#[test]
fn what_is_allowed_but_risky_is_a_warning_and_no_problem() {
    let mut bench = Bench::new(&format!(
        "node = \"node-a\"\n{}",
        job(
            "nodes = [\"node-b\"]\ndir = \"only-on-b\"\n[[job]]\nname = \"b\"\ncommand = [\"sh\", \"gone.sh\"]"
        )
    ));
    let open = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(bench.file(), open).unwrap();
    bench.overrides.listen = Some("0.0.0.0:80".to_owned());
    let Examination { config, warnings, .. } = bench.examine();
    assert!(config.is_ok(), "{}", config.unwrap_err());
    let warnings = warnings.to_string();
    for part in ["chmod o-w", "does not run the job", "gone.sh cannot be read", "public_url"] {
        assert!(warnings.contains(part), "{warnings}\nlacks {part}");
    }
}

#[test]
fn viewers_and_operators_are_named_by_account_or_by_group() {
    let text = "[groups]\nwarehouse = [\"li\", \"wang\"]\n".to_owned()
        + &job(
            "operators = [\"@warehouse\"]\nviewers = [\"chen\", \"@warehouse\", \"@sso-staff\"]\n",
        );
    let config = Bench::new(&text).config();
    let sees = |user: &str, groups: &[&str]| {
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        config.jobs[0].viewed_by(&user.parse().expect("a name"), &groups)
    };
    assert!(sees("li", &[]) && sees("wang", &[]) && sees("chen", &[]));
    assert!(sees("zhou", &["sso-staff"]) && !sees("zhou", &["other"]) && !sees("zhou", &[]));
    // Beside a name, too, `*` says who may switch it and not who may see it.
    let everybody =
        Bench::new(&job("operators = [\"*\", \"li\"]\nviewers = [\"chen\"]\n")).config();
    let of_all = |user: &str| everybody.jobs[0].viewed_by(&user.parse().expect("a name"), &[]);
    assert!(of_all("li") && of_all("chen") && !of_all("zhou"));
    let operates = |user: &str| config.jobs[0].operated_by(&user.parse().expect("a name"), &[]);
    assert!(operates("li") && !operates("chen"));
}

#[test]
fn wrong_groups_are_named_and_viewers_that_differ_in_a_rotation_are_warned_of() {
    let wrong = "[groups]\nwarehouse = [\"Li!\"]\n".to_owned() + &job("viewers = [\"@\"]\n");
    let problems = Bench::new(&wrong).problems();
    assert!(problems.iter().any(|line| line.contains("groups.warehouse")), "{problems:?}");
    assert!(problems.iter().any(|line| line.contains("viewers")), "{problems:?}");
    let text = job("rotation = \"r\"\nviewers = [\"li\"]\n")
        + "[[job]]\nname = \"inbound\"\ncommand = [\"true\"]\nrotation = \"r\"\n";
    let warnings = Bench::new(&text).examine().warnings.to_string();
    assert!(warnings.contains("outbound and inbound"), "{warnings}");
}
