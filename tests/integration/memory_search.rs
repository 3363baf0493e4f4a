//! `wake memory`: what was written down and said is found, whoever changed it meanwhile, and the index is nobody's worry.

use serde_json::Value;

use super::support::{
    database::Database,
    env::{NOW, ProgramOutput, TestEnv},
};

const FACTS: &str = "memory/agent-memory/semantic-memory.md";
const TALK: &str = "# Caroline and Melanie\n\n## Session 1 (8 May, 2023)\n\nCaroline: Hey Mel! How have you been?\nMelanie: Swamped with the kids.\nCaroline: I went to a support group yesterday.\nMelanie: What was it like?\n\n## Session 2 (25 May, 2023)\n\nMelanie: I ran a charity race last Saturday.\nCaroline: How did it go?\n";

fn world() -> TestEnv {
    let env = TestEnv::new();
    env.wake(&["--once", "--say", "remember that the wifi code is 1234"]).ok();
    std::fs::create_dir_all(env.brain().join("memory/talks")).unwrap();
    env
}

fn found(env: &TestEnv, args: &[&str]) -> Vec<Value> {
    let args: Vec<&str> = ["memory", "search", "--json"].iter().chain(args).copied().collect();
    hits(&env.wake(&args).ok())
}

fn hits(ran: &ProgramOutput) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Puts all of the index into its one file.
fn settle(env: &TestEnv) {
    Database::in_file(env.workspace().join("index.db")).write_back();
}

fn places(hits: &[Value]) -> Vec<String> {
    hits.iter().map(|hit| format!("{}:{}", hit["path"].as_str().unwrap(), hit["line"])).collect()
}

#[test]
fn what_is_written_down_and_both_sides_of_conversations_are_found_with_their_place_and_origin() {
    let env = world();
    env.write_memory("memory/talks/a.md", TALK);
    let archive = env.brain().join("memory/agent-memory/archive");
    std::fs::create_dir_all(&archive).unwrap();
    std::fs::write(archive.join("2025-03.md"), "## 2025-03-04\n- 10:00 Sold the boat <!-- wake 1 own -->\n").unwrap();
    env.put_answered(0, "My dentist is Dr. Grün in the Hauptstraße", "2025-03-02T10:00:00Z");
    env.queue_many(0, "waits in the queue: dentist", "2025-03-02T10:00:00Z", 1);
    env.put_sent(0, "Noted, the dentist.", "2025-03-02T10:00:05Z");
    let wifi = found(&env, &["what is the wifi code?", "--limit", "3"]);
    assert_eq!(places(&wifi)[0], format!("{FACTS}:7"), "{wifi:?}");
    assert_eq!(wifi[0]["text"], "the wifi code is 1234");
    assert_eq!((&wifi[0]["date"], &wifi[0]["origin"]["message"]), (&"2026-11-21".into(), &1.into()), "{wifi:?}");
    assert!(wifi[0]["origin"]["wake"].as_str().unwrap().starts_with("20261121T140000Z-"), "{wifi:?}");
    assert!(wifi[0]["score"].as_f64().unwrap() > wifi[1]["score"].as_f64().unwrap());

    let group = found(&env, &["When did Caroline go to the support group?"]);
    assert_eq!(places(&group)[0], "memory/talks/a.md:7");
    assert_eq!((&group[0]["date"], &group[0]["speaker"]), (&"2023-05-08".into(), &"Caroline".into()));
    assert_eq!(group[0]["heading"], "Session 1 (8 May, 2023)");

    assert_eq!(places(&found(&env, &["boat"]))[0], "memory/agent-memory/archive/2025-03.md:2");
    // A skill is found once it is the person's own; as it came it says nothing of them.
    let skills = || places(&found(&env, &["red green refactor tests first"]));
    assert!(!skills().iter().any(|place| place.starts_with("skills/")), "{:?}", skills());
    let tdd = env.memory("skills/tdd/SKILL.md");
    env.write_memory("skills/tdd/SKILL.md", &format!("{tdd}\nUse nextest.\n"));
    assert!(skills()[0].starts_with("skills/tdd/SKILL.md:"));
    let dentist = found(&env, &["dentist grun hauptstrasse"]);
    assert_eq!(places(&dentist)[..2], ["messages/2:1", "answers/2:1"], "{dentist:?}");
    assert!(!places(&dentist).contains(&"messages/3:1".to_owned()), "what waits isn't found: {dentist:?}");
    assert_eq!((&dentist[0]["date"], &dentist[0]["origin"]["chat"]), (&"2025-03-02".into(), &0.into()));
    assert_eq!(places(&found(&env, &["dentist", "--in", "answers"]))[0], "answers/2:1");
    assert_eq!(places(&found(&env, &["dentist", "--in", "memory"])), [""; 0]);
    assert_eq!(places(&found(&env, &["race", "--in", "memory/talks"]))[0], "memory/talks/a.md:12");
    assert!(places(&found(&env, &["Carolien"]))[0].starts_with("memory/talks/a.md"), "a slip is forgiven");
    let words = env.wake(&["memory", "search", "wifi", "--why"]).ok().stdout;
    assert!(words.contains(&format!("{FACTS}:7: the wifi code is 1234")) && words.contains("bm25 "), "{words}");
    env.wake(&["memory", "search", "zebra"]).ok().assert_tells("Nothing was found.");
}

