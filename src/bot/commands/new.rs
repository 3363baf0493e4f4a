//! `/new`: leaves earlier messages of this chat out of the model's context from now on. They stay searchable.

use reveille_store::{Order, wake_lock};

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    let holder = wake_lock::read(&desk.config.lock_path()).filter(|holder| holder.identity().is_alive());
    let is_at_work = holder.is_some_and(|holder| holder.chat == Some(asked.message.chat));
    CommandReply::orders(text(is_at_work, &asked.args), Order::BeginAfresh)
}

fn text(is_at_work: bool, args: &str) -> String {
    let first = if is_at_work { " What I'm working on is finished first." } else { "" };
    let not_taken =
        if args.is_empty() { "" } else { " What you wrote after /new wasn't taken as a message: send it again." };
    format!(
        "Started afresh: what we said here before is left out from now on.{first}{not_taken}\n\nNothing is deleted, and what I wrote \
         down stays. Ask me about something from before and I look it up, or send /memory with a few words."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_left_out_and_how_it_is_found() {
        insta::assert_snapshot!(text(false, ""), @r"
        Started afresh: what we said here before is left out from now on.

        Nothing is deleted, and what I wrote down stays. Ask me about something from before and I look it up, or send /memory with a few words.
        ");
        let busy = text(true, "tea?");
        assert!(busy.contains("is finished first. What you wrote after /new wasn't taken"), "{busy}");
    }
}
