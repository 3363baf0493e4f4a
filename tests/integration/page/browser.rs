//! The page in a real browser: every page in both themes and at three widths, by keyboard, without a script; and attacks that only a
//! browser can try. Pictures are left in the target directory.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{ServedPage, TestEnv, lived::lived_in};
use crate::{
    approvals::asked,
    support::{
        chromium::Chromium,
        claude::{FakeClaude, Reply},
        env::{NOW, eventually},
        http::{Gate, HttpServer, Response},
        story::reply,
    },
};

/// Every view.
pub(crate) const PAGES: [&str; 9] =
    ["/", "/chat", "/wakes", "/memory", "/questions", "/charts", "/health", "/settings", "/more"];

/// What a page has to keep, as a list of what it doesn't: no sideways scrolling, names for all that can be used, contrast.
pub(super) const SOUND: &str = r#"(() => {
  const wrong = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1);
    wrong.push(`it scrolls sideways: ${root.scrollWidth} > ${root.clientWidth}: ${wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 90))}`);
  }
  if (document.querySelectorAll("h1").length !== 1) wrong.push("it has no single h1");
  if (!root.lang || !document.title) wrong.push("no language or title");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) wrong.push(`an id stands twice: ${ids}`);
  const name = (e) => (e.getAttribute("aria-label") || e.textContent || e.title || "").trim();
  for (const e of document.querySelectorAll("input:not([type=hidden]), textarea, select")) {
    if (!(e.labels?.length || e.getAttribute("aria-label") || e.getAttribute("aria-labelledby"))) wrong.push(`no label: ${e.outerHTML.slice(0, 120)}`);
  }
  for (const e of document.querySelectorAll("a, button, summary")) if (!name(e)) wrong.push(`no name: ${e.outerHTML.slice(0, 120)}`);
  for (const e of document.querySelectorAll("th")) if (!e.getAttribute("scope")) wrong.push(`no scope: ${e.outerHTML}`);
  for (const e of document.querySelectorAll("[style], img:not([alt])")) wrong.push(`inline style, or a picture without words: ${e.outerHTML.slice(0, 120)}`);
  const parse = (c) => { const n = (c.match(/[\d.]+/g) || []).map(Number); return { rgb: n.slice(0, 3), a: n.length > 3 ? n[3] : 1 }; };
  const light = (rgb) => { const [r, g, b] = rgb.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.a > 0.99) return c.rgb; } return [255, 255, 255]; };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const dim = new Set();
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !e.checkVisibility() || e.closest("script, noscript, title, desc")) continue;
    const style = getComputedStyle(e);
    const ink = parse(e.closest("svg") ? style.fill : style.color).rgb;
    const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) dim.add(`contrast ${ratio.toFixed(2)}: ${e.outerHTML.slice(0, 120)}`);
  }
  return [...wrong, ...dim];
})()"#;

/// What can be reached by keyboard and is seen.
const REACHABLE: &str = "[...document.querySelectorAll('a[href], button, summary, input:not([type=hidden]), textarea, select, [tabindex=\"0\"]')]\
    .filter((e) => e.checkVisibility() && !e.disabled)";

pub(super) fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("page-pictures")
}

/// Enters with a new address.
#[track_caller]
pub(crate) fn enter(browser: &mut Chromium, page: &ServedPage<'_>) {
    browser.go(&page.address());
    assert_eq!(browser.eval("location.pathname"), "/", "{}", browser.eval("document.body.innerText"));
}

pub(crate) fn at(page: &ServedPage<'_>, path: &str) -> String {
    format!("http://{}{path}", page.host)
}

/// The views, and one page of each kind that they lead to, and that those lead to.
fn pages(browser: &mut Chromium, page: &ServedPage<'_>) -> Vec<String> {
    let mut paths: Vec<String> = PAGES.map(str::to_owned).to_vec();
    let mut kinds = std::collections::BTreeSet::new();
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        browser.go(&at(page, &path));
        let inner = "[...document.querySelectorAll('main a[href^=\"/\"]')].map((a) => a.getAttribute('href'))";
        let Value::Array(links) = browser.eval(inner) else { panic!("no links") };
        for link in links.iter().filter_map(Value::as_str) {
            let (place, asked) = link.split_once('?').unwrap_or((link, ""));
            // One wake is as another one is.
            let kind = if place.starts_with("/wakes/") { "/wakes/" } else { place };
            let kind = format!("{kind}{}", asked.split('=').next().unwrap());
            if !link.contains('#') && !PAGES.contains(&link) && kinds.insert(kind) {
                paths.push(link.to_owned());
            }
        }
    }
    paths.push("/no-such-page".to_owned());
    paths.sort();
    paths
}

