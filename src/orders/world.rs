//! The [`World`] that the tools see during a person's order: the current memory and reminders, without policy rules or programs.

use std::rc::Rc;

use chrono::{DateTime, Utc};

use reveille_base::types::ChatRef;
use reveille_config::Config;
use reveille_policy::Rules;
use reveille_store::{Result, Store, wake_lock::waker::Waker};
use reveille_tools::{
    Chat, World,
    mcp::client::{self, settings::Settings},
};

/// Builds the world of an order from this chat.
pub fn build_world(config: &Config, store: &Store, now: DateTime<Utc>, chat: Chat) -> Result<World> {
    let rules = Rules::default();
    let shelter = Rc::new(client::build_shelter(config, &rules, &Settings::for_workspace(config)));
    let mut world = World::new(config, crate::VERSION, now, rules, shelter);
    world.conversation.chat = Some(chat);
    world.memory.reminders = store.reminders().list_reminders()?;
    // On Telegram, a running bot starts wakes for the new reminders anyway.
    if chat.id == ChatRef::TERMINAL {
        world.unasked.unwoken = Waker::load(config, now).render_warning(config);
    }
    Ok(world)
}
