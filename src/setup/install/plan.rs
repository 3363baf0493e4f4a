//! Plans the steps of an installation and of its removal.

use std::{
    collections::BTreeSet,
    fmt, fs,
    path::{Path, PathBuf},
};

use super::{FORMER_PROGRAMS, Installation, LaunchdAgent, PROGRAMS, Versions, crontab, units, versions::EARLIER};

/// The system service that starts programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Starter {
    /// systemd's user manager.
    Systemd,
    /// macOS's launchd.
    Launchd,
    /// cron, for systems without a session manager.
    Cron,
}

/// A change to the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallStep {
    /// Creates a private directory with its parents.
    Directory(PathBuf),
    /// Copies a program.
    Program {
        /// The built program.
        from: PathBuf,
        /// The installed program.
        to: PathBuf,
    },
    /// Points a link to a target in one step, replacing anything at its path.
    Link {
        /// The link.
        path: PathBuf,
        /// The target.
        to: PathBuf,
    },
    /// Copies a snapshot of the database for its owner alone, replacing an earlier copy.
    SaveDatabase {
        /// The database.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
    },
    /// Writes a readable file; a different old text is kept as `NAME.old`.
    Write {
        /// The path.
        path: PathBuf,
        /// The text.
        text: String,
    },
    /// Replaces the person's crontab.
    Crontab {
        /// The complete text.
        text: String,
        /// Added and removed lines, for display.
        changed: Vec<String>,
    },
    /// Removes a file and its `.old`.
    Remove(PathBuf),
    /// Removes one of our directories with its content.
    RemoveFolder(PathBuf),
    /// Runs a system command.
    Run {
        /// The program and its arguments.
        words: Vec<String>,
        /// Continue after a failure.
        may_fail: bool,
    },
}

impl fmt::Display for InstallStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "make     {}", path.display()),
            Self::Program { from, to } => write!(f, "copy     {} to {}", from.display(), to.display()),
            Self::Link { path, to } => write!(f, "link     {} to {}", path.display(), to.display()),
            Self::SaveDatabase { from, to } => write!(f, "save     {} as {}", from.display(), to.display()),
            Self::Write { path, .. } => write!(f, "write    {}", path.display()),
            Self::Crontab { changed, .. } => write!(f, "crontab  {}", changed.join("\n         ")),
            Self::Remove(path) | Self::RemoveFolder(path) => write!(f, "remove   {}", path.display()),
            Self::Run { words, .. } => write!(f, "run      {}", words.join(" ")),
        }
    }
}

/// Lists the programs that an installation put into `bin`.
pub fn installed_programs(to: &Installation) -> BTreeSet<String> {
    let list = fs::read_to_string(to.program_list()).unwrap_or_default();
    list.lines().filter(|name| PROGRAMS.contains(name) || FORMER_PROGRAMS.contains(name)).map(str::to_owned).collect()
}

/// True if `bin` contains our programs as files rather than links, from an old installation or another way of installing.
fn has_own_programs(to: &Installation) -> bool {
    let ours = installed_programs(to);
    let is_own = |name: &str| fs::symlink_metadata(to.bin.join(name)).is_ok_and(|found| found.is_file());
    PROGRAMS.iter().all(|name| ours.contains(*name) && is_own(name))
}

/// Finds the build to which the links in `bin` lead. `None` if the programs there are files, whatever the current link.
pub fn find_linked_build(to: &Installation) -> Option<String> {
    Versions::for_installation(to).current_build().filter(|_| !has_own_programs(to))
}

