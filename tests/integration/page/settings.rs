//! Settings on the page: as they are now, where each comes from, forms that change them, codes for what widens authority, and no secret.

use serde_json::json;

use super::{Answered, ServedPage, TestEnv, WAKE};
use crate::{
    init::env_file,
    support::{
        claude::{API_KEY, FakeClaude, Reply},
        dialog::Dialog,
        env::eventually,
        mcp::SERVER,
        telegram::{FakeTelegram, TOKEN},
    },
};

/// A string shaped like a key, but not a real one.
const WRONG_KEY: &str = "sk-ant-api03-wrong-key-0123456789";
/// A key that looks like any word.
const SEARCH_KEY: &str = "Quiet7harbour2lantern9meadow";
/// Every page of the settings.
const PAGES: [&str; 15] = [
    "/settings",
    "/settings/all",
    "/settings/all?q=key",
    "/settings/assistant",
    "/settings/answers",
    "/settings/answers?service=choose",
    "/settings/answers?service=api",
    "/settings/telegram",
    "/settings/times",
    "/settings/budget",
    "/settings/permissions",
    "/settings/servers",
    "/settings/jobs",
    "/settings/one?name=ANTHROPIC_API_KEY",
    "/settings/one?name=TELL_PER_DAY",
];

/// An environment whose settings are in its file alone, so that the page can change them.
pub(super) fn with_file(env: &mut TestEnv, file: &str) {
    for name in ["TIMEZONE", "QUIET_HOURS", "REFLECT_AT"] {
        env.unset(name);
    }
    crate::init::write(&env_file(env), file);
}

pub(super) fn file(env: &TestEnv) -> String {
    std::fs::read_to_string(env_file(env)).unwrap()
}

/// The code in a terminal's text.
#[track_caller]
fn find_code(text: &str) -> String {
    let (_, rest) = text.rsplit_once("The code: ").unwrap_or_else(|| panic!("{text}"));
    rest.lines().next().unwrap().to_owned()
}

impl ServedPage<'_> {
    /// The code that `wake page --code` prints.
    pub(super) fn code(&self) -> String {
        find_code(&self.env.wake(&["page", "--code"]).ok().stdout)
    }
}

impl Answered {
    /// The number of the change that waits.
    #[track_caller]
    fn pending(&self) -> String {
        let to = self.see_other();
        to.strip_prefix("/settings/confirm?change=").unwrap_or_else(|| panic!("{to}")).to_owned()
    }
}

#[test]
fn the_settings_are_shown_with_where_they_come_from_and_no_secret() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    env.wake(&["--once"]).ok();
    let file = env.workspace().join(".env");
    std::fs::write(&file, format!("ANTHROPIC_API_KEY={key}\nMODEL=offline\nREPO_URL=\n")).unwrap();
    env.set("TELL_PER_DAY", "7");
    let page = ServedPage::open(&env);
    let shown = page.get("/settings/all").ok();
    for told in
        ["TELL_PER_DAY", "from the environment", "the default", "ANTHROPIC_API_KEY", "/.env", "The key to Claude"]
    {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    assert!(!shown.contains(key) && !shown.contains(TOKEN) && shown.contains(">set</span>"), "{shown}");
    let found = page.get("/settings/all?q=unasked+times").ok();
    assert!(found.contains("TELL_PER_DAY") && !found.contains("REPO_URL") && found.contains("1 setting<"), "{found}");
    let shown = page.get("/settings").ok();
    assert!(shown.contains("wake init") && !shown.contains("Problems") && !shown.contains("Changed since"), "{shown}");
    assert!(!shown.contains("you chose"), "{shown}");
    // What the environment says can only be changed there.
    let one = page.get("/settings/one?name=TELL_PER_DAY").ok();
    assert!(one.contains("set in the environment") && !one.contains("Check and save"), "{one}");
    env.wake(&["say", "/model claude-haiku-5-5"]).ok();
    let shown = page.get("/settings").ok();
    assert!(
        shown.contains("you chose <code>claude-haiku-5-5</code>") && shown.contains("<code>offline</code>"),
        "{shown}"
    );

    std::fs::write(&file, format!("ANTHROPIC_API_KEY={key}\nMODEL=offline\nKEEP_DAYS=many\nDAILY_BUDGET_USD=3\n"))
        .unwrap();
    let shown = page.get("/settings").ok();
    assert!(shown.contains("Problems") && shown.contains("&quot;many&quot;"), "{shown}");
    assert!(shown.contains("Changed since this page was started: DAILY_BUDGET_USD"), "{shown}");
}

