//! The first stage: collects the value and the source of each setting. Only settings needed to find others are interpreted: the
//! workspace (for its `.env`) and a secret's own file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

use reveille_base::{
    redact::{self, Secret},
    words,
};

use super::{
    env_file::{self, EnvLine},
    error::SettingProblem,
    files::read_private,
    given::SettingChanges,
    table::{VARIABLES, list_secrets},
    types::{self, RepoUrl},
    values,
};

/// The variables with proxy addresses, for us and our child programs.
const PROXIES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// The variables that lead to a desktop session. macOS sets none of them, since it always has a session.
const DESKTOPS: [&str; 3] = ["DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"];

/// The source of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The environment of the process.
    Environment,
    /// A file: `.env`, or one named by a `…_FILE` variable.
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("from the environment"),
            Self::File(path) => write!(f, "from {}", path.display()),
        }
    }
}

/// A setting as given. Not `Debug`, because it may be a secret.
pub(super) struct RawSetting {
    pub(super) value: String,
    pub(super) source: Source,
}

/// The given settings before parsing.
#[derive(Default)]
pub(super) struct Raw {
    given: BTreeMap<&'static str, RawSetting>,
    empty: BTreeSet<&'static str>,
    /// Settings with a pending change, whose values in the file are ignored.
    changed: BTreeSet<&'static str>,
    pub(super) home: Option<PathBuf>,
    data_home: Option<PathBuf>,
    pub(super) no_color: bool,
    /// The raw value of `RUST_LOG`.
    pub(super) rust_log: Option<String>,
    /// True if a desktop session can be reached.
    pub(super) has_desktop: bool,
    /// Passwords in proxy addresses, to be masked.
    pub(super) proxy_secrets: Vec<Secret>,
    /// The files that hold one secret each, named by `…_FILE` settings.
    pub(super) key_files: Vec<PathBuf>,
    /// `None` only together with a problem that explains it.
    pub(super) workspace_dir: Option<PathBuf>,
    pub(super) env_file: Option<PathBuf>,
    pub(super) notes: Vec<String>,
    pub(super) problems: Vec<SettingProblem>,
}

impl Raw {
    pub(super) fn gather(env: &BTreeMap<String, String>, env_file: Option<&Path>) -> Self {
        Self::gather_with_changes(env, env_file, &SettingChanges::new())
    }

