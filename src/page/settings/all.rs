//! Lists every setting with its meaning and its present value, searchable; and changes a single one.

use std::sync::Arc;

use axum::{
    Extension, Form, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_base::words::format_count;
use reveille_config::{Authority, Setting, SettingChanges, describe_setting, find_setting, is_secret};

use super::{
    CurrentSettings, SettingsPlace,
    change::{self, ProposedChange},
    confirm::render_last_change,
    fields::{Problems, SentFields, SettingField, parse_fields, render_code_badge, render_form_end},
    render_place,
};
use crate::{
    page::{
        entrance::SessionMark,
        error::PageError,
        notes::NoteQuery,
        parts::build_address,
        site::{PageContext, PageSite},
    },
    setup::{SettingGroup, ShownSetting, list_settings},
};

const PLACE: SettingsPlace = SettingsPlace::All;
const ONE_PATH: &str = "/settings/one";

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route(PLACE.path(), get(show_all)).route(ONE_PATH, get(show_one).post(save_one))
}

#[derive(Deserialize)]
struct SearchQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    said: String,
}

#[derive(Deserialize)]
struct OneQuery {
    name: String,
}

async fn show_all(State(site): State<Arc<PageSite>>, Query(asked): Query<SearchQuery>) -> Result<Markup, PageError> {
    let of_site = Arc::clone(&site);
    site.run_blocking(move |desk| {
        let current = CurrentSettings::read(desk)?;
        let settings = list_settings(&current.given).0;
        let is_found = |setting: &&ShownSetting| matches_search(setting, &asked.q);
        let found: Vec<&ShownSetting> = settings.iter().filter(is_found).collect();
        let content = html! {
            (render_last_change(&of_site, &NoteQuery { said: asked.said.clone() }, Some(PLACE)))
            (render_search(&asked.q))
            p #set-count .meta role="status" { (format_count(found.len(), "setting")) }
            @for group in SettingGroup::ALL {
                @let own: Vec<&ShownSetting> = found.iter().copied().filter(|setting| setting.group == group).collect();
                @if !own.is_empty() { (render_group(desk, group, &own)) }
            }
        };
        Ok(render_place(PLACE.title(), &content))
    })
    .await
}

/// Returns `true` if a setting has all the words that somebody looks for.
fn matches_search(setting: &ShownSetting, wanted: &str) -> bool {
    let text =
        format!("{} {} {} {}", setting.name, setting.shown, setting.group.title(), describe_setting(setting.name));
    let text = text.to_lowercase();
    wanted.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

/// Renders the field that finds a setting.
pub(super) fn render_search(wanted: &str) -> Markup {
    html! {
        form .set-search role="search" action=(PLACE.path()) method="get" {
            label for="q" { "Find a setting" }
            div {
                input #q name="q" type="search" value=(wanted) autocomplete="off" spellcheck="false"
                    placeholder="budget, Telegram, log …" data-filter;
                button type="submit" { "Find" }
            }
        }
    }
}

fn render_group(desk: &PageContext<'_>, group: SettingGroup, settings: &[&ShownSetting]) -> Markup {
    html! {
        section .set-group {
            h2 { (group.title()) }
            ul .list { @for setting in settings { (render_setting(desk, setting)) } }
        }
    }
}

fn render_setting(desk: &PageContext<'_>, setting: &ShownSetting) -> Markup {
    let ShownSetting { name, shown, source, problem, .. } = setting;
    html! {
        li {
            p .set-name {
                a href=(build_address(ONE_PATH, &[("name", name)])) { code { (name) } }
                @if needs_code(name) { " " (render_code_badge()) }
                @if problem.is_some() { " " span .badge.bad { "not valid" } }
            }
            p .set-value {
                span .set-now { (desk.clean_text(shown)) }
                span .meta { " · " @if let Some(source) = source { (source.to_string()) } @else { "the default" } }
            }
            @if let Some(problem) = problem { p .set-problem { (desk.clean_text(problem)) } }
            p .meta { (describe_setting(name)) }
        }
    }
}

/// Returns `true` if some change of this setting needs a code.
fn needs_code(name: &str) -> bool {
    find_setting(name).is_some_and(|setting| setting.authority != Authority::Unrelated)
}

async fn show_one(State(site): State<Arc<PageSite>>, Query(asked): Query<OneQuery>) -> Result<Markup, PageError> {
    site.run_blocking(move |desk| {
        let current = CurrentSettings::read(desk)?;
        Ok(render_one(find_changeable(&asked.name)?, &current, None, &Problems::new()))
    })
    .await
}

async fn save_one(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Query(asked): Query<OneQuery>,
    Form(sent): Form<SentFields>,
) -> Result<Response, PageError> {
    let parsed = site
        .run_blocking(move |desk| {
            let current = CurrentSettings::read(desk)?;
            let setting = find_changeable(&asked.name)?;
            let changes = match sent.contains_key("remove") && !current.given.is_from_environment(setting.name) {
                true => Ok([Some(setting.name), setting.file].into_iter().flatten().map(|name| (name, None)).collect()),
                false => parse_fields([setting.name], &sent, &current),
            };
            Ok(match changes {
                Ok(changes) => Ok(ProposedChange::from_changes(&current.given, SettingChanges::clone(&changes), PLACE)),
                Err(problems) => Err(render_one(setting, &current, Some(&sent), &problems)),
            })
        })
        .await?;
    match parsed {
        Ok(Some(proposal)) => change::submit(&site, session, proposal).await,
        Ok(None) => Ok(site.redirect_with_note(PLACE.path(), "Nothing to change.".to_owned()).into_response()),
        Err(page) => Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response()),
    }
}

/// Finds a setting by name. The workspace stays as it is while its page is served.
fn find_changeable(name: &str) -> Result<&'static Setting, PageError> {
    let setting = find_setting(name).ok_or_else(|| PageError::Missing("There is no such setting.".to_owned()))?;
    match setting.name {
        "WORKSPACE_DIR" => Err(PageError::Missing(
            "The workspace can't be changed here: everything that this page shows is in it. `wake init` moves it."
                .to_owned(),
        )),
        _ => Ok(setting),
    }
}

fn render_one(
    setting: &'static Setting,
    current: &CurrentSettings,
    sent: Option<&SentFields>,
    problems: &Problems,
) -> Markup {
    let name = setting.name;
    let default = if setting.default.is_empty() { "none" } else { setting.default };
    let label = if is_secret(name) { "New value" } else { "Value" };
    let field = SettingField::line(name, label, "");
    let is_settled = current.given.is_from_environment(name);
    let content = html! {
        form .card action=(build_address(ONE_PATH, &[("name", name)])) method="post" {
            p { (describe_setting(name)) }
            @if needs_code(name) { p { (render_code_badge()) span .meta { " where it lets me do or reach more." } } }
            (field.render(current, sent, problems))
            @if !is_settled { (render_form_end(current)) }
            p .meta {
                @if is_secret(name) { "Leave it empty to keep what is set. It is never shown." }
                @else { "The default: " (default) ". An empty value means the default." }
            }
        }
        @if is_secret(name) && current.given.get(name).is_some() && !is_settled {
            form action=(build_address(ONE_PATH, &[("name", name)])) method="post" {
                p .actions { button type="submit" name="remove" value="yes" { "Remove it" } }
            }
        }
        p { a href=(PLACE.path()) { "Every setting" } }
    };
    render_place(name, &content)
}
