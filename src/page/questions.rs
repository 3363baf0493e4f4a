//! Open questions with the exact bytes that would run, and the answers to them.
//!
//! A form carries a digest of its question, so that an approval applies to exactly the text that was read. A dangerous action is shown
//! again on a page of its own before it can be allowed.

use std::sync::Arc;

use axum::{
    Form, Router,
    extract::{Path, Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use chrono::TimeDelta;
use maud::{Markup, html};
use serde::Deserialize;

use reveille_base::{
    approval_text::{self, Described, WishPiece, hash_action},
    types::{ApprovalAnswer, BoundFiles},
    words::format_count,
};
use reveille_cycle as cycle;
use reveille_policy::Risk;
use reveille_store::{Approval, ApprovalState, Store};

use super::{
    changes::render_agreed,
    error::PageError,
    frame::{PagePlace, render_frame},
    parts::{escape_and_clean, render_time, render_untrusted_badge, wake_link},
    site::{PageContext, PageSite},
};

/// Maximum decided questions shown, and their maximum age.
const MAX_DECIDED: usize = 50;
const DECIDED_WITHIN: TimeDelta = TimeDelta::days(7);

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route("/questions", get(show_questions))
        .route("/questions/together", post(answer_together))
        .route("/questions/{id}", get(show_one).post(answer_question))
}

#[derive(Deserialize)]
struct QuestionsQuery {
    /// The question just answered.
    answered: Option<i64>,
}

/// An answer.
#[derive(Deserialize)]
struct SentAnswer {
    answer: Answered,
    /// The digest of the question shown.
    digest: String,
    /// True if the question was shown a second time.
    #[serde(default)]
    again: bool,
    /// The page on which it was answered, and to which the browser returns: `chat`, `today`, or else this view.
    #[serde(default)]
    from: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answered {
    Allow,
    Refuse,
}

impl From<Answered> for ApprovalAnswer {
    fn from(answered: Answered) -> Self {
        match answered {
            Answered::Allow => Self::Yes,
            Answered::Refuse => Self::No,
        }
    }
}

async fn show_questions(
    State(site): State<Arc<PageSite>>,
    Query(asked): Query<QuestionsQuery>,
) -> Result<Markup, PageError> {
    let content = site.run_blocking(move |desk| render_all(desk, asked.answered)).await?;
    Ok(render_frame(PagePlace::Questions, "Questions", &content))
}

async fn show_one(State(site): State<Arc<PageSite>>, Path(id): Path<i64>) -> Result<Markup, PageError> {
    let content = site
        .run_blocking(move |desk| {
            let approval = load_question(&require_store(desk)?, id)?;
            Ok(render_confirmation(desk, &approval))
        })
        .await?;
    Ok(render_frame(PagePlace::Questions, "Are you sure?", &content))
}

async fn answer_question(
    State(site): State<Arc<PageSite>>,
    Path(id): Path<i64>,
    Form(sent): Form<SentAnswer>,
) -> Result<Response, PageError> {
    let told = match sent.answer {
        Answered::Allow => "Allowed, once. I'll continue with it now.",
        Answered::Refuse => "Not allowed. I'll continue without it.",
    };
    let is_from_today = sent.from == "today";
    let (is_decided, response) = site.run_blocking(move |desk| decide_question(desk, id, &sent)).await?;
    if is_decided {
        site.nudge.notify_one();
    }
    if is_decided && is_from_today {
        return Ok(site.redirect_with_note("/", told.to_owned()).into_response());
    }
    Ok(response)
}

/// Answers to several questions of a task: all are answered, or none.
#[derive(Deserialize)]
struct SentTogether {
    answer: Answered,
    /// `number:digest` of each question, separated by spaces.
    shown: String,
}

async fn answer_together(
    State(site): State<Arc<PageSite>>,
    Form(sent): Form<SentTogether>,
) -> Result<Response, PageError> {
    site.run_blocking(move |desk| decide_together(desk, &sent)).await?;
    site.nudge.notify_one();
    Ok(Redirect::to("/questions").into_response())
}

fn decide_together(desk: &PageContext<'_>, sent: &SentTogether) -> Result<(), PageError> {
    let changed = || {
        PageError::Refused(
            "One of these is no longer open, or has changed since you read it. Nothing was decided.".to_owned(),
        )
    };
    let is_allowed = sent.answer == Answered::Allow;
    let mut store = cycle::open_store(desk.config).map_err(|_| PageError::Broken)?;
    let mut ids = Vec::new();
    for shown in sent.shown.split_whitespace() {
        let (id, digest) = shown.split_once(':').ok_or_else(changed)?;
        let approval = load_question(&store, id.parse().map_err(|_| changed())?)?;
        // A dangerous question is only allowed on a page of its own, and no form of this page offers it.
        let allows_danger = is_allowed && is_dangerous(&approval);
        if hash_question(&approval) != digest || !is_open(desk, &approval) || allows_danger {
            return Err(changed());
        }
        ids.push(approval.id);
    }
    for id in ids {
        store.approvals_mut().decide_approval(id, sent.answer.into(), desk.config.clock().now())?;
    }
    Ok(())
}

/// Renders buttons for all open questions of a task at once, unless any is dangerous. The questions are shown in full above.
fn render_together(open: &[Approval]) -> Markup {
    let is_of_first_task = |approval: &&Approval| open.first().is_some_and(|first| first.cycle_id == approval.cycle_id);
    let task: Vec<&Approval> = open.iter().filter(is_of_first_task).collect();
    let shown: Vec<String> =
        task.iter().map(|approval| format!("{}:{}", approval.id, hash_question(approval))).collect();
    html! {
        @if task.len() > 1 && !task.iter().any(|approval| is_dangerous(approval)) {
            div .actions {
                @for (answer, name) in [("allow", "Allow all of this task once"), ("refuse", "Allow none of it")] {
                    form action="/questions/together" method="post" {
                        input type="hidden" name="answer" value=(answer);
                        input type="hidden" name="shown" value=(shown.join(" "));
                        button type="submit" { (name) }
                    }
                }
            }
        }
    }
}

fn require_store(desk: &PageContext<'_>) -> Result<Store, PageError> {
    desk.open_store()?.ok_or_else(|| PageError::Missing("There are no questions yet.".to_owned()))
}

fn load_question(store: &Store, id: i64) -> Result<Approval, PageError> {
    store.approvals().find_approval(id)?.ok_or_else(|| PageError::Missing(format!("There is no question {id}.")))
}

/// Decides a question. Returns the response, and true if the decision took effect.
fn decide_question(desk: &PageContext<'_>, id: i64, sent: &SentAnswer) -> Result<(bool, Response), PageError> {
    let store = require_store(desk)?;
    let approval = load_question(&store, id)?;
    // The connection for reading is closed before one for writing is opened.
    drop(store);
    if hash_question(&approval) != sent.digest {
        return Ok((false, render_not_taken(desk, "This question has changed since you read it.", &approval)));
    }
    if !is_open(desk, &approval) {
        return Ok((false, render_not_taken(desk, describe_state(desk, &approval), &approval)));
    }
    let is_allowed = sent.answer == Answered::Allow;
    if is_allowed && is_dangerous(&approval) && !sent.again {
        return Ok((false, Redirect::to(&format!("/questions/{id}")).into_response()));
    }
    let mut store = cycle::open_store(desk.config).map_err(|_| PageError::Broken)?;
    if !store.approvals_mut().decide_approval(id, sent.answer.into(), desk.config.clock().now())? {
        let approval = load_question(&store, id)?;
        return Ok((false, render_not_taken(desk, describe_state(desk, &approval), &approval)));
    }
    let to = if sent.from == "chat" { "/chat".to_owned() } else { format!("/questions?answered={id}") };
    Ok((true, Redirect::to(&to).into_response()))
}

/// Returns the digest of a question as shown.
fn hash_question(approval: &Approval) -> String {
    let Approval { id, cycle_id, call, tool, action, risk, reasons, origin, chat, expires_at, named, .. } = approval;
    let shown = (id, cycle_id, call, tool, action, risk, reasons, origin, chat.number(), expires_at, named);
    // Serialization can't fail here; an empty digest would match no form.
    serde_json::to_string(&shown).map_or_else(|_| String::new(), |shown| hash_action(&shown))
}

fn is_open(desk: &PageContext<'_>, approval: &Approval) -> bool {
    approval.state == ApprovalState::Pending && !approval.is_expired(desk.now)
}

fn is_dangerous(approval: &Approval) -> bool {
    matches!(approval.risk(), Risk::Dangerous | Risk::Destructive)
}

/// Describes a question's state.
fn describe_state(desk: &PageContext<'_>, approval: &Approval) -> &'static str {
    match approval.state {
        ApprovalState::Approved => "This was allowed, once.",
        ApprovalState::Denied => "This was refused.",
        ApprovalState::Withdrawn => "This question was withdrawn, and nothing was done.",
        ApprovalState::Expired => "Nobody answered in time, so I didn't do it.",
        ApprovalState::Pending if approval.is_expired(desk.now) => "This has expired, so I won't do it.",
        ApprovalState::Pending => "This is waiting for your answer.",
    }
}

fn render_not_taken(desk: &PageContext<'_>, why: &str, approval: &Approval) -> Response {
    let content = html! {
        p .note.warn role="alert" { (why) " Your answer changed nothing." }
        (render_question(desk, approval))
        p .actions { a href="/questions" { "All questions" } }
    };
    (StatusCode::CONFLICT, render_frame(PagePlace::Questions, "Not accepted", &content)).into_response()
}

fn render_all(desk: &PageContext<'_>, answered: Option<i64>) -> Result<Markup, PageError> {
    let Some(store) = desk.open_store()? else {
        return Ok(render_nothing_open());
    };
    let open = store.approvals().pending_approvals(desk.now)?;
    let answered = answered.map(|id| store.approvals().find_approval(id)).transpose()?.flatten();
    let mut decided = store.approvals().last_approvals(MAX_DECIDED)?;
    decided.retain(|approval| {
        let at = approval.decided_at.or(approval.asked_at);
        !is_open(desk, approval) && at.is_some_and(|at| desk.now.signed_duration_since(at) <= DECIDED_WITHIN)
    });
    let agreed = render_agreed(desk, &store)?;
    Ok(html! {
        section #live-questions data-live {
            @if let Some(approval) = answered.filter(|approval| !is_open(desk, approval)) {
                p .note role="status" {
                    "Question " (approval.id) ": " (describe_state(desk, &approval)) " " (describe_next_step(&approval))
                }
            }
            @if open.is_empty() {
                (render_nothing_open())
            } @else {
                p { (format_count(open.len(), "question")) " for you. If you don't answer, I won't do it." }
            }
            @for approval in &open { (render_card(desk, approval, "")) }
            (render_together(&open))
            @if !decided.is_empty() {
                h2 { "Decided in the last week" }
                ul .list {
                    @for approval in &decided { li { (render_decided(desk, approval)) } }
                }
            }
            (agreed)
        }
    })
}

fn render_nothing_open() -> Markup {
    html! {
        p { "No open questions. When something needs your permission, I ask here and show exactly what would run." }
    }
}

fn describe_next_step(approval: &Approval) -> &'static str {
    match approval.state {
        ApprovalState::Approved if approval.used_at.is_none() => "I'll continue when I next wake.",
        ApprovalState::Denied => "I'll continue without it.",
        _ => "",
    }
}

/// Renders an open question with its buttons. `from`: the page that shows it.
pub(super) fn render_card(desk: &PageContext<'_>, approval: &Approval, from: &str) -> Markup {
    html! {
        article .card {
            (render_question(desk, approval))
            (render_answers(approval, QuestionView::First, from))
        }
    }
}

/// Renders a dangerous question once more in its place, with the button that allows it. `from`: the page that shows it.
pub(super) fn render_card_again(desk: &PageContext<'_>, approval: &Approval, from: &str) -> Markup {
    html! {
        article .card .sure #{ "question-" (approval.id) } {
            p { "Risk: " strong { (approval.risk().describe()) } ". Read again what would run: it may be impossible to undo." }
            (render_question(desk, approval))
            (render_answers(approval, QuestionView::Again, from))
        }
    }
}

