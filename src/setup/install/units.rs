//! systemd's user units and launchd's agents: the files of `systemd/` and `launchd/` with the person's paths.

use std::path::{Path, PathBuf};

use super::Installation;

/// Placeholders in the files for the programs' directory and the workspace.
const BIN: &str = "/.local/bin/";
const WORKSPACE: &str = "/.local/share/reveille";
/// systemd's specifier for the home directory, and our placeholder in launchd's files, which have no specifier.
const SYSTEMD_HOME: &str = "%h";
const LAUNCHD_HOME: &str = "__HOME__";

macro_rules! texts {
    ($dir:literal: $($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../", $dir, "/", $name)))),+]
    };
}

const UNITS: [(&str, &str); 6] = texts!(
    "systemd":
    "reveille-bot.service",
    "reveille-health.service",
    "reveille-health.timer",
    "reveille-page.service",
    "reveille-wake.service",
    "reveille-wake.timer",
);

const AGENTS: [(&str, &str); 4] = texts!(
    "launchd":
    "org.reveille.bot.plist",
    "org.reveille.health.plist",
    "org.reveille.page.plist",
    "org.reveille.wake.plist",
);

/// Returns systemd's user units with their paths and texts.
pub fn systemd_units(to: &Installation) -> Vec<(PathBuf, String)> {
    let dir = to.home.join(".config/systemd/user");
    UNITS.into_iter().map(|(name, text)| (dir.join(name), fill_systemd_unit(text, to))).collect()
}

/// Puts the person's paths into the text of a unit.
fn fill_systemd_unit(text: &str, to: &Installation) -> String {
    let line = |line: &str| match line.split_once('=') {
        Some(("ExecStart", command)) => {
            let command = command.strip_prefix(SYSTEMD_HOME).and_then(|command| command.strip_prefix(BIN));
            let (program, arguments) = command.map(|command| command.split_once(' ').unwrap_or((command, "")))?;
            let mut words = vec![quote_word(&format_unit_path(&to.bin.join(program), to))];
            words.extend(arguments.split_whitespace().map(str::to_owned));
            if let Some(file) = &to.env_file {
                words.extend(["--env-file".to_owned(), quote_word(&format_unit_path(file, to))]);
            }
            Some(format!("ExecStart={}", words.join(" ")))
        }
        // The rest of the line is the path, including spaces.
        Some(("WorkingDirectory", _)) => Some(format!("WorkingDirectory={}", format_unit_path(&to.workspace, to))),
        Some(("Environment", variable)) if variable.starts_with("WORKSPACE_DIR=") => {
            let variable = format!("WORKSPACE_DIR={}", format_unit_path(&to.workspace, to));
            Some(format!("Environment={}", quote_word(&variable)))
        }
        _ => None,
    };
    text.lines().map(|old| line(old).unwrap_or_else(|| old.to_owned()) + "\n").collect()
}

/// Renders a path for a unit, in which `%` begins a specifier.
fn format_unit_path(path: &Path, to: &Installation) -> String {
    let escaped = |path: &Path| path.display().to_string().replace('%', "%%");
    match path.strip_prefix(&to.home) {
        Ok(below) => format!("{SYSTEMD_HOME}/{}", escaped(below)),
        Err(_) => escaped(path),
    }
}

fn quote_word(word: &str) -> String {
    if word.contains(' ') { format!("\"{word}\"") } else { word.to_owned() }
}

/// An agent of launchd.
pub struct LaunchdAgent {
    /// The last part of its label.
    pub short: &'static str,
    /// The path of its file.
    pub path: PathBuf,
    /// The text of its file.
    pub text: String,
}

/// Lists launchd's agents.
pub fn launchd_agents(to: &Installation) -> Vec<LaunchdAgent> {
    let dir = to.home.join("Library/LaunchAgents");
    let agents = AGENTS.into_iter().filter_map(|(name, text)| {
        let short = name.strip_prefix("org.reveille.")?.strip_suffix(".plist")?;
        Some(LaunchdAgent { short, path: dir.join(name), text: fill_launchd_agent(text, to) })
    });
    agents.collect()
}

/// Puts the person's paths into the text of an agent.
fn fill_launchd_agent(text: &str, to: &Installation) -> String {
    // The text before the list is a comment for people, without paths.
    let (head, list) = text.split_once("<plist").unwrap_or(("", text));
    let mut list = list
        .replace(&format!("{LAUNCHD_HOME}{BIN}"), &format!("{}/", escape_xml(&to.bin)))
        .replace(&format!("{LAUNCHD_HOME}{WORKSPACE}"), &escape_xml(&to.workspace))
        .replace(LAUNCHD_HOME, &escape_xml(&to.home));
    if let Some(file) = &to.env_file {
        let words = format!("\t<string>--env-file</string>\n\t\t<string>{}</string>\n\t</array>", escape_xml(file));
        list = list.replacen("</array>", &words, 1);
    }
    format!("{head}<plist{list}")
}

fn escape_xml(path: &Path) -> String {
    path.display().to_string().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
