//! A change that a form asks for, its words, and its way: to its code, to its check, to the file.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Redirect, Response};

use reveille_base::{
    approval_text::remove_hidden,
    clock, random,
    redact::is_like_a_key,
    words::{one_line, truncate_text},
};
use reveille_config::{Autonomy, GivenSettings, InitiativeLevel, RepoUrl, SettingChanges, find_setting, is_secret};
use reveille_policy::folders::{FolderAccess, FolderGrant};
use reveille_tools::mcp::client::amend::{NewPlace, NewServer, ServerSwitch};

use super::{
    SettingsPlace,
    apply::{ChangeOutcome, carry_out},
    codes::NotKept,
    confirm, lock,
};
use crate::page::{
    entrance::{Digest, SessionMark, hash_token},
    error::PageError,
    parts::build_address,
    site::PageSite,
};

/// Maximum characters shown of a value.
const MAX_VALUE_CHARS: usize = 160;
/// Random bytes in the number of the last change.
const NUMBER_BYTES: usize = 8;

/// A change that a form asks for. Not printable, because it may hold secrets.
#[derive(Clone)]
pub(super) enum PageChange {
    Settings(SettingChanges),
    AddFolder(FolderGrant),
    RemoveFolder(FolderGrant),
    /// A new server, tried before it is written.
    AddServer(NewServer),
    /// A server that was removed, with its lines.
    RestoreServer(String),
    RemoveServer(String),
    SwitchServer(String, ServerSwitch),
    /// Offers a pairing code.
    Pair,
}

impl PageChange {
    /// Returns the digest of all values.
    pub(super) fn digest(&self) -> Digest {
        let text = match self {
            Self::Settings(changes) => format!("settings {changes:?}"),
            Self::AddFolder(grant) => format!("add folder {grant:?}"),
            Self::RemoveFolder(grant) => format!("remove folder {grant:?}"),
            Self::AddServer(server) => format!("add server {server:?}"),
            Self::RestoreServer(block) => format!("restore server {block:?}"),
            Self::RemoveServer(name) => format!("remove server {name:?}"),
            Self::SwitchServer(name, switch) => format!("switch server {name:?} {switch:?}"),
            Self::Pair => "pair".to_owned(),
        };
        hash_token(&text)
    }
}

/// A change with its words for the person, which hold no secret.
#[derive(Clone)]
pub(super) struct ProposedChange {
    pub(super) words: Vec<String>,
    pub(super) change: PageChange,
    /// The page that asked.
    pub(super) back: SettingsPlace,
    pub(super) needs_code: bool,
}

impl ProposedChange {
    /// Proposes changes of settings. `None` without any.
    pub(super) fn from_changes(
        given: &GivenSettings,
        mut changes: SettingChanges,
        back: SettingsPlace,
    ) -> Option<Self> {
        changes.retain(|name, value| given.get(name).map(|(value, _)| value) != value.as_deref());
        if changes.is_empty() {
            return None;
        }
        let words = changes.iter().map(|(name, value)| describe_change(given, name, value.as_deref())).collect();
        let needs_code = !given.list_widened(&changes).is_empty();
        Some(Self { words, change: PageChange::Settings(changes), back, needs_code })
    }

    /// Proposes a change that is no setting.
    pub(super) fn new(words: &str, change: PageChange, back: SettingsPlace) -> Self {
        let needs_code = match &change {
            PageChange::AddFolder(_) | PageChange::AddServer(_) | PageChange::RestoreServer(_) => true,
            PageChange::SwitchServer(_, switch) => *switch == ServerSwitch::On,
            PageChange::Pair => true,
            PageChange::Settings(_) | PageChange::RemoveFolder(_) | PageChange::RemoveServer(_) => false,
        };
        Self { words: vec![clean_words(words)], change, back, needs_code }
    }
}

/// The last change that was made here, which can be taken back.
pub(super) struct LastChange {
    pub(super) number: String,
    pub(super) words: Vec<String>,
    pub(super) place: SettingsPlace,
    pub(super) reverse: Option<PageChange>,
}

/// How strictly a change is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checking {
    Required,
    /// The person saves it although its check failed.
    Waived,
}

