//! Java's starter as applications take it: its own tests, built by Maven for Spring Boot 3.5 and 4.0, and the example of the warehouse, whose table
//! counts what was shipped twice.
//!
//! What Maven brought once is not asked for again: it works offline first.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::driver::clients;
use crate::support::machine::judged;
use crate::support::node::SOLOIST;

judged! { the_spring_warehouse_ships_nothing_twice_whatever_becomes_of_its_copies }

/// Two builds of one tree would write the same files.
static MAVEN: Mutex<()> = Mutex::new(());

/// What came of `mvn ARGS` below `clients/java`, and what it said.
fn maven(args: &[&str]) -> (bool, String) {
    let output = Command::new("mvn")
        .args(["-B", "-ntp", "-f"])
        .arg(clients("java/pom.xml"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("mvn: install it (apt-get install maven)");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Whether Maven lacks something that it would have to fetch.
fn lacks(said: &str) -> bool {
    [
        "in offline mode",
        "Could not transfer",
        "Could not resolve dependencies",
        "could not be resolved",
    ]
    .iter()
    .any(|words| said.contains(words))
}

#[test]
fn the_starter_holds_on_both_versions_of_spring_boot() {
    let _alone = MAVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut good, mut said) = maven(&["--offline", "package"]);
    if !good && lacks(&said) {
        (good, said) = maven(&["-U", "package"]);
        assert!(
            good || !lacks(&said),
            "Maven Central cannot be reached, or lacks something: the starter for Spring Boot was not tested. Run this again when it can be reached. {said}"
        );
    }
    assert!(good, "the tests of the starter failed: {said}");
    for boot in ["boot-3.5", "boot-4.0"] {
        let reports = clients("java/spring-tests").join(boot).join("target/surefire-reports");
        let sources = clients("java/spring-tests/src/test/java/io/soloist/spring/tests");
        let mut seen = 0;
        for file in std::fs::read_dir(sources).expect("the tests").flatten() {
            let file = file.file_name().to_string_lossy().into_owned();
            let Some(class) = file.strip_suffix("Test.java") else { continue };
            let report = reports.join(format!("io.soloist.spring.tests.{class}Test.txt"));
            let report = std::fs::read_to_string(&report).unwrap_or_else(|error| {
                panic!("{boot}: {class}Test was not run ({}: {error})", report.display())
            });
            assert!(report.contains("Failures: 0, Errors: 0, Skipped: 0"), "{boot}: {report}");
            seen += 1;
        }
        assert!(seen > 5, "{seen} classes of tests");
    }
}

/// What a newcomer writes, as both pages print it.
#[test]
fn from_an_empty_project_to_a_thread_that_runs_once_there_are_twelve_lines_at_most() {
    for (page, heading) in [
        ("embedding.md", "\n## In Spring Boot\n"),
        ("embedding.zh.md", "\n## 在 Spring Boot 里用\n"),
    ] {
        let text = std::fs::read_to_string(clients("../docs").join(page)).expect("the page");
        let way = text.split(heading).nth(1).and_then(|rest| rest.split("\n| ").next());
        let blocks = way.expect("the way").split("```").skip(1).step_by(2);
        let lines = blocks.flat_map(|block| block.lines().skip(1));
        let count = lines.filter(|line| !line.trim().is_empty()).count();
        assert!((5..=12).contains(&count), "{page}: {count} lines");
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

async fn the_spring_warehouse_ships_nothing_twice_whatever_becomes_of_its_copies() {
    let _alone = MAVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let state = tempfile::TempDir::new().expect("a directory");
    // More than a slow machine ships while a copy starts.
    let example = std::fs::read_to_string(clients("..").join("examples/outbound/orders.csv"));
    let example = example.expect("the orders");
    let (head, first) = example.split_once('\n').expect("a head");
    let rest = first.lines().next().and_then(|row| row.split_once(',')).expect("an order").1;
    let rows: String = (0..3_000).map(|n| format!("{},{rest}\n", 20_000 + n)).collect();
    let orders = state.path().join("orders.csv");
    std::fs::write(&orders, format!("{head}\n{rows}")).expect("a file");
    let output = Command::new("sh")
        .arg(clients("..").join("examples/spring-warehouse/run.sh"))
        .arg("show")
        .env("ORDERS", &orders)
        .env("STATE", state.path())
        .env("SOLOIST", SOLOIST)
        .env("LISTEN", format!("127.0.0.1:{}", free_port()))
        .env("PORTS", format!("{} {}", free_port(), free_port()))
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Vec<&str>> = said
        .lines()
        .filter(|line| line.contains(" | warehouse-"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 7, "{said}");
    let who: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    assert!(who[0] == who[1] && who[2] == who[3] && who[4] == who[5], "nobody moved it: {said}");
    assert!(
        who[1] != who[2] && who[3] != who[4] && who[5] != who[6],
        "each fault moved it: {said}"
    );
    let tokens: Vec<u64> = rows.iter().map(|row| row[2].parse().expect("a token")).collect();
    assert!(tokens.is_sorted(), "{said}");
    assert!(said.contains("shipped twice: 0"), "{said}");
}
