//! Steps after the settings are written: names into the standing orders, pairing by a polling bot, the first
//! conversation, and hints for what comes next.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::ExitCode, time::Duration};

use reveille_base::{
    clock::Clock,
    file,
    process::{self, Identity},
    words::quote_for_shell,
};
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_git::Repo;
use reveille_memory::{CLAUDE, templates::list_files};
use reveille_store::{
    Paired, Store, access, database,
    wake_lock::{
        self, WakeLock,
        waker::{self, Waker},
    },
};

use super::{Ended, Unanswered, Wizard, complain};
use crate::{
    bot::{self, BotContext, BotError, Pairing, pairing::CODE_LIFE},
    cli::{EXIT_FAILED, build_redactor, config_failure, connect_telegram, install, log, wake},
    setup::{self, AssistantNames, SetupStep},
};

/// A minimal system may lack this command.
const CRONTAB: &str = "crontab";
/// The command that encrypts secrets for services.
const SYSTEMD_CREDS: &str = "systemd-creds";
/// How often to check for a pairing.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// The first message.
const HELLO: &str = "hello";

impl Wizard {
    /// Runs all steps after the write.
    pub(super) async fn run_later_steps(mut self, is_new: bool) -> Result<Ended, Ended> {
        let own_file = self.said.file_path().filter(|_| self.said.named_file().is_some() || self.is_elsewhere());
        let config = match Config::load(own_file.as_deref()) {
            Ok(config) => config,
            Err(error) => return Ok(Ended::Done(config_failure(&error))),
        };
        log::start(&config, log::Talk::Quiet, Some("wake"));
        if self.has_new_names()
            && let Err(why) = write_names(&config, &self.new_names)
        {
            complain(&format!(
                "The names couldn't be saved: {why}. You can set them in the first lines of claude.md in the memory."
            ));
        }
        self.pair_person(&config).await?;
        let starts_automatically = self.ask_for_automatic_start(&config).await?;
        let has_new_model = [SetupStep::Model, SetupStep::Key].iter().any(|step| self.has_changed(*step));
        if is_new || has_new_model || database::open_read_only(&config).is_ok_and(|store| store.is_none()) {
            return Ok(Ended::Ready(Box::new(config), starts_automatically));
        }
        next_steps(&config, starts_automatically);
        Ok(Ended::Done(ExitCode::SUCCESS))
    }

    /// Asks if the system should start wakes, unless it does already or can't.
    async fn ask_for_automatic_start(&mut self, config: &Config) -> Result<bool, Ended> {
        let wakes = Waker::load(config, config.clock().now()).has_active_timer();
        if wakes && !self.has_changed(SetupStep::Bot) || !install::is_possible() {
            return Ok(false);
        }
        complain(
            "\nReveille wakes only when something starts it. Your system can do that every five minutes; `wake install --uninstall` ends it.",
        );
        loop {
            match self.prompter.read_line("Start it automatically? [Y/n] ").await {
                Ok(answer) => match answer.to_lowercase().as_str() {
                    "" | "y" | "yes" => return Ok(true),
                    "n" | "no" => return Ok(false),
                    _ => {}
                },
                Err(Unanswered::NoMoreInput) => return Ok(false),
                Err(Unanswered::Cancelled) => {
                    complain("\nCancelled. Your settings are saved; nothing was installed.");
                    return Err(Ended::Done(ExitCode::from(EXIT_FAILED)));
                }
            }
        }
    }

    fn has_changed(&self, step: SetupStep) -> bool {
        step.settings().iter().any(|name| self.changes.contains_key(name))
    }