#[test]
fn a_form_is_checked_written_like_init_writes_and_can_be_taken_back() {
    let mut env = TestEnv::new();
    with_file(&mut env, "# mine\nMODEL=offline\nX_OTHER=1 # kept\nTELL_PER_DAY=5 # calm\n");
    let page = ServedPage::open(&env);
    let times = [("QUIET_FROM", "23:00"), ("QUIET_UNTIL", "06:30"), ("REFLECT_AT", ""), ("INITIATIVE", "low")];
    let wrong = page.post("/settings/times", &[&times[..], &[("TELL_PER_DAY", "many")]].concat());
    assert_eq!(wrong.status, 422);
    assert!(wrong.body.contains("from 0 to 100") && wrong.body.contains("value=\"23:00\""), "{}", wrong.body);
    assert!(!file(&env).contains("QUIET"), "written in spite of a wrong answer");
    let saved = page.post("/settings/times", &[&times[..], &[("TELL_PER_DAY", "3")]].concat()).see_other();
    assert!(saved.starts_with("/settings/times?said="), "{saved}");
    let text = file(&env);
    assert!(text.starts_with("# mine\nMODEL=offline\nX_OTHER=1 # kept\nTELL_PER_DAY=3 # calm\n"), "{text}");
    for line in ["QUIET_HOURS=23:00-06:30\n", "REFLECT_AT=none\n", "INITIATIVE=low\n"] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let shown = page.get(&saved).ok();
    assert!(shown.contains("Saved.") && shown.contains("The next wake uses it"), "{shown}");
    assert!(shown.contains("TELL_PER_DAY: 3 instead of 5"), "{shown}");
    let number = shown.split_once("/settings/undo").unwrap().1.split_once("value=\"").unwrap().1;
    let number = number.split('"').next().unwrap();
    page.post("/settings/undo", &[("change", number)]).see_other();
    assert_eq!(file(&env), "# mine\nMODEL=offline\nX_OTHER=1 # kept\nTELL_PER_DAY=5 # calm\n");
    // Less needs no code, and nothing new is nothing to do.
    page.post("/settings/budget", &[("DAILY_BUDGET_USD", "2"), ("MONTHLY_BUDGET_USD", "")]).see_other();
    assert!(file(&env).contains("DAILY_BUDGET_USD=2\n"));
    let same = page.post("/settings/budget", &[("DAILY_BUDGET_USD", "2"), ("MONTHLY_BUDGET_USD", "")]).see_other();
    assert!(page.get(&same).ok().contains("Nothing to change."));
    let zone = page.post("/settings/assistant", &[("TIMEZONE", "paris")]).see_other();
    assert!(page.get(&zone).ok().contains("Europe/Paris") && file(&env).contains("TIMEZONE=Europe/Paris"));
}

