//! `timers` and `path`: checks that something starts wakes and is running, that its programs exist, and that those find
//! git and the model's command. cron, systemd and launchd don't have the environment of a person's terminal, so failures
//! there are silent.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use reveille_base::{
    process::{self, Spec},
    words::quote_for_shell,
};
use reveille_config::{CLAUDE_CODE, Config};
use reveille_store::wake_lock::waker::{Starting, Waker};

use crate::{
    health::{
        finding::{Finding, Trouble},
        remedy::Remedy,
        scene::Scene,
        words::{format_list, format_relative_time},
    },
    setup::install::{FoundStarter, Starter, list_starters},
};

/// Time limit for a system program's answer.
const ANSWER_LIMIT: std::time::Duration = std::time::Duration::from_secs(3);
const GIT: &str = "git";

/// The starters on this machine.
struct Facts {
    found: Vec<FoundStarter>,
    /// Missing programs that a starter names.
    missing: Vec<PathBuf>,
    /// Starters that aren't running, with the command to start them.
    idle: Vec<(&'static str, String)>,
    /// The time of the last wake that a timer started.
    looked_at: Option<DateTime<Utc>>,
    /// `true` if that was recently.
    is_recent: bool,
    /// Programs that start wakes while they run.
    running: Vec<Starting>,
}

pub(super) fn check_timers(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    if scene.store()?.is_none() {
        return Ok(Finding::nothing_yet());
    }
    let waker = Waker::load(scene.config, scene.now);
    let is_recent = waker.has_active_timer();
    let found = find_starters(scene.config);
    let missing: Vec<PathBuf> = found.iter().map(|found| found.program.clone()).filter(|it| !it.exists()).collect();
    let idle = list_idle(&found, scene.config.telegram_token.is_some());
    let Waker { looked_at, running, .. } = waker;
    Ok(judge_facts(&Facts { found, missing, idle, looked_at, is_recent, running }, scene.now))
}

fn find_starters(config: &Config) -> Vec<FoundStarter> {
    let Some(home) = &config.home else { return Vec::new() };
    let crontab =
        process::find_program(Path::new("crontab")).and_then(|_| read_output(&["crontab", "-l"])).unwrap_or_default();
    // A line may belong to another workspace.
    let ours = format!("WORKSPACE_DIR={}", quote_for_shell(&config.workspace_dir));
    let is_ours = |line: &&str| !line.contains("WORKSPACE_DIR=") || line.contains(&ours);
    list_starters(home, Some(&crontab.lines().filter(is_ours).collect::<Vec<_>>().join("\n")))
}

/// Returns the output of a system program. `None` if it can't be asked.
fn read_output(words: &[&str]) -> Option<String> {
    let (program, args) = words.split_first()?;
    let output = process::run(&Spec::new(*program).args(args).timeout(ANSWER_LIMIT)).ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn list_idle(found: &[FoundStarter], has_token: bool) -> Vec<(&'static str, String)> {
    let has = |starter: Starter, name: &str| found.iter().any(|it| it.starter == starter && it.name == name);
    let mut idle = Vec::new();
    let units = [("wake", "reveille-wake.timer"), ("health", "reveille-health.timer"), ("bot", "reveille-bot.service")];
    for (_, unit) in units.into_iter().filter(|(name, _)| has(Starter::Systemd, name) && (*name != "bot" || has_token))
    {
        // Without a session to ask, the state is unknown.
        let state = read_output(&["systemctl", "--user", "is-active", unit]).unwrap_or_default();
        if matches!(state.trim(), "inactive" | "failed" | "deactivating") {
            idle.push((unit, format!("systemctl --user enable --now {unit}")));
        }
    }
    let user = rustix::process::getuid().as_raw();
    if has(Starter::Launchd, "wake") && cfg!(target_os = "macos") {
        let label = format!("gui/{user}/org.reveille.wake");
        let asked = process::run(&Spec::new("launchctl").args(["print", &label]).timeout(ANSWER_LIMIT));
        if asked.is_ok_and(|output| !output.status.success()) {
            let plist = "~/Library/LaunchAgents/org.reveille.wake.plist";
            idle.push(("org.reveille.wake", format!("launchctl bootstrap gui/{user} {plist}")));
        }
    }
    if has(Starter::Cron, "wake") && !["cron", "crond"].iter().any(|name| process::is_running(name)) {
        idle.push(("cron", "start cron (Debian: service cron start)".to_owned()));
    }
    idle
}

fn judge_facts(facts: &Facts, now: DateTime<Utc>) -> Finding {
    let last = facts
        .looked_at
        .map_or_else(|| "never so far".to_owned(), |at| format!("last {}", format_relative_time(at, now)));
    let install = |finding: Finding| finding.with_remedy(Remedy::WakeByItself);
    if !facts.missing.is_empty() {
        let missing = format_list(facts.missing.iter().map(|path| path.display().to_string()));
        return install(Finding::warn(format!("installed, but these programs are missing: {missing}"), "wake install"));
    }
    if !facts.idle.is_empty() {
        let idle = format_list(facts.idle.iter().map(|(what, _)| *what));
        let commands: Vec<&str> = facts.idle.iter().map(|(_, command)| command.as_str()).collect();
        return install(Finding::warn(format!("installed, but not running: {idle}"), commands.join("; ")));
    }
    let wakes = facts.found.iter().find(|found| found.name == "wake").map(|found| found.starter);
    let running = format_list(facts.running.iter().map(|program| program.name()));
    let is_lasting = facts.running.iter().any(|program| program.is_lasting());
    match (wakes, facts.is_recent) {
        (starter, true) => {
            let timer = starter.map_or("a timer", name_starter);
            let also = if running.is_empty() { running } else { format!(", {running}") };
            Finding::ok(format!("the next wake is started by {timer} ({last}){also}"))
        }
        _ if facts.running.contains(&Starting::Stay) => Finding::ok(format!("the next wake is started by {running}")),
        (Some(starter), false) => {
            let see = match starter {
                Starter::Systemd => {
                    "systemctl --user status reveille-wake.service; if it stops while you are logged out: loginctl \
                     enable-linger"
                }
                Starter::Launchd => "see *.err.log in the workspace's logs",
                Starter::Cron => "see what cron mailed you, and its log",
            };
            let see = format!("`wake logs --program wake` shows the last wakes; {see}");
            let now = if running.is_empty() { running } else { format!("; for now {running} does") };
            let name = name_starter(starter);
            Finding::warn(format!("{name} should start a wake every five minutes but doesn't: {last}{now}"), see)
        }
        (None, false) if !running.is_empty() => {
            let until = if is_lasting { "" } else { ", while open" };
            install(Finding::warn(format!("only {running} starts wakes{until}; by a timer: {last}"), "wake install"))
        }
        (None, false) => install(Finding::warn(format!("nothing starts wakes automatically: {last}"), "wake install")),
    }
}

fn name_starter(starter: Starter) -> &'static str {
    match starter {
        Starter::Systemd => "systemd",
        Starter::Launchd => "launchd",
        Starter::Cron => "cron",
    }
}

pub(super) fn check_path(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let config = scene.effective_config();
    let mut wanted: Vec<&Path> = vec![Path::new(GIT)];
    if config.list_usable_models().contains(&CLAUDE_CODE) {
        wanted.push(&config.claude_code);
    }
    let lacking_here: Vec<&Path> =
        wanted.iter().copied().filter(|program| process::find_program(program).is_none()).collect();
    let found = if scene.is_brief { Vec::new() } else { find_starters(scene.config) };
    let places = found.iter().filter(|found| found.name != "health").filter_map(|found| {
        let dirs = found.path.as_deref()?;
        let is_there = |program: &Path| std::env::split_paths(dirs).any(|dir| dir.join(program).is_file());
        Some((found, wanted.iter().copied().filter(|program| !is_there(program)).collect::<Vec<_>>()))
    });
    Ok(judge_path(&lacking_here, &places.collect::<Vec<_>>()))
}

/// `there` lists the programs that each starter's programs would not find.
fn judge_path(here: &[&Path], there: &[(&FoundStarter, Vec<&Path>)]) -> Finding {
    let names = |programs: &[&Path]| format_list(programs.iter().map(|program| program.display().to_string()));
    if here.contains(&Path::new(GIT)) {
        return Finding::critical(
            "git is missing, so I can't save the memory",
            "install git (Debian: apt-get install git)",
        );
    }
    let lacking = there.iter().filter(|(_, lacking)| !lacking.is_empty()).map(|(found, lacking)| {
        let starter = name_starter(found.starter);
        Finding::warn(
            format!("{}, when started by {starter}, can't find {}", found.name, names(lacking)),
            "link it into ~/.local/bin (ln -s \"$(command -v NAME)\" ~/.local/bin/), or for Claude Code set CLAUDE_CODE to its path",
        )
    });
    let well =
        if there.is_empty() { "git is found" } else { "git is found, and automatic starts find their programs too" };
    Finding::merge_all(lacking.collect(), Finding::ok(well))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::clock::parse_time;

    fn of(starter: Starter) -> FoundStarter {
        FoundStarter { starter, name: "wake".to_owned(), program: "/b/wake".into(), path: Some("/usr/bin".to_owned()) }
    }

    #[test]
    fn each_reason_for_missing_wakes_comes_with_its_command() {
        let now = parse_time("2026-11-21T12:00:00Z").unwrap();
        let judged = |change: &dyn Fn(&mut Facts)| {
            let mut facts = Facts {
                found: vec![of(Starter::Systemd)],
                missing: Vec::new(),
                idle: Vec::new(),
                looked_at: parse_time("2026-11-21T09:00:00Z"),
                is_recent: false,
                running: Vec::new(),
            };
            change(&mut facts);
            judge_facts(&facts, now)
        };
        let missed = judged(&|_| {});
        assert_eq!(missed.detail, "systemd should start a wake every five minutes but doesn't: last 3 h ago");
        assert!(missed.fix.unwrap().contains("enable-linger") && missed.remedies.is_empty());
        let recent = judged(&|facts| (facts.is_recent, facts.running) = (true, vec![Starting::Bot, Starting::Page]));
        let named = "the next wake is started by systemd (last 3 h ago), the bot, the page";
        assert_eq!((recent.status, recent.detail.as_str()), (Status::Ok, named));

        let nothing = judged(&|facts| facts.found.clear());
        assert_eq!((nothing.status, nothing.remedies), (Status::Warn, vec![Remedy::WakeByItself]));
        let bot = judged(&|facts| {
            facts.found.clear();
            facts.running = vec![Starting::Bot];
        });
        assert_eq!(bot.detail, "only the bot starts wakes; by a timer: last 3 h ago");
        let page = judged(&|facts| (facts.found, facts.running) = (Vec::new(), vec![Starting::Page]));
        assert_eq!(
            (page.status, page.detail.as_str()),
            (Status::Warn, "only the page starts wakes, while open; by a timer: last 3 h ago")
        );
        let idle = judged(&|facts| {
            facts.is_recent = true;
            facts.idle = vec![("cron", "service cron start".to_owned())];
        });
        assert!(idle.detail.ends_with("not running: cron") && idle.fix.unwrap() == "service cron start");
        let gone = judged(&|facts| facts.missing = vec!["/b/wake".into()]);
        assert!(gone.detail.ends_with("are missing: /b/wake"), "{gone:?}");
    }

    #[test]
    fn programs_that_a_timer_cannot_find_are_named_and_git_is_always_required() {
        let (git, claude) = (Path::new("git"), Path::new("claude"));
        assert_eq!(judge_path(&[git], &[]).status, Status::Critical);
        assert_eq!(judge_path(&[], &[]).status, Status::Ok);
        let cron = of(Starter::Cron);
        assert_eq!(judge_path(&[], &[(&cron, vec![])]).status, Status::Ok);
        let finding = judge_path(&[], &[(&cron, vec![claude])]);
        assert_eq!(finding.detail, "wake, when started by cron, can't find claude");
        assert!(finding.fix.unwrap().contains("CLAUDE_CODE"));
    }
}
