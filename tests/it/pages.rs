//! What the pages print can be typed: every command of ours in a block of shell, every block of TOML, and the blocks of the README
//! that need nothing but a store. And the pages are in order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser as _};
use soloist::cli::Cli;

use crate::support::node::Ground;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(name: impl AsRef<Path>) -> String {
    let file = root().join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The pages of people: those at the top, and those in `docs/`.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for dir in ["", "docs"] {
        for file in std::fs::read_dir(root().join(dir)).expect("a directory").flatten() {
            let name = Path::new(dir).join(file.file_name());
            if name.extension().is_some_and(|ending| ending == "md") {
                pages.push(name);
            }
        }
    }
    pages.sort();
    pages
}

/// The blocks of a language, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let (open, mut found, mut inside) = (format!("```{language}"), Vec::new(), false);
    for line in page.lines().map(str::trim_start) {
        if inside && line != "```" {
            let block: &mut String = found.last_mut().expect("one has begun");
            block.push_str(line);
            block.push('\n');
        } else if inside {
            inside = false;
        } else if line == open {
            found.push(String::new());
            inside = true;
        }
    }
    found
}

/// A line whose `$(...)` are lines of their own if they are ours, and a word if not.
fn without_substitutions(line: &str) -> String {
    let Some((before, behind)) = line.split_once("$(") else { return line.to_owned() };
    let (inner, after) = behind.split_once(')').unwrap_or((behind, ""));
    let inner =
        if inner.starts_with("soloist ") { format!(" ; {inner} ; ") } else { "X".to_owned() };
    format!("{before}{inner}{}", without_substitutions(after))
}

/// The words of a line as a shell sees them; each sign that ends a command or redirects is a word of its own.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | '&' | ';' | '<' | '>') => {
                words.extend(word.take());
                words.push(c.to_string());
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words
}

/// Our commands of a block, without redirections; what stands in front of one may only set variables.
fn commands(block: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for line in block.replace("\\\n", " ").lines() {
        let words = shell_words(&without_substitutions(line));
        for command in words.split(|word| ["|", "&", ";"].contains(&word.as_str())) {
            let at = command.iter().position(|word| !word.contains('='));
            let Some(at) = at.filter(|at| command[*at] == "soloist") else { continue };
            let (mut words, mut rest) = (Vec::new(), command[at..].iter());
            while let Some(word) = rest.next() {
                match word.as_str() {
                    "<" | ">" => _ = rest.next(),
                    word => words.push(word.to_owned()),
                }
            }
            found.push(words);
        }
    }
    found
}

/// A word in capitals stands for a name.
fn filled(words: &[String]) -> Vec<String> {
    let stands_for = |word: &String| {
        word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase()) && word != "CMD"
    };
    words
        .iter()
        .map(|word| if stands_for(word) { word.to_lowercase() } else { word.clone() })
        .collect()
}

#[test]
fn every_command_that_a_page_prints_can_be_typed() {
    let (mut looked, mut wrong) = (0, Vec::new());
    for page in pages() {
        for block in blocks(&text(&page), "sh") {
            for words in commands(&block) {
                looked += 1;
                let told = |error: &clap::Error| {
                    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
                    matches!(error.kind(), DisplayHelp | DisplayVersion)
                };
                if let Err(error) = Cli::try_parse_from(filled(&words))
                    && !told(&error)
                {
                    wrong.push(format!("{}: {}: {error}", page.display(), words.join(" ")));
                }
            }
        }
    }
    assert!(looked > 40, "commands were found: {looked}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_has_its_line_in_the_table() {
    let page = text("docs/commands.md");
    let table: String = page.lines().filter(|line| line.starts_with("| ")).collect();
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let named = [format!("`{name}"), format!(" {name}/"), format!("/{name}/")];
        let told = named.iter().any(|named| table.contains(named.as_str()));
        assert!(told, "docs/commands.md does not name {name}");
    }
}

