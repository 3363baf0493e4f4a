//! What starts Reveille on other people's machines: launchd agents, systemd user units, the scripts for cron. Wrong ones
//! fail silently there, so they are read here by the formats' own readers, and run as cron would.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use super::support::env::ProgramOutput;

/// Each unit with its program and arguments.
const UNITS: [(&str, &str, &[&str]); 4] =
    [("bot", "bot", &[]), ("wake", "wake", &["--once"]), ("health", "health", &["check"]), ("page", "wake", &["page"])];

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs one of the readers in a home of its own; `None`, said aloud, on a machine that lacks it.
#[expect(clippy::disallowed_methods, reason = "the checkers are the system's own programs")]
pub(crate) fn run(program: &str, args: &[&str]) -> Option<ProgramOutput> {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args(args).env("HOME", home.path()).env("XDG_RUNTIME_DIR", home.path());
    match command.output() {
        Ok(output) => Some(ProgramOutput::of(&output)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("NOT CHECKED: {program} isn't installed on this machine");
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

/// A property list as JSON, read by Python's `plistlib`.
pub(crate) fn plist(path: &Path) -> Option<Value> {
    if cfg!(target_os = "macos") {
        // The system's own checker, where there is one.
        run("plutil", &["-lint", &path.display().to_string()])?.ok();
    }
    let read = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    Some(run("python3", &["-c", read, path.to_str().unwrap()])?.ok().json())
}

#[test]
fn launchd_agents_start_our_programs_with_a_path_and_a_directory() {
    for (name, program, args) in UNITS {
        let Some(agent) = plist(&project(&format!("launchd/org.reveille.{name}.plist"))) else {
            return;
        };
        assert_eq!(agent["Label"], format!("org.reveille.{name}"));
        let mut command = vec![format!("__HOME__/.local/bin/{program}")];
        command.extend(args.iter().map(|arg| (*arg).to_owned()));
        assert_eq!(agent["ProgramArguments"], json!(command));
        let path = agent["EnvironmentVariables"]["PATH"].as_str().unwrap();
        for dir in ["/opt/homebrew/bin", "/usr/local/bin", "/usr/bin", "/bin"] {
            assert!(path.split(':').any(|part| part == dir), "{name}: {path}");
        }
        assert_eq!(agent["WorkingDirectory"], "__HOME__/.local/share/reveille");
        assert_eq!(agent["EnvironmentVariables"]["WORKSPACE_DIR"], agent["WorkingDirectory"]);
        assert_eq!(agent["RunAtLoad"], true);
        // launchd makes the log's file and not its directory: this one is on every Mac.
        assert_eq!(agent["StandardErrorPath"], format!("__HOME__/.local/share/reveille/logs/{name}.err.log"));
        match name {
            "bot" | "page" => assert_eq!(agent["KeepAlive"], json!({ "SuccessfulExit": false })),
            "wake" => assert_eq!(agent["StartInterval"], 5 * 60),
            _ => assert_eq!(agent["StartInterval"], 15 * 60),
        }
    }
}

/// The values of a key in a unit, in order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn systemd_units_start_our_programs_with_a_path_and_a_directory() {
    for (name, program, args) in UNITS {
        let unit = fs::read_to_string(project(&format!("systemd/reveille-{name}.service"))).unwrap();
        let command = [&[format!("%h/.local/bin/{program}").as_str()], args].concat().join(" ");
        assert_eq!(values(&unit, "ExecStart"), [command]);
        assert_eq!(values(&unit, "WorkingDirectory"), ["%h/.local/share/reveille"]);
        assert!(unit.contains("\nEnvironment=PATH=%h/.cargo/bin:") && unit.contains(":/usr/bin:/bin\n"), "{unit}");
        assert!(unit.contains("\nEnvironment=WORKSPACE_DIR=%h/.local/share/reveille\n"), "{unit}");
        assert_eq!(values(&unit, "NoNewPrivileges"), ["yes"]);
    }
    let read = |name: &str| fs::read_to_string(project(&format!("systemd/{name}"))).unwrap();
    assert_eq!(values(&read("reveille-bot.service"), "RestartPreventExitStatus"), ["2 78"]);
    assert_eq!(values(&read("reveille-wake.service"), "KillMode"), ["mixed"]);
    assert_eq!(values(&read("reveille-wake.timer"), "OnCalendar"), ["*:0/5"]);
    assert_eq!(values(&read("reveille-health.timer"), "OnCalendar"), ["*:2/15"]);
}

/// Copies the units to where systemd reads them, with a program that exists in place of ours, and has them verified.
fn verify(change: impl Fn(&str) -> String) -> Option<ProgramOutput> {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(project("systemd")).unwrap() {
        let path = entry.unwrap().path();
        let mut text = change(&fs::read_to_string(&path).unwrap());
        for (_, name, _) in UNITS {
            text = text.replace(&format!("ExecStart=%h/.local/bin/{name}"), "ExecStart=/bin/true");
        }
        let copy = dir.path().join(path.file_name().unwrap());
        fs::write(&copy, text).unwrap();
        files.push(copy.display().to_string());
    }
    assert_eq!(files.len(), 6);
    let mut args = vec!["--user", "--man=no", "verify"];
    args.extend(files.iter().map(String::as_str));
    run("systemd-analyze", &args)
}

#[test]
fn systemd_accepts_the_units_and_would_say_if_not() {
    let Some(output) = verify(str::to_owned) else { return };
    output.ok().assert_never_tells("reveille-");

    // The same check must be able to fail, or it shows nothing.
    let misspelt = verify(|unit| unit.replace("KillMode=mixed", "KillMode=mxied").replace("*:0/5", "*:0/x")).unwrap();
    misspelt.assert_tells("mxied").assert_tells("reveille-wake.timer");
}

/// What docs/SETTINGS.md adds to a unit for an encrypted secret.
#[test]
fn systemd_accepts_the_credentials_that_the_settings_page_shows() {
    let page = fs::read_to_string(project("docs/SETTINGS.md")).unwrap();
    let (_, shown) = page.split_once("```ini\n[Service]\n").unwrap();
    let (lines, _) = shown.split_once("```").unwrap();
    assert!(lines.contains("_FILE=%d/"), "{lines}");
    let Some(output) = verify(|unit| unit.replace("[Service]\n", &format!("[Service]\n{lines}"))) else { return };
    output.ok().assert_never_tells("reveille-");
    let misspelt = verify(|unit| unit.replace("[Service]\n", "[Service]\nLoadCredentialEncrypted=:\n")).unwrap();
    misspelt.assert_tells("Credential name");
}

/// Runs one of the scripts as cron does, almost without an environment.
#[expect(clippy::disallowed_methods, reason = "cron starts them as programs of their own")]
fn cron(script: &str, home: &Path, args: &[&str]) -> ProgramOutput {
    let mut command = Command::new(project("scripts").join(script));
    command.args(args).env_clear().current_dir(home);
    command.env("HOME", home).env("PATH", "/usr/bin:/bin").env("CARGO_TARGET_DIR", home.join("target"));
    ProgramOutput::of(&command.output().unwrap())
}

#[test]
fn the_scripts_for_cron_run_what_was_built_with_a_path_of_their_own() {
    let home = tempfile::tempdir().unwrap();
    for (script, program, args) in
        [("wake-up.sh", "wake", "--once --json"), ("health-check.sh", "health", "check --json")]
    {
        let missing = cron(script, home.path(), &["--json"]);
        missing.assert_fails(1, &format!("{program} isn't built yet")).assert_tells("scripts/run");

        // Of several builds this clone's own counts first, and of these the newest; an exit code comes through.
        for (dir, code) in
            [(".local/bin", 3_u64), (".cargo/bin", 4), ("target/quick", 5), ("target/release", 6), ("target/quick", 7)]
        {
            let path = home.path().join(dir).join(program);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\necho \"$PWD|$PATH|$*\"\nexit {code}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            let built_at = SystemTime::UNIX_EPOCH + Duration::from_secs(code);
            fs::File::open(&path).unwrap().set_modified(built_at).unwrap();
            let ran = cron(script, home.path(), &["--json"]);
            assert_eq!(Some(ran.code), i32::try_from(code).ok(), "{ran:#?}");
            let said = ran.stdout;
            let [cwd, path, given] = said.trim_end().split('|').collect::<Vec<_>>()[..] else { panic!("{said}") };
            assert_eq!((Path::new(cwd), given), (project("").as_path().components().as_path(), args));
            assert!(path.split(':').any(|dir| dir == "/usr/bin") && path.contains("/opt/homebrew/bin"), "{path}");
        }
    }
}

/// A program that writes down how it was started.
fn stand_in(path: &Path) {
    program(path, "echo \"$0 $*\"");
}

/// A program that does what a line of shell says.
fn program(path: &Path, line: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{line}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A minute is over at once here, the first time; the compiler takes until that was said.
#[test]
fn a_first_run_of_the_checks_says_what_it_does_how_long_and_that_it_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join(".cargo/bin");
    for (name, line) in [
        ("rustc", "echo rustc 1.999.0"),
        ("cargo", "for n in $(seq 600); do [ ! -e \"$HOME/told\" ] || exit 0; /bin/sleep 0.05; done"),
        ("sleep", "[ -e \"$HOME/slept\" ] || exec touch \"$HOME/slept\"; touch \"$HOME/told\"; exit 1"),
        ("cargo-fmt", ""),
        ("cargo-clippy", ""),
    ] {
        program(&bin.join(name), line);
    }
    let ran = cron("test", home.path(), &["lint"]);
    let ran = ran.ok();
    for told in
        ["Nothing is built here yet.", "==> lint (1 of 1): clippy; the first time: ", "minutes", "(lint goes on: "]
    {
        ran.assert_tells(told);
    }

    fs::create_dir_all(home.path().join("target/debug/deps")).unwrap();
    let again = cron("test", home.path(), &["lint"]);
    again.ok().assert_never_tells("first time").assert_never_tells("Nothing is built");
}

#[test]
fn the_script_for_the_bot_keeps_its_log_in_the_workspace() {
    let home = tempfile::tempdir().unwrap();
    stand_in(&home.path().join("target/quick/bot"));
    for _ in 0..2 {
        let ran = cron("bot-up.sh", home.path(), &["--env-file", "x"]);
        assert_eq!(ran.ok().assert_silent().stdout, "");
    }
    let log = home.path().join(".local/share/reveille/logs/bot.err.log");
    let said = fs::read_to_string(&log).unwrap();
    assert_eq!(said.matches("bot --unless-running --env-file x\n").count(), 2, "{said}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&log), mode(log.parent().unwrap())), (0o600, 0o700));
    assert_eq!(mode(&home.path().join(".local/share/reveille")), 0o700);
}

/// On a bare Debian, without sudo: what a build lacks, as `sh` would find it with these programs alone in its path.
#[expect(clippy::disallowed_methods, reason = "a shell's function is tested by a shell")]
fn what_a_build_lacks(programs: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join("bin");
    program(&bin.join("id"), "echo 1000");
    for name in programs {
        program(&bin.join(name), if *name == "sudo" { "exit 1" } else { "echo rustc 1.999.0" });
    }
    for name in ["dirname", "basename", "uname", "sed", "awk"] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(name), bin.join(name)).unwrap();
    }
    let script = ". \"$(dirname \"$0\")/lib.sh\"; ensure_build_tools \"$@\"";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).arg(project("scripts/run")).env_clear().env("HOME", home.path()).env("PATH", &bin);
    let ran = ProgramOutput::of(&command.stdin(std::process::Stdio::null()).output().unwrap());
    ran.notices().to_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_build_lacks_is_named_all_at_once_with_the_command_that_installs_it() {
    let said = what_a_build_lacks(&["apt-get"]);
    let command = "su -c 'apt-get update && apt-get install -y git build-essential curl ca-certificates'";
    assert!(said.contains(command) && said.contains("git (it fetches and pushes the memory), a C compiler"), "{said}");
    let said = what_a_build_lacks(&["apt-get", "sudo", "git", "rustc", "cargo"]);
    assert!(
        said.contains("sudo sh -c 'apt-get update && apt-get install -y build-essential ca-certificates'"),
        "{said}"
    );
    let said = what_a_build_lacks(&["git"]);
    assert!(said.contains("missing: a C compiler") && said.contains("(Debian calls it: build-essential)"), "{said}");
    assert_eq!(what_a_build_lacks(&["apt-get", "git", "cc", "rustc", "cargo"]), "");
}

/// What `scripts/run` ends with: the programs by their names.
#[expect(clippy::disallowed_methods, reason = "a shell's function is tested by a shell")]
fn offer_links(home: &Path) -> ProgramOutput {
    let script = ". \"$(dirname \"$0\")/lib.sh\"; offer_links \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(project("scripts/run")).arg(home.join("target/quick")).env_clear();
    command.env("HOME", home).env("PATH", "/usr/bin:/bin").stdin(std::process::Stdio::null());
    ProgramOutput::of(&command.output().unwrap())
}

#[test]
fn without_a_terminal_the_command_that_links_the_programs_is_named() {
    let home = tempfile::Builder::new().prefix("a home").tempdir().unwrap();
    for name in ["wake", "bot", "health", "reveille-embedder", "reveille-pdf", "reveille-transcriber"] {
        stand_in(&home.path().join("target/quick").join(name));
    }
    let ran = offer_links(home.path());
    let said = ran.notices();
    assert!(!home.path().join(".local/bin").exists(), "{said}");
    assert!(said.contains("isn't on your PATH yet"), "{said}");
    let command =
        said.lines().find(|line| line.trim_start().starts_with("mkdir -p ")).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(run("sh", &["-c", command]).unwrap().code, 0, "{command}");
    for name in ["wake", "bot", "health", "reveille-embedder", "reveille-pdf", "reveille-transcriber"] {
        let link = fs::read_link(home.path().join(".local/bin").join(name)).unwrap();
        assert_eq!(link, home.path().join("target/quick").join(name));
    }
    offer_links(home.path()).assert_silent();

    // Another program of that name stays.
    fs::remove_file(home.path().join(".local/bin/health")).unwrap();
    stand_in(&home.path().join(".local/bin/health"));
    let ran = offer_links(home.path());
    ran.assert_tells("health is another program and stays").assert_never_tells("ln -s");
}

/// `scripts/pictures` draws them. They are small, shown on their page, and tell of no machine but the pictures' own.
#[test]
fn the_pictures_of_the_first_ten_minutes_are_small_and_nobodys() {
    let page = fs::read_to_string(project("docs/FIRST-TEN-MINUTES.md")).unwrap();
    let pictures: Vec<_> = fs::read_dir(project("docs/pictures")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(pictures.len() >= 3, "{pictures:?}");
    for picture in pictures.iter().filter(|path| path.extension().is_some_and(|kind| kind == "svg")) {
        let text = fs::read_to_string(picture).unwrap();
        let name = picture.file_name().unwrap().to_string_lossy();
        assert!(page.contains(&format!("](pictures/{name})")), "{name} isn't shown");
        assert!(text.len() < 40_000 && text.contains("$ wake "), "{name}");
        for path in text
            .split(['<', '>', ' ', '\'', '"', '='])
            .filter(|word| word.starts_with('/') && word.matches('/').count() > 1)
        {
            assert!(path.starts_with("/home/ann/") || path.starts_with("//"), "{path} in {name}");
        }
    }
}

/// Every script that people are told to call is there.
#[test]
fn the_readme_starts_what_is_there() {
    let readme = ["README.md", "docs/RUNNING.md"].map(|name| fs::read_to_string(project(name)).unwrap()).concat();
    let mut scripts: Vec<&str> = readme.split("scripts/").skip(1).collect();
    scripts.iter_mut().for_each(|rest| {
        *rest = rest
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.')
            .next()
            .unwrap()
            .trim_end_matches('.');
    });
    assert!(scripts.contains(&"bot-up.sh") && scripts.contains(&"install"), "{scripts:?}");
    for script in scripts {
        assert!(project("scripts").join(script).exists(), "scripts/{script}");
    }
    assert!(!readme.contains("mkdir -p ~/.local/share"), "a workspace that others can read");
}
