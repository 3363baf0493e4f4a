//! The groups that are one plain form each: name and time zone, quiet hours and initiative, budget.

use std::sync::Arc;

use axum::{
    Extension, Form, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_account::provenance::{
    ProvenanceError,
    hand::{PersonSession, PersonSessionTools},
};
use reveille_config::InitiativeLevel;
use reveille_git::FileChange;
use reveille_memory::CLAUDE;

use super::{
    CurrentSettings, SettingsPlace,
    change::{self, ProposedChange},
    confirm::render_last_change,
    fields::{FieldKind, Problems, SentFields, SettingField, capitalize, parse_fields, render_form_end},
    render_place,
};
use crate::{
    page::{
        entrance::SessionMark,
        error::PageError,
        notes::NoteQuery,
        site::{PageContext, PageSite},
        undo::newest_step,
    },
    setup::{self, AssistantNames, ParsedAnswer, SetupStep},
};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    let mut router = Router::new().route("/settings/names", post(save_names));
    for place in [SettingsPlace::Assistant, SettingsPlace::Times, SettingsPlace::Budget] {
        let show = move |site: State<Arc<PageSite>>, said: Query<NoteQuery>| show_form(site, said, place);
        let save = move |site: State<Arc<PageSite>>, session: Extension<SessionMark>, form: Form<SentFields>| {
            save_form(site, session, form, place)
        };
        router = router.route(place.path(), get(show).post(save));
    }
    router
}

/// Returns the settings of a group's form.
fn list_names(place: SettingsPlace) -> &'static [&'static str] {
    match place {
        SettingsPlace::Assistant => &["TIMEZONE"],
        SettingsPlace::Times => &["QUIET_HOURS", "TELL_PER_DAY", "INITIATIVE", "REFLECT_AT"],
        SettingsPlace::Budget => &["DAILY_BUDGET_USD", "MONTHLY_BUDGET_USD"],
        _ => &[],
    }
}

async fn show_form(
    State(site): State<Arc<PageSite>>,
    Query(said): Query<NoteQuery>,
    place: SettingsPlace,
) -> Result<Markup, PageError> {
    let of_site = Arc::clone(&site);
    site.run_blocking(move |desk| render_page(&of_site, desk, place, &said, None, &Problems::new())).await
}

async fn save_form(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(mut sent): Form<SentFields>,
    place: SettingsPlace,
) -> Result<Response, PageError> {
    if place == SettingsPlace::Times {
        join_times(&mut sent);
    }
    let of_site = Arc::clone(&site);
    let parsed = site
        .run_blocking(move |desk| {
            let current = CurrentSettings::read(desk)?;
            match parse_fields(list_names(place).iter().copied(), &sent, &current) {
                Ok(changes) => Ok(Ok(ProposedChange::from_changes(&current.given, changes, place))),
                Err(problems) => {
                    let said = NoteQuery::default();
                    Ok(Err(render_page(&of_site, desk, place, &said, Some(&sent), &problems)?))
                }
            }
        })
        .await?;
    match parsed {
        Ok(Some(proposal)) => change::submit(&site, session, proposal).await,
        Ok(None) => Ok(site.redirect_with_note(place.path(), "Nothing to change.".to_owned()).into_response()),
        Err(page) => Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response()),
    }
}

/// Makes settings of the fields for times. An empty time means never.
fn join_times(sent: &mut SentFields) {
    let mut take = |name: &str| sent.remove(name).unwrap_or_default().trim().to_owned();
    let (from, until) = (take("QUIET_FROM"), take("QUIET_UNTIL"));
    let hours = if from.is_empty() && until.is_empty() { "none".to_owned() } else { format!("{from}-{until}") };
    sent.insert("QUIET_HOURS".to_owned(), hours);
    if let Some(at) = sent.get_mut("REFLECT_AT").filter(|at| at.trim().is_empty()) {
        "none".clone_into(at);
    }
}

