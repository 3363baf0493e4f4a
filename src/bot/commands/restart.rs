//! `/restart`: restarts the bot once its current work is done.

use reveille_base::types::ChatRef;
use reveille_store::{Order, wake_lock};

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    if asked.message.chat == ChatRef::TERMINAL {
        return CommandReply::says(
            "This terminal isn't the bot, so nothing was restarted. Send /restart to it on Telegram; here each command starts anew.",
        );
    }
    let holder = wake_lock::read(&desk.config.lock_path()).filter(|holder| holder.identity().is_alive());
    let text =
        if holder.is_some() { "Restarting. I finish what I'm at first, if that is soon…" } else { "Restarting…" };
    CommandReply::orders(text, Order::Restart)
}
