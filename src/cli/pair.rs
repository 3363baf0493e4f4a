//! `bot pair`, `bot unpair` and `bot webhook`: manages who may speak to the bot, and webhooks that take its messages.

use std::process::ExitCode;

use reveille_base::{
    random,
    types::ChatRef,
    words::{format_count, format_local_time},
};
use reveille_channels::telegram::Command as TelegramCommand;
use reveille_config::Config;
use reveille_cycle::workspace;
use reveille_store::{Paired, SettingsListing, Store, StoreError, access, database};

use super::{EXIT_FAILED, EXIT_USAGE, bot::open_telegram, complain, print, report_failure};
use crate::bot::{self, Pairing, pairing::CODE_LIFE};

/// Random bytes in the secret of a webhook.
const SECRET_BYTES: usize = 24;

/// Offers a code and waits until someone has sent it to the bot.
pub(super) fn pair(config: &Config) -> ExitCode {
    if let Err(code) = open_telegram(config) {
        return code;
    }
    let runtime = match super::build_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return report_failure(&error),
    };
    let clock = config.clock();
    let paired = runtime.block_on(async {
        let stop = super::stop_signal().map_err(bot::BotError::Signals)?;
        bot::pair(config, clock.as_ref(), stop, |code, is_bot_running| {
            complain(&format!(
                "Send this code to your bot on Telegram, in its private chat, within {} minutes. From then on it listens to whoever \
                 sends it first.",
                CODE_LIFE.num_minutes()
            ));
            print(&format!("{code}\n"));
            if !is_bot_running {
                complain("No bot is running for this workspace: start one (`bot`), and it will accept the code.");
            }
        })
        .await
    });
    match paired {
        Ok(Pairing::Paired(person)) => {
            print(&format!("paired: {}\n", format_person(config, &person)));
            ExitCode::SUCCESS
        }
        Ok(Pairing::Void) => {
            complain(
                "The code is void: nobody sent it in time, or there were too many wrong tries. `bot pair` shows a new one.",
            );
            ExitCode::from(EXIT_FAILED)
        }
        Ok(Pairing::Stopped) => {
            complain("The code is void now; nobody was paired.");
            ExitCode::from(EXIT_FAILED)
        }
        Err(error) => report_failure(&error),
    }
}

/// Lists the paired people.
pub(super) fn list_people(config: &Config) -> ExitCode {
    match open_store(config).and_then(|store| store.map_or(Ok(Vec::new()), |store| store.people().list_paired_people()))
    {
        Ok(people) if people.is_empty() => {
            complain("Nobody has paired. ALLOWED_CHAT_IDS may list people, too.");
            ExitCode::SUCCESS
        }
        Ok(people) => {
            for person in people {
                print(&format!("{}\n", format_person(config, &person)));
            }
            ExitCode::SUCCESS
        }
        Err(error) => report_failure(&error),
    }
}

/// Revokes a pairing.
pub(super) fn unpair(config: &Config, user_id: i64) -> ExitCode {
    let is_listed = config.allowed_chats.contains(&ChatRef::from_telegram(user_id));
    let listing = if is_listed { SettingsListing::Listed } else { SettingsListing::Unlisted };
    let unpaired = open_store(config).and_then(|store| {
        let Some(mut store) = store else { return Ok((None, None)) };
        let owner = |store: &Store| access::admit_paired_people(config, store).map(|config| config.owner_chat);
        let before = owner(&store)?;
        let dropped = store.people_mut().unpair_person(user_id, listing, config.clock().now())?;
        let after = owner(&store)?;
        Ok((dropped, Some(after).filter(|after| *after != before)))
    });
    let owner = unpaired.as_ref().ok().and_then(|(_, owner)| *owner);
    let code = match (unpaired, is_listed) {
        (Ok((Some(dropped), _)), false) => {
            let waited = match dropped {
                0 => "No message of theirs was waiting for an answer.".to_owned(),
                n => format!(
                    "{} of theirs will get no answer; `wake queue list --all` shows them, and `wake queue retry` brings one back.",
                    format_count(n, "message")
                ),
            };
            complain(&format!(
                "The bot no longer listens to {user_id}, and their reminders have ended. What they said is kept. {waited}"
            ));
            ExitCode::SUCCESS
        }
        (Ok((Some(_), _)), true) => {
            complain(&format!(
                "{user_id} is unpaired, but ALLOWED_CHAT_IDS still lists them: remove the number there, too."
            ));
            ExitCode::SUCCESS
        }
        (Ok((None, _)), _) => {
            let listed = if is_listed { " ALLOWED_CHAT_IDS lists them: remove the number there." } else { "" };
            complain(&format!(
                "{user_id} has not paired. `bot pair --list` shows who has. Nothing was changed.{listed}"
            ));
            ExitCode::from(EXIT_USAGE)
        }
        (Err(error), _) => report_failure(&error),
    };
    if let Some(owner) = owner {
        complain(&describe_new_owner(owner));
    }
    code
}

