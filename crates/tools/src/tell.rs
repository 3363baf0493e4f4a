//! `tell`: sends an unasked message, only to the owner. Keys prevent repetitions; there is a daily limit, and none are sent in quiet hours.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_policy::Reach;
use reveille_store::{Change, NewNudge, NewOutgoing, OutgoingKind, PROPOSED};

use super::{Assignment, Done, Outcome, Refusal, Risk, Tool, World, check_text, shorten_text};

/// The name of the tool.
pub(super) const TELL: &str = "tell";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What it is about, such as `decay/tax-return/7`: each key is told once, ever.
    key: String,
    /// Markdown, short.
    text: String,
    /// Title of the one task that it is about: a button finishes it.
    #[serde(default)]
    task: Option<String>,
}

pub(super) fn define_tool() -> Tool {
    Tool::new(
        TELL,
        "Speak to your person unasked. A daily limit and quiet hours refuse it: set a task's `at` then.",
        Effect::Idempotent,
        run,
    )
    .with_reach(Reach::Leaves)
    .with_risk(Risk::Caution)
}

fn run(args: &Args, world: &World) -> Outcome {
    let said = check_text(&args.key, "key", 200)?.to_lowercase();
    // The initiative sends a single message, whatever key the model gives.
    let key = match &world.cycle.assignment {
        Some(Assignment::Initiative { slot }) => format!("{PROPOSED}{slot}"),
        _ => format!("tell/{said}"),
    };
    let text = check_text(&args.text, "text", 4_000)?;
    if world.unasked.told_keys.contains(&key) {
        return Err(Refusal::new(format!("{:?} was told before. Nothing was sent.", args.key)));
    }
    if world.is_quiet() {
        return Err(Refusal::new(format!(
            "It is {} for your person: quiet hours. Nothing was sent; plan it for later with a task's `at`.",
            world.local_time().format("%H:%M")
        )));
    }
    if world.unasked.told_today >= world.unasked.tell_per_day {
        return Err(Refusal::new(format!(
            "You have spoken unasked {} times today, which is the limit. Nothing was sent.",
            world.unasked.told_today
        )));
    }
    Ok(Done {
        content: "It will be delivered when the cycle has ended.".to_owned(),
        receipt: Some(format!("Told unasked: {}", shorten_text(&text))),
        changes: vec![Change::Send(NewOutgoing {
            chat: world.unasked.owner_chat,
            text,
            kind: OutgoingKind::Tell,
            key: Some(key),
            nudge: Some(NewNudge {
                proposal: None,
                task: args.task.as_deref().and_then(|task| super::task::find_title(task, world)),
                zone: world.clock.tz.name().to_owned(),
                may_stop: true,
            }),
            ..NewOutgoing::default()
        })],
        ..Done::default()
    })
}
