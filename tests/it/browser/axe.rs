//! What axe-core finds on any page is a failure: in both languages and themes, at three widths, with much to show, with
//! nothing, and in trouble. And no page is wider than its window, down to 320 px, at twice the size, and with letters twice as large
//! in the same window.
//!
//! Pages are found in the URL table: one that has no view here fails. axe-core comes from `tests/run`; ChromeDriver puts it into
//! the page, past the policy that keeps other scripts out.

use std::path::Path;

use serde_json::{Value, json};
use soloist::web::routes::ROUTES;

use super::Driver;
use super::world::{World, crowd};
use crate::support::browser::Window;
use crate::support::node::{Ground, Node};
use crate::support::wait::until_async;

/// Addresses of people that are no pages, and why.
const NOT_PAGES: &[&str] = &[
    "/static/{hash}/{path:.*}",
    "/favicon.ico",
    "/robots.txt",
    // They only lead on.
    "/login/oidc",
    "/login/oidc/callback",
    "/dispatch/tasks",
];
/// What machines read.
const MACHINES: [&str; 6] = ["/api/", "/live", "/metrics", "/healthz", "/readyz", "/badge/"];
/// More views of pages of the table, and what is answered in the place of one.
const MORE: [&str; 11] = [
    "/?state=trouble",
    "/?q=there-is-none",
    "/jobs/crashed",
    "/jobs/held",
    "/jobs/program",
    "/jobs/settle",
    "/jobs/stuck",
    "/jobs/outbound?lines_before=20",
    "/dispatch?all=1",
    "/audit?kind=refusal",
    "/no-such-page",
];
/// In CSS pixels.
const WIDTHS: [u32; 3] = [WIDE, 768, NARROW];
const WIDE: u32 = 1440;
const NARROW: u32 = 390;
/// No picture is higher.
const HIGHEST: u32 = 6_000;
/// Where little is shown, the widest and the narrowest show it.
const EDGES: [u32; 2] = [WIDE, NARROW];

/// At these the page must fit; the third is 1280 px at twice the size.
const REFLOW: [u32; 5] = [1440, 768, 640, 390, 320];

/// At these the page must fit with letters twice as large (WCAG 1.4.4).
const LARGE_LETTERS: [u32; 2] = [1280, 390];

/// All that axe-core knows of WCAG 2.2 A and AA and of good practice, with two rules that are off by default; then only what a
/// width can change, or what a theme can. Colours at a second width: of what looks otherwise there, or was not shown.
const RUN: &str = "const [what, done] = arguments;
    const behind = new Map([[null, '']]);
    const ground = (element) => {
        if (!behind.has(element)) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
            behind.set(element, `${ground(element.parentElement)}/${backgroundColor} ${backgroundImage} ${opacity}`);
        }
        return behind.get(element);
    };
    const look = (element) => {
        const { color, fontSize, fontWeight, textDecorationLine } = getComputedStyle(element);
        return `${color} ${fontSize} ${fontWeight} ${textDecorationLine} ${ground(element)}`;
    };
    const written = [...document.querySelectorAll('body *')].filter((element) => element.getClientRects().length &&
        (element.matches('input, select, textarea') || [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())));
    const first = what === 'all' || what === 'colours';
    if (first) window.looks = new WeakMap(written.map((element) => [element, look(element)]));
    const anew = written.filter((element) => window.looks.get(element) !== look(element));
    const colours = ['color-contrast', 'link-in-text-block'];
    const layout = ['target-size', 'scrollable-region-focusable', 'label-content-name-mismatch'];
    const rules = Object.fromEntries([...colours, ...layout].map((rule) => [rule, { enabled: true }]));
    const tasks = { all: [[document, { rules }]], layout: [[document, { runOnly: layout }]], colours: [[document, { runOnly: colours }]],
        rest: [[document, { runOnly: layout }], [anew, { runOnly: colours }]], anew: [[anew, { runOnly: colours }]], nothing: [] }[what];
    const run = async ([where, options]) =>
        where.length === 0 ? [] : (await axe.run(where, { ...options, resultTypes: ['violations'] })).violations;
    const brief = ({ id, nodes }) => nodes.map(({ target, any, all, none }) =>
        `${id}: ${target.join(' ')}: ${[...any, ...all, ...none].map(({ message }) => message).join('; ')}`);
    (async () => { const found = []; for (const task of tasks) found.push(...await run(task)); return found; })()
        .then((found) => done(found.flatMap(brief)), (error) => done([`axe failed: ${error}`]));";

