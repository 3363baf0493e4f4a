//! Every view by axe-core, the checker of accessibility rules that browsers' own tools use: in both themes, on a phone, a tablet and a desk.

use serde_json::{Value, json};

use super::{
    ServedPage,
    browser::{PAGES, at, enter},
    lived::lived_in,
};
use crate::support::{chromium::Chromium, claude::FakeClaude, peers};

const AXE: &str = "node_modules/axe-core/axe.min.js";

/// The violations, a line each.
const RUN: &str = "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((one) => \
    `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')}`))";

/// The views behind others.
const INNER: [&str; 17] = [
    "/settings/all",
    "/settings/all?q=quiet",
    "/settings/one?name=TELL_PER_DAY",
    "/settings/assistant",
    "/settings/answers",
    "/settings/telegram",
    "/settings/times",
    "/settings/budget",
    "/settings/permissions",
    "/settings/servers",
    "/settings/jobs",
    "/chat?find=bike",
    "/chat?before=m2.a0",
    "/questions/1",
    "/memory/file?path=claude.md",
    "/memory/edit?path=claude.md",
    "/no-such-page",
];

#[test]
fn no_view_has_a_barrier_that_axe_knows() {
    let Some(peers) = peers::find("the page by axe-core", AXE) else { return };
    let Some(mut browser) = Chromium::start() else { return };
    let axe = std::fs::read_to_string(peers.join(AXE)).unwrap();
    let claude = FakeClaude::start();
    let env = lived_in(&claude);
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    let wake = env.last_cycle().id;
    let all = [("light", 360), ("dark", 360), ("light", 860), ("dark", 860), ("light", 1400), ("dark", 1400)];
    let few = [("light", 360), ("dark", 1400)];
    let first = PAGES.map(str::to_owned).into_iter().map(|path| (path, &all[..]));
    let inner = INNER.map(str::to_owned).into_iter().chain([format!("/wakes/{wake}"), format!("/wakes/{wake}/undo")]);
    let views: Vec<_> = first.chain(inner.map(|path| (path, &few[..]))).collect();
    let mut wrong = Vec::new();
    for (path, looks) in &views {
        for &(theme, width) in *looks {
            browser.look(width, theme);
            browser.go(&at(&page, path));
            // What is behind a button is part of the view.
            browser.eval("document.querySelectorAll('main details').forEach((details) => { details.open = true; })");
            browser.eval(&format!("{axe}; 0"));
            let Value::Array(found) = browser.eval(RUN) else { panic!("no list") };
            wrong.extend(found.iter().map(|one| format!("{path} {theme} {width}: {one}")));
        }
    }
    assert!(wrong.is_empty(), "{} barriers:\n{}", wrong.len(), wrong.join("\n"));
    // The check itself notices a barrier.
    browser.eval("document.querySelector('main').insertAdjacentHTML('beforeend', '<input name=\"nameless\">')");
    assert_ne!(browser.eval(RUN), json!([]));
}