#[test]
fn what_widens_authority_needs_the_code_of_just_this_change_and_session() {
    let mut env = TestEnv::new();
    with_file(&mut env, "MODEL=offline\n");
    let page = ServedPage::open(&env);
    let before = file(&env);
    let none = env.wake(&["page", "--code"]);
    assert_eq!(none.assert_tells("Nothing on the page waits for a code").code, 1);
    let full = page.post("/settings/permissions", &[("AUTONOMY", "2")]).pending();
    let asked = page.get(&format!("/settings/confirm?change={full}")).ok();
    assert!(asked.contains("AUTONOMY: 2 (ask only before what can") && asked.contains("wake page --code"), "{asked}");
    let told = env.wake(&["page", "--code"]).ok().stdout;
    assert!(told.contains("AUTONOMY: 2 (ask only before what can't be undone) instead of 1"), "{told}");
    let code = find_code(&told);
    let send = |number: &str, code: &str| page.post("/settings/confirm", &[("change", number), ("code", code)]);
    // A code for other values is none.
    let money = page.post("/settings/budget", &[("DAILY_BUDGET_USD", "500")]).pending();
    let wrong = send(&money, &code);
    assert!(wrong.status == 422 && wrong.body.contains("4 more times"), "{wrong:?}");
    // Another session can't use it, nor see the change.
    let entered = page.send(&format!("GET {}", page.ticket()), &[], "");
    let other = entered.header("set-cookie").unwrap().split(';').next().unwrap();
    let origin = format!("http://{}", page.host);
    let headers = [("Cookie", other), ("Origin", &origin), ("Content-Type", "application/x-www-form-urlencoded")];
    let body = super::form(&[("change", &full), ("code", &code)]);
    assert_eq!(page.send("POST /settings/confirm", &headers, &body).status, 404);
    let looked = page.send(&format!("GET /settings/confirm?change={full}"), &headers[..1], "");
    assert_eq!(looked.status, 404);
    // A newer code voids the one before.
    let new = page.code();
    assert_eq!(file(&env), before);
    assert_eq!(send(&full, &code).status, 422);
    // The terminal lists both changes; the last one printed is the money's.
    let done = send(&money, &new).see_other();
    assert!(page.get(&done).ok().contains("DAILY_BUDGET_USD: 500 instead of 5"));
    assert!(file(&env).contains("DAILY_BUDGET_USD=500"));
    assert_eq!(send(&money, &new).status, 404, "a code works twice");
    // Five wrong ones end it.
    for _ in 0..3 {
        assert_eq!(send(&full, "1234").status, 422);
    }
    let last = send(&full, "0000 0000");
    assert!(last.status == 422 && last.body.contains("this change is dropped"), "{last:?}");
    assert_eq!(env.wake(&["page", "--code"]).code, 1);
    assert!(!file(&env).contains("AUTONOMY"));
    // The terminal shows a long list up to its end.
    let people: Vec<String> = (1..60).map(|id| (id * 1_000_001).to_string()).collect();
    page.post("/settings/one?name=ALLOWED_CHAT_IDS", &[("ALLOWED_CHAT_IDS", &people.join(","))]).pending();
    let told = env.wake(&["page", "--code"]).ok().stdout;
    assert!(told.contains("59000059"), "{told}");
    // Every other way to widen asks, too; less doesn't.
    for (path, fields) in [
        ("/settings/one?name=OPENAI_BASE_URL", [("OPENAI_BASE_URL", "https://evil.example/v1")]),
        ("/settings/one?name=ALLOWED_CHAT_IDS", [("ALLOWED_CHAT_IDS", "666")]),
        ("/settings/one?name=OPENAI_API_KEY_FILE", [("OPENAI_API_KEY_FILE", "/etc/hostname")]),
        ("/settings/answers", [("service", "api")]),
    ] {
        page.post(path, &fields).pending();
    }
    assert!(page.post("/settings/permissions", &[("AUTONOMY", "0")]).see_other().contains("said="));
    assert!(file(&env).contains("AUTONOMY=0") && !file(&env).contains("evil"));
    assert!(!page.end().contains("The code:"), "a service's output holds a code");
}

