//! MCP servers: what each offers in plain words, and adding, switching and removing them.

use std::{path::Path, sync::Arc, time::Duration};

use axum::{
    Extension, Form, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_base::{
    process::find_program,
    redact::Redactor,
    words::{format_count, one_line, truncate_text},
};
use reveille_config::Config;
use reveille_policy as policy;
use reveille_tools::mcp::client::{
    self, ServerConfinement,
    amend::{NewPlace, NewServer, ServerSwitch},
    pin::{Listing, Pin},
    settings::{Server, ServerPlace, Settings},
};

use super::{
    CurrentSettings, SettingsPlace,
    apply::MEANWHILE,
    change::{self, PageChange, ProposedChange, describe_place},
    confirm::render_last_change,
    fields::{SentFields, capitalize, render_code_badge},
    render_place,
};
use crate::page::{
    entrance::SessionMark,
    error::PageError,
    notes::NoteQuery,
    parts::{escape_and_clean, render_untrusted_badge},
    site::{PageContext, PageSite},
};

const PLACE: SettingsPlace = SettingsPlace::Servers;
/// Longest wait for a server that is asked what it offers.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum characters shown of a tool's description.
const MAX_TOOL_CHARS: usize = 200;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route(PLACE.path(), get(show_servers))
        .route("/settings/servers/add", post(add_server))
        .route("/settings/servers/switch", post(switch_server))
        .route("/settings/servers/remove", post(remove_server))
        .route("/settings/servers/ask", post(ask_server))
        .route("/settings/servers/accept", post(accept_tools))
}

/// A form about a server.
#[derive(Deserialize)]
struct ServerForm {
    name: String,
    /// `on` or `off`.
    #[serde(default)]
    to: String,
    /// The digest of the list that was shown.
    #[serde(default)]
    list: String,
}

async fn show_servers(State(site): State<Arc<PageSite>>, Query(said): Query<NoteQuery>) -> Result<Markup, PageError> {
    let of_site = Arc::clone(&site);
    site.run_blocking(move |desk| render_page(&of_site, desk, &said, None)).await
}

async fn add_server(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(sent): Form<SentFields>,
) -> Result<Response, PageError> {
    let server = parse_server(&sent);
    let (tried, of_site) = (server.clone(), Arc::clone(&site));
    let checked = site
        .run_blocking(move |desk| {
            let known = Settings::for_workspace(desk.config);
            let is_known = known.servers.iter().chain(&known.off).any(|one| one.name == tried.name);
            let why = match tried.check(desk.config.home.as_deref()) {
                _ if is_known => format!("there is a server {} already.", tried.name),
                Ok(Server { place: ServerPlace::Command { command, .. }, .. })
                    if command.first().is_some_and(|program| find_program(Path::new(program)).is_none()) =>
                {
                    "there is no such program on this machine. Install it first, and give its whole path.".to_owned()
                }
                Ok(parsed) => return Ok(Ok(parsed.secrets)),
                Err(error) => error.to_string(),
            };
            let why = format!("{} Nothing was changed.", capitalize(&desk.clean_text(&why)));
            Ok(Err(render_page(&of_site, desk, &NoteQuery::default(), Some((&sent, &why)))?))
        })
        .await?;
    let secrets = match checked {
        Ok(secrets) => secrets,
        Err(page) => return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response()),
    };
    let words = format!("A new MCP server {}: it {}", server.name, describe_place(&server.place));
    let words = Redactor::new(&secrets).redact(&words);
    change::submit(&site, session, ProposedChange::new(&words, PageChange::AddServer(server), PLACE)).await
}

/// Reads the form: what begins as an address is one, anything else is a program with its arguments.
fn parse_server(sent: &SentFields) -> NewServer {
    let field = |name: &str| sent.get(name).map(|text| text.trim()).unwrap_or_default();
    let place = field("place");
    let place = match place.starts_with("http://") || place.starts_with("https://") {
        true => NewPlace::Url {
            url: place.to_owned(),
            token: Some(field("token").to_owned()).filter(|token| !token.is_empty()),
        },
        false => NewPlace::Command(split_words(place)),
    };
    NewServer { name: field("name").to_owned(), place }
}

/// Splits a command into words. Quotation marks hold a word together; nothing else is special.
fn split_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(mark) if c == mark => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

async fn switch_server(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(form): Form<ServerForm>,
) -> Result<Response, PageError> {
    let (switch, words) = match form.to.as_str() {
        "on" => (ServerSwitch::On, "on"),
        _ => (ServerSwitch::Off, "off"),
    };
    let words = format!("The MCP server {}: switched {words}", form.name);
    change::submit(&site, session, ProposedChange::new(&words, PageChange::SwitchServer(form.name, switch), PLACE))
        .await
}

