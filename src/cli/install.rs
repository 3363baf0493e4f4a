//! `wake install`: has the system start the programs, tries them, and uninstalls them again. Run by a newer build, it
//! upgrades, and falls back to the previous build if the new one fails (`setup/install/versions`, `trial`).

mod trial;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use reveille_base::process::{self, Spec};
use reveille_config::{Config, SaidSettings, SettingChanges};

use super::{EXIT_CONFIG, EXIT_FAILED, SettingsArguments, complain, print};
use crate::setup::install::{self, InstallStep, Installation, Starter, Versions, perform};
use trial::Trial;

pub(super) const HELP: &str = "\
It copies the programs to PREFIX/lib/reveille, links them into PREFIX/bin, has systemd, launchd or cron start them, starts them, and \
tries whether they run. The bot is started where a token is set.

Run by a newer build, it upgrades. The build before stays beside the new one, and the database is copied first. If the new bot doesn't \
report in within a minute, the old one takes over again, on the database as it is by then.

Examples:
  wake install --dry-run             what would be written where
  wake install
  ~/.local/lib/reveille/before/wake install    the build before takes over again
  wake install --uninstall           the memory stays";

/// The message for a system without a session manager and cron.
const NO_STARTER: &str = "Nothing here can start it: neither a session's manager nor cron answers. Install cron (Debian: \
                          apt-get install cron), or keep `wake` running.";
/// Time in seconds for a new bot to report in, before the previous one takes over again.
const REPORT_WITHIN_S: u64 = 60;
/// Time for the bot to end on uninstalling.
const BOT_END: Duration = Duration::from_secs(30);

/// Where to, and whether at all.
#[derive(Debug, clap::Args)]
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
    /// How long the new bot may take to report in, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = REPORT_WITHIN_S, hide = true)]
    report_within: u64,
    /// What is to start it; by default systemd or launchd where it answers, else cron.
    #[arg(long, value_enum, value_name = "WHAT")]
    with: Option<Starter>,
}

/// Installs or uninstalls.
pub(super) fn run(settings: &SettingsArguments, arguments: &InstallArguments) -> ExitCode {
    // Wrong settings must not prevent uninstalling; the trial wake reports them.
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

/// Returns `true` if this system can start programs.
pub(super) fn is_possible() -> bool {
    starter().is_some()
}

/// Installs with known settings and default arguments.
pub(super) fn by_itself(config: &Config) -> Result<ExitCode, String> {
    let arguments =
        InstallArguments { prefix: None, uninstall: false, dry_run: false, report_within: REPORT_WITHIN_S, with: None };
    with(config, &arguments)
}

fn with(config: &Config, arguments: &InstallArguments) -> Result<ExitCode, String> {
    let home = config.home.clone().ok_or("HOME isn't set; nothing was changed")?;
    let own = process::own_program().and_then(|own| own.canonicalize()).map_err(|error| error.to_string())?;
    let from = own.parent().unwrap_or(Path::new("/")).to_owned();
    let bin = match (&arguments.prefix, Versions::of_programs(&from).and_then(|versions| versions.bin())) {
        (Some(prefix), _) => std::path::absolute(prefix).map_err(|error| error.to_string())?.join("bin"),
        (None, Some(bin)) => bin,
        _ if from.file_name().is_some_and(|name| name == "bin") => from.clone(),
        _ => home.join(".local/bin"),
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
    let versions = Versions::of(to);
    let has_wrong_settings = match Config::load(config.named_env_file.as_deref()) {
        // With these settings neither the new bot nor the previous one would start, so falling back would not help.
        Err(error)
            if steps
                .iter()
                .any(|step| matches!(step, InstallStep::Link { path, .. } if *path == versions.before_link())) =>
        {
            return Err(format!("{error}\nNothing was changed: the present programs stay."));
        }
        loaded => loaded.is_err(),
    };
    let (present, left) = (install::called_build(to), versions.on_trial());
    if let Some(name) = &left {
        complain(&format!(
            "  The installation of {name} was broken off before it had reported in; this one mends that."
        ));
    }
    let mut trial = Trial::new(config, to, starter, Duration::from_secs(arguments.report_within));
    let is_new = || install::called_build(to) != present || left.is_some();
    let tried = take(&steps).and_then(|()| {
        if starter == Starter::Cron && self::crontab()?.is_none_or(|now| now != install::with_lines(&now, to)) {
            return Err("the crontab was written and doesn't hold our lines; look at it with `crontab -l`".to_owned());
        }
        if starter == Starter::Cron && to.with_bot {
            trial.start_bot(is_new())?;
        }
        trial.check(is_new() && !has_wrong_settings)
    });
    match (tried, versions.before().filter(|_| is_new())) {
        (Ok(code), _) => {
            if let Some(name) = versions.on_trial().filter(|_| code == ExitCode::SUCCESS) {
                take(&[InstallStep::Write { path: versions.mark(&name), text: String::new() }])?;
                versions.prune().ok();
            }
            tell(to, starter);
            Ok(code)
        }
        (Err(why), Some(before)) => Err(format!("{why}\n{}", trial.take_back(&versions, &before))),
        (Err(why), None) => Err(why),
    }
}

/// Performs steps, and prints each change.
fn take(steps: &[InstallStep]) -> Result<(), String> {
    for step in steps {
        if perform(step).map_err(|error| format!("{error}. What was done before it stands; run it again."))? {
            complain(&format!("  {step}"));
        }
    }
    Ok(())
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
    // systemd and launchd end the programs they started; cron doesn't.
    let is_crons = steps.iter().any(|step| matches!(step, InstallStep::Crontab { .. }));
    if is_crons && !trial::end_bot(config, BOT_END) {
        complain("  The bot still finishes what it does, and ends then.");
    }
    let done = if steps.is_empty() { "Nothing was installed." } else { "It wakes by itself no more." };
    complain(&format!("{done} The memory and the settings stay in {}.", to.workspace.display()));
    Ok(ExitCode::SUCCESS)
}

/// Finds the best starter of this system.
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

/// Reads the person's crontab. Fails rather than risk overwriting an unreadable one. `None` if there is no `crontab`
/// command.
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
    // Each cron reports an empty crontab in its own words.
    let is_empty = said.contains("no crontab for") || said.contains("can't open") && said.contains("No such file");
    if is_empty { Ok(Some(String::new())) } else { Err(format!("`crontab -l` failed: {said}; nothing was changed")) }
}

fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

fn run_systemctl(words: &[&str]) -> bool {
    says_yes(&[&["systemctl", "--user"], words].concat())
}

/// Prints the place of the logs and the command to uninstall.
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