/// Renders a dangerous question a second time, before it can be allowed.
fn render_confirmation(desk: &PageContext<'_>, approval: &Approval) -> Markup {
    html! {
        @if is_open(desk, approval) {
            @if is_dangerous(approval) {
                p { "Risk: " strong { (approval.risk().describe()) } ". Read again what would run: it may be impossible to undo." }
            }
        } @else {
            p .note role="status" { (describe_state(desk, approval)) }
        }
        article .card {
            (render_question(desk, approval))
            @if is_open(desk, approval) { (render_answers(approval, QuestionView::Again, "")) }
        }
        p .actions { a href="/questions" { "All questions" } }
    }
}

/// How often a question is shown before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionView {
    First,
    /// Once more before a dangerous action.
    Again,
}

fn render_answers(approval: &Approval, view: QuestionView, from: &str) -> Markup {
    let (id, digest) = (approval.id, hash_question(approval));
    let asks_again = is_dangerous(approval) && view == QuestionView::First;
    html! {
        div .actions {
            @if asks_again {
                a .button href=(address_again(id, from)) { "Allow once…" }
            } @else {
                (render_answer_form((id, &digest), (view, from), ("allow", "Allow once")))
            }
            (render_answer_form((id, &digest), (view, from), ("refuse", "Don't allow")))
        }
    }
}

