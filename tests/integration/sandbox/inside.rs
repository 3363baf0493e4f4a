//! Ordinary work inside the sandbox. A sandbox that breaks work gets switched off.

use std::path::Path;

use reveille_sandbox::{ConfinedHome, Confinement, Sandbox, SandboxError};

use super::world::World;

#[test]
fn ordinary_work_works() {
    let world = World::new();
    for (what, script) in [
        (
            "writes in its scratch and reads it again",
            "echo 1 > a && mkdir d && mv a d/b && ln d/b d/c && [ \"$(cat d/c)\" = 1 ] && rm -r d",
        ),
        ("is at home in its scratch", "[ \"$PWD\" = \"$HOME\" ] && echo x > ~/x && rm x"),
        (
            "writes in a granted root, beside what is hidden",
            "cd \"$B/granted/project\" && echo 1 > new && [ \"$(cat new)\" = 1 ] && rm new && test -e readme",
        ),
        (
            "has a private /tmp",
            "F=$(mktemp) && echo 1 > $F && [ \"$(cat $F)\" = 1 ] && echo 1 > /var/tmp/x && echo 1 > /dev/shm/x",
        ),
        (
            "reads the brain's work tree and received files",
            "grep -q open \"$W/brain/claude.md\" && grep -q open \"$W/files/note\"",
        ),
        ("reads others' files", "grep -q open \"$B/outside/file\" && ls \"$H\" && ls / && grep -q root /etc/passwd"),
        (
            "sets other modes",
            "touch m && chmod 1755 m && chmod 0600 m && install -m 0755 m n && mkdir -m 0700 d && rm -r m n d",
        ),
        (
            "runs pipes, jobs and scripts",
            "printf '#!/bin/sh\\necho ran' > s && chmod +x s && [ \"$(./s | cat)\" = ran ] && (sleep 0.01 & wait) && rm s",
        ),
        (
            "uses git",
            "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log | grep -q x && rm -rf ../r",
        ),
        ("compiles and runs", "printf 'int main(void){return 0;}' > x.c && cc -o x x.c && ./x && rm x x.c"),
        ("can create socket pairs", "\"$P\" http 1; \"$P\" socket 2 1 && \"$P\" socket 10 2 && \"$P\" netlink 0"),
        (
            "sees a handful of devices",
            "echo 1 > /dev/null && head -c 4 /dev/urandom | wc -c | grep -q 4 && : > /dev/full",
        ),
        ("sees its own processes", "sleep 5 & kill -0 $! && test -d /proc/$! && kill $!"),
    ] {
        let ran = world.inside(script);
        assert_eq!(ran.code, 0, "{what}: {ran:?}");
    }
    world.is_untouched();
}

#[test]
fn output_exit_code_and_arguments_are_passed_on_unchanged() {
    let world = World::new();
    let confined = world.sandbox.confine(
        &world.confinement,
        "/bin/sh".as_ref(),
        ["-c", "printf '%s|' \"$0\" \"$@\"; echo no >&2; exit 7", "--", "--rules", "a b", ""],
    );
    let ran = super::world::run(&confined.unwrap().spec);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.notices()), (7, "--|--rules|a b||", "no\n"));
}

#[test]
fn a_programs_arguments_never_reach_the_sandbox() {
    let world = World::new();
    for words in [["--share-net", "x"], ["--bind", "/"], ["--rules", "{}"], ["--", "/bin/true"], ["confined", "--help"]]
    {
        let confined = world.sandbox.confine(&world.confinement, words[0].as_ref(), [words[1]]).unwrap();
        let ran = super::world::run(&confined.spec);
        assert_eq!(ran.code, 126, "{words:?} is a program that isn't there: {ran:?}");
        ran.assert_tells("The program was not run.");
    }
}

#[test]
fn an_empty_home_contains_only_granted_folders() {
    let world = World::new();
    let home = world.base().join("home");
    for file in ["project/readme", "project/.env", "read/file"] {
        std::fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
        std::fs::write(home.join(file), "open to all").unwrap();
    }
    let confinement = Confinement {
        home: ConfinedHome::Empty(home.clone()),
        writable: vec![home.join("project")],
        // Hidden and missing paths aren't shown.
        shown: vec![home.join("read"), home.join(".ssh"), home.join("gone")],
        ..world.confinement.clone()
    };
    for (what, script) in [
        (
            "its path is the person's, and it contains the granted folders",
            "[ \"$HOME\" = \"$0\" ] && [ \"$(ls -A ~)\" = \"$(printf 'project\\nread')\" ]",
        ),
        (
            "it can be written, and so can a granted folder",
            "echo x > ~/new && cat ~/new && echo x > ~/project/new && rm ~/project/new",
        ),
        (
            "a folder granted for reading can be read",
            "grep -q open ~/read/file && grep -q open ~/project/readme && ! echo x > ~/read/new",
        ),
        (
            "hidden files in a granted folder stay hidden",
            "! cat ~/project/.env && ! cat ~/.ssh/id_ed25519 && ! cat ~/.bashrc",
        ),
        ("the program doesn't start in it", "[ \"$PWD\" != \"$HOME\" ] && echo x > here && rm here"),
    ] {
        let args = ["-c", script, home.to_str().unwrap()];
        let confined = world.sandbox.confine(&confinement, "/bin/bash".as_ref(), args).unwrap();
        let ran = super::world::run(&confined.spec);
        assert_eq!(ran.code, 0, "{what}: {ran:?}");
    }
    assert!(!home.join("new").exists());
    // A home as it is can be read but not written.
    let confinement = Confinement { home: ConfinedHome::AsItIs(home.clone()), ..world.confinement.clone() };
    let script = "[ \"$HOME\" = \"$0\" ] && grep -q open ~/.bashrc && ! echo x > ~/new && ! cat ~/.ssh/id_ed25519";
    let args = ["-c", script, home.to_str().unwrap()];
    let confined = world.sandbox.confine(&confinement, "/bin/bash".as_ref(), args).unwrap();
    let ran = super::world::run(&confined.spec);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn a_contradictory_confinement_runs_nothing() {
    let world = World::new();
    let wide = Confinement { writable: vec![world.base().join("home")], ..world.confinement.clone() };
    let refused = world.sandbox.confine(&wide, "/bin/true".as_ref(), [""; 0]);
    assert!(matches!(&refused, Err(SandboxError::Grant(why)) if why.contains("out of reach")), "{refused:?}");
    let none = Sandbox::None { why: "there is none".to_owned() };
    let refused = none.confine(&world.confinement, "/bin/true".as_ref(), [""; 0]);
    assert!(matches!(&refused, Err(SandboxError::Missing(why)) if why == "there is none"), "{refused:?}");
}

#[test]
fn a_launcher_that_cannot_set_its_rules_is_no_sandbox() {
    let world = World::new();
    for launcher in ["/bin/false", "/nonexistent"] {
        let found = Sandbox::detect(Path::new(launcher), &world.confinement.work_dir);
        assert!(
            matches!(&found, Sandbox::None { why } if why.starts_with("programs can't be confined here: ")),
            "{found:?}"
        );
    }
}
