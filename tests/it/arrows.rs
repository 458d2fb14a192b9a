//! The rooms of the house and which may use which: the table of ARCHITECTURE.md, held against the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// `room: rooms it may use`; `program`, `app`, `lib` and `main` may use all.
const TABLE: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("build", &[]),
    ("http", &[]),
    ("sabotage", &["domain"]),
    ("clock", &["domain", "sabotage"]),
    ("outlet", &["clock"]),
    ("telemetry", &["domain", "outlet"]),
    ("config", &["domain", "build"]),
    ("words", &["domain"]),
    ("fence", &["domain", "sabotage"]),
    ("store", &["domain", "clock", "sabotage", "build"]),
    ("secrets", &["domain", "store"]),
    ("feed", &["domain", "store", "clock"]),
    ("waiting", &["domain", "store", "feed", "clock"]),
    ("dispatch", &["domain", "store", "clock", "telemetry", "waiting"]),
    ("rotation", &["domain", "store", "clock", "telemetry", "waiting"]),
    ("leases", &["domain", "store", "config", "feed", "clock", "secrets", "waiting"]),
    ("history", &["domain", "store", "config", "feed", "clock"]),
    ("remote", &["http"]),
    ("guard", &["domain", "store", "clock", "sabotage", "remote"]),
    ("view", &["domain", "store", "config", "feed", "words", "clock"]),
    ("alerts", &["domain", "store", "config", "feed", "view", "words", "clock", "build", "http"]),
    ("ops", &["domain", "store", "config", "secrets", "view"]),
    (
        "runner",
        &[
            "domain",
            "store",
            "feed",
            "guard",
            "remote",
            "clock",
            "config",
            "outlet",
            "telemetry",
            "sabotage",
            "rotation",
            "waiting",
        ],
    ),
    (
        "web",
        &[
            "domain",
            "store",
            "feed",
            "config",
            "clock",
            "words",
            "view",
            "ops",
            "telemetry",
            "secrets",
            "dispatch",
            "rotation",
            "leases",
            "history",
            "alerts",
            "waiting",
            "http",
        ],
    ),
    (
        "cli",
        &[
            "domain", "store", "config", "feed", "clock", "words", "view", "ops", "secrets",
            "fence", "remote", "runner", "dispatch", "rotation", "alerts", "waiting", "outlet",
        ],
    ),
];

/// The composition root.
const ROOT: [&str; 4] = ["app", "lib", "main", "program"];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The room a file belongs to: the first part of its path under `src/`.
fn room_of(file: &Path) -> String {
    let first = file.components().next().expect("a path").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// Every `room` of `crate::room` and of `crate::{room::..., other::...}` in code, comments left out.
fn rooms_used(text: &str) -> BTreeSet<String> {
    used_of("crate::", text)
}

fn used_of(prefix: &str, text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code).to_owned() + "\n")
        .collect();
    let mut used = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        let rest = code[at + prefix.len()..].trim_start();
        let Some(group) = rest.strip_prefix('{') else {
            used.insert(word(rest));
            continue;
        };
        let (mut depth, mut begins) = (0, true);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    used.insert(word(&group[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    used
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn no_room_uses_another_that_the_table_does_not_give_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    assert!(files.len() > 10, "the sources were found");
    let mut wrong = Vec::new();
    for file in &files {
        let inside = file.strip_prefix(&src).expect("under src");
        let room = room_of(inside);
        if ROOT.contains(&room.as_str()) {
            continue;
        }
        let Some((_, allowed)) = TABLE.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{}: room {room} is not in the table", inside.display()));
            continue;
        };
        let text = std::fs::read_to_string(file).expect("a source");
        for used in rooms_used(&text) {
            if used != room && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}: {room} may not use {used}", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_table_is_the_one_in_the_architecture() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let page = std::fs::read_to_string(page).expect("ARCHITECTURE.md");
    for (room, allowed) in TABLE {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{room}")));
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for {room}"));
        let cell = row.trim_end_matches('|').rsplit('|').next().expect("a last column");
        let said: BTreeSet<&str> =
            cell.split([',', ' ']).filter(|word| !word.is_empty() && *word != "-").collect();
        assert_eq!(said, allowed.iter().copied().collect(), "the row of {room}");
    }
}

#[test]
fn the_table_has_no_circle() {
    // Rows stand in order: each may use only what stands above it.
    for (nth, (room, allowed)) in TABLE.iter().enumerate() {
        for used in *allowed {
            let above = TABLE[..nth].iter().any(|(name, _)| name == used);
            assert!(above, "{room} uses {used}, which does not stand above it");
        }
    }
    let uses = |room: &str, other: &str| {
        TABLE.iter().any(|(name, allowed)| *name == room && allowed.contains(&other))
    };
    assert!(
        !uses("web", "runner") && !uses("runner", "web"),
        "a toggle never calls the supervisor"
    );
}

#[test]
fn no_files_of_guard_and_runner_use_each_other_in_a_circle() {
    for room in ["guard", "runner"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room);
        let mut files = Vec::new();
        sources(&dir, &mut files);
        let name = |file: &Path| file.file_stem().expect("a name").to_string_lossy().into_owned();
        let uses = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).expect("a source");
            let own = name(file);
            let used = used_of("super::", &text).into_iter();
            // What stands in the room's page itself, or in the file around its tests, is no file.
            let is_file = |used: &String| *used != own && dir.join(format!("{used}.rs")).exists();
            (own.clone(), used.filter(is_file).collect::<BTreeSet<_>>())
        };
        let mut left: BTreeMap<_, _> =
            files.iter().filter(|file| name(file) != "mod").map(uses).collect();
        assert!(left.values().any(|used| !used.is_empty()), "the imports of {room} were found");
        // Takes away whoever uses nobody who is left; a circle stays.
        while let Some(lowest) =
            left.keys().find(|file| left[*file].iter().all(|used| !left.contains_key(used)))
        {
            let lowest = lowest.clone();
            left.remove(&lowest);
        }
        assert!(left.is_empty(), "files in circles, and who needs them, in {room}: {left:#?}");
    }
}

/// Writing to a stream of this process waits for its reader: only commands that hold no lease may do that, and who looks first.
#[test]
fn nobody_writes_to_a_stream_of_this_process_past_the_outlet() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in &files {
        let inside = file.strip_prefix(&src).expect("under src").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).expect("a source");
        for line in text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)) {
            let writes = ["print!(", "println!(", "dbg!(", "io::stderr()", "io::stdout()"];
            if !writes.iter().any(|word| line.contains(word)) || line.contains("is_terminal") {
                continue;
            }
            seen += 1;
            let may = inside.starts_with("cli/") || inside.contains("tests");
            if !may && !["outlet.rs", "guard/mod.rs"].contains(&inside.as_str()) {
                wrong.push(format!("{inside}: {}", line.trim()));
            }
        }
    }
    assert!(seen > 20, "the commands that print were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn imports_are_read_from_every_shape_of_a_use() {
    let text = "use crate::store::{Store, x};\nuse crate::{\n  domain::{job, lease},\n  feed,\n};\n\
        fn f() -> crate::clock::Boot {} // crate::web\n//! [`crate::runner`]\n";
    let used = rooms_used(text);
    assert_eq!(
        used.iter().map(String::as_str).collect::<Vec<_>>(),
        ["clock", "domain", "feed", "store"]
    );
}
