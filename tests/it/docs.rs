//! What the pages say of tests is true at least in this: every test and every scenario that they name exists.

use std::path::{Path, PathBuf};

fn sources(dir: &Path, found: &mut String) {
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let path: PathBuf = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push_str(&std::fs::read_to_string(path).expect("a source"));
        }
    }
}

/// What stands between backticks and looks like the name of a test: two underscores at least, or one of the scenarios.
fn names(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| {
            text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && text.contains('_')
        })
        .collect()
}

#[test]
fn every_test_that_a_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    sources(&root.join("tests"), &mut text);
    sources(&root.join("src"), &mut text);
    let mut missing = Vec::new();
    for page in ["guarantees.md", "failures.md"] {
        let page = std::fs::read_to_string(root.join("docs").join(page)).expect("a page");
        let named = names(&page);
        assert!(named.len() > 20, "names were found");
        for name in named {
            let known = [format!("fn {name}("), format!("name: \"{name}\"")];
            if !known.iter().any(|known| text.contains(known)) {
                missing.push(name.to_owned());
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
