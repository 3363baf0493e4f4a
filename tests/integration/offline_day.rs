//! A first day without an AI model: what a person says in their own words, in what state, and what comes of it. Each scene is a
//! conversation in a world of its own, through the front door; a row is a sentence and what its answer says.

use std::time::Duration;

use super::support::{
    bot::Stage,
    env::{CHAT, TestEnv},
};

/// A chat that isn't the owner's.
const GUEST: i64 = 5555;

/// A sentence, and what its answer says; `!…` is what it doesn't say.
type Row = (&'static str, &'static [&'static str]);

/// Says the rows in turn, a wake each, and holds each answer against its row.
#[track_caller]
fn talk(env: &TestEnv, rows: &[Row]) {
    say(env, rows);
    env.check_sound();
}

/// The same, and the day goes on.
#[track_caller]
fn say(env: &TestEnv, rows: &[Row]) {
    let mut wrong = Vec::new();
    for (said, expected) in rows {
        let answer = env.wake(&["say", said]).ok().stdout;
        let fits = |part: &&&str| match part.strip_prefix('!') {
            Some(absent) => !answer.contains(absent),
            None => answer.contains(**part),
        };
        if let Some(missing) = expected.iter().find(|part| !fits(part)) {
            wrong.push(format!("{said:?}\n    expected {missing:?}\n    got      {:?}", answer.trim_end()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn a_new_workspace_works_at_the_first_command() {
    for args in [&["task", "add", "buy milk"][..], &["today"], &["task", "list"], &["memory", "search", "milk"]] {
        let env = TestEnv::new();
        let ran = env.wake(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
        ran.assert_tells("was created from the templates");
        env.wake(args).assert_never_tells("templates");
        env.wake(&["--once"]).ok();
        env.check_sound();
        assert_eq!(env.wake(&["status"]).ok().stdout, env.health(&["status"]).stdout);
    }
}

const NOTHING_SET: &str = "nothing has been set or saved";

#[test]
fn small_talk_gets_a_short_warm_word() {
    talk(
        &TestEnv::new(),
        &[
            ("ok", &["!AI model", "!help"]),
            ("thanks", &["welcome"]),
            ("bye", &["Bye"]),
            ("good night", &["Good night"]),
            ("never mind", &["never mind"]),
            ("sorry", &["No worries"]),
            ("👍", &["!AI model"]),
            ("yes", &["saying yes to"]),
            ("no", &["All right"]),
        ],
    );
}

#[test]
fn time_date_and_sums_are_told() {
    talk(
        &TestEnv::new(),
        &[
            ("what time is it?", &["It is 15:00"]),
            ("what's the time", &["15:00"]),
            ("what day is it today?", &["Saturday, 21 November 2026"]),
            ("what's the date?", &["Saturday, 21 November 2026"]),
            ("what's 12*7", &["12×7 = 84"]),
            ("15% of 80", &["= 12"]),
            ("how much is (3 + 4) * 2.5?", &["= 17.5"]),
            ("what is 10 / 0?", &["divided by zero"]),
            ("what's 100 minus 42", &["= 58"]),
        ],
    );
}

#[test]
fn tasks_are_finished_renamed_moved_and_dropped_in_plain_words() {
    let env = TestEnv::new();
    talk(
        &env,
        &[
            ("add task renew passport", &["Added"]),
            ("add task buy milk", &["Added"]),
            ("add task call the plumber", &["Added"]),
            ("add task paint the fence", &["Added"]),
            ("add task water the plants", &["Added"]),
            ("list tasks", &["1. renew passport", "2. buy milk", "5. water the plants"]),
            ("I finished t2", &["Done: buy milk"]),
            ("renew passport is done", &["Done: renew passport"]),
            ("rename call the plumber to call the electrician", &["call the electrician"]),
            ("postpone call the electrician to Friday", &["call the electrician", "Fri 27 Nov"]),
            ("move paint the fence to the backlog", &["Moved to the backlog: paint the fence"]),
            ("delete water the plants", &["Dropped", "water the plants"]),
            ("what are my tasks?", &["1. call the electrician", "!milk", "!fence", "!plants"]),
            ("move paint the fence back to my tasks", &["Moved to the active tasks: paint the fence"]),
            ("drop task paint the fence", &["Dropped", "paint the fence"]),
        ],
    );
    let log = env.memory("memory/agent-memory/episodic-memory.md");
    assert!(
        log.contains("Dropped the task “water the plants”") && log.contains("Finished the task “buy milk”"),
        "{log}"
    );
}

#[test]
fn a_number_means_the_list_that_was_shown() {
    talk(
        &TestEnv::new(),
        &[
            ("add task alpha", &["Added"]),
            ("add task beta", &["Added"]),
            ("add task gamma", &["Added"]),
            // Nothing was shown yet.
            ("done t2", &["name", "!Done: beta"]),
            ("list tasks", &["1. alpha", "2. beta", "3. gamma"]),
            ("task 1 done", &["Done: alpha"]),
            // Beta has moved up meanwhile, and is still number two.
            ("task 2 done", &["Done: beta"]),
            ("task 2 done", &["name", "!Done: gamma"]),
            ("rename gamma to delta", &["delta"]),
            ("task 3 done", &["name", "!Done"]),
            ("list tasks", &["1. delta"]),
            ("task 1 done", &["Done: delta"]),
        ],
    );
}

#[test]
fn a_number_means_what_was_shown_after_an_edit_by_hand_too() {
    let env = TestEnv::new();
    say(&env, &[("add task alpha", &["Added"]), ("add task beta", &["Added"]), ("list tasks", &["2. beta"])]);
    let path = env.brain().join("memory/project-memory/active.md");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("## alpha", "## first of all\n\n## alpha", 1)).unwrap();
    talk(&env, &[("done t1", &["Done: alpha"])]);
}

#[test]
fn a_number_means_what_the_bots_command_has_shown_too() {
    let stage = Stage::new();
    let (env, telegram) = (&stage.env, &stage.telegram);
    let said = |text: &str| {
        env.receive(CHAT, text);
        env.once();
        telegram.sent().last().map(|sent| sent.visible.clone()).unwrap_or_default()
    };
    for text in ["add task alpha", "add task beta", "add task gamma", "add a boat to the backlog"] {
        env.wake(&["say", text]).ok();
    }
    let bot = stage.start();
    let n = telegram.sent().len();
    telegram.push_text(CHAT, CHAT, "/tasks");
    let shown = telegram.wait_for_sent(n + 1, Duration::from_secs(60)).remove(n).visible;
    assert!(shown.contains("2. beta") && shown.contains("4. a boat"), "{shown}");
    stage.end(bot);
    for (text, part) in [
        ("task 1 done", "Done: alpha"),
        ("I finished t2", "Done: beta"),
        ("delete task 4", "Dropped: a boat"),
        ("task 1 done", "say the task's name"),
    ] {
        let answer = said(text);
        assert!(answer.contains(part), "{text}: {answer}");
    }
    env.check_sound();
}

#[test]
fn reminders_are_moved_snoozed_and_deleted_in_plain_words() {
    let mut env = TestEnv::new();
    say(
        &env,
        &[
            ("remind me to call Bob tomorrow at 10", &["Reminder set: call Bob"]),
            ("move it to Friday", &["call Bob", "Fri 27 Nov 2026 at 10:00"]),
            ("postpone the call Bob reminder to Monday at 8", &["Mon 23 Nov 2026 at 08:00"]),
            ("delete it", &["Ended: call Bob"]),
            ("list reminders", &["No reminders are set"]),
            ("remind me to take out the bins", &["When should I remind you"]),
            ("in 20 minutes", &["Reminder set: take out the bins", "15:20"]),
            ("remind me tomorrow at 9", &["What should I remind you of"]),
            ("stretch", &["Reminder set: stretch", "Sun 22 Nov 2026 at 09:00"]),
        ],
    );
    env.at("2026-11-21T14:20:00Z");
    env.once();
    say(
        &env,
        &[
            ("done", &["Well done", "!Which"]),
            ("remind me to feed the cat in 10 minutes", &["Reminder set: feed the cat", "15:30"]),
        ],
    );
    env.at("2026-11-21T14:30:00Z");
    env.once();
    talk(
        &env,
        &[
            ("snooze 10 minutes", &["Reminder set: feed the cat", "15:40"]),
            ("undo that", &["Undoing"]),
            ("list reminders", &["!15:40"]),
        ],
    );
}

#[test]
fn what_is_on_today_is_told() {
    talk(
        &TestEnv::new(),
        &[
            ("what's on today?", &["Nothing"]),
            ("remind me at 18:00 to eat", &["Reminder set"]),
            ("remind me tomorrow at 18:00 to cook", &["Reminder set"]),
            ("add task buy milk", &["Added"]),
            ("what's on today?", &["eat", "buy milk", "!cook"]),
            ("what do I have tomorrow?", &["cook", "!eat"]),
        ],
    );
}

#[test]
fn facts_are_kept_asked_for_and_forgotten_in_plain_words() {
    talk(
        &TestEnv::new(),
        &[
            ("remmeber that my dog is called Rex", &["Remembered: my dog is called Rex"]),
            ("what's my dog's name?", &["Rex"]),
            ("what is my dog called?", &["Rex"]),
            ("remember that my cat's name is Tom", &["Remembered"]),
            ("what is my cat called?", &["Tom"]),
            ("remember that my favourite colour is blue", &["Remembered", "!differs"]),
            ("remember that my favourite colour is green", &["Remembered", "differs", "my favourite colour is blue"]),
            ("remember that my favourite colour is blue", &["holds now", "“my favourite colour is green”", "!already"]),
            ("forget my cat's name", &["Forgotten: my cat's name is Tom"]),
            ("what do you know about me?", &["my dog is called Rex", "!Tom"]),
            ("forget everything", &["Say which"]),
        ],
    );
}

#[test]
fn it_takes_another_name_by_a_sentence_and_by_a_command() {
    let env = TestEnv::new();
    talk(
        &env,
        &[
            ("call yourself Robin", &["From now on I'm Robin."]),
            ("your name is now Robin", &["Robin is my name already."]),
        ],
    );
    env.once();
    assert_eq!(env.wake(&["name"]).ok().stdout.trim(), "Robin");
    let told = env.wake(&["name", "Ada", "Q"]).ok().stdout;
    assert!(told.contains("called Ada Q"), "{told}");
    assert!(
        env.memory("claude.md").contains("\nYou are Ada Q, one person's assistant."),
        "{}",
        env.memory("claude.md")
    );
    assert_eq!(env.wake(&["name", "<b>"]).code, 2);
    assert_eq!(env.once()["outcome"], "idle", "one's own command wakes nobody");
    let undone = env.wake(&["undo"]).ok().stdout;
    assert!(undone.contains("called the assistant Ada Q"), "{undone}");
    assert_eq!(env.wake(&["name"]).ok().stdout.trim(), "Robin");
}

#[test]
fn the_nearest_form_is_asked_and_a_yes_does_it() {
    let env = TestEnv::new();
    talk(
        &env,
        &[
            ("the moon is cheese", &["Did you mean: *remember that the moon is cheese*?", "Nothing"]),
            ("yes", &["Remembered: the moon is cheese"]),
            ("yes", &["saying yes to"]),
            ("wake me at 7", &["Reminder set: wake up", "Sun 22 Nov 2026 at 07:00"]),
            ("dentist on Friday at 3pm", &["Did you mean: *remind me: dentist on Friday at 3pm*?"]),
            ("no", &["nothing"]),
            ("yes", &["!Reminder set"]),
            ("I need to buy stamps", &["Added to the active tasks: buy stamps"]),
            ("buy a kite for Emil", &["Did you mean: *add task buy a kite for Emil*?"]),
            ("y", &["Added to the active tasks: buy a kite for Emil"]),
            ("set an alarm", &["!I'll keep"]),
            ("write me a poem about the sea", &[NOTHING_SET, "AI model", "`wake init`"]),
        ],
    );
    assert_eq!(env.active_reminders().len(), 1);
}

#[test]
fn what_the_owner_states_is_remembered_at_once_and_asked_for() {
    let env = TestEnv::new();
    talk(
        &env,
        &[
            ("my son is called Milo", &["Remembered: my son is called Milo"]),
            ("my daughter is called Zoe", &["Remembered: my daughter is called Zoe"]),
            ("yes", &["saying yes to"]),
            ("My wife's birthday is 14 May. I parked on level 3.", &["14 May", "level 3"]),
            ("what's my son's name?", &["Milo", "!Zoe"]),
            ("any idea where I parked", &["level 3"]),
            ("when is my dad's birthday?", &["You haven't told me that", "!keep"]),
            ("when is Bob's birthday?", &["You haven't told me that", "keep your question"]),
            ("our wifi password is hunter2", &["nothing has been saved", "!hunter2"]),
            ("is my son called Max?", &["!Remembered"]),
            ("no, my son is called Max", &["Remembered: my son is called Max", "differs", "Milo"]),
            ("undo that", &["Undoing"]),
        ],
    );
    let facts = env.memory("memory/agent-memory/semantic-memory.md");
    assert!(facts.contains("Zoe") && !facts.contains("Max") && !facts.contains("hunter2"), "{facts}");
}

#[test]
fn what_a_guest_states_is_kept_for_a_model() {
    let mut stage = Stage::new();
    stage.env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GUEST}"));
    let env = &stage.env;
    env.receive(CHAT, "my son is called Milo");
    env.receive(GUEST, "my son is called Max");
    env.once();
    env.once();
    let facts = env.memory("memory/agent-memory/semantic-memory.md");
    assert!(facts.contains("Milo") && !facts.contains("Max"), "{facts}");
}

#[test]
fn what_was_done_finishes_its_task_and_no_other() {
    talk(
        &TestEnv::new(),
        &[
            ("add task call the plumber", &["Added"]),
            ("add task buy milk frother", &["Added"]),
            ("add task water the plants", &["Added"]),
            ("I called the plumber this morning", &["Done: call the plumber"]),
            ("I bought milk", &["buy milk frother", "Nothing has changed", "!Done"]),
            ("I called the plumber", &["nothing has changed", "Did you mean: *remember that I called the plumber*?"]),
            ("yes", &["Remembered: I called the plumber"]),
            ("what's left?", &["1. buy milk frother", "2. water the plants"]),
            ("2 done", &["Done: water the plants"]),
            ("the first one is done", &["Done: buy milk frother"]),
            ("thanks, that's all", &["welcome"]),
        ],
    );
}

#[test]
fn lists_are_filled_shown_and_emptied() {
    talk(
        &TestEnv::new(),
        &[
            ("what's on the shopping list?", &["Nothing is on the shopping list"]),
            (
                "add milk, eggs and oat biscuits to the shopping list",
                &["On the shopping list now: milk, eggs, oat biscuits"],
            ),
            ("put milk on my shopping list", &["Already on it: milk"]),
            ("whats on it", &["- milk", "- eggs"]),
            ("I bought milk and bread", &["Off the shopping list: milk", "Not on it: bread"]),
            ("cross eggs off", &["Off the shopping list: eggs"]),
            ("we're out of butter", &["Did you mean: *add butter to the shopping list*?"]),
            ("yes", &["On the shopping list now: butter"]),
            ("add socks to my packing list", &["On the packing list now: socks"]),
            ("what do we need to buy?", &["- oat biscuits", "- butter", "!socks", "!milk"]),
            ("clear the shopping list", &["Off the shopping list: oat biscuits, butter"]),
            ("shopping list", &["Nothing is on the shopping list"]),
        ],
    );
}

#[test]
fn days_times_and_measures_are_told_and_a_timer_is_set_unasked() {
    let env = TestEnv::new();
    talk(
        &env,
        &[
            ("what day is 24 December?", &["Thursday, 24 December 2026"]),
            ("what time is it in Tokyo", &["23:00", "Tokyo"]),
            ("5 miles in km", &["8.05 km"]),
            ("20 % of 80", &["= 16"]),
            ("350 F in C", &["176.67 °C"]),
            ("set a timer for 10 minutes", &["15:10", "!Did you mean"]),
            ("Erinnere mich morgen an den Zahnarzt", &["nur Englisch", "!AI model"]),
            ("¿Qué hora es?", &["solo entiendo inglés"]),
        ],
    );
    assert_eq!(env.active_reminders().len(), 1);
}

#[test]
fn a_title_that_recurs_is_offered_as_a_reminder() {
    talk(
        &TestEnv::new(),
        &[
            (
                "add task water the plants every Sunday",
                &["Added", "don't repeat", "Did you mean: *remind me to water the plants every Sunday*?"],
            ),
            ("yes", &["Reminder set: water the plants", "every Sunday"]),
        ],
    );
}

#[test]
fn a_full_list_says_its_choices_in_words_that_are_understood() {
    let env = TestEnv::new();
    for n in 1..=7 {
        env.wake(&["say", &format!("add task thing {n}")]).ok();
    }
    talk(
        &env,
        &[
            ("add task one more", &["7 tasks are active", "delete task", "move task", "add one more to the backlog"]),
            ("list tasks", &["7. thing 7"]),
            ("move task 3 to the backlog", &["Moved to the backlog: thing 3"]),
            ("add task one more", &["Added to the active tasks: one more"]),
            ("delete task 5", &["thing 5"]),
            ("add buy a boat to the backlog", &["Added to the backlog"]),
            ("scrap thing 7", &["thing 7"]),
        ],
    );
}

#[test]
fn what_stands_in_the_task_list_as_prose_is_shown_and_reported() {
    let env = TestEnv::new();
    env.wake(&["say", "add task call Bob"]).ok();
    let path = env.brain().join("memory/project-memory/active.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let line = text.lines().count() + 1;
    std::fs::write(&path, format!("{text}- buy paint\n")).unwrap();
    talk(&env, &[("list tasks", &["1. call Bob", "Also written in active.md", "buy paint", "not as a task"])]);
    let report = env.health(&["check", "--json"]).stdout;
    assert!(
        report.contains("active.md") && report.contains(&format!("line {line}")) && report.contains("buy paint"),
        "{report}"
    );
}
