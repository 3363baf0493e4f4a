//! Shows the settings, read-only; a secret shows only that it is set. Settings are changed at a terminal.

use std::sync::Arc;

use axum::{Router, extract::State, routing::get};
use maud::{Markup, html};

use reveille_base::words::in_shell;
use reveille_config::SaidSettings;

use super::{
    error::PageError,
    frame::{PagePlace, frame},
    site::{PageDesk, PageSite},
};
use crate::setup::{SettingGroup, ShownSetting, changed_since, shown_settings};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/settings", get(show))
}

async fn show(State(site): State<Arc<PageSite>>) -> Result<Markup, PageError> {
    let content = site.at_desk(all).await?;
    Ok(frame(PagePlace::Settings, "Settings", &content))
}

fn all(desk: &PageDesk<'_>) -> Result<Markup, PageError> {
    let config = desk.config;
    let chosen = match desk.store()? {
        Some(store) => store.chats().chosen("MODEL", &config.model)?,
        None => None,
    };
    // Read anew, since the settings at the page's start may be outdated.
    let said = SaidSettings::gather(config.named_env_file.as_deref());
    let (settings, besides) = shown_settings(&said);
    let wrong: Vec<&ShownSetting> = settings.iter().filter(|setting| setting.problem.is_some()).collect();
    let changed = changed_since(config, &said);
    Ok(html! {
        p {
            "They come from the environment"
            @if let Some(file) = said.file() { " and from " code { (file.display()) } }
            ". To change them: " code { "wake init" (env_file(desk)) } " asks for what matters and checks each answer; or edit the file. "
            code { "wake init --check" } " tries whether they work."
        }
        @if let Some(chosen) = &chosen {
            p .note { "With /model you chose " code { (chosen) } ": it answers in place of " code { (config.model) } "." }
        }
        @if !changed.is_empty() {
            p .note role="status" {
                "Changed since this page was started: " (changed.join(", ")) ". The next wake goes by it. A bot that runs goes by it after a restart, and so does this page."
            }
        }
        @if !wrong.is_empty() || !besides.is_empty() {
            section .note.bad aria-labelledby="wrong" {
                h2 #wrong { "What is wrong" }
                ul .list {
                    @for setting in &wrong {
                        li { code { (setting.name) } ": " (desk.shown(setting.problem.as_deref().unwrap_or_default())) }
                    }
                    @for problem in &besides { li { (desk.shown(problem)) } }
                }
            }
        }
        @if !config.notes.is_empty() {
            ul .list { @for note in &config.notes { li .meta { (desk.shown(note)) } } }
        }
        @for group in SettingGroup::ALL {
            @let own: Vec<&ShownSetting> = settings.iter().filter(|setting| setting.group == group).collect();
            @if !own.is_empty() { (listed(desk, group, &own)) }
        }
        p .meta { code { "docs/SETTINGS.md" } " and " code { ".env.example" } " tell what each is for." }
    })
}

/// Returns the option that names the settings file in a command.
fn env_file(desk: &PageDesk<'_>) -> String {
    desk.config.named_env_file.as_deref().map_or_else(String::new, |path| format!(" --env-file {}", in_shell(path)))
}

fn listed(desk: &PageDesk<'_>, group: SettingGroup, settings: &[&ShownSetting]) -> Markup {
    html! {
        h2 { (group.title()) }
        ul .list {
            @for setting in settings {
                li {
                    code { (setting.name) } " " (desk.shown(&setting.shown)) " "
                    @if setting.problem.is_some() { span .badge.bad { "what was said is wrong" } " " }
                    span .meta {
                        "· " @if let Some(source) = &setting.source { (source.to_string()) } @else { "the default" }
                    }
                }
            }
        }
    }
}
