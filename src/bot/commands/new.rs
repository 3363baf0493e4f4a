//! `/new`: leaves earlier messages of this chat out of the model's context from now on. They stay searchable.

use reveille_store::{Order, wake_lock};

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    let holder = wake_lock::read_holder(&desk.config.lock_path()).filter(|holder| holder.identity().is_alive());
    let is_at_work = holder.is_some_and(|holder| holder.chat == Some(asked.message.chat));
    CommandReply::with_order(render_answer(is_at_work, &asked.args), Order::BeginAfresh)
}

fn render_answer(is_at_work: bool, args: &str) -> String {
    let first = if is_at_work { " I'll finish what I'm working on first." } else { "" };
    let not_taken = if args.is_empty() {
        ""
    } else {
        " I didn't take what you wrote after /new as a message, so please send it again."
    };
    format!(
        "Started afresh: from now on I leave out what we said here before.{first}{not_taken}\n\nNothing was deleted, \
         and what I wrote down stays. Ask me about something from before and I'll look it up, or send /memory with a \
         few words."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_left_out_and_how_it_is_found() {
        insta::assert_snapshot!(render_answer(false, ""), @r"
        Started afresh: from now on I leave out what we said here before.

        Nothing was deleted, and what I wrote down stays. Ask me about something from before and I'll look it up, or send /memory with a few words.
        ");
        let busy = render_answer(true, "tea?");
        assert!(busy.contains("working on first. I didn't take what you wrote after /new"), "{busy}");
    }
}
