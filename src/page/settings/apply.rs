//! Carries out a change: checks it against the server or program that it names, writes it, and says when it takes effect.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use reveille_base::{file::replace_durably, redact::Redactor};
use reveille_config::{Config, GivenSettings, SettingChanges, read_private};
use reveille_policy::{self as policy, folders};
use reveille_tools::mcp::client::{
    amend::{self, NewServer, ServerSwitch},
    pin::Pin,
};

use super::{
    CurrentSettings,
    change::{Checking, PageChange},
    lock, pairing,
    servers::list_offered_tools,
};
use crate::{
    bot,
    page::{
        entrance::SessionMark,
        error::PageError,
        site::{PageContext, PageSite},
    },
    setup::{self, CheckReach, CheckTools, Checked, SetupStep},
};

/// Longest time for all checks of a change.
const CHECK_LIMIT: Duration = Duration::from_secs(30);

/// What became of a change.
pub(super) enum ChangeOutcome {
    /// It is made; the words for the person.
    Made { told: String, reverse: Option<PageChange> },
    /// Nothing was changed, with the reason.
    Failed(String),
}

pub(super) fn carry_out(
    site: &Arc<PageSite>,
    desk: &PageContext<'_>,
    session: SessionMark,
    change: &PageChange,
    checking: Checking,
) -> Result<ChangeOutcome, PageError> {
    let current = CurrentSettings::read(desk)?;
    let home = current.config.home.as_deref();
    Ok(match change {
        PageChange::Settings(changes) => change_settings(site, &current.given, changes, checking),
        PageChange::AddFolder(grant) => to_outcome(
            change_policy(&current.config, |text| folders::add_folder(text, grant)),
            "Saved. It may use this folder from the next wake on.",
            Some(PageChange::RemoveFolder(grant.clone())),
        ),
        PageChange::RemoveFolder(grant) => to_outcome(
            change_policy(&current.config, |text| folders::remove_folder(text, grant).map(Some)),
            "Removed. From the next wake on, it no longer uses this folder.",
            Some(PageChange::AddFolder(grant.clone())),
        ),
        PageChange::AddServer(server) => add_server(site, &current.config, server, checking),
        PageChange::RestoreServer(block) => to_outcome(
            change_servers(site, &current.config, |text| amend::add_server(text, block, home).map(|new| (new, ()))),
            "The server is back.",
            None,
        ),
        PageChange::RemoveServer(name) => {
            let removed = change_servers(site, &current.config, |text| amend::remove_server(text, name, home));
            match removed {
                Ok(block) => ChangeOutcome::Made {
                    told: format!("Removed: {name}. The next wake no longer has its tools."),
                    reverse: Some(PageChange::RestoreServer(block)),
                },
                Err(why) => ChangeOutcome::Failed(why),
            }
        }
        PageChange::SwitchServer(name, switch) => {
            let (told, other) = match switch {
                ServerSwitch::On => ("Switched on. The next wake has its tools.", ServerSwitch::Off),
                ServerSwitch::Off => ("Switched off. The next wake doesn't use it.", ServerSwitch::On),
            };
            let done = change_servers(site, &current.config, |text| {
                amend::switch_server(text, name, *switch, home).map(|new| (new, ()))
            });
            to_outcome(done, told, Some(PageChange::SwitchServer(name.clone(), other)))
        }
        PageChange::Pair => match pairing::offer(site, desk, session, &current.config) {
            Ok(()) => ChangeOutcome::Made { told: String::new(), reverse: None },
            Err(why) => ChangeOutcome::Failed(why),
        },
    })
}

fn to_outcome<T>(done: Result<T, String>, told: &str, reverse: Option<PageChange>) -> ChangeOutcome {
    match done {
        Ok(_) => ChangeOutcome::Made { told: told.to_owned(), reverse },
        Err(why) => ChangeOutcome::Failed(why),
    }
}

fn change_settings(
    site: &Arc<PageSite>,
    given: &GivenSettings,
    changes: &SettingChanges,
    checking: Checking,
) -> ChangeOutcome {
    if let Some(problem) = given.file_problem() {
        return ChangeOutcome::Failed(format!("{problem}. Correct the file first."));
    }
    let config = match given.resolve_with_changes(changes) {
        Ok(config) => config,
        Err(error) => {
            let problems: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
            return ChangeOutcome::Failed(format!("{}.", problems.join("; ")));
        }
    };
    let redactor = site.build_redactor(&config);
    let mut good = Vec::new();
    if checking == Checking::Required {
        match check_changes(&config, changes) {
            Ok(told) => good = told,
            Err(why) => return ChangeOutcome::Failed(redactor.redact(&why)),
        }
    }
    let _writing = lock(&site.settings.writing);
    let reverse = changes.keys().map(|name| (*name, given.get(name).map(|(value, _)| value.to_owned()))).collect();
    if let Err(error) = setup::save_changes(given, changes) {
        return ChangeOutcome::Failed(format!("{error}."));
    }
    let checked = if good.is_empty() { String::new() } else { format!(" {}.", good.join(". ")) };
    let told = redactor.redact(&format!("Saved.{checked} {}", describe_effect(&config, changes)));
    ChangeOutcome::Made { told, reverse: Some(PageChange::Settings(reverse)) }
}