/// Plans the installation of the programs in `from`, started by `starter`.
///
/// # Errors
/// A program of the same name is in the way, or a program of ours is missing.
pub fn install_steps(
    to: &Installation,
    from: &Path,
    starter: Starter,
    crontab: &str,
    user_id: u32,
) -> Result<Vec<InstallStep>, String> {
    let mut steps = Vec::new();
    if !is_same(from, &to.bin) {
        plan_programs(to, from, &mut steps)?;
    }
    steps.push(InstallStep::Directory(to.logs()));
    match starter {
        Starter::Systemd => plan_systemd(to, &mut steps),
        Starter::Launchd => plan_launchd(to, user_id, &mut steps),
        Starter::Cron => {
            let text = crontab::add_our_lines(crontab, to);
            if text != crontab {
                let changed = list_changed_lines("add: ", &text, crontab)
                    .chain(list_changed_lines("remove: ", crontab, &text))
                    .collect();
                steps.push(InstallStep::Crontab { text, changed });
            }
        }
    }
    Ok(steps)
}

/// Plans the installation of a build beside the present one, and the switch to it.
fn plan_programs(to: &Installation, from: &Path, steps: &mut Vec<InstallStep>) -> Result<(), String> {
    let (ours, versions) = (installed_programs(to), Versions::for_installation(to));
    for name in PROGRAMS {
        let (built, placed) = (from.join(name), to.bin.join(name));
        if !built.is_file() {
            return Err(format!("{} is missing; `scripts/install` builds all programs", built.display()));
        }
        if fs::symlink_metadata(&placed).is_ok() && !ours.contains(name) && !is_link_to_ours(&placed) {
            return Err(format!("{} is a different program; choose another --prefix", placed.display()));
        }
    }
    let new = versions.compute_name(from).map_err(|error| format!("{}: {error}", from.display()))?;
    let link = |path: PathBuf, to: PathBuf| InstallStep::Link { path, to };
    let copy = |from: &Path, to: &Path, name: &str| InstallStep::Program { from: from.join(name), to: to.join(name) };
    let mut present = find_linked_build(to);
    if present.is_none() && has_own_programs(to) {
        let earlier = versions.build_dir(EARLIER);
        steps.extend(ours.iter().map(|name| copy(&to.bin, &earlier, name)));
        steps.push(InstallStep::Write { path: versions.mark(EARLIER), text: String::new() });
        steps.push(link(versions.current_link(), earlier));
        present = Some(EARLIER.to_owned());
    }
    let folder = versions.build_dir(&new);
    if from != folder {
        steps.extend(PROGRAMS.map(|name| copy(from, &folder, name)));
    }
    if let Some(present) = present.filter(|present| *present != new) {
        // fault: upgrade-doesnt-copy-database
        if to.database().exists() {
            steps.push(InstallStep::SaveDatabase { from: to.database(), to: to.database_copy() });
        }
        if present == EARLIER || versions.has_reported_in(&present) {
            steps.push(link(versions.previous_link(), versions.build_dir(&present)));
        }
    }
    steps.push(link(versions.current_link(), folder));
    let called = versions.current_link();
    steps.extend(PROGRAMS.map(|name| link(to.bin.join(name), called.join(name))));
    let former = FORMER_PROGRAMS.iter().filter(|name| ours.contains(**name));
    steps.extend(former.map(|name| InstallStep::Remove(to.bin.join(name))));
    steps.push(InstallStep::Write { path: to.program_list(), text: PROGRAMS.map(|name| format!("{name}\n")).concat() });
    Ok(())
}

fn plan_systemd(to: &Installation, steps: &mut Vec<InstallStep>) {
    let write = |(path, text)| InstallStep::Write { path, text };
    steps.extend(units::systemd_units(to).into_iter().map(write));
    let systemctl = |words: &[&str]| run(&[&["systemctl", "--user"], words].concat());
    steps.push(systemctl(&["daemon-reload"]));
    steps.push(systemctl(&["enable", "--now", "reveille-wake.timer", "reveille-health.timer"]));
    steps.push(try_to_run(&["systemctl", "--user", "try-restart", "reveille-page.service"]));
    if to.with_bot {
        steps.push(systemctl(&["enable", "reveille-bot.service"]));
        steps.push(systemctl(&["restart", "reveille-bot.service"]));
    }
}

