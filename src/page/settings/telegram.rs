//! The Telegram bot: its token, who is paired with it, and a code to pair.

use std::sync::Arc;

use axum::{
    Extension, Form, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use maud::{Markup, html};

use reveille_store::Paired;

use super::{
    CurrentSettings, SettingsPlace,
    change::{self, PageChange, ProposedChange},
    confirm::render_last_change,
    fields::{Problems, SentFields, SettingField, parse_fields, render_code_badge, render_form_end},
    pairing, render_place,
};
use crate::page::{
    entrance::SessionMark,
    error::PageError,
    notes::NoteQuery,
    parts::{escape_and_clean, render_time},
    site::{PageContext, PageSite},
};

const PLACE: SettingsPlace = SettingsPlace::Telegram;
const TOKEN: &str = "TELEGRAM_BOT_TOKEN";

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route(PLACE.path(), get(show_telegram).post(save_token)).route("/settings/pair", post(offer_code))
}

async fn show_telegram(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Query(said): Query<NoteQuery>,
) -> Result<Markup, PageError> {
    let of_site = Arc::clone(&site);
    site.run_blocking(move |desk| render_page(&of_site, desk, session, &said, &Problems::new())).await
}

async fn save_token(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(sent): Form<SentFields>,
) -> Result<Response, PageError> {
    let of_site = Arc::clone(&site);
    let parsed = site
        .run_blocking(move |desk| {
            let current = CurrentSettings::read(desk)?;
            match parse_fields([TOKEN], &sent, &current) {
                Ok(changes) => Ok(Ok(ProposedChange::from_changes(&current.given, changes, PLACE))),
                Err(problems) => Ok(Err(render_page(&of_site, desk, session, &NoteQuery::default(), &problems)?)),
            }
        })
        .await?;
    match parsed {
        Ok(Some(proposal)) => change::submit(&site, session, proposal).await,
        Ok(None) => Ok(site.redirect_with_note(PLACE.path(), "Nothing to change.".to_owned()).into_response()),
        Err(page) => Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response()),
    }
}

async fn offer_code(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
) -> Result<Response, PageError> {
    let words = "Listen to whoever sends a pairing code to your bot";
    change::submit(&site, session, ProposedChange::new(words, PageChange::Pair, PLACE)).await
}

fn render_page(
    site: &PageSite,
    desk: &PageContext<'_>,
    session: SessionMark,
    said: &NoteQuery,
    problems: &Problems,
) -> Result<Markup, PageError> {
    let current = CurrentSettings::read(desk)?;
    let store = desk.open_store()?;
    let (people, is_anybody) = pairing::list_people(&current.config, store.as_ref())?;
    let code = pairing::render_code(site, desk, session, store.as_ref(), &current.config)?;
    let has_bot = current.config.telegram_token.is_some();
    let hint = "On Telegram, write /newbot to @BotFather and paste the token it gives you.";
    let content = html! {
        (render_last_change(site, said, Some(PLACE)))
        // Nobody has typed anything in here, so it can always be refreshed.
        section #live-telegram .card data-live aria-labelledby="people" {
            h2 #people { "Who may talk to it" }
            (render_people(desk, &people, is_anybody))
            @if let Some(code) = code { (code) }
            @else if has_bot {
                form action="/settings/pair" method="post" {
                    p .actions {
                        button .first[!is_anybody] type="submit" {
                            @if is_anybody { "Pair another person" } @else { "Pair your telephone" }
                        }
                        (render_code_badge())
                    }
                }
            } @else {
                p .meta { "First save your bot's token below." }
            }
        }
        form .card action=(PLACE.path()) method="post" {
            h2 { "The bot" }
            (SettingField::line(TOKEN, "Its token", hint).render(&current, None, problems))
            (render_form_end(&current))
        }
    };
    Ok(render_place(PLACE.title(), &content))
}

fn render_people(desk: &PageContext<'_>, people: &[Paired], is_anybody: bool) -> Markup {
    html! {
        @if people.is_empty() {
            p .set-empty {
                @if is_anybody { "The people of ALLOWED_CHAT_IDS. Nobody has paired." } @else { "Nobody yet." }
            }
        } @else {
            ul .list.set-rows {
                @for person in people {
                    li {
                        div {
                            span .badge.ok { "paired" } " "
                            @if person.name.is_empty() { (person.user_id) }
                            @else { (escape_and_clean(desk, &person.name)) span .meta { " · " (person.user_id) } }
                            @if let Some(at) = person.at { span .meta { " · since " (render_time(desk, at)) } }
                        }
                    }
                }
            }
            p .meta { code { "bot unpair" } " ends a pairing." }
        }
    }
}
