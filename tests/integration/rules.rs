//! "Always allow this": the rule is shown, then written, then in force; for exactly that call, by its person, once. `/rules` takes it back.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use super::{
    approvals::{end_bot, press, question, start_bot, state},
    exec_shell::{approve, bash},
    support::story::{last, results, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        dialog::Dialog,
        env::{CHAT, TestEnv, eventually},
        telegram::{FakeTelegram, Fault, SentMessage},
    },
};
use serde_json::json;

const COMMAND: &str = "echo one | wc -c";
const THEIRS: &str =
    "# Mine.\n[[rule]]\ncommand = [\"git\", \"push\"]\ndecision = \"deny\"\nmatch = [\"git push\"] # by hand\n";

/// A world in which everything asks, and a command was asked about.
fn asked() -> (FakeTelegram, FakeClaude, TestEnv, SentMessage) {
    let (telegram, claude, mut env) = with_claude();
    // What the world has received counts as fetched.
    telegram.number_updates_from(2_000);
    env.set("AUTONOMY", "0");
    ask(&claude, &env, COMMAND);
    let asked = question(&telegram);
    (telegram, claude, env, asked)
}

/// Lets a new cycle ask for a command.
fn ask(claude: &FakeClaude, env: &TestEnv, command: &str) {
    env.receive(CHAT, "count them");
    claude.expect(bash("t1", command));
    assert_eq!(env.once()["outcome"], "parked");
}

/// Presses "always", and returns the message that shows the rule.
fn shown(telegram: &FakeTelegram, env: &TestEnv, asked: &SentMessage) -> SentMessage {
    let before = telegram.sent().len();
    let bot = start_bot(env);
    telegram.tap(CHAT, CHAT, asked.message_id, &asked.buttons[2]);
    eventually("the rule is shown", || telegram.sent().len() > before);
    eventually("it is confirmed", || telegram.unconfirmed() == 0);
    end_bot(bot);
    telegram.sent().pop().unwrap()
}

/// Lets the bot show what became of the buttons, until a message says this.
fn until_shown(telegram: &FakeTelegram, env: &TestEnv, text: &str) {
    let polls = telegram.calls("getUpdates").len();
    let bot = start_bot(env);
    eventually("it polls", || telegram.calls("getUpdates").len() > polls);
    eventually(text, || telegram.standing().iter().any(|standing| standing.contains(text)));
    end_bot(bot);
}

fn policy(env: &TestEnv) -> std::path::PathBuf {
    env.workspace().join("policy.toml")
}

fn write_policy(env: &TestEnv, text: &str) {
    fs::create_dir_all(env.workspace()).unwrap();
    fs::write(policy(env), text).unwrap();
    fs::set_permissions(policy(env), fs::Permissions::from_mode(0o640)).unwrap();
}

/// Says something to the bot, and returns what it answers.
fn said(telegram: &FakeTelegram, env: &TestEnv, (chat, who): (i64, i64), text: &str) -> String {
    let before = telegram.sent().len();
    let bot = start_bot(env);
    telegram.push_text(chat, who, text);
    eventually("it is answered", || telegram.sent().len() > before);
    eventually("it is confirmed", || telegram.unconfirmed() == 0);
    end_bot(bot);
    telegram.sent().pop().unwrap().visible
}

