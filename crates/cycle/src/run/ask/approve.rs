//! The policy's decision on a call, and the question to a person.
//!
//! A question parks its cycle: only a database row waits for the answer. After the decision, or the expiry, the cycle resumes from its
//! journal like an interrupted one, and runs exactly the bytes that were shown. Any failure on the way counts as a refusal.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    approval_text, random,
    redact::Redactor,
    types::{BoundFiles, ChatRef},
    words,
    zone::Tz,
};
use reveille_policy::{Decision, Risk, Verdict};
use reveille_sandbox::exec::held::{self, FoundFiles};
use reveille_store::{Approval, ApprovalState, Entry, NewApproval, NewOutgoing, NewProposal, OutgoingKind, is_long};
use reveille_tools::{Refusal, Registry};

use crate::{
    context::WakeError,
    decide::{
        brief,
        limits::{Limits, Reached},
        machine::{Cycle, ToolRequest},
        taint, verify,
    },
    run::{ask::proposal, record},
    session::{Halt, Live, Session},
    standing,
};

/// How long a question can be answered.
pub(crate) const ASKED_FOR: TimeDelta = TimeDelta::hours(24);
/// The maximum length of a file's caption, in characters: Telegram's limit.
#[cfg(test)]
const CAPTION_CHARS_MAX: usize = 1_024;
/// The result of a call that would ask, in work that no person asked for.
const WOULD_ASK: &str = "This would have to ask, and nobody is there to answer now. Nothing was done. Propose it with `tell` instead, or leave it.";
/// The maximum length of shown reasons and origins if a file holds them in full, in characters.
const BESIDE_FILE_CHARS_MAX: usize = 250;
/// The number of further calls of a turn asked about together with the first.
const ASKED_AHEAD_MAX: usize = 9;
/// The maximum number of listed effects, and of listed remaining steps.
const LISTED_MAX: usize = 8;
/// The maximum length of each, in characters.
const LISTED_CHARS_MAX: usize = 160;

/// The policy's decision on a call, with its journal entries.
pub(crate) enum Judged {
    /// The call runs.
    Allowed(Vec<Entry>),
    /// The call doesn't run, and the model receives the reason.
    Refused(Vec<Entry>, String),
    /// A person is asked, and the cycle is parked.
    Asked,
}

/// Lets the policy decide on a call, and asks a person if needed.
pub(crate) fn judge(
    session: &mut Session<'_>,
    live: &mut Live,
    registry: &Registry,
    request: &ToolRequest,
) -> Result<Judged, WakeError> {
    let Some(mut verdict) = find_verdict(session, live, registry, request) else {
        // Running the call reports that there is no such tool.
        return Ok(Judged::Allowed(Vec::new()));
    };
    let would_ask = verdict.decision == Decision::Ask && live.world.asks_nobody();
    if would_ask {
        verdict.decision = Decision::Deny;
    }
    let judged = Entry::Judged { call: request.id.clone(), verdict: verdict.clone() };
    match verdict.decision {
        Decision::Allow => Ok(Judged::Allowed(vec![judged])),
        Decision::Deny if would_ask => Ok(Judged::Refused(vec![judged], WOULD_ASK.to_owned())),
        Decision::Deny => {
            let why = format!("The policy doesn't allow this: {} Nothing was done.", verdict.reasons.join(" "));
            Ok(Judged::Refused(vec![judged], why))
        }
        Decision::Ask => {
            let proposal = match proposal::build_proposal(session, live, registry, request)? {
                Some(Err(why)) => {
                    verdict.decision = Decision::Deny;
                    return Ok(Judged::Refused(vec![Entry::Judged { call: request.id.clone(), verdict }], why));
                }
                Some(Ok(proposal)) => Some(proposal),
                None => None,
            };
            let effects = proposal.iter().flat_map(proposal::describe_effect).collect::<Vec<_>>();
            verdict.reasons.splice(0..0, effects);
            let FoundFiles { named, unheld } = list_named_files(session, live, request);
            verdict.reasons.extend(unheld);
            let may_stand = proposal.is_none() && may_stand(session, live, registry, (request, &named), &verdict);
            ask_person(session, live, CallQuestion { request, may_stand, proposal, verdict, judged, named })?;
            Ok(Judged::Asked)
        }
    }
}

