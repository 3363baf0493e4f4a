//! Who answers: the service of the AI model, its key and its model, with the same questions and checks as `wake init`.

use std::sync::Arc;

use axum::{
    Extension, Form, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_base::redact::is_like_a_key;
use reveille_config::{CLAUDE_CODE, Config, OFFLINE_MODEL, Provider, SettingChanges};

use super::{
    CurrentSettings, SettingsPlace,
    change::{self, ProposedChange},
    confirm::render_last_change,
    fields::{Problems, SentFields, SettingField, capitalize, render_code_badge, render_form_end, render_state},
    render_place,
};
use crate::{
    page::{
        entrance::SessionMark,
        error::PageError,
        notes::NoteQuery,
        parts::build_address,
        site::{PageContext, PageSite},
    },
    setup::{AssistantNames, FoundServer, ParsedAnswer, SetupQuestion, SetupStep, is_example_server, parse_setting},
};

const PLACE: SettingsPlace = SettingsPlace::Answers;
/// The field that names the service.
const SERVICE: &str = "service";

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route(PLACE.path(), get(show_answers).post(save_answers))
}

#[derive(Deserialize)]
struct AskedService {
    #[serde(default)]
    service: String,
    #[serde(default)]
    said: String,
}

/// The services to choose from, and the one in use.
struct Services {
    options: Vec<(String, String)>,
    present: String,
}

impl Services {
    fn list(current: &CurrentSettings, servers: &[FoundServer]) -> Self {
        let names = AssistantNames::default();
        match SetupStep::Model.build_question(&current.given, &current.config, &names, servers) {
            SetupQuestion::Choice { options, default } => {
                let present = options.get(default.saturating_sub(1)).map(|(id, _)| id.clone()).unwrap_or_default();
                Self { options, present }
            }
            SetupQuestion::Line { .. } | SetupQuestion::Secret { .. } => {
                Self { options: Vec::new(), present: String::new() }
            }
        }
    }

    fn label(&self, id: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == id).map(|(_, label)| label.as_str())
    }
}

/// A service as it would be set: its changes so far, and the settings with them.
struct Draft {
    changes: SettingChanges,
    config: Config,
}

impl Draft {
    fn begin(id: &str, current: &CurrentSettings) -> Result<Self, String> {
        let mut draft = Self { changes: SettingChanges::new(), config: current.config.clone() };
        draft.take(SetupStep::Model, id, current)?;
        Ok(draft)
    }

    /// Adds an answer.
    fn take(&mut self, step: SetupStep, answer: &str, current: &CurrentSettings) -> Result<(), String> {
        match step.parse_answer(answer, &current.given, &self.config, &AssistantNames::default()) {
            ParsedAnswer::Changes(changes) => {
                self.extend(changes, current);
                Ok(())
            }
            ParsedAnswer::Wrong(what) => Err(what),
            ParsedAnswer::Workspace(_) | ParsedAnswer::Names(_) => Ok(()),
        }
    }

    fn extend(&mut self, changes: SettingChanges, current: &CurrentSettings) {
        self.changes.extend(changes);
        if let (Some(config), _) = current.given.with_valid_settings(&self.changes) {
            self.config = config;
        }
    }

    /// Lists the questions about this service.
    fn steps(&self) -> Vec<SetupStep> {
        if is_example_server(&self.config) {
            return vec![SetupStep::ServerUrl, SetupStep::ServerKey, SetupStep::ServerModel, SetupStep::ServerPrice];
        }
        SetupStep::OF_A_MODEL.into_iter().filter(|step| step.is_applicable(&self.config)).collect()
    }

    /// Returns `true` if the model of Claude's API can be named.
    fn has_claude_model(&self) -> bool {
        !self.config.model.contains(',') && Provider::from_model(&self.config.model) == Provider::Anthropic
    }
}

async fn show_answers(
    State(site): State<Arc<PageSite>>,
    Query(asked): Query<AskedService>,
) -> Result<Markup, PageError> {
    let of_site = Arc::clone(&site);
    site.run_blocking(move |desk| render_page(&of_site, desk, &asked, None, &Problems::new())).await
}

