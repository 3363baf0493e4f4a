//! Shows the settings, read-only. Of a secret, it shows only whether it is set. Settings are changed at a terminal.

use std::sync::Arc;

use axum::{Router, extract::State, routing::get};
use maud::{Markup, html};

use reveille_base::words::quote_for_shell;
use reveille_config::GivenSettings;

use super::{
    error::PageError,
    frame::{PagePlace, render_frame},
    site::{PageContext, PageSite},
};
use crate::setup::{SettingGroup, ShownSetting, changed_since, list_settings};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/settings", get(show_settings))
}

async fn show_settings(State(site): State<Arc<PageSite>>) -> Result<Markup, PageError> {
    let content = site.run_blocking(render_settings).await?;
    Ok(render_frame(PagePlace::Settings, "Settings", &content))
}

fn render_settings(desk: &PageContext<'_>) -> Result<Markup, PageError> {
    let config = desk.config;
    let chosen = match desk.open_store()? {
        Some(store) => store.chats().find_chosen_value("MODEL", &config.model)?,
        None => None,
    };
    // The settings are read again, since those from the page's start may be outdated.
    let given = GivenSettings::gather(config.named_env_file.as_deref());
    let (settings, other_problems) = list_settings(&given);
    let wrong: Vec<&ShownSetting> = settings.iter().filter(|setting| setting.problem.is_some()).collect();
    let changed = changed_since(config, &given);
    Ok(html! {
        p {
            "Settings come from the environment"
            @if let Some(file) = given.file_path() { " and from " code { (file.display()) } }
            ". To change them, run " code { "wake init" (env_file_option(desk)) }
            ", which asks for the important ones and checks each answer, or edit the file. "
            code { "wake init --check" } " tests whether they work."
        }
        @if let Some(chosen) = &chosen {
            p .note { "With /model you chose " code { (chosen) } ", which answers instead of " code { (config.model) } "." }
        }
        @if !changed.is_empty() {
            p .note role="status" {
                "Changed since this page was started: " (changed.join(", ")) ". The next wake uses the new settings. A running bot and this page use them after a restart."
            }
        }
        @if !wrong.is_empty() || !other_problems.is_empty() {
            section .note.bad aria-labelledby="wrong" {
                h2 #wrong { "Problems" }
                ul .list {
                    @for setting in &wrong {
                        li { code { (setting.name) } ": " (desk.clean_text(setting.problem.as_deref().unwrap_or_default())) }
                    }
                    @for problem in &other_problems { li { (desk.clean_text(problem)) } }
                }
            }
        }
        @if !config.notes.is_empty() {
            ul .list { @for note in &config.notes { li .meta { (desk.clean_text(note)) } } }
        }
        @for group in SettingGroup::ALL {
            @let own: Vec<&ShownSetting> = settings.iter().filter(|setting| setting.group == group).collect();
            @if !own.is_empty() { (render_group(desk, group, &own)) }
        }
        p .meta { code { "docs/SETTINGS.md" } " and " code { ".env.example" } " explain each one." }
    })
}

/// Returns the option that names the settings file in a command.
fn env_file_option(desk: &PageContext<'_>) -> String {
    desk.config
        .named_env_file
        .as_deref()
        .map_or_else(String::new, |path| format!(" --env-file {}", quote_for_shell(path)))
}

fn render_group(desk: &PageContext<'_>, group: SettingGroup, settings: &[&ShownSetting]) -> Markup {
    html! {
        h2 { (group.title()) }
        ul .list {
            @for setting in settings {
                li {
                    code { (setting.name) } " " (desk.clean_text(&setting.shown)) " "
                    @if setting.problem.is_some() { span .badge.bad { "not valid" } " " }
                    span .meta {
                        "· " @if let Some(source) = &setting.source { (source.to_string()) } @else { "the default" }
                    }
                }
            }
        }
    }
}