/// Also asks about the turn's other calls that would ask now, so that the person can answer all together. The work continues once all are
/// answered.
pub(crate) fn ask_ahead(session: &mut Session<'_>, live: &mut Live, registry: &Registry) -> Result<(), WakeError> {
    for request in live.state.unjudged_calls().into_iter().take(ASKED_AHEAD_MAX) {
        let asks =
            find_verdict(session, live, registry, &request).is_some_and(|verdict| verdict.decision == Decision::Ask);
        // A proposal is asked about separately, one at a time.
        if asks && request.name != approval_text::PROPOSE_CHANGE {
            judge(session, live, registry, &request)?;
        }
    }
    Ok(())
}

/// Returns the policy's current verdict on a call. `None` if there is no such tool.
fn find_verdict(session: &Session<'_>, live: &Live, registry: &Registry, request: &ToolRequest) -> Option<Verdict> {
    let ToolRequest { name, input, .. } = request;
    let verdict = registry.judge(name, input, &live.world, find_origins(live, registry, request).as_deref())?;
    let sends = registry.get(name).is_none_or(|tool| tool.may_send(input, &live.world));
    Some(deny_leaks(verdict, request, sends, session.context.redactor))
}

/// Returns the origin of untrusted content that a call names and will read when it runs.
fn find_named_origin(live: &Live, registry: &Registry, request: &ToolRequest) -> Option<String> {
    // fault: names-misled-cycle-left
    registry.mentions_untrusted_files(&request.name, &request.input, &live.world).then(|| taint::LEFT.to_owned())
}

/// Returns the origins of all untrusted text that the cycle will have read once a call runs.
fn find_origins(live: &Live, registry: &Registry, request: &ToolRequest) -> Option<String> {
    taint::join_origins(live.state.taints.iter().cloned().chain(find_named_origin(live, registry, request)))
}

/// Returns the current prohibition of a call that an earlier wake allowed, with the result for the model. `None` if it is still allowed.
pub(crate) fn find_prohibition(
    session: &Session<'_>,
    live: &Live,
    registry: &Registry,
    request: &ToolRequest,
) -> Option<(Entry, String)> {
    let verdict = find_verdict(session, live, registry, request)?;
    // fault: yes-counts-rule-made
    if verdict.decision != Decision::Deny {
        return None;
    }
    let why = verdict.reasons.join(" ");
    let why = format!("It was allowed before, but the policy no longer allows it: {why} Nothing was done now.");
    Some((Entry::Judged { call: request.id.clone(), verdict }, why))
}

/// Refuses a call because of the policy.
pub(crate) fn refuse(
    session: &mut Session<'_>,
    live: &mut Live,
    request: &ToolRequest,
    entries: Vec<Entry>,
    why: String,
) -> Result<(), WakeError> {
    record::settle_with_entries(session, live, request, entries, Err(Refusal::new(why)))
}

/// Returns `true` if the person may allow a call permanently: a rule can match exactly this call, and would allow it. Excluded are calls
/// that are tainted or irreversible, run files, name files that any command may write, or come from another chat.
fn may_stand(
    session: &Session<'_>,
    live: &mut Live,
    registry: &Registry,
    (request, named): (&ToolRequest, &BoundFiles),
    verdict: &Verdict,
) -> bool {
    let ToolRequest { name, input, .. } = request;
    let owner = session.context.config.owner_chat;
    let is_owners = live.cycle.chat.is_none_or(|chat| chat == ChatRef::TERMINAL || chat == owner);
    let is_private = owner == ChatRef::TERMINAL || owner.person_id().is_some();
    if !is_owners
        || !is_private
        || !live.world.sees_all()
        || verdict.risk == Risk::Destructive
        || find_origins(live, registry, request).is_some()
        || is_long(input, named, &verdict.reasons)
        // A rule contains a command's words, but not the later content of the files it names.
        || named.runs_files()
        || (!named.is_empty() && standing::has_access(name, input, &live.world.means.rules))
        || standing::names_scratch(name, input, &live.world.means.rules, live.world.means.shelter.scratch())
        || standing::derive_rule(name, input).is_none_or(|rule| session.context.redactor.contains_secret(&rule))
    {
        return false;
    }
    let with_rule = live.world.means.rules.with_exact(name, input);
    let rules = std::mem::replace(&mut live.world.means.rules, with_rule);
    let judged = self::find_verdict(session, live, registry, request);
    live.world.means.rules = rules;
    judged.is_some_and(|judged| judged.decision == Decision::Allow)
}

