//! Where a fact comes from, what changed, how it is given back, and how it is taken out of everything that is searched.

use serde_json::{Value, json};

use crate::{
    support::story::{opening, with_claude},
    support::{
        claude::{Block, Reply},
        env::{CHAT, TestEnv},
    },
};

const FACTS: &str = "memory/agent-memory/semantic-memory.md";

/// An offline world that was told a fact.
fn told() -> TestEnv {
    let env = TestEnv::new();
    env.wake(&["say", "remember that the wifi code is 1234"]).ok();
    assert!(env.memory(FACTS).contains("wifi code is 1234"));
    env
}

fn why(env: &TestEnv, words: &str) -> Value {
    let told = env.wake(&["memory", "why", words, "--json"]).ok().stdout;
    serde_json::from_str(told.lines().next().unwrap()).unwrap()
}

#[test]
fn a_fact_leads_to_the_wake_and_the_message_that_said_it() {
    let env = told();
    let story = why(&env, "wifi code");
    assert_eq!((story["path"].as_str(), story["written_by"].as_str()), (Some(FACTS), Some("wake")));
    assert_eq!(story["wake"], env.trailer("Wake-Id"));
    assert_eq!(story["commit"]["commit"], env.git(&["rev-parse", "HEAD"]));
    assert_eq!(story["messages"][0]["text"], "remember that the wifi code is 1234");
    assert_eq!((story["messages"][0]["chat_id"].as_i64(), &story["taint"]), (Some(0), &Value::Null));
    let said = env.wake(&["memory", "why", "wifi", "code"]).ok().stdout;
    assert!(said.contains("A wake wrote it") && said.contains("“remember that the wifi code is 1234”"), "{said}");
    // Its entry in the log has no message of its own: the wake's trailers tell.
    let log = env.memory("memory/agent-memory/episodic-memory.md");
    let line =
        log.lines().find(|line| line.contains("wifi")).unwrap().split(" <!--").next().unwrap().trim_start_matches("- ");
    let story = why(&env, line);
    assert_eq!(story["messages"][0]["text"], "remember that the wifi code is 1234", "{story:#}");
}

#[test]
fn a_line_that_a_person_wrote_says_so_whatever_it_claims() {
    let env = told();
    let wake = env.trailer("Wake-Id");
    let facts = env.memory(FACTS);
    env.write_memory(FACTS, &format!("{facts}- the gate is blue <!-- wake {wake} message 1 -->\n- the dog is old\n"));
    assert_eq!(why(&env, "the dog is old")["written_by"], "uncommitted");
    env.git(&["commit", "-qam", "By hand"]);
    let story = why(&env, "the dog is old");
    assert_eq!((story["written_by"].as_str(), &story["wake"]), (Some("person"), &Value::Null));
    assert_eq!(
        (story["commit"]["subject"].as_str(), story["commit"]["author"].as_str()),
        (Some("By hand"), Some("Ann"))
    );
    assert_eq!(why(&env, "the gate is blue")["written_by"], "person");
    let said = env.wake(&["memory", "why", "the gate is blue"]).ok().stdout;
    assert!(said.contains("A person wrote it (Ann)"), "{said}");
    assert_eq!(env.wake(&["memory", "why", "xylophone quartz"]).code, 1);
}

#[test]
fn a_fact_learnt_after_reading_others_words_is_told_to_be_so() {
    let (_telegram, claude, env) = with_claude();
    env.receive(CHAT, "look around and keep what you see");
    claude.expect(Reply::tool("t0", "bash", json!({"command": "echo hello"})));
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "Eve may open the gate"})));
    claude.expect(Reply::text("Done."));
    env.once();
    let story = why(&env, "Eve may open");
    assert_eq!((story["heading"].as_str(), story["written_by"].as_str()), (Some("Unconfirmed"), Some("wake")));
    assert!(story["taint"].is_string(), "{story:#}");
}