/// Makes a change, or lets it wait for its code.
pub(super) async fn submit(
    site: &Arc<PageSite>,
    session: SessionMark,
    proposal: ProposedChange,
) -> Result<Response, PageError> {
    let needs_code = proposal.needs_code;
    let kept = lock(&site.settings.pending).add(session, proposal, clock::read_awake_time());
    let number = kept.map_err(|why| match why {
        NotKept::Full => PageError::Refused(
            "Too many changes wait for a code. Finish or drop one, or wait ten minutes. Nothing was changed."
                .to_owned(),
        ),
        NotKept::NoRandomness => PageError::Broken,
    })?;
    if needs_code {
        site.settings.wanted.notify_one();
        return Ok(Redirect::to(&build_address(confirm::PATH, &[("change", &number)])).into_response());
    }
    finish(site, session, &number, Checking::Required).await
}

/// Makes a change that needs no code any more. If its check fails, it waits for the person's decision.
pub(super) async fn finish(
    site: &Arc<PageSite>,
    session: SessionMark,
    number: &str,
    checking: Checking,
) -> Result<Response, PageError> {
    let approved = lock(&site.settings.pending).approved(number, session, clock::read_awake_time());
    let Some(proposal) = approved else { return Err(confirm::gone()) };
    let (of_site, of_change) = (Arc::clone(site), proposal.clone());
    let outcome =
        site.run_blocking(move |desk| carry_out(&of_site, desk, session, &of_change.change, checking)).await?;
    match outcome {
        ChangeOutcome::Made { told, reverse } => {
            lock(&site.settings.pending).forget(number, session);
            let ProposedChange { words, back, .. } = proposal;
            let number = random::generate_bytes::<NUMBER_BYTES>().map(|bytes| random::format_hex(&bytes));
            if let Ok(number) = number {
                *lock(&site.settings.last) = Some(LastChange { number, words, place: back, reverse });
            }
            // A pairing code speaks for itself.
            Ok(match told.is_empty() {
                true => Redirect::to(back.path()).into_response(),
                false => site.redirect_with_note(back.path(), told).into_response(),
            })
        }
        ChangeOutcome::Failed(why) => {
            lock(&site.settings.pending).note_failure(number, &why);
            Ok(Redirect::to(&build_address(confirm::PATH, &[("change", number)])).into_response())
        }
    }
}

/// Describes a change on one line, without secrets.
pub(super) fn describe_change(given: &GivenSettings, name: &'static str, value: Option<&str>) -> String {
    let before = given.get(name).map(|(value, _)| value);
    let default = find_setting(name).map_or("", |setting| setting.default);
    let shown = |value: Option<&str>| match value {
        Some(value) => format_value(name, value),
        None if default.is_empty() => "none".to_owned(),
        None => format!("{}, the default", format_value(name, default)),
    };
    let words = match value {
        Some(_) if is_secret(name) => "a new value, which isn't shown".to_owned(),
        None if is_secret(name) => "removed".to_owned(),
        value => format!("{} instead of {}", shown(value), shown(before)),
    };
    clean_words(&format!("{name}: {words}"))
}

/// Formats a value for display. What may be a secret isn't shown.
pub(super) fn format_value(name: &str, value: &str) -> String {
    if is_secret(name) || is_like_a_key(value) {
        return "a value that isn't shown".to_owned();
    }
    let shown = match find_level(name, value) {
        Some(meaning) => format!("{value} ({meaning})"),
        None if value.contains("://") => RepoUrl::new(value).to_string(),
        None => value.to_owned(),
    };
    truncate_text(&one_line(&shown), MAX_VALUE_CHARS)
}

/// Finds the meaning of a level.
fn find_level(name: &str, value: &str) -> Option<&'static str> {
    match name {
        "AUTONOMY" => [Autonomy::AskAll, Autonomy::Smart, Autonomy::Full]
            .into_iter()
            .find(|level| level.as_str() == value)
            .map(Autonomy::describe),
        "INITIATIVE" => {
            InitiativeLevel::ALL.into_iter().find(|level| level.as_str() == value).map(InitiativeLevel::describe)
        }
        _ => None,
    }
}

/// Makes one line without control and invisible characters: a terminal shows it, too.
fn clean_words(text: &str) -> String {
    one_line(&remove_hidden(text)).chars().filter(|c| !c.is_control()).collect()
}

/// Describes where a new server is, for the person who gives the code.
pub(super) fn describe_place(place: &NewPlace) -> String {
    match place {
        NewPlace::Command(words) => format!("runs the program {}", words.join(" ")),
        NewPlace::Url { url, token: None } => format!("is at {url}"),
        NewPlace::Url { url, token: Some(_) } => format!("is at {url}, with a token"),
    }
}

/// Describes what a folder is granted for.
pub(super) fn describe_grant(grant: &FolderGrant) -> String {
    match grant.access {
        FolderAccess::Read => format!("It may read {}", grant.path),
        FolderAccess::Write => format!("It may read and write {}", grant.path),
    }
}
