//! A source from its first rule to the removal of its last task, by hand in a browser.

use crate::lifecycle::Pair;
use crate::support::browser::{Driver, Window};
use crate::support::wait::until_async;

/// Types into a field that is empty of what stood there.
async fn types(window: &Window, field: &str, text: &str) {
    let field = window.element(&format!("[name='{field}']:not([type='hidden'])")).await;
    field.clear().await.expect("cleared");
    field.send_keys(text).await.expect("typed");
}

async fn press(window: &Window, css: &str) {
    window.element(css).await.click().await.expect("clicked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_made_filled_and_emptied_by_hand() {
    let pair = Pair::start("beat", "");
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&pair.a, "li").await;
    li.client.goto(&format!("{}/dispatch", pair.a.url)).await.expect("the page opens");
    press(&li, "a[href='/dispatch/new']").await;
    types(&li, "name", "pages").await;
    types(&li, "gap", "soon").await;
    press(&li, ".rules-form .primary").await;
    let notice = li.element(".notice[role='alert']").await.text().await.expect("text");
    assert!(notice.starts_with("Gap is wrong"), "{notice}");
    let name = li.element("[name='name']").await.prop("value").await.expect("a value");
    assert_eq!(name.as_deref(), Some("pages"), "what was typed stays");
    types(&li, "gap", "250ms").await;
    press(&li, ".rules-form .primary").await;
    li.element("#source-pages[data-state='empty']").await;

    press(&li, "#put-title").await;
    types(&li, "key", "one").await;
    types(&li, "payload", "{\"n\": 1}").await;
    press(&li, "form[action='/dispatch/sources/pages/tasks'] .primary").await;
    press(&li, "tr[data-state='ready'] input[name='task']").await;
    press(&li, "button[name='act'][value='remove']").await;
    let asked = li.element(".narrow").await.text().await.expect("text");
    assert!(asked.contains("Remove one task?") && asked.contains("one"), "{asked}");
    press(&li, ".narrow button.danger").await;
    // The page before has such a list as well.
    until_async("it is said that it was removed", async || {
        let done = li.element(".narrow .chosen").await.text().await.ok()?;
        done.contains("was removed").then_some(())
    })
    .await;
    press(&li, ".narrow a.button").await;
    li.element("#source-pages[data-state='empty']").await;
    let tasks = pair.li().get("/api/v1/tasks?source=pages").await;
    assert_eq!(tasks["tasks"], serde_json::json!([]));
    li.close().await;
}
