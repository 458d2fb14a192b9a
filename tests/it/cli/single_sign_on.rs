//! `soloist user link`.

use soloist::store::accounts::Accounts;

use super::{JOBS, Place, user};

const OIDC: &str = "[oidc]\nissuer = \"https://login.example.org\"\nclient_id = \"soloist\"\ndefault_role = \"viewer\"\n";

#[tokio::test]
async fn an_account_is_linked_with_one_person_and_with_nobody_again() {
    let place = Place::with_accounts().await;
    let link = ["user", "link", "li", "--subject", "s-1"];
    let message = place.run(&link).fails(2);
    assert!(message.contains("no [oidc]"), "{message}");
    std::fs::write(place.dir.path().join("soloist.toml"), format!("{JOBS}{OIDC}"))
        .expect("written");
    place.run(&link).ok();
    let li = place.store().await.user(&user("li")).await.expect("an answer").expect("li");
    let external = li.external.expect("a person");
    assert_eq!(
        (external.issuer.as_str(), external.subject.as_str()),
        ("https://login.example.org", "s-1")
    );
    let message = place.run(&["user", "link", "wang", "--subject", "s-1"]).fails(4);
    assert!(message.contains("soloist user link li --none"), "{message}");
    assert_eq!(place.run(&["user", "link", "li"]).code, 2, "whom with?");
    place.run(&["user", "link", "nobody", "--subject", "s-2"]).fails(3);
    let said = place.run(&["user", "link", "li", "--none"]).ok();
    assert!(said.contains("signs in by password"), "{said}");
    let li = place.store().await.user(&user("li")).await.expect("an answer").expect("li");
    assert_eq!(li.external, None);
}