/// Notes what is shown at this width of the page.
const SHOWN: &str = "(window.shown ??= {})[arguments[0]] =
    new Set([...document.querySelectorAll('body *')].filter((element) => element.getClientRects().length));";

/// What is shown at a middle width alone, where no colours are judged.
const BETWEEN: &str = "const { wide, middle, narrow } = window.shown;
    return [...middle].filter((element) => element.isConnected && !wide.has(element) && !narrow.has(element))
        .map(({ tagName, id, className }) => `shown at 768 px alone: ${tagName.toLowerCase()}${id && '#' + id}.${className}`);";

/// How far the page stands out of its window, and what does, or which row is taller than it; nothing if it fits.
const TOO_WIDE: &str = "const root = document.documentElement; const over = root.scrollWidth - root.clientWidth;
    const outside = (element) => element.getBoundingClientRect().right > root.clientWidth + 0.5 && !element.closest('.scroll, .screen, .sample, .nav > *');
    const named = ({ tagName, id, className }) => `${tagName.toLowerCase()}${id && '#' + id}.${className}`;
    const tall = [...document.querySelectorAll('.row')].filter((row) => root.style.fontSize === '100%' && row.offsetHeight > innerHeight);
    if (tall.length) return `taller than the window: ${tall.map(named).join(', ')}`;
    return over > 0 ? `${over} px too wide: ${[...document.body.querySelectorAll('*')].filter(outside).slice(0, 6).map(named).join(', ')}` : null";

fn axe() -> String {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("target/axe/axe_playwright_python/axe.min.js");
    std::fs::read_to_string(&file).unwrap_or_else(|error| {
        panic!("{}: {error}: tests/run installs axe-core from PyPI: run that first", file.display())
    })
}

/// An address of each page of the table.
fn pages(task: &str) -> Vec<String> {
    let pages = ROUTES.iter().filter(|route| {
        let machine = MACHINES.iter().any(|start| route.path.starts_with(start));
        route.method == "GET" && !machine && !NOT_PAGES.contains(&route.path)
    });
    pages
        .map(|route| {
            let path = match route.path {
                "/jobs/{job}/run" => "/jobs/settle/run".to_owned(),
                "/dispatch/tasks/{id}" => format!("/dispatch/tasks/{task}"),
                path => path
                    .replace("{job}", "outbound")
                    .replace("{node}", "node-a")
                    .replace("{source}", "shop")
                    .replace("{rotation}", "api")
                    .replace("{user}", "li"),
            };
            assert!(!path.contains('{'), "say in tests/it/browser/axe.rs what to show for {path}");
            path
        })
        .collect()
}

/// What is wrong with the open page in both themes at all widths. Layout is judged at each width; colours at the widest, and at
/// the narrowest where they are others: the two show all that stands between them. No language has colours of its own (see
/// `no_language_has_colours_of_its_own`), so the dark ones are judged in one.
async fn faults(
    window: &Window,
    axe: &str,
    widths: &[u32],
    (address, language): (&str, &str),
) -> Vec<String> {
    let (mut found, place) = (Vec::new(), format!("{address} {language}"));
    window.client.execute(axe, vec![]).await.expect("axe is put into the page");
    for theme in ["light", "dark"] {
        window.told(&format!("document.documentElement.dataset.theme = '{theme}'")).await;
        for width in widths {
            let what = match (theme, *width) {
                ("light", WIDE) => "all",
                ("light", NARROW) => "rest",
                ("light", _) => "layout",
                (_, WIDE) if language == "en" => "colours",
                (_, NARROW) if language == "en" => "anew",
                _ if pictures().is_some() => "nothing",
                _ => continue,
            };
            window.resize(*width, 900).await;
            photograph(window, &format!("{place} {theme} {width}"), *width).await;
            let said = window.client.execute_async(RUN, vec![json!(what)]).await;
            let said = said.unwrap_or_else(|error| panic!("{place}: {error}"));
            let lines = said.as_array().into_iter().flatten().filter_map(Value::as_str);
            found.extend(lines.map(|line| format!("{place} {theme} {width}: {line}")));
        }
    }
    found.extend(between(window, widths, &place).await);
    for (letters, widths) in [("100%", &REFLOW[..]), ("200%", &LARGE_LETTERS)] {
        let root = "document.documentElement";
        window.told(&format!("{root}.style.fontSize = '{letters}'")).await;
        for width in widths {
            window.resize(*width, 900).await;
            if let Some(wide) = window.told(TOO_WIDE).await.as_str() {
                found.push(format!("{place} {width} letters {letters}: {wide}"));
            }
        }
    }
    found
}

