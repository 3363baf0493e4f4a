//! `wake install`: has the system start the programs, tries whether that works, and takes it out again.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use super::{EXIT_CONFIG, EXIT_FAILED, SettingsArguments, complain, print};
use crate::{
    config::{Config, SaidSettings, SettingChanges},
    process::{self, Identity, Spec},
    setup::install::{self, InstallStep, Installation, Starter, bot_command, perform},
    wake_lock,
};

pub(super) const HELP: &str = "\
It copies the programs to PREFIX/bin, has systemd, launchd or cron start them, starts them, and tries whether they run. Run \
again, it updates. The bot is started where a token is set.

Examples:
  wake install --dry-run             what would be written where
  wake install
  wake install --uninstall           the memory stays";

/// What cron or a session's manager may not be there for.
const NO_STARTER: &str = "Nothing here can start it: neither a session's manager nor cron answers. Install cron (Debian: \
                          apt-get install cron), or keep `wake` running.";
/// A first wake fetches the memory and answers what has waited.
const FIRST_WAKE: Duration = Duration::from_secs(600);
/// A bot takes its lock before it speaks to anybody. It is looked for this often, so long each time.
const BOT_LOOKS: u32 = 100;
const BOT_PAUSE: Duration = Duration::from_millis(100);
/// How long a bot that is replaced may take to end.
const BOT_END: Duration = Duration::from_secs(30);

/// Where to, and whether at all.
#[derive(Debug, Default, clap::Args)]
pub(super) struct InstallArguments {
    /// Put the programs into DIR/bin; by default where they are if that is a bin directory, else ~/.local.
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Take out what was installed: what starts it, and the programs. The memory and the settings stay.
    #[arg(long)]
    uninstall: bool,
    /// Only show what would be done.
    #[arg(long)]
    dry_run: bool,
    /// What is to start it; by default systemd or launchd where it answers, else cron.
    #[arg(long, value_enum, value_name = "WHAT")]
    with: Option<Starter>,
}

