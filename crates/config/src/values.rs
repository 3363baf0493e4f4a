//! Parsers for single values. Each returns the value, or a description of the expected one that fits after "expected".

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::NaiveTime;

use reveille_base::{disk::Reserve, types::ChatRef, zone::Tz};

use super::types::{Autonomy, EmbedModel, LogFormat, QuietHours, RepoUrl};

/// The maximum number of listed chats.
const MAX_CHATS: usize = 256;
/// The maximum length of a model or repository name in bytes.
const MAX_NAME_BYTES: usize = 100;
/// The maximum of settings in minutes: one day.
const MAX_MINUTES: u64 = 24 * 60;
/// The maximum budget in US dollars; a larger one is taken for a typing error.
const MAX_BUDGET_USD: f64 = 10_000.0;

/// The maximum disk reserve: 1 TiB in MiB.
const MAX_RESERVE_MIB: u32 = 1 << 20;
/// The maximum time that history is kept in days, about ten years.
const MAX_KEEP_DAYS: u64 = 3_650;

/// Returns true if a value looks like a secret key in the wrong setting.
pub(super) fn looks_secret(value: &str) -> bool {
    const SHORTEST_TOKEN: usize = 30;
    let token = value.split([',', ' ']).any(|part| {
        part.split_once(':').is_some_and(|(id, rest)| {
            rest.len() >= SHORTEST_TOKEN && !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit())
        })
    });
    token || value.contains("sk-ant-")
}

pub(super) fn parse_absolute_path(value: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    const EXPECTED: &str = "an absolute path (or one that begins with ~/)";
    let path = match value.strip_prefix("~/") {
        Some(below) => home.ok_or_else(|| format!("{EXPECTED}, and ~ is unknown because HOME isn't set"))?.join(below),
        None => PathBuf::from(value),
    };
    let plain = path.is_absolute() && !path.components().any(|c| c == std::path::Component::ParentDir);
    if plain && !value.contains('\0') { Ok(path) } else { Err(format!("{EXPECTED}, without ..")) }
}

/// Parses a program's path, or its name on `PATH`.
pub(super) fn parse_program(value: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    if value.contains('/') {
        return parse_absolute_path(value, home);
    }
    let is_plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) && !value.starts_with('-');
    if is_plain { Ok(value.into()) } else { Err("the name of a program, or its absolute path".to_owned()) }
}

pub(super) fn parse_bot_token(value: &str) -> Result<String, String> {
    let rest = value.split_once(':').map_or("", |(_, rest)| rest);
    let good = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if good && bot_id(value).is_some() {
        Ok(value.to_owned())
    } else {
        Err("the token from @BotFather: digits, a colon, then letters and digits".to_owned())
    }
}

/// Parses the numeric id before a token's colon.
pub(super) fn bot_id(token: &str) -> Option<i64> {
    let (id, _) = token.split_once(':')?;
    if id.bytes().all(|b| b.is_ascii_digit()) { id.parse().ok().filter(|id| *id > 0) } else { None }
}

pub(super) fn parse_api_key(value: &str) -> Result<String, String> {
    if value.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(value.to_owned())
    } else {
        Err("an API key: one word without spaces".to_owned())
    }
}

pub(super) fn parse_chats(value: &str) -> Result<Vec<ChatRef>, String> {
    let expected = || {
        "numeric chat ids, separated by commas, such as 123456789,-1001234567890 (names can change hands, numbers can't)"
            .to_owned()
    };
    let mut seen = BTreeSet::new();
    let mut ids = Vec::new();
    for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let id: i64 = part.parse().ok().filter(|id| *id != 0).ok_or_else(expected)?;
        if seen.insert(id) {
            ids.push(ChatRef::from_telegram(id));
        }
    }
    match ids.len() {
        0 => Err(expected()),
        1..=MAX_CHATS => Ok(ids),
        _ => Err(format!("at most {MAX_CHATS} chat ids")),
    }
}

pub(super) fn parse_owner_chat(value: &str) -> Result<ChatRef, String> {
    value.parse().map_err(|_| "one numeric chat id, or 0 for the terminal".to_owned())
}

/// Parses the URL of a server that receives secrets: encrypted, or on this machine.
pub fn parse_server_url(value: &str) -> Result<String, String> {
    let expected = || "a URL such as https://example.org, without user name, query or fragment".to_owned();
    let url = reqwest::Url::parse(value).map_err(|_| expected())?;
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(expected)?;
    let bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !bare || url.fragment().is_some() {
        return Err(expected());
    }
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(host) => {}
        "http" => return Err("https: over http, anyone on the network could read the secret (http is only for this machine, such as http://127.0.0.1:8081)".to_owned()),
        _ => return Err(expected()),
    }
    Ok(value.trim_end_matches('/').to_owned())
}

