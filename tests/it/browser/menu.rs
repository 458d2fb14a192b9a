//! The menu of acts on the page of a job: how it opens, closes, and fits; and what becomes of it while the job changes.

use fantoccini::Locator;
use serde_json::json;

use super::Driver;
use super::acts::{installation, press, tab_to, until_focus, until_state};
use crate::support::browser::Window;

const ESCAPE: &str = "\u{e00c}";

/// Whether what is open lies within the window.
const FITS: &str = "const box = document.querySelector(arguments[0]).getBoundingClientRect();
    return box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight && box.width > 100";

async fn fits(window: &Window, css: &str) {
    let fits = window.client.execute(FITS, vec![json!(css)]).await.expect("an answer");
    assert_eq!(fits, true, "{css} does not fit the window");
}

async fn is_open(window: &Window, css: &str) -> bool {
    window.client.find(Locator::Css(&format!("{css}:popover-open"))).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_menu_of_acts_closes_by_escape_step_by_step_and_fits_the_narrowest_window() {
    let (_ground, a, _b, api) = installation();
    api.switch("labels", true).await;
    until_state(&api, "labels", "running").await;
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&a, "li").await;
    for (width, height) in [(1280, 900), (320, 640)] {
        li.resize(width, height).await;
        li.client.goto(&format!("{}/jobs/labels", a.url)).await.expect("the page opens");
        li.element(".mark[data-mark='live']").await;
        assert!(!is_open(&li, "#acts").await, "it is closed at first");
        let shown = "return document.querySelector('#act-hold').checkVisibility()";
        assert_eq!(li.told(shown).await, false, "no act stands on the page by itself");
        tab_to(&li, "#acts-open").await;
        press(&li, "\n").await;
        li.element("#acts:popover-open").await;
        fits(&li, "#acts").await;
        for act in ["move", "hold", "drill"] {
            tab_to(&li, &format!("#acts [popovertarget='act-{act}']")).await;
            press(&li, "\n").await;
            let dialog = format!("#act-{act}");
            li.element(&format!("{dialog}:popover-open")).await;
            fits(&li, &dialog).await;
            press(&li, ESCAPE).await;
            assert!(!is_open(&li, &dialog).await, "Escape closes the dialog");
            assert!(is_open(&li, "#acts").await, "and leads back to the menu");
            until_focus(&li, &format!("#acts [popovertarget='act-{act}']")).await;
        }
        press(&li, ESCAPE).await;
        assert!(!is_open(&li, "#acts").await, "Escape closes the menu");
        until_focus(&li, "#acts-open").await;
    }
    li.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_that_is_being_written_outlives_what_happens_to_the_job_meanwhile() {
    let (ground, a, _b, api) = installation();
    api.switch("labels", true).await;
    until_state(&api, "labels", "running").await;
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&a, "li").await;
    li.client.goto(&format!("{}/jobs/labels", a.url)).await.expect("the page opens");
    li.element(".mark[data-mark='live']").await;
    tab_to(&li, "#acts-open").await;
    press(&li, "\n").await;
    tab_to(&li, "#acts [popovertarget='act-hold']").await;
    press(&li, "\n").await;
    until_focus(&li, "#hold-reason").await;
    press(&li, "stock").await;
    tab_to(&li, "#act-hold .danger").await;
    // It is handed over: head, history and acts are made anew.
    let run = li.element("#head").await.attr("data-run").await.expect("an answer");
    li.told(
        "window.soloistFetched = 0; document.addEventListener('fetched', () => soloistFetched++)",
    )
    .await;
    let (status, said) =
        api.call(reqwest::Method::POST, "/api/v1/jobs/labels/move", Some(json!({}))).await;
    assert!(status.is_success(), "{said}");
    crate::support::wait::until_async("the page has followed", async || {
        let now = li.element("#head[data-state='running']").await.attr("data-run").await.ok()?;
        (now != run && li.told("return window.soloistFetched").await != 0).then_some(())
    })
    .await;
    assert!(is_open(&li, "#act-hold").await, "the dialog is still open");
    assert_eq!(li.told("return document.querySelector('#hold-reason').value").await, "stock");
    press(&li, "\n").await;
    until_state(&api, "labels", "held").await;
    assert_eq!(api.get("/api/v1/jobs/labels").await["hold"]["reason"], "stock");

    // Somebody who may only look has no menu.
    let wang = driver.window("wang").await;
    ground.add_user("vera", "viewer");
    wang.sign_in(&a, "vera").await;
    wang.client.goto(&format!("{}/jobs/labels", a.url)).await.expect("the page opens");
    wang.element("#head[data-state='held']").await;
    assert!(wang.client.find(Locator::Css("#acts-open, #acts")).await.is_err());
    wang.close().await;
    li.close().await;
}