    /// Gathers the settings as if these changes were already in the file.
    pub(super) fn gather_with_changes(
        env: &BTreeMap<String, String>,
        env_file: Option<&Path>,
        changes: &SettingChanges,
    ) -> Self {
        let dir = |name: &str| env.get(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
        let no_color = env.get("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env.get("TERM").is_some_and(|term| term == "dumb");
        let has_desktop = DESKTOPS.iter().any(|name| env.get(*name).is_some_and(|value| !value.is_empty()));
        let proxies = PROXIES.iter().filter_map(|name| env.get(*name));
        let mut raw = Self {
            home: dir("HOME"),
            data_home: dir("XDG_DATA_HOME"),
            no_color,
            rust_log: env.get("RUST_LOG").filter(|value| !value.trim().is_empty()).cloned(),
            has_desktop,
            proxy_secrets: proxies.flat_map(|url| RepoUrl::new(url).secrets()).collect(),
            ..Self::default()
        };
        for name in VARIABLES {
            if let Some(value) = env.get(name) {
                raw.record_value(name, value, Source::Environment);
            }
        }
        // The workspace can't change here, since it determines which file these changes belong to.
        for (&name, value) in changes.iter().filter(|(name, _)| **name != "WORKSPACE_DIR") {
            raw.changed.insert(name);
            if let Some(value) = value {
                raw.record_value(name, value, Source::File(PathBuf::from(".env")));
            }
        }
        raw.read_env_file(env_file);
        for (name, file_name) in list_secrets() {
            raw.read_secret_file(name, file_name);
        }
        raw
    }

    /// Creates an empty set of settings in some workspace, to check a single value.
    pub(super) fn new_empty(home: Option<&Path>) -> Self {
        Self { home: home.map(Path::to_owned), workspace_dir: Some("/".into()), ..Self::default() }
    }

    /// The value of a setting; `None` if missing or empty.
    pub(super) fn get(&self, name: &str) -> Option<&RawSetting> {
        self.given.get(name)
    }

    /// Formats a value for printing: shortened and without secrets.
    pub(super) fn format_value(name: &str, value: &str) -> String {
        let secret = list_secrets().any(|(secret, _)| secret == name);
        if secret || values::looks_secret(value) {
            return format!("a value of {} characters (not shown)", value.chars().count());
        }
        let mut value = types::without_userinfo(value);
        for password in redact::find_passwords(&value) {
            value = value.replace(password.expose(), "***");
        }
        let short = words::first_chars(&value, 80);
        if short.len() < value.len() { format!("{short:?}…") } else { format!("{short:?}") }
    }

    /// Records a value. The first source wins, and an empty value counts as missing.
    pub(super) fn record_value(&mut self, name: &'static str, value: &str, source: Source) {
        let value = value.trim();
        if value.contains(char::REPLACEMENT_CHARACTER) {
            self.problems.push(SettingProblem {
                subject: name.to_owned(),
                source: Some(source),
                what: "expected text in UTF-8".to_owned(),
            });
        } else if value.is_empty() {
            self.empty.insert(name);
        } else {
            self.given.entry(name).or_insert(RawSetting { value: value.to_owned(), source });
        }
    }

    /// Removes a setting's value and its problems.
    pub(super) fn remove_value(&mut self, name: &str) {
        self.given.remove(name);
        self.empty.remove(name);
        self.problems.retain(|problem| problem.subject != name);
    }

    /// Returns true if a setting is present but empty.
    pub(super) fn is_empty(&self, name: &str) -> bool {
        self.empty.contains(name) && self.get(name).is_none()
    }

    /// Finds the workspace and reads the only settings file: the named one, else the workspace's `.env`.
    fn read_env_file(&mut self, named: Option<&Path>) {
        let is_in_environment = self.given.contains_key("WORKSPACE_DIR");
        if let Some(path) = named {
            self.read_settings_file(path);
        }
        let is_set = self.given.contains_key("WORKSPACE_DIR");
        self.workspace_dir = if is_set { self.parse_workspace() } else { self.default_workspace() };
        // fault: current-directorys-settings-count
        let own = self.workspace_dir.as_deref().and_then(find_env_file).filter(|_| named.is_none());
        if let Some(path) = own {
            let workspace = self.workspace_dir.clone();
            self.read_settings_file(&path);
            if !is_in_environment && self.get("WORKSPACE_DIR").is_some() && self.parse_workspace() != workspace {
                let what = "the .env inside a workspace can't name another workspace; set it in the environment, or in a file given with --env-file";
                self.add_problem("WORKSPACE_DIR", what);
            }
        }
        if self.workspace_dir.is_none() && !self.problems.iter().any(|p| p.subject == "WORKSPACE_DIR") {
            let what = "expected an absolute path, got nothing; it has no default because HOME isn't set";
            self.problems.push(SettingProblem::new("WORKSPACE_DIR", what));
        }
    }

    fn parse_workspace(&mut self) -> Option<PathBuf> {
        let given = self.get("WORKSPACE_DIR")?;
        match values::parse_absolute_path(&given.value, self.home.as_deref()) {
            Ok(path) => Some(path),
            Err(expected) => {
                let what = format!("expected {expected}, got {}", Self::format_value("WORKSPACE_DIR", &given.value));
                self.add_problem("WORKSPACE_DIR", &what);
                None
            }
        }
    }

    fn default_workspace(&self) -> Option<PathBuf> {
        let data_home = self.data_home.clone().or_else(|| Some(self.home.as_ref()?.join(".local/share")));
        Some(data_home?.join("reveille"))
    }

    fn read_settings_file(&mut self, path: &Path) {
        self.env_file = Some(path.to_owned());
        let private = match read_private(path) {
            Ok(private) => private,
            Err(what) => return self.problems.push(SettingProblem::new(path.display().to_string(), what)),
        };
        if private.readable_by_others {
            self.notes.push(format!("{0} can be read by other users: run chmod 600 {0}", path.display()));
        }
        let mut seen = BTreeMap::new();
        for (number, line) in number_lines(&private.text) {
            match env_file::parse_line(line) {
                EnvLine::Nothing => {}
                EnvLine::Setting(name, value) => self.record_line(path, &mut seen, name, value),
                // Don't show the line, which may hold a secret.
                EnvLine::Unreadable => {
                    let what = format!(
                        "line {number} can't be read; expected NAME=value, with a closing quotation mark for each opening one"
                    );
                    self.problems.push(SettingProblem::new(path.display().to_string(), what));
                }
            }
        }
    }

    fn record_line(&mut self, path: &Path, seen: &mut BTreeMap<&'static str, String>, name: &str, value: &str) {
        let Some(known) = VARIABLES.into_iter().find(|known| *known == name) else {
            let near = VARIABLES.into_iter().map(|known| (words::count_edits(name, known), known)).min();
            let meant = near.filter(|(edits, known)| *edits <= known.len() / 4).map(|(_, known)| known);
            let meant = meant.map_or_else(String::new, |known| format!(" Did you mean {known}?"));
            self.notes.push(format!("{}: Unknown setting {name}, ignored.{meant}", path.display()));
            return;
        };
        if self.changed.contains(known) {
            return;
        }
        let source = Source::File(path.to_owned());
        self.record_value(known, value, source.clone());
        if value.trim().is_empty() {
            return;
        }
        if seen.insert(known, value.to_owned()).is_some_and(|earlier| earlier != value) {
            let what = "set twice with different values; keep one".to_owned();
            self.problems.push(SettingProblem { subject: name.to_owned(), source: Some(source), what });
        }
    }

    fn read_secret_file(&mut self, name: &'static str, file_name: &'static str) {
        let Some(file) = self.get(file_name) else { return };
        if self.get(name).is_some() {
            let what = format!("set, but {name} is set too; keep one of them");
            return self.add_problem(file_name, &what);
        }
        let path = match values::parse_absolute_path(&file.value, self.home.as_deref()) {
            Ok(path) => path,
            Err(expected) => {
                let what = format!("expected {expected}, got {}", Self::format_value(file_name, &file.value));
                return self.add_problem(file_name, &what);
            }
        };
        match read_private(&path) {
            Ok(private) if private.text.trim().is_empty() => {
                self.add_problem(file_name, &format!("{} is empty", path.display()));
            }
            Ok(private) => {
                self.key_files.push(path.clone());
                self.record_value(name, &private.text, Source::File(path));
            }
            Err(what) => self.add_problem(file_name, &format!("{} {what}", path.display())),
        }
    }

    fn add_problem(&mut self, name: &str, what: &str) {
        let source = self.get(name).map(|given| given.source.clone());
        self.problems.push(SettingProblem { subject: name.to_owned(), source, what: what.to_owned() });
    }
}

/// The `.env` of a directory, if any file has this name.
fn find_env_file(dir: &Path) -> Option<PathBuf> {
    let path = dir.join(".env");
    match std::fs::symlink_metadata(&path) {
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => None,
        _ => Some(path),
    }
}

/// The lines of a file with their numbers.
fn number_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.strip_prefix('\u{feff}').unwrap_or(text).lines())
}

/// Finds an ignored `.env` in a directory, and the names of our settings in it. Their values aren't used, because the file's
/// author is unknown.
pub(super) fn find_ignored_env_file(dir: &Path) -> Option<(PathBuf, Vec<&'static str>)> {
    let path = find_env_file(dir)?;
    let text = read_private(&path).ok()?.text;
    let named: BTreeSet<&str> = number_lines(&text)
        .filter_map(|(_, line)| match env_file::parse_line(line) {
            EnvLine::Setting(name, _) => Some(name),
            EnvLine::Nothing | EnvLine::Unreadable => None,
        })
        .collect();
    let ours: Vec<_> = VARIABLES.into_iter().filter(|name| named.contains(name)).collect();
    if ours.is_empty() { None } else { Some((path, ours)) }
}