async fn save_answers(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(sent): Form<SentFields>,
) -> Result<Response, PageError> {
    let of_site = Arc::clone(&site);
    let parsed = site
        .run_blocking(move |desk| {
            let current = CurrentSettings::read(desk)?;
            let service = sent.get(SERVICE).cloned().unwrap_or_default();
            match parse_answers(&service, &sent, &current) {
                Ok(changes) => Ok(Ok(ProposedChange::from_changes(&current.given, changes, PLACE))),
                Err(problems) => {
                    let asked = AskedService { service, said: String::new() };
                    Ok(Err(render_page(&of_site, desk, &asked, Some(&sent), &problems)?))
                }
            }
        })
        .await?;
    match parsed {
        Ok(Some(proposal)) => change::submit(&site, session, proposal).await,
        Ok(None) => Ok(site.redirect_with_note(PLACE.path(), "Nothing to change.".to_owned()).into_response()),
        Err(page) => Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response()),
    }
}

/// Takes the answers in the order of the questions, since each may decide the next.
fn parse_answers(service: &str, sent: &SentFields, current: &CurrentSettings) -> Result<SettingChanges, Problems> {
    let problem = |name: &'static str, what: String| {
        Problems::from([(name, format!("{}. Nothing was changed.", capitalize(&what)))])
    };
    if current.given.is_from_environment("MODEL") && service != Services::list(current, &[]).present {
        return Err(problem(SERVICE, "MODEL is set in the environment: change it there".to_owned()));
    }
    let mut draft = Draft::begin(service, current).map_err(|what| problem(SERVICE, what))?;
    for step in draft.steps() {
        let Some(name) = step.settings().first() else { continue };
        let Some(answer) = sent.get(field_name(step)).map(|answer| answer.trim()) else { continue };
        if current.given.is_from_environment(name) {
            continue;
        }
        let is_secret = matches!(step, SetupStep::Key | SetupStep::ServerKey);
        if !is_secret && is_like_a_key(answer) {
            return Err(problem(field_name(step), "that looks like a key, which doesn't belong here".to_owned()));
        }
        draft.take(step, answer, current).map_err(|what| problem(field_name(step), what))?;
    }
    if is_example_server(&draft.config) {
        return Err(problem("OPENAI_BASE_URL", "give the address of your server".to_owned()));
    }
    if let Some(answer) = sent.get("CLAUDE_MODEL").filter(|_| draft.has_claude_model()) {
        let parsed = parse_setting("MODEL", answer, &current.given, &draft.config);
        draft.extend(parsed.map_err(|what| problem("CLAUDE_MODEL", what))?, current);
    }
    Ok(draft.changes)
}

/// The name of a question's field.
fn field_name(step: SetupStep) -> &'static str {
    match step {
        SetupStep::ServerModel => "SERVER_MODEL",
        step => step.settings().first().copied().unwrap_or_default(),
    }
}

fn render_page(
    site: &PageSite,
    desk: &PageContext<'_>,
    asked: &AskedService,
    sent: Option<&SentFields>,
    problems: &Problems,
) -> Result<Markup, PageError> {
    let current = CurrentSettings::read(desk)?;
    // The other services are listed without a look at this machine's ports, until somebody wants to choose.
    let servers = match asked.service.as_str() {
        "" => Vec::new(),
        _ => tokio::runtime::Handle::current().block_on(FoundServer::find_all(&current.given)),
    };
    let services = Services::list(&current, &servers);
    let is_choosing = asked.service == "choose";
    let chosen = if asked.service.is_empty() || is_choosing { services.present.clone() } else { asked.service.clone() };
    let label = services.label(&chosen).map(str::to_owned);
    let content = html! {
        (render_last_change(site, &NoteQuery { said: asked.said.clone() }, Some(PLACE)))
        @if let Some(why) = problems.get(SERVICE) { p .note.bad role="alert" { (why) } }
        @if is_choosing {
            (render_choice(&services))
        } @else if let Some(label) = &label {
            (render_service(&chosen, label, chosen == services.present, &current, sent, problems))
        } @else {
            p .note.bad { "There is no such service." }
        }
        @if !is_choosing {
            p .actions { a .button href=(build_address(PLACE.path(), &[(SERVICE, "choose")])) { "Choose another service" } }
        }
    };
    Ok(render_place(PLACE.title(), &content))
}

fn render_choice(services: &Services) -> Markup {
    html! {
        p { "Which AI model should answer? Another service needs a code from the terminal, since it would read what you write." }
        ul .list.set-services {
            @for (id, label) in &services.options {
                li {
                    a href=(build_address(PLACE.path(), &[(SERVICE, id)])) { (capitalize(label)) }
                    @if *id == services.present { " " span .badge.ok { "in use" } }
                }
            }
        }
    }
}