    /// Lets the person pair, if a bot is set up and nobody is listed or paired yet.
    async fn pair_person(&mut self, config: &Config) -> Result<(), Ended> {
        if config.telegram_token.is_none() {
            return Ok(());
        }
        let report_unpaired =
            |error: &dyn std::fmt::Display| complain(&format!("Nobody was paired: {error}. `bot` shows a code again."));
        let listens = cycle::open_store(config).map_err(|error| error.to_string()).and_then(|store| {
            let admitted = access::admit_paired_people(config, &store).map_err(|error| error.to_string())?;
            Ok((!admitted.allowed_chats.is_empty(), store))
        });
        let store = match listens {
            Ok((true, _)) => return Ok(()),
            Ok((false, store)) => store,
            Err(error) => {
                report_unpaired(&error);
                return Ok(());
            }
        };
        // Without a connection to Telegram, the bot couldn't receive the code.
        let checked = self.check_step(SetupStep::Bot).await;
        if !checked.is_good() {
            complain(&format!(
                "\nTelegram: {}. Nobody was paired: `bot` will show a code once this works.",
                checked.text()
            ));
            return Ok(());
        }
        complain(
            "\nTelegram: nobody is paired with your bot yet. (Press Enter to skip this; `bot` shows a code again later.)",
        );
        let is_running =
            wake_lock::read_holder(&config.bot_lock_path()).is_some_and(|holder| holder.identity().is_alive());
        let clock = config.clock();
        let paired = if is_running {
            self.pair_by_running_bot(config, clock.as_ref()).await
        } else {
            self.pair_by_own_bot(config, clock.as_ref(), &store).await
        };
        match paired {
            Ok(Some(person)) => {
                let name = if person.name.is_empty() { person.user_id.to_string() } else { person.name };
                complain(&format!("  ✓ paired with {name}"));
            }
            Ok(None) => complain("  Skipped."),
            Err(Unpaired::Bot(error)) => report_unpaired(&error),
            Err(Unpaired::Cancelled) => {
                complain("\nCancelled. Your settings are saved; nobody was paired.");
                return Err(Ended::Done(ExitCode::from(EXIT_FAILED)));
            }
        }
        Ok(())
    }

    /// Pairs through the running bot, with a code of this process.
    async fn pair_by_running_bot(&mut self, config: &Config, clock: &dyn Clock) -> Result<Option<Paired>, Unpaired> {
        let (end, stop) = tokio::sync::watch::channel(false);
        let pairing = bot::pair(config, clock, stop, |code, _| {
            let minutes = CODE_LIFE.num_minutes();
            complain(&format!("Send this code to your bot within {minutes} minutes:\n\n    {code}\n"));
        });
        tokio::pin!(pairing);
        let skipped = tokio::select! {
            paired = &mut pairing => return to_paired_person(paired),
            line = self.prompter.next() => line,
        };
        end.send(true).ok();
        to_paired_person(pairing.await)?;
        skipped.map(|_| None).map_err(|_| Unpaired::Cancelled)
    }

    /// Pairs through a temporary bot, which shows a code itself.
    async fn pair_by_own_bot(
        &mut self,
        config: &Config,
        clock: &dyn Clock,
        store: &Store,
    ) -> Result<Option<Paired>, Unpaired> {
        let Ok(Some(telegram)) = connect_telegram(config) else { return Ok(None) };
        let redactor = build_redactor(config);
        let (end, stop) = tokio::sync::watch::channel(false);
        let outside = BotContext { config, telegram: &telegram, clock, redactor: &redactor };
        let running = Box::pin(bot::run(outside, stop, (None, None), bot::BotMode::Polling));
        tokio::pin!(running);
        let ended = tokio::select! {
            ended = &mut running => return ended.map(|_| None).map_err(Unpaired::Bot),
            person = wait_for_person(store) => person.map(Some).map_err(|error| Unpaired::Bot(error.into())),
            line = self.prompter.next() => line.map(|_| None).map_err(|_| Unpaired::Cancelled),
        };
        // The bot sends its welcome before it ends.
        end.send(true).ok();
        running.await.map_err(Unpaired::Bot)?;
        ended
    }
}

/// The reason why pairing failed.
enum Unpaired {
    Bot(BotError),
    Cancelled,
}