#[test]
fn a_key_is_tried_at_once_and_never_comes_out() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = TestEnv::new();
    with_file(&mut env, "# mine\n");
    env.set("TELEGRAM_API_URL", &telegram.url()).set("ANTHROPIC_BASE_URL", &claude.url());
    env.wake(&["--once"]).ok();
    let page = ServedPage::open(&env);
    let secrets = [API_KEY, TOKEN, WRONG_KEY, SEARCH_KEY];
    let bodies = std::cell::RefCell::new(Vec::<String>::new());
    let post = |path: &str, fields: &[(&str, &str)]| {
        let answered = page.post(path, fields);
        bodies.borrow_mut().push(format!("{}{}", answered.head, answered.body));
        answered
    };
    // What isn't a key at all isn't shown either.
    let wrong =
        post("/settings/answers", &[("service", "api"), ("ANTHROPIC_API_KEY", &format!("two words {WRONG_KEY}"))]);
    assert!(wrong.status == 422 && wrong.body.contains("one word without spaces"), "{wrong:?}");
    // Nor is a key in a field for something else.
    let wrong = post("/settings/one?name=TIMEZONE", &[("TIMEZONE", API_KEY)]);
    assert!(wrong.status == 422 && wrong.body.contains("looks like a key"), "{wrong:?}");
    let wrong = post("/settings/answers", &[("service", "api"), ("CLAUDE_MODEL", API_KEY)]);
    assert_eq!(wrong.status, 422, "{wrong:?}");
    // A key that Claude refuses: nothing is written, and the person decides.
    let number = post("/settings/answers", &[("service", "api"), ("ANTHROPIC_API_KEY", WRONG_KEY)]).pending();
    let shown = page.get(&format!("/settings/confirm?change={number}"));
    assert!(
        shown.body.contains("your API key was rejected") && shown.body.contains("Nothing was changed"),
        "{shown:?}"
    );
    bodies.borrow_mut().push(shown.body);
    assert_eq!(file(&env), "# mine\n");
    let again = post("/settings/retry", &[("change", &number)]).pending();
    assert_eq!(again, number);
    let saved = post("/settings/answers", &[("service", "api"), ("ANTHROPIC_API_KEY", API_KEY)]).see_other();
    assert!(page.get(&saved).ok().contains("Claude accepts the key"));
    // There is a key meanwhile, so the first change would replace it, and now needs a code.
    let again = post("/settings/retry", &[("change", &number), ("anyway", "yes")]).pending();
    let shown = page.get(&format!("/settings/confirm?change={again}")).ok();
    assert!(again == number && shown.contains("A code, please") && file(&env).contains(API_KEY), "{shown}");
    post("/settings/drop", &[("change", &number)]).see_other();
    // In the chat, a key that was saved on the page is masked, even one without a known shape.
    post("/settings/one?name=BRAVE_API_KEY", &[("BRAVE_API_KEY", SEARCH_KEY)]).see_other();
    assert!(file(&env).contains(SEARCH_KEY));
    claude.expect(Reply::text("Noted."));
    post("/chat", &[("text", &format!("my key is {SEARCH_KEY}")), ("key", "k1")]).see_other();
    assert!(page.get("/chat").ok().contains("my key is ***"));
    eventually("it is answered", || page.get("/chat").ok().contains("Noted."));
    env.wait_for_end_of_wake();
    assert!(claude.requests().iter().all(|request| !request.last_text().contains(SEARCH_KEY)));
    let saved = post("/settings/telegram", &[("TELEGRAM_BOT_TOKEN", TOKEN)]).see_other();
    assert!(page.get(&saved).ok().contains("@reveille_bot"));
    assert!(file(&env).contains(API_KEY) && file(&env).contains(TOKEN));
    // An empty field keeps what is set.
    let same = post("/settings/telegram", &[("TELEGRAM_BOT_TOKEN", "")]).see_other();
    assert!(page.get(&same).ok().contains("Nothing to change"));
    let views = ["/", "/chat", "/wakes", "/memory", "/questions", "/charts", "/health", "/script.js"];
    for path in PAGES.into_iter().chain(views) {
        bodies.borrow_mut().push(page.get(path).ok());
    }
    bodies.borrow_mut().push(page.end());
    for body in bodies.borrow().iter() {
        for secret in secrets {
            assert!(!body.contains(secret), "{secret} in {body}");
        }
    }
}

#[test]
fn pairing_shows_a_code_and_a_qr_code_and_then_who_has_paired() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::new();
    with_file(&mut env, &format!("MODEL=offline\nTELEGRAM_BOT_TOKEN={TOKEN}\n"));
    env.set("TELEGRAM_API_URL", &telegram.url());
    let page = ServedPage::open(&env);
    let shown = page.get("/settings/telegram").ok();
    assert!(shown.contains("Nobody yet") && !shown.contains("<svg class=\"qr\""), "{shown}");
    // The browser's session alone lets nobody in, not even the first person.
    let number = page.post("/settings/pair", &[("x", "")]).pending();
    assert!(!page.get("/settings/telegram").ok().contains("set-pair-code"), "offered without a code");
    let offered = page.post("/settings/confirm", &[("change", &number), ("code", &page.code())]).see_other();
    let shown = page.get(&offered).ok();
    let code = shown.split_once("set-pair-code\">").unwrap().1.split('<').next().unwrap().to_owned();
    assert!(shown.contains("<svg class=\"qr\"") && shown.contains("@reveille_bot"), "{shown}");
    // Another browser of the same page doesn't see it.
    let entered = page.send(&format!("GET {}", page.ticket()), &[], "");
    let other = entered.header("set-cookie").unwrap().split(';').next().unwrap();
    assert!(!page.send("GET /settings/telegram", &[("Cookie", other)], "").ok().contains(&code));
    let bot = env.start_logged(env!("CARGO_BIN_EXE_bot"), &[], &env.path("bot.log"));
    // The link sends the code behind the command.
    telegram.push_text(7, 7, &format!("/start {code}"));
    eventually("it is paired", || page.get("/settings/telegram").ok().contains("paired</span>"));
    let shown = page.get("/settings/telegram").ok();
    assert!(!shown.contains(&code) && shown.contains("Pair another person"), "{shown}");
    // So does a further person.
    page.post("/settings/pair", &[("x", "")]).pending();
    bot.signal(rustix::process::Signal::TERM);
    bot.end().ok();
}