#[test]
fn the_readme_is_short_and_says_the_same_in_both_languages() {
    let (english, chinese) = (text("README.md"), text("README.zh.md"));
    for (page, name) in [(&english, "README.md"), (&chinese, "README.zh.md")] {
        assert!(page.lines().count() <= 200, "{name} has {} lines", page.lines().count());
    }
    let count =
        |page: &str, prefix: &str| page.lines().filter(|line| line.starts_with(prefix)).count();
    for prefix in ["## ", "### ", "| ", "![", "- ", "```"] {
        assert_eq!(
            count(&english, prefix),
            count(&chinese, prefix),
            "lines that begin with {prefix:?}"
        );
    }
    // The same commands and the same configuration; comments are in the language of the page.
    for language in ["sh", "toml", "python"] {
        let bare = |page: &str| -> Vec<String> {
            let all = blocks(page, language).join("");
            let lines = all.lines().map(|line| line.split("  #").next().unwrap_or_default());
            lines.map(|line| line.trim_end().to_owned()).collect()
        };
        assert_eq!(bare(&english), bare(&chinese), "blocks of {language}");
    }
}

#[test]
fn every_page_has_its_place_in_the_order() {
    let order = text("docs/README.md");
    for page in pages().iter().filter(|page| page.starts_with("docs")) {
        let name = page.file_name().expect("a name").to_string_lossy().into_owned();
        if name != "README.md" {
            assert!(order.contains(&format!("]({name})")), "docs/README.md does not name {name}");
        }
    }
}

/// As a node would read it, from the root of the repository.
#[test]
fn the_job_of_the_readme_is_right() {
    let [job] = blocks(&text("README.md"), "toml").try_into().expect("one block");
    let ground = Ground::new("sqlite:soloist.db", &job);
    let examples = ground.path("examples");
    std::os::unix::fs::symlink(root().join("examples"), examples).expect("a link");
    assert!(ground.must(&["check"]).contains("1 job, no problems"));
    assert!(text("soloist.toml").contains("[\"sh\", \"examples/outbound/ship.sh\"]"));
}

/// Of the README: sources, turns and a lock, with scripts in the place of a reader's own. A collector would go on for ever.
#[test]
fn the_ways_of_the_readme_work_as_they_stand_there() {
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.add_user("li", "operator");
    for script in ["fetch.sh", "fetch-orders.sh", "backup.sh"] {
        use std::os::unix::fs::PermissionsExt;
        let file = ground.path(script);
        std::fs::write(&file, format!("#!/bin/sh\necho {script} \"$@\"\n")).expect("written");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("its mode");
    }
    std::fs::write(ground.path("urls.txt"), "http://127.0.0.1/a\nhttp://127.0.0.1/b\n")
        .expect("written");
    let blocks = blocks(&text("README.md"), "sh");
    let ways =
        blocks.iter().filter(|block| block.starts_with("soloist ") && !block.contains("fence"));
    let script: String = ways
        .map(|block| block.replace("soloist collect ", "soloist collect --until-empty "))
        .collect();
    for part in
        ["source set", "task put", "collect", "rotation set", "turn", "run --name", "lease list"]
    {
        assert!(script.contains(&format!("soloist {part}")), "{part} is missing:\n{script}");
    }
    let program = Path::new(crate::support::node::SOLOIST).parent().expect("a directory");
    let output = std::process::Command::new("sh")
        .args(["-euc", &script])
        .current_dir(ground.path(""))
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", program.display()))
        .env("SOLOIST_CONFIG", ground.path("soloist.toml"))
        .env("SOLOIST_USER", "li")
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for done in ["2 created", "fetch-orders.sh", "backup.sh --full"] {
        assert!(said.contains(done), "{done}: {said}");
    }
}

