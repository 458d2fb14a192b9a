//! Each act in Chromium under other conditions: the keyboard alone, no scripts, the system's own colours.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fantoccini::Locator;
use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::key::Key;
use serde_json::{Value, json};

use super::Driver;
use crate::support::api::Api;
use crate::support::browser::Window;
use crate::support::node::{Ground, Node, password_of};
use crate::support::wait::until_async;

/// Four jobs that run until they are stopped; one tells how far it is.
const JOBS: &str = r#"
[[job]]
name = "outbound"
title = { en = "Outbound shipping", zh = "出库任务" }
command = ["sh", "-c", "echo ::progress 400/1000 order 400; exec sleep 1000"]
[[job]]
name = "stock"
command = ["sleep", "1000"]
[[job]]
name = "labels"
command = ["sleep", "1000"]
"#;

async fn until_job(api: &Api, job: &str, what: &str, is: impl Fn(&Value) -> bool) {
    until_async(&format!("{job} {what}"), async || {
        is(&api.get(&format!("/api/v1/jobs/{job}")).await).then_some(())
    })
    .await;
}

pub(super) async fn until_state(api: &Api, job: &str, state: &str) {
    until_job(api, job, &format!("is {state}"), |shown| shown["state"] == state).await;
}

/// Two nodes on one file, an admin, and a program that looks.
pub(super) fn installation() -> (Ground, Node, Node, Api) {
    let ground = Ground::new("sqlite:soloist.db", JOBS);
    ground.add_user("li", "admin");
    let (a, b) = (ground.start("node-a"), ground.start("node-b"));
    let api = a.api(&ground.token("li"));
    (ground, a, b, api)
}

/// Whether what has the focus fits `css`, and whether somebody who looks at it sees that: the address of the place, for failures.
const FOCUS: &str = "const [css] = arguments; const at = document.activeElement; const style = getComputedStyle(at);
    const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    const box = at.getBoundingClientRect();
    return [at.matches(css), seen || at === document.body || at.tagName === 'MAIN', at.outerHTML.slice(0, 120),
        at === document.body || (box.bottom > 0 && box.top < innerHeight && box.width > 0)]";

/// Goes on by Tab to the first that fits, as a person does; every stop on the way must be seen.
pub(super) async fn tab_to(window: &Window, css: &str) {
    for _ in 0..80 {
        press(window, &char::from(Key::Tab).to_string()).await;
        let at = window.client.execute(FOCUS, vec![json!(css)]).await.expect("an answer");
        assert!(at[1] == true && at[3] == true, "the focus cannot be seen on {}", at[2]);
        if at[0] == true {
            return;
        }
    }
    panic!("Tab does not reach {css}");
}

