//! Settings in a real browser: a person sets the assistant up, raises its autonomy by a code, and pairs a telephone.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use super::{
    ServedPage, TestEnv,
    browser::{SOUND, at, enter, pictures},
    settings::{file, with_file},
};
use crate::{
    init::write,
    support::{
        chromium::Chromium,
        env::eventually,
        mcp::SERVER,
        telegram::{FakeTelegram, TOKEN},
    },
};

/// Sends the form of a button with these words, as soon as it counts: a click right after the page has changed decides nothing.
fn click(browser: &mut Chromium, words: &str) {
    browser.until(&format!(
        "(() => {{ const button = [...document.querySelectorAll('main button')].find((b) => b.textContent.trim() === {}); \
         if (!button || button.dataset.moved || performance.now() < 900) return false; button.click(); return true; }})()",
        json!(words)
    ));
}

/// Replaces what a field holds by typing.
fn fill(browser: &mut Chromium, field: &str, text: &str) {
    browser.eval(&format!("document.querySelector({0}).focus(); document.querySelector({0}).select()", json!(field)));
    browser.types(text);
}

/// Takes a picture at each width in both themes, and says what is wrong there.
fn look(browser: &mut Chromium, name: &str, wrong: &mut Vec<String>) {
    for width in [360, 860, 1400] {
        for theme in ["light", "dark"] {
            browser.look(width, theme);
            let file = format!("settings/{name}-{width}-{theme}.png");
            browser.picture(&pictures().join(file), 2_600.0);
            let Value::Array(found) = browser.eval(SOUND) else { panic!("no list") };
            wrong.extend(found.iter().map(|problem| format!("{name} {width} {theme}: {problem}")));
        }
    }
}

/// Lays out a server and jobs, so that there is something to see.
fn lay_out(env: &TestEnv) {
    let dir = env.workspace().join("mcp/calendar");
    fs::create_dir_all(&dir).unwrap();
    let program = dir.join("server");
    fs::write(&program, SERVER).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let tools = json!([
        {"name": "list_events", "description": "Lists the events of a day.", "inputSchema": {}},
        {"name": "add_event", "description": "Adds an event, and invites others if they are named.", "inputSchema": {}},
    ]);
    fs::write(dir.join("tools.json"), tools.to_string()).unwrap();
    let off = "[[server]]\nname = \"tracker\"\nenabled = false\nurl = \"https://mcp.example.org/mcp\"\n";
    let toml = format!("[[server]]\nname = \"calendar\"\ncommand = [{:?}]\n\n{off}", program.display().to_string());
    write(&env.workspace().join("mcp.toml"), &toml);
    for (name, when, status) in
        [("backup", "every day at 02:00", ""), ("news", "every Monday at 08:30", "status: paused\n")]
    {
        let job = format!("---\nwhen: {when}\n{status}---\nDo it.\n");
        write(&env.brain().join(format!("memory/jobs/{name}.md")), &job);
    }
}