fn plan_launchd(to: &Installation, user_id: u32, steps: &mut Vec<InstallStep>) {
    for LaunchdAgent { short, path, text } in units::launchd_agents(to) {
        let is_wanted = match short {
            "bot" => to.with_bot,
            "page" => path.exists(),
            _ => true,
        };
        if is_wanted {
            let loaded = path.display().to_string();
            steps.push(InstallStep::Write { path, text });
            steps.push(try_to_run(&["launchctl", "bootout", &format!("gui/{user_id}/org.reveille.{short}")]));
            steps.push(run(&["launchctl", "bootstrap", &format!("gui/{user_id}"), &loaded]));
        }
    }
}

/// Returns the step that restarts the bot. `None` for cron.
pub fn restart_step(starter: Starter, user_id: u32) -> Option<InstallStep> {
    match starter {
        Starter::Systemd => Some(run(&["systemctl", "--user", "restart", "reveille-bot.service"])),
        Starter::Launchd => Some(run(&["launchctl", "kickstart", "-k", &format!("gui/{user_id}/org.reveille.bot")])),
        Starter::Cron => None,
    }
}

/// Builds a step that runs a command and needs its success.
fn run(words: &[&str]) -> InstallStep {
    InstallStep::Run { words: words.iter().map(|word| (*word).to_owned()).collect(), may_fail: false }
}

/// Builds a step that runs a command which may fail.
fn try_to_run(words: &[&str]) -> InstallStep {
    InstallStep::Run { words: words.iter().map(|word| (*word).to_owned()).collect(), may_fail: true }
}

/// Plans the removal of everything installed, however it is started: units, agents, lines and programs. The workspace stays.
pub fn uninstall_steps(to: &Installation, crontab: Option<&str>, user_id: u32) -> Vec<InstallStep> {
    let mut steps = Vec::new();
    let units: Vec<PathBuf> =
        units::systemd_units(to).into_iter().map(|(path, _)| path).filter(|path| path.exists()).collect();
    if !units.is_empty() {
        let started = ["reveille-wake.timer", "reveille-health.timer", "reveille-bot.service", "reveille-page.service"];
        steps.push(try_to_run(&[&["systemctl", "--user", "disable", "--now"], &started[..]].concat()));
        steps.extend(units.into_iter().map(InstallStep::Remove));
        steps.push(try_to_run(&["systemctl", "--user", "daemon-reload"]));
    }
    for LaunchdAgent { short, path, .. } in units::launchd_agents(to) {
        if path.exists() {
            steps.push(try_to_run(&["launchctl", "bootout", &format!("gui/{user_id}/org.reveille.{short}")]));
            steps.push(InstallStep::Remove(path));
        }
    }
    if let Some(crontab) = crontab {
        let text = crontab::remove_our_lines(crontab);
        if text != crontab {
            let changed = list_changed_lines("remove: ", crontab, &text).collect();
            steps.push(InstallStep::Crontab { text, changed });
        }
    }
    let programs = installed_programs(to);
    if !programs.is_empty() {
        steps.extend(programs.iter().map(|name| InstallStep::Remove(to.bin.join(name))));
        let versions = Versions::for_installation(to);
        if versions.versions_dir().is_dir() {
            steps.extend([versions.current_link(), versions.previous_link()].map(InstallStep::Remove));
            steps.push(InstallStep::RemoveFolder(versions.versions_dir()));
        }
        steps.push(InstallStep::Remove(to.program_list()));
    }
    steps
}

/// Lists the lines of `text` that `other` lacks, each after a label.
fn list_changed_lines(label: &str, text: &str, other: &str) -> impl Iterator<Item = String> {
    let other_lines: BTreeSet<&str> = other.lines().collect();
    let lines: Vec<String> =
        text.lines().filter(|line| !other_lines.contains(line)).map(|line| format!("{label}{line}")).collect();
    lines.into_iter()
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// True for a link to one of our builds, made by `scripts/run`, recognized by a program of ours beside the target.
fn is_link_to_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
        && path.canonicalize().is_ok_and(|leads_to| leads_to.with_file_name("reveille-pdf").is_file())
}