#[test]
fn a_rule_is_shown_first_and_then_exactly_that_command_runs_unasked() {
    let (telegram, claude, env, asked) = asked();
    write_policy(&env, THEIRS);
    assert_eq!(asked.buttons.len(), 3);
    let rule = shown(&telegram, &env, &asked);
    assert_eq!((rule.chat_id, rule.buttons.len(), rule.reply_to), (CHAT, 2, Some(asked.message_id)));
    let text = "[[rule]]\ntool = \"bash\"\narguments = { command = \"echo one | wc -c\" }\ndecision = \"allow\"";
    assert!(rule.visible.contains(text) && rule.text.contains("<pre>"), "{}", rule.visible);
    assert_eq!(telegram.calls("answerCallbackQuery")[0]["text"], "Here is the rule. Nothing is allowed yet.");
    assert_eq!((state(&env).as_str(), env.once()["outcome"].as_str()), ("pending", Some("idle")));
    assert_eq!(fs::read_to_string(policy(&env)).unwrap(), THEIRS, "nothing is written before the yes");

    let added = press(&telegram, &env, (CHAT, CHAT, rule.message_id, &rule.buttons[0]));
    assert_eq!(added, "Added. From now on I'll do this without asking.");
    let now = fs::read_to_string(policy(&env)).unwrap();
    assert_eq!(now, format!("{THEIRS}\n# Added from Telegram on 2026-11-21 at 15:00:00 +01:00\n{text}\n"));
    assert_eq!(fs::metadata(policy(&env)).unwrap().permissions().mode() & 0o777, 0o640);
    until_shown(&telegram, &env, "✅ Allowed, now and always");
    until_shown(&telegram, &env, "✅ Added. /rules lists it");

    claude.expect(Reply::text("Four."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(results(&last(&claude))[0], ("4\n".to_owned(), false));
    // The same in a new cycle.
    let before = telegram.sent().len();
    env.receive(CHAT, "count them again");
    claude.expect(bash("t2", COMMAND));
    claude.expect(Reply::text("Still four."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(telegram.sent().len(), before + 1, "nobody is asked");
    // One that differs by a byte.
    ask(&claude, &env, "echo one | wc -c ");
}

#[test]
fn however_often_it_is_pressed_the_rule_is_written_once_and_the_call_runs_once() {
    let (telegram, claude, env, asked) = asked();
    let rule = shown(&telegram, &env, &asked);
    let bot = start_bot(&env);
    for n in 0..60 {
        telegram.tap(CHAT, CHAT, asked.message_id, &asked.buttons[2]);
        telegram.tap(CHAT, CHAT, rule.message_id, &rule.buttons[usize::from(n % 7 == 5)]);
    }
    eventually("all are confirmed", || telegram.unconfirmed() == 0);
    end_bot(bot);
    assert_eq!(fs::read_to_string(policy(&env)).unwrap().matches("[[rule]]").count(), 1);
    assert_eq!(fs::metadata(policy(&env)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(telegram.sent().iter().filter(|message| message.visible.contains("[[rule]]")).count(), 1);
    claude.expect(Reply::text("Four."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(env.steps("called").len(), 1);
    assert_eq!(env.once()["outcome"], "idle");
}

#[test]
fn not_now_leaves_the_question_open_and_the_rule_can_be_seen_again() {
    let (telegram, _claude, env, asked) = asked();
    let rule = shown(&telegram, &env, &asked);
    let left = press(&telegram, &env, (CHAT, CHAT, rule.message_id, &rule.buttons[1]));
    assert_eq!(left, "Not added. The question is still open.");
    assert_eq!((state(&env).as_str(), policy(&env).exists()), ("pending", false));
    let again = shown(&telegram, &env, &asked);
    assert!(again.message_id != rule.message_id && again.visible == rule.visible);
    // The old one's button is no answer to the new one.
    press(&telegram, &env, (CHAT, CHAT, rule.message_id, &rule.buttons[0]));
    assert!(!policy(&env).exists());
    press(&telegram, &env, (CHAT, CHAT, again.message_id, &again.buttons[0]));
    assert_eq!((state(&env).as_str(), policy(&env).exists()), ("approved", true));
}

#[test]
fn a_rule_that_is_shown_anew_while_the_old_message_still_changes_can_be_added() {
    let (telegram, _claude, env, asked) = asked();
    let rule = shown(&telegram, &env, &asked);
    let (sent, answered) = (telegram.sent().len(), telegram.calls("answerCallbackQuery").len());
    telegram.fail_next("editMessageText", Fault::Held);
    let bot = start_bot(&env);
    telegram.tap(CHAT, CHAT, rule.message_id, &rule.buttons[1]);
    eventually("the old message changes", || !telegram.calls("editMessageText").is_empty());
    telegram.tap(CHAT, CHAT, asked.message_id, &asked.buttons[2]);
    eventually("the rule is shown anew", || telegram.sent().len() > sent);
    telegram.release();
    // Who pressed is answered after what was shown is noted.
    eventually("both are answered", || telegram.calls("answerCallbackQuery").len() == answered + 2);
    let again = telegram.sent().pop().unwrap();
    telegram.tap(CHAT, CHAT, again.message_id, &again.buttons[0]);
    eventually("it is answered", || telegram.calls("answerCallbackQuery").len() == answered + 3);
    end_bot(bot);
    assert_eq!((state(&env).as_str(), policy(&env).exists()), ("approved", true));
}

#[test]
fn a_question_that_was_answered_otherwise_adds_no_rule() {
    let (telegram, _claude, env, asked) = asked();
    let rule = shown(&telegram, &env, &asked);
    press(&telegram, &env, (CHAT, CHAT, asked.message_id, &asked.buttons[1]));
    let late = press(&telegram, &env, (CHAT, CHAT, rule.message_id, &rule.buttons[0]));
    assert_eq!(late, "This has already been refused.");
    until_shown(&telegram, &env, "❌ Not added: the question was answered another way.");
    assert!(!policy(&env).exists());
}

#[test]
fn a_no_right_behind_an_ordered_rule_leaves_it_unwritten() {
    let (telegram, _claude, env, asked) = asked();
    let rule = shown(&telegram, &env, &asked);
    // Both wait for the bot, and so it takes them in at once.
    telegram.tap(CHAT, CHAT, rule.message_id, &rule.buttons[0]);
    telegram.tap(CHAT, CHAT, asked.message_id, &asked.buttons[1]);
    until_shown(&telegram, &env, "❌ Not added: the question was answered another way.");
    assert_eq!((state(&env).as_str(), policy(&env).exists()), ("denied", false));
}

#[test]
fn nobody_else_and_no_other_message_adds_a_rule() {
    const LISTED: i64 = 777;
    const GROUP: i64 = -100_200;
    let (telegram, _claude, mut env, asked) = asked();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{LISTED},{GROUP}"));
    let sent = telegram.sent().len();
    for (chat, who, message) in [(LISTED, LISTED, asked.message_id), (GROUP, CHAT, asked.message_id), (CHAT, CHAT, 1)] {
        press(&telegram, &env, (chat, who, message, &asked.buttons[2]));
    }
    assert_eq!((telegram.sent().len(), env.approval().rule.unwrap()), (sent, "offered".to_owned()));
    let rule = shown(&telegram, &env, &asked);
    for (chat, who, message) in
        [(LISTED, LISTED, rule.message_id), (GROUP, CHAT, rule.message_id), (CHAT, CHAT, asked.message_id)]
    {
        press(&telegram, &env, (chat, who, message, &rule.buttons[0]));
    }
    assert_eq!((state(&env).as_str(), policy(&env).exists()), ("pending", false));
}

#[test]
fn what_is_tainted_destructive_a_guests_or_no_command_has_no_such_button() {
    let offered = |telegram: &FakeTelegram| question(telegram).buttons.len() == 3;
    let world = |command: &str| {
        let (telegram, claude, mut env) = with_claude();
        env.set("AUTONOMY", "0");
        ask(&claude, &env, command);
        (telegram, claude, env)
    };
    assert!(offered(&world(COMMAND).0));
    // What can't be undone, and what asks in spite of a rule.
    for command in ["reboot", "rm -rf ~"] {
        assert!(!offered(&world(command).0), "{command}");
    }
    // What a program printed was read.
    let (telegram, claude, env) = world(COMMAND);
    approve(&env);
    claude.expect(bash("t2", "echo two"));
    assert_eq!(env.once()["outcome"], "parked");
    let questions: Vec<usize> =
        telegram.sent().iter().map(|message| message.buttons.len()).filter(|buttons| *buttons > 0).collect();
    assert_eq!(questions, [3, 2]);
    // A guest's wish.
    let (telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0").set("ALLOWED_CHAT_IDS", &format!("{CHAT},777")).receive(777, "read me that page");
    claude.expect(Reply::tools(vec![Block::tool("t1", "web_fetch", json!({ "url": "https://example.com/" }))]));
    assert_eq!(env.once()["outcome"], "parked");
    assert_eq!((question(&telegram).chat_id, offered(&telegram)), (CHAT, false));
    // The same wish of the owner's, which is about that address alone.
    let (telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0").receive(CHAT, "read me that page");
    claude.expect(Reply::tools(vec![Block::tool("t1", "web_fetch", json!({ "url": "https://example.com/" }))]));
    assert_eq!(env.once()["outcome"], "parked");
    assert!(offered(&telegram));
    // A rule of the person's own that asks or denies.
    let (telegram, claude, mut env) = with_claude();
    write_policy(&env, "[[rule]]\ncommand = \"echo\"\ndecision = \"ask\"\nmatch = [\"echo one\"]\n");
    env.set("AUTONOMY", "1");
    ask(&claude, &env, COMMAND);
    assert!(!offered(&telegram));
}

#[test]
fn a_file_that_cant_be_changed_safely_stays_and_its_person_is_told_why() {
    let (telegram, claude, env, asked) = asked();
    let rule = shown(&telegram, &env, &asked);
    let elsewhere = env.root().join("elsewhere.toml");
    fs::write(&elsewhere, THEIRS).unwrap();
    let refused = |why: &str| {
        let before = telegram.sent().len();
        let bot = start_bot(&env);
        telegram.tap(CHAT, CHAT, rule.message_id, &rule.buttons[0]);
        eventually("it is told", || telegram.sent().len() > before);
        eventually("it is confirmed", || telegram.unconfirmed() == 0);
        end_bot(bot);
        let told = telegram.sent().pop().unwrap().visible;
        assert!(told.contains(why) && told.contains("Nothing was changed, and the question is still open"), "{told}");
        assert_eq!(state(&env), "pending");
    };
    symlink(&elsewhere, policy(&env)).unwrap();
    refused("is a link to another file");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), THEIRS);
    fs::remove_file(policy(&env)).unwrap();
    write_policy(&env, "[shel]\n");
    refused("has a mistake (line 1:");
    assert_eq!(fs::read_to_string(policy(&env)).unwrap(), "[shel]\n");
    let denied = "[[rule]]\ncommand = \"wc\"\ndecision = \"deny\"\nmatch = [\"wc -l\"]\n";
    write_policy(&env, denied);
    refused("it still wouldn't run without asking: Your rule in policy.toml, line 1, says deny");
    assert_eq!(fs::read_to_string(policy(&env)).unwrap(), denied);
    // Mended, the same button works.
    write_policy(&env, "");
    press(&telegram, &env, (CHAT, CHAT, rule.message_id, &rule.buttons[0]));
    assert_eq!(state(&env), "approved");
    claude.expect(Reply::text("Four."));
    assert_eq!(env.once()["outcome"], "worked");
}

#[test]
fn a_bot_that_was_killed_in_between_writes_the_rule_once() {
    // Before the file was written, and after it.
    for was_written in [false, true] {
        let (telegram, _claude, env, asked) = asked();
        let rule = shown(&telegram, &env, &asked);
        if was_written {
            press(&telegram, &env, (CHAT, CHAT, rule.message_id, &rule.buttons[0]));
        }
        env.order_rule("2026-11-21T14:10:00Z");
        until_shown(&telegram, &env, "✅ Added. /rules lists it");
        assert_eq!(state(&env), "approved");
        assert_eq!(fs::read_to_string(policy(&env)).unwrap().matches("[[rule]]").count(), 1);
    }
}

#[test]
fn rules_are_listed_and_only_what_was_added_here_is_taken_back() {
    let (telegram, claude, mut env, asked) = asked();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},777"));
    let owner = (CHAT, CHAT);
    assert!(said(&telegram, &env, owner, "/rules").starts_with("There are no rules."));
    write_policy(&env, THEIRS);
    let rule = shown(&telegram, &env, &asked);
    press(&telegram, &env, (CHAT, CHAT, rule.message_id, &rule.buttons[0]));
    claude.expect(Reply::text("Four."));
    env.once();
    let listed = said(&telegram, &env, owner, "/rules");
    assert!(listed.contains("1. Never runs: commands that begin with git push · yours, line 2"), "{listed}");
    assert!(
        listed.contains(
            "2. Runs without asking: exactly the command echo one | wc -c · added from Telegram on 2026-11-21"
        ),
        "{listed}"
    );
    let guest = said(&telegram, &env, (777, 777), "/rules remove 2");
    assert_eq!(guest, "Only my owner can use /rules. Nothing was done.", "{guest}");
    let own = said(&telegram, &env, owner, "/rules remove 1");
    assert!(own.starts_with("Rule 1 is your own") && own.contains("line 2"), "{own}");
    assert!(said(&telegram, &env, owner, "/rules remove 3").starts_with("There's no rule 3"));
    let gone = said(&telegram, &env, owner, "/rules remove 2");
    assert!(gone.starts_with("I've removed this rule, so I'll ask again:") && gone.contains(COMMAND), "{gone}");
    assert_eq!(fs::read_to_string(policy(&env)).unwrap(), THEIRS, "not a byte is left of it");
    ask(&claude, &env, COMMAND);
}

#[test]
fn a_rule_that_its_person_has_edited_since_is_theirs() {
    let (telegram, _claude, env, asked) = asked();
    let rule = shown(&telegram, &env, &asked);
    press(&telegram, &env, (CHAT, CHAT, rule.message_id, &rule.buttons[0]));
    let edited = fs::read_to_string(policy(&env)).unwrap().replace("wc -c", "wc -l");
    write_policy(&env, &edited);
    // Its text fits what it says, and so it is still one of ours; with a word of theirs in it it isn't.
    assert!(said(&telegram, &env, (CHAT, CHAT), "/rules").contains("wc -l · added from Telegram"));
    let edited = edited.replace("decision", "why = \"mine\"\ndecision");
    write_policy(&env, &edited);
    let own = said(&telegram, &env, (CHAT, CHAT), "/rules remove 1");
    assert!(own.starts_with("Rule 1 is your own"), "{own}");
    assert_eq!(fs::read_to_string(policy(&env)).unwrap(), edited);
}

#[test]
fn the_terminal_shows_the_rule_and_adds_it_after_a_yes() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0");
    claude.expect(bash("t1", COMMAND));
    let said = env.wake(&["say", "count", "them"]).ok().stdout;
    assert!(said.contains("wake approvals approve 1 --always"), "{said}");
    let piped = env.wake(&["approvals", "approve", "1", "--always"]);
    piped.assert_fails(2, "asks for your yes in a terminal");
    let mut dialog = Dialog::start(&env, env!("CARGO_BIN_EXE_wake"), &["approvals", "approve", "1", "--always"]);
    let shown = dialog.answer("y or n:", "n");
    assert!(shown.contains("arguments = { command = \"echo one | wc -c\" }"), "{shown}");
    dialog.end().ok();
    assert_eq!((state(&env).as_str(), policy(&env).exists()), ("pending", false));
    claude.expect(Reply::text("Four."));
    let mut dialog = Dialog::start(&env, env!("CARGO_BIN_EXE_wake"), &["approvals", "approve", "1", "--always"]);
    dialog.answer("y or n:", "y");
    assert!(dialog.end().ok().stdout.contains("Four."));
    claude.expect(bash("t2", COMMAND));
    claude.expect(Reply::text("Still four."));
    assert!(env.wake(&["say", "count", "them", "again"]).ok().stdout.contains("Still four."));

    let listed = env.wake(&["policy", "rules"]).ok().stdout;
    assert!(
        listed.starts_with(
            "1. Runs without asking: exactly the command `echo one | wc -c` · added in the terminal on 2026"
        ),
        "{listed}"
    );
    let json = env.wake(&["policy", "rules", "list", "--json"]).ok().json();
    assert_eq!((json["number"].as_i64(), json["line"].as_i64()), (Some(1), Some(2)), "{json}");
    assert_eq!(env.wake(&["policy", "rules", "remove", "2"]).code, 1);
    let removed = env.wake(&["say", "/rules remove 1"]).ok().stdout;
    assert!(removed.contains("I've removed this rule"), "{removed}");
    assert_eq!(fs::read_to_string(policy(&env)).unwrap(), "");
    env.check_sound();
}

#[test]
fn a_chat_in_the_terminal_adds_a_rule_in_place() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0").set("TERM", "xterm");
    claude.expect(bash("t1", COMMAND));
    claude.expect(Reply::text("Four."));
    let mut talk = env.talk(env!("CARGO_BIN_EXE_wake"), &["chat"]);
    talk.wait_for_text("> ");
    talk.types("count them\r");
    for answer in ["n\r", "y\r"] {
        talk.wait_for_text("Enter to decide later:");
        talk.types("always\r");
        talk.wait_for_text("y or n:");
        talk.types(answer);
    }
    talk.wait_for_text("Four.");
    talk.wait_for_text("\x1b[?2004h");
    talk.types("\x04");
    let (code, shown) = talk.end();
    assert_eq!(code, 0, "{shown}");
    let rules = env.wake(&["policy", "rules"]).ok().stdout;
    assert!(rules.contains("echo one | wc -c"), "{rules}");
    env.check_sound();
}
