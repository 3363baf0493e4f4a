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
    settings::Settings,
};

use super::{
    CurrentSettings,
    change::{ChangeApproval, ChangeTerms, Checking, CodeNeed, PageChange},
    lock, pairing,
    servers::list_offered_tools,
};
use crate::{
    bot,
    page::{
        error::PageError,
        site::{PageContext, PageSite},
    },
    setup::{self, CheckReach, CheckTools, Checked, SetupStep},
};

/// Longest time for all checks of a change.
const CHECK_LIMIT: Duration = Duration::from_secs(30);

/// The words for a list that isn't the one that was shown.
pub(super) const MEANWHILE: &str = "What it offers has changed meanwhile. Nothing was accepted: please look again.";

/// What became of a change.
pub(super) enum ChangeOutcome {
    /// It is made; the words for the person.
    Made { told: String, reverse: Option<PageChange> },
    /// Nothing was changed, with the reason.
    Failed(String),
    /// Nothing was changed: the settings of now make it need a code.
    NeedsCode,
}

pub(super) fn carry_out(
    site: &Arc<PageSite>,
    desk: &PageContext<'_>,
    terms: ChangeTerms,
    change: &PageChange,
) -> Result<ChangeOutcome, PageError> {
    let current = CurrentSettings::read(desk)?;
    if !is_approved(terms, change, &current) {
        return Ok(ChangeOutcome::NeedsCode);
    }
    let home = current.config.home.as_deref();
    Ok(match change {
        PageChange::Settings(changes) => {
            let checked = match check_settings(site, &current.given, changes, terms.checking) {
                Ok(checked) => checked,
                Err(why) => return Ok(ChangeOutcome::Failed(why)),
            };
            // The check may have taken its time, and other settings may be in force now.
            let _writing = lock(&site.settings.writing);
            let current = CurrentSettings::read(desk)?;
            match is_approved(terms, change, &current) {
                true => write_settings(site, &current.given, changes, &checked),
                false => ChangeOutcome::NeedsCode,
            }
        }
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
        PageChange::AddServer(server) => add_server(site, &current.config, server, terms.checking),
        PageChange::RestoreServer { name, block } => to_outcome(
            write_server(site, &current.config, name, block),
            "The server is back. Ask it what it offers, and accept that.",
            None,
        ),
        PageChange::RemoveServer(name) => {
            let removed = change_servers(site, &current.config, |text| amend::remove_server(text, name, home));
            // Another server of this name would find its tools accepted.
            let forgotten = removed.and_then(|block| forget_pin(&current.config, name).map(|()| block));
            match forgotten {
                Ok(block) => ChangeOutcome::Made {
                    told: format!("Removed: {name}. The next wake no longer has its tools."),
                    reverse: Some(PageChange::RestoreServer { name: name.clone(), block }),
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
        PageChange::AcceptTools { name, list } => {
            let _writing = lock(&site.settings.writing);
            match is_approved(terms, change, &current) {
                true => accept_tools(&current.config, name, list),
                false => ChangeOutcome::NeedsCode,
            }
        }
        PageChange::Pair => match pairing::offer(site, desk, terms.session, &current.config) {
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

/// Returns true if a change has its code, or needs none under these settings.
fn is_approved(terms: ChangeTerms, change: &PageChange, current: &CurrentSettings) -> bool {
    terms.approval == ChangeApproval::ByCode || change.judge(current) == CodeNeed::Unneeded
}

/// Settings that may be written, and what their check found.
struct CheckedSettings {
    config: Config,
    good: Vec<String>,
}

fn check_settings(
    site: &PageSite,
    given: &GivenSettings,
    changes: &SettingChanges,
    checking: Checking,
) -> Result<CheckedSettings, String> {
    if let Some(problem) = given.file_problem() {
        return Err(format!("{problem}. Correct the file first."));
    }
    let config = given.resolve_with_changes(changes).map_err(|error| {
        let problems: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
        format!("{}.", problems.join("; "))
    })?;
    let good = match checking {
        Checking::Required => {
            check_changes(&config, changes).map_err(|why| site.build_redactor(&config).redact(&why))?
        }
        Checking::Waived => Vec::new(),
    };
    Ok(CheckedSettings { config, good })
}

fn write_settings(
    site: &PageSite,
    given: &GivenSettings,
    changes: &SettingChanges,
    CheckedSettings { config, good }: &CheckedSettings,
) -> ChangeOutcome {
    let reverse = changes.keys().map(|name| (*name, given.get(name).map(|(value, _)| value.to_owned()))).collect();
    if let Err(error) = setup::save_changes(given, changes) {
        return ChangeOutcome::Failed(format!("{error}."));
    }
    let checked = if good.is_empty() { String::new() } else { format!(" {}.", good.join(". ")) };
    let told = format!("Saved.{checked} {}", describe_effect(config, changes));
    let told = site.build_redactor(config).redact(&told);
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

/// Writes a server's lines. Nothing that was accepted of another server of its name counts for it.
fn write_server(site: &PageSite, config: &Config, name: &str, block: &str) -> Result<(), String> {
    let home = config.home.as_deref();
    let text = read_servers(&config.mcp_path())?;
    amend::add_server(&text, block, home).map_err(|error| format!("{error}."))?;
    forget_pin(config, name)?;
    change_servers(site, config, |text| amend::add_server(text, block, home).map(|new| (new, ())))
}

fn forget_pin(config: &Config, name: &str) -> Result<(), String> {
    let done = Pin::remove(&config.mcp_pins_dir(), name);
    done.map_err(|error| format!("What was accepted of {name} can't be forgotten: {error}."))
}

/// Accepts the list that was shown, and no other.
fn accept_tools(config: &Config, name: &str, list: &str) -> ChangeOutcome {
    let dir = config.mcp_pins_dir();
    // The name becomes a file's, so only one from the file counts.
    if Settings::for_workspace(config).get(name).is_none() {
        return ChangeOutcome::Failed(format!("There is no server {name} that is switched on."));
    }
    let Some(found) = Pin::load(&dir, name).found.filter(|found| found.sha256() == list) else {
        return ChangeOutcome::Failed(MEANWHILE.to_owned());
    };
    let done = Pin { accepted: Some(found), found: None }.save(&dir, name).map_err(|error| format!("{error}."));
    to_outcome(done, &format!("Accepted. The AI model sees the tools of {name} from the next wake on."), None)
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
    if let Err(why) = write_server(site, config, &server.name, &server.render()) {
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
