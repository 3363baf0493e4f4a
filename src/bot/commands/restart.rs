//! `/restart`: restarts the bot once its current work is done.

use reveille_base::types::ChatRef;
use reveille_store::{Order, wake_lock};

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    if asked.message.chat == ChatRef::TERMINAL {
        return CommandReply::from_text(
            "This terminal isn't the bot, so nothing was restarted. To restart the bot, send it /restart on Telegram. Here, every command starts fresh.",
        );
    }
    let holder = wake_lock::read_holder(&desk.config.lock_path()).filter(|holder| holder.identity().is_alive());
    let text = if holder.is_some() {
        "Restarting. I'll finish what I'm doing first, if it won't take long…"
    } else {
        "Restarting…"
    };
    CommandReply::with_order(text, Order::Restart)
}
