//! Finds existing units, agents and cron lines that start our programs. Unreadable entries are skipped, since a person may have edited
//! them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    Starter,
    crontab::{list_other_lines, list_our_lines},
};

/// An entry that starts one of our programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundStarter {
    /// The kind of entry.
    pub starter: Starter,
    /// `wake`, `bot` or `health`.
    pub name: String,
    /// The program's path.
    pub program: PathBuf,
    /// The search path that the entry sets. `None` if it sets none.
    pub path: Option<String>,
}

/// The entries to look for.
const NAMES: [&str; 3] = ["wake", "bot", "health"];

/// Finds all entries. `crontab` is the person's, if any.
pub fn list_starters(home: &Path, crontab: Option<&str>) -> Vec<FoundStarter> {
    let of_systemd = NAMES.iter().filter_map(|name| {
        let text = fs::read_to_string(home.join(format!(".config/systemd/user/reveille-{name}.service"))).ok()?;
        parse_systemd_unit(name, &text, home)
    });
    let of_launchd = NAMES.iter().filter_map(|name| {
        let text = fs::read_to_string(home.join(format!("Library/LaunchAgents/org.reveille.{name}.plist"))).ok()?;
        parse_launchd_agent(name, &text)
    });
    let crontab = crontab.unwrap_or_default();
    let of_cron = list_our_lines(crontab).chain(list_persons_lines(crontab)).filter_map(parse_cron_line);
    of_systemd.chain(of_launchd).chain(of_cron).collect()
}

fn parse_systemd_unit(name: &str, text: &str, home: &Path) -> Option<FoundStarter> {
    let plain = |text: &str| text.replace("%h", &home.display().to_string()).replace("%%", "%");
    let value = |key: &str| text.lines().find_map(|line| line.trim().strip_prefix(key));
    let command = value("ExecStart=")?;
    let program = match command.strip_prefix('"') {
        Some(rest) => rest.split('"').next()?,
        None => command.split(' ').next()?,
    };
    let path = value("Environment=PATH=").map(plain);
    Some(FoundStarter { starter: Starter::Systemd, name: name.to_owned(), program: plain(program).into(), path })
}

fn parse_launchd_agent(name: &str, text: &str) -> Option<FoundStarter> {
    let after = |key: &str| {
        let rest = text.split_once(key)?.1.split_once("<string>")?.1;
        let value = rest.split_once("</string>")?.0;
        Some(value.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    };
    let program = after("<key>ProgramArguments</key>")?;
    let path = after("<key>PATH</key>");
    Some(FoundStarter { starter: Starter::Launchd, name: name.to_owned(), program: program.into(), path })
}

/// Lists the lines with which a person starts a wake.
fn list_persons_lines(crontab: &str) -> impl Iterator<Item = &str> {
    let starts_wake =
        |line: &&str| !line.trim_start().starts_with('#') && line.contains("/wake") && line.contains(" --once");
    list_other_lines(crontab).filter(starts_wake)
}

/// Parses a line as written by [`super::add_our_lines`]: time, settings, the program and its arguments.
fn parse_cron_line(line: &str) -> Option<FoundStarter> {
    let line = line.replace("\\%", "%");
    let mut path = None;
    for word in split_words(&line) {
        match word.split_once('=') {
            Some(("PATH", value)) => path = Some(value.to_owned()),
            _ if word.starts_with('/') => {
                let program = PathBuf::from(word);
                let name = program.file_name()?.to_str()?.to_owned();
                return NAMES.contains(&name.as_str()).then_some(FoundStarter {
                    starter: Starter::Cron,
                    name,
                    program,
                    path,
                });
            }
            _ => {}
        }
    }
    None
}

/// Splits a line of ours into words. Paths never contain a quotation mark, so each one only opens or closes.
fn split_words(line: &str) -> Vec<String> {
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match (c, words.last_mut()) {
            ('\'', _) => is_quoted = !is_quoted,
            (' ', _) if !is_quoted => words.push(String::new()),
            (c, Some(word)) => word.push(c),
            (_, None) => {}
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::install::{Installation, add_our_lines, launchd_agents, systemd_units};

    /// The written files are read back, with everything that each format escapes.
    #[test]
    fn the_entries_of_an_installation_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let to = Installation {
            home: home.clone(),
            bin: dir.path().join("my programs/100%&/bin"),
            workspace: dir.path().join("a workspace"),
            env_file: None,
            with_bot: true,
        };
        let crontab = add_our_lines("0 4 * * * /usr/bin/backup\n", &to);
        let by_hand = "*/5 * * * * WORKSPACE_DIR='/a b' /opt/wake --once\n# /opt/wake --once\n";
        assert_eq!(list_starters(&home, Some(by_hand)).len(), 1);
        let found = list_starters(&home, Some(&crontab));
        let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["wake", "health", "bot"]);
        assert!(found.iter().all(|found| found.starter == Starter::Cron && found.program == to.bin.join(&found.name)));
        assert!(found.iter().all(|found| found.path.as_ref().unwrap().contains("/usr/bin:")), "{found:?}");

        let agents = launchd_agents(&to).into_iter().map(|agent| (agent.path, agent.text));
        for (path, text) in systemd_units(&to).into_iter().chain(agents) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = list_starters(&home, None);
        assert_eq!(found.len(), 6, "{found:?}");
        for found in &found {
            assert_eq!(found.program, to.bin.join(&found.name), "{found:?}");
            let local = home.join(".local/bin").display().to_string();
            assert!(found.path.as_ref().unwrap().contains(&local), "{found:?}");
        }
        assert!(list_starters(Path::new("/nobody"), None).is_empty());
    }
}
