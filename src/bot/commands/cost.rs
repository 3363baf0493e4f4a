//! `/cost`: shows what the models cost today and this month, by model and against the budget. A guest sees the costs of
//! their own chat.

use reveille_account::cost::{self, CostBy, CostQuery};
use reveille_store::Result;

use super::{super::batch::Asked, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<String> {
    let chat = asked.message.chat;
    let guest_chat = (!desk.is_owners(chat)).then_some(chat);
    let query = CostQuery { since: None, by: CostBy::Model, chat: guest_chat, with_parts: false };
    Ok(cost::compute_report(desk.store, desk.config, desk.now, query)?.render_for_chat())
}