#[test]
fn every_page_is_sound_in_both_themes_at_three_widths_and_by_keyboard() {
    let Some(mut browser) = Chromium::start() else { return };
    let claude = FakeClaude::start();
    let env = lived_in(&claude);
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    let mut wrong = Vec::new();
    let paths = pages(&mut browser, &page);
    assert!(paths.len() > PAGES.len(), "{paths:?}");
    browser.problems();
    for path in &paths {
        for (theme, width) in
            [("light", 1400), ("dark", 1400), ("light", 860), ("dark", 860), ("light", 360), ("dark", 360)]
        {
            browser.look(width, theme);
            browser.go(&at(&page, path));
            let file = format!(
                "{}-{theme}-{width}.png",
                path.trim_matches('/').replace(|c: char| !c.is_ascii_alphanumeric(), "_")
            );
            browser.picture(&pictures().join(file), 2_600.0);
            let Value::Array(found) = browser.eval(SOUND) else { panic!("no list") };
            let found = found.iter().map(Value::to_string);
            // A page that isn't there is told of by a code, too, which the browser notes.
            let noted =
                browser.problems().into_iter().filter(|problem| path != "/no-such-page" || !problem.contains("404"));
            wrong.extend(found.chain(noted).map(|problem| format!("{path} {theme} {width}: {problem}")));
        }
        // Tab reaches all, once round.
        let n = browser
            .eval(&format!("document.activeElement?.blur(); scrollTo(0, 0); {REACHABLE}.length"))
            .as_u64()
            .unwrap();
        let mut shown = true;
        for _ in 0..n + 20 {
            browser.press("Tab", 9, 0);
            let seen = "(() => { const e = document.activeElement; e.setAttribute('data-reached', ''); \
                return e === document.body || getComputedStyle(e).outlineStyle !== 'none' || e.matches('main'); })()";
            shown &= browser.eval(seen) == true;
        }
        let missed = format!(
            "{REACHABLE}.filter((e) => !e.matches('[data-reached]') && e.type !== 'radio').map((e) => e.outerHTML.slice(0, 120))"
        );
        let missed = browser.eval(&missed);
        if missed != json!([]) || !shown {
            wrong.push(format!("{path}: by keyboard {missed} aren't reached, or the focus isn't seen ({shown})"));
        }
    }
    assert!(wrong.is_empty(), "{} things are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_changes_before_a_page_hears_of_changes_is_shown_as_well() {
    const LATE_STREAM: &str = "
        const Real = EventSource;
        window.EventSource = function (url) {
            const late = new EventTarget();
            late.close = () => {};
            window.begin = () => {
                const real = new Real(url);
                real.onopen = () => late.onopen();
                real.addEventListener('changed', () => late.dispatchEvent(new Event('changed')));
            };
            return late;
        };";
    let Some(mut browser) = Chromium::start() else { return };
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.call("Page.addScriptToEvaluateOnNewDocument", &json!({"source": LATE_STREAM}));
    browser.go(&at(&page, "/chat"));
    env.wake(&["say", "remember that tea is at five"]).ok();
    browser.eval("begin()");
    browser.until("document.querySelector('#live-chat').innerText.includes('tea is at five')");
    assert_eq!(browser.problems(), [] as [String; 0]);
    page.end();
}

#[test]
fn what_is_said_in_the_browser_is_answered_there_without_a_reload() {
    let Some(mut browser) = Chromium::start() else { return };
    let claude = FakeClaude::start();
    let mut env = TestEnv::new();
    env.think_with(&claude);
    env.wake(&["--once"]).ok();
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    let gate = Gate::default();
    let steps = json!({"understood": "u", "steps": [{"what": "Look at the clock", "tool": "reply"}]});
    claude.expect(Reply::tool("t1", "plan", steps));
    claude.expect(Reply::text("It is **three**, see [here](javascript:alert(1)).").stalled_after(2, &gate));
    browser.go(&at(&page, "/chat"));
    browser.until("document.activeElement.id === 'text'");
    browser.types("What time\nis it?");
    browser.press("Enter", 13, 2);
    browser.until("document.querySelector('#live-work')?.innerText.includes('Step 1 of 1: Look at the clock')");
    browser.eval("window.isTheSame = true; document.querySelector('summary').click()");
    // What is being typed stays while the answer comes.
    browser.eval("document.querySelector('#text').focus()");
    browser.types("And then");
    gate.open();
    browser.until("[...document.querySelectorAll('.me strong')].some((e) => e.textContent === 'three')");
    browser.until("!document.querySelector('#live-work').innerText.includes('Step')");
    assert_eq!(browser.eval("window.isTheSame"), true, "it was loaded again");
    assert_eq!(browser.eval("document.querySelector('#text').value + document.activeElement.id"), "And thentext");
    assert_eq!(browser.eval("document.querySelectorAll('.me a').length"), 0);
    assert_eq!(browser.eval("document.querySelector('.you .words').innerText"), "What time\nis it?");
    // It was seen here, so that no other terminal shows it again.
    eventually("it counts as shown", || env.count_unsent() == 0);
    assert_eq!(env.count_received(), 1);
    assert_eq!(browser.problems(), Vec::<String>::new());
    // A lost connection is said.
    drop(page);
    browser.until("!document.querySelector('#connection').hidden");
    env.wait_for_end_of_wake();
    env.check_sound();
}

#[test]
fn a_renewal_never_puts_another_question_under_the_focus_or_a_click() {
    let Some(mut browser) = Chromium::start() else { return };
    let (_telegram, _claude, env) = asked();
    env.ask_again("t2");
    env.alter_approval(2, "action", "{\"fact\":\"Another\"}");
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.go(&at(&page, "/questions"));
    // A click that comes with the renewal decides nothing.
    let focus = "document.querySelector('[aria-label=\"Allow once, question 1\"]').focus()";
    browser.until("document.querySelector('[aria-label=\"Allow once, question 2\"]')");
    browser.eval(focus);
    browser.eval(
        "window.isHit = false; new MutationObserver(() => { window.isHit = true; \
         document.querySelector('#live-questions button')?.click(); }).observe(document.querySelector('#live-questions'), { childList: true })",
    );
    // It is written until the page listens.
    eventually("it is renewed", || {
        env.alter_approval(1, "state", "withdrawn");
        env.alter_approval(1, "decided_at", NOW);
        browser.eval("window.isHit") == true
    });
    browser.until("!document.querySelector('[aria-label=\"Allow once, question 1\"]')");
    assert_eq!(browser.eval("document.activeElement.tagName"), "H2");
    assert_eq!(env.approvals()[1].state, "pending");
    assert_eq!(browser.eval("location.pathname"), "/questions");
    // What is still there keeps the focus.
    browser.eval("document.querySelector('[aria-label=\"Allow once, question 2\"]').focus(); window.isHit = false");
    env.alter_approval(1, "decided_by", "console");
    browser.until("window.isHit");
    assert_eq!(browser.eval("document.activeElement.getAttribute('aria-label')"), "Allow once, question 2");
}

#[test]
fn without_a_script_everything_is_there_after_a_reload() {
    let Some(mut browser) = Chromium::start() else { return };
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    browser.call("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    enter(&mut browser, &page);
    browser.go(&at(&page, "/chat"));
    browser.eval("document.querySelector('#text').focus()");
    browser.types("remember that tea is at five");
    browser.press("Tab", 9, 0);
    browser.press("Enter", 13, 0);
    browser.until("document.body?.innerText.includes('tea is at five') && !document.querySelector('#text').value");
    assert_eq!(browser.eval("location.pathname"), "/chat");
    eventually("it is answered", || {
        browser.go(&at(&page, "/chat"));
        browser.eval("document.body?.innerText.includes('Remembered: tea is at five')") == true
    });
    // A reload posts nothing again.
    browser.call("Page.reload", &json!({}));
    browser.until("document.body?.innerText.includes('Remembered: tea is at five')");
    assert_eq!(env.count_received(), 1);
}

/// What a foreign page tries, each as what came of it.
const ATTACK: &str = r#"(async () => {
  const target = TARGET;
  const tried = {};
  const outcome = async (name, work) => { try { tried[name] = String(await work()); } catch (e) { tried[name] = `refused`; } };
  const loads = (tag, attributes) => new Promise((done) => {
    const e = Object.assign(document.createElement(tag), attributes);
    e.onload = () => done("LOADED");
    e.onerror = () => done("refused");
    document.body.append(e);
  });
  await outcome("read", async () => { const a = await fetch(target + "/", { credentials: "include" }); return "READ " + (await a.text()).length; });
  await outcome("live", () => new Promise((done) => { const s = new EventSource(target + "/live", { withCredentials: true }); s.onopen = () => done("OPENED"); s.onerror = () => { s.close(); done("refused"); }; }));
  await outcome("post", async () => { await fetch(target + "/chat", { method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams({ text: "obey me", key: "x" }) }); return "sent"; });
  await outcome("img", () => loads("img", { src: target + "/icon.svg" }));
  await outcome("style", () => loads("link", { rel: "stylesheet", href: target + "/style.css" }));
  await outcome("script", () => loads("script", { src: target + "/script.js" }));
  const frame = document.createElement("iframe");
  frame.src = target + "/";
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; setTimeout(done, 5000); });
  let inside;
  try { inside = frame.contentDocument?.body?.innerText || "refused"; } catch { inside = "refused"; }
  tried.frame = inside;
  const form = Object.assign(document.createElement("form"), { method: "POST", action: target + "/chat", target: "popup" });
  form.append(Object.assign(document.createElement("input"), { name: "text", value: "obey me" }));
  document.body.append(form);
  const popup = document.createElement("iframe");
  popup.name = "popup";
  document.body.append(popup);
  const sent = new Promise((done) => { popup.onload = done; setTimeout(done, 5000); });
  form.submit();
  await sent;
  return tried;
})()"#;

