//! The packages: one version, which is the program's, and nothing that has to be fetched.

use super::driver::clients;

fn text(path: &str) -> String {
    let path = clients(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_library_has_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, words) in [
        ("python/pyproject.toml", format!("\nversion = \"{version}\"\n")),
        ("python/src/soloist/__init__.py", format!("\n__version__ = \"{version}\"\n")),
        ("node/package.json", format!("\"version\": \"{version}\"")),
        ("node/src/index.js", format!("export const version = \"{version}\"")),
        ("java/pom.xml", format!("<version>{version}</version>")),
    ] {
        assert!(text(file).contains(&words), "{file} does not say {words}");
    }
}

#[test]
fn no_library_depends_on_anything() {
    assert!(!text("python/pyproject.toml").contains("dependencies"));
    assert!(!text("node/package.json").contains("ependencies"));
    assert!(!text("java/pom.xml").contains("<dependenc"));
}

#[test]
fn every_readme_begins_with_an_example_of_15_lines_at_most() {
    for language in ["python", "node", "java"] {
        let page = text(&format!("{language}/README.md"));
        let example = page.split("```").nth(1).expect("an example");
        let lines = example.lines().skip(1).filter(|line| !line.is_empty()).count();
        assert!((8..=15).contains(&lines), "{language}: {lines} lines");
        assert!(page.find("```") < page.find("\n| "), "{language}: the example comes first");
    }
}
