//! The settings as given, so that `setup` can show and change them. Problems are values here, so that a person can see wrong settings and
//! correct them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use reveille_base::zone::Tz;

use super::{
    Config, ConfigError, SettingProblem,
    env_file::{self, EditError},
    files::read_private,
    raw::{Raw, Source},
    read_environment, resolve,
    table::{VARIABLES, list_secrets},
    values,
};

/// The wanted changes: a setting's new value, or `None` to remove the setting.
pub type SettingChanges = BTreeMap<&'static str, Option<String>>;

/// Finds the zone in this process's `TZ`, if known: `Europe/Berlin`, or `:Europe/Berlin`.
fn find_process_zone(env: &BTreeMap<String, String>) -> Option<String> {
    let named = env.get("TZ")?.trim_start_matches(':');
    named.parse::<Tz>().is_ok().then(|| named.to_owned())
}

/// The given value and the source of each setting. Not `Debug`, because it holds secrets.
pub struct GivenSettings {
    env: BTreeMap<String, String>,
    /// The workspace chosen by the person, which overrides the environment's.
    workspace: Option<String>,
    named_file: Option<PathBuf>,
    system_zone: Option<String>,
    raw: Raw,
}

impl GivenSettings {
    /// Gathers the settings of this process. `env_file` replaces the workspace's `.env`.
    pub fn gather(env_file: Option<&Path>) -> Self {
        let named = env_file.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        let env = read_environment();
        let zone = find_process_zone(&env).or_else(|| iana_time_zone::get_timezone().ok());
        Self::from_sources(env, named, zone)
    }

    /// Gathers the settings from a given environment, file and system zone.
    pub fn from_sources(
        env: BTreeMap<String, String>,
        named_file: Option<PathBuf>,
        system_zone: Option<String>,
    ) -> Self {
        let mut given = Self { env, workspace: None, named_file, system_zone, raw: Raw::default() };
        given.raw = given.gather_raw(&SettingChanges::new());
        given
    }

    fn gather_raw(&self, changes: &SettingChanges) -> Raw {
        let chosen = self.workspace.clone().map(|dir| ("WORKSPACE_DIR".to_owned(), dir));
        let env = self.env.clone().into_iter().chain(chosen).collect();
        Raw::gather_with_changes(&env, self.named_file.as_deref().filter(|path| path.exists()), changes)
    }

    /// The same settings in another workspace.
    #[must_use]
    pub fn with_workspace(&self, workspace: &str) -> Self {
        let workspace = Some(workspace.to_owned());
        let mut given = Self {
            env: self.env.clone(),
            workspace,
            named_file: self.named_file.clone(),
            system_zone: self.system_zone.clone(),
            raw: Raw::default(),
        };
        given.raw = given.gather_raw(&SettingChanges::new());
        given
    }

    /// The value of a setting, including secrets, and its source.
    pub fn get(&self, name: &str) -> Option<(&str, &Source)> {
        self.raw.get(name).map(|given| (given.value.as_str(), &given.source))
    }

    /// Returns true if the environment sets this value, which overrides the file.
    pub fn is_from_environment(&self, name: &str) -> bool {
        self.env.get(name).is_some_and(|value| !value.trim().is_empty())
    }

    /// The workspace; `None` if its setting is wrong.
    pub fn workspace(&self) -> Option<&Path> {
        self.raw.workspace_dir.as_deref()
    }

    /// The person's home directory.
    pub fn home(&self) -> Option<&Path> {
        self.raw.home.as_deref()
    }

    /// The name of the system's zone.
    pub fn system_zone(&self) -> Option<&str> {
        self.system_zone.as_deref()
    }

    /// The path of the settings file, which may not exist.
    pub fn file_path(&self) -> Option<PathBuf> {
        self.named_file.clone().or_else(|| Some(self.workspace()?.join(".env")))
    }

    /// The file named by `--env-file`.
    pub fn named_file(&self) -> Option<&Path> {
        self.named_file.as_deref()
    }

    /// The problem that makes the file unreadable and prevents changes.
    pub fn file_problem(&self) -> Option<&SettingProblem> {
        let file = self.file_path()?.display().to_string();
        self.raw.problems.iter().find(|problem| problem.subject == file)
    }

    /// The settings after these changes.
    ///
    /// # Errors
    /// Lists every wrong setting by name.
    pub fn resolve_with_changes(&self, changes: &SettingChanges) -> Result<Config, ConfigError> {
        let mut config = resolve::resolve_config(self.gather_raw(changes), self.system_zone.as_deref())?;
        config.named_env_file = self.named_file.clone();
        Ok(config)
    }

