//! What the compiler does not hold the house to. Which crate may use which stands in their `Cargo.toml`, and only there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

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

/// The compiler lets nobody use what a manifest does not name; this holds the manifests to the laws of the house.
#[test]
fn the_law_uses_no_crate_of_the_house_and_the_page_and_the_runner_never_meet() {
    let uses = |room: &str| {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(room).join("Cargo.toml");
        let text = std::fs::read_to_string(file).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("TOML");
        let named = manifest["dependencies"].as_table().expect("a table").keys();
        named.map(|name| name.trim_start_matches("soloist-").to_owned()).collect::<BTreeSet<_>>()
    };
    let all = |room: &str| {
        let (mut found, mut look) = (BTreeSet::new(), vec![room.to_owned()]);
        while let Some(room) = look.pop() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(&room);
            if path.exists() {
                look.extend(uses(&room).into_iter().filter(|used| found.insert(used.clone())));
            }
        }
        found
    };
    let house = |used: &BTreeSet<String>| {
        used.iter()
            .any(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name).exists())
    };
    assert!(!house(&uses("domain")), "{:?}", uses("domain"));
    assert!(house(&uses("web")) && house(&uses("runner")), "manifests are read");
    assert!(!all("web").contains("runner"), "a toggle never calls the supervisor");
    assert!(!all("ops").contains("view"), "who may do what knows nothing of how it is shown");
    assert!(!all("runner").contains("web"), "the runner hears of wishes through the feed alone");
}

#[test]
fn every_crate_uses_what_its_manifest_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rooms = std::fs::read_dir(root.join("crates")).expect("the crates").flatten();
    let crates: Vec<PathBuf> =
        rooms.map(|room| room.path()).chain([root.to_owned()]).filter(|dir| dir.is_dir()).collect();
    let (mut looked, mut unused) = (0, Vec::new());
    for dir in &crates {
        let mut files = Vec::new();
        sources(&dir.join("src"), &mut files);
        let text: String =
            files.iter().map(|file| std::fs::read_to_string(file).expect("a source")).collect();
        // Neither comments nor what stands between quotes.
        let code =
            |line: &str| line.split("//").next().unwrap_or("").split('"').step_by(2).collect();
        let code: String = text.lines().map(code).collect::<Vec<String>>().join("\n");
        let manifest = std::fs::read_to_string(dir.join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = manifest.parse().expect("TOML");
        for name in manifest["dependencies"].as_table().expect("a table").keys() {
            looked += 1;
            if !code.contains(&name.replace('-', "_")) {
                unused.push(format!("{}: {name}", dir.display()));
            }
        }
    }
    assert!(looked > 100, "manifests were read: {looked}");
    assert!(unused.is_empty(), "{unused:#?}");
}

/// An override of `package."*"` reaches what others wrote, and one of a package by its name that package alone.
#[test]
fn what_is_released_is_built_in_one_part_and_stripped() {
    let manifest =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    let manifest: toml::Table = manifest.expect("a manifest").parse().expect("TOML");
    let dist = &manifest["profile"]["dist"];
    assert_eq!(dist["codegen-units"].as_integer(), Some(1));
    assert_eq!(dist["strip"].as_bool(), Some(true));
    let own = |name: &&String| name.starts_with("soloist");
    let overrides = dist["package"].as_table().expect("a table");
    assert_eq!(overrides.keys().find(own), None, "it would reach one of our crates only");
}

#[test]
fn no_files_of_guard_and_runner_use_each_other_in_a_circle() {
    for room in ["guard", "runner"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(room).join("src");
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
            files.iter().filter(|file| name(file) != "lib").map(uses).collect();
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("crates"), &mut files);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in &files {
        let inside =
            file.strip_prefix(root).expect("under the root").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).expect("a source");
        for line in text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)) {
            let writes = ["print!(", "println!(", "dbg!(", "io::stderr()", "io::stdout()"];
            if !writes.iter().any(|word| line.contains(word)) || line.contains("is_terminal") {
                continue;
            }
            seen += 1;
            let may = inside.starts_with("crates/cli/") || inside.contains("tests");
            if !may
                && !["crates/process/src/outlet.rs", "crates/guard/src/lib.rs"]
                    .contains(&inside.as_str())
            {
                wrong.push(format!("{inside}: {}", line.trim()));
            }
        }
    }
    assert!(seen > 20, "the commands that print were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What views tell is read by the page and the command line too: a text would have to be parsed again.
#[test]
fn an_instant_of_a_view_is_no_text() {
    let mut files = Vec::new();
    for room in ["crates/view/src", "crates/web/src"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(room), &mut files);
    }
    let mut fields = BTreeMap::<String, BTreeSet<String>>::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a source");
        let (code, _) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        assert!(
            !code.contains(": iso(") || file.ends_with("words/moment.rs"),
            "{}: an instant is made a text where it is kept: use At",
            file.display()
        );
        let named =
            code.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(": "));
        for (name, kind) in named.filter(|_| file.starts_with(files_of("crates/view/src"))) {
            let kind = kind.trim_end_matches(',').replace("Option<", "").replace('>', "");
            fields.entry(name.to_owned()).or_default().insert(kind);
        }
    }
    let is = |kind: &'static str| {
        let of = fields.iter().filter(move |(_, kinds)| kinds.contains(kind));
        of.map(|(name, _)| name.as_str()).collect::<BTreeSet<_>>()
    };
    assert!(is("At").len() > 15, "instants are found: {:?}", is("At"));
    // An address, a node and the name of a tick.
    let other = ["from", "to", "until"];
    let both: Vec<_> = is("At").intersection(&is("String")).copied().collect();
    assert!(both.iter().all(|name| other.contains(name)), "{both:?}");
}

fn files_of(room: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(room)
}