/// A call that a person is asked about.
struct CallQuestion<'r> {
    request: &'r ToolRequest,
    /// `true` if the call can be allowed permanently.
    may_stand: bool,
    /// The change of orders in question.
    proposal: Option<NewProposal>,
    verdict: Verdict,
    /// The journal entry of the verdict.
    judged: Entry,
    /// The files bound to the approval.
    named: BoundFiles,
}

fn ask_person(session: &mut Session<'_>, live: &mut Live, question: CallQuestion<'_>) -> Result<(), WakeError> {
    let tz = session.context.config.timezone;
    ask_question(session, live, question, |_, approval, shown_in| render_question(approval, shown_in, tz))
}

/// Asks whether a cycle at a limit may continue.
pub(crate) fn ask_to_continue(
    session: &mut Session<'_>,
    live: &mut Live,
    limits: &Limits,
    request: &ToolRequest,
) -> Result<(), WakeError> {
    let Some(reached) = live.state.meter.find_reached_limit(limits) else {
        return Ok(());
    };
    let why = format!("{} is my limit for {} work.", reached.stretch.describe(), reached.complexity.name());
    let verdict = Verdict::new(Risk::Safe, Decision::Ask, why);
    let judged = Entry::Judged { call: request.id.clone(), verdict: verdict.clone() };
    let (asked_in, tz) = (live.cycle.chat, session.context.config.timezone);
    let question =
        CallQuestion { request, may_stand: false, proposal: None, verdict, judged, named: BoundFiles::default() };
    ask_question(session, live, question, |state, approval, shown_in| {
        go_on_question(state, &reached, name_asking_chat(asked_in, shown_in), approval.expires_at, tz)
    })
}

/// Returns `true` if a person has decided whether a cycle continues, and journals the decision. `false` while the question is open.
pub(crate) fn is_continuation_decided(
    session: &mut Session<'_>,
    live: &mut Live,
    request: &ToolRequest,
) -> Result<bool, WakeError> {
    session.store.approvals_mut().expire_approvals()?;
    let state =
        session.store.approvals().find_call_approval(&live.cycle.id, &request.id)?.map(|approval| approval.state);
    let decided =
        |is_approved, why: &str| Entry::Decided { call: request.id.clone(), is_approved, why: why.to_owned() };
    let why = match state {
        Some(ApprovalState::Pending) => return Ok(false),
        Some(ApprovalState::Approved) => {
            let yes = decided(true, "");
            let action = request.approved_action();
            let entries = std::slice::from_ref(&yes);
            if session.store.approvals_mut().begin_approved_call(&live.cycle.id, action, entries)? {
                live.state.apply(&yes);
                return Ok(true);
            }
            "What you approved isn't what I had asked."
        }
        Some(ApprovalState::Denied) => "You said to stop.",
        Some(ApprovalState::Expired) => "I asked whether to continue and had no answer in time, so I stopped.",
        Some(ApprovalState::Withdrawn) | None => "I couldn't ask whether to continue, so I stopped.",
    };
    record::record_entry(session, live, &decided(false, why), &[])?;
    Ok(true)
}

