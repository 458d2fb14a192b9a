//! The Debian package: every file it names is here or is made by `deploy/deb/build.sh`, and nothing that is needed is missing.

use std::collections::BTreeMap;
use std::process::Command;

use tempfile::TempDir;

use super::{path, text};
use crate::support::node::SOLOIST;

/// Where each file goes, from `Cargo.toml`: its place in the package, its source and its mode.
fn assets() -> BTreeMap<String, (String, String)> {
    let manifest: toml::Table = text("Cargo.toml").parse().expect("TOML");
    let deb = &manifest["package"]["metadata"]["deb"];
    let list = deb["assets"].as_array().expect("a list");
    let part = |asset: &toml::Value, at: usize| asset[at].as_str().expect("text").to_owned();
    list.iter().map(|asset| (part(asset, 1), (part(asset, 0), part(asset, 2)))).collect()
}

#[test]
fn the_package_holds_what_the_unit_and_its_scripts_name() {
    let assets = assets();
    for (place, source) in [
        ("usr/bin/soloist", "target/package/soloist"),
        ("usr/lib/systemd/system/soloist.service", "deploy/soloist.service"),
        ("usr/lib/soloist/await-guards.sh", "deploy/await-guards.sh"),
        ("usr/share/doc/soloist/examples/kill.conf", "deploy/soloist.service.kill.conf"),
        ("etc/soloist/soloist.toml", "deploy/soloist.conf"),
    ] {
        assert_eq!(assets.get(place).map(|(source, _)| source.as_str()), Some(source), "{place}");
    }
    for (place, (source, mode)) in &assets {
        let program = place.starts_with("usr/bin/") || place.ends_with(".sh");
        let expected = match program {
            true => "755",
            false if place.starts_with("etc/") => "640",
            false => "644",
        };
        assert_eq!(mode, expected, "{place}");
        assert!(source.starts_with("target/package/") || path(source).exists(), "{source}");
    }
    let unit = text("deploy/soloist.service");
    for named in unit.split_whitespace().filter_map(|word| word.split_once("/usr/")) {
        let place = format!("usr/{}", named.1);
        assert!(assets.contains_key(&place), "the unit names /{place}");
    }
}

/// The script makes everything that is not in the repository.
#[test]
fn what_the_package_holds_besides_is_made() {
    let root = TempDir::new().expect("a directory");
    std::fs::create_dir_all(root.path().join("deploy/deb")).expect("made");
    for file in ["deploy/deb/build.sh", "CHANGELOG.md"] {
        std::fs::copy(path(file), root.path().join(file)).expect("copied");
    }
    let output = Command::new("sh")
        .arg(root.path().join("deploy/deb/build.sh"))
        .arg(SOLOIST)
        .env("ONLY_ASSETS", "yes")
        .env("SOURCE_DATE_EPOCH", "0")
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (source, _) in assets().values().filter(|(source, _)| source.starts_with("target/")) {
        match source.split_once('*') {
            None => assert!(root.path().join(source).exists(), "{source} is not made"),
            Some((dir, ending)) => {
                let files = std::fs::read_dir(root.path().join(dir)).expect("a directory");
                let names = files.flatten().map(|file| file.file_name());
                let fit = names.filter(|name| name.to_string_lossy().ends_with(ending)).count();
                assert!(fit > 40, "{source}: {fit}");
            }
        }
    }
}

#[test]
fn the_scripts_of_the_package_are_scripts() {
    use std::os::unix::fs::PermissionsExt as _;
    for name in ["postinst", "prerm", "postrm"] {
        let file = path("deploy/deb").join(name);
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{name} can be run");
        let said = Command::new("sh").arg("-n").arg(&file).output().expect("a shell");
        assert!(said.status.success(), "{name}: {}", String::from_utf8_lossy(&said.stderr));
        // With the words of Debian's policy that mean nothing to it, a script does nothing and succeeds.
        let done = Command::new("sh").arg(&file).arg("abort-upgrade").output().expect("a shell");
        assert!(done.status.success(), "{name}");
    }
}
