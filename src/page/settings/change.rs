//! A change that a form asks for, its words, and its way: to its code, to its check, to the file.

use std::{path::Path, sync::Arc};

use axum::response::{IntoResponse as _, Redirect, Response};

use reveille_base::{
    approval_text::remove_hidden,
    clock, random,
    redact::{Redactor, is_like_a_key},
    words::{one_line, truncate_text},
};
use reveille_config::{Autonomy, GivenSettings, InitiativeLevel, RepoUrl, SettingChanges, find_setting, is_secret};
use reveille_policy::folders::{FolderAccess, FolderGrant};
use reveille_tools::mcp::client::{
    amend::{NewPlace, NewServer, ServerSwitch},
    pin::Pin,
    settings::{ServerPlace, Settings},
};

use super::{
    CurrentSettings, SettingsPlace,
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

/// Maximum characters shown of a value. Whoever gives a code has to see the whole new one, so a longer one isn't changed here.
const MAX_VALUE_CHARS: usize = 2_000;
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
    RestoreServer {
        name: String,
        block: String,
    },
    RemoveServer(String),
    SwitchServer(String, ServerSwitch),
    /// The tools of a server, by the digest of the list that was shown.
    AcceptTools {
        name: String,
        list: String,
    },
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
            Self::RestoreServer { block, .. } => format!("restore server {block:?}"),
            Self::RemoveServer(name) => format!("remove server {name:?}"),
            Self::SwitchServer(name, switch) => format!("switch server {name:?} {switch:?}"),
            Self::AcceptTools { name, list } => format!("accept tools {name:?} {list:?}"),
            Self::Pair => "pair".to_owned(),
        };
        hash_token(&text)
    }

    /// Judges if this change widens authority under these settings.
    pub(super) fn judge(&self, current: &CurrentSettings) -> CodeNeed {
        let is_wider = match self {
            Self::Settings(changes) => !current.given.list_widened(changes).is_empty(),
            Self::AddFolder(_) | Self::AddServer(_) | Self::RestoreServer { .. } => true,
            Self::SwitchServer(_, switch) => *switch == ServerSwitch::On,
            // The first list is accepted by a click. Another one may come from a server that has changed its mind.
            Self::AcceptTools { name, list } => {
                let accepted = Pin::load(&current.config.mcp_pins_dir(), name).accepted;
                accepted.is_some_and(|accepted| accepted.sha256() != *list)
            }
            // Even the first person: a browser's session alone must not let anybody in.
            Self::Pair => true,
            Self::RemoveFolder(_) | Self::RemoveServer(_) => false,
        };
        if is_wider { CodeNeed::Required } else { CodeNeed::Unneeded }
    }
}

/// A change with its words for the person, which hold no secret.
#[derive(Clone)]
pub(super) struct ProposedChange {
    pub(super) words: Vec<String>,
    pub(super) change: PageChange,
    /// The page that asked.
    pub(super) back: SettingsPlace,
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
        Some(Self { words, change: PageChange::Settings(changes), back })
    }

    /// Proposes a change that is no setting.
    pub(super) fn new(words: &str, change: PageChange, back: SettingsPlace) -> Self {
        Self { words: vec![clean_words(words)], change, back }
    }

    /// Describes the change by the settings of now, which may differ from those of the form.
    pub(super) fn renew_words(self, given: &GivenSettings) -> Self {
        let PageChange::Settings(changes) = &self.change else { return self };
        let renewed = Self::from_changes(given, changes.clone(), self.back);
        Self { words: renewed.map_or(self.words, |renewed| renewed.words), ..self }
    }
}

/// Whether a change waits for a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeNeed {
    Required,
    Unneeded,
}

/// Why a change may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeApproval {
    ByCode,
    /// It needed no code when it was asked for. It is judged again before it is made, since other settings may be in force by then.
    NoneNeeded,
}

/// Who makes a change, why it may be made, and how strictly it is checked.
#[derive(Clone, Copy)]
pub(super) struct ChangeTerms {
    pub(super) session: SessionMark,
    pub(super) approval: ChangeApproval,
    pub(super) checking: Checking,
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
    if let PageChange::Settings(changes) = &proposal.change
        && let Some(name) = find_long_value(changes)
    {
        return Err(PageError::Refused(format!(
            "{name} is longer than {MAX_VALUE_CHARS} characters, so a terminal can't show it whole. Write it into the file of the settings. \
             Nothing was changed."
        )));
    }
    let change = proposal.change.clone();
    let need = site.run_blocking(move |desk| Ok(change.judge(&CurrentSettings::read(desk)?))).await?;
    let kept = lock(&site.settings.pending).add(session, proposal, need, clock::read_awake_time());
    let number = kept.map_err(|why| match why {
        NotKept::Full => PageError::Refused(
            "Too many changes wait for a code. Finish or drop one, or wait ten minutes. Nothing was changed."
                .to_owned(),
        ),
        NotKept::NoRandomness => PageError::Broken,
    })?;
    if need == CodeNeed::Required {
        site.settings.wanted.notify_one();
        return Ok(redirect_to_confirm(&number));
    }
    finish(site, session, &number, Checking::Required).await
}

fn redirect_to_confirm(number: &str) -> Response {
    Redirect::to(&build_address(confirm::PATH, &[("change", number)])).into_response()
}

/// Makes a change that needs no code any more. If its check fails, it waits for the person's decision.
pub(super) async fn finish(
    site: &Arc<PageSite>,
    session: SessionMark,
    number: &str,
    checking: Checking,
) -> Result<Response, PageError> {
    let approved = lock(&site.settings.pending).approved(number, session, clock::read_awake_time());
    let Some((proposal, approval)) = approved else { return Err(confirm::gone()) };
    let (of_site, change) = (Arc::clone(site), proposal.change.clone());
    let terms = ChangeTerms { session, approval, checking };
    let outcome = site.run_blocking(move |desk| carry_out(&of_site, desk, terms, &change)).await?;
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
            Ok(redirect_to_confirm(number))
        }
        ChangeOutcome::NeedsCode => {
            let renewed =
                site.run_blocking(move |desk| Ok(proposal.renew_words(&CurrentSettings::read(desk)?.given))).await?;
            lock(&site.settings.pending).ask_for_code(number, session, renewed);
            site.settings.wanted.notify_one();
            Ok(redirect_to_confirm(number))
        }
    }
}

/// Finds a setting whose new value can't be shown whole.
fn find_long_value(changes: &SettingChanges) -> Option<&'static str> {
    let is_long = |value: &Option<String>| value.as_ref().is_some_and(|value| value.chars().count() > MAX_VALUE_CHARS);
    changes.iter().find(|(name, value)| !is_secret(name) && is_long(value)).map(|(name, _)| *name)
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

/// Describes a server by its lines, without the secrets among them.
pub(super) fn describe_block(block: &str, home: Option<&Path>) -> String {
    let Settings { servers, off, .. } = Settings::parse(block, home);
    let words = servers.iter().chain(&off).map(|server| {
        let words = match &server.place {
            ServerPlace::Command { command, .. } => format!("it runs the program {}", command.join(" ")),
            ServerPlace::Url { url, .. } => format!("it is at {url}"),
        };
        Redactor::new(&server.secrets).redact(&words)
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Describes what a folder is granted for.
pub(super) fn describe_grant(grant: &FolderGrant) -> String {
    match grant.access {
        FolderAccess::Read => format!("It may read {}", grant.path),
        FolderAccess::Write => format!("It may read and write {}", grant.path),
    }
}
