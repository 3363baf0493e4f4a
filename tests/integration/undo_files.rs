//! `wake undo` and a person's own files: what a command could change was copied before it ran, and is given back.

use std::{fs, path::Path};

use super::{
    exec_shell::{approve, asked, contents, granted, questions, writing},
    support::story::{end_well, last, results, start_wake},
    support::{
        claude::{FakeClaude, Reply},
        env::{TestEnv, eventually},
        telegram::FakeTelegram,
    },
};
use rustix::process::Signal;

/// Whatever can be done to files: removed, changed, made, moved, other rights, a link in a folder's place.
fn havoc(work: &Path, elsewhere: &Path) -> String {
    format!(
        "cd {} && rm -rf sub .git && echo changed > a.txt && mkdir -p new/deep && echo x > new/deep/c.txt && mv kept.txt moved.txt \\
         && chmod 700 run.sh && rm away && ln -s elsewhere.txt away && ln -s {} sub",
        work.display(),
        elsewhere.display()
    )
}

fn world() -> (FakeTelegram, FakeClaude, TestEnv, std::path::PathBuf) {
    let (telegram, claude, env) = asked();
    let work = granted(&env, "");
    for (name, text) in [("kept.txt", "kept"), ("run.sh", "#!/bin/sh"), (".env", "A=the person's key")] {
        fs::write(work.join(name), text).unwrap();
    }
    std::os::unix::fs::symlink("a.txt", work.join("away")).unwrap();
    (telegram, claude, env, work)
}