#[test]
fn a_person_sets_it_up_raises_its_autonomy_by_a_code_and_pairs_a_telephone() {
    let Some(mut browser) = Chromium::start() else { return };
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::new();
    with_file(&mut env, "MODEL=offline\n");
    env.set("TELEGRAM_API_URL", &telegram.url());
    env.wake(&["--once"]).ok();
    lay_out(&env);
    env.wake(&["--once"]).ok();
    let page = ServedPage::open(&env);
    let mut wrong = Vec::new();
    enter(&mut browser, &page);
    browser.go(&at(&page, "/settings"));
    look(&mut browser, "overview", &mut wrong);

    // The list narrows while it is searched.
    browser.go(&at(&page, "/settings/all"));
    browser.eval("document.querySelector('#q').focus()");
    browser.types("unasked times");
    browser.until("document.querySelector('#set-count').textContent === '1 setting'");
    assert_eq!(browser.eval("[...document.querySelectorAll('.set-group:not([hidden]) li:not([hidden])')].length"), 1);
    look(&mut browser, "found", &mut wrong);
    browser.go(&at(&page, "/settings/all"));
    look(&mut browser, "all", &mut wrong);

    // A wrong answer is said at its field, and a right one is saved.
    browser.go(&at(&page, "/settings/times"));
    look(&mut browser, "times", &mut wrong);
    fill(&mut browser, "#TELL_PER_DAY", "many");
    click(&mut browser, "Check and save");
    browser.until("document.querySelector('.set-problem')?.innerText.includes('from 0 to 100')");
    look(&mut browser, "times-wrong", &mut wrong);
    fill(&mut browser, "#TELL_PER_DAY", "2");
    click(&mut browser, "Check and save");
    browser.until("document.querySelector('.note')?.nextElementSibling && document.body.innerText.includes('Saved.')");
    assert!(file(&env).contains("TELL_PER_DAY=2"), "{}", file(&env));
    look(&mut browser, "times-saved", &mut wrong);

    // More autonomy asks for the code.
    browser.go(&at(&page, "/settings/permissions"));
    browser.eval("document.querySelector('[name=AUTONOMY][value=\"2\"]').click()");
    click(&mut browser, "Check and save");
    browser.until("document.activeElement.id === 'code'");
    look(&mut browser, "code", &mut wrong);
    browser.types("1111 1111");
    browser.press("Enter", 13, 0);
    browser.until("document.body?.innerText.includes('4 more times')");
    look(&mut browser, "code-wrong", &mut wrong);
    browser.until("document.activeElement.id === 'code'");
    browser.types(&page.code());
    browser.press("Enter", 13, 0);
    browser.until("document.body?.innerText.includes('Saved.')");
    assert!(file(&env).contains("AUTONOMY=2"), "{}", file(&env));
    fill(&mut browser, "#path", "~/notes");
    click(&mut browser, "Add the folder");
    browser.until("document.activeElement.id === 'code'");
    browser.types(&page.code());
    browser.press("Enter", 13, 0);
    browser.until("document.querySelector('.set-rows')?.innerText.includes('~/notes')");
    look(&mut browser, "permissions", &mut wrong);

    // The token is checked, and a telephone is paired without a reload.
    browser.go(&at(&page, "/settings/telegram"));
    look(&mut browser, "telegram", &mut wrong);
    fill(&mut browser, "#TELEGRAM_BOT_TOKEN", TOKEN);
    click(&mut browser, "Check and save");
    browser.until("document.body?.innerText.includes('@reveille_bot')");
    assert!(!browser.eval("document.documentElement.outerHTML").as_str().unwrap().contains(TOKEN));
    // A click right after a renewal is left out, so it is pressed until the code is asked for.
    let press = "[...document.querySelectorAll('main button')].find((b) => b.textContent.trim() === 'Pair your telephone')?.click()";
    eventually("the code is asked for", || {
        browser.eval(press);
        browser.eval("document.activeElement?.id === 'code'") == true
    });
    browser.types(&page.code());
    browser.press("Enter", 13, 0);
    browser.until("document.querySelector('svg.qr')");
    look(&mut browser, "pairing", &mut wrong);
    let code = browser.eval("document.querySelector('.set-pair-code').innerText");
    browser.eval("window.isTheSame = true");
    let bot = env.start_logged(env!("CARGO_BIN_EXE_bot"), &[], &env.path("bot.log"));
    telegram.push_text(7, 7, &format!("/start {}", code.as_str().unwrap()));
    browser.until("document.querySelector('#live-telegram').innerText.includes('paired')");
    assert_eq!(browser.eval("window.isTheSame"), true, "it was loaded again");
    look(&mut browser, "paired", &mut wrong);
    bot.signal(rustix::process::Signal::TERM);
    bot.end().ok();

    // A server's tools are seen before they are accepted.
    browser.go(&at(&page, "/settings/servers"));
    click(&mut browser, "Ask what it offers");
    browser.until("document.body?.innerText.includes('Lists the events of a day.')");
    look(&mut browser, "servers-asked", &mut wrong);
    click(&mut browser, "Accept these tools");
    browser.until("document.body?.innerText.includes('Accepted.')");

    for (name, path) in [
        ("assistant", "/settings/assistant"),
        ("answers", "/settings/answers?service=api"),
        ("services", "/settings/answers?service=choose"),
        ("own-server", "/settings/answers?service=server%20https%3A%2F%2Fmodels.example.com%2Fv1"),
        ("budget", "/settings/budget"),
        ("servers", "/settings/servers"),
        ("jobs", "/settings/jobs"),
        ("one", "/settings/one?name=AUTONOMY"),
    ] {
        browser.go(&at(&page, path));
        look(&mut browser, name, &mut wrong);
    }
    let noted: Vec<String> = browser.problems().into_iter().filter(|problem| !problem.contains("422")).collect();
    assert!(wrong.is_empty() && noted.is_empty(), "{}\n{}", wrong.join("\n"), noted.join("\n"));
}
