//! A cycle that has read untrusted text plants files. A later cycle, which only the owner asked for, runs none of them.

use serde_json::json;

use super::{
    exec_shell::{approve, bash, contents, granted, left, questions, writing},
    support::story::{last, results, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        database::cycles::Step,
        env::{CHAT, TestEnv},
        telegram::FakeTelegram,
    },
};

/// A file that a program runs or obeys unasked if it is in the program's working folder or its home.
struct Plant {
    name: &'static str,
    /// The shell command that creates it in the working folder. `WORK` is the person's granted folder.
    made_by: &'static str,
    /// A command of the owner's that would run it.
    met_by: &'static str,
}

const PLANTS: [Plant; 6] = [
    Plant {
        name: "json.py",
        made_by: r#"echo 'open("WORK/owned", "w")' > json.py"#,
        met_by: "python3 -c 'import json'",
    },
    Plant {
        name: ".gitconfig",
        made_by: r#"printf '[core]\n\tattributesFile = ~/attributes\n[filter "x"]\n\tclean = "touch WORK/owned; cat"\n' > .gitconfig; echo '* filter=x' > attributes"#,
        met_by: "git -C WORK add a.txt",
    },
    Plant {
        name: ".curlrc",
        made_by: r#"echo 'output = "WORK/owned"' > .curlrc"#,
        met_by: "curl -s file:///etc/hostname",
    },
    Plant { name: ".bash_profile", made_by: "echo 'touch WORK/owned' > .bash_profile", met_by: "bash -lc true" },
    Plant {
        name: "usercustomize.py",
        made_by: r#"for v in $(seq 8 20); do d=.local/lib/python3.$v/site-packages; mkdir -p $d; echo 'open("WORK/owned", "w")' > $d/usercustomize.py; done"#,
        met_by: "python3 -c 'print(1)'",
    },
    Plant { name: "Makefile", made_by: r"printf 'test:\n\ttouch WORK/owned\n' > Makefile", met_by: "make test" },
];

impl Plant {
    fn met_in(&self, work: &std::path::Path) -> String {
        self.met_by.replace("WORK", &work.display().to_string())
    }

    /// Returns a script that creates it wherever the cycle can: in its shell's first folder, in its home and in the scratch folder.
    fn made_everywhere(&self, work: &std::path::Path, env: &TestEnv) -> String {
        let made = self.made_by.replace("WORK", &work.display().to_string());
        let scratch = env.workspace().join("scratch");
        format!("for d in . \"$HOME\" {}; do (cd \"$d\" && {{ {made}; }}); done; true", scratch.display())
    }

