//! What the assistant may do without asking, and the folders that it may read or write.

use std::sync::Arc;

use axum::{
    Extension, Form, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_config::Autonomy;
use reveille_policy::{
    self as policy,
    folders::{self, FolderAccess, FolderGrant},
};

use super::{
    CurrentSettings, SettingsPlace,
    change::{self, PageChange, ProposedChange, describe_grant},
    confirm::render_last_change,
    fields::{
        FieldKind, Problems, SentFields, SettingField, capitalize, parse_fields, render_code_badge, render_form_end,
    },
    render_place,
};
use crate::page::{
    entrance::SessionMark,
    error::PageError,
    notes::NoteQuery,
    site::{PageContext, PageSite},
};

const PLACE: SettingsPlace = SettingsPlace::Permissions;
/// The hint of the autonomy.
const HINT: &str = "It always asks before what can't be undone. Questions come to your chat, and no answer means no.";

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route(PLACE.path(), get(show_permissions).post(save_autonomy))
        .route("/settings/folders/add", post(add_folder))
        .route("/settings/folders/remove", post(remove_folder))
}

#[derive(Deserialize)]
struct FolderForm {
    access: String,
    path: String,
}

impl FolderForm {
    fn into_grant(self) -> FolderGrant {
        let access = if self.access == "write" { FolderAccess::Write } else { FolderAccess::Read };
        FolderGrant { access, path: self.path.trim().to_owned() }
    }
}

async fn show_permissions(
    State(site): State<Arc<PageSite>>,
    Query(said): Query<NoteQuery>,
) -> Result<Markup, PageError> {
    let of_site = Arc::clone(&site);
    site.run_blocking(move |desk| render_page(&of_site, desk, &said, None)).await
}

async fn save_autonomy(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(sent): Form<SentFields>,
) -> Result<Response, PageError> {
    let parsed = site.run_blocking(move |desk| {
        let current = CurrentSettings::read(desk)?;
        let changes = parse_fields(["AUTONOMY"], &sent, &current);
        Ok(changes.map(|changes| ProposedChange::from_changes(&current.given, changes, PLACE)))
    });
    match parsed.await? {
        Ok(Some(proposal)) => change::submit(&site, session, proposal).await,
        Ok(None) => Ok(site.redirect_with_note(PLACE.path(), "Nothing to change.".to_owned()).into_response()),
        Err(problems) => Err(PageError::Refused(problems.into_values().collect())),
    }
}

async fn add_folder(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(form): Form<FolderForm>,
) -> Result<Response, PageError> {
    let grant = form.into_grant();
    let tried = grant.clone();
    // What the file wouldn't take is said before a code is asked for.
    let of_site = Arc::clone(&site);
    let refused = site
        .run_blocking(move |desk| {
            let text = policy::read_text(&desk.config.policy_path()).map_err(PageError::Refused)?;
            let why = match folders::add_folder(&text, &tried) {
                Ok(Some(_)) => return Ok(None),
                Ok(None) => "it has this folder already".to_owned(),
                Err(error) => error.to_string(),
            };
            let why = format!("{}. Nothing was changed.", capitalize(&why));
            Ok(Some(render_page(&of_site, desk, &NoteQuery::default(), Some((&tried, &why)))?))
        })
        .await?;
    if let Some(page) = refused {
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    }
    let proposal = ProposedChange::new(&describe_grant(&grant), PageChange::AddFolder(grant), PLACE);
    change::submit(&site, session, proposal).await
}

async fn remove_folder(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(form): Form<FolderForm>,
) -> Result<Response, PageError> {
    let grant = form.into_grant();
    let words = format!("No longer: {}", describe_grant(&grant));
    change::submit(&site, session, ProposedChange::new(&words, PageChange::RemoveFolder(grant), PLACE)).await
}

fn render_page(
    site: &PageSite,
    desk: &PageContext<'_>,
    said: &NoteQuery,
    refused: Option<(&FolderGrant, &str)>,
) -> Result<Markup, PageError> {
    let current = CurrentSettings::read(desk)?;
    let levels = [Autonomy::AskAll, Autonomy::Smart, Autonomy::Full];
    let options = levels.map(|level| (level.as_str().to_owned(), capitalize(level.describe())));
    let field = SettingField {
        kind: FieldKind::Choice(options.into()),
        ..SettingField::line("AUTONOMY", "How much it does without asking you", HINT)
    };
    let content = html! {
        (render_last_change(site, said, Some(PLACE)))
        p .meta { "Whatever lets it do more needs a code from the terminal. Whatever lets it do less takes effect at once." }
        form .card action=(PLACE.path()) method="post" {
            (field.render(&current, None, &Problems::new()))
            (render_form_end(&current))
        }
        (render_folders(desk, &current, refused))
    };
    Ok(render_place(PLACE.title(), &content))
}

fn render_folders(desk: &PageContext<'_>, current: &CurrentSettings, refused: Option<(&FolderGrant, &str)>) -> Markup {
    let path = current.config.policy_path();
    let listed =
        policy::read_text(&path).and_then(|text| folders::list_folders(&text).map_err(|error| error.to_string()));
    html! {
        section .card aria-labelledby="folders" {
            h2 #folders { "Folders" }
            p .meta {
                "It always has its scratch folder and its memory. It copies what it changes elsewhere first, so that it can be undone."
            }
            @match listed {
                Err(why) => { p .note.bad { (desk.clean_text(&capitalize(&why))) } },
                Ok(grants) => {
                    @if grants.is_empty() { p .set-empty { "No folders of yours." } }
                    @else { (render_grants(desk, &grants)) }
                    (render_new_folder(refused))
                },
            }
            p .meta { "They stand in " code { (path.display()) } ", together with your rules." }
        }
    }
}

fn render_grants(desk: &PageContext<'_>, grants: &[FolderGrant]) -> Markup {
    html! {
        ul .list.set-rows {
            @for grant in grants {
                li {
                    div {
                        code { (desk.clean_text(&grant.path)) } " "
                        @match grant.access {
                            FolderAccess::Read => { span .badge { "reads" } },
                            FolderAccess::Write => { span .badge.warn { "reads and writes" } },
                        }
                    }
                    form action="/settings/folders/remove" method="post" {
                        input type="hidden" name="access" value=(grant.access.name());
                        input type="hidden" name="path" value=(grant.path);
                        button type="submit" aria-label={ "Remove " (desk.clean_text(&grant.path)) } { "Remove" }
                    }
                }
            }
        }
    }
}

fn render_new_folder(refused: Option<(&FolderGrant, &str)>) -> Markup {
    let (path, access) = refused.map_or(("", FolderAccess::Read), |(grant, _)| (grant.path.as_str(), grant.access));
    html! {
        form action="/settings/folders/add" method="post" {
            h3 { "Add a folder " (render_code_badge()) }
            div .field {
                label for="path" { "The folder" }
                p #path-hint .meta { "Its whole path; " code { "~/" } " is your home folder." }
                input #path name="path" type="text" value=(path) required autocomplete="off" spellcheck="false"
                    placeholder="~/notes" aria-describedby="path-hint";
                @if let Some((_, why)) = refused { p .set-problem role="alert" { (why) } }
            }
            fieldset {
                legend { "It may" }
                @for (one, words) in [(FolderAccess::Read, "read it"), (FolderAccess::Write, "read and write it")] {
                    label .set-choice {
                        input type="radio" name="access" value=(one.name()) checked[one == access];
                        span { (words) }
                    }
                }
            }
            p .actions { button type="submit" { "Add the folder" } }
        }
    }
}