/// Returns where a dangerous question is shown once more.
fn address_again(id: i64, from: &str) -> String {
    if from == "today" { format!("/?sure={id}#question-{id}") } else { format!("/questions/{id}") }
}

fn render_answer_form(
    (id, digest): (i64, &str),
    (view, from): (QuestionView, &str),
    (answer, name): (&str, &str),
) -> Markup {
    html! {
        form action={ "/questions/" (id) } method="post" {
            input type="hidden" name="answer" value=(answer);
            input type="hidden" name="digest" value=(digest);
            @if view == QuestionView::Again { input type="hidden" name="again" value="true"; }
            @if !from.is_empty() { input type="hidden" name="from" value=(from); }
            button type="submit" aria-label={ (name) ", question " (id) } { (name) }
        }
    }
}

/// Renders a question: the exact action with invisible characters spelled out, the reason, the origin, and the expiry.
fn render_question(desk: &PageContext<'_>, approval: &Approval) -> Markup {
    let Approval { id, tool, action, reasons, origin, chat, cycle_id, asked_at, expires_at, named, .. } = approval;
    let mark = if is_dangerous(approval) { "badge bad" } else { "badge" };
    let described = approval_text::describe_action(tool, action);
    html! {
        h2 { (render_wish(desk, &described)) }
        p { span class=(mark) { "Risk: " (approval.risk().describe()) } " " span .meta { "Question " (id) } }
        (render_parts(desk, &described))
        (render_named_files(desk, named))
        p { "Why I ask: " (escape_and_clean(desk, &reasons.join(" "))) }
        @if let Some(origin) = origin {
            p { (render_untrusted_badge()) " Before this I had read untrusted text (" (escape_and_clean(desk, origin)) "). This may be its author's wish, not yours." }
        }
        p .meta {
            "Asked while I was " (wake_link(cycle_id, "doing this"))
            @if chat.is_terminal() { " at the terminal" } @else { " in chat " (chat.number()) }
            @if let Some(at) = asked_at { ", " (render_time(desk, *at)) }
            @if let Some(at) = expires_at { "; expires " (render_time(desk, *at)) }
            "."
        }
        details {
            summary { "The exact bytes of question " (id) }
            div .scroll tabindex="0" role="region" aria-label={ "The exact bytes of question " (id) } { pre { (escape_and_clean(desk, action)) } }
            p .meta {
                "A yes allows exactly these " (action.len()) " bytes, once. Their SHA-256 is " code .digest { (hash_action(action)) } ". "
                code { "wake approvals bytes " (id) " | sha256sum" } " prints the same."
            }
        }
    }
}

