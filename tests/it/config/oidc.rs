//! What `[oidc]` accepts and refuses.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use soloist::config::{DefaultRole, Oidc};

use super::Bench;

const GOOD: &str = "[oidc]\nissuer = \"https://login.example.org/realms/x\"\nclient_id = \"soloist\"\ndefault_role = \"viewer\"\n";

fn read(bench: &Bench) -> Arc<Oidc> {
    bench.config().oidc.expect("single sign-on")
}

#[test]
fn every_mistake_about_single_sign_on_is_named_with_its_remedy() {
    #[rustfmt::skip]
    let table: &[(&str, &str, &str)] = &[
        ("oidc = 1", "soloist.toml:1: oidc: must be a table", "[oidc]"),
        ("[oidc]", "soloist.toml:1: oidc.issuer: is missing", "https://"),
        ("[oidc]", "soloist.toml:1: oidc.client_id: is missing", "registered"),
        ("[oidc]", "soloist.toml:1: oidc.roles: is missing: nobody could sign in", "default_role"),
        ("[oidc]\nissuer = \"http://login.example.org\"", "soloist.toml:2: oidc.issuer: must begin with https://", "discovery"),
        ("[oidc]\nissuer = \"https://a/?b\"", "soloist.toml:2: oidc.issuer: must not have a query", "https://"),
        ("[oidc]\nclient_id = \"a b\"", "soloist.toml:2: oidc.client_id: is empty or has spaces", "client_id ="),
        ("[oidc]\nclient_secret = \"x\"", "soloist.toml:2: oidc.client_secret: unknown key", "client_secret_file"),
        ("[oidc]\nclient_secret_file = \"gone\"", "soloist.toml:2: oidc.client_secret_file: gone cannot be read", "path"),
        ("[oidc]\nclient_secret_file = \"open\"", "soloist.toml:2: oidc.client_secret_file: others may read open", "chmod 600 open"),
        ("[oidc]\nclient_secret_file = \"empty\"", "soloist.toml:2: oidc.client_secret_file: empty holds no secret", "one line"),
        ("[oidc]\nclient_secret_file = \".\"", "soloist.toml:2: oidc.client_secret_file: ", "is not a file"),
        ("[oidc]\nca_file = \"shut\"", "soloist.toml:2: oidc.ca_file: shut holds no certificate", "BEGIN CERTIFICATE"),
        ("[oidc]\nscopes = [\"a b\"]", "soloist.toml:2: oidc.scopes[0]: ", "openid"),
        ("[oidc]\ngroups_claim = \"\"", "soloist.toml:2: oidc.groups_claim: is no claim", "realm_access.roles"),
        ("[oidc]\nroles = { boss = [\"a\"] }", "soloist.toml:2: oidc.roles.boss: unknown key", "admin, operator, viewer"),
        ("[oidc]\nroles = { admin = \"a\" }", "soloist.toml:2: oidc.roles.admin: must be an array", "soloist-admins"),
        ("[oidc]\nroles = { admin = [\" \"] }", "soloist.toml:2: oidc.roles.admin[0]: names no group", "soloist-admins"),
        ("[oidc]\ndefault_role = \"admin\"", "soloist.toml:2: oidc.default_role: \"admin\" is no role for everybody", "viewer or operator"),
        ("[oidc]\ncreate_accounts = \"yes\"", "soloist.toml:2: oidc.create_accounts: must be true or false", "= true"),
        ("[oidc]\nbutton = { en = \"a\" }", "soloist.toml:2: oidc.button.zh: is missing", "both languages"),
        ("[oidc]\nbutton = \"\"", "soloist.toml:2: oidc.button: must be 1 to 64", "button ="),
    ];
    for (text, place, remedy) in table {
        let bench = Bench::new(text);
        for (name, text, mode) in
            [("open", "x\n", 0o644), ("empty", "\n", 0o600), ("shut", "x\n", 0o600)]
        {
            let file = bench.dir.path().join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let problems = bench.problems();
        let found = problems.iter().find(|line| line.starts_with(place));
        assert!(found.is_some_and(|line| line.contains(remedy)), "{text}\n{place}\n{problems:#?}");
    }
}

#[test]
fn single_sign_on_is_off_unless_it_is_set_up_and_has_defaults_then() {
    assert_eq!(Bench::new("").config().oidc, None);
    let oidc = read(&Bench::new(GOOD));
    assert_eq!(oidc.client_secret, None, "a public client");
    assert_eq!(oidc.scopes, ["openid", "profile", "email"]);
    assert_eq!(
        (oidc.groups_claim.as_str(), oidc.name_claim.as_str()),
        ("groups", "preferred_username")
    );
    assert_eq!(oidc.roles.otherwise, Some(DefaultRole::Viewer));
    assert!(!oidc.create_accounts);
    assert_eq!(
        (oidc.button.en.as_str(), oidc.button.zh.as_str()),
        ("Sign in with single sign-on", "单点登录")
    );
}

#[test]
fn the_secret_comes_from_a_file_or_the_environment_and_is_not_printed() {
    let mut bench = Bench::new(&format!("{GOOD}client_secret_file = \"secret\"\n"));
    let file = bench.dir.path().join("secret");
    std::fs::write(&file, "sesame\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let secret =
        |bench: &Bench| read(bench).client_secret.clone().expect("a secret").reveal().to_owned();
    assert_eq!(secret(&bench), "sesame");
    assert!(!format!("{:?}", bench.config()).contains("sesame"));
    bench.env.insert("SOLOIST_OIDC_CLIENT_SECRET", "other".to_owned());
    assert_eq!(secret(&bench), "other");
}

#[test]
fn a_reload_takes_single_sign_on_as_a_whole_or_not_at_all() {
    let (before, after) = (
        Bench::new("store = \"redis://h/0\"\nnode = \"a\"\n"),
        Bench::new(&format!("store = \"redis://h/0\"\nnode = \"a\"\n{GOOD}")),
    );
    let (taken, restart) = before.config().taking(after.config());
    assert!(restart.is_empty() && taken.oidc.is_some());
    let (taken, restart) = taken.taking(before.config());
    assert!(restart.is_empty() && taken.oidc.is_none());
    let broken = Bench::new(&format!("{GOOD}default_rule = \"viewer\"\n"));
    assert!(broken.examine().config.is_err());
}

#[test]
fn the_environment_outranks_the_table() {
    let mut bench = Bench::new(GOOD);
    let inline = "{ issuer = \"https://other.example.org\", client_id = \"b\", roles = { admin = [\"a\"] } }";
    bench.env.insert("SOLOIST_OIDC", inline.to_owned());
    assert_eq!(read(&bench).issuer, "https://other.example.org");
    bench.env.insert("SOLOIST_OIDC", "{".to_owned());
    assert!(
        bench.problems()[0].starts_with("$SOLOIST_OIDC: oidc: not valid TOML"),
        "{:?}",
        bench.problems()
    );
}
