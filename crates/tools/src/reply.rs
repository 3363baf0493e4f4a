//! `reply`: answers the asking chat. The reply and the completion of its questions are one transaction.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_store::{Change, MessageOutcome, NewOutgoing, OutgoingKind};

use super::{Done, Outcome, Refusal, Tool, World, check_text, shorten_text};

/// Maximum length of a reply, in characters; the channel splits longer texts than it takes.
const MAX_CHARS: usize = 30_000;
/// Maximum number of texts to the asking chat in one cycle.
const MAX_REPLIES: usize = 6;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// In Markdown.
    text: String,
}

pub(super) fn define_tool() -> Tool {
    Tool::new(
        "reply",
        "Answer the chat that asked: one reply answers all of its messages that you have seen. It leaves once your work is committed.",
        Effect::Staged,
        run,
    )
    .never_ask()
}

fn run(args: &Args, world: &World) -> Outcome {
    let text = check_text(&args.text, "text", MAX_CHARS)?;
    if world.conversation.chat.is_none() {
        return Err(Refusal::new("No message is being answered in this cycle; `tell` speaks unasked."));
    }
    if world.cycle.replies >= MAX_REPLIES {
        return Err(Refusal::new(format!("{MAX_REPLIES} texts were already sent in this cycle. Nothing was sent.")));
    }
    let receipt = match world.conversation.open_messages.len() {
        0 => format!("Added to the answer: {}", shorten_text(&text)),
        1 => format!("Answered 1 message: {}", shorten_text(&text)),
        n => format!("Answered {n} messages: {}", shorten_text(&text)),
    };
    Ok(Done {
        content: "The reply is written down and will be delivered.".to_owned(),
        receipt: Some(receipt),
        changes: answer_open_messages(world, text, MessageOutcome::Answered),
        ..Done::default()
    })
}

/// Returns the changes that answer all open messages of the cycle's chat with a text.
pub fn answer_open_messages(world: &World, text: String, outcome: MessageOutcome) -> Vec<Change> {
    let Some(chat) = world.conversation.chat else { return Vec::new() };
    let mut changes = vec![Change::Send(NewOutgoing {
        chat: chat.id,
        text,
        kind: OutgoingKind::Reply,
        thread_id: chat.thread_id,
        reply_to: chat.reply_to,
        ..NewOutgoing::default()
    })];
    if !world.conversation.open_messages.is_empty() {
        changes.push(Change::Done { messages: world.conversation.open_messages.clone(), outcome });
    }
    changes
}