/// `deploy/release.sh check` in a directory in which everything names version 1.2.3, but our own crate in the lock `locked`.
fn checked_as_1_2_3(locked: &str) -> (bool, String) {
    let dir = tempfile::TempDir::new().expect("a directory");
    let lock = format!(
        "[[package]]\nname = \"other\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"soloist\"\nversion = \"{locked}\"\n"
    );
    for (file, text) in [
        ("Cargo.toml", "version = \"1.2.3\"\n"),
        ("Cargo.lock", &lock),
        ("deploy/helm/soloist/Chart.yaml", "appVersion: 1.2.3\n"),
        ("deploy/helm/soloist/values.yaml", "  tag: 1.2.3\n"),
        ("deploy/kubernetes/deployment.yaml", "image: soloist:1.2.3\n"),
        ("CHANGELOG.md", "## [1.2.3]\n- this\n"),
        ("deploy/images.env", ""),
        ("deploy/release.sh", &text("deploy/release.sh")),
    ] {
        let file = dir.path().join(file);
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("made");
        std::fs::write(file, text).expect("written");
    }
    let script = dir.path().join("deploy/release.sh");
    let output = std::process::Command::new("sh").arg(script).args(["check", "v1.2.3"]).output();
    let output = output.expect("a shell");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_release_is_checked_by_the_version_of_our_own_crate() {
    assert_eq!(checked_as_1_2_3("1.2.3"), (true, String::new()));
    let (passed, said) = checked_as_1_2_3("1.2.2");
    assert!(!passed && said.contains("Cargo.lock names soloist 1.2.2, not 1.2.3"), "{said}");
}

/// The changelog has the form that `deploy/release.sh` reads, and every script of the workflow is one.
#[test]
fn what_a_release_needs_is_there() {
    let changelog = text("CHANGELOG.md");
    let versions: Vec<&str> = changelog.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(versions.first(), Some(&"## [Unreleased]"));
    let known = BTreeSet::from([
        "Added",
        "Changed",
        "Deprecated",
        "Removed",
        "Fixed",
        "Security",
        "Upgrade notes",
    ]);
    for kind in changelog.lines().filter_map(|line| line.strip_prefix("### ")) {
        assert!(known.contains(kind), "{kind} is no kind of change");
    }
    let workflow: serde_json::Value =
        serde_saphyr::from_str(&text(".github/workflows/release.yml")).expect("YAML");
    let jobs = workflow["jobs"].as_object().expect("jobs");
    let mut steps = 0;
    for (name, job) in jobs {
        for needed in [&job["needs"]].into_iter().flat_map(|needs| match needs.as_array() {
            Some(list) => list.iter().filter_map(|it| it.as_str()).collect::<Vec<_>>(),
            None => needs.as_str().into_iter().collect(),
        }) {
            assert!(jobs.contains_key(needed), "{name} needs {needed}");
        }
        for step in job["steps"].as_array().expect("steps") {
            let Some(run) = step["run"].as_str() else { continue };
            steps += 1;
            let checked =
                std::process::Command::new("sh").args(["-nc", run]).output().expect("a shell");
            assert!(checked.status.success(), "{name}: {run}");
            for word in run
                .split(' ')
                .filter(|word| word.starts_with("deploy/") || word.starts_with(".ci/"))
            {
                assert!(root().join(word).exists(), "{name}: {word}");
            }
        }
    }
    assert!(steps > 8, "{steps}");
}

#[test]
fn the_notes_of_a_release_are_its_part_of_the_changelog() {
    let dir = tempfile::TempDir::new().expect("a directory");
    std::fs::create_dir(dir.path().join("deploy")).expect("made");
    let script = dir.path().join("deploy/release.sh");
    std::fs::copy(root().join("deploy/release.sh"), &script).expect("copied");
    let changes = "# Changelog\n## [Unreleased]\nnot yet\n## [1.2.3] - 2026-05-04\n### Added\n- this\n## [1.2.2] - 2026-01-01\n- old\n";
    std::fs::write(dir.path().join("CHANGELOG.md"), changes).expect("written");
    let run = |args: &[&str]| {
        let output = std::process::Command::new("sh").arg(&script).args(args).output();
        let output = output.expect("a shell");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(run(&["notes", "v1.2.3"]), (true, "### Added\n- this\n".to_owned()));
    assert!(!run(&["notes", "1.2"]).0 && !run(&["frobnicate", "v1.2.3"]).0);
}