/// Returns true for a server on this machine.
pub(super) fn is_loopback_url(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| url.host_str().is_some_and(is_loopback))
}

/// Returns true if a model of an OpenAI-compatible server runs on this machine, free and private. The address alone isn't enough:
/// Ollama forwards some models to its cloud, and a required key hints at a proxy to a paid service.
pub fn runs_on_this_machine(base_url: &str, model: &str, has_key: bool) -> bool {
    is_loopback_url(base_url) && !is_forwarded_to_cloud(model) && !has_key
}

/// Returns true if a local server forwards a model of this name to a cloud.
pub fn is_forwarded_to_cloud(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    model.ends_with("-cloud") || model.ends_with(":cloud")
}

/// Returns true if a host is this machine.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Parses a git remote that can't be mistaken for an option or run a program.
pub(super) fn parse_repo_url(value: &str) -> Result<RepoUrl, String> {
    let expected = || "a git remote: https://…, ssh://…, user@host:path, file:///… or an absolute path".to_owned();
    let clean = !value.starts_with('-') && !value.contains("::") && !value.contains(char::is_control);
    let known = match value.split_once("://") {
        Some(("https" | "ssh" | "file", rest)) => !rest.is_empty() && !rest.starts_with('-'),
        Some(("http", _)) => {
            let host = reqwest::Url::parse(value).ok().and_then(|url| url.host_str().map(is_loopback));
            if host != Some(true) {
                return Err("https or ssh: over http, anyone on the network could read the memory".to_owned());
            }
            true
        }
        Some(_) => false,
        None => value.starts_with('/') || is_scp_like(value),
    };
    if clean && known { Ok(RepoUrl::new(value)) } else { Err(expected()) }
}

/// Parses a database address without a password, because settings are shown.
pub(super) fn parse_database_url(value: &str) -> Result<String, String> {
    let expected =
        || "the address of a PostgreSQL database, such as postgres://reveille@db.example.org/reveille".to_owned();
    let rest =
        value.strip_prefix("postgres://").or_else(|| value.strip_prefix("postgresql://")).ok_or_else(expected)?;
    let has_password = rest.split_once('@').is_some_and(|(who, _)| who.contains(':')) || rest.contains("password=");
    match has_password {
        true => {
            Err("an address without a password: put the password in the file that DATABASE_PASSWORD_FILE names"
                .to_owned())
        }
        false if rest.is_empty() || value.chars().any(|c| c.is_control() || c == ' ') => Err(expected()),
        false => Ok(value.to_owned()),
    }
}

/// Parses a password, which must not contain control characters.
pub(super) fn parse_password(value: &str) -> Result<String, String> {
    match value.chars().any(char::is_control) {
        true => Err("a password on one line".to_owned()),
        false => Ok(value.to_owned()),
    }
}

/// Returns true for scp-like addresses: `host:path` or `user@host:path`.
fn is_scp_like(value: &str) -> bool {
    let Some((host, path)) = value.split_once(':') else {
        return false;
    };
    let host_only = host.rsplit('@').next().unwrap_or(host);
    !path.is_empty() && !host_only.is_empty() && !host_only.starts_with('-') && !host.contains(['/', ' '])
}

pub(super) fn parse_repo_name(value: &str) -> Result<String, String> {
    const TAKEN: [&str; 14] = [
        "logs",
        "voice",
        "files",
        "models",
        "scratch",
        "claude-code",
        "lease",
        "mcp",
        "mcp-pins",
        "mcp-token",
        "mcp.toml",
        "messages.db",
        "index.db",
        "policy.toml",
    ];
    let plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if !plain || value.starts_with(['.', '-']) || value.len() > MAX_NAME_BYTES {
        return Err("a plain directory name: letters, digits, - _ and ., not starting with a dot or a dash".to_owned());
    }
    // SQLite keeps files next to its database (`messages.db-wal`), plan files are named `plan-…`, and macOS ignores case.
    let lower = value.to_ascii_lowercase();
    let taken = TAKEN.contains(&lower.as_str()) || lower.starts_with("messages.db") || lower.starts_with("index.db");
    if taken || lower.starts_with("plan-") {
        return Err(format!(
            "a name that Reveille doesn't use itself in the workspace (not plan-…, {})",
            TAKEN.join(", ")
        ));
    }
    Ok(value.to_owned())
}