#[test]
fn other_scripts_are_found_by_parts_of_their_words() {
    let env = world();
    env.write_memory("memory/talks/ja.md", "- 東京都庁へ行った\n- 大阪城を見た\n- Встретил Ёлкина в Москве\n");
    assert_eq!(places(&found(&env, &["東京"]))[0], "memory/talks/ja.md:1");
    assert_eq!(places(&found(&env, &["елкина"]))[0], "memory/talks/ja.md:3");
}

#[test]
fn what_was_changed_is_found_at_once_and_what_is_gone_is_not() {
    let env = world();
    env.write_memory("memory/talks/a.md", "- the key is under the mat\n- the boat is blue\n");
    assert_eq!(places(&found(&env, &["key"]))[0], "memory/talks/a.md:1");
    // The same size at nearly the same time.
    env.write_memory("memory/talks/a.md", "- the cat is under the mat\n- the boat is blue\n");
    assert!(found(&env, &["key"]).is_empty());
    env.write_memory("memory/talks/a.md", "One more line.\n\n- the cat is under the mat\n- the boat is blue\n");
    assert_eq!(places(&found(&env, &["boat"]))[0], "memory/talks/a.md:4");
    std::fs::remove_file(env.brain().join("memory/talks/a.md")).unwrap();
    assert!(found(&env, &["boat"]).is_empty());
    env.wake(&["undo"]).ok();
    let wifi = places(&found(&env, &["wifi code"]));
    assert!(!wifi.contains(&format!("{FACTS}:7")), "{wifi:?}");
}

#[test]
fn what_waited_or_was_put_back_is_found_as_soon_as_it_is_settled() {
    let env = world();
    env.queue_by_hand(0, "the zeppelin");
    env.keep_queued_for_another_than("x");
    assert!(found(&env, &["zeppelin"]).is_empty());
    env.put_answered(0, "another airship", NOW);
    assert_eq!(places(&found(&env, &["airship"]))[0], "messages/3:1");
    env.put_outcome(2, "answered");
    assert_eq!(places(&found(&env, &["zeppelin"]))[0], "messages/2:1");
}