fn render_page(
    site: &PageSite,
    desk: &PageContext<'_>,
    place: SettingsPlace,
    said: &NoteQuery,
    sent: Option<&SentFields>,
    problems: &Problems,
) -> Result<Markup, PageError> {
    let current = CurrentSettings::read(desk)?;
    let form = match place {
        SettingsPlace::Assistant => render_zone(&current, sent, problems),
        SettingsPlace::Times => render_times(&current, sent, problems),
        _ => render_budget(&current, sent, problems),
    };
    let content = html! {
        (render_last_change(site, said, Some(place)))
        @if place == SettingsPlace::Assistant { (render_names(desk, &current)?) }
        form .card action=(place.path()) method="post" { (form) (render_form_end(&current)) }
    };
    Ok(render_place(place.title(), &content))
}

fn render_names(desk: &PageContext<'_>, current: &CurrentSettings) -> Result<Markup, PageError> {
    let names = setup::read_names(&current.config);
    let newest = match desk.open_store()? {
        Some(store) => newest_step(desk, &store, "settings")?,
        None => Markup::default(),
    };
    Ok(html! {
        @if let Some(AssistantNames { assistant, person }) = names {
            form .card action="/settings/names" method="post" {
                h2 { "Names" }
                div .field {
                    label for="assistant" { "What your assistant is called" }
                    input #assistant name="assistant" type="text" value=(assistant) maxlength="60" required autocomplete="off";
                }
                div .field {
                    label for="person" { "What it calls you" }
                    p #person-hint .meta { "Leave it empty if it should use no name." }
                    input #person name="person" type="text" value=(person.unwrap_or_default()) maxlength="60" autocomplete="off"
                        aria-describedby="person-hint";
                }
                p .actions { button type="submit" { "Save the names" } }
                p .meta { "They stand in the first lines of its orders, " code { "claude.md" } ". Saving makes a commit, which can be undone." }
            }
            (newest)
        } @else {
            div .card {
                h2 { "Names" }
                p { "You rewrote the sentence with the names in " code { "claude.md" } ", so change them there: "
                    a href="/memory/edit?path=claude.md" { "edit it" } "." }
            }
        }
    })
}

fn render_zone(current: &CurrentSettings, sent: Option<&SentFields>, problems: &Problems) -> Markup {
    let hint = "Reminders and quiet hours use it: a name such as Europe/Berlin. Empty: the system's.";
    let field = SettingField { kind: FieldKind::Zone, ..SettingField::line("TIMEZONE", "Your time zone", hint) };
    html! {
        h2 { "Time zone" }
        (field.render(current, sent, problems))
    }
}

