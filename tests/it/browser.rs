//! Two people, two browsers, two nodes: a click in one window is seen in the other.

use fantoccini::Locator;

use crate::lifecycle::{JOB, Pair};
use crate::support::browser::Driver;
use crate::support::wait::until_async;

/// The state that the row of the job shows, by its `data-state`.
const ROW: &str = "[data-job='outbound']";

async fn shows(window: &crate::support::browser::Window, state: &str) {
    until_async(&format!("the row shows {state}"), async || {
        let row = window.client.find(Locator::Css(ROW)).await.ok()?;
        // The row may be replaced between finding and asking; then it is looked for again.
        let found = row.attr("data-state").await.ok()??;
        (found == state).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_on_the_switch_in_one_window_is_seen_in_another() {
    let pair = Pair::start("beat", "");
    let driver = Driver::start();
    let (li, wang) = (driver.window("li").await, driver.window("wang").await);
    li.sign_in(&pair.a, "li").await;
    wang.sign_in(&pair.b, "wang").await;
    shows(&wang, "off").await;

    let switch = format!("{ROW} form[data-toggle] button");
    // A mark that only this document has: if it is there at the end, nothing was loaded again.
    wang.client.execute("window.soloistTest = 1", vec![]).await.expect("a mark");
    li.element(&switch).await.click().await.expect("clicked");
    let _first = pair.witness.until_started(1);
    shows(&wang, "running").await;
    shows(&li, "running").await;
    let row = wang.element(ROW).await.text().await.expect("text");
    assert!(row.contains("li"), "the row says who wants it: {row}");

    wang.element(&switch).await.click().await.expect("clicked");
    until_async("li sees that wang wants it too", async || {
        let row = li.client.find(Locator::Css(ROW)).await.ok()?;
        row.text().await.ok()?.contains("wang").then_some(())
    })
    .await;
    assert_eq!(pair.witness.starts(), 1);
    let mark = wang.client.execute("return window.soloistTest", vec![]).await.expect("a value");
    assert_eq!(mark, 1, "the page was never loaded again");
    let job = pair.li().get(&format!("/api/v1/jobs/{JOB}")).await;
    assert_eq!(job["participants"].as_array().map(Vec::len), Some(2));
    li.close().await;
    wang.close().await;
}