/// What is shown at a middle width alone, if the page is looked at there.
async fn between(window: &Window, widths: &[u32], place: &str) -> Vec<String> {
    let [wide, middle, narrow] = *widths else { return Vec::new() };
    for (name, width) in [("wide", wide), ("middle", middle), ("narrow", narrow)] {
        window.resize(width, 900).await;
        window.client.execute(SHOWN, vec![json!(name)]).await.expect("noted");
    }
    let said = window.told(BETWEEN).await;
    let lines = said.as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.map(|line| format!("{place} {line}")).collect()
}

/// Where pictures are wanted.
fn pictures() -> Option<std::ffi::OsString> {
    std::env::var_os("SOLOIST_PICTURES")
}

/// With `SOLOIST_PICTURES=DIRECTORY` what is judged here is kept as pictures, for the eyes of people (CONTRIBUTING.md).
async fn photograph(window: &Window, name: &str, width: u32) {
    let Some(directory) = pictures() else { return };
    // All of the page, not only what stands above the lower edge of the window.
    let height = window.told("return document.documentElement.scrollHeight").await;
    let height = height.as_u64().and_then(|height| u32::try_from(height).ok()).unwrap_or(900);
    window.resize(width, height.clamp(900, HIGHEST)).await;
    let picture = window.client.screenshot().await.expect("a picture");
    window.resize(width, 900).await;
    let name = name.replace(|letter: char| !letter.is_alphanumeric() && letter != '-', "_");
    let thread = std::thread::current();
    let world = thread.name().and_then(|name| name.rsplit("::").next()).unwrap_or_default();
    let file = Path::new(&directory).join(format!("{world}{name}.png"));
    std::fs::write(&file, picture).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// Signs in, in a language, and looks at every address. With `all`, each must be there.
async fn walk(
    driver: &Driver,
    node: &Node,
    (user, language): (&str, &str),
    addresses: &[String],
    all: bool,
) -> Vec<String> {
    let window = driver.window(user).await;
    window.enter(node, user).await;
    let found = look(&window, &node.url, language, addresses, all).await;
    window.close().await;
    found
}

async fn look(
    window: &Window,
    url: &str,
    language: &str,
    addresses: &[String],
    all: bool,
) -> Vec<String> {
    let (axe, mut found) = (axe(), Vec::new());
    // Eyes want every width.
    let widths = if all || pictures().is_some() { &WIDTHS[..] } else { &EDGES };
    speak(window, language).await;
    for address in addresses {
        window.client.goto(&format!("{url}{address}")).await.expect("the page opens");
        let asked = "return [document.documentElement.lang, performance.getEntriesByType('navigation')[0].responseStatus]";
        let answer = window.told(asked).await;
        let answers = |code: u64| !all || answer[1] == code || MORE.contains(&address.as_str());
        assert!(answer[0] == language && answers(200), "{address} has no view: {answer}");
        found.extend(faults(window, &axe, widths, (address, language)).await);
    }
    found
}

/// Presses the button of the other language, if need be.
async fn speak(window: &Window, language: &str) {
    if window.told("return document.documentElement.lang").await == language {
        return;
    }
    window
        .element(&format!("button[name=language][value={language}]"))
        .await
        .click()
        .await
        .expect("clicked");
    window.element(&format!("html[lang={language}]")).await;
}

/// What a rule that only one language has may set: letters and the space around them.
#[test]
fn no_language_has_colours_of_its_own() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("static/css");
    let mut rules = 0;
    for file in std::fs::read_dir(directory).expect("style sheets") {
        let file = file.expect("a file").path();
        let text = std::fs::read_to_string(&file).expect("read");
        for (at, rule) in text.split(":lang(").skip(1).enumerate() {
            let (set, _) = rule.split_once('}').expect("a rule ends");
            let (_, set) = set.split_once('{').expect("a rule begins");
            for one in set.split(';').filter_map(|one| one.split_once(':')) {
                let allowed = ["--sans", "--mono", "line-height", "letter-spacing"];
                assert!(allowed.contains(&one.0.trim()), "{} {at}: {one:?}", file.display());
            }
            rules += 1;
        }
    }
    assert!(rules > 0, "Chinese has letters of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_on_any_page_that_has_something_to_show() {
    let world = World::start().await;
    let driver = Driver::start();
    let mut addresses = pages(&world.task);
    assert!(addresses.len() > 10, "pages are found: {addresses:?}");
    addresses.extend(MORE.map(str::to_owned));
    let (english, chinese) = tokio::join!(
        walk(&driver, &world.a, ("li", "en"), &addresses, true),
        walk(&driver, &world.b, ("wang", "zh"), &addresses, true),
    );
    let found = [english, chinese].concat();
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_while_a_node_is_lost_and_the_store_is_away() {
    let mut world = World::start().await;
    let driver = Driver::start();
    let addresses = pages(&world.task);
    let (li, wang) = (driver.window("li").await, driver.window("wang").await);
    li.enter(&world.a, "li").await;
    wang.enter(&world.a, "wang").await;
    speak(&wang, "zh").await;
    for window in [&li, &wang] {
        window.element(".mark[data-mark='live'][data-store='ok']").await;
    }
    world.b.kill();
    li.element("[data-truth] [data-fact='lost']").await;
    world.redis.pause();
    li.element(".mark[data-store='away']").await;
    li.element("[data-truth] [data-fact='store']").await;
    let tab =
        "return [document.title, document.querySelector('link[rel=icon]').href.split('/').pop()]";
    until_async("title and icon count both", async || {
        (li.told(tab).await == json!(["(2!) Jobs · Soloist", "icon-trouble.svg"])).then_some(())
    })
    .await;
    let (english, chinese) = tokio::join!(
        look(&li, &world.a.url, "en", &addresses, false),
        look(&wang, &world.a.url, "zh", &addresses, false),
    );
    world.redis.resume();
    let found = [english, chinese].concat();
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
    li.close().await;
    wang.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_where_nothing_is_yet_and_before_anybody_has_an_account() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let node = ground.start("node-a");
    let driver = Driver::start();
    let link = ground.must(&["link"]);
    let link = link.split_whitespace().find(|word| word.contains("/login?link=")).expect("a link");
    let (_, query) = link.split_once("/login").expect("an address");
    let strangers = ["/".to_owned(), "/login".to_owned(), format!("/login{query}")];
    let mut found = Vec::new();
    for language in ["en", "zh"] {
        let window = driver.window(language).await;
        window.client.goto(&format!("{}/login", node.url)).await.expect("the page opens");
        found.extend(look(&window, &node.url, language, &strangers, false).await);
        window.close().await;
    }
    ground.add_user("li", "admin");
    ground.add_user("wang", "admin");
    let stranger = driver.window("stranger").await;
    let doors = ["/login".to_owned(), "/login?link=used".to_owned()];
    stranger.client.goto(&format!("{}/login", node.url)).await.expect("the page opens");
    for language in ["en", "zh"] {
        found.extend(look(&stranger, &node.url, language, &doors, false).await);
    }
    stranger.close().await;
    let addresses = pages("none");
    let (english, chinese) = tokio::join!(
        walk(&driver, &node, ("li", "en"), &addresses, false),
        walk(&driver, &node, ("wang", "zh"), &addresses, false),
    );
    found.extend([english, chinese].concat());
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_where_there_is_more_than_fits_a_screen() {
    let (ground, node) = crowd().await;
    let driver = Driver::start();
    let addresses = [
        "/",
        "/wall",
        "/jobs/outbound-of-warehouse-number-007-in-the-harbour",
        "/nodes",
        "/dispatch?all=1",
        "/rotations",
        "/rotations/ring/supplier-3",
        "/alerts",
        "/audit",
        "/people",
    ];
    let addresses = addresses.map(str::to_owned);
    let (english, chinese) = tokio::join!(
        walk(&driver, &node, ("li", "en"), &addresses, false),
        walk(&driver, &node, ("wang", "zh"), &addresses, false),
    );
    drop(ground);
    let found = [english, chinese].concat();
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}