/// Renders the wish: the action and its object.
fn render_wish(desk: &PageContext<'_>, described: &Described) -> Markup {
    html! {
        "May I "
        @for piece in &described.wish {
            @match piece {
                WishPiece::Words(words) => (words),
                WishPiece::Value(value) => code { (escape_and_clean(desk, value)) },
            }
        }
        "?"
    }
}

/// Renders the action's parts in full.
fn render_parts(desk: &PageContext<'_>, described: &Described) -> Markup {
    html! {
        @for part in &described.parts {
            @if let Some(name) = &part.name { p .meta { (escape_and_clean(desk, &name.replace('_', " "))) ":" } }
            pre .whole { (escape_and_clean(desk, &part.text)) }
        }
    }
}

/// Renders the files that the action names, with their text in full.
fn render_named_files(desk: &PageContext<'_>, named: &BoundFiles) -> Markup {
    html! {
        @for file in &named.files {
            p {
                @if file.is_run { "It runs " } @else { "It names " }
                code { (escape_and_clean(desk, &file.path.to_string_lossy())) }
                @if file.text.is_none() { " (" (file.bytes) " bytes), which can't be shown here." } @else { ":" }
            }
            @if let Some(text) = &file.text {
                pre .whole { (escape_and_clean(desk, text)) }
            }
        }
        @if named.beside.is_some() {
            p .meta { "The files it loads from my scratch folder must not change before you allow it." }
        }
    }
}

