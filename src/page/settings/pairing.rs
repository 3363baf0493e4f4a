//! Offers a pairing code, and shows it to the session that asked, as a code and as a link for a telephone's camera.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use reveille_base::{approval_text::remove_hidden, redact::Secret, words::one_line};
use reveille_channels::telegram::Telegram;
use reveille_config::Config;
use reveille_store::{CodeState, Paired, Store, access};

use super::{lock, qr::render_qr};
use crate::{
    bot::{self, pairing::CODE_LIFE},
    page::{
        entrance::SessionMark,
        error::PageError,
        parts::{escape_and_clean, render_time},
        site::{PageContext, PageSite},
    },
};

/// Longest wait for Telegram.
const PATIENCE: Duration = Duration::from_secs(15);

/// A pairing code that one session sees.
pub(super) struct ShownPairing {
    session: SessionMark,
    /// The number of its row.
    id: i64,
    code: Secret,
    /// The bot's name for links.
    username: String,
    until: DateTime<Utc>,
}

/// Offers a code to this session. A code of before expires by itself.
pub(super) fn offer(
    site: &Arc<PageSite>,
    desk: &PageContext<'_>,
    session: SessionMark,
    config: &Config,
) -> Result<(), String> {
    let token = config.telegram_token.as_ref().ok_or("There is no bot yet: save its token first.")?;
    let telegram =
        Telegram::new(&config.telegram_api_url, token.expose().to_owned()).map_err(|error| error.to_string())?;
    let me = async { tokio::time::timeout(PATIENCE, telegram.get_me()).await };
    let me = match tokio::runtime::Handle::current().block_on(me) {
        Ok(Ok(me)) => me,
        Ok(Err(error)) => {
            let why = site.build_redactor(config).redact(&one_line(&remove_hidden(&error.to_string())));
            return Err(format!("Telegram can't be asked for your bot's name: {why}."));
        }
        Err(_) => return Err("Telegram gave no answer.".to_owned()),
    };
    let offered = bot::offer_code(config, desk.now).map_err(|error| format!("{error}."))?;
    *lock(&site.settings.pairing) = Some(ShownPairing {
        session,
        id: offered.id,
        code: Secret::new(offered.code.to_string()),
        username: me.username,
        until: desk.now + CODE_LIFE,
    });
    Ok(())
}

/// Returns the paired people, and `true` if anybody may speak already.
pub(super) fn list_people(config: &Config, store: Option<&Store>) -> Result<(Vec<Paired>, bool), PageError> {
    let Some(store) = store else { return Ok((Vec::new(), access::is_anybody_admitted(config))) };
    let admitted = access::admit_paired_people(config, store)?;
    Ok((store.people().list_paired_people()?, access::is_anybody_admitted(&admitted)))
}

/// Renders the code that this session was offered, while it is good.
pub(super) fn render_code(
    site: &PageSite,
    desk: &PageContext<'_>,
    session: SessionMark,
    store: Option<&Store>,
    config: &Config,
) -> Result<Option<Markup>, PageError> {
    let mut shown = lock(&site.settings.pairing);
    let Some(pairing) = shown.as_ref().filter(|pairing| pairing.session.is_same(&session)) else { return Ok(None) };
    let state = match store {
        Some(store) => store.people().code_state(pairing.id, desk.now)?,
        None => CodeState::Void,
    };
    if state != CodeState::Open || desk.now >= pairing.until {
        *shown = None;
        return Ok(None);
    }
    let code = pairing.code.expose();
    let link = format!("https://t.me/{}?start={code}", pairing.username);
    Ok(Some(html! {
        div .set-pairing {
            @if let Some(qr) = render_qr(&link, "QR code of the link that pairs your telephone") { (qr) }
            div {
                p { "Scan this with your telephone's camera and press Start. Or send this code to "
                    strong { "@" (escape_and_clean(desk, &pairing.username)) } " on Telegram:" }
                p .set-pair-code { (code) }
                p .meta { "It works once, until " (render_time(desk, pairing.until)) ". From then on it listens to whoever sends it first." }
                @if !bot::is_bot_running(config) {
                    p .note.warn { "No bot is running, so nobody accepts the code yet. Run " code { "bot" } " in a terminal." }
                }
            }
        }
    }))
}
