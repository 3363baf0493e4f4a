//! `/settings`: shows the current settings, their origins and their problems. Secrets stay hidden.

use std::path::Path;

use reveille_config::{GivenSettings, Source};

use super::Desk;
use crate::setup::{SettingGroup, ShownSetting, changed_since, list_settings};

pub(super) fn answer(desk: &Desk<'_>) -> String {
    let said = GivenSettings::gather(desk.config.named_env_file.as_deref());
    let (settings, other_problems) = list_settings(&said);
    let file = said.file_path();
    let mut text = render_settings(&settings, &other_problems, file.as_deref());
    if let Some(chosen) = &desk.config.chosen_model {
        text.push_str(&format!("\n\nYou chose `{chosen}` with /model; it answers instead of `{}`.", desk.config.model));
    }
    let changed = changed_since(desk.config, &said);
    if !changed.is_empty() {
        text.push_str(&format!("\n\nChanged since I started: {}. To apply it, send /restart.", changed.join(", ")));
    }
    text
}

fn render_settings(settings: &[ShownSetting], other_problems: &[String], file: Option<&Path>) -> String {
    let mut lines = Vec::new();
    let wrong = settings.iter().filter(|setting| setting.problem.is_some()).count() + other_problems.len();
    if wrong > 0 {
        lines.push(format!("⚠️ Settings with errors: {wrong}. I couldn't restart with these.\n"));
        lines.extend(other_problems.iter().map(|problem| format!("- {problem}")));
    }
    for group in SettingGroup::ALL {
        let of_group: Vec<String> = settings
            .iter()
            .filter(|setting| setting.group == group)
            .map(|setting| render_setting(setting, file))
            .collect();
        lines.push(format!("**{}**\n{}\n", group.title(), of_group.join("\n")));
    }
    let place = file.map_or_else(|| ".env".to_owned(), |file| format!("`{}`", file.display()));
    lines.push(format!("To change them: `wake init` in a terminal, or edit {place}; then /restart."));
    lines.join("\n")
}

fn render_setting(setting: &ShownSetting, file: Option<&Path>) -> String {
    let ShownSetting { name, shown, source, problem, .. } = setting;
    let from = match source {
        None => "default".to_owned(),
        Some(Source::Environment) => "environment".to_owned(),
        Some(Source::File(path)) if Some(path.as_path()) == file => {
            path.file_name().unwrap_or_default().to_string_lossy().into_owned()
        }
        Some(Source::File(path)) => format!("file {}", path.display()),
    };
    let plain = ["set", "not set", "none"].contains(&shown.as_str());
    let shown = if plain { shown.clone() } else { format!("`{}`", shown.replace('`', "'")) };
    match problem {
        Some(problem) => format!("- ⚠️ {name}: {problem}"),
        None => format!("- {name}: {shown} ({from})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &'static str, group: SettingGroup, shown: &str, source: Option<Source>) -> ShownSetting {
        ShownSetting { name, group, shown: shown.to_owned(), source, problem: None }
    }

    #[test]
    fn settings_are_grouped_and_name_their_sources() {
        let file = Path::new("/home/ana/reveille/.env");
        let mut wrong = setting("AUTONOMY", SettingGroup::Manners, "1", None);
        wrong.problem = Some("expected 0, 1 or 2; got \"9\"".to_owned());
        let settings = [
            setting("ANTHROPIC_API_KEY", SettingGroup::Model, "set", Some(Source::File("/run/secrets/key".into()))),
            setting("MODEL", SettingGroup::Model, "claude-sonnet-5-5", Some(Source::File(file.into()))),
            wrong,
            setting("TELL_PER_DAY", SettingGroup::Manners, "5", Some(Source::Environment)),
            setting("REPO_NAME", SettingGroup::Storage, "brain", None),
        ];
        let text = render_settings(&settings, &[], Some(file));
        let shown: Vec<&str> = text.lines().filter(|line| line.starts_with("- ") || line.contains("⚠️")).collect();
        assert_eq!(
            shown,
            [
                "⚠️ Settings with errors: 1. I couldn't restart with these.",
                "- ANTHROPIC_API_KEY: set (file /run/secrets/key)",
                "- MODEL: `claude-sonnet-5-5` (.env)",
                "- REPO_NAME: `brain` (default)",
                "- ⚠️ AUTONOMY: expected 0, 1 or 2; got \"9\"",
                "- TELL_PER_DAY: `5` (environment)",
            ]
        );
        assert!(
            text.ends_with("`wake init` in a terminal, or edit `/home/ana/reveille/.env`; then /restart."),
            "{text}"
        );
    }
}