#[test]
fn folders_servers_jobs_and_names_change_with_codes_or_commits() {
    let mut env = TestEnv::new();
    with_file(&mut env, "MODEL=offline\nTIMEZONE=Europe/Berlin\n");
    env.wake(&["--once"]).ok();
    let page = ServedPage::open(&env);
    let confirm = |number: &str| page.post("/settings/confirm", &[("change", number), ("code", &page.code())]);
    // Folders.
    let refused = page.post("/settings/folders/add", &[("access", "write"), ("path", "/")]);
    assert!(refused.status == 422 && refused.body.contains("whole machine"), "{refused:?}");
    let number = page.post("/settings/folders/add", &[("access", "read"), ("path", "~/notes")]).pending();
    confirm(&number).see_other();
    let policy = env.workspace().join("policy.toml");
    assert_eq!(std::fs::read_to_string(&policy).unwrap(), "[files]\nread = [\"~/notes\"]\n");
    assert!(page.get("/settings/permissions").ok().contains("~/notes"));
    page.post("/settings/folders/remove", &[("access", "read"), ("path", "~/notes")]).see_other();
    assert!(!std::fs::read_to_string(&policy).unwrap().contains("notes"));
    // Names are a commit, which can be undone.
    let refused = page.post("/settings/names", &[("assistant", "**x**"), ("person", "")]);
    assert_eq!(refused.status, 422);
    page.post("/settings/names", &[("assistant", "Jarvis"), ("person", "Ann")]).see_other();
    let shown = page.get("/settings/assistant").ok();
    assert!(shown.contains("value=\"Jarvis\"") && shown.contains("Undo"), "{shown}");
    // Jobs are, too.
    let job = "---\nwhen: every day at 09:00\n---\nSay hello.\n";
    std::fs::create_dir_all(env.brain().join("memory/jobs")).unwrap();
    std::fs::write(env.brain().join("memory/jobs/hello.md"), job).unwrap();
    env.wake(&["--once"]).ok();
    let shown = page.get("/settings/jobs").ok();
    assert!(shown.contains("hello") && shown.contains("next"), "{shown}");
    page.post("/settings/jobs/switch", &[("name", "hello"), ("to", "off")]).see_other();
    assert!(page.get("/settings/jobs").ok().contains("Switch on: hello"));
    page.post("/settings/jobs/switch", &[("name", "hello"), ("to", "on")]).see_other();
    assert!(page.get("/settings/jobs").ok().contains("Switch off: hello"));
}