/// Asks a person a question. The journal entry, the question's row and the message are one transaction.
fn ask_question(
    session: &mut Session<'_>,
    live: &mut Live,
    question: CallQuestion<'_>,
    text: impl Fn(&Cycle, &NewApproval, ChatRef) -> String,
) -> Result<(), WakeError> {
    let CallQuestion { request, may_stand, proposal, mut verdict, judged, named } = question;
    let config = session.context.config;
    let now = session.now();
    // The owner decides about a guest's request; at the terminal the user is the owner.
    let chat = match live.cycle.chat {
        Some(ChatRef::TERMINAL) => ChatRef::TERMINAL,
        _ => config.owner_chat,
    };
    // This reason comes first, so that it appears wherever the question is shown: in a message, a file or a terminal.
    verdict.reasons = name_asking_chat(live.cycle.chat, chat).into_iter().chain(verdict.reasons).collect();
    let approval = NewApproval {
        call: request.id.clone(),
        tool: request.name.clone(),
        action: request.input.clone(),
        verdict,
        origin: find_origins(live, &session.tooling().registry, request),
        // A private chat has the number of its person. In a group any listed person may decide.
        approver: chat.person_id(),
        nonce: generate_nonce()?,
        expires_at: now + ASKED_FOR,
        may_stand,
        proposal,
        named,
    };
    let text = text(&live.state, &approval, chat);
    let is_owners_chat = live.cycle.chat == Some(chat);
    let message = |id| {
        NewOutgoing {
        chat,
        text: session.context.redactor.redact(&match chat {
            ChatRef::TERMINAL => {
                let always =
                    if may_stand { format!(" Always: `wake approvals approve {id} --always`.") } else { String::new() };
                let typed = if approval.verdict.risk <= Risk::Caution { " Or say yes or no." } else { "" };
                format!(
                    "{text}\nTo allow it: `wake approvals approve {id}`. To refuse: `wake approvals deny {id}`.{always}{typed}"
                )
            }
            _ => text,
        }),
        kind: OutgoingKind::Approval,
        key: Some(format!("approval/{}/{}", live.cycle.id, request.id)),
        thread_id: live.cycle.thread_id.filter(|_| is_owners_chat),
        reply_to: live.world.conversation.chat.and_then(|chat| chat.reply_to).filter(|_| is_owners_chat),
        cycle_id: None,
        // The author of an action's words is unknown.
        links_as_text: true,
        taint: None,
        nudge: None,
    }
    };
    session.store.approvals_mut().ask_approval(&live.cycle.id, std::slice::from_ref(&judged), &approval, message)?;
    live.state.apply(&judged);
    Ok(())
}

/// Returns a person's decision about a call as a journal entry. `None` while the question is open.
pub(crate) fn find_decision(
    session: &mut Session<'_>,
    live: &Live,
    request: &ToolRequest,
) -> Result<Option<Entry>, WakeError> {
    session.store.approvals_mut().expire_approvals()?;
    let approval = session.store.approvals().find_call_approval(&live.cycle.id, &request.id)?;
    Ok(find_answer(approval.as_ref()).map(|(is_approved, why)| Entry::Decided {
        call: request.id.clone(),
        is_approved,
        why: why.to_owned(),
    }))
}

/// Runs a call approved by a person: exactly the bytes they saw, once. A rule that now forbids the call wins over the approval.
pub(crate) async fn run_approved_call(
    session: &mut Session<'_>,
    live: &mut Live,
    registry: &Registry,
    request: &ToolRequest,
) -> Result<(), Halt> {
    if let Some((judged, why)) = find_prohibition(session, live, registry, request) {
        return Ok(refuse(session, live, request, vec![judged], why)?);
    }
    let approval = session.store.approvals().find_call_approval(&live.cycle.id, &request.id)?;
    let (consents, named) = approval.map(|approval| (approval.consents, approval.named)).unwrap_or_default();
    // From here no running program can replace a file after it was checked.
    live.exec.end_shell();
    let held = match held::hold_files(&named, live.exec.shelter()) {
        Ok(held) => held,
        Err(why) => return Ok(record::settle_call(session, live, request, Err(Refusal::new(why)))?),
    };
    let entry = build_call_entry(live, registry, request);
    let action = request.approved_action();
    let entries = std::slice::from_ref(&entry);
    // fault: yes-couldnt-marked-used
    if !session.store.approvals_mut().begin_approved_call(&live.cycle.id, action, entries)? {
        let why = "What was approved is not what would run now, or it ran before. Nothing was done.";
        return Ok(record::settle_call(session, live, request, Err(Refusal::new(why.to_owned())))?);
    }
    live.state.apply(&entry);
    record::preview_entries(live, entries);
    live.exec.approve(consents, held);
    let result = record::execute_call(session, live, registry, request).await;
    live.exec.revoke_approval();
    session.forget_tooling();
    result
}