fn render_decided(desk: &PageContext<'_>, approval: &Approval) -> Markup {
    let by = match approval.decided_by.as_deref() {
        Some("console") => "on this machine",
        Some(_) => "in the chat",
        None => "",
    };
    let described = approval_text::describe_action(&approval.tool, &approval.action);
    let mark = match approval.state {
        ApprovalState::Approved => "badge ok",
        ApprovalState::Denied => "badge bad",
        _ => "badge",
    };
    html! {
        p {
            "Question " (approval.id) ": " (render_wish(desk, &described)) " "
            span class=(mark) { (describe_state(desk, approval)) }
        }
        p .meta {
            @if let Some(at) = approval.decided_at.or(approval.asked_at) { (render_time(desk, at)) " " }
            (by) " · " (wake_link(&approval.cycle_id, "what came of it"))
        }
        details {
            summary { "What question " (approval.id) " asked" }
            (render_parts(desk, &described))
            p { "Why I asked: " (escape_and_clean(desk, &approval.reasons.join(" "))) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::types::ChatRef;

    fn approval() -> Approval {
        Approval {
            id: 1,
            cycle_id: "c".to_owned(),
            call: "t1".to_owned(),
            tool: "shell".to_owned(),
            action: r#"{"command":"ls"}"#.to_owned(),
            risk: "caution".to_owned(),
            reasons: vec!["a".to_owned()],
            origin: None,
            chat: ChatRef::TERMINAL,
            state: ApprovalState::Pending,
            asked_at: None,
            expires_at: None,
            decided_at: None,
            decided_by: None,
            used_at: None,
            rule: None,
            named: BoundFiles::default(),
            consents: Vec::new(),
        }
    }

    #[test]
    fn any_difference_shown_changes_the_digest() {
        let one = hash_question(&approval());
        let others = [
            Approval { id: 2, ..approval() },
            Approval { action: r#"{ "command":"ls"}"#.to_owned(), ..approval() },
            Approval { tool: "bash".to_owned(), ..approval() },
            Approval { risk: "safe".to_owned(), ..approval() },
            Approval { reasons: Vec::new(), ..approval() },
            Approval { origin: Some("mail".to_owned()), ..approval() },
            Approval { named: BoundFiles { beside: Some("a".to_owned()), ..BoundFiles::default() }, ..approval() },
        ];
        for other in &others {
            assert_ne!(hash_question(other), one, "{other:?}");
        }
        assert_eq!(hash_question(&approval()), one);
    }

    #[test]
    fn an_unknown_risk_counts_as_dangerous() {
        let of = |risk: &str| is_dangerous(&Approval { risk: risk.to_owned(), ..approval() });
        assert_eq!(["safe", "caution", "dangerous", "destructive", "?"].map(of), [false, false, true, true, true]);
    }
}
