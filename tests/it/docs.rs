//! What the pages say is true at least in this: every test and scenario that they name exists, so does every file, and what they refer to is in
//! this repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::node::Ground;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(file: impl AsRef<Path>) -> String {
    let file = file.as_ref();
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Every file of the repository, from its root; what is built and what nodes leave behind is not of it.
fn files() -> BTreeSet<PathBuf> {
    fn look(dir: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if !path.is_dir() {
                found.insert(path.strip_prefix(root()).expect("below the root").to_owned());
            } else if !["target", "data", "state"].contains(&&*name) && name != ".git" {
                look(&path, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    look(root(), &mut found);
    found
}

fn ends_with(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|found| found == ending)
}

/// The sources of a room and of everything below it.
fn sources(of: &[&str]) -> String {
    let files = files();
    let rust = files
        .iter()
        .filter(|file| ends_with(file, "rs") && of.iter().any(|room| file.starts_with(room)));
    rust.map(|file| text(root().join(file))).collect()
}

/// What a page says, without its blocks of code.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// What stands between backticks.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    page.split('`').skip(1).step_by(2)
}

/// What stands between backticks and looks like the name of a test: two underscores at least, or one of the scenarios.
fn names(page: &str) -> Vec<&str> {
    quoted(page)
        .filter(|text| {
            text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && text.contains('_')
        })
        .collect()
}

#[test]
fn every_test_that_a_page_names_exists() {
    let text_of_all = sources(&["tests", "crates", "src"]);
    let mut missing = Vec::new();
    // In security.md keys of the configuration stand between the names, which are longer.
    for (page, underscores) in [("guarantees.md", 1), ("failures.md", 1), ("security.md", 3)] {
        let page = text(root().join("docs").join(page));
        let mut named = names(&page);
        named.retain(|name| name.matches('_').count() >= underscores);
        assert!(named.len() > 10, "names were found");
        for name in named {
            let known = [format!("fn {name}("), format!("name: \"{name}\"")];
            if !known.iter().any(|known| text_of_all.contains(known)) {
                missing.push(name.to_owned());
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// A command without `--features full` would build everything anew, and find no test of a part that it leaves out. A release has
/// not what the model and the fixtures need.
#[test]
fn every_printed_command_of_cargo_has_what_its_tests_and_benches_need() {
    // Not written out, or this file would print some.
    let commands = [
        concat!("cargo", " bench "),
        concat!("cargo", " test --"),
        concat!("cargo", " test NAME"),
        concat!("cargo", " test --release"),
    ];
    let (mut looked, mut wrong) = (0, Vec::new());
    // What CHANGELOG.md prints was so at its time.
    let printed = |file: &&PathBuf| {
        (ends_with(file, "md") || ends_with(file, "rs")) && !file.ends_with("CHANGELOG.md")
    };
    for file in files().iter().filter(printed) {
        for line in text(root().join(file)).lines() {
            let Some(at) = commands.iter().find_map(|command| line.find(command)) else { continue };
            let command = line[at..].split('`').next().unwrap_or_default();
            looked += 1;
            let debug = !command.contains("--release") || line.contains("DEBUG_ASSERTIONS=true");
            if !command.contains("--features full") || !debug {
                wrong.push(format!("{}: {command}", file.display()));
            }
        }
    }
    assert!(looked > 20, "commands were found: {looked}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Files that scripts and readers make.
const MADE: [&str; 3] = ["shipped.csv", "fetch.sh", "deploy/images.env"];

const ENDINGS: [&str; 11] =
    ["rs", "lua", "sh", "pl", "md", "awk", "csv", "sql", "html", "js", "ftl"];

/// Whether one of `files` is meant: `web/door.rs` is a file of the room `web`.
fn is_among(files: &BTreeSet<PathBuf>, name: &str) -> bool {
    let of_room = name.split_once('/').map(|(room, file)| format!("crates/{room}/src/{file}"));
    files.iter().any(|file| {
        file.ends_with(name) || of_room.as_ref().is_some_and(|name| file.ends_with(name))
    })
}

/// With its directory, as `store/schema.rs`; without one it may be of an example.
#[test]
fn every_file_that_a_comment_names_exists() {
    let files = files();
    let (mut looked, mut missing) = (0, Vec::new());
    for file in files.iter().filter(|file| !file.starts_with("static/vendor")) {
        let mark = match file.extension().and_then(|ending| ending.to_str()) {
            Some("rs" | "js") => "//",
            Some("sql" | "lua") => "--",
            Some("ftl") => "# ",
            _ => continue,
        };
        let dir = root().join(file).parent().expect("a directory").to_owned();
        for (number, line) in text(root().join(file)).lines().enumerate() {
            let Some((_, comment)) = line.split_once(mark) else { continue };
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
            for name in comment.split(|c| !plain(c)).map(|name| name.trim_end_matches(['.', ':'])) {
                let is_file = ENDINGS.iter().any(|ending| ends_with(Path::new(name), ending));
                let other =
                    name.contains("//") || name.starts_with(['/', ':']) || name.starts_with("./");
                if !is_file || !name.contains('/') || other {
                    continue;
                }
                looked += 1;
                let exists = match name.starts_with("../") {
                    true => dir.join(name).exists(),
                    false => is_among(&files, name),
                };
                if !exists {
                    missing.push(format!("{}:{}: {name}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(looked > 50, "names were found: {looked}");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_file_that_a_page_names_exists() {
    const ROOMS: [&str; 9] = [
        "crates/",
        "src/",
        "tests/",
        "docs/",
        "examples/",
        "benches/",
        "deploy/",
        "static/",
        "templates/",
    ];
    let files = files();
    let exists = |name: &str| is_among(&files, name);
    let is_made = |name: &str| MADE.iter().any(|made| Path::new(name).ends_with(made));
    let (mut looked, mut missing) = (0, Vec::new());
    for page in files.iter().filter(|file| ends_with(file, "md")) {
        let said = prose(&text(root().join(page)));
        for name in quoted(&said) {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
            if !name.chars().all(plain) || is_made(name) {
                continue;
            }
            let is_file = ENDINGS.iter().any(|ending| ends_with(Path::new(name), ending));
            let is_room = !is_file && ROOMS.iter().any(|room| name.starts_with(room));
            looked += usize::from(is_file || is_room);
            if is_file && !exists(name) || is_room && !root().join(name).exists() {
                missing.push(format!("{}: {name}", page.display()));
            }
        }
        for link in said.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if link.is_empty() || link.contains("://") {
                continue;
            }
            looked += 1;
            if !root().join(page).parent().expect("a directory").join(link).exists() {
                missing.push(format!("{}: the link {link}", page.display()));
            }
        }
    }
    // The table of rooms.
    for line in text(root().join("ARCHITECTURE.md")).lines() {
        if let Some(room) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()) {
            looked += 1;
            if !root().join("crates").join(room).exists() {
                missing.push(format!("ARCHITECTURE.md: the room {room}"));
            }
        }
    }
    assert!(looked > 100, "names were found: {looked}");
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Whoever reads it has this repository and nothing else.
#[test]
fn nothing_refers_to_a_text_that_is_not_here() {
    // Not written out, or this file would be one of them.
    let outside = [
        concat!("contract", " section"),
        concat!("the ", "contract"),
        concat!("architecture", ", decision"),
    ];
    let mut found = Vec::new();
    let files = files();
    // A decision that was accepted is not edited.
    let ours = files.iter().filter(|file| {
        ["rs", "md", "lua", "html", "ftl", "js", "sh", "toml"]
            .iter()
            .any(|end| ends_with(file, end))
            && !file.starts_with("docs/adr")
    });
    for file in ours {
        for (number, line) in text(root().join(file)).lines().enumerate() {
            if outside.iter().any(|words| line.to_lowercase().contains(words)) {
                found.push(format!("{}:{}: {line}", file.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn both_licences_are_here_as_the_package_says() {
    let manifest = text(root().join("Cargo.toml"));
    assert!(manifest.contains("license = \"MIT OR Apache-2.0\""));
    for (file, words) in [
        ("LICENSE-MIT", "Permission is hereby granted, free of charge"),
        ("LICENSE-APACHE", "Version 2.0, January 2004"),
    ] {
        let licence = text(root().join(file));
        assert!(licence.contains(words) && licence.contains("The Soloist developers"), "{file}");
        assert!(text(root().join("README.md")).contains(file), "README.md names {file}");
    }
}

/// `docs/diagrams/make.sh` draws each in both themes: what its text says stands in both drawings.
#[test]
fn every_diagram_is_drawn_from_its_text() {
    let dots = files().into_iter().filter(|file| ends_with(file, "dot"));
    let mut drawn = 0;
    for dot in dots {
        let source = text(root().join(&dot));
        let labels = source.split("label=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for theme in ["light", "dark"] {
            let name = dot.file_stem().expect("a name").to_string_lossy();
            let svg = text(root().join(dot.with_file_name(format!("{name}-{theme}.svg"))));
            let svg = svg.replace("&#160;", " ").replace("&#39;", "'").replace("&#45;", "-");
            for line in labels.clone().flat_map(|label| label.split("\\n")) {
                assert!(svg.contains(&format!(">{line}<")), "{name}-{theme}.svg has no {line:?}");
            }
        }
        drawn += 1;
    }
    assert!(drawn >= 3, "{drawn} diagrams");
}

/// The tables of both languages have every state, and no other.
#[test]
fn every_state_stands_in_the_tables() {
    let states: BTreeSet<&str> =
        soloist::domain::job::State::ALL.iter().map(|state| state.as_str()).collect();
    for page in ["docs/states.md", "docs/states.zh.md"] {
        let page = text(root().join(page));
        let first = |line: &str| {
            let word = line.strip_prefix("| `")?.split('`').next()?;
            states.get(word).copied()
        };
        let told: BTreeSet<&str> = page.lines().filter_map(first).collect();
        assert_eq!(told, states);
    }
}

/// The calls in `docs/dispatch.md`, as they stand there.
#[test]
fn the_calls_that_dispatch_is_explained_with_work() {
    let page = text(root().join("docs/dispatch.md"));
    let (_, http) = page.split_once("## Over HTTP").expect("the section");
    let script = http.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let script = format!("{}\necho; echo \"$TOKEN\"", script.expect("a block of calls"));
    let said = ground.must_sh(&script, &node);
    for part in ["\"gap_ms\":250", "\"status\":\"created\"", "\"ready\":1"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let token = said.lines().last().unwrap_or_default();
    assert!(token.starts_with("sol_"), "{said}");
}