/// Presses keys as a keyboard does, wherever the focus is: keys that are sent to an element set its focus first, and a field of a
/// date is never left by Tab then.
pub(super) async fn press(window: &Window, keys: &str) {
    let mut pressed = KeyActions::new("keyboard".to_owned());
    for key in keys.chars() {
        let value = if key == '\n' { char::from(Key::Enter) } else { key };
        pressed = pressed.then(KeyAction::Down { value }).then(KeyAction::Up { value });
    }
    window.client.perform_actions(pressed).await.expect("typed");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_done_with_the_keyboard_alone_and_the_focus_is_always_seen() {
    let (_ground, a, b, api) = installation();
    let driver = Driver::start();
    let li = driver.window("li").await;

    // Signing in.
    li.client.goto(&format!("{}/login", a.url)).await.expect("the page opens");
    // A person begins to type when the field has the focus.
    until_async("the name may be typed", async || {
        (li.told("return document.activeElement.id").await == "name").then_some(())
    })
    .await;
    press(&li, "li").await;
    tab_to(&li, "input[name=password]").await;
    press(&li, &password_of("li")).await;
    tab_to(&li, "form[action='/login'] button").await;
    press(&li, " ").await;
    li.element("[data-menu]").await;
    li.element(".mark[data-mark='live']").await;

    // Past the navigation; then on by the switch, once with Space and once with Enter.
    press(&li, &char::from(Key::Tab).to_string()).await;
    press(&li, "\n").await;
    tab_to(&li, "#job-outbound .switch").await;
    press(&li, " ").await;
    until_state(&api, "outbound", "running").await;
    tab_to(&li, "#job-stock .switch").await;
    press(&li, "\n").await;
    until_state(&api, "stock", "running").await;

    // Off asks back; the dialog has the focus.
    li.element("#job-stock .switch[aria-checked='true']").await;
    press(&li, " ").await;
    li.element("dialog[open]").await;
    tab_to(&li, "dialog[open] button[value=yes]").await;
    press(&li, "\n").await;
    until_state(&api, "stock", "off").await;

    // Several off together, with a reason.
    tab_to_from_start(&li, &a, "/", "#job-outbound .tick-box").await;
    press(&li, " ").await;
    tab_to(&li, "#bulk button[value=off]").await;
    press(&li, "\n").await;
    tab_to(&li, "main input[name=reason]").await;
    press(&li, "quarter closed").await;
    tab_to(&li, "main form[method=post] button").await;
    press(&li, "\n").await;
    until_state(&api, "outbound", "off").await;
    let audit = api.get("/api/v1/audit").await;
    assert!(audit.to_string().contains("quarter closed"), "{audit}");

    // Search and filter.
    tab_to_from_start(&li, &a, "/", "[data-search]").await;
    press(&li, "labels\n").await;
    until_async("the search is done", async || {
        li.client.current_url().await.ok()?.query()?.contains("q=labels").then_some(())
    })
    .await;
    li.element("#job-labels").await;
    tab_to_from_start(&li, &a, "/", ".summary a[href*='state=off']").await;
    press(&li, "\n").await;
    li.element(".summary [aria-current]").await;

    // The acts of one job: move, hold with a reason, resume, drill.
    api.switch("labels", true).await;
    until_state(&api, "labels", "running").await;
    let from = api.get("/api/v1/jobs/labels").await["lease"]["node"].clone();
    let other = if from == "node-a" { "node-b" } else { "node-a" };
    open_act(&li, &a, "move").await;
    until_focus(&li, "#move-to").await;
    press(&li, other).await;
    tab_to(&li, "#move-reason").await;
    press(&li, "new disk").await;
    tab_to(&li, "#act-move .primary").await;
    press(&li, "\n").await;
    until_job(&api, "labels", "has moved", |job| {
        job["state"] == "running" && job["lease"]["node"] == other
    })
    .await;
    let moved = api.get("/api/v1/audit?act=job.move&limit=1").await;
    assert_eq!(moved["entries"][0]["reason"], format!("to {other}: new disk"), "{moved}");
    open_act(&li, &a, "hold").await;
    until_focus(&li, "#hold-reason").await;
    press(&li, "stocktaking").await;
    tab_to(&li, "#act-hold .danger").await;
    press(&li, "\n").await;
    until_state(&api, "labels", "held").await;
    tab_to_from_start(&li, &a, "/jobs/labels", "#acts-open").await;
    press(&li, "\n").await;
    tab_to(&li, "form[action$='/resume'] button").await;
    press(&li, " ").await;
    until_state(&api, "labels", "running").await;

    // A drill kills the node that holds it: not the one that is looked at.
    let held = api.get("/api/v1/jobs/labels").await["lease"]["node"].clone();
    let mut nodes = [a, b];
    let (here, there) = if held == "node-a" { (1, 0) } else { (0, 1) };
    let watched = driver.window("wang").await;
    watched.enter(&nodes[here], "li").await;
    open_act(&watched, &nodes[here], "drill").await;
    until_focus(&watched, "#drill-reason").await;
    press(&watched, "exercise").await;
    tab_to(&watched, "#act-drill .danger").await;
    press(&watched, "\n").await;
    confirm(&watched).await;
    assert!(nodes[there].wait().is_none(), "killed by a signal");
    let api = nodes[here].api(api.token());
    until_job(&api, "labels", "runs again", |job| {
        job["state"] == "running" && job["lease"]["node"] != held
    })
    .await;
    let drilled = api.get("/api/v1/audit?act=job.drill&limit=1").await;
    let noted = drilled["entries"][0]["reason"].as_str().expect("a reason");
    assert!(noted.ends_with(": exercise"), "{noted}");

    // Signing out.
    tab_to_from_start(&watched, &nodes[here], "/", "[data-menu] > summary").await;
    press(&watched, "\n").await;
    tab_to(&watched, "form[action='/logout'] button").await;
    press(&watched, "\n").await;
    watched.element("form[action='/login']").await;
    watched.close().await;
    li.close().await;
}

/// Opens the dialog of an act from the menu of the job `labels`, by keyboard.
async fn open_act(window: &Window, node: &Node, act: &str) {
    tab_to_from_start(window, node, "/jobs/labels", "#acts-open").await;
    press(window, "\n").await;
    tab_to(window, &format!("#acts [popovertarget='act-{act}']")).await;
    press(window, "\n").await;
    window.element(&format!("#act-{act}:popover-open")).await;
}

/// Waits until that has the focus.
pub(super) async fn until_focus(window: &Window, css: &str) {
    let script = format!("return document.activeElement.matches(\"{css}\")");
    until_async(&format!("{css} has the focus"), async || {
        (window.told(&script).await == true).then_some(())
    })
    .await;
}

/// Answers what is asked back, if anything is, by keyboard.
async fn confirm(window: &Window) {
    let asked = "main form[method=post] .danger, dialog[open] button[value=yes]";
    until_async("it is asked back, or done", async || {
        let found = window.client.find(Locator::Css(asked)).await.is_ok();
        let url = window.client.current_url().await.ok()?;
        (found || !url.path().ends_with("/drill")).then_some(())
    })
    .await;
    if window.told("return !document.querySelector('#operate')").await == true {
        tab_to(window, asked).await;
        press(window, "\n").await;
    }
}

/// Opens the address, and goes on from its beginning.
async fn tab_to_from_start(window: &Window, node: &Node, path: &str, css: &str) {
    window.client.goto(&format!("{}{path}", node.url)).await.expect("the page opens");
    window.element(".mark[data-mark='live']").await;
    tab_to(window, css).await;
}

/// Presses what stands there; without scripts each act is a page.
async fn click(window: &Window, css: &str) {
    // What was found may stand on the page that is just being left.
    until_async("it is clicked", async || match window.element(css).await.click().await {
        Ok(()) => Some(()),
        Err(error) if error.is_stale_element_reference() => None,
        Err(error) => panic!("{css} cannot be clicked: {error}"),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_act_works_without_javascript() {
    let (_ground, a, b, api) = installation();
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.devtools("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    li.enter(&a, "li").await;
    let open = async |path: &str| {
        li.client.goto(&format!("{}{path}", a.url)).await.expect("the page opens");
    };
    // The proof that no script runs: the mark stays as the server wrote it.
    li.element(".mark[data-mark='still']").await;

    click(&li, "#job-outbound .switch").await;
    until_state(&api, "outbound", "running").await;
    open("/").await;
    click(&li, "#job-outbound .switch[aria-checked='true']").await;
    click(&li, "main form[action$='/participation'] .button.danger").await;
    until_state(&api, "outbound", "off").await;

    open("/").await;
    click(&li, "#job-stock .tick-box").await;
    click(&li, "#bulk button[value=on]").await;
    click(&li, "main form[method=post] .button.primary, main form[method=post] button").await;
    until_state(&api, "stock", "running").await;

    let from = api.get("/api/v1/jobs/stock").await["lease"]["node"].clone();
    open("/jobs/stock").await;
    click(&li, "#acts-open").await;
    click(&li, "#acts [popovertarget='act-move']").await;
    click(&li, "#act-move .primary").await;
    until_job(&api, "stock", "has moved", |job| {
        job["state"] == "running" && job["lease"]["node"] != from
    })
    .await;
    open("/jobs/stock").await;
    click(&li, "#acts-open").await;
    click(&li, "#acts [popovertarget='act-hold']").await;
    li.element("#hold-reason").await.send_keys("stocktaking").await.expect("typed");
    click(&li, "#act-hold .danger").await;
    until_state(&api, "stock", "held").await;
    open("/jobs/stock").await;
    click(&li, "#acts-open").await;
    click(&li, "form[action$='/resume'] button").await;
    until_state(&api, "stock", "running").await;

    open("/?q=labels").await;
    li.element("#job-labels").await;
    assert!(
        li.client.find(Locator::Css("#job-stock")).await.is_err(),
        "the search is the server's"
    );
    click(&li, ".summary a[href*='state=off']").await;
    li.element(".summary [aria-current]").await;

    open("/nodes").await;
    click(&li, &format!("#node-{} form[action$='/drain'] button", b.name)).await;
    li.element("main #reason").await.send_keys("new disk").await.expect("typed");
    click(&li, "main form[action$='/drain'] .button.danger, main form[action$='/drain'] button")
        .await;
    until_async("the node is drained", async || {
        let nodes = api.get("/api/v1/nodes").await;
        let all = nodes["nodes"].as_array()?;
        all.iter().any(|node| node["name"] == "node-b" && node["draining"] == true).then_some(())
    })
    .await;
    let drained = api.get("/api/v1/audit?act=node.drain&limit=1").await;
    assert_eq!(drained["entries"][0]["reason"], "new disk", "{drained}");

    open("/account").await;
    li.element("#token-name").await.send_keys("nightly").await.expect("typed");
    click(&li, "form[action='/account/tokens'] button").await;
    let secret = li.element("#secret").await.text().await.expect("text");
    assert!(secret.starts_with("sol_"), "{secret}");
    click(&li, "button[name=language]").await;
    li.element("html[lang=zh]").await;
    click(&li, "button[name=theme]").await;
    li.element("html[data-theme=dark]").await;
    click(&li, "[data-menu] > summary").await;
    click(&li, "form[action='/logout'] button").await;
    li.element("form[action='/login']").await;
    li.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reason_is_given_beside_the_switch_and_is_read_on_the_row_and_in_the_audit() {
    let (_ground, a, b, api) = installation();
    let driver = Driver::start();
    let reason_in_audit = async |reason: &str| {
        let audit = api.get("/api/v1/audit?act=participation.off&limit=1").await;
        assert_eq!(audit["entries"][0]["reason"], reason, "{audit}");
    };

    // With the keyboard alone, from the row; the last one is asked back.
    let li = driver.window("li").await;
    li.sign_in(&a, "li").await;
    let told_off =
        "return getComputedStyle(document.querySelector('#job-outbound .because')).display";
    assert_eq!(li.told(told_off).await, "none", "nothing to explain while it is off");
    api.switch("outbound", true).await;
    until_state(&api, "outbound", "running").await;
    li.element("#job-outbound .switch[aria-checked='true']").await;
    li.told("window.soloistTest = 1").await;
    tab_to(&li, "#job-outbound .because").await;
    press(&li, "\n").await;
    li.element("#because-outbound:popover-open").await;
    until_async("the reason may be typed", async || {
        (li.told("return document.activeElement.id").await == "reason-outbound").then_some(())
    })
    .await;
    // What runs meanwhile changes the row, and takes away nothing of what is being written.
    press(&li, "quarter").await;
    tab_to(&li, "#because-outbound .button").await;
    api.switch("stock", true).await;
    li.element("#job-stock[data-state='running']").await;
    let written = "return document.querySelector('#reason-outbound').value";
    assert_eq!(li.told(written).await, "quarter");
    li.element("#reason-outbound").await.send_keys(" closed\n").await.expect("typed");
    confirm_in_dialog(&li).await;
    until_state(&api, "outbound", "off").await;
    reason_in_audit("quarter closed").await;
    li.element("#job-outbound[data-state='off']").await;
    let row = li.element("#job-outbound").await.text().await.expect("text");
    assert!(row.contains("li") && row.contains("“quarter closed”"), "{row}");
    assert_eq!(li.told("return window.soloistTest").await, 1, "the page was never loaded again");
    let on_the_switch = "return document.activeElement.matches('#job-outbound .switch')";
    assert_eq!(li.told(on_the_switch).await, true);
    assert_eq!(li.told(written).await, "", "the next reason is another");
    // Without a reason it costs what it cost.
    api.switch("outbound", true).await;
    li.element("#job-outbound .switch[aria-checked='true']").await.click().await.expect("clicked");
    confirm_in_dialog(&li).await;
    until_state(&api, "outbound", "off").await;
    reason_in_audit_is_empty(&api).await;

    // On the job's own page.
    api.switch("outbound", true).await;
    li.client.goto(&format!("{}/jobs/outbound", a.url)).await.expect("the page opens");
    li.element(".mark[data-mark='live']").await;
    click(&li, "#head .because").await;
    li.element("#reason-outbound").await.send_keys("stocktaking").await.expect("typed");
    click(&li, "#because-outbound .button").await;
    confirm_in_dialog(&li).await;
    li.element("#head[data-state='off']").await;
    reason_in_audit("stocktaking").await;
    let head = li.element("#head").await.text().await.expect("text");
    assert!(head.contains("“stocktaking”"), "{head}");
    li.close().await;

    // Without scripts, in Chinese, on a phone.
    let wang = driver.window("wang").await;
    wang.devtools("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    wang.enter(&b, "li").await;
    click(&wang, "button[name=language][value=zh]").await;
    wang.element("html[lang=zh]").await;
    wang.resize(390, 844).await;
    for (path, place) in [("/", "#job-outbound"), ("/jobs/outbound", "#head")] {
        api.switch("outbound", true).await;
        until_state(&api, "outbound", "running").await;
        wang.client.goto(&format!("{}{path}", b.url)).await.expect("the page opens");
        click(&wang, &format!("{place} .because")).await;
        let reason = format!("季度已结账 {path}");
        wang.element("#reason-outbound").await.send_keys(&reason).await.expect("typed");
        click(&wang, "#because-outbound .button").await;
        click(&wang, "main form[action$='/participation'] .button.danger").await;
        until_state(&api, "outbound", "off").await;
        reason_in_audit(&reason).await;
        let address = wang.client.current_url().await.expect("an address");
        assert_eq!(address.path(), path, "it leads back to where the switch stands");
        // A page without scripts shows one moment.
        until_async("the reason stands beside the job", async || {
            wang.client.goto(address.as_str()).await.ok()?;
            let said = wang.element(place).await.text().await.ok()?;
            said.contains(&format!("“{reason}”")).then_some(())
        })
        .await;
    }
    wang.close().await;
}

async fn reason_in_audit_is_empty(api: &Api) {
    let audit = api.get("/api/v1/audit?act=participation.off&limit=1").await;
    assert!(audit["entries"][0]["reason"].is_null(), "{audit}");
}

/// Answers the question before the last one leaves, by keyboard.
async fn confirm_in_dialog(window: &Window) {
    window.element("dialog[open]").await;
    tab_to(window, "dialog[open] button[value=yes]").await;
    press(window, "\n").await;
}

/// What somebody sees of switches and of progress where the system chooses the colours.
const SEEN: &str = "const of = (css, name, part) => getComputedStyle(document.querySelector(css), part)[name];
    const track = (job) => of(`#job-${job} .track`, 'backgroundColor');
    const knob = (job) => document.querySelector(`#job-${job} .knob`).getBoundingClientRect().x - document.querySelector(`#job-${job} .track`).getBoundingClientRect().x;
    return { forced: matchMedia('(forced-colors: active)').matches,
        on: track('outbound'), off: track('stock'), onKnob: knob('outbound'), offKnob: knob('stock'),
        offEdge: of('#job-stock .track', 'borderTopStyle'),
        edge: of('#job-outbound progress', 'borderTopStyle') }";

/// Which share of two pictures differs so that somebody sees it.
const DIFFERENT: &str = "const [one, two, done] = arguments;
    const pixels = async (text) => {
        const image = await createImageBitmap(new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], { type: 'image/png' }));
        const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
        canvas.drawImage(image, 0, 0);
        return canvas.getImageData(0, 0, image.width, image.height).data;
    };
    Promise.all([pixels(one), pixels(two)]).then(([a, b]) => {
        let n = 0;
        for (let at = 0; at < a.length; at += 4) n += [0, 1, 2].some((part) => Math.abs(a[at + part] - b[at + part]) > 60);
        done(n / (a.length / 4));
    }, (error) => done(`${error}`));";

#[tokio::test(flavor = "multi_thread")]
async fn switches_and_progress_are_seen_in_the_colours_of_the_system() {
    let (_ground, a, _b, api) = installation();
    api.switch("outbound", true).await;
    until_job(&api, "outbound", "says how far it is", |job| job["run"]["progress"]["done"] == 400)
        .await;
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&a, "li").await;
    let features = json!({"features": [{"name": "forced-colors", "value": "active"}]});
    li.devtools("Emulation.setEmulatedMedia", features).await;
    li.element("#job-outbound .switch[aria-checked='true']").await;
    li.element("#job-outbound progress").await;
    let seen = until_async("the knob has arrived", async || {
        let seen = li.told(SEEN).await;
        (seen["onKnob"].as_f64()? - seen["offKnob"].as_f64()? > 10.0).then_some(seen)
    })
    .await;
    assert_eq!(seen["forced"], true, "{seen}");
    assert_ne!(seen["on"], seen["off"], "on and off differ by more than the knob: {seen}");
    assert_eq!(seen["offEdge"], "solid", "{seen}");
    assert_eq!(seen["edge"], "solid", "{seen}");
    // What of a bar is full has no style that a script could read: it is looked at.
    let still = "document.styleSheets[0].insertRule('progress::-webkit-progress-value { transition: none !important }')";
    li.told(still).await;
    // A frame of the job may say how far it is meanwhile.
    let picture = async |done: u32| {
        let bar = "document.querySelector('#job-outbound progress').value";
        until_async("a picture of a bar that stays as it was set", async || {
            li.told(&format!("{bar} = {done}")).await;
            let seen = li.element("#job-outbound progress").await;
            let picture = seen.screenshot().await.ok()?;
            (li.told(&format!("return {bar}")).await == json!(done)).then_some(picture)
        })
        .await
    };
    let (empty, full) = (picture(0).await, picture(1_000).await);
    let texts = [empty, full].map(|bytes| json!(STANDARD.encode(bytes)));
    // No policy of ours stands in the way there.
    li.client.goto("about:blank").await.expect("a page");
    let share = li.client.execute_async(DIFFERENT, texts.into()).await.expect("a share");
    assert!(share.as_f64() > Some(0.5), "how full the bar is cannot be seen: {share} differs");
    li.close().await;
}