pub(super) fn parse_model(value: &str) -> Result<String, String> {
    let plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/@".contains(&b));
    if plain && value.len() <= MAX_NAME_BYTES && value != "openai:" {
        Ok(value.to_owned())
    } else {
        Err("the id of a model, such as claude-sonnet-5-5 or openai:qwen3:8b, bedrock:NAME or vertex:NAME, or claude-code, or offline; \
             or several, separated by commas"
            .to_owned())
    }
}

/// Parses a chain of models separated by commas, and removes blanks.
pub(super) fn parse_models(value: &str) -> Result<String, String> {
    let names = value.split(',').map(|name| parse_model(name.trim())).collect::<Result<Vec<String>, String>>()?;
    if let Some(at) = names.iter().position(|name| name.is_empty()) {
        return Err(format!("the id of a model at position {} of the chain", at + 1));
    }
    if let Some(name) = names.iter().enumerate().find_map(|(at, name)| names.iter().take(at).find(|one| *one == name)) {
        return Err(format!("each model once; {name} is there twice"));
    }
    let is_before_others = |name: &String| name == super::OFFLINE_MODEL && names.last() != Some(name);
    if names.iter().any(is_before_others) {
        return Err(format!("{} last: it always answers, so no model after it is used", super::OFFLINE_MODEL));
    }
    if names.len() > MAX_MODELS {
        return Err(format!("at most {MAX_MODELS} models"));
    }
    Ok(names.join(","))
}
/// The maximum length of a chain; a longer one is taken for a mistake.
const MAX_MODELS: usize = 8;

/// Parses a region, which becomes part of a server's name.
pub(super) fn parse_aws_region(value: &str) -> Result<String, String> {
    parse_plain_name(value, b"-", "an AWS region such as us-east-1")
}

pub(super) fn parse_aws_key_id(value: &str) -> Result<String, String> {
    parse_plain_name(value, b"_", "the id of an AWS access key, such as AKIAIOSFODNN7EXAMPLE")
}

pub(super) fn parse_google_project(value: &str) -> Result<String, String> {
    parse_plain_name(value, b"-.:", "the id of a Google Cloud project such as my-project-123456")
}

/// Parses a location, which becomes part of a server's name.
pub(super) fn parse_google_location(value: &str) -> Result<String, String> {
    parse_plain_name(value, b"-", "a Google Cloud location such as global or europe-west1")
}

pub(super) fn parse_vertex_workspace(value: &str) -> Result<String, String> {
    parse_plain_name(value, b"-_", "the id of a workspace such as wrkspc_01AbC")
}

/// Parses a name of letters, digits and the characters in `also`.
fn parse_plain_name(value: &str, also: &[u8], expected: &str) -> Result<String, String> {
    let is_plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || also.contains(&b));
    if is_plain && value.len() <= MAX_NAME_BYTES { Ok(value.to_owned()) } else { Err(expected.to_owned()) }
}

pub(super) fn parse_embed_model(value: &str, home: Option<&Path>) -> Result<EmbedModel, String> {
    let expected = || {
        "the absolute path of a folder with a sentence encoder, or openai:NAME or gemini:NAME with a model's name"
            .to_owned()
    };
    // A model's name becomes part of a path on Google's server.
    let named = |name: &str| {
        let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/@".contains(&b));
        if is_plain && !name.is_empty() && name.len() <= MAX_NAME_BYTES { Ok(name.to_owned()) } else { Err(expected()) }
    };
    match value.split_once(':') {
        Some(("openai", name)) => named(name).map(EmbedModel::OpenAi),
        Some(("gemini", name)) if !name.contains(['/', ':', '@']) => named(name).map(EmbedModel::Gemini),
        _ => parse_absolute_path(value, home).map(EmbedModel::Folder).map_err(|_| expected()),
    }
}

pub(super) fn parse_timezone(value: &str) -> Result<Tz, String> {
    value.parse().map_err(|_| "an IANA time zone such as Europe/Berlin or UTC".to_owned())
}

pub(super) fn parse_autonomy(value: &str) -> Result<Autonomy, String> {
    match value {
        "0" => Ok(Autonomy::AskAll),
        "1" => Ok(Autonomy::Smart),
        "2" => Ok(Autonomy::Full),
        _ => Err("0 (ask before everything), 1 (smart) or 2 (full)".to_owned()),
    }
}

