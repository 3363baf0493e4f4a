//! `keep`: the offline model's way to leave messages to a model that can answer. They stay queued without waking this
//! model again, and the person is told once for each.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_store::{Change, NewOutgoing};

use super::{Done, Outcome, Refusal, Tool, World, check_text};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The messages' numbers.
    messages: Vec<i64>,
    /// What the person is told.
    notice: String,
}

pub(super) fn define_tool() -> Tool {
    Tool::new("keep", "Keep messages for an AI model that can answer them.", Effect::Idempotent, run).never_ask()
}

fn run(args: &Args, world: &World) -> Outcome {
    let notice = check_text(&args.notice, "notice", 2_000)?;
    let kept_here = if world.conversation.is_local {
        " (This chat is kept off the cloud: /local says how to continue.)"
    } else {
        ""
    };
    let notice = format!("{notice}{kept_here}");
    let Some(chat) = world.conversation.chat else {
        return Err(Refusal::new("No message is being answered in this cycle."));
    };
    if let Some(unknown) = args.messages.iter().find(|id| !world.conversation.open_messages.contains(id)) {
        return Err(Refusal::new(format!("Message {unknown} is not an open message of this cycle. Nothing was done.")));
    }
    let Some(first) = args.messages.first() else {
        return Err(Refusal::new("messages is empty. Nothing was done."));
    };
    let count = args.messages.len();
    Ok(Done {
        content: "Kept.".to_owned(),
        receipt: Some(format!(
            "Kept {count} {} for an AI model that can answer",
            if count == 1 { "message" } else { "messages" }
        )),
        // The offline replacement of a configured model has said so already.
        changes: (!world.cycle.is_stand_in)
            .then(|| {
                Change::Send(NewOutgoing {
                    key: Some(format!("kept/{first}")),
                    thread_id: chat.thread_id,
                    reply_to: chat.reply_to,
                    ..NewOutgoing::notice(chat.id, notice)
                })
            })
            .into_iter()
            .chain([Change::Hold { messages: args.messages.clone(), model: world.cycle.model.clone() }])
            .collect(),
        ..Done::default()
    })
}