fn to_paired_person(paired: Result<Pairing, BotError>) -> Result<Option<Paired>, Unpaired> {
    match paired {
        Ok(Pairing::Paired(person)) => Ok(Some(person)),
        Ok(Pairing::Void | Pairing::Stopped) => Ok(None),
        Err(error) => Err(Unpaired::Bot(error)),
    }
}

async fn wait_for_person(store: &Store) -> Result<Paired, reveille_store::StoreError> {
    loop {
        if let Some(person) = store.people().list_paired_people()?.pop() {
            return Ok(person);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Writes the names as the person's own edit, which the next wake commits. Creates the memory if needed.
fn write_names(config: &Config, names: &AssistantNames) -> Result<(), String> {
    let to_text = |error: &dyn std::fmt::Display| error.to_string();
    drop(cycle::open_store(config).map_err(|error| to_text(&error))?);
    let now = config.clock().now();
    let lock =
        WakeLock::try_acquire(&config.lock_path(), &Identity::current(), now).map_err(|error| to_text(&error))?;
    let url = config.repo_url.as_ref().map(reveille_config::RepoUrl::expose);
    Repo::open_or_create(&config.repo_dir(), url, &list_files(), now).map_err(|error| to_text(&error))?;
    let path = config.repo_dir().join(CLAUDE);
    let orders = fs::read_to_string(&path).map_err(|error| to_text(&error))?;
    let orders = setup::with_names(&orders, names).ok_or("claude.md has no sentence for them")?;
    let new = config.workspace_dir.join(".claude.md.new");
    let mode = fs::metadata(&path).map_err(|error| to_text(&error))?.permissions().mode();
    file::remove_if_there(&new)
        .and_then(|_| file::write_new(&new, orders.as_bytes(), mode & 0o777))
        .and_then(|()| file::move_durably(&new, &path))
        .map_err(|error| to_text(&error))?;
    drop(lock);
    Ok(())
}

/// Sends the first message as `wake say` does, and shows the answer.
pub(super) fn first_exchange(config: &Config, starts_automatically: bool) -> ExitCode {
    complain(&format!("\nA first conversation:\nYou say: {HELLO}\nIt answers:"));
    let code = wake::send_first_message(config, HELLO);
    next_steps(config, starts_automatically);
    code
}

/// Installs the programs, and returns `true` if it worked.
fn install_programs(config: &Config) -> bool {
    complain("\nSetting it up to start automatically:");
    match install::install_with_defaults(config) {
        Ok(code) => code == ExitCode::SUCCESS,
        Err(why) => {
            complain(&format!("  ✗ {why}"));
            false
        }
    }
}

/// Installs the programs if wanted, and prints hints for what comes next.
fn next_steps(config: &Config, starts_automatically: bool) {
    let is_installed = starts_automatically && install_programs(config);
    let wake = quote_for_shell(&process::resolve_sibling_program("wake"));
    let file = config
        .named_env_file
        .as_ref()
        .map_or_else(String::new, |file| format!(" --env-file {}", quote_for_shell(file)));
    complain(&format!("\nWhat comes next:\n  Talk to it here    {wake} chat{file}"));
    if !is_installed {
        let crontab = if process::find_program(Path::new(CRONTAB)).is_some() { "" } else { "install cron, then " };
        complain(&format!("  Start on its own   {wake} install{file}"));
        complain(&format!("  Or by hand         {crontab}crontab -e, and add:  {}", waker::cron_line(config)));
    }
    if config.telegram_token.is_some() && !is_installed {
        complain(&format!(
            "  On Telegram        {}{file}  (keep it running)",
            quote_for_shell(&process::resolve_sibling_program("bot"))
        ));
    }
    complain(&format!("  See your settings  {wake} init --check{file}"));
    let has_keys = config.telegram_token.is_some() || config.anthropic_key.is_some();
    if has_keys && config.key_files.is_empty() && process::find_program(Path::new(SYSTEMD_CREDS)).is_some() {
        complain("  Encrypt the keys   for units that run without you: docs/SETTINGS.md, Secrets");
    }
}