/// Checks the changed settings as `wake init` does. Returns what was found, or the reason against saving.
fn check_changes(config: &Config, changes: &SettingChanges) -> Result<Vec<String>, String> {
    let begun = Instant::now();
    let is_over = || begun.elapsed() > CHECK_LIMIT;
    let is_changed = |step: &SetupStep| {
        step.settings().iter().any(|name| matches!(changes.get(name), Some(Some(_)))) && step.is_applicable(config)
    };
    let temporary = std::env::temp_dir();
    let tools = CheckTools { temporary: &temporary, is_over: &is_over, reach: CheckReach::Others };
    let mut good = Vec::new();
    for step in SetupStep::ALL.into_iter().filter(is_changed) {
        let checking = async { tokio::time::timeout(CHECK_LIMIT, setup::check_step(step, config, tools)).await };
        let checked = tokio::runtime::Handle::current()
            .block_on(checking)
            .unwrap_or_else(|_| Checked::Unknown(format!("no answer within {} s", CHECK_LIMIT.as_secs())));
        match checked {
            Checked::Good(told) if told.is_empty() => {}
            Checked::Good(told) => good.push(format!("{}: {told}", step.title())),
            Checked::Wrong(why) | Checked::Unknown(why) => return Err(format!("{}: {why}.", step.title())),
        }
    }
    Ok(good)
}

/// Says when a change takes effect.
fn describe_effect(config: &Config, changes: &SettingChanges) -> String {
    let is_only = |names: &[&str]| changes.keys().all(|name| names.contains(name));
    if is_only(&["TELEGRAM_BOT_TOKEN", "TELEGRAM_BOT_TOKEN_FILE"]) {
        return match bot::is_bot_running(config) {
            true => "Restart the bot: until then it uses the old token.".to_owned(),
            false => "The bot uses it when it starts: run `bot`.".to_owned(),
        };
    }
    match bot::is_bot_running(config) {
        true => "The next wake uses it; the running bot after a restart.".to_owned(),
        false => "The next wake uses it.".to_owned(),
    }
}

fn change_policy(
    config: &Config,
    make: impl FnOnce(&str) -> Result<Option<String>, policy::amend::AmendError>,
) -> Result<bool, String> {
    policy::change_file(&config.policy_path(), config.home.as_deref(), make).map_err(|error| {
        let why = error.to_string();
        let mut letters = why.chars();
        letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
    })
}

/// Changes `mcp.toml`.
fn change_servers<T>(
    site: &PageSite,
    config: &Config,
    make: impl FnOnce(&str) -> Result<(String, T), amend::AmendServersError>,
) -> Result<T, String> {
    let _writing = lock(&site.settings.writing);
    let path = config.mcp_path();
    let text = read_servers(&path)?;
    let (new, more) = make(&text).map_err(|error| format!("{error}."))?;
    replace_durably(&path, new.as_bytes()).map_err(|error| format!("mcp.toml can't be written: {error}."))?;
    Ok(more)
}

fn read_servers(path: &Path) -> Result<String, String> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Ok(found) if found.is_symlink() => {
            Err("mcp.toml is a link to another file, which I leave to you. Change it in a text editor.".to_owned())
        }
        _ => read_private(path).map(|file| file.text).map_err(|why| format!("mcp.toml {why}.")),
    }
}

/// Tries a new server, and writes it with what it offers. Nothing of that is accepted yet.
fn add_server(site: &Arc<PageSite>, config: &Config, server: &NewServer, checking: Checking) -> ChangeOutcome {
    let parsed = match server.check(config.home.as_deref()) {
        Ok(parsed) => parsed,
        Err(error) => return ChangeOutcome::Failed(error.to_string()),
    };
    let offered = match (list_offered_tools(config, &parsed), checking) {
        (Ok(offered), _) => Some(offered),
        (Err(_), Checking::Waived) => None,
        (Err(why), Checking::Required) => {
            let why = Redactor::new(&parsed.secrets).redact(&site.build_redactor(config).redact(&why));
            return ChangeOutcome::Failed(format!("I tried it, and it didn't work: {why}."));
        }
    };
    let added = change_servers(site, config, |text| {
        amend::add_server(text, &server.render(), config.home.as_deref()).map(|new| (new, ()))
    });
    if let Err(why) = added {
        return ChangeOutcome::Failed(why);
    }
    let told = match offered {
        Some(listing) => {
            let tools = listing.tools.len();
            let pin = Pin { accepted: None, found: Some(listing) };
            match pin.save(&config.mcp_pins_dir(), &server.name) {
                Ok(()) => format!("Added. It answered and offers {tools} tools: look at them below and accept them."),
                Err(error) => format!("Added. What it offers couldn't be kept: {error}. Ask it again below."),
            }
        }
        None => "Added without an answer from it. Ask it below once it works.".to_owned(),
    };
    ChangeOutcome::Made { told, reverse: Some(PageChange::RemoveServer(server.name.clone())) }
}