/// Finds the files named in a command, in their current state. They are shown to the person, and the approval is bound to them.
fn list_named_files(session: &Session<'_>, live: &mut Live, request: &ToolRequest) -> FoundFiles {
    let Some(text) = standing::find_command(&request.name, &request.input) else { return FoundFiles::default() };
    // No running program may replace a file during the check. The cycle is parked now anyway.
    live.exec.end_shell();
    let redactor = session.context.redactor;
    let is_given = standing::has_access(&request.name, &request.input, &live.world.means.rules);
    held::find_named_files((&text, is_given), live.exec.shelter(), &live.world.means.rules, &|text| {
        !redactor.contains_secret(text)
    })
}

/// Denies a call whose arguments would give a secret away. A call with a secret is never asked about: secrets are masked in questions, and
/// a mask could hide something else.
fn deny_leaks(verdict: Verdict, request: &ToolRequest, sends: bool, redactor: &Redactor) -> Verdict {
    let ToolRequest { name, input, .. } = request;
    // fault: call-carries-secret-away
    if sends && redactor.carries_live_secret(input) {
        return Verdict::deny("It would send one of your keys or tokens off this machine.");
    }
    let is_masked = || {
        let described = approval_text::describe_action(name, input);
        let shown = [
            input.clone(),
            described.raw_text(),
            described.sentence(),
            described.render_wrapped(),
            verdict.reasons.join(" "),
        ];
        shown.iter().any(|text| redactor.contains_secret(text))
    };
    // fault: mask-hides-agreed
    if verdict.decision == Decision::Ask && is_masked() {
        return Verdict::deny(
            "It needs approval, but the question would show what looks like a key or token. Those are always masked, so nobody could see \
             what they approve.",
        );
    }
    verdict
}

/// Returns the decision on a call (`true`: run it), with the result for the model on a refusal. `None` while the question is open. A
/// missing question counts as a refusal.
fn find_answer(approval: Option<&Approval>) -> Option<(bool, &'static str)> {
    match approval.map(|approval| approval.state) {
        Some(ApprovalState::Pending) => None,
        // fault: answer-yes
        Some(ApprovalState::Approved) => Some((true, "")),
        Some(ApprovalState::Denied) => Some((
            false,
            "Your person was asked and said no. Nothing was done. Don't try it another way; say what is left undone.",
        )),
        Some(ApprovalState::Expired) => {
            Some((false, "Your person was asked and didn't answer in time, which is a no. Nothing was done; say so."))
        }
        Some(ApprovalState::Withdrawn) | None => {
            Some((false, "Your person could not be asked, which is a no. Nothing was done; say so."))
        }
    }
}

/// Generates 128 random bits as text. A guessable value would be worse than no value.
fn generate_nonce() -> Result<String, WakeError> {
    Ok(random::format_hex(&random::generate_bytes::<16>()?))
}

/// Names the asking chat if a question is shown in another one, because a guest or a group asked.
fn name_asking_chat(asked_in: Option<ChatRef>, shown_in: ChatRef) -> Option<String> {
    // fault: question-doesnt-say-guest
    let chat = asked_in.filter(|chat| *chat != shown_in)?;
    Some(format!("Chat {chat} asked for this."))
}

