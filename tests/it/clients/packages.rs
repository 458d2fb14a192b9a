//! The packages: one version, which is the program's, and nothing that has to be fetched.

use super::driver::clients;

fn text(path: &str) -> String {
    let path = clients(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// As a project names the starter.
fn starter(version: &str) -> String {
    format!("<artifactId>soloist-spring-boot-starter</artifactId><version>{version}</version>")
}

#[test]
fn every_library_has_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, words) in [
        ("python/pyproject.toml", format!("\nversion = \"{version}\"\n")),
        ("python/src/soloist/__init__.py", format!("\n__version__ = \"{version}\"\n")),
        ("node/package.json", format!("\"version\": \"{version}\"")),
        ("node/src/index.js", format!("export const version = \"{version}\"")),
        ("java/pom.xml", format!("\n  <version>{version}</version>\n")),
        ("java/soloist-client/pom.xml", format!("\n    <version>{version}</version>\n")),
        (
            "java/soloist-spring-boot-starter/pom.xml",
            format!("\n    <version>{version}</version>\n"),
        ),
        ("java/spring-tests/boot-3.5/pom.xml", format!("\n    <version>{version}</version>\n")),
        ("java/spring-tests/boot-4.0/pom.xml", format!("\n    <version>{version}</version>\n")),
        ("../examples/spring-warehouse/pom.xml", starter(version)),
        ("../docs/embedding.md", starter(version)),
        ("../docs/embedding.zh.md", starter(version)),
    ] {
        let said = text(file);
        // Of XML that is laid out by lines or stands in one.
        let in_one: String = said.lines().map(str::trim).collect();
        assert!(said.contains(&words) || in_one.contains(&words), "{file} does not say {words}");
    }
}

#[test]
fn no_library_depends_on_anything() {
    assert!(!text("python/pyproject.toml").contains("dependencies"));
    assert!(!text("node/package.json").contains("ependencies"));
    assert!(!text("java/pom.xml").contains("<dependenc"));
    assert!(!text("java/soloist-client/pom.xml").contains("<dependenc"));
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

/// Lines that are neither empty nor nothing but comment or documentation.
fn lines_of_code(text: &str) -> usize {
    // What ends the present comment that goes over several lines.
    let mut until: Option<&str> = None;
    let is_code = |line: &&str| {
        let line = line.trim();
        if let Some(end) = until {
            until = if line.ends_with(end) { None } else { Some(end) };
            return false;
        }
        let opened = [("/*", "*/"), ("\"\"\"", "\"\"\"")];
        if let Some((begin, end)) = opened.into_iter().find(|(begin, _)| line.starts_with(begin)) {
            until = (!line[begin.len()..].ends_with(end)).then_some(end);
            return false;
        }
        !line.is_empty() && !line.starts_with("//") && !line.starts_with('#')
    };
    text.lines().filter(is_code).count()
}

#[test]
fn only_comments_and_empty_lines_are_not_counted() {
    let java = "/** One. */\n\nint a; // two\n/**\n * Three.\n */\nint b;\n// four\n}\n";
    assert_eq!(lines_of_code(java), 3);
    let python = "\"\"\"One.\n\nTwo.\n\"\"\"\ndef a():\n    \"\"\"Three.\"\"\"\n    # four\n    return \"\"\n";
    assert_eq!(lines_of_code(python), 2);
}

/// A library is to be read by whoever trusts it. It was 550 lines before the life line (130 lines), the end of the program (60) and what public reports of other
/// clients found (50). Java has more than the others: a reader and writer of JSON (50), connections by sockets (125), because the JDK's own client of HTTP costs a
/// program more than half of its calls and has no limit of connections, and the threads that keep all that is held (110). Python and Node have 100 more
/// for the same two: what keeps all that is held, and a few connections for all calls. Ticks of schedules (40) came last.
#[test]
fn no_library_is_too_long_to_be_read() {
    for (sources, end, most) in [
        ("python/src/soloist", ".py", 950),
        ("node/src", ".js", 950),
        ("java/soloist-client/src/main/java/io/soloist/client", ".java", 1_140),
    ] {
        let files = std::fs::read_dir(clients(sources)).expect("a library").flatten();
        let files = files.filter(|file| file.file_name().to_string_lossy().ends_with(end));
        let read = |file: std::fs::DirEntry| std::fs::read_to_string(file.path());
        let sum: usize = files.map(|file| lines_of_code(&read(file).expect("a source"))).sum();
        assert!((200..most).contains(&sum), "{sources} has {sum} lines");
    }
}
