//! Undoing a wake: by rule, before all other due work, and even while all else is stopped.
//!
//! Undo is a cycle without a model. The changes of the wake's commit to the memory are reverted file by file, keeping later edits;
//! reminders, unsent replies and messages are reverted in the database; one commit records it. A kill in between leaves the request open,
//! and the next wake carries it out from the beginning, recognising what is already reverted.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use reveille_base::{types::ChatRef, words::format_count, zone::Tz};
use reveille_git as repo;
use reveille_git::Repo;
use reveille_memory::{DocKind, is_log, undo::revert};
use reveille_sandbox::exec::copies::{Copies, GivenBack};
use reveille_store::{CycleRow, NO_MODEL, PersonsStep, Proposal, StagedFile, TakenBack, Undo};

use crate::{
    context::{Reply, WakeError},
    decide::{situation::Reason, verify::Account},
    look::undoable::{describe_wake_step, what_they_did, which_change},
    maintain::sync,
    run::finish,
    session::{Ending, Session},
};

/// The maximum number of listed names; the rest is counted.
const MAX_NAMED: usize = 10;

/// The reverted state of the memory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Restored {
    /// Files with a new text.
    staged: Vec<StagedFile>,
    /// Files to be deleted, because the wake had created them.
    removed: Vec<repo::FileChange>,
    /// Places with later edits, for people.
    contested: Vec<String>,
    /// True if the wake's commit is in the memory.
    has_commit: bool,
    /// The branch where the commit waits to be taken in, if it was parked.
    parked: Option<String>,
}

/// Undoes a wake.
pub(crate) async fn run(session: &mut Session<'_>, repo: &Repo, undo: &Undo) -> Result<(), WakeError> {
    let reason = Reason::Undo { undo: undo.clone() };
    let cycle = session.new_cycle(std::slice::from_ref(&reason), NO_MODEL)?;
    let plan_file = session.open_plan_file(&cycle, &[])?;
    let mut account = Account::default();
    sync::take_in_person_edits(session, repo, &mut account)?;
    session.store.cycles_mut().begin_cycle(&cycle, &[], &[])?;
    // Repeated after a kill, this gives the same result.
    let proposal = match Proposal::parse_undo_target(&undo.wake) {
        Some(id) => session.store.proposals().find_proposal(id)?,
        None => None,
    };
    let own = match PersonsStep::parse_undo_target(&undo.wake) {
        Some(id) => session.store.undos().persons_step(id)?.map(|(step, _)| step),
        None => None,
    };
    let (restored, given) = match (&proposal, &own) {
        (Some(proposal), _) => (revert_agreed_change(repo, proposal)?, GivenBack::default()),
        (None, Some(step)) => (revert_person_step(repo, step)?, GivenBack::default()),
        (None, None) => {
            let copies = Copies::from_config(session.context.config);
            let given = copies.give_back(&undo.wake).map_err(|(path, source)| WakeError::Workspace { path, source })?;
            (revert_commit(repo, &undo.wake)?, given)
        }
    };
    let (now, tz, redactor) = (session.now(), session.context.config.timezone, session.context.redactor);
    let row = session.store.cycles().find_cycle(&undo.wake)?;
    let what = match (&proposal, &own) {
        (Some(proposal), _) => which_change(proposal),
        (None, Some(step)) => what_they_did(step, now, tz),
        (None, None) => describe_wake(repo, row.as_ref(), &undo.wake, now, tz)?,
    };
    let put_aside_in = row.as_ref().and_then(|row| row.cycle.chat).unwrap_or(undo.chat);
    let chats = (undo.chat, put_aside_in);
    let words = |taken: &TakenBack| redactor.redact(&render_answer(&what, &restored, &given, taken, chats));
    let taken = session.store.undos_mut().take_back(undo, &cycle.id, words)?;
    session.report.replies.push(Reply {
        chat: undo.chat,
        text: redactor.redact(&render_answer(&what, &restored, &given, &taken, chats)),
    });
    account.receipts.push(match (&proposal, &own) {
        (Some(proposal), _) => format!("Took back the change of my orders “{}”", proposal.new.title),
        (None, Some(_)) => redactor.redact(&format!("Undid {what}")),
        (None, None) => format!("Undid the wake {}", undo.wake),
    });
    account.receipts.extend(render_receipts(&restored, &taken));
    if !given.restored.is_empty() {
        account.receipts.push(format!("Gave back {} in granted folders", format_count(given.restored.len(), "file")));
    }
    let left = given.contested.iter().map(|path| path.display().to_string());
    let left = restored.contested.iter().cloned().chain(left);
    account.notes.extend(left.map(|what| format!("Not undone, changed since: {what}")));
    let ending = Ending {
        cycle,
        messages: Vec::new(),
        account,
        staged: restored.staged,
        removed: restored.removed,
        handled: Vec::new(),
        plan_file,
        head_shown: None,
        undoes: Some(undo.wake.clone()),
        models_before: Vec::new(),
    };
    finish::run(session, repo, ending).await
}