/// Renders the question for a person: the complete action, the reason, and the expiry. `shown_in` is the reader's chat.
pub(crate) fn render_question(approval: &NewApproval, shown_in: ChatRef, tz: Tz) -> String {
    let NewApproval { tool, action, verdict, origin, expires_at, named, .. } = approval;
    // A terminal has room for everything, and can't receive a file.
    let has_file = is_long(action, named, &verdict.reasons) && shown_in != ChatRef::TERMINAL;
    let fitting = |text: String| if has_file { brief::clip(&text, BESIDE_FILE_CHARS_MAX) } else { text };
    let described = approval_text::describe_action(tool, action);
    let mut text = format!("**{}** Risk: {}.\n", described.sentence(), verdict.risk.describe());
    if has_file {
        text.push_str("\nThe whole action is in the attached file.");
        let files = named.files.len();
        if files > 0 {
            text.push_str(&format!(" It also has {} that the action names.", words::format_count(files, "file")));
        }
        text.push('\n');
    } else {
        let rest = described.render_wrapped() + &approval_text::render_files(named);
        text.extend((!rest.is_empty()).then(|| format!("\n{}", rest.trim_start_matches('\n'))));
    }
    // Only the first line of each reason is shown; the rest is in the file.
    let first_lines =
        || verdict.reasons.iter().map(|reason| reason.lines().next().unwrap_or_default()).collect::<Vec<_>>();
    let why = if has_file { first_lines().join(" ") } else { verdict.reasons.join(" ") };
    text.push_str(&format!("\nWhy I ask: {}\n", fitting(approval_text::escape_hidden(&why))));
    if let Some(origin) = origin {
        let origin = fitting(approval_text::escape_hidden(origin));
        text.push_str(&format!(
            "I had read untrusted text before this ({origin}), so it may be somebody else's wish, not yours.\n"
        ));
    }
    text.push_str(&format!("\nExpires {}. If you don't answer, I won't do it.", format_time(*expires_at, tz)));
    text
}

/// Renders the question whether to continue: the work so far, the asking chat if it isn't the reader's, effects and remaining steps of the
/// plan, and the extent of an approval.
pub(crate) fn go_on_question(
    state: &Cycle,
    reached: &Reached,
    elsewhere: Option<String>,
    expires_at: DateTime<Utc>,
    tz: Tz,
) -> String {
    let Reached { complexity, stretch, .. } = reached;
    let taken = state.meter.taken.describe();
    let mut text = format!("**Shall I continue?** I have taken {taken}, my limit for {} work.\n", complexity.name());
    text.extend(elsewhere.map(|whose| format!("{whose}\n")));
    let done: Vec<_> = state.receipts.iter().filter_map(|receipt| receipt.what.clone()).collect();
    text.push_str(&render_list("Done so far, newest first:", &done.into_iter().rev().collect::<Vec<_>>()));
    if let Some(plan) = &state.plan {
        text.push_str(&render_list("Planned, not done yet:", &verify::list_missing_steps(plan, &state.receipts)));
    }
    if state.receipts.iter().all(|receipt| receipt.what.is_none()) {
        text.push_str("\nNothing has changed so far.\n");
    }
    if let Some(origin) = taint::join_taints(&state.taints) {
        text.push_str(&format!("\nI had read untrusted text before this ({origin}).\n"));
    }
    text.push_str(&format!(
        "\nIf you allow it, I may take {} more. If not, I'll stop here and keep what is done. Expires {}. If you don't answer, I won't \
         do it.",
        stretch.describe(),
        format_time(expires_at, tz)
    ));
    text
}

/// Renders a heading with the first lines below it, each shortened. The lines are shown as code, so that untrusted text makes no links.
fn render_list(heading: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let shown = lines.iter().take(LISTED_MAX).map(|line| {
        let line = brief::clip(&line.replace('\n', " ").replace('`', "'"), LISTED_CHARS_MAX);
        format!("- `{}`\n", approval_text::escape_hidden(&line))
    });
    let more = lines.len().saturating_sub(LISTED_MAX);
    let more = if more > 0 { format!("- and {more} more\n") } else { String::new() };
    format!("\n{heading}\n{}{more}", shown.collect::<String>())
}

fn format_time(at: DateTime<Utc>, tz: Tz) -> String {
    at.with_timezone(&tz).format("%a %-d %b at %H:%M").to_string()
}

/// Builds the journal entry written before a call runs.
pub(crate) fn build_call_entry(live: &Live, registry: &Registry, request: &ToolRequest) -> Entry {
    let ToolRequest { id, name, input, .. } = request;
    Entry::Called {
        call: id.clone(),
        name: name.clone(),
        input: input.clone(),
        taint: find_named_origin(live, registry, request),
    }
}

#[cfg(test)]
mod tests;