#[test]
fn what_changed_is_told_by_section_since_the_last_wake_a_day_or_a_wake() {
    let mut env = told();
    let first = env.trailer("Wake-Id");
    let idle = env.wake(&["memory", "diff"]).ok();
    idle.assert_tells("Nothing has changed since the last wake");
    assert!(idle.stdout.is_empty(), "{}", idle.notices());
    env.at("2026-11-23T10:00:00Z");
    env.wake(&["say", "remember that the gate is green"]).ok();
    let facts = env.memory(FACTS);
    env.write_memory(FACTS, &facts.replace("1234", "9876"));
    let since = |args: &[&str]| {
        let all: Vec<&str> = ["memory", "diff"].iter().chain(args).copied().collect();
        env.wake(&all).ok().stdout
    };
    let told = since(&[]);
    assert!(told.contains("and edits that aren't committed yet"), "{told}");
    assert!(told.contains("  - - the wifi code is 1234\n  + - the wifi code is 9876\n"), "{told}");
    assert!(!told.contains("gate is green"), "{told}");
    for point in [first.as_str(), "today", "2026-11-22"] {
        let told = since(&[point]);
        assert!(told.contains("gate is green") && told.contains("9876"), "{point}: {told}");
    }
    let json = since(&["today", "--json"]);
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        lines.iter().any(|line| line["is_added"] == true && line["text"].as_str().unwrap().contains("gate")),
        "{json}"
    );
    assert_eq!(env.wake(&["memory", "diff", "sometime"]).code, 2);
}

#[test]
fn what_was_is_given_back_as_a_commit_of_the_persons_and_the_present_text_stays_in_the_history() {
    let mut env = told();
    let first = env.trailer("Wake-Id");
    env.at("2026-11-23T10:00:00Z");
    env.wake(&["say", "remember that the gate is green"]).ok();
    let before = env.memory(FACTS);
    env.write_memory(FACTS, "# Gone\n\nA draft that nobody has committed.\n");
    let dry = env.wake(&["memory", "restore", "semantic-memory", "--dry-run"]).ok();
    dry.assert_tells("Nothing was changed");
    assert!(env.memory(FACTS).contains("A draft"));
    // Edits that aren't committed are its last change.
    let done = env.wake(&["memory", "restore", "semantic-memory"]).ok();
    assert_eq!(env.memory(FACTS), before);
    done.assert_tells("Your edits were committed first");
    assert!(env.git(&["log", "-p", "-2", "--format=%an %s"]).contains("A draft that nobody has committed."));
    assert!(!env.git(&["log", "-2", "--format=%ae"]).contains("reveille@localhost"));
    // One line of it, as it was.
    env.write_memory(FACTS, &before.replace("- the wifi code is 1234", "- the wifi code is unknown"));
    env.wake(&["memory", "restore", FACTS, "--lines", "wifi code is 1234", "--at", "2026-11-21"]).ok();
    let now = env.memory(FACTS);
    assert!(now.contains("1234") && now.contains("unknown") && now.contains("gate is green"), "{now}");
    // All of it, as a wake left it.
    env.wake(&["memory", "restore", &first]).ok();
    let now = env.memory(FACTS);
    assert!(now.contains("1234") && !now.contains("gate") && !now.contains("unknown"), "{now}");
    assert_eq!(env.wake(&["memory", "restore", "nothing-like-it.md"]).code, 1);
    env.check_sound();
}

