//! `/undo [id]`: announces an undo; a wake carries it out as soon as no other runs.

use reveille_base::types::ChatRef;
use reveille_cycle::{Choice, describe_wake_step, find_undoable, what_they_did, which_change};
use reveille_git::Committed;
use reveille_store::{Order, PersonsStep, Proposal, Result};

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<CommandReply> {
    let chat = asked.message.chat;
    let id = asked.args.split_whitespace().next();
    // With an id, the owner may undo work for any chat. Without an id, the last work for the asking chat counts.
    let chats = match (desk.is_owners(chat), id) {
        (true, Some(_)) => Vec::new(),
        (true, None) => vec![chat, ChatRef::TERMINAL],
        (false, _) => vec![chat],
    };
    let row = match find_undoable(desk.store, &chats, id, &desk.undoing)? {
        Choice::Wake(row) => row,
        Choice::Change(proposal) => {
            let text = format!("Undoing {}. I'll tell you when it's done.", which_change(&proposal));
            return Ok(CommandReply::with_order(text, Order::Undo { wake: Proposal::undone_as(proposal.id) }));
        }
        Choice::Person(step) => {
            let what = what_they_did(&step, desk.now, desk.config.timezone);
            let text = format!("Undoing {what}. I'll tell you when it's done.");
            return Ok(CommandReply::with_order(text, Order::Undo { wake: PersonsStep::undone_as(step.id) }));
        }
        Choice::Refused(why) => return Ok(CommandReply::from_text(format!("{why} /log lists what I did."))),
    };
    let memory = Committed::open(&desk.config.repo_dir()).ok().flatten();
    let subject = row.commit_id.as_deref().and_then(|commit| memory?.find_subject(commit));
    let what = describe_wake_step(Some(&row), subject.as_deref(), desk.now, desk.config.timezone);
    let text = format!("Undoing {what}. I'll tell you when it's done.");
    Ok(CommandReply::with_order(text, Order::Undo { wake: row.cycle.id }))
}