/// Reverts the changes of a wake's commit. The log stays, because it records what happened.
fn revert_commit(repo: &Repo, wake: &str) -> Result<Restored, WakeError> {
    let Some(commit) = repo.history().wake_commit(wake)? else {
        let parked = repo.parked_work().find_parked_branch(wake)?.map(|(branch, _)| branch);
        return Ok(Restored { parked, ..Restored::default() });
    };
    let changes = repo.history().plan_reversal(commit)?.into_iter().filter(|change| !is_log(&change.path));
    revert_files(repo, changes)
}

/// Reverts the changes of a person's own commit.
fn revert_person_step(repo: &Repo, step: &PersonsStep) -> Result<Restored, WakeError> {
    let Some(id) = &step.commit else { return Ok(Restored { has_commit: true, ..Restored::default() }) };
    match repo.history().find_commit(id)? {
        Some(commit) => revert_files(
            repo,
            repo.history().plan_reversal(commit.id)?.into_iter().filter(|change| !is_log(&change.path)),
        ),
        None => Ok(Restored::default()),
    }
}

/// Reverts the files of an agreed change of orders, and nothing else of its wake.
fn revert_agreed_change(repo: &Repo, proposal: &Proposal) -> Result<Restored, WakeError> {
    if repo.history().wake_commit(&proposal.cycle_id)?.is_none() {
        let parked = repo.parked_work().find_parked_branch(&proposal.cycle_id)?.map(|(branch, _)| branch);
        return Ok(Restored { parked, ..Restored::default() });
    }
    let back = |file: &StagedFile| repo::FileChange {
        path: file.path.clone(),
        base: Some(file.content.clone()),
        content: file.base.clone(),
    };
    revert_files(repo, proposal.new.files.iter().map(back))
}