    /// Resolves the settings with these changes, without the wrong ones, and returns the problems of those. The settings are `None` if the
    /// rest can't be resolved either.
    pub fn with_valid_settings(&self, changes: &SettingChanges) -> (Option<Config>, Vec<SettingProblem>) {
        let mut raw = self.gather_raw(changes);
        let mut problems = std::mem::take(&mut raw.problems);
        for problem in &problems {
            raw.remove_value(&problem.subject);
        }
        // Removing one setting can make a dependent one wrong.
        for _ in 0..VARIABLES.len() {
            match resolve::resolve_config(raw, self.system_zone.as_deref()) {
                Ok(config) => return (Some(config), problems),
                Err(error) => problems.extend(error.problems),
            }
            raw = self.gather_raw(changes);
            raw.problems.clear();
            for problem in &problems {
                raw.remove_value(&problem.subject);
            }
        }
        (None, problems)
    }

    /// The text of the file after these changes.
    ///
    /// # Errors
    /// Fails if the file can't be read, or a value can't be expressed in it.
    pub fn render_changed_file(&self, changes: &SettingChanges) -> Result<String, EditError> {
        let Some(file) = self.file_path() else { return Err(EditError::NoPlace) };
        let text = match std::fs::symlink_metadata(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            _ => read_private(&file).map_err(EditError::Unreadable)?.text,
        };
        env_file::apply_changes(&text, changes)
    }
}

/// Returns true for a setting that must not be shown.
pub fn is_secret(name: &str) -> bool {
    list_secrets().any(|(secret, _)| secret == name)
}

/// The setting that names a file with this secret.
pub fn file_setting(name: &str) -> Option<&'static str> {
    list_secrets().find(|(secret, _)| *secret == name).map(|(_, file)| file)
}

/// Checks a value for a setting.
///
/// # Errors
/// Describes the expected and the given value, without secrets.
pub fn check_value(name: &'static str, value: &str, home: Option<&Path>) -> Result<(), String> {
    if name == "WORKSPACE_DIR" {
        return values::parse_absolute_path(value, home).map(|_| ()).map_err(|expected| format!("expected {expected}"));
    }
    let mut raw = Raw::new_empty(home);
    raw.record_value(name, value, Source::Environment);
    match resolve::resolve_config(raw, Some("UTC")) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.problems.first().map_or_else(String::new, |problem| problem.what.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(env: &[(&str, &str)], file: &str) -> (tempfile::TempDir, GivenSettings) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".env");
        std::fs::write(&path, file).unwrap();
        let mut env: BTreeMap<String, String> =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        env.insert("WORKSPACE_DIR".to_owned(), dir.path().display().to_string());
        let given = GivenSettings::from_sources(env, None, Some("Europe/Berlin".to_owned()));
        (dir, given)
    }

    #[test]
    fn a_change_counts_like_a_line_of_the_file_and_the_environment_overrides_it() {
        let (_dir, given) = given(&[("AUTONOMY", "2")], "DAILY_BUDGET_USD=1\nREPO_NAME=mind\n");
        let changes = SettingChanges::from([
            ("DAILY_BUDGET_USD", Some("3".to_owned())),
            ("AUTONOMY", Some("0".to_owned())),
            ("REPO_NAME", None),
        ]);
        let config = given.resolve_with_changes(&changes).unwrap();
        assert_eq!(
            (config.daily_budget_usd, config.autonomy, config.repo_name.as_str()),
            (3.0, super::super::Autonomy::Full, "brain")
        );
    }

    #[test]
    fn wrong_settings_are_left_out_and_named() {
        let (_dir, given) = given(&[], "AUTONOMY=9\nDAILY_BUDGET_USD=3\nTELL_PER_DAY=many\n");
        assert!(given.resolve_with_changes(&SettingChanges::new()).is_err());
        let (config, problems) = given.with_valid_settings(&SettingChanges::new());
        assert_eq!(config.unwrap().daily_budget_usd, 3.0);
        let subjects: Vec<&str> = problems.iter().map(|problem| problem.subject.as_str()).collect();
        assert_eq!(subjects, ["AUTONOMY", "TELL_PER_DAY"]);
    }

    #[test]
    fn a_value_is_judged_by_itself_and_a_secret_isnt_shown() {
        assert_eq!(check_value("AUTONOMY", "1", None), Ok(()));
        assert!(check_value("WORKSPACE_DIR", "here", None).unwrap_err().contains("an absolute path"));
        assert!(check_value("AUTONOMY", "7", None).unwrap_err().contains("smart"));
        let wrong = check_value("TELEGRAM_BOT_TOKEN", "not a token", None).unwrap_err();
        assert!(wrong.contains("BotFather") && !wrong.contains("not a token"), "{wrong}");
    }
}