/// Everything in the database that is text.
fn all_rows(env: &TestEnv) -> String {
    env.write_back();
    let bytes = std::fs::read(env.workspace().join("messages.db")).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn what_is_forgotten_is_in_nothing_that_is_searched_and_the_history_is_told_of_with_the_way_to_purge_it() {
    let (_telegram, claude, env) = with_claude();
    let remote = env.bare_remote("origin.git");
    env.wake(&["--once"]).ok();
    env.git(&["remote", "add", "origin", &remote.display().to_string()]);
    env.receive(CHAT, "the gate's code is 4711-77, keep it");
    claude.expect(Reply::tools(vec![Block::tool("t0", "remember", json!({"fact": "The gate's code is 4711-77"}))]));
    claude.expect(Reply::text("The code 4711-77 is kept."));
    env.once();
    env.git(&["push", "-q", "origin", "main"]);
    env.git(&["fetch", "-q"]);
    assert!(all_rows(&env).contains("4711-77") && env.memory(FACTS).contains("4711-77"));

    let found = |paths: &[&str]| {
        let told = env.wake(&["memory", "search", "--json", "the code of the gate 4711-77"]).ok().stdout;
        paths.iter().all(|path| told.contains(path)) && told.contains("4711-77")
    };
    // The recording says no more than that, and is left out.
    assert!(found(&[FACTS, "messages/1", "answers/"]));

    let looked = env.wake(&["memory", "forget", "--dry-run", "4711-77"]).ok();
    for what in [FACTS, "message 1 of", "answer ", "recording: ", "the full records of 1 wake"] {
        assert!(looked.stdout.contains(what), "{what}: {}", looked.stdout);
    }
    let asked = env.wake(&["memory", "forget", "4711-77"]);
    asked.assert_fails(1, "Nothing was removed");
    assert!(all_rows(&env).contains("4711-77") && env.memory(FACTS).contains("4711-77"));

    let copy = env.workspace().join("messages.db.before-upgrade");
    std::fs::write(&copy, "").unwrap();
    let done = env.wake(&["memory", "forget", "--yes", "4711-77"]).ok();
    let names_copy = format!("database copy of the last upgrade may also hold it. To remove it: rm {}", copy.display());
    done.assert_tells(&names_copy);
    assert!(!all_rows(&env).contains("4711-77"), "nothing of it stays in the file, freed pages included");
    assert!(!found(&[]));
    let index = std::fs::read(env.workspace().join("index.db")).unwrap();
    assert!(!String::from_utf8_lossy(&index).contains("4711-77"), "nor in the index");
    let brain = env.brain().display().to_string();
    let left = env.run("grep", &["-rl", "--exclude-dir=.git", "4711-77", &brain]);
    assert_eq!(left.stdout, "");
    assert_eq!(env.git(&["log", "-1", "--format=%ae %s"]), "owner@localhost Forget 4 lines of the memory");
    done.assert_tells("Git's history still holds it, in 1 commit")
        .assert_tells("The remote had 1 of them")
        .assert_tells("It may still be in the logs in");
    // Nothing of it wakes anybody, and the next cycle isn't shown it.
    assert_eq!(env.once()["outcome"], "worked", "the push");
    env.receive(CHAT, "what is the code of the gate?");
    claude.expect(Reply::text("I don't know."));
    env.once();
    let request = claude.requests().pop().unwrap();
    assert!(!request.raw.contains("4711-77"), "{}", request.raw);
    assert!(opening(&request, "<recent_exchange>").contains("[forgotten]"));

    // What a person commits is told once.
    let commit = |line: &str, subject: &str| {
        env.write_memory("memory/notes.md", line);
        env.git(&["add", "-A"]);
        env.git(&["commit", "-qm", subject]);
        env.receive(CHAT, "hello");
        claude.expect(Reply::text("Hello."));
        env.once();
        claude.requests().pop().unwrap().raw
    };
    assert!(commit("- the shed is green\n", "Paint the shed").contains("Paint the shed"));
    assert_eq!(env.git_in(&remote, &["rev-parse", "main"]), env.git(&["rev-parse", "main"]));

    let told = env.wake(&["memory", "forget", "4711-77"]).ok();
    told.assert_tells("--purge` removes it there, too");
    env.wake(&["memory", "forget", "4711-77", "--purge", "--yes"]).ok();
    assert_eq!(env.git(&["log", "--all", "-p", "--format=%B"]).matches("4711-77").count(), 0);
    assert_eq!(env.git_in(&remote, &["log", "--all", "-p", "--format=%B"]).matches("4711-77").count(), 0);
    // The next wake knows its place: nothing that was seen is new, what comes now is, and the remote has it.
    assert_eq!(env.once()["outcome"], "idle");
    let opened = commit("- the shed is red\n", "Change the shed");
    assert!(opened.contains("Change the shed") && !opened.contains("Paint the shed"), "{opened}");
    assert_eq!(env.git_in(&remote, &["rev-parse", "main"]), env.git(&["rev-parse", "main"]));
    let again = env.wake(&["memory", "forget", "4711-77"]).ok();
    again.assert_tells(&names_copy);
    std::fs::remove_file(&copy).unwrap();
    env.wake(&["memory", "forget", "4711-77"]).ok().assert_never_tells("the last upgrade");
    again.assert_tells("Git's history doesn't hold these words.");
    env.check_sound();
}

#[test]
fn a_name_goes_with_what_is_forgotten_and_asked_again_it_finishes_what_was_cut_off() {
    let (_telegram, claude, env) = with_claude();
    for (text, is_theirs) in [("the vault is open", false), ("a joke", true)] {
        env.receive(CHAT, text);
        if is_theirs {
            env.forward_queued_from("Zoltan Quist");
        } else {
            env.name_sender_of_queued("Zoltan Quist");
        }
        claude.expect(Reply::text("Fine."));
        env.once();
        // What the model was shown is another matter.
        env.empty_journals();
    }
    env.wake(&["memory", "search", "vault"]).ok();
    let in_index = || {
        let files =
            ["index.db", "index.db-wal"].map(|name| std::fs::read(env.workspace().join(name)).unwrap_or_default());
        files.iter().any(|bytes| String::from_utf8_lossy(bytes).contains("Zoltan"))
    };
    assert!(in_index());
    let kept_files =
        ["index.db", "index.db-wal"].map(|name| (name, std::fs::read(env.workspace().join(name)).unwrap_or_default()));
    let done = env.wake(&["memory", "forget", "--yes", "Zoltan Quist"]).ok();
    assert!(done.stdout.contains("the sender of 2 messages: 1, 2"), "{}", done.stdout);
    assert!(!all_rows(&env).contains("Zoltan") && !in_index());
    let joke = env.received().into_iter().find(|message| message.text == "a joke").unwrap();
    assert_eq!(joke.forwarded_from.as_deref(), Some("[forgotten]"), "its words are still others'");
    // As if it had been cut off before the index was made anew.
    drop(std::fs::remove_file(env.workspace().join("index.db-shm")));
    kept_files.iter().for_each(|(name, bytes)| std::fs::write(env.workspace().join(name), bytes).unwrap());
    assert!(in_index());
    env.wake(&["memory", "forget", "Zoltan Quist"]).ok();
    assert!(!in_index());
}

#[test]
fn what_isnt_finished_comes_first() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0");
    env.receive(CHAT, "the gate's code is 4711-77");
    // Without a memory there is nothing to forget yet.
    assert_eq!(env.wake(&["memory", "forget", "--yes", "4711-77"]).code, 1);
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "The code is 4711-77"})));
    assert_eq!(env.once()["outcome"], "parked");
    let refused = env.wake(&["memory", "forget", "--yes", "4711-77"]);
    assert_eq!(refused.code, 1);
    refused.assert_tells("Unfinished: ").assert_tells("Not answered yet: 1");
    assert!(all_rows(&env).contains("4711-77"));
}