async fn remove_server(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(form): Form<ServerForm>,
) -> Result<Response, PageError> {
    let words = format!("The MCP server {}: removed", form.name);
    change::submit(&site, session, ProposedChange::new(&words, PageChange::RemoveServer(form.name), PLACE)).await
}

/// Asks a server what it offers now. A different list waits to be accepted.
async fn ask_server(State(site): State<Arc<PageSite>>, Form(form): Form<ServerForm>) -> Result<Redirect, PageError> {
    let told = site
        .run_blocking(move |desk| {
            let config = CurrentSettings::read(desk)?.config;
            let settings = Settings::for_workspace(&config);
            let server = settings.get(&form.name).ok_or_else(|| missing(&form.name))?;
            let found = match list_offered_tools(&config, server) {
                Ok(found) => found,
                Err(why) => {
                    return Ok(format!("{}: {}. The tools accepted before stay.", form.name, desk.clean_text(&why)));
                }
            };
            let mut pin = Pin::load(&config.mcp_pins_dir(), &form.name);
            pin.found = Some(found).filter(|found| pin.accepted.as_ref().map(Listing::sha256) != Some(found.sha256()));
            let told = match pin.found.is_some() {
                true => {
                    format!("The server {} answered. It offers something new: look at it and accept it.", form.name)
                }
                false => format!("The server {} answered. It offers what you accepted.", form.name),
            };
            pin.save(&config.mcp_pins_dir(), &form.name).map_err(|error| PageError::Refused(error.to_string()))?;
            Ok(told)
        })
        .await?;
    Ok(site.redirect_with_note(PLACE.path(), told))
}

/// Accepts the list that was shown. One in place of another is shown at the terminal, too.
async fn accept_tools(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(form): Form<ServerForm>,
) -> Result<Response, PageError> {
    let ServerForm { name, list, .. } = form;
    let (of_name, of_list) = (name.clone(), list.clone());
    let words = site
        .run_blocking(move |desk| {
            let config = CurrentSettings::read(desk)?.config;
            Settings::for_workspace(&config).get(&of_name).ok_or_else(|| missing(&of_name))?;
            let pin = Pin::load(&config.mcp_pins_dir(), &of_name);
            Ok(pin.found.filter(|found| found.sha256() == of_list).map(|found| {
                let changes = pin.accepted.unwrap_or_default().describe_changes(&found);
                desk.clean_text(&format!("The tools of the MCP server {of_name}: {changes}"))
            }))
        })
        .await?;
    match words {
        Some(words) => {
            let proposal = ProposedChange::new(&words, PageChange::AcceptTools { name, list }, PLACE);
            change::submit(&site, session, proposal).await
        }
        None => Ok(site.redirect_with_note(PLACE.path(), MEANWHILE.to_owned()).into_response()),
    }
}

fn missing(name: &str) -> PageError {
    PageError::Missing(format!("There is no server {name} that is switched on."))
}

/// Asks a server what it offers. One that is a program runs in the sandbox for this.
pub(super) fn list_offered_tools(config: &Config, server: &Server) -> Result<Listing, String> {
    let rules = policy::load(&config.policy_path(), config.home.as_deref()).rules;
    let shelter = client::build_shelter(config, &rules, &Settings::for_workspace(config));
    let asked = async {
        let listing = client::list_current_tools(server, &shelter, ServerConfinement::Required);
        tokio::time::timeout(PATIENCE, listing).await
    };
    match tokio::runtime::Handle::current().block_on(asked) {
        Ok(Ok((listing, _))) => Ok(listing),
        Ok(Err(error)) => Err(one_line(&error.to_string())),
        Err(_) => Err(format!("it gave no answer within {} s", PATIENCE.as_secs())),
    }
}

fn render_page(
    site: &PageSite,
    desk: &PageContext<'_>,
    said: &NoteQuery,
    refused: Option<(&SentFields, &str)>,
) -> Result<Markup, PageError> {
    let config = CurrentSettings::read(desk)?.config;
    let settings = Settings::for_workspace(&config);
    let content = html! {
        (render_last_change(site, said, Some(PLACE)))
        p { "A server of the Model Context Protocol gives me more tools: a calendar, a tracker, your notes. I use only what you accepted." }
        @for problem in &settings.problems { p .note.bad { (desk.clean_text(problem)) } }
        @if settings.servers.is_empty() && settings.off.is_empty() && settings.problems.is_empty() {
            p .set-empty { "No servers yet." }
        }
        @for server in &settings.servers { (render_server(desk, &config, server, ServerSwitch::On)) }
        @for server in &settings.off { (render_server(desk, &config, server, ServerSwitch::Off)) }
        (render_new_server(refused))
        p .meta { "They stand in " code { (config.mcp_path().display()) } ", where you can set more: hosts, folders, risk. docs/mcp.toml shows how." }
    };
    Ok(render_place(PLACE.title(), &content))
}

