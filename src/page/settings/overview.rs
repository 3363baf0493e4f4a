//! The settings at a glance: each group with its present state, and what is wrong.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Query, State},
    routing::get,
};
use maud::{Markup, html};

use reveille_base::words::{format_count, quote_for_shell};
use reveille_policy::{self as policy, folders};
use reveille_tools::mcp::client::settings::Settings;

use super::{
    CurrentSettings, SettingsPlace, all::render_search, confirm::render_last_change, jobs::list_jobs, pairing,
};
use crate::{
    page::{
        error::PageError,
        frame::{PagePlace, render_frame},
        notes::NoteQuery,
        site::{PageContext, PageSite},
    },
    setup::{self, ShownSetting, changed_since, list_settings},
};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/settings", get(show_settings))
}

async fn show_settings(State(site): State<Arc<PageSite>>, Query(said): Query<NoteQuery>) -> Result<Markup, PageError> {
    let of_site = Arc::clone(&site);
    let content = site.run_blocking(move |desk| render_settings(&of_site, desk, &said)).await?;
    Ok(render_frame(PagePlace::Settings, "Settings", &content))
}

fn render_settings(site: &PageSite, desk: &PageContext<'_>, said: &NoteQuery) -> Result<Markup, PageError> {
    // The settings are read again, since those from the page's start may be outdated.
    let current = CurrentSettings::read(desk)?;
    let store = desk.open_store()?;
    let chosen = match &store {
        Some(store) => store.chats().find_chosen_value("MODEL", &current.config.model)?,
        None => None,
    };
    let changed = changed_since(desk.config, &current.given);
    let mut states = Vec::new();
    for place in SettingsPlace::ALL {
        states.push((place, describe_state(place, &current, desk)?));
    }
    Ok(html! {
        div .set {
            (render_last_change(site, said, None))
            (render_problems(desk, &current))
            @if !changed.is_empty() {
                p .note role="status" {
                    "Changed since this page was started: " (changed.join(", "))
                    ". The next wake uses the new settings. A running bot and this page use them after a restart."
                }
            }
            @if let Some(chosen) = &chosen {
                p .note { "With /model you chose " code { (chosen) } ", which answers instead of " code { (current.config.model) } "." }
            }
            ul .set-grid {
                @for (place, state) in &states {
                    li {
                        a href=(place.path()) {
                            span .set-title { (place.title()) }
                            span .set-state { (desk.clean_text(state)) }
                        }
                    }
                }
            }
            (render_search(""))
            p { a href=(SettingsPlace::All.path()) { "Every setting" } " with its meaning and its present value." }
            p .meta {
                "Settings come from the environment"
                @if let Some(file) = current.given.file_path() { " and from " code { (file.display()) } }
                ". In a terminal, " code { "wake init" (env_file_option(desk)) } " asks for the important ones, and "
                code { "wake init --check" } " tests whether they work."
            }
        }
    })
}

fn render_problems(desk: &PageContext<'_>, current: &CurrentSettings) -> Markup {
    let (settings, other_problems) = list_settings(&current.given);
    let wrong: Vec<&ShownSetting> = settings.iter().filter(|setting| setting.problem.is_some()).collect();
    html! {
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
        @if !current.config.notes.is_empty() {
            ul .list { @for note in &current.config.notes { li .meta { (desk.clean_text(note)) } } }
        }
    }
}

/// Describes the present state of a group on one line.
fn describe_state(
    place: SettingsPlace,
    current: &CurrentSettings,
    desk: &PageContext<'_>,
) -> Result<String, PageError> {
    let config = &current.config;
    let time = |time: chrono::NaiveTime| time.format("%H:%M").to_string();
    Ok(match place {
        SettingsPlace::Assistant => {
            let name = setup::read_names(config).map_or_else(|| "Its own name".to_owned(), |names| names.assistant);
            format!("{name} · {}", config.timezone)
        }
        SettingsPlace::Answers => match config.effective_model() {
            reveille_config::OFFLINE_MODEL => "No AI model: it understands simple sentences".to_owned(),
            model => model.to_owned(),
        },
        SettingsPlace::Telegram => {
            let (people, is_anybody) = pairing::list_people(config, desk.open_store()?.as_ref())?;
            match (config.telegram_token.is_some(), people.as_slice()) {
                (false, _) => "No bot".to_owned(),
                (true, []) if is_anybody => "A bot, for the people of ALLOWED_CHAT_IDS".to_owned(),
                (true, []) => "A bot, paired with nobody yet".to_owned(),
                (true, [one]) if !one.name.is_empty() => format!("Paired with {}", one.name),
                (true, people) => format!("Paired with {} people", people.len()),
            }
        }
        SettingsPlace::Times => {
            let quiet = config.quiet_hours.map(|hours| format!("Quiet {} to {}", time(hours.from), time(hours.until)));
            format!(
                "{} · initiative {}",
                quiet.unwrap_or_else(|| "No quiet hours".to_owned()),
                config.initiative.as_str()
            )
        }
        SettingsPlace::Budget => {
            let month = config.monthly_budget_usd.map(|usd| format!(", {usd:.2} a month")).unwrap_or_default();
            format!("At most {:.2} USD a day{month}", config.daily_budget_usd)
        }
        SettingsPlace::Permissions => {
            let text = policy::read_text(&config.policy_path()).unwrap_or_default();
            let grants = folders::list_folders(&text).map_or(0, |grants| grants.len());
            let folders = if grants == 0 { String::new() } else { format!(" · {}", format_count(grants, "folder")) };
            format!("{}{folders}", super::fields::capitalize(config.autonomy.describe()))
        }
        SettingsPlace::Servers => {
            let Settings { servers, off, problems, .. } = Settings::for_workspace(config);
            match (servers.len(), off.len()) {
                _ if !problems.is_empty() => "Something is wrong".to_owned(),
                (0, 0) => "None".to_owned(),
                (on, 0) => format!("{on} on"),
                (on, off) => format!("{on} on, {off} off"),
            }
        }
        SettingsPlace::Jobs => match list_jobs(desk)?.as_slice() {
            [] => "None".to_owned(),
            jobs => {
                let on = jobs.iter().filter(|job| job.state == "active").count();
                format!("{} · {on} on", format_count(jobs.len(), "job"))
            }
        },
        SettingsPlace::All => String::new(),
    })
}

/// Returns the option that names the settings file in a command.
fn env_file_option(desk: &PageContext<'_>) -> String {
    desk.config
        .named_env_file
        .as_deref()
        .map_or_else(String::new, |path| format!(" --env-file {}", quote_for_shell(path)))
}
