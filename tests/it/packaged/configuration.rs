//! `deploy/soloist.conf`, the tables of `docs/configuration.md` and the program name the same keys with the same defaults.

use std::collections::{BTreeMap, BTreeSet};

use soloist::config::{Config, Overrides, examine};
use soloist::domain::name::NodeName;
use tempfile::TempDir;

use super::text;

/// A key in its section: `""` is the top level.
type Key = (&'static str, String);

/// Sections that have a table in the page, and the heading above it.
const SECTIONS: [(&str, &str); 5] = [
    ("", "## Top level\n"),
    ("limits", "### Limits\n"),
    ("alert", "## `[[alert]]`"),
    ("oidc", "## `[oidc]`"),
    ("job", "## `[[job]]`"),
];

/// Sections that stand at the top level as tables of their own.
const TABLES: [&str; 4] = ["oidc", "alert", "channel", "job"];

/// Reads `toml` as a node named `node-a` would.
fn examined(toml: &str) -> Result<Config, String> {
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("soloist.toml");
    std::fs::write(&file, toml).expect("written");
    let own_name = NodeName::new("node-a").ok();
    let over = Overrides { own_name, only_looks: true, ..Overrides::default() };
    let path = |name: &str| (name == "PATH").then(|| "/usr/bin:/bin".to_owned());
    examine(Some(&file), over, &path).config.map_err(|problems| problems.to_string())
}

/// What the program says to a key that it does not know: all that it knows there.
fn known(section: &str) -> BTreeSet<String> {
    let unknown = "zzzzzzzzzzzzzzzzzzzzzzzz = 1";
    let toml = match section {
        "" => unknown.to_owned(),
        "limits" => format!("[limits]\n{unknown}"),
        "oidc" => format!("[oidc]\n{unknown}"),
        list => format!("[[{list}]]\n{unknown}"),
    };
    let said = examined(&toml).expect_err("that key is none");
    let list = said
        .lines()
        .find_map(|line| line.split_once("zzz: unknown key: remove it, or use one of "));
    let (_, list) = list.unwrap_or_else(|| panic!("{section}: {said}"));
    list.split(", ").map(|key| key.trim().to_owned()).collect()
}

/// The rows of the first table below a heading of the page: key, and default as it is written there.
fn rows(heading: &str) -> BTreeMap<String, String> {
    let page = text("docs/configuration.md");
    let (_, below) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let table = below.lines().skip_while(|line| !line.starts_with('|'));
    let rows = table.take_while(|line| line.starts_with('|')).filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let key = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
        Some((key.to_owned(), cells.get(2)?.to_string()))
    });
    rows.collect()
}

/// A default that is a value of TOML and nothing else.
fn literal(default: &str) -> Option<toml::Value> {
    let inner = default.strip_prefix('`')?.strip_suffix('`')?;
    format!("v = {inner}").parse::<toml::Table>().ok()?.remove("v")
}

/// `deploy/soloist.conf` with every key in force.
fn uncommented() -> toml::Table {
    let setting = |line: &&str| {
        let key = line.split(" = ").next().unwrap_or_default();
        line.starts_with('[')
            || line.contains(" = ") && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let conf = text("deploy/soloist.conf");
    let lines: Vec<&str> =
        conf.lines().filter_map(|line| line.strip_prefix("# ")).filter(setting).collect();
    lines.join("\n").parse().unwrap_or_else(|error| panic!("{error}\n{}", lines.join("\n")))
}

/// The first table of that name, or the top level.
fn section<'a>(all: &'a toml::Table, name: &str) -> &'a toml::Table {
    match (name, all.get(name)) {
        ("", _) => all,
        (_, Some(toml::Value::Array(list))) => list[0].as_table().expect("a table"),
        (_, Some(table)) => table.as_table().expect("a table"),
        (_, None) => panic!("deploy/soloist.conf has no {name}"),
    }
}

#[test]
fn the_packaged_configuration_has_every_key_and_no_other() {
    let conf = uncommented();
    for (name, _) in SECTIONS {
        let mut here: BTreeSet<String> = section(&conf, name).keys().cloned().collect();
        if name == "limits" {
            // Their defaults are no values: the file names them in words.
            here.extend(["max_connections".to_owned(), "connections_per_address".to_owned()]);
            let conf = text("deploy/soloist.conf");
            assert!(here.iter().all(|key| conf.contains(key.as_str())));
        }
        assert_eq!(here, known(name), "[{name}] of deploy/soloist.conf and the program");
    }
}

#[test]
fn the_page_of_configuration_has_every_key_and_no_other() {
    for (name, heading) in SECTIONS {
        let told: BTreeSet<String> = rows(heading).into_keys().collect();
        let tables: BTreeSet<String> = TABLES.map(str::to_owned).into();
        let known = known(name);
        let expected = if name.is_empty() { &known - &tables } else { known };
        assert_eq!(told, expected, "the table below {heading} and the program");
    }
}

#[test]
fn the_packaged_configuration_and_the_page_give_the_same_defaults() {
    let conf = uncommented();
    let mut compared = 0;
    for (name, heading) in SECTIONS {
        for (key, default) in rows(heading) {
            let Some(default) = literal(&default) else { continue };
            assert_eq!(section(&conf, name).get(&key), Some(&default), "[{name}] {key}");
            compared += 1;
        }
    }
    assert!(compared > 20, "defaults were found: {compared}");
}

/// Whether it is said or not makes no difference: then it is the default.
#[test]
fn the_defaults_are_those_of_the_program() {
    let conf = uncommented();
    let mut said: BTreeMap<Key, toml::Value> = BTreeMap::new();
    for (name, heading) in SECTIONS {
        for (key, default) in rows(heading) {
            if let Some(value) = literal(&default).filter(|_| name != "alert") {
                said.insert((name, key), value);
            }
        }
    }
    for key in ["live", "limits", "public_url"] {
        said.insert(("", key.to_owned()), conf[key].clone());
    }
    let job = "[[job]]\nname = \"outbound\"\ncommand = [\"true\"]\n";
    let oidc = "[oidc]\nissuer = \"https://login.example.org\"\nclient_id = \"soloist\"\ndefault_role = \"viewer\"\n";
    let lines = |section: &str| -> String {
        let of = said.iter().filter(|((of, _), _)| *of == section);
        of.map(|((_, key), value)| format!("{key} = {value}\n")).collect()
    };
    let whole =
        format!("{}{oidc}{}{job}title = \"outbound\"\n{}", lines(""), lines("oidc"), lines("job"));
    let short = examined(&format!("{oidc}{job}")).expect("a configuration");
    let long = examined(&whole).unwrap_or_else(|error| panic!("{error}\n{whole}"));
    // The files lie in different directories.
    let shown = |config: &Config| {
        let dir = config.file.as_ref().and_then(|file| file.parent()).expect("a directory");
        format!("{config:#?}").replace(&*dir.to_string_lossy(), "DIR")
    };
    let (short, long) = (shown(&short), shown(&long));
    let differs: Vec<_> = short.lines().zip(long.lines()).filter(|(a, b)| a != b).collect();
    assert!(differs.is_empty() && short.lines().eq(long.lines()), "{differs:#?}");
}

#[test]
fn the_packaged_configuration_is_right_as_it_is() {
    let config = examined(&text("deploy/soloist.conf")).expect("no problems");
    assert_eq!(config.store, "sqlite:/var/lib/soloist/soloist.db");
    assert!(config.jobs.is_empty());
}