fn render_service(
    id: &str,
    label: &str,
    is_present: bool,
    current: &CurrentSettings,
    sent: Option<&SentFields>,
    problems: &Problems,
) -> Markup {
    let Ok(draft) = Draft::begin(id, current) else {
        return html! { p .note.bad { "This service can't be chosen while its settings come from the environment." } };
    };
    // A key that was typed into the wrong field doesn't come out either.
    let typed = |name: &str| sent.and_then(|sent| sent.get(name)).filter(|typed| !is_like_a_key(typed)).cloned();
    html! {
        form .card action=(PLACE.path()) method="post" {
            input type="hidden" name=(SERVICE) value=(id);
            h2 { (capitalize(label)) " " @if is_present { span .badge.ok { "in use" } } @else { (render_code_badge()) } }
            @for step in draft.steps() { (render_step(step, &draft, current, &typed, problems)) }
            @if draft.has_claude_model() {
                @let value = typed("CLAUDE_MODEL").unwrap_or_else(|| draft.config.model.clone());
                (render_line("CLAUDE_MODEL", "Model", "Its id, as Anthropic writes it.", &value, problems))
            }
            @if draft.config.model == OFFLINE_MODEL {
                p { "It then understands simple sentences: reminders, tasks, notes. Nothing leaves this machine." }
            } @else if draft.config.model == CLAUDE_CODE {
                p { "It uses the login of the command " code { (draft.config.claude_code.display()) } "." }
            }
            (render_form_end(current))
            p .meta { "Before it is saved, I ask the service whether this works. That costs nothing." }
        }
    }
}

fn render_step(
    step: SetupStep,
    draft: &Draft,
    current: &CurrentSettings,
    typed: &dyn Fn(&str) -> Option<String>,
    problems: &Problems,
) -> Markup {
    let name = field_name(step);
    let (question, hint) = step.question();
    match step {
        // A key belongs to one server, so a new one has none yet.
        SetupStep::Key | SetupStep::ServerKey => {
            let setting = step.settings().first().copied().unwrap_or_default();
            if !draft.changes.contains_key(setting) {
                return SettingField::line(setting, "API key", &secret_hint(hint)).render(current, None, problems);
            }
            html! {
                div .field {
                    label for=(name) { "API key " @if draft.changes.contains_key(setting) { span .badge { "not set" } } @else { (render_state(current, setting)) } }
                    p .meta id={ (name) "-hint" } { (secret_hint(hint)) }
                    input id=(name) name=(name) type="password" value="" autocomplete="off" spellcheck="false"
                        aria-describedby={ (name) "-hint" };
                    @if let Some(problem) = problems.get(name) { p .set-problem role="alert" { (problem) } }
                }
            }
        }
        SetupStep::ServerUrl => {
            let present =
                if is_example_server(&draft.config) { String::new() } else { draft.config.openai_base_url.clone() };
            render_line(name, question, hint, &typed(name).unwrap_or(present), problems)
        }
        SetupStep::ServerModel => {
            let present = draft.config.model.strip_prefix("openai:").unwrap_or_default();
            let present = if is_example_server(&draft.config) { "" } else { present };
            render_line(name, question, hint, &typed(name).unwrap_or_else(|| present.to_owned()), problems)
        }
        _ => {
            let present =
                draft.config.openai_price.map(|(input, output)| format!("{input}/{output}")).unwrap_or_default();
            render_line(name, question, hint, &typed(name).unwrap_or(present), problems)
        }
    }
}

/// Removes the terminal's hint about Enter.
fn secret_hint(hint: &str) -> String {
    hint.split_once(" Press Enter").unwrap_or((hint, "")).0.to_owned()
}

fn render_line(name: &str, label: &str, hint: &str, value: &str, problems: &Problems) -> Markup {
    html! {
        div .field {
            label for=(name) { (label) }
            p .meta id={ (name) "-hint" } { (hint) }
            input id=(name) name=(name) type="text" value=(value) autocomplete="off" spellcheck="false"
                aria-describedby={ (name) "-hint" };
            @if let Some(problem) = problems.get(name) { p .set-problem role="alert" { (problem) } }
        }
    }
}