pub(super) fn parse_budget_usd(value: &str) -> Result<f64, String> {
    let amount =
        value.strip_prefix('$').unwrap_or(value).parse::<f64>().ok().filter(|usd| (0.0..=MAX_BUDGET_USD).contains(usd));
    // The absolute value turns `-0` into 0.
    amount.map(f64::abs).ok_or_else(|| format!("an amount in US dollars from 0 to {MAX_BUDGET_USD}, such as 2.50"))
}

/// Parses the prices of a million tokens, input and output.
pub(super) fn parse_token_price(value: &str) -> Result<(f64, f64), String> {
    let usd =
        |usd: &str| usd.trim().parse::<f64>().ok().filter(|usd| (0.0..=MAX_BUDGET_USD).contains(usd)).map(f64::abs);
    let price = value.split_once('/').and_then(|(input, output)| usd(input).zip(usd(output)));
    price.ok_or_else(|| "US dollars per million tokens in and out, such as 0.28/0.42".to_owned())
}

pub(super) fn parse_minutes(value: &str) -> Result<Duration, String> {
    let minutes = value.parse::<u64>().ok().filter(|minutes| (1..=MAX_MINUTES).contains(minutes));
    let minutes = minutes.ok_or_else(|| format!("whole minutes from 1 to {MAX_MINUTES}"))?;
    Ok(Duration::from_secs(minutes * 60))
}

pub(super) fn parse_disk_reserve(value: &str) -> Result<Reserve, String> {
    let mib = value.parse::<u32>().ok().filter(|mib| *mib <= MAX_RESERVE_MIB);
    mib.map(Reserve::from_mib).ok_or_else(|| format!("whole MiB from 0 (no reserve) to {MAX_RESERVE_MIB}"))
}

/// Parses the number of days to keep history; `None` for ever.
pub(super) fn parse_retention(value: &str) -> Result<Option<Duration>, String> {
    let days = value.parse::<u64>().ok().filter(|days| *days <= MAX_KEEP_DAYS);
    let days = days.ok_or_else(|| format!("whole days from 0 (for ever) to {MAX_KEEP_DAYS}"))?;
    Ok((days > 0).then(|| Duration::from_secs(days * 24 * 60 * 60)))
}

pub(super) fn parse_images_max(value: &str) -> Result<usize, String> {
    value.parse().ok().filter(|n| *n <= 20).ok_or_else(|| "a whole number from 0 (no pictures) to 20".to_owned())
}

pub(super) fn parse_tell_per_day(value: &str) -> Result<u32, String> {
    value.parse().ok().filter(|n| *n <= 100).ok_or_else(|| "a whole number from 0 to 100".to_owned())
}

pub(super) fn parse_quiet_hours(value: &str) -> Result<Option<QuietHours>, String> {
    if value.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let time = |text: &str| NaiveTime::parse_from_str(text.trim(), "%H:%M").ok();
    let hours = value.split_once('-').and_then(|(from, until)| {
        Some(QuietHours { from: time(from)?, until: time(until)? }).filter(|hours| hours.from != hours.until)
    });
    hours.map(Some).ok_or_else(|| "two different times such as 22:00-07:00, or none".to_owned())
}

/// Parses a time; `None` for never.
pub(super) fn parse_optional_time(value: &str) -> Result<Option<NaiveTime>, String> {
    if value.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    NaiveTime::parse_from_str(value, "%H:%M").map(Some).map_err(|_| "a time such as 03:30, or none".to_owned())
}

pub(super) fn parse_log_level(value: &str) -> Result<tracing::Level, String> {
    match value {
        "error" => Ok(tracing::Level::ERROR),
        "warn" => Ok(tracing::Level::WARN),
        "info" => Ok(tracing::Level::INFO),
        "debug" => Ok(tracing::Level::DEBUG),
        _ => Err("error, warn, info or debug".to_owned()),
    }
}

pub(super) fn parse_log_format(value: &str) -> Result<LogFormat, String> {
    let all = [LogFormat::Text, LogFormat::Json, LogFormat::Off];
    all.into_iter().find(|format| format.as_str() == value).ok_or_else(|| "text, json or off".to_owned())
}

/// Parses `RUST_LOG`: levels by module, in the format of other Rust programs.
pub(super) fn parse_log_targets(value: &str) -> Result<tracing_subscriber::filter::Targets, String> {
    value.parse().map_err(|_| "levels such as warn,reveille::bot=debug".to_owned())
}

pub(super) fn parse_now(value: &str) -> Result<chrono::DateTime<chrono::Utc>, String> {
    let at = chrono::DateTime::parse_from_rfc3339(value);
    at.map(|at| at.to_utc()).map_err(|_| "a time in RFC 3339, such as 2026-11-21T09:00:00Z".to_owned())
}