/// Two machines share a remote; the words are purged on one of them.
#[test]
fn purged_words_leave_the_history_the_remote_and_no_machine_brings_them_back() {
    let remote = tempfile::tempdir().unwrap();
    let url = remote.path().join("r.git").display().to_string();
    let (mut one, mut other) = (TestEnv::new(), TestEnv::new());
    one.set("REPO_URL", &url);
    other.set("REPO_URL", &url);
    let git = |args: &[&str]| one.run("git", args).ok().stdout;
    git(&["init", "--quiet", "--bare", "-b", "main", &url]);
    one.wake(&["say", "remember that cats purr"]).ok();
    one.wake(&["say", "remember that the secret is swordfish"]).ok();
    one.wake(&["say", "remember that dogs bark"]).ok();
    one.wake(&["task", "add", "Tea"]).ok();
    other.wake(&["--once"]).ok();
    other.wake(&["say", "remember that fish swim"]).ok();
    one.wake(&["--once"]).ok();
    let holds = |dir: &str| {
        git(&["-C", dir, "log", "--all", "-p", "-i", "--grep", "swordfish", "--format=%H"])
            + &git(&["-C", dir, "log", "--all", "-i", "-G", "swordfish", "--format=%H"])
    };
    let brain = one.brain().display().to_string();
    assert!(!holds(&brain).is_empty() && !holds(&url).is_empty());

    let ran = one.wake(&["memory", "forget", "swordfish", "--yes", "--purge"]).ok();
    ran.assert_tells("Other clones and forks still hold the words")
        .assert_tells("replaced by force")
        .assert_tells("for 7 days");
    assert_eq!(holds(&brain) + &holds(&url), "");
    assert!(one.memory(FACTS).contains("cats purr") && !one.memory(FACTS).contains("swordfish"));
    assert!(one.memory(FACTS).contains("fish swim"), "what the other machine has pushed stays");
    let commits: Vec<String> = one.cycles().into_iter().filter_map(|cycle| cycle.commit_id).collect();
    for id in &commits {
        git(&["-C", &brain, "cat-file", "-e", &format!("{id}^{{commit}}")]);
    }
    assert!(commits.len() >= 3);
    let undone = one.wake(&["undo"]).ok();
    assert!(undone.stdout.contains("I've undone what you did") && undone.stdout.contains("in 1 file"), "{undone:#?}");

    // The other machine has the old line: it merges nothing, pushes nothing, and says why.
    other.at("2026-11-21T16:00:00Z");
    other.wake(&["say", "remember that birds sing"]).ok();
    let ran = other.wake(&["--once"]).ok();
    assert!(!other.outbox_with("Merging would bring them back").is_empty(), "{:#?} {ran:#?}", other.outbox());
    assert_eq!(holds(&url), "");
    one.wake(&["--once"]).ok();
    assert_eq!(holds(&brain), "");
    let kept = std::fs::read_dir(one.workspace().join("purged")).unwrap().count();
    assert_eq!(kept, 1);
    one.check_sound();
}
