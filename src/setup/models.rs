//! The choice of a model: the options, and the settings behind each.

use reveille_base::process;
use reveille_config::{CLAUDE_CODE, Config, GivenSettings, OFFLINE_MODEL, Provider, SettingChanges};
use reveille_model::openai;

use super::{
    SetupQuestion,
    local_models::FoundServer,
    servers::{EXAMPLE_URL, KnownServer, only_model},
};

/// True if a configured model belongs to a server that the person named, as opposed to one found on this machine.
pub(super) fn has_own_server(config: &Config) -> bool {
    config.requested_models().any(|name| Provider::from_model(name) == Provider::OpenAi)
        && !FoundServer::is_usual_address(&config.openai_base_url)
}

/// Returns the reason for refusing a server: a variable in the environment would override the answer, or this server would get a key that
/// belongs to another one.
pub(super) fn find_server_conflict(url: &str, said: &GivenSettings, config: &Config) -> Option<String> {
    if url.trim_end_matches('/') == config.openai_base_url {
        return None;
    }
    let set = ["OPENAI_API_KEY", "OPENAI_API_KEY_FILE", "OPENAI_BASE_URL"];
    let name = set.into_iter().find(|name| said.is_from_environment(name))?;
    Some(format!(
        "{name} is set in the environment, for {}, but this server would get it. Remove it there first",
        config.openai_base_url
    ))
}

/// Returns the server of a choice. `None` for any other choice.
pub(super) fn parse_server_choice(answer: &str) -> Option<&str> {
    answer.strip_prefix(SERVER)
}

/// Builds the changes for another server with one of its models. The old key and price belonged to the previous server.
pub(super) fn build_server_changes(url: &str, model: Option<&str>, config: &Config) -> SettingChanges {
    let mut changes = SettingChanges::new();
    if url.trim_end_matches('/') != config.openai_base_url {
        changes.insert("OPENAI_BASE_URL", Some(url.to_owned()));
        changes.extend(["OPENAI_API_KEY", "OPENAI_API_KEY_FILE", "OPENAI_PRICE"].map(|name| (name, None)));
    }
    if let Some(model) = model {
        changes.insert("MODEL", Some(format!("{}{model}", openai::PREFIX)));
    }
    changes
}

/// Prefix of an answer that means a server elsewhere, followed by its address.
const SERVER: &str = "server ";
/// The answer that keeps a chain of several models.
const CHAIN: &str = "chain";

/// Lists the available models: Claude's, none at all, those of a server on this machine, and those of services with a key of their own. A
/// local server is never the default, since anybody may listen at its port.
pub(super) fn build_model_question(said: &GivenSettings, config: &Config, servers: &[FoundServer]) -> SetupQuestion {
    let option = |id: &str, label: String| (id.to_owned(), label);
    let mut options = vec![option("api", "Claude, with an API key: you pay for what it uses".to_owned())];
    if let Some(program) = process::find_program(&config.claude_code) {
        let label = format!("Claude Code, with its own login or subscription ({})", program.display());
        options.push(option(CLAUDE_CODE, label));
    }
    options.push(option(OFFLINE_MODEL, "no AI model: free, and nothing leaves this machine".to_owned()));
    options.extend(servers.iter().flat_map(FoundServer::options));
    options.extend(KnownServer::all().iter().map(|server| {
        option(
            &format!("{SERVER}{}", server.url),
            format!("{}, with an API key: you pay for what it uses", server.name),
        )
    }));
    let own = "another OpenAI-compatible server, with or without a key".to_owned();
    options.push(option(&format!("{SERVER}{EXAMPLE_URL}"), own));
    if config.model.contains(',') {
        let chain = config.requested_models().collect::<Vec<_>>().join(", then ");
        options.push(option(CHAIN, format!("as set now: {chain}")));
    }
    let current = match config.model.as_str() {
        model @ (OFFLINE_MODEL | CLAUDE_CODE) if said.get("MODEL").is_some() => model,
        chain if chain.contains(',') => CHAIN,
        model
            if Provider::from_model(model) == Provider::OpenAi
                && KnownServer::find_by_url(&config.openai_base_url).is_some() =>
        {
            &format!("{SERVER}{}", config.openai_base_url)
        }
        model if Provider::from_model(model) == Provider::OpenAi => {
            // Enter keeps the present setting, even if its server isn't running now.
            options.push(option(model, format!("{model} at {}, as set now", config.openai_base_url)));
            model
        }
        _ => "api",
    };
    let default = options.iter().position(|(id, _)| id == current).map_or(1, |at| at + 1);
    SetupQuestion::Choice { options, default }
}

/// Returns the settings behind a choice of [`build_model_question`].
pub(super) fn build_model_changes(id: &str, said: &GivenSettings, config: &Config) -> SettingChanges {
    let mut changes = SettingChanges::new();
    match id {
        CLAUDE_CODE => {
            changes.insert("MODEL", Some(CLAUDE_CODE.to_owned()));
            // The full path, since cron searches few directories.
            if let (None, Some(program)) = (said.get("CLAUDE_CODE"), process::find_program(&config.claude_code)) {
                changes.insert("CLAUDE_CODE", Some(program.display().to_string()));
            }
        }
        OFFLINE_MODEL => {
            changes.insert("MODEL", Some(OFFLINE_MODEL.to_owned()));
        }
        _ if let Some(url) = id.strip_prefix(SERVER) => {
            // A named model of that server stays.
            let is_set = config.openai_base_url == url && only_model(config).is_some();
            let usual = KnownServer::find_by_url(url).map_or("model", |server| server.usual_model);
            changes.extend(build_server_changes(url, (!is_set).then_some(usual), config));
        }
        _ if id == config.model && Provider::from_model(id) == Provider::OpenAi => {}
        _ if Provider::from_model(id) == Provider::OpenAi => {
            let (model, url) = FoundServer::split_answer(id);
            changes.insert("MODEL", Some(model.to_owned()));
            changes.insert("OPENAI_BASE_URL", Some(url.to_owned()));
        }
        CHAIN => {}
        // A named Claude model stays.
        _ if Provider::from_model(&config.model) != Provider::Anthropic || config.model.contains(',') => {
            changes.insert("MODEL", None);
        }
        _ => {}
    }
    changes
}