    /// Checks that it works outside the sandbox.
    fn check_effect(&self, work: &std::path::Path, env: &TestEnv) {
        let folder = env.path("plain");
        std::fs::create_dir_all(&folder).unwrap();
        let made = self.made_by.replace("WORK", &work.display().to_string());
        let script = format!("cd {0}; export HOME={0}; {made}; {1}", folder.display(), self.met_in(work));
        env.run("/bin/bash", &["-c", &script]);
        assert!(work.join("owned").exists(), "{}: outside it is run", self.name);
        std::fs::remove_file(work.join("owned")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// Plays a cycle in which the owner forwards Eve's message, and which runs `script` because of it.
fn run_misled_cycle(claude: &FakeClaude, env: &TestEnv, script: &str) {
    env.receive(CHAT, "what do you make of this?");
    env.forward_queued_from("Eve");
    claude.expect(bash("p1", script));
    claude.expect(Reply::text("It is odd."));
    assert_eq!(env.once()["outcome"], "worked");
}

/// Plays a cycle of the owner's with a command that may write. Returns the command's result.
fn run_owners_cycle(claude: &FakeClaude, env: &TestEnv, command: &str) -> String {
    env.receive(CHAT, "and now my own work");
    claude.expect(writing("o1", command));
    claude.expect(Reply::text("Done."));
    let outcome = env.once()["outcome"].clone();
    assert_eq!(outcome, "worked", "{command}");
    results(&last(claude)).remove(0).0
}

fn world(plant: &Plant, more: &str) -> (FakeTelegram, FakeClaude, TestEnv, std::path::PathBuf) {
    let (telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "1");
    let work = granted(&env, more);
    plant.check_effect(&work, &env);
    (telegram, claude, env, work)
}

#[test]
fn files_of_a_misled_cycle_are_not_run_by_the_owners_next_command() {
    let mut met = Vec::new();
    for plant in &PLANTS {
        let (telegram, claude, env, work) = world(plant, "");
        run_misled_cycle(&claude, &env, &plant.made_everywhere(&work, &env));
        let said = run_owners_cycle(&claude, &env, &plant.met_in(&work));
        met.extend(work.join("owned").exists().then_some((plant.name, said)));
        assert_eq!(questions(&telegram), 0, "{}", plant.name);
        env.check_sound();
    }
    assert!(met.is_empty(), "{met:#?}");
}

#[test]
fn files_of_a_misled_cycle_are_not_run_by_a_permanently_allowed_command() {
    let mut met = Vec::new();
    for plant in &PLANTS {
        let (telegram, claude, mut env, work) = world(plant, "");
        run_misled_cycle(&claude, &env, &plant.made_everywhere(&work, &env));
        // Only the rule lets it run unasked.
        env.set("AUTONOMY", "0");
        let command = plant.met_in(&work);
        add_rule(&env, &permanent_rule(&command));
        let said = run_owners_cycle(&claude, &env, &command);
        met.extend(work.join("owned").exists().then_some((plant.name, said)));
        assert_eq!(questions(&telegram), 0, "{}", plant.name);
        env.check_sound();
    }
    assert!(met.is_empty(), "{met:#?}");
}

/// Returns a rule that permanently allows a command that may write.
fn permanent_rule(command: &str) -> String {
    let command = json!(command);
    format!("[[rule]]\ntool = \"bash\"\narguments = {{ command = {command}, writes = true }}\ndecision = \"allow\"\n")
}

/// Adds a rule to the policy file that [`granted`] has written.
fn add_rule(env: &TestEnv, rule: &str) {
    let policy = env.workspace().join("policy.toml");
    let text = std::fs::read_to_string(&policy).unwrap();
    std::fs::write(&policy, format!("{text}{rule}")).unwrap();
}

const EDITOR: &str = "str_replace_based_edit_tool";

/// Counts the calls that named a file of a misled cycle, by the journal.
fn count_met(env: &TestEnv) -> usize {
    let is_met = |step: &&Step| step.field("taint") == "files made after untrusted text was read";
    env.steps("called").iter().filter(is_met).count()
}

#[test]
fn files_of_a_misled_cycle_are_hidden_until_named_and_then_taint_the_cycle() {
    let (telegram, claude, env) = with_claude();
    let work = granted(&env, "");
    run_misled_cycle(&claude, &env, "echo 'do as Eve says' > plan.txt");
    let plan = left(&env, "plan.txt").remove(0);
    let folder = plan.parent().and_then(std::path::Path::parent).unwrap();
    env.receive(CHAT, "what is there?");
    // Neither the shell nor a search finds it without its full path.
    claude.expect(bash("o1", "ls ../..; cat ../../*/work/plan.txt; true"));
    claude.expect(Reply::text("Nothing."));
    assert_eq!(env.once()["outcome"], "worked");
    let said = results(&last(&claude)).remove(0).0;
    assert!(!said.contains("Eve") && !said.contains(folder.file_name().unwrap().to_str().unwrap()), "{said}");
    env.receive(CHAT, "search for it");
    claude.expect(Reply::tools(vec![Block::tool("o2", "find_files", json!({"text": "Eve"}))]));
    claude.expect(Reply::text("Nothing."));
    assert_eq!(env.once()["outcome"], "worked");
    let said = results(&last(&claude)).remove(0).0;
    assert!(!said.contains("plan.txt:1"), "{said}");
    assert_eq!(count_met(&env), 0);
    // A call that names it reads it. From then on, lasting changes ask first.
    env.receive(CHAT, "read the plan");
    claude.expect(Reply::tools(vec![Block::tool("o3", EDITOR, json!({"command": "view", "path": plan}))]));
    claude.expect(bash("o4", &format!("cat {}", plan.display())));
    claude.expect(Reply::text("I have read it."));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(results(&last(&claude)).remove(0).0.starts_with("do as Eve says"));
    assert_eq!((count_met(&env), questions(&telegram)), (2, 0));
    env.receive(CHAT, "keep the plan with my work");
    claude.expect(writing("o5", &format!("cp {} {}", plan.display(), work.display())));
    assert_eq!(env.once()["outcome"], "parked");
    let question = telegram.sent().pop().unwrap().visible;
    assert!(question.contains("I have read text from files made after untrusted text was read"), "{question}");
    approve(&env);
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(work.join("plan.txt").exists());
    env.check_sound();
}

#[test]
fn files_of_an_earlier_command_in_the_cycle_are_not_run_either() {
    let (_telegram, claude, env) = with_claude();
    let work = granted(&env, "");
    env.receive(CHAT, "tidy up");
    claude.expect(bash("t1", &PLANTS[0].made_by.replace("WORK", &work.display().to_string())));
    claude.expect(writing("t2", PLANTS[0].met_by));
    assert_eq!(env.once()["outcome"], "parked");
    approve(&env);
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(!left(&env, "json.py").is_empty() && !work.join("owned").exists(), "{:?}", results(&last(&claude)));
    env.check_sound();
}

#[test]
fn files_of_a_clean_cycle_are_found_by_the_next_without_a_question() {
    let (telegram, claude, env) = with_claude();
    let work = granted(&env, "");
    env.receive(CHAT, "write the script");
    let script = format!("touch {}\n", work.join("made").display());
    let create = json!({"command": "create", "path": "make.sh", "file_text": script});
    claude.expect(Reply::tools(vec![Block::tool("t1", EDITOR, create)]));
    claude.expect(Reply::text("It is written."));
    assert_eq!(env.once()["outcome"], "worked");
    let script = left(&env, "make.sh").remove(0);
    run_owners_cycle(&claude, &env, &format!("sh {}", script.display()));
    assert!(work.join("made").exists());
    assert_eq!((questions(&telegram), count_met(&env)), (0, 0));
    // Files in the command's own folder aren't lost, and the model is told where the folder is.
    let said = run_owners_cycle(&claude, &env, "echo result > result.txt && ls -A .");
    assert!(said.starts_with("result.txt\n[it began in "), "{said}");
    let place = said.split_once("[it began in ").and_then(|(_, rest)| rest.split_once(';')).unwrap().0;
    assert_eq!(std::fs::read_to_string(std::path::Path::new(place).join("result.txt")).unwrap(), "result\n");
    env.check_sound();
}

#[test]
fn a_reading_command_sees_the_persons_home_and_a_writing_one_only_its_grants() {
    let (_telegram, claude, env) = with_claude();
    let home = env.path("home");
    std::fs::create_dir_all(home.join("work/deep")).unwrap();
    std::fs::write(home.join("notes.txt"), "milk\n").unwrap();
    std::fs::write(home.join(".bash_profile"), "echo profile\n").unwrap();
    let policy = env.workspace().join("policy.toml");
    std::fs::create_dir_all(env.workspace()).unwrap();
    std::fs::write(&policy, "[files]\nwrite = [\"~/work\"]\n").unwrap();
    std::fs::set_permissions(&policy, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let before = contents(&home);
    env.receive(CHAT, "look around");
    claude.expect(bash("t1", "cat ~/notes.txt; cd; pwd; rm -f ~/notes.txt 2>/dev/null; touch ~/x"));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    let said = results(&last(&claude)).remove(0).0;
    assert!(said.starts_with(&format!("milk\n{}\n", home.display())) && said.contains("Read-only"), "{said}");
    assert!(contents(&home) == before);
    let said = run_owners_cycle(
        &claude,
        &env,
        "echo $HOME; ls -A ~; echo true > ~/.profile; ls ~/work; touch ~/work/new; bash -lc true",
    );
    let missed = "~/.profile: out of this command's reach. Nothing there was read, changed or removed";
    assert!(said.starts_with(&format!("{}\nwork\ndeep\n[{missed}", home.display())), "{said}");
    // A command that couldn't remove a file says so, to the model and in the log.
    let said = run_owners_cycle(&claude, &env, "rm -f ~/notes.txt ~/work/gone");
    assert!(said.contains("[~/notes.txt: out of this command's reach."), "{said}");
    assert!(home.join("notes.txt").exists());
    let log = env.memory("memory/agent-memory/episodic-memory.md");
    assert!(log.contains("which couldn't reach ~/notes.txt"), "{log}");
    assert!(home.join("work/new").exists() && !home.join(".profile").exists());
    env.check_sound();
}

#[test]
fn a_permanent_rule_is_void_once_a_misled_cycle_has_written_in_its_commands_folder() {
    let (telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0");
    let work = granted(&env, "");
    std::fs::write(work.join("Makefile"), "test:\n\ttouch made\n").unwrap();
    let command = format!("make -C {} test", work.display());
    add_rule(&env, &format!("\n# Added from Telegram on 2026-11-21 at 14:30:00 +01:00\n{}", permanent_rule(&command)));
    run_owners_cycle(&claude, &env, &command);
    assert!(work.join("made").exists() && questions(&telegram) == 0);
    // Eve's message leads to a change of the Makefile, which the owner approves.
    env.receive(CHAT, "what do you make of this?");
    env.forward_queued_from("Eve");
    let edit = json!({"command": "str_replace", "path": work.join("Makefile"), "old_str": "made", "new_str": "owned"});
    claude.expect(Reply::tools(vec![Block::tool("p1", EDITOR, edit)]));
    assert_eq!(env.once()["outcome"], "parked");
    approve(&env);
    claude.expect(Reply::text("Changed."));
    assert_eq!(env.once()["outcome"], "worked");
    env.receive(CHAT, "run the tests");
    claude.expect(writing("o2", &command));
    assert_eq!(env.once()["outcome"], "parked");
    let question = telegram.sent().pop().unwrap().visible;
    assert!(question.contains("You allowed this for good") && question.contains(&command), "{question}");
    assert!(!work.join("owned").exists());
    approve(&env);
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(work.join("owned").exists());
    env.check_sound();
}
