//! A yes to a command that runs a file: what was shown runs, whatever stands in the file by then, or nothing does.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use serde_json::json;

use super::{
    approvals::question,
    exec_shell::{approve, bash},
    support::story::{last, results, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, TestEnv},
        telegram::FakeTelegram,
    },
};

const SHOWN: &str = "echo \"this was shown\" | tr a-z A-Z\n";

/// A world in which everything asks, with a script that another cycle has left in the scratch, and can change.
struct World {
    telegram: FakeTelegram,
    claude: FakeClaude,
    env: TestEnv,
}

impl World {
    fn new() -> Self {
        let (telegram, claude, mut env) = with_claude();
        env.set("AUTONOMY", "0").receive(CHAT, "tidy up");
        let world = Self { telegram, claude, env };
        world.write("tidy.sh", SHOWN);
        world
    }

    fn scratch(&self) -> PathBuf {
        self.env.workspace().join("scratch/another/work")
    }

    /// A command about what is there: `{}` stands for the folder.
    fn command(&self, command: &str) -> String {
        command.replace("{}", &self.scratch().display().to_string())
    }

    /// Grants a folder for writing.
    fn grant(&self) -> PathBuf {
        let folder = self.env.path("work");
        fs::create_dir(&folder).unwrap();
        let policy = self.env.workspace().join("policy.toml");
        fs::write(&policy, format!("[files]\nwrite = [{:?}]\n", folder.display().to_string())).unwrap();
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o600)).unwrap();
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.scratch()).unwrap();
        fs::write(self.scratch().join(name), text).unwrap();
    }

    /// Asks about a command.
    fn ask(&self, command: &str) {
        self.claude.expect(bash("t1", &self.command(command)));
        assert_eq!(self.env.once()["outcome"], "parked");
    }

    /// Asks about one that may write to granted folders.
    fn ask_to_write(&self, command: &str) {
        let call = json!({ "command": command, "writes": true });
        self.claude.expect(Reply::tools(vec![Block::tool("t1", "bash", call)]));
        assert_eq!(self.env.once()["outcome"], "parked");
    }

    /// Says yes, and what the model is told then.
    fn allow(&self) -> (String, bool) {
        approve(&self.env);
        self.claude.expect(Reply::text("Done."));
        self.env.once();
        results(&last(&self.claude)).remove(0)
    }
}

#[test]
fn the_script_that_was_shown_runs_though_another_stands_in_its_place() {
    for command in
        ["sh {}/tidy.sh", "cd {} && bash ./tidy.sh now", "timeout 20 sh {}/tidy.sh", "cat /dev/null; . {}/tidy.sh"]
    {
        let world = World::new();
        world.ask(command);
        let asked = question(&world.telegram);
        assert!(asked.visible.contains(SHOWN.trim_end()), "{}", asked.visible);
        assert!(asked.visible.contains("It runs") && !asked.visible.contains("SHA-256"), "{}", asked.visible);
        assert_eq!(asked.buttons.len(), 2, "no rule is offered: {asked:?}");
        world.write("tidy.sh", "echo another; touch planted\n");
        let (told, is_error) = world.allow();
        assert!(told.contains("THIS WAS SHOWN") && !told.contains("another") && !is_error, "{command}: {told}");
        assert!(!world.scratch().join("planted").exists(), "{command}");
        // The file itself is whoever's it is.
        assert!(fs::read_to_string(world.scratch().join("tidy.sh")).unwrap().contains("another"));
        assert_eq!(fs::read_dir(world.env.workspace().join("snapshots")).unwrap().count(), 0);
        world.env.check_sound();
    }
}

#[test]
fn a_program_of_ones_own_is_run_as_it_was_asked_about() {
    let world = World::new();
    let program = world.scratch().join("tool");
    fs::copy("/bin/echo", &program).unwrap();
    world.ask("{}/tool it is echo");
    assert!(question(&world.telegram).visible.contains("which can't be shown here"));
    // A program isn't kept: it has to be there still, and then nobody exchanges it.
    let (told, is_error) = world.allow();
    assert!(told.contains("it is echo") && !is_error, "{told}");

    let world = World::new();
    let program = world.scratch().join("tool");
    fs::copy("/bin/echo", &program).unwrap();
    world.ask("{}/tool it is echo");
    fs::write(&program, "#!/bin/sh\necho another\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let (told, is_error) = world.allow();
    assert!(is_error && told.contains("has changed since your person was asked"), "{told}");
}

#[test]
fn what_is_loaded_beside_a_script_has_to_be_what_it_was() {
    for planted in ["json.py", "lib.sh", "sub/new"] {
        let world = World::new();
        fs::create_dir_all(world.scratch().join("sub")).unwrap();
        world.ask("cd {} && python3 -c 'import json'; sh tidy.sh");
        world.write(planted, "print('another')\n");
        let (told, is_error) = world.allow();
        assert!(is_error && told.contains("has changed since your person was asked"), "{planted}: {told}");
        assert!(told.contains("Nothing was done"), "{told}");
    }
}

#[test]
fn a_long_script_is_shown_in_the_file_of_its_question() {
    let world = World::new();
    let long: String = (0..200).map(|n| format!("echo line number {n}\n")).collect();
    world.write("tidy.sh", &long);
    world.ask("sh {}/tidy.sh");
    let asked = question(&world.telegram);
    assert!(asked.visible.contains("It also has 1 file that the action names"), "{}", asked.visible);
    let listed = world.env.wake(&["approvals", "list"]).ok().stdout;
    assert!(listed.contains("echo line number 199"), "{listed}");
    world.write("tidy.sh", "echo another\n");
    let (told, _) = world.allow();
    assert!(told.contains("line number 199") && !told.contains("another"), "{told}");
}

#[test]
fn a_file_that_a_command_only_works_on_can_still_be_changed_by_it() {
    let world = World::new();
    let folder = world.grant();
    fs::write(folder.join("notes.txt"), "one\n").unwrap();
    world.ask_to_write(&format!("cd {} && sed -i s/one/two/ notes.txt && mv notes.txt kept.txt", folder.display()));
    let (told, is_error) = world.allow();
    assert!(!is_error, "{told}");
    assert_eq!(fs::read_to_string(folder.join("kept.txt")).unwrap(), "two\n");
}

#[test]
fn a_script_in_a_granted_folder_is_held_to_what_was_shown() {
    let world = World::new();
    let folder = world.grant();
    let script = folder.join("deploy.sh");
    fs::write(&script, format!("echo shown > {}/out\n", folder.display())).unwrap();
    world.ask_to_write(&format!("sh {}", script.display()));
    let asked = question(&world.telegram);
    assert!(asked.visible.contains("echo shown") && asked.buttons.len() == 2, "{asked:?}");
    fs::write(&script, format!("echo another > {}/out\n", folder.display())).unwrap();
    let (told, is_error) = world.allow();
    assert!(!is_error, "{told}");
    assert_eq!(fs::read_to_string(folder.join("out")).unwrap(), "shown\n");
}
