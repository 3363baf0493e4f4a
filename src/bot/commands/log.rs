//! `/log [n]`: what the last wakes did, each with the id to undo it by. A chat that isn't the owner's sees its own.

use super::{super::batch::Asked, Desk, brief};
use crate::{
    repo::Committed,
    store::{CycleRow, CycleState, Result},
};

/// Wakes that are listed without a number.
const DEFAULT_SHOWN: usize = 5;
/// Wakes that are listed at most.
const MAX_SHOWN: usize = 20;
/// How much is shown of what one did, in characters.
const MAX_CHARS: usize = 120;
/// How much of a commit's id is shown.
const ID_CHARS: usize = 8;

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<String> {
    let chat = asked.message.chat;
    let n = asked.args.parse().unwrap_or(DEFAULT_SHOWN).clamp(1, MAX_SHOWN);
    let rows = desk.store.last_cycles((!desk.is_owners(chat)).then_some(chat), n)?;
    let memory = Committed::open(&desk.config.repo_dir()).ok().flatten();
    let subject = |commit: &str| memory.as_ref()?.subject(commit);
    let mut lines = Vec::new();
    for row in &rows {
        let at = row.started_at.map_or_else(|| "at an unknown time".to_owned(), |at| desk.local(at));
        let did = row.commit_id.as_deref().and_then(subject);
        lines.push(line(row, &at, did.as_deref(), desk.store.undone(&row.cycle.id)?));
    }
    Ok(text(&lines))
}

fn text(lines: &[String]) -> String {
    match lines {
        [] => "I haven't done anything yet.".to_owned(),
        lines => format!("{}\n\n/undo with an id takes that one back; /log 20 shows more.", lines.join("\n")),
    }
}

fn line(row: &CycleRow, at: &str, did: Option<&str>, undone: Option<bool>) -> String {
    let did = match did.map(|did| did.strip_prefix("Wake: ").unwrap_or(did)) {
        Some(did) => brief(did, MAX_CHARS),
        None => brief(&row.cycle.reasons.join("; "), MAX_CHARS),
    };
    let id: Option<String> = row.commit_id.as_deref().map(|id| id.chars().take(ID_CHARS).collect());
    let state = match (row.state, undone) {
        (_, Some(true)) => ", undone",
        (_, Some(false)) => ", to be undone",
        (CycleState::Running, _) => ", under way",
        (CycleState::Waiting | CycleState::Parked, _) => ", waits",
        (CycleState::Done, _) => "",
        (CycleState::Failed, _) => ", failed",
        (CycleState::Abandoned, _) => ", given up",
    };
    format!("- {at}: {did}{}{state}", id.map(|id| format!(" ({id})")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NewCycle;
    use crate::types::ChatRef;

    fn row(state: CycleState, commit: Option<&str>) -> CycleRow {
        CycleRow {
            cycle: NewCycle {
                id: "20261121T140000Z-1".to_owned(),
                trigger: "cron".to_owned(),
                reasons: vec!["2 messages in chat 4242".to_owned()],
                chat: Some(ChatRef::telegram(4242)),
                thread_id: None,
                model: "m".to_owned(),
                system: String::new(),
                tools: String::new(),
            },
            state,
            started_at: None,
            tries: 0,
            was_cut_off: false,
            not_before: None,
            ended_at: None,
            commit_id: commit.map(str::to_owned),
            error: None,
            asks_until: None,
        }
    }

    #[test]
    fn each_wake_is_a_line() {
        let lines = [
            line(&row(CycleState::Running, None), "today 15:00", None, None),
            line(&row(CycleState::Done, Some("0123456789ab")), "today 14:00", Some("Wake: remembered “x”"), None),
            line(&row(CycleState::Done, Some("abcdef012345")), "today 13:00", Some("Wake: set a reminder"), Some(true)),
            line(&row(CycleState::Abandoned, None), "Fri 2026-11-20 09:00", None, None),
        ];
        insta::assert_snapshot!(text(&lines), @r"
        - today 15:00: 2 messages in chat 4242, under way
        - today 14:00: remembered “x” (01234567)
        - today 13:00: set a reminder (abcdef01), undone
        - Fri 2026-11-20 09:00: 2 messages in chat 4242, given up

        /undo with an id takes that one back; /log 20 shows more.
        ");
        assert_eq!(text(&[]), "I haven't done anything yet.");
    }
}