fn render_server(desk: &PageContext<'_>, config: &Config, server: &Server, switch: ServerSwitch) -> Markup {
    let pin = Pin::load(&config.mcp_pins_dir(), &server.name);
    let place = match &server.place {
        ServerPlace::Command { command, .. } => command.join(" "),
        ServerPlace::Url { url, .. } => url.to_string(),
    };
    let is_on = switch == ServerSwitch::On;
    let (to, word) = if is_on { ("off", "Switch off") } else { ("on", "Switch on") };
    html! {
        article .card {
            h2 .set-server {
                (server.name) " "
                @if is_on { span .badge.ok { "on" } } @else { span .badge { "off" } }
            }
            p .meta { code { (desk.clean_text(&place)) } }
            @if let Some(accepted) = &pin.accepted { (render_tools(desk, "Accepted", accepted)) }
            @if let Some(found) = &pin.found {
                div .note.warn {
                    (render_tools(desk, if pin.accepted.is_some() { "It offers now" } else { "It offers" }, found))
                    form action="/settings/servers/accept" method="post" {
                        input type="hidden" name="name" value=(server.name);
                        input type="hidden" name="list" value=(found.sha256());
                        p .actions {
                            button .first type="submit" { "Accept these tools" }
                            @if pin.accepted.is_some() { (render_code_badge()) }
                        }
                    }
                }
            } @else if pin.accepted.is_none() && is_on {
                p { "Nothing accepted yet, so I use nothing of it." }
            }
            div .actions {
                @if is_on { (render_button("ask", &server.name, None, "Ask what it offers")) }
                (render_button("switch", &server.name, Some(to), word))
                (render_button("remove", &server.name, None, "Remove"))
            }
        }
    }
}

fn render_button(action: &str, name: &str, to: Option<&str>, words: &str) -> Markup {
    html! {
        form action={ "/settings/servers/" (action) } method="post" {
            input type="hidden" name="name" value=(name);
            @if let Some(to) = to { input type="hidden" name="to" value=(to); }
            button type="submit" aria-label={ (words) ": " (name) } { (words) }
        }
    }
}

/// Renders the tools in the server's own words.
fn render_tools(desk: &PageContext<'_>, what: &str, listing: &Listing) -> Markup {
    html! {
        details open[listing.tools.len() <= 6] {
            summary { (what) ": " (format_count(listing.tools.len(), "tool")) }
            p .meta { (render_untrusted_badge()) " In the server's own words:" }
            ul .set-tools {
                @for tool in &listing.tools {
                    @let words = one_line(&tool.description);
                    li { code { (escape_and_clean(desk, &tool.shown_name())) } " " (escape_and_clean(desk, &truncate_text(&words, MAX_TOOL_CHARS))) }
                }
            }
        }
    }
}

fn render_new_server(refused: Option<(&SentFields, &str)>) -> Markup {
    let typed = |name: &str| refused.and_then(|(sent, _)| sent.get(name)).map(String::as_str).unwrap_or_default();
    html! {
        form .card action="/settings/servers/add" method="post" {
            h2 { "Add a server " (render_code_badge()) }
            @if let Some((_, why)) = refused { p .note.bad role="alert" { (why) } }
            div .field {
                label for="name" { "A short name" }
                p #name-hint .meta { "Small letters, digits and hyphens: it becomes part of its tools' names." }
                input #name name="name" type="text" value=(typed("name")) required maxlength="24" autocomplete="off"
                    spellcheck="false" placeholder="time" aria-describedby="name-hint";
            }
            div .field {
                label for="place" { "Its program or its address" }
                p #place-hint .meta {
                    "A program with its arguments, such as " code { "mcp-server-time" } ", runs in the sandbox: it reads no key and has no network. \
                     An address begins with https://."
                }
                input #place name="place" type="text" value=(typed("place")) required autocomplete="off" spellcheck="false"
                    aria-describedby="place-hint";
            }
            div .field {
                label for="token" { "Token for its address" }
                p #token-hint .meta { "Only if the server asks for one." }
                input #token name="token" type="password" value="" autocomplete="off" aria-describedby="token-hint";
            }
            p .actions { button type="submit" { "Try it and add it" } }
            p .meta { "First comes the code; then I try it, and show you what it offers before I use any of it." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_at_spaces_outside_of_quotation_marks() {
        for (text, words) in [
            ("a b  c", &["a", "b", "c"][..]),
            ("a \"b c\" 'd \"e'", &["a", "b c", "d \"e"]),
            ("a '' $HOME;x", &["a", "", "$HOME;x"]),
            ("", &[]),
        ] {
            assert_eq!(split_words(text), words, "{text}");
        }
    }
}