/// Installs it, or takes it out.
pub(super) fn run(settings: &SettingsArguments, arguments: &InstallArguments) -> ExitCode {
    // Wrong settings keep nobody from taking it out; the wake that is tried names them.
    let said = SaidSettings::gather(settings.env_file.as_deref());
    let Some(config) = said.with_what_is_right(&SettingChanges::new()).0 else {
        complain("It isn't known where to keep anything: HOME isn't set. Set WORKSPACE_DIR. Nothing was changed.");
        return ExitCode::from(EXIT_CONFIG);
    };
    match with(&config, arguments) {
        Ok(code) => code,
        Err(why) => {
            complain(&format!("failed: {why}"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// Whether something here could start it.
pub(super) fn is_possible() -> bool {
    starter().is_some()
}

/// The same with settings that are known, and nothing else said.
pub(super) fn by_itself(config: &Config) -> Result<ExitCode, String> {
    with(config, &InstallArguments::default())
}

fn with(config: &Config, arguments: &InstallArguments) -> Result<ExitCode, String> {
    let home = config.home.clone().ok_or("HOME isn't set; nothing was changed")?;
    let own = process::own_program().map_err(|error| error.to_string())?;
    let from = own.parent().unwrap_or(Path::new("/")).to_owned();
    let bin = match &arguments.prefix {
        Some(prefix) => std::path::absolute(prefix).map_err(|error| error.to_string())?.join("bin"),
        None if from.file_name().is_some_and(|name| name == "bin") => from.clone(),
        None => home.join(".local/bin"),
    };
    let to = Installation {
        home,
        bin,
        workspace: config.workspace_dir.clone(),
        env_file: config.named_env_file.clone(),
        with_bot: config.telegram_token.is_some(),
    };
    if let Some(path) = to.unwritable() {
        return Err(format!("{:?} can't stand in a unit or a line of cron's; nothing was changed", path.display()));
    }
    if arguments.uninstall { uninstall(config, &to, arguments.dry_run) } else { install(config, &to, &from, arguments) }
}

fn install(config: &Config, to: &Installation, from: &Path, arguments: &InstallArguments) -> Result<ExitCode, String> {
    let starter = arguments.with.or_else(starter).ok_or(NO_STARTER)?;
    let crontab = match starter {
        Starter::Cron => crontab()?.ok_or("there is no crontab command; Debian's package is called cron")?,
        _ => String::new(),
    };
    let steps = install::install_steps(to, from, starter, &crontab, user_id())?;
    if arguments.dry_run {
        print(&shown(&steps));
        return Ok(ExitCode::SUCCESS);
    }
    let changed = take(&steps)?;
    if starter == Starter::Cron && self::crontab()?.is_none_or(|now| now != install::with_lines(&now, to)) {
        return Err("the crontab was written and doesn't hold our lines; look at it with `crontab -l`".to_owned());
    }
    let programs_changed = changed.iter().any(|step| matches!(step, InstallStep::Program { .. }));
    if starter == Starter::Cron && to.with_bot {
        start_bot(config, to, programs_changed)?;
    }
    let code = check(config, to, starter)?;
    // It has reported in: the way back isn't needed.
    for step in &steps {
        if let InstallStep::Program { to, .. } = step {
            let mut old = to.as_os_str().to_owned();
            old.push(".old");
            std::fs::remove_file(old).ok();
        }
    }
    tell(to, starter);
    Ok(code)
}

/// Takes steps, and says what changes; gives those that did.
fn take(steps: &[InstallStep]) -> Result<Vec<&InstallStep>, String> {
    let mut changed = Vec::new();
    for step in steps {
        if perform(step).map_err(|error| format!("{error}. What was done before it stands; run it again."))? {
            complain(&format!("  {step}"));
            changed.push(step);
        }
    }
    Ok(changed)
}

fn shown(steps: &[InstallStep]) -> String {
    if steps.is_empty() {
        return "Nothing is to do.\n".to_owned();
    }
    let lines: String = steps.iter().map(|step| format!("{step}\n")).collect();
    format!("{lines}Nothing was changed: --dry-run.\n")
}

fn uninstall(config: &Config, to: &Installation, dry_run: bool) -> Result<ExitCode, String> {
    let steps = install::uninstall_steps(to, crontab()?.as_deref(), user_id());
    if dry_run {
        print(&shown(&steps));
        return Ok(ExitCode::SUCCESS);
    }
    take(&steps)?;
    // systemd and launchd end what they started; cron doesn't.
    if steps.iter().any(|step| matches!(step, InstallStep::Crontab { .. })) {
        end_bot(config);
    }
    let done = if steps.is_empty() { "Nothing was installed." } else { "It wakes by itself no more." };
    complain(&format!("{done} The memory and the settings stay in {}.", to.workspace.display()));
    Ok(ExitCode::SUCCESS)
}

/// What starts programs here, the better first.
fn starter() -> Option<Starter> {
    if cfg!(target_os = "macos") {
        return Some(Starter::Launchd);
    }
    if says_yes(&["systemctl", "--user", "show-environment"]) {
        return Some(Starter::Systemd);
    }
    crontab().ok().flatten().map(|_| Starter::Cron)
}

fn says_yes(words: &[&str]) -> bool {
    let (program, args) = words.split_first().map_or(("", &[][..]), |(program, args)| (*program, args));
    process::run(&Spec::new(program).args(args)).is_ok_and(|output| output.status.success())
}

/// The person's crontab; none where there is no such command. What can't be read is never written over.
fn crontab() -> Result<Option<String>, String> {
    if process::find(Path::new("crontab")).is_none() {
        return Ok(None);
    }
    let spec = Spec::new("crontab").args(["-l"]).env("LC_ALL", "C");
    let output = process::run(&spec).map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() && !output.truncated {
        let text = String::from_utf8(output.stdout).map_err(|_| "the crontab isn't UTF-8; nothing was changed")?;
        return Ok(Some(text));
    }
    // Each cron has its own words for an empty one.
    let is_empty = said.contains("no crontab for") || said.contains("can't open") && said.contains("No such file");
    if is_empty { Ok(Some(String::new())) } else { Err(format!("`crontab -l` failed: {said}; nothing was changed")) }
}

fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The bot that runs, if one does.
fn running_bot(config: &Config) -> Option<Identity> {
    wake_lock::read(&config.bot_lock_path()).map(|holder| holder.identity()).filter(Identity::is_alive)
}

/// Ends the bot that runs, if one does, and waits until it is gone; one that takes longer finishes what it does.
fn end_bot(config: &Config) {
    let Some(bot) = running_bot(config) else { return };
    process::ask_to_end(&bot);
    for _ in 0..BOT_END.as_millis() / BOT_PAUSE.as_millis() {
        if !bot.is_alive() {
            return;
        }
        thread::sleep(BOT_PAUSE);
    }
    complain(&format!("  The bot (process {}) still finishes what it does.", bot.pid));
}

/// Starts a bot as cron would, at once; one of an older program ends first.
fn start_bot(config: &Config, to: &Installation, programs_changed: bool) -> Result<(), String> {
    if programs_changed {
        end_bot(config);
    }
    let spec = Spec::new("/bin/sh").args(["-c", &bot_command(to)]).dir(&to.workspace);
    process::start_detached(&spec).map(drop).map_err(|error| error.to_string())
}

/// Tries what was installed: one wake, without the secrets of this environment, which no timer has; then what is to run.
fn check(config: &Config, to: &Installation, starter: Starter) -> Result<ExitCode, String> {
    let mut words = vec!["--once".to_owned(), "--reason".to_owned(), "cron".to_owned()];
    if let Some(file) = &to.env_file {
        words.extend(["--env-file".to_owned(), file.display().to_string()]);
    }
    let wake = Spec::new(to.bin.join("wake"))
        .args(words)
        .env("WORKSPACE_DIR", &to.workspace)
        .dir(&to.workspace)
        .timeout(FIRST_WAKE);
    let ran = process::run(&wake).map_err(|error| format!("the new wake doesn't run: {error}{}", way_back(to)))?;
    let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
    let code = match ran.status.code() {
        Some(0) => {
            complain("  ✓ a wake ran");
            ExitCode::SUCCESS
        }
        Some(78) => {
            complain(&format!("  ✗ installed, but a setting is wrong (`wake init` corrects it):\n{said}"));
            return Ok(ExitCode::from(EXIT_CONFIG));
        }
        _ => {
            let how = process::describe(ran.status);
            return Err(format!("a wake was tried and failed ({how}):\n{said}{}", way_back(to)));
        }
    };
    let is_started = match starter {
        Starter::Systemd => says_yes(&["systemctl", "--user", "is-active", "--quiet", "reveille-wake.timer"]),
        Starter::Launchd => says_yes(&["launchctl", "print", &format!("gui/{}/org.reveille.wake", user_id())]),
        Starter::Cron => process::is_running("cron") || process::is_running("crond"),
    };
    match (is_started, starter) {
        (true, _) => complain("  ✓ something starts it every five minutes"),
        (false, Starter::Cron) => {
            complain("  ✗ the lines are there, but no cron runs: start it (Debian: service cron start)");
        }
        (false, _) => return Err("it was installed and isn't started".to_owned()),
    }
    if to.with_bot {
        let runs = (0..BOT_LOOKS).any(|_| {
            running_bot(config).is_some() || {
                thread::sleep(BOT_PAUSE);
                false
            }
        });
        if !runs {
            let log = if starter == Starter::Systemd {
                "journalctl --user -u reveille-bot".to_owned()
            } else {
                bot_errors(to)
            };
            return Err(format!("the bot doesn't report in; {log} says why{}", way_back(to)));
        }
        complain("  ✓ the bot runs");
    }
    Ok(code)
}

fn bot_errors(to: &Installation) -> String {
    to.bot_errors().display().to_string()
}

/// How to have the programs of before again, where they are kept.
fn way_back(to: &Installation) -> String {
    let wake = to.bin.join("wake.old");
    if !wake.exists() {
        return String::new();
    }
    format!(
        "\nThe programs of before stand beside the new ones ({} and so on); renamed, they serve again.",
        wake.display()
    )
}

/// Where the logs are, and how to take it out again.
fn tell(to: &Installation, starter: Starter) {
    let besides = match starter {
        Starter::Systemd => "warnings are in the journal, too",
        Starter::Launchd => "what it couldn't log is in *.err.log there",
        Starter::Cron => "cron mails you what fails",
    };
    complain(&format!(
        "  Logs               {} logs -f   ({}; {besides})",
        to.bin.join("wake").display(),
        to.logs().display()
    ));
    if starter == Starter::Systemd && !lingers() {
        complain("  While logged out   loginctl enable-linger   (else it sleeps until you log in)");
    }
    complain(&format!("  Take it out again  {} install --uninstall", to.bin.join("wake").display()));
}

fn lingers() -> bool {
    let asked = Spec::new("loginctl").args(["show-user", &user_id().to_string(), "--property=Linger", "--value"]);
    process::run(&asked).is_ok_and(|output| output.stdout.starts_with(b"yes"))
}
