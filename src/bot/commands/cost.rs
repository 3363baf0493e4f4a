//! `/cost`: what the models have cost, today and this month, by model, of which budget. A guest sees what their own chat cost.

use reveille_account::cost::{self, CostBy, CostQuery};
use reveille_store::Result;

use super::{super::batch::Asked, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<String> {
    let chat = asked.message.chat;
    let own = (!desk.is_owners(chat)).then_some(chat);
    let query = CostQuery { since: None, by: CostBy::Model, chat: own, with_parts: false };
    Ok(cost::report(desk.store, desk.config, desk.now, query)?.in_chat())
}