fn render_times(current: &CurrentSettings, sent: Option<&SentFields>, problems: &Problems) -> Markup {
    let time = |time: chrono::NaiveTime| time.format("%H:%M").to_string();
    let hours = current.config.quiet_hours;
    let (from, until) = hours.map_or_else(Default::default, |hours| (time(hours.from), time(hours.until)));
    let (from, until) = match sent.and_then(|sent| sent.get("QUIET_HOURS")?.split_once('-')) {
        Some((from, until)) => (from.to_owned(), until.to_owned()),
        None => (from, until),
    };
    let levels = InitiativeLevel::ALL
        .map(|level| (level.as_str().to_owned(), capitalize(&format!("{}: {}", level.as_str(), level.describe()))));
    let fields = [
        SettingField::line("TELL_PER_DAY", "How many times a day it may speak unasked", "A number from 0 to 100."),
        SettingField {
            kind: FieldKind::Choice(levels.into()),
            ..SettingField::line("INITIATIVE", "How much it does unasked", SetupStep::Initiative.question().1)
        },
        SettingField {
            kind: FieldKind::Time,
            ..SettingField::line(
                "REFLECT_AT",
                "When it reflects on the day",
                "It sums up each chat's day and tidies its memory, in one commit that can be undone. Empty: never.",
            )
        },
    ];
    html! {
        @if current.given.is_from_environment("QUIET_HOURS") {
            (SettingField::line("QUIET_HOURS", "Quiet hours", "").render(current, sent, problems))
        } @else {
            fieldset .set-pair {
                legend { "Quiet hours" }
                p .meta { "It doesn't speak unasked between these times, by your clock. Empty both for no quiet hours." }
                div .field { label for="quiet-from" { "From" } input #quiet-from type="time" name="QUIET_FROM" value=(from); }
                div .field { label for="quiet-until" { "Until" } input #quiet-until type="time" name="QUIET_UNTIL" value=(until); }
            }
            @if let Some(problem) = problems.get("QUIET_HOURS") { p .set-problem role="alert" { (problem) } }
        }
        @for field in &fields { (field.render(current, sent, problems)) }
    }
}

fn render_budget(current: &CurrentSettings, sent: Option<&SentFields>, problems: &Problems) -> Markup {
    let fields = [
        SettingField::line(
            "DAILY_BUDGET_USD",
            "At most a day, in US dollars",
            "When it is spent, messages wait until midnight. 0: it uses no paid model.",
        ),
        SettingField::line(
            "MONTHLY_BUDGET_USD",
            "At most a month, in US dollars",
            "Empty: no limit except the daily one.",
        ),
    ];
    html! {
        p .meta { "A higher amount needs a code from the terminal; a lower one doesn't." }
        @for field in &fields { (field.render(current, sent, problems)) }
    }
}

#[derive(Deserialize)]
struct NamesForm {
    assistant: String,
    #[serde(default)]
    person: String,
}

/// Writes the names into the standing orders, as a commit of the person.
async fn save_names(State(site): State<Arc<PageSite>>, Form(form): Form<NamesForm>) -> Result<Redirect, PageError> {
    let told = site
        .run_blocking(move |desk| {
            let current = CurrentSettings::read(desk)?;
            let names = parse_names(&form, &current)?;
            write_names(desk, &names)
        })
        .await?;
    Ok(site.redirect_with_note(SettingsPlace::Assistant.path(), told))
}

fn parse_names(form: &NamesForm, current: &CurrentSettings) -> Result<AssistantNames, PageError> {
    let mut names = AssistantNames { person: None, ..AssistantNames::default() };
    for (step, answer) in [(SetupStep::Assistant, form.assistant.trim()), (SetupStep::Person, form.person.trim())] {
        match step.parse_answer(answer, &current.given, &current.config, &names) {
            ParsedAnswer::Names(new) => names = new,
            ParsedAnswer::Wrong(what) => {
                return Err(PageError::Refused(format!("“{answer}” isn't a name: {what}. Nothing was changed.")));
            }
            ParsedAnswer::Changes(_) | ParsedAnswer::Workspace(_) => {}
        }
    }
    Ok(names)
}

fn write_names(desk: &PageContext<'_>, names: &AssistantNames) -> Result<String, PageError> {
    let (config, clock) = (desk.config, desk.config.clock());
    let mut session =
        PersonSession::take(PersonSessionTools { config, clock: clock.as_ref(), redactor: desk.redactor })?;
    let written = commit_names(&mut session, names);
    if let Err(error) = session.release() {
        tracing::warn!(%error, "the lease was not given back after the names changed");
    }
    match written? {
        Some(()) => Ok(format!("Saved: it is called {} from the next wake on.", names.assistant)),
        None => Ok("Nothing to change.".to_owned()),
    }
}

/// Commits the names. `None` if they are there already.
fn commit_names(session: &mut PersonSession<'_>, names: &AssistantNames) -> Result<Option<()>, PageError> {
    session.commit_edits()?;
    let missing = || PageError::Refused("claude.md has no sentence for the names. Nothing was changed.".to_owned());
    let now = session.repo.read_work_tree(CLAUDE).map_err(ProvenanceError::from)?.ok_or_else(missing)?;
    let text = setup::with_names(&now, names).ok_or_else(missing)?;
    if text == now {
        return Ok(None);
    }
    let change = FileChange { path: CLAUDE.to_owned(), base: Some(now), content: Some(text) };
    session.commit_step(&[change], "Change the names", "changed the names")?;
    Ok(Some(()))
}