#[test]
fn what_a_command_changes_in_a_granted_folder_is_copied_first_and_undo_gives_it_back() {
    let (telegram, claude, env, work) = world();
    let elsewhere = env.path("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("b.txt"), "another").unwrap();
    let before = (contents(&work), contents(&elsewhere));
    claude.expect(writing("t1", &havoc(&work, &elsewhere)));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(questions(&telegram), 0);
    assert_eq!(fs::read_to_string(work.join("a.txt")).unwrap(), "changed\n");
    assert!(!work.join("kept.txt").exists() && work.join("new/deep/c.txt").exists());
    let copied = contents(&env.workspace().join("copies"));
    assert!(!copied.values().any(|(_, bytes)| bytes == b"A=the person's key"), "what no command reaches isn't copied");

    let ran = env.wake(&["undo"]).ok();
    assert!(ran.stdout.contains("Your files are as they were before: ") && ran.stdout.contains("a.txt"), "{ran:#?}");
    assert_eq!((contents(&work), contents(&elsewhere)), before);
    env.check_sound();
}

#[test]
fn what_was_changed_since_is_left_as_it_is_and_named() {
    let (_telegram, claude, env, work) = world();
    claude.expect(writing("t1", &havoc(&work, Path::new("/nowhere"))));
    claude.expect(Reply::text("Done."));
    env.once();
    fs::write(work.join("a.txt"), "the person's again").unwrap();
    fs::write(work.join("new/mine.txt"), "mine").unwrap();
    fs::write(work.join("later.txt"), "mine").unwrap();
    let ran = env.wake(&["undo"]).ok();
    let left = ran.stdout.lines().find(|line| line.contains("Left as they are")).unwrap();
    assert!(left.contains("work/a.txt") && left.contains("work/new.") | left.contains("work/new,"), "{left}");
    assert!(left.contains("workspace/copies/"), "{left}");
    let text = |name: &str| fs::read_to_string(work.join(name)).unwrap();
    assert_eq!([text("a.txt"), text("new/mine.txt"), text("later.txt")], ["the person's again", "mine", "mine"]);
    assert_eq!([text("sub/b.txt"), text("kept.txt")], ["the person's\n", "kept"]);
    assert!(!work.join("moved.txt").exists() && !work.join("new/deep").exists());
    env.check_sound();
}

#[test]
fn of_a_command_that_a_kill_cut_off_what_is_missing_is_given_back() {
    let (_telegram, claude, env, work) = world();
    claude.expect(writing("t1", &format!("cd {} && rm -r sub && echo changed > a.txt && sleep 600", work.display())));
    let wake = start_wake(&env);
    eventually("the command is at it", || fs::read_to_string(work.join("a.txt")).is_ok_and(|text| text == "changed\n"));
    wake.signal(Signal::KILL);
    drop(wake.end());
    claude.expect(Reply::text("I don't know how far it came."));
    assert_eq!(env.once()["outcome"], "worked");
    let ran = env.wake(&["undo"]).ok();
    assert_eq!(fs::read_to_string(work.join("sub/b.txt")).unwrap(), "the person's\n");
    // Whose the other is nobody knows: it stays, and where it was copied to is told.
    assert_eq!(fs::read_to_string(work.join("a.txt")).unwrap(), "changed\n");
    assert!(ran.stdout.contains("My copies are in") && ran.stdout.contains("a.txt"), "{ran:#?}");
    env.check_sound();
}

#[test]
fn a_command_that_is_stopped_leaves_a_copy_of_which_all_is_given_back() {
    let (_telegram, claude, env, work) = world();
    let before = contents(&work);
    claude.expect(writing("t1", &format!("cd {} && rm -r sub && echo changed > a.txt && sleep 600", work.display())));
    let wake = start_wake(&env);
    eventually("the command is at it", || fs::read_to_string(work.join("a.txt")).is_ok_and(|text| text == "changed\n"));
    env.wake(&["stop"]).ok();
    end_well(wake);
    env.wake(&["resume"]).ok();
    claude.expect(Reply::text("It was stopped."));
    assert_eq!(env.once()["outcome"], "worked");
    env.wake(&["undo"]).ok();
    assert_eq!(contents(&work), before);
    env.check_sound();
}

#[test]
fn at_the_level_that_asks_before_everything_it_asks_and_can_be_undone_all_the_same() {
    let (telegram, claude, mut env, work) = world();
    env.set("AUTONOMY", "0");
    let before = contents(&work);
    claude.expect(writing("t1", &havoc(&work, Path::new("/nowhere"))));
    assert_eq!(env.once()["outcome"], "parked");
    assert_eq!((questions(&telegram), contents(&work)), (1, before.clone()));
    approve(&env);
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_ne!(contents(&work), before);
    env.wake(&["undo"]).ok();
    assert_eq!(contents(&work), before);
    env.check_sound();
}

#[test]
fn what_is_too_much_to_be_copied_asks() {
    let (telegram, claude, env, work) = world();
    // Holes take no room on the disk, and count.
    fs::File::create(work.join("large")).unwrap().set_len(201 << 20).unwrap();
    claude.expect(writing("t1", &format!("touch {}/made", work.display())));
    let outcome = env.once()["outcome"].clone();
    let question = telegram.sent().pop().unwrap().visible;
    // Where the disk can share bytes nothing is too much.
    if outcome == "parked" {
        assert!(question.contains("they hold 201.0 MiB, and I copy 200.0 MiB at most"), "{question}");
        assert!(!work.join("made").exists() && !env.workspace().join("copies/trial").exists());
    } else {
        assert!(work.join("made").exists());
    }
}

#[test]
fn where_the_copy_fails_at_the_last_moment_the_command_does_not_begin() {
    let (telegram, claude, env, work) = world();
    let before = contents(&work);
    // The folders can be copied, and there is no place for the copy.
    fs::write(env.workspace().join("copies"), "in the way").unwrap();
    claude.expect(writing("t1", &havoc(&work, Path::new("/nowhere"))));
    claude.expect(Reply::text("It couldn't be done."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!((contents(&work), questions(&telegram)), (before, 0));
    let (told, is_error) = results(&last(&claude)).remove(0);
    assert!(is_error && told.contains("couldn't be copied first") && told.ends_with("Nothing was done."), "{told}");
}
