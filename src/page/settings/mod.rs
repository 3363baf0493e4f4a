//! Shows the settings and changes them, one form for each group, and lists the rest with their meaning.
//!
//! A form's answers are checked by the same functions as those of `wake init`, and written by the same writer. A change that widens
//! authority waits for a code from the terminal (`codes`). A secret goes in and never comes out: its field is always empty.

mod all;
mod answers;
mod apply;
mod change;
mod codes;
mod confirm;
mod fields;
mod jobs;
mod overview;
mod pairing;
mod permissions;
mod plain;
mod qr;
mod servers;
mod telegram;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use maud::{Markup, html};
use tokio::sync::Notify;

use reveille_base::{clock, random::NoRandomness, redact::Secret};
use reveille_config::{Config, GivenSettings, SettingChanges};

use self::{change::LastChange, codes::PendingChanges, pairing::ShownPairing};
use super::{
    error::PageError,
    frame::{PagePlace, render_frame},
    site::{PageContext, PageSite},
};

pub use codes::CODE_LASTS;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .merge(overview::routes())
        .merge(plain::routes())
        .merge(answers::routes())
        .merge(telegram::routes())
        .merge(permissions::routes())
        .merge(servers::routes())
        .merge(jobs::routes())
        .merge(all::routes())
        .merge(confirm::routes())
}

/// A group of settings with a page of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsPlace {
    Assistant,
    Answers,
    Telegram,
    Times,
    Budget,
    Permissions,
    Servers,
    Jobs,
    All,
}

impl SettingsPlace {
    const ALL: [Self; 8] = [
        Self::Assistant,
        Self::Answers,
        Self::Telegram,
        Self::Times,
        Self::Budget,
        Self::Permissions,
        Self::Servers,
        Self::Jobs,
    ];

    fn path(self) -> &'static str {
        match self {
            Self::Assistant => "/settings/assistant",
            Self::Answers => "/settings/answers",
            Self::Telegram => "/settings/telegram",
            Self::Times => "/settings/times",
            Self::Budget => "/settings/budget",
            Self::Permissions => "/settings/permissions",
            Self::Servers => "/settings/servers",
            Self::Jobs => "/settings/jobs",
            Self::All => "/settings/all",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Assistant => "Name and time zone",
            Self::Answers => "AI model and key",
            Self::Telegram => "Telegram",
            Self::Times => "Quiet hours and initiative",
            Self::Budget => "Budget",
            Self::Permissions => "What it may do",
            Self::Servers => "MCP servers",
            Self::Jobs => "Jobs",
            Self::All => "Every setting",
        }
    }
}

/// What the settings' views keep while the page is served.
#[derive(Default)]
pub(super) struct SettingsDesk {
    pending: Mutex<PendingChanges>,
    /// Wakes the terminal that prints codes.
    wanted: Notify,
    /// Held while a file is read, changed and written.
    writing: Mutex<()>,
    last: Mutex<Option<LastChange>>,
    pairing: Mutex<Option<ShownPairing>>,
}

fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Issues a new code for each change that waits for one, as a text for a terminal. Empty if nothing waits.
///
/// # Errors
/// The system gave no random bytes.
pub(super) fn issue_codes(site: &PageSite) -> Result<Secret, NoRandomness> {
    lock(&site.settings.pending).issue_codes(codes::CodeScope::Every, clock::read_awake_time())
}

/// Waits for a change that needs a code, and returns the code as a text for the terminal.
pub async fn next_code(site: &PageSite) -> Secret {
    loop {
        let issued = lock(&site.settings.pending).issue_codes(codes::CodeScope::Unissued, clock::read_awake_time());
        match issued {
            Ok(notice) if !notice.expose().is_empty() => return notice,
            Ok(_) | Err(NoRandomness) => site.settings.wanted.notified().await,
        }
    }
}

/// The settings as given now, and as they would be resolved: those of the page's start may be outdated.
struct CurrentSettings {
    given: GivenSettings,
    config: Config,
}

impl CurrentSettings {
    fn read(desk: &PageContext<'_>) -> Result<Self, PageError> {
        let given = GivenSettings::gather(desk.config.named_env_file.as_deref());
        match given.with_valid_settings(&SettingChanges::new()).0 {
            Some(config) => Ok(Self { given, config }),
            None => Err(PageError::Refused("The settings can't be read. `wake init --check` says why.".to_owned())),
        }
    }
}

/// Renders a settings page below the overview.
fn render_place(title: &str, content: &Markup) -> Markup {
    let content = html! {
        p .set-back { a href="/settings" { "‹ Settings" } }
        div .set.set-form { (content) }
    };
    render_frame(PagePlace::Settings, title, &content)
}
