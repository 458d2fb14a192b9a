//! Output on the page of a job: a reader's place is held while lines pour in, and a link leads to one line.

use serde_json::{Value, json};

use crate::support::browser::Window;
use crate::support::node::Ground;
use crate::support::wait::until_async;

use super::Driver;

/// A hundred lines a second.
const POURS: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sh\", \"-c\", \
    'i=0; while :; do i=$((i+1)); printf \"\\033[32mline\\033[0m %s\\n\" $i; sleep 0.01; done']\n";

/// The number of the first line that is seen, where it stands, and how many lines are there.
const PLACE: &str = "const screen = document.querySelector('.screen');
    const top = screen.getBoundingClientRect().top;
    const first = [...document.querySelectorAll('[data-seq]')].find((one) => one.getBoundingClientRect().bottom > top + 1);
    return [first.dataset.seq, Math.round(first.getBoundingClientRect().top - top), document.querySelectorAll('[data-seq]').length]";

/// How far the end of the newest line is below the edge of what is seen, in pixels.
const BELOW: &str = "const last = document.querySelector('.log').lastElementChild.getBoundingClientRect();
    return Math.round(last.bottom - document.querySelector('.screen').getBoundingClientRect().bottom)";

async fn told(window: &Window, script: &str) -> Value {
    window.client.execute(script, vec![]).await.expect("a value")
}

/// How many lines wait behind the pause; `None` while none is named.
async fn waiting(window: &Window) -> Option<u64> {
    let text = told(window, "return document.querySelector('[data-pause]').textContent").await;
    text.as_str()?.strip_prefix("paused · ")?.strip_suffix(" new")?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_reads_stays_where_it_is_while_a_hundred_lines_a_second_come() {
    let ground = Ground::new("sqlite:soloist.db", POURS);
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    ground.must(&["on", "outbound", "--user", "li"]);
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&node, "li").await;
    li.client.goto(&format!("{}/jobs/outbound", node.url)).await.expect("the page opens");
    let enough = "return document.querySelectorAll('[data-seq]').length > 120";
    until_async("there is enough to scroll", async || {
        (told(&li, enough).await == json!(true)).then_some(())
    })
    .await;
    li.element("[data-pause][aria-pressed='false']").await;
    until_async("the newest line is seen", async || {
        (told(&li, BELOW).await.as_i64()? <= 8).then_some(())
    })
    .await;
    li.element(".log .said .f2").await;

    told(&li, "document.querySelector('.screen').scrollTop = -700; return 0").await;
    li.element("[data-pause][aria-pressed='true']").await;
    let place = told(&li, PLACE).await;
    let many = until_async("more than two hundred lines wait", async || {
        waiting(&li).await.filter(|waiting| *waiting > 200)
    })
    .await;
    assert_eq!(told(&li, PLACE).await, place, "after {many} lines");

    li.element("[data-pause]").await.click().await.expect("clicked");
    li.element("[data-pause][aria-pressed='false']").await;
    assert!(told(&li, BELOW).await.as_i64().is_some_and(|below| below <= 8));
    let gaps = "const all = [...document.querySelectorAll('.log [data-seq]')].map((one) => Number(one.dataset.seq));
        return all.every((seq, nth) => nth === 0 || seq === all[nth - 1] + 1)";
    assert_eq!(told(&li, gaps).await, true, "every line that waited is there, in order");
    assert!(told(&li, PLACE).await[2].as_u64() > place[2].as_u64().map(|lines| lines + 200));

    // A slow page begins later than at the first line.
    let link = told(&li, "return document.querySelectorAll('[data-seq] .at')[50].href").await;
    li.client.goto(link.as_str().expect("an address")).await.expect("the page opens");
    li.element("li:target[data-sought]").await;
    let seen = "const [line, screen] = ['li:target', '.screen'].map((one) => document.querySelector(one).getBoundingClientRect());
        return line.top >= screen.top && line.bottom <= screen.bottom && screen.bottom <= innerHeight + screen.height";
    assert_eq!(told(&li, seen).await, true, "the line is seen");
    assert_eq!(told(&li, "return document.querySelector('[data-log]')").await, Value::Null);

    // No script has a part in this page: it begins at its end because of how it is laid out.
    let older = format!("{}/jobs/outbound?lines_before=200", node.url);
    li.client.goto(&older).await.expect("the page opens");
    li.element("#L199").await;
    assert!(told(&li, BELOW).await.as_i64().is_some_and(|below| below <= 8));
    li.element(".wrap input").await.click().await.expect("clicked");
    let wraps = "return getComputedStyle(document.querySelector('.log')).whiteSpaceCollapse \
        + getComputedStyle(document.querySelector('.log')).textWrapMode";
    assert_eq!(told(&li, wraps).await, "preservenowrap");
    li.close().await;
}
