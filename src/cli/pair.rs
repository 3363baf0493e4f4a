//! `bot pair`, `bot unpair` and `bot webhook`: manages who may speak to the bot, and webhooks that take its messages.

use std::process::ExitCode;

use reveille_base::{
    random,
    types::ChatRef,
    words::{count, local},
};
use reveille_channels::telegram::Command as TelegramCommand;
use reveille_config::Config;
use reveille_cycle::workspace;
use reveille_store::{Paired, Store, StoreError, access, database};

use super::{EXIT_FAILED, EXIT_USAGE, bot::open_telegram, complain, failed, print};
use crate::bot::{self, Pairing, pairing::CODE_LIFE};

/// Random bytes in the secret of a webhook.
const SECRET_BYTES: usize = 24;

/// Offers a code and waits until someone has sent it to the bot.
pub(super) fn pair(config: &Config) -> ExitCode {
    if let Err(code) = open_telegram(config) {
        return code;
    }
    let runtime = match super::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let clock = config.clock();
    let paired = runtime.block_on(async {
        let stop = super::stop_signal().map_err(bot::BotError::Signals)?;
        bot::pair(config, clock.as_ref(), stop, |code, is_bot_running| {
            complain(&format!(
                "Send this code to your bot on Telegram, in its private chat, within {} minutes. Whoever sends it first is \
                 listened to from then on.",
                CODE_LIFE.num_minutes()
            ));
            print(&format!("{code}\n"));
            if !is_bot_running {
                complain("No bot runs on this workspace: start one (`bot`), it will accept the code.");
            }
        })
        .await
    });
    match paired {
        Ok(Pairing::Paired(person)) => {
            print(&format!("paired: {}\n", listed(config, &person)));
            ExitCode::SUCCESS
        }
        Ok(Pairing::Void) => {
            complain(
                "Nobody sent the code in time, or too many wrong ones came: it is void. `bot pair` gives a new one.",
            );
            ExitCode::from(EXIT_FAILED)
        }
        Ok(Pairing::Stopped) => {
            complain("The code is taken back; nobody was paired.");
            ExitCode::from(EXIT_FAILED)
        }
        Err(error) => failed(&error),
    }
}

/// Lists the paired people.
pub(super) fn list(config: &Config) -> ExitCode {
    match open(config).and_then(|store| store.map_or(Ok(Vec::new()), |store| store.people().paired())) {
        Ok(people) if people.is_empty() => {
            complain("Nobody has paired. ALLOWED_CHAT_IDS may list people, too.");
            ExitCode::SUCCESS
        }
        Ok(people) => {
            for person in people {
                print(&format!("{}\n", listed(config, &person)));
            }
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

/// Revokes a pairing.
pub(super) fn unpair(config: &Config, user_id: i64) -> ExitCode {
    let is_listed = config.allowed_chats.contains(&ChatRef::telegram(user_id));
    let unpaired = open(config).and_then(|store| {
        let Some(mut store) = store else { return Ok((None, None)) };
        let owner = |store: &Store| access::admitted(config, store).map(|config| config.owner_chat);
        let before = owner(&store)?;
        let dropped = store.people_mut().unpair(user_id, is_listed, config.clock().now())?;
        let after = owner(&store)?;
        Ok((dropped, Some(after).filter(|after| *after != before)))
    });
    let owner = unpaired.as_ref().ok().and_then(|(_, owner)| *owner);
    let code = match (unpaired, is_listed) {
        (Ok((Some(dropped), _)), false) => {
            let waited = match dropped {
                0 => "Nothing of theirs waited for an answer.".to_owned(),
                n => format!(
                    "{} of theirs waited for an answer and won't get one; `wake queue list --all` shows them, and `wake queue retry` brings \
                     one back.",
                    count(n, "message")
                ),
            };
            complain(&format!(
                "{user_id} isn't listened to any more, and their reminders have ended. What they said is kept. {waited}"
            ));
            ExitCode::SUCCESS
        }
        (Ok((Some(_), _)), true) => {
            complain(&format!(
                "{user_id} is unpaired, but ALLOWED_CHAT_IDS lists them: take the number out there, too."
            ));
            ExitCode::SUCCESS
        }
        (Ok((None, _)), _) => {
            let listed = if is_listed { " ALLOWED_CHAT_IDS lists them: take the number out there." } else { "" };
            complain(&format!(
                "{user_id} has not paired. `bot pair --list` shows who has. Nothing was changed.{listed}"
            ));
            ExitCode::from(EXIT_USAGE)
        }
        (Err(error), _) => failed(&error),
    };
    if let Some(owner) = owner {
        complain(&new_owner(owner));
    }
    code
}

/// Reports a webhook that takes the bot's messages, and removes it if asked to.
pub(super) fn webhook(config: &Config, delete: bool) -> ExitCode {
    let telegram = match open_telegram(config) {
        Ok(telegram) => telegram,
        Err(code) => return code,
    };
    let runtime = match super::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let done = runtime.block_on(async {
        let host = telegram.get_webhook_info().await?.host();
        if delete && host.is_some() {
            telegram.delete_webhook().await?;
        }
        Ok::<_, reveille_channels::telegram::TelegramError>(host)
    });
    match (done, delete) {
        (Ok(None), _) => print("There is no webhook: the bot can fetch its messages.\n"),
        (Ok(Some(host)), false) => print(&format!(
            "A webhook at {host} takes this bot's messages. `bot webhook delete` removes it; what waits is kept.\n"
        )),
        (Ok(Some(host)), true) => {
            print(&format!("The webhook at {host} is removed. What waited is kept, and the bot fetches it.\n"));
        }
        (Err(error), _) => return failed(&error),
    }
    ExitCode::SUCCESS
}

/// Sets a webhook for the bot's updates, and prints the secret that Telegram will send with each.
pub(super) fn set_webhook(config: &Config, url: reqwest::Url) -> ExitCode {
    let telegram = match open_telegram(config) {
        Ok(telegram) => telegram,
        Err(code) => return code,
    };
    let (runtime, secret) = match (super::runtime(), random::bytes::<SECRET_BYTES>()) {
        (Ok(runtime), Ok(bytes)) => (runtime, random::hex(&bytes)),
        (Err(error), _) => return failed(&error),
        (_, Err(error)) => return failed(&error),
    };
    let done = runtime.block_on(async {
        telegram.set_webhook(url, &secret).await?;
        // Commands work without the menu too.
        telegram.set_my_commands(&TelegramCommand::menu()).await.ok();
        Ok::<_, reveille_channels::telegram::TelegramError>(())
    });
    match done {
        Ok(()) => {
            print(&format!("{secret}\n"));
            ExitCode::SUCCESS
        }
        Err(error) => failed(&super::redactor(config).redact(&error.to_string())),
    }
}

/// Tells that the owner was unpaired, so the next paired person is the owner and sees the whole memory.
fn new_owner(owner: ChatRef) -> String {
    if owner == ChatRef::TERMINAL {
        return "That was the owner: whoever pairs next is it, and sees the whole memory.".to_owned();
    }
    format!(
        "That was the owner. {owner}, who paired next, is it now: the whole memory is shown to them, and I speak to them unasked. \
         OWNER_CHAT_ID names another."
    )
}

/// Opens the store without creating one.
fn open(config: &Config) -> Result<Option<Store>, StoreError> {
    workspace::check(config)?;
    database::open_if_made(config)
}

fn listed(config: &Config, person: &Paired) -> String {
    let at = person.at.map(|at| format!("  since {}", local(at, config.timezone)));
    format!("{}  {}{}", person.user_id, person.name, at.unwrap_or_default())
}
