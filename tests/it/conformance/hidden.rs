//! Laws of the names of jobs that only some accounts could see.

use soloist::store::hidden::HiddenNames as _;

use super::*;

pub(super) async fn names_of_hidden_jobs_are_added_and_never_taken_out(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let names = |some: std::ops::Range<usize>| -> Vec<JobName> {
        some.map(|nth| JobName::new(&format!("vault-{nth:03}")).expect("a good name")).collect()
    };
    let all = |some: Vec<JobName>| some.iter().map(ToString::to_string).collect();
    assert_eq!(store.hidden_names().await.expect("an answer"), all(Vec::new()));
    store.note_hidden(&[]).await.expect("nothing to do");
    let (few, many) = (names(0..2), names(1..250));
    let noted = tokio::join!(store.note_hidden(&few), other.note_hidden(&many));
    noted.0.expect("noted");
    noted.1.expect("noted");
    assert_eq!(other.hidden_names().await.expect("an answer"), all(names(0..250)));
    store.note_hidden(&few).await.expect("noted");
    assert_eq!(store.hidden_names().await.expect("an answer"), all(names(0..250)));
}