#[test]
fn a_foreign_page_in_the_same_browser_reads_sends_and_frames_nothing() {
    let Some(mut browser) = Chromium::start() else { return };
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    let foreign = HttpServer::start(|_| {
        Response::new(200, "<!doctype html><title>Free kittens</title><body>").header("content-type", "text/html")
    });
    let port = foreign.url().rsplit(':').next().unwrap().to_owned();
    let name = page.host.split(':').next().unwrap().to_owned();
    // Another site; a page of another port under our very name, which browsers send the cookie to; and the bare address.
    for host in ["evil.localhost", name.as_str(), "127.0.0.1"] {
        browser.go(&format!("http://{host}:{port}/"));
        let tried = browser.eval(&ATTACK.replace("TARGET", &json!(format!("http://{}", page.host)).to_string()));
        for what in ["read", "live", "img", "style", "script", "frame"] {
            assert_eq!(tried[what], "refused", "{host}: {tried}");
        }
        assert_eq!(env.count_received(), 0, "{host}");
    }
    // A name of theirs that leads to our port (rebinding) is told nothing, even by a page of the same origin.
    let ours = page.host.rsplit(':').next().unwrap();
    browser.go(&format!("http://evil.localhost:{ours}/"));
    let shown = browser.eval("document.body.innerText");
    assert!(shown.as_str().unwrap().contains("Run wake page in a terminal for a link."), "{shown}");
    let read = browser.eval("fetch('/chat').then((answer) => answer.status)");
    assert_eq!(read, 421);
    // A click on a foreign page's link shows a page that helps, and from there the person goes on.
    browser.go(&format!("http://evil.localhost:{port}/"));
    browser.eval(&format!("location.href = {}", json!(at(&page, "/chat"))));
    browser.until("document.body?.innerText.includes('Run wake page')");
    browser.eval("document.querySelector('a').click()");
    browser.until("document.querySelector('nav')");
    let stolen = browser.eval("document.cookie");
    assert_eq!(stolen, "", "scripts don't read the cookie");
    // What was used up enters nobody.
    let address = page.address();
    browser.go(&address);
    browser.call("Network.clearBrowserCookies", &json!({}));
    browser.go(&address);
    browser.until("document.body?.innerText.includes('This link no longer works')");
    assert!(!page.end().contains("enter"));
}