/// Reverts each file unless something is in the way. `base` is the text written then, `content` the text before.
fn revert_files(repo: &Repo, changes: impl Iterator<Item = repo::FileChange>) -> Result<Restored, WakeError> {
    let mut restored = Restored { has_commit: true, ..Restored::default() };
    for change in changes {
        let kind = DocKind::from_path(&change.path);
        match repo.check_writable(&change.path) {
            Ok(()) => {}
            Err(error) if error.is_file_fault() => {
                restored.contested.push(error.to_string());
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        let now = repo.read_work_tree(&change.path)?;
        let reverted = revert(kind, change.base.as_deref(), change.content.as_deref(), now.as_deref());
        restored.contested.extend(reverted.contested.iter().map(|section| match section.as_str() {
            "" => change.path.clone(),
            section => format!("{}, “{section}”", change.path),
        }));
        match reverted.text {
            text if text == now => {}
            Some(content) => restored.staged.push(StagedFile { path: change.path, base: now, content }),
            None => restored.removed.push(repo::FileChange { path: change.path, base: now, content: None }),
        }
    }
    Ok(restored)
}

/// Describes the wake for people.
fn describe_wake(
    repo: &Repo,
    row: Option<&CycleRow>,
    wake: &str,
    now: DateTime<Utc>,
    tz: Tz,
) -> Result<String, WakeError> {
    let message = repo.history().wake_commit(wake)?.map(|commit| repo.history().read_message(commit)).transpose()?;
    let subject = message.as_deref().and_then(|message| message.lines().next());
    Ok(describe_wake_step(row, subject, now, tz))
}

/// Renders the receipts for the log and the commit.
fn render_receipts(restored: &Restored, taken: &TakenBack) -> Vec<String> {
    let paths = restored.staged.iter().map(|file| &file.path).chain(restored.removed.iter().map(|change| &change.path));
    let mut receipts: Vec<String> = paths.map(|path| format!("Took back its changes to {path}")).collect();
    receipts.extend(taken.cancelled.iter().map(|text| format!("Cancelled its reminder “{text}”")));
    receipts
        .extend(taken.active_again.iter().map(|text| format!("Set the reminder “{text}” again, which it had ended")));
    if taken.unsent > 0 {
        receipts.push(format!("Took back {} of it, unsent", format_count(taken.unsent, "message")));
    }
    if !taken.messages.is_empty() {
        receipts.push(format!("Put on hold {} that it had answered", format_count(taken.messages.len(), "message")));
    }
    receipts
}

/// Renders the answer to the person: what was undone, what wasn't, and the next step. `chats` are the person's chat and that of the
/// messages.
fn render_answer(
    what: &str,
    restored: &Restored,
    given: &GivenBack,
    taken: &TakenBack,
    chats: (ChatRef, ChatRef),
) -> String {
    let mut lines = describe_files(given);
    let files = restored.staged.len() + restored.removed.len();
    let is_nothing = restored.contested.is_empty()
        && lines.is_empty()
        && [&taken.cancelled, &taken.active_again, &taken.over, &taken.settings].into_iter().all(Vec::is_empty);
    lines.extend(match (&restored.parked, restored.has_commit, files) {
        (Some(branch), ..) => Some(format!(
            "What I wrote then isn't in my memory yet. It is on the branch `{branch}`, and I'll bring it in when I can. \
             `git branch -D {branch}` drops it before that."
        )),
        (None, false, _) if !lines.is_empty() => None,
        (None, false, _) => {
            Some("My memory doesn't have what I wrote then, so there was nothing to remove.".to_owned())
        }
        (None, true, 0) => is_nothing.then(|| "Nothing had been saved, so nothing changed.".to_owned()),
        (None, true, n) => Some(format!(
            "Those changes are gone from my memory, in {}. The log still shows that they happened.",
            format_count(n, "file")
        )),
    });
    if !restored.contested.is_empty() {
        lines.push(format!("Left as it is, because it was changed since: {}.", format_names(&restored.contested, "")));
    }
    let quoted = |texts: &[String]| format_names(texts, "“");
    if !taken.cancelled.is_empty() {
        lines.push(format!("Cancelled: {} {}.", name_reminders(&taken.cancelled), quoted(&taken.cancelled)));
    }
    if !taken.active_again.is_empty() {
        lines.push(format!("Active again: {} {}.", name_reminders(&taken.active_again), quoted(&taken.active_again)));
    }
    if !taken.over.is_empty() {
        lines.push(format!("Already over: {} {}.", name_reminders(&taken.over), quoted(&taken.over)));
    }
    lines.extend(taken.settings.iter().cloned());
    match taken.unsent {
        0 => {}
        1 => lines.push("One message that wasn't sent yet won't be.".to_owned()),
        n => lines.push(format!("{n} messages that weren't sent yet won't be.")),
    }
    match taken.sent {
        0 => {}
        1 => lines.push("My reply can't be unsent.".to_owned()),
        n => lines.push(format!("The {n} messages I had sent can't be unsent.")),
    }
    lines.extend(describe_held_messages(&taken.messages, chats));
    format!("I've undone {what}.\n{}", lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n"))
}

/// Describes the state of a person's own files.
fn describe_files(given: &GivenBack) -> Vec<String> {
    // A folder stands for its content.
    let is_within = |path: &PathBuf, paths: &[PathBuf]| {
        path.ancestors().skip(1).any(|above| paths.iter().any(|path| path == above))
    };
    let shown = |paths: &[PathBuf]| {
        let outermost = paths.iter().filter(|path| !is_within(path, paths));
        format_names(&outermost.map(|path| path.display().to_string()).collect::<Vec<_>>(), "")
    };
    let mut lines = Vec::new();
    if !given.restored.is_empty() {
        lines.push(format!("Your files are as they were before: {}.", shown(&given.restored)));
    }
    if !given.contested.is_empty() {
        lines.push(format!(
            "Left as they are, because they may have been changed since: {}. My copies are in {}.",
            shown(&given.contested),
            shown(&given.kept_at)
        ));
    }
    lines
}

fn describe_held_messages(messages: &[i64], (chat, of): (ChatRef, ChatRef)) -> Option<String> {
    let (first, rest) = messages.split_first()?;
    let (n, is_elsewhere) = (messages.len(), of != chat);
    let held = match (rest, is_elsewhere) {
        ([], true) => "The message I had answered is on hold.".to_owned(),
        ([], false) => "Your message is on hold.".to_owned(),
        (_, true) => format!("The {n} messages I had answered are on hold."),
        (_, false) => format!("Your {n} messages are on hold."),
    };
    let one = if rest.is_empty() { "it" } else { "the first" };
    let how = match chat {
        ChatRef::TERMINAL => format!("`wake queue retry {first}` runs {one} again."),
        _ if is_elsewhere => format!("Send /retry {first} to run {one} again."),
        // Without a number, /retry takes the messages put on hold in the same chat.
        _ => format!("Send /retry to run {} again.", if rest.is_empty() { "it" } else { "them" }),
    };
    Some(format!("{held} {how}"))
}

fn name_reminders(texts: &[String]) -> &'static str {
    if texts.len() == 1 { "the reminder" } else { "the reminders" }
}

fn format_names(texts: &[String], quote: &str) -> String {
    let end = if quote.is_empty() { "" } else { "”" };
    let mut names: Vec<String> = texts.iter().take(MAX_NAMED).map(|text| format!("{quote}{text}{end}")).collect();
    if texts.len() > MAX_NAMED {
        names.push(format!("and {} more", texts.len() - MAX_NAMED));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_what_was_done_and_what_was_not() {
        let restored = Restored {
            staged: vec![StagedFile { path: "a.md".to_owned(), base: None, content: String::new() }],
            contested: vec!["b.md, “Report”".to_owned()],
            has_commit: true,
            ..Restored::default()
        };
        let taken = TakenBack {
            cancelled: vec!["Stretch".to_owned(), "Drink".to_owned()],
            over: vec!["Call".to_owned()],
            active_again: vec!["Water the plants".to_owned()],
            unsent: 1,
            sent: 2,
            messages: vec![7],
            settings: Vec::new(),
        };
        let given = GivenBack {
            restored: vec!["/home/ann/work/a.txt".into()],
            contested: vec!["/home/ann/work/b.txt".into()],
            kept_at: vec!["/home/ann/reveille/copies/x/1".into()],
        };
        insta::assert_snapshot!(render_answer("what I did at 14:03: remembered “x”", &restored, &given, &taken, (ChatRef::from_telegram(4242), ChatRef::from_telegram(4242))), @r"
        I've undone what I did at 14:03: remembered “x”.
        - Your files are as they were before: /home/ann/work/a.txt.
        - Left as they are, because they may have been changed since: /home/ann/work/b.txt. My copies are in /home/ann/reveille/copies/x/1.
        - Those changes are gone from my memory, in 1 file. The log still shows that they happened.
        - Left as it is, because it was changed since: b.md, “Report”.
        - Cancelled: the reminders “Stretch”, “Drink”.
        - Active again: the reminder “Water the plants”.
        - Already over: the reminder “Call”.
        - One message that wasn't sent yet won't be.
        - The 2 messages I had sent can't be unsent.
        - Your message is on hold. Send /retry to run it again.
        ");
        let two = TakenBack { messages: vec![7, 8], ..TakenBack::default() };
        insta::assert_snapshot!(render_answer("what I did", &Restored::default(), &GivenBack::default(), &two, (ChatRef::TERMINAL, ChatRef::TERMINAL)), @r"
        I've undone what I did.
        - My memory doesn't have what I wrote then, so there was nothing to remove.
        - Your 2 messages are on hold. `wake queue retry 7` runs the first again.
        ");
        let only_answered = Restored { has_commit: true, ..Restored::default() };
        let taken = TakenBack { sent: 1, messages: vec![7], ..TakenBack::default() };
        insta::assert_snapshot!(render_answer("what I did", &only_answered, &GivenBack::default(), &taken, (ChatRef::from_telegram(4242), ChatRef::from_telegram(4242))), @r"
        I've undone what I did.
        - Nothing had been saved, so nothing changed.
        - My reply can't be unsent.
        - Your message is on hold. Send /retry to run it again.
        ");
        let reminder = TakenBack { cancelled: vec!["Stretch".to_owned()], ..taken };
        assert!(
            !render_answer(
                "what I did",
                &only_answered,
                &GivenBack::default(),
                &reminder,
                (ChatRef::from_telegram(4242), ChatRef::from_telegram(4242))
            )
            .contains("Nothing had been saved")
        );
    }

    #[test]
    fn a_message_on_hold_in_another_chat_is_retried_by_its_number() {
        assert_eq!(
            describe_held_messages(&[7], (ChatRef::from_telegram(4242), ChatRef::from_telegram(5555))).unwrap(),
            "The message I had answered is on hold. Send /retry 7 to run it again."
        );
        assert_eq!(
            describe_held_messages(&[7, 8], (ChatRef::from_telegram(4242), ChatRef::TERMINAL)).unwrap(),
            "The 2 messages I had answered are on hold. Send /retry 7 to run the first again."
        );
        assert!(
            describe_held_messages(&[7], (ChatRef::TERMINAL, ChatRef::from_telegram(4242)))
                .unwrap()
                .ends_with(" `wake queue retry 7` runs it again.")
        );
        assert_eq!(
            describe_held_messages(&[7, 8], (ChatRef::from_telegram(4242), ChatRef::from_telegram(4242))).unwrap(),
            "Your 2 messages are on hold. Send /retry to run them again."
        );
    }

    #[test]
    fn long_lists_are_counted() {
        let many: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        assert_eq!(format_names(&many, ""), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more");
    }
}