#[test]
fn a_server_is_tried_shown_in_its_words_and_used_once_accepted() {
    let mut env = TestEnv::new();
    with_file(&mut env, "MODEL=offline\n");
    env.wake(&["--once"]).ok();
    let dir = env.workspace().join("mcp/peer");
    std::fs::create_dir_all(&dir).unwrap();
    let program = dir.join("server");
    std::fs::write(&program, SERVER).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let tools = json!([{"name": "look", "description": "Looks <b>there</b>", "inputSchema": {"type": "object"}}]);
    std::fs::write(dir.join("tools.json"), tools.to_string()).unwrap();
    std::fs::write(dir.join("mood"), "").unwrap();
    let page = ServedPage::open(&env);
    let program = program.display().to_string();
    let bad = page.post("/settings/servers/add", &[("name", "A b"), ("place", &program), ("token", "")]);
    assert!(bad.status == 422 && bad.body.contains("a-z"), "{bad:?}");
    let gone = page.post("/settings/servers/add", &[("name", "gone"), ("place", "/nowhere/server"), ("token", "")]);
    assert!(gone.status == 422 && gone.body.contains("no such program"), "{gone:?}");
    let add = |name: &str, place: &str| {
        let number = page.post("/settings/servers/add", &[("name", name), ("place", place), ("token", "")]).pending();
        assert!(!dir.join("calls").exists(), "it ran before the code");
        page.post("/settings/confirm", &[("change", &number), ("code", &page.code())])
    };
    // A secret among its arguments isn't shown, neither here nor in the terminal.
    let secret = "tok-0123456789abcdef";
    let place = format!("{program} --token {secret}");
    let number = page.post("/settings/servers/add", &[("name", "other"), ("place", &place), ("token", "")]).pending();
    let asked = page.get(&format!("/settings/confirm?change={number}")).ok();
    let told = env.wake(&["page", "--code"]).ok().stdout;
    assert!(!asked.contains(secret) && told.contains("--token ***") && !told.contains(secret), "{told} {asked}");
    page.post("/settings/drop", &[("change", &number)]).see_other();
    // One that can't be reached isn't written.
    let failed = add("gone", "/bin/false --help").pending();
    let shown = page.get(&format!("/settings/confirm?change={failed}")).ok();
    assert!(shown.contains("it didn&#39;t work") || shown.contains("it didn't work"), "{shown}");
    assert!(!env.workspace().join("mcp.toml").exists());
    page.post("/settings/drop", &[("change", &failed)]).see_other();
    let added = add("peer", &program).see_other();
    let shown = page.get(&added).ok();
    assert!(shown.contains("Looks &lt;b&gt;there&lt;/b&gt;") && shown.contains("Accept these tools"), "{shown}");
    let list = shown.split_once("name=\"list\" value=\"").unwrap().1.split('"').next().unwrap();
    page.post("/settings/servers/accept", &[("name", "peer"), ("list", "0000")]).see_other();
    assert!(page.get("/settings/servers").ok().contains("Accept these tools"), "another list was accepted");
    page.post("/settings/servers/accept", &[("name", "peer"), ("list", list)]).see_other();
    assert!(env.wake(&["mcp", "list"]).ok().stdout.contains("look"));
    // Another list in its place is shown at the terminal.
    let tools = json!([{"name": "wipe", "description": "Wipes all", "inputSchema": {"type": "object"}}]);
    std::fs::write(dir.join("tools.json"), tools.to_string()).unwrap();
    page.post("/settings/servers/ask", &[("name", "peer")]).see_other();
    let shown = page.get("/settings/servers").ok();
    let list = shown.split_once("name=\"list\" value=\"").unwrap().1.split('"').next().unwrap();
    let number = page.post("/settings/servers/accept", &[("name", "peer"), ("list", list)]).pending();
    let told = env.wake(&["page", "--code"]).ok().stdout;
    assert!(told.contains("`wipe` is new") && told.contains("`look` is gone"), "{told}");
    let pin = env.workspace().join("mcp-pins/peer.json");
    page.post("/settings/confirm", &[("change", &number), ("code", &find_code(&told))]).see_other();
    assert!(std::fs::read_to_string(&pin).unwrap().contains("wipe"));
    page.post("/settings/servers/switch", &[("name", "peer"), ("to", "off")]).see_other();
    assert!(page.get("/settings/servers").ok().contains("Switch on: peer"));
    page.post("/settings/servers/switch", &[("name", "peer"), ("to", "on")]).pending();
    page.post("/settings/servers/remove", &[("name", "peer")]).see_other();
    assert!(!std::fs::read_to_string(env.workspace().join("mcp.toml")).unwrap().contains("peer"));
    // Another one of this name would begin anew. The terminal shows what comes back.
    assert!(!pin.exists());
    let shown = page.get("/settings/servers").ok();
    let number = shown.split_once("/settings/undo").unwrap().1.split_once("value=\"").unwrap().1;
    page.post("/settings/undo", &[("change", number.split('"').next().unwrap())]).pending();
    let told = env.wake(&["page", "--code"]).ok().stdout;
    assert!(told.contains(&format!("peer comes back: it runs the program {program}")), "{told}");
}

#[test]
fn a_terminal_shows_the_code_by_itself() {
    let mut env = TestEnv::new();
    with_file(&mut env, "MODEL=offline\n");
    let mut dialog = Dialog::start(&env, WAKE, &["page"]);
    let shown = dialog.until("Ctrl-C stops the page.");
    let address = shown.split_once("http://").unwrap().1.split_whitespace().next().unwrap();
    let (host, path) = address.split_once('/').unwrap();
    let port = host.split_once(':').unwrap().1.parse().unwrap();
    let mut page = ServedPage { env: &env, running: None, port, host: host.to_owned(), cookie: String::new() };
    let entered = page.send(&format!("GET /{path}"), &[], "");
    page.cookie = entered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let number = page.post("/settings/permissions", &[("AUTONOMY", "2")]).pending();
    let told = dialog.until("without the code nothing changes.");
    assert!(told.contains("AUTONOMY: 2"), "{told}");
    page.post("/settings/confirm", &[("change", &number), ("code", &find_code(&told))]).see_other();
    assert!(file(&env).contains("AUTONOMY=2"));
}