/// What to do with a webhook that takes the bot's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundWebhook {
    Keep,
    Remove,
}

/// Reports a webhook that takes the bot's messages, and removes it if asked to.
pub(super) fn report_webhook(config: &Config, found: FoundWebhook) -> ExitCode {
    let telegram = match open_telegram(config) {
        Ok(telegram) => telegram,
        Err(code) => return code,
    };
    let runtime = match super::build_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return report_failure(&error),
    };
    let done = runtime.block_on(async {
        let host = telegram.get_webhook_info().await?.host();
        if found == FoundWebhook::Remove && host.is_some() {
            telegram.delete_webhook().await?;
        }
        Ok::<_, reveille_channels::telegram::TelegramError>(host)
    });
    match (done, found) {
        (Ok(None), _) => print("There is no webhook: the bot can fetch its messages.\n"),
        (Ok(Some(host)), FoundWebhook::Keep) => print(&format!(
            "A webhook at {host} takes this bot's messages. `bot webhook delete` removes it; waiting messages are kept.\n"
        )),
        (Ok(Some(host)), FoundWebhook::Remove) => {
            print(&format!(
                "The webhook at {host} is removed. The waiting messages are kept, and the bot will fetch them.\n"
            ));
        }
        (Err(error), _) => return report_failure(&error),
    }
    ExitCode::SUCCESS
}

/// Sets a webhook for the bot's updates, and prints the secret that Telegram will send with each.
pub(super) fn set_webhook(config: &Config, url: reqwest::Url) -> ExitCode {
    let telegram = match open_telegram(config) {
        Ok(telegram) => telegram,
        Err(code) => return code,
    };
    let (runtime, secret) = match (super::build_runtime(), random::generate_bytes::<SECRET_BYTES>()) {
        (Ok(runtime), Ok(bytes)) => (runtime, random::format_hex(&bytes)),
        (Err(error), _) => return report_failure(&error),
        (_, Err(error)) => return report_failure(&error),
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
        Err(error) => report_failure(&super::build_redactor(config).redact(&error.to_string())),
    }
}

/// Describes the effect of unpairing the owner: the next paired person becomes the owner and sees the whole memory.
fn describe_new_owner(owner: ChatRef) -> String {
    if owner == ChatRef::TERMINAL {
        return "That was the owner. Whoever pairs next becomes the owner and can see the whole memory.".to_owned();
    }
    format!(
        "That was the owner. {owner}, who paired next, is the owner now: they can see the whole memory, and I may message them \
         first. To choose somebody else, set OWNER_CHAT_ID."
    )
}

/// Opens the store without creating one.
fn open_store(config: &Config) -> Result<Option<Store>, StoreError> {
    workspace::check_database(config)?;
    database::open_existing(config)
}

fn format_person(config: &Config, person: &Paired) -> String {
    let at = person.at.map(|at| format!("  since {}", format_local_time(at, config.timezone)));
    format!("{}  {}{}", person.user_id, person.name, at.unwrap_or_default())
}