/// What docs/ shows: `cargo nextest run --run-ignored only pictures_for_the_documents`, then they are copied by hand.
#[test]
#[ignore = "it makes pictures, and checks nothing"]
fn pictures_for_the_documents() {
    let Some(mut browser) = Chromium::start() else { return };
    let claude = FakeClaude::start();
    let env = lived_in(&claude);
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.look(860, "light");
    browser.go(&at(&page, "/wakes"));
    let wake = "[...document.querySelectorAll('main a')].find((a) => a.textContent.includes('bike shop')).getAttribute('href')";
    let wake = browser.eval(wake).as_str().unwrap().to_owned();
    for (name, path) in [("today", "/"), ("chat", "/chat"), ("wake", &wake)] {
        browser.go(&at(&page, path));
        browser.view(&pictures().join(format!("docs/page-{name}.png")));
    }
}

#[test]
fn an_answer_grows_in_the_chat_and_enter_sends() {
    let Some(mut browser) = Chromium::start() else { return };
    let (claude, mut env) = (FakeClaude::start(), TestEnv::new());
    env.think_with(&claude);
    let gate = Gate::default();
    let text = "It is **blue**, since short waves are scattered more, as `sky.rs` knows.";
    claude.expect(reply("t1", text).stalled_after(5, &gate));
    claude.expect(Reply::text("Done."));
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.go(&at(&page, "/chat"));
    browser.eval("document.querySelector('#text').focus()");
    browser.types("why is");
    browser.press("Enter", 13, 8);
    browser.types(" the sky blue?");
    assert_eq!(browser.eval("document.querySelector('#text').value"), "why is the sky blue?", "nothing was sent");
    browser.press("Enter", 13, 0);
    browser.until("document.querySelector('#preview strong')?.innerText === 'blue'");
    assert!(
        browser.eval("document.querySelector('#preview').innerText").as_str().unwrap().contains("Reveille is writing…")
    );
    browser.view(&pictures().join("chat-preview.png"));
    gate.open();
    browser.until("document.querySelector('#live-chat').innerText.includes('as sky.rs knows.')");
    browser.until("document.querySelector('#preview').hidden");
    assert_eq!(browser.problems(), [""; 0]);
    page.end();
}