#[test]
fn before_the_first_wake_there_is_no_memory_to_search() {
    let env = TestEnv::new();
    for args in [&["stats"][..], &["reindex"], &["reindex", "--embed"]] {
        let ran = env.wake(&[&["memory"], args].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:#?}");
        ran.assert_tells("There is no memory at").assert_never_tells("index");
    }
}

#[test]
fn a_day_that_is_over_is_searched_as_it_was() {
    let mut env = world();
    env.write_memory("memory/talks/a.md", "- the safe opens with 1111\n");
    env.write_memory("memory/talks/b.md", "- dentist on 24 December 2026\n");
    env.put_answered(0, "the dentist is closed", "2026-12-06T10:00:00Z");
    env.git(&["add", "-A"]);
    let commit = |env: &TestEnv, at: &str| {
        let dated = ["-c", "user.name=Ann", "-c", "user.email=a@example.org", "commit", "-q", "-m", "x", "--date", at];
        let mut command = env.command("git", &["-C", &env.brain().display().to_string()]);
        assert!(command.args(dated).env("GIT_COMMITTER_DATE", at).status().unwrap().success());
    };
    commit(&env, "2026-12-01T12:00:00Z");
    env.write_memory("memory/talks/a.md", "- the safe opens with 2222\n");
    env.git(&["add", "-A"]);
    commit(&env, "2026-12-10T12:00:00Z");
    env.at("2026-12-20T12:00:00Z");
    let texts = |args: &[&str]| found(&env, args).iter().map(|hit| hit["text"].to_string()).collect::<Vec<_>>();
    assert_eq!(texts(&["safe"]), ["\"the safe opens with 2222\""]);
    assert_eq!(texts(&["safe", "--as-of", "2026-12-05"]), ["\"the safe opens with 1111\""]);
    assert_eq!(texts(&["safe", "--as-of", "2026-12-10"]), ["\"the safe opens with 2222\""]);
    // What names a day ahead was known, what was said later wasn't.
    assert_eq!(texts(&["dentist", "--as-of", "2026-12-05"]), ["\"dentist on 24 December 2026\""]);
    // Before the memory was kept: what says that it is from then.
    env.write_memory(
        "memory/talks/a.md",
        "## 2023-05-08\n- the safe is new\n## 2024-01-01\n- the safe is old\n- safe\n",
    );
    assert_eq!(texts(&["safe", "--as-of", "2023-06-01"]), ["\"the safe is new\""]);
    assert_eq!(env.wake(&["memory", "search", "x", "--as-of", "soon"]).code, 2);
}

#[test]
fn a_damaged_index_is_built_anew_and_said_once() {
    let env = world();
    let index = env.workspace().join("index.db");
    assert_eq!(places(&found(&env, &["wifi code"]))[0], format!("{FACTS}:7"));
    for damage in [&b"no database at all, but a text that is long enough to be read as one"[..], &[0; 4096]] {
        settle(&env);
        std::fs::write(&index, damage).unwrap();
        let ran = env.wake(&["memory", "search", "--json", "wifi code"]).ok();
        ran.assert_tells("rebuilt it");
        assert_eq!(places(&hits(&ran))[0], format!("{FACTS}:7"));
        let again = env.wake(&["memory", "search", "--json", "wifi code"]).ok();
        again.assert_never_tells("anew");
    }
    // The middle of it.
    settle(&env);
    let mut bytes = std::fs::read(&index).unwrap();
    let end = bytes.len() - 4096;
    bytes[4096..end].fill(0x5a);
    std::fs::write(&index, bytes).unwrap();
    assert_eq!(places(&found(&env, &["wifi code"]))[0], format!("{FACTS}:7"));
}

#[test]
fn where_no_index_can_be_written_it_is_searched_without() {
    let env = world();
    let index = env.workspace().join("index.db");
    std::fs::remove_file(&index).ok();
    std::fs::create_dir(&index).unwrap();
    let ran = env.wake(&["memory", "search", "--json", "wifi code"]).ok();
    ran.assert_tells("searched without it");
    assert_eq!(places(&hits(&ran))[0], format!("{FACTS}:7"));
}

#[test]
fn several_at_once_find_the_same() {
    let env = world();
    let lines: String = (0..500).map(|n| format!("- book {n} stands on shelf {}\n", n % 7)).collect();
    env.write_memory("memory/talks/books.md", &lines);
    std::fs::remove_file(env.workspace().join("index.db")).ok();
    let ran: Vec<ProgramOutput> = std::thread::scope(|scope| {
        let search = || scope.spawn(|| env.wake(&["memory", "search", "--json", "book 77"]));
        let running: Vec<_> = (0..4).map(|_| search()).collect();
        running.into_iter().map(|ran| ran.join().unwrap().ok()).collect()
    });
    for ran in &ran {
        assert_eq!(places(&hits(ran))[0], "memory/talks/books.md:78", "{ran:#?}");
    }
    let stats = env.wake(&["memory", "stats", "--json"]).ok().json();
    let again = env.wake(&["memory", "reindex", "--json"]).ok().json();
    assert_eq!((&stats["chunks"], &stats["words"]), (&again["chunks"], &again["words"]));
}

#[test]
fn a_wake_keeps_the_index_current_and_an_idle_one_leaves_it_alone() {
    let env = world();
    let index = env.workspace().join("index.db");
    assert!(index.exists());
    std::fs::remove_file(&index).unwrap();
    env.wake(&["--once"]).ok();
    assert!(!index.exists(), "an idle look opens no index");
    env.wake(&["--once", "--say", "remember that the boat is blue"]).ok();
    assert!(index.exists());
}
