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
    approval_text::{self, Described, WishPiece, sha256},
    types::BoundFiles,
    words::count,
};
use reveille_cycle as cycle;
use reveille_policy::Risk;
use reveille_store::{Approval, ApprovalState, Store};

use super::{
    changes::agreed,
    error::PageError,
    frame::{PagePlace, frame},
    parts::{others_at_all, shown, time, wake_link},
    site::{PageDesk, PageSite},
};

/// Maximum decided questions shown, and their maximum age.
const MAX_DECIDED: usize = 50;
const DECIDED_WITHIN: TimeDelta = TimeDelta::days(7);

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route("/questions", get(show))
        .route("/questions/together", post(answer_together))
        .route("/questions/{id}", get(show_one).post(answer))
}

#[derive(Deserialize)]
struct AskedQuestions {
    /// The question just answered.
    answered: Option<i64>,
}

/// An answer.
#[derive(Deserialize)]
struct SentAnswer {
    answer: Answered,
    /// The digest of the question shown.
    digest: String,
    /// The question was shown a second time.
    #[serde(default)]
    again: bool,
    /// The page of the answer: `chat`, `today`, or else this view.
    #[serde(default)]
    from: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answered {
    Allow,
    Refuse,
}

async fn show(State(site): State<Arc<PageSite>>, Query(asked): Query<AskedQuestions>) -> Result<Markup, PageError> {
    let content = site.at_desk(move |desk| all(desk, asked.answered)).await?;
    Ok(frame(PagePlace::Questions, "Questions", &content))
}

async fn show_one(State(site): State<Arc<PageSite>>, Path(id): Path<i64>) -> Result<Markup, PageError> {
    let content = site
        .at_desk(move |desk| {
            let approval = question(&read(desk)?, id)?;
            Ok(once_more(desk, &approval))
        })
        .await?;
    Ok(frame(PagePlace::Questions, "Are you sure?", &content))
}

async fn answer(
    State(site): State<Arc<PageSite>>,
    Path(id): Path<i64>,
    Form(sent): Form<SentAnswer>,
) -> Result<Response, PageError> {
    let (is_decided, response) = site.at_desk(move |desk| decide(desk, id, &sent)).await?;
    if is_decided {
        site.nudge.notify_one();
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
    site.at_desk(move |desk| decide_together(desk, &sent)).await?;
    site.nudge.notify_one();
    Ok(Redirect::to("/questions").into_response())
}

fn decide_together(desk: &PageDesk<'_>, sent: &SentTogether) -> Result<(), PageError> {
    let changed = || {
        PageError::Refused("One of these isn't open any more, or isn't what you read. Nothing was decided.".to_owned())
    };
    let is_allowed = sent.answer == Answered::Allow;
    let mut store = cycle::open_store(desk.config).map_err(|_| PageError::Broken)?;
    let mut ids = Vec::new();
    for shown in sent.shown.split_whitespace() {
        let (id, read) = shown.split_once(':').ok_or_else(changed)?;
        let approval = question(&store, id.parse().map_err(|_| changed())?)?;
        let is_risky = is_allowed && is_dangerous(&approval);
        if digest(&approval) != read || !is_open(desk, &approval) || is_risky {
            return Err(changed());
        }
        ids.push(approval.id);
    }
    for id in ids {
        store.approvals_mut().decide(id, is_allowed, desk.config.clock().now())?;
    }
    Ok(())
}

/// Renders buttons for all open questions of a task at once, unless any is dangerous. The questions are shown in full above.
fn together(open: &[Approval]) -> Markup {
    let of_first = |approval: &&Approval| open.first().is_some_and(|first| first.cycle_id == approval.cycle_id);
    let task: Vec<&Approval> = open.iter().filter(of_first).collect();
    let shown: Vec<String> = task.iter().map(|approval| format!("{}:{}", approval.id, digest(approval))).collect();
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

fn read(desk: &PageDesk<'_>) -> Result<Store, PageError> {
    desk.store()?.ok_or_else(|| PageError::Missing("There are no questions yet.".to_owned()))
}

fn question(store: &Store, id: i64) -> Result<Approval, PageError> {
    store.approvals().approval(id)?.ok_or_else(|| PageError::Missing(format!("There is no question {id}.")))
}

/// Decides a question. Returns true if that took effect, and the response.
fn decide(desk: &PageDesk<'_>, id: i64, sent: &SentAnswer) -> Result<(bool, Response), PageError> {
    let store = read(desk)?;
    let approval = question(&store, id)?;
    drop(store);
    if digest(&approval) != sent.digest {
        return Ok((false, not_taken(desk, "This question isn't the one that you read.", &approval)));
    }
    if !is_open(desk, &approval) {
        return Ok((false, not_taken(desk, state_told(desk, &approval), &approval)));
    }
    let is_allowed = sent.answer == Answered::Allow;
    if is_allowed && is_dangerous(&approval) && !sent.again {
        return Ok((false, Redirect::to(&format!("/questions/{id}")).into_response()));
    }
    let mut store = cycle::open_store(desk.config).map_err(|_| PageError::Broken)?;
    if !store.approvals_mut().decide(id, is_allowed, desk.config.clock().now())? {
        let approval = question(&store, id)?;
        return Ok((false, not_taken(desk, state_told(desk, &approval), &approval)));
    }
    let to = match sent.from.as_str() {
        "chat" => "/chat".to_owned(),
        "today" => "/".to_owned(),
        _ => format!("/questions?answered={id}"),
    };
    Ok((true, Redirect::to(&to).into_response()))
}

/// Returns the digest of a question as shown.
fn digest(approval: &Approval) -> String {
    let Approval { id, cycle_id, call, tool, action, risk, reasons, origin, chat, expires_at, named, .. } = approval;
    let shown = (id, cycle_id, call, tool, action, risk, reasons, origin, chat.number(), expires_at, named);
    // Serialization can't fail here; an empty digest would match no form.
    serde_json::to_string(&shown).map_or_else(|_| String::new(), |shown| sha256(&shown))
}

fn is_open(desk: &PageDesk<'_>, approval: &Approval) -> bool {
    approval.state == ApprovalState::Pending && !approval.is_expired(desk.now)
}

fn is_dangerous(approval: &Approval) -> bool {
    matches!(approval.risk(), Risk::Dangerous | Risk::Destructive)
}

/// Describes a question's state.
fn state_told(desk: &PageDesk<'_>, approval: &Approval) -> &'static str {
    match approval.state {
        ApprovalState::Approved => "This was allowed, once.",
        ApprovalState::Denied => "This was refused.",
        ApprovalState::Withdrawn => "This question is over: nothing was done.",
        ApprovalState::Expired => "Nobody answered in time, so I didn't do it.",
        ApprovalState::Pending if approval.is_expired(desk.now) => "This has expired, so I won't do it.",
        ApprovalState::Pending => "This waits for your word.",
    }
}

fn not_taken(desk: &PageDesk<'_>, why: &str, approval: &Approval) -> Response {
    let content = html! {
        p .note.warn role="alert" { (why) " Your answer changed nothing." }
        (asked(desk, approval))
        p .actions { a href="/questions" { "All questions" } }
    };
    (StatusCode::CONFLICT, frame(PagePlace::Questions, "That wasn't taken", &content)).into_response()
}

fn all(desk: &PageDesk<'_>, answered: Option<i64>) -> Result<Markup, PageError> {
    let Some(store) = desk.store()? else {
        return Ok(nothing_open());
    };
    let open = store.approvals().pending_approvals(desk.now)?;
    let answered = answered.map(|id| store.approvals().approval(id)).transpose()?.flatten();
    let mut decided = store.approvals().last_approvals(MAX_DECIDED)?;
    decided.retain(|approval| {
        let at = approval.decided_at.or(approval.asked_at);
        !is_open(desk, approval) && at.is_some_and(|at| desk.now.signed_duration_since(at) <= DECIDED_WITHIN)
    });
    let agreed = agreed(desk, &store)?;
    Ok(html! {
        section #live-questions data-live {
            @if let Some(approval) = answered.filter(|approval| !is_open(desk, approval)) {
                p .note role="status" { "Question " (approval.id) ": " (state_told(desk, &approval)) " " (what_now(&approval)) }
            }
            @if open.is_empty() {
                (nothing_open())
            } @else {
                p { (count(open.len(), "question")) " for you. If you don't answer, I won't do it." }
            }
            @for approval in &open { (card(desk, approval, "")) }
            (together(&open))
            @if !decided.is_empty() {
                h2 { "Decided in the last days" }
                ul .list {
                    @for approval in &decided { li { (decided_line(desk, approval)) } }
                }
            }
            (agreed)
        }
    })
}

fn nothing_open() -> Markup {
    html! {
        p { "No open questions. When I want to do something that needs your word, it stands here with exactly what would run." }
    }
}

fn what_now(approval: &Approval) -> &'static str {
    match approval.state {
        ApprovalState::Approved if approval.used_at.is_none() => "I go on with it as soon as I'm awake.",
        ApprovalState::Denied => "I go on without it.",
        _ => "",
    }
}

/// Renders an open question with its buttons. `from`: the page that shows it.
pub(super) fn card(desk: &PageDesk<'_>, approval: &Approval, from: &str) -> Markup {
    html! {
        article .card {
            (asked(desk, approval))
            (answers(approval, false, from))
        }
    }
}

/// Renders a dangerous question a second time, before it can be allowed.
fn once_more(desk: &PageDesk<'_>, approval: &Approval) -> Markup {
    html! {
        @if is_open(desk, approval) {
            @if is_dangerous(approval) {
                p { "Risk: " strong { (approval.risk().told()) } ". Read once more what would run; what it does may not be undone." }
            }
        } @else {
            p .note role="status" { (state_told(desk, approval)) }
        }
        article .card {
            (asked(desk, approval))
            @if is_open(desk, approval) { (answers(approval, true, "")) }
        }
        p .actions { a href="/questions" { "All questions" } }
    }
}

fn answers(approval: &Approval, is_again: bool, from: &str) -> Markup {
    let (id, digest) = (approval.id, digest(approval));
    let leads_on = is_dangerous(approval) && !is_again;
    html! {
        div .actions {
            @if leads_on {
                a .button href={ "/questions/" (id) } { "Allow once…" }
            } @else {
                (answer_form((id, &digest), (is_again, from), ("allow", "Allow once")))
            }
            (answer_form((id, &digest), (is_again, from), ("refuse", "Don't allow")))
        }
    }
}

fn answer_form((id, digest): (i64, &str), (is_again, from): (bool, &str), (answer, name): (&str, &str)) -> Markup {
    html! {
        form action={ "/questions/" (id) } method="post" {
            input type="hidden" name="answer" value=(answer);
            input type="hidden" name="digest" value=(digest);
            @if is_again { input type="hidden" name="again" value="true"; }
            @if !from.is_empty() { input type="hidden" name="from" value=(from); }
            button type="submit" aria-label={ (name) ", question " (id) } { (name) }
        }
    }
}

/// Renders a question: the exact action with invisible characters spelled out, the reason, the origin, and the expiry.
fn asked(desk: &PageDesk<'_>, approval: &Approval) -> Markup {
    let Approval { id, tool, action, reasons, origin, chat, cycle_id, asked_at, expires_at, named, .. } = approval;
    let mark = if is_dangerous(approval) { "badge bad" } else { "badge" };
    let described = approval_text::describe(tool, action);
    html! {
        h2 { (sentence(desk, &described)) }
        p { span class=(mark) { "Risk: " (approval.risk().told()) } " " span .meta { "Question " (id) } }
        (parts(desk, &described))
        (named_files(desk, named))
        p { "Why I ask: " (shown(desk, &reasons.join(" "))) }
        @if let Some(origin) = origin {
            p { (others_at_all()) " Before this I had read text by others (" (shown(desk, origin)) "). This may be their wish, not yours." }
        }
        p .meta {
            "Asked while I " (wake_link(cycle_id, "did this"))
            @if chat.is_terminal() { " at the terminal" } @else { " in chat " (chat.number()) }
            @if let Some(at) = asked_at { ", " (time(desk, *at)) }
            @if let Some(at) = expires_at { "; expires " (time(desk, *at)) }
            "."
        }
        details {
            summary { "The exact bytes of question " (id) }
            div .scroll tabindex="0" role="region" aria-label={ "The exact bytes of question " (id) } { pre { (shown(desk, action)) } }
            p .meta {
                "A yes allows exactly these " (action.len()) " bytes, once. Their SHA-256 is " code .digest { (sha256(action)) } ". "
                code { "wake approvals bytes " (id) " | sha256sum" } " prints the same."
            }
        }
    }
}

/// Renders the wish: the action and its object.
fn sentence(desk: &PageDesk<'_>, described: &Described) -> Markup {
    html! {
        "May I "
        @for piece in &described.wish {
            @match piece {
                WishPiece::Words(words) => (words),
                WishPiece::Value(value) => code { (shown(desk, value)) },
            }
        }
        "?"
    }
}

/// Renders the action's parts in full.
fn parts(desk: &PageDesk<'_>, described: &Described) -> Markup {
    html! {
        @for part in &described.parts {
            @if let Some(name) = &part.name { p .meta { (shown(desk, &name.replace('_', " "))) ":" } }
            pre .whole { (shown(desk, &part.text)) }
        }
    }
}

/// Renders the files that the action names, text in full.
fn named_files(desk: &PageDesk<'_>, named: &BoundFiles) -> Markup {
    html! {
        @for file in &named.files {
            p {
                @if file.is_run { "It runs " } @else { "It names " }
                code { (shown(desk, &file.path.to_string_lossy())) }
                @if file.text.is_none() { " (" (file.bytes) " bytes), which can't be shown here." } @else { ":" }
            }
            @if let Some(text) = &file.text {
                pre .whole { (shown(desk, text)) }
            }
        }
        @if named.beside.is_some() {
            p .meta { "What it loads from my scratch folder has to stay as it is until your yes." }
        }
    }
}

fn decided_line(desk: &PageDesk<'_>, approval: &Approval) -> Markup {
    let by = match approval.decided_by.as_deref() {
        Some("console") => "at this machine",
        Some(_) => "in the chat",
        None => "",
    };
    let described = approval_text::describe(&approval.tool, &approval.action);
    let mark = match approval.state {
        ApprovalState::Approved => "badge ok",
        ApprovalState::Denied => "badge bad",
        _ => "badge",
    };
    html! {
        p {
            "Question " (approval.id) ": " (sentence(desk, &described)) " "
            span class=(mark) { (state_told(desk, approval)) }
        }
        p .meta {
            @if let Some(at) = approval.decided_at.or(approval.asked_at) { (time(desk, at)) " " }
            (by) " · " (wake_link(&approval.cycle_id, "what came of it"))
        }
        details {
            summary { "What question " (approval.id) " asked" }
            (parts(desk, &described))
            p { "Why I asked: " (shown(desk, &approval.reasons.join(" "))) }
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
        }
    }

    #[test]
    fn whatever_differs_in_what_is_shown_has_another_digest() {
        let one = digest(&approval());
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
            assert_ne!(digest(other), one, "{other:?}");
        }
        assert_eq!(digest(&approval()), one);
    }

    #[test]
    fn a_risk_that_isnt_known_is_dangerous() {
        let of = |risk: &str| is_dangerous(&Approval { risk: risk.to_owned(), ..approval() });
        assert_eq!(["safe", "caution", "dangerous", "destructive", "?"].map(of), [false, false, true, true, true]);
    }
}
