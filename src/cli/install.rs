//! `wake install`: has the system start the programs, tries them, and uninstalls them again. Run by a newer build, it
//! upgrades, and falls back to the previous build if the new one fails (`setup/install/versions`, `trial`).

mod trial;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use reveille_base::process::{self, Spec};
use reveille_config::{Config, GivenSettings, SettingChanges};

use super::{EXIT_CONFIG, EXIT_FAILED, SettingsArguments, complain, print};
use crate::{
    RunMode,
    setup::install::{self, InstallStep, Installation, Starter, Versions, perform_step},
};
use trial::Trial;

pub(super) const HELP: &str = "\
It copies the programs to PREFIX/lib/reveille, links them into PREFIX/bin, has systemd, launchd or cron start them, starts them, \
and checks that they run. The bot is started if a token is set.

Run by a newer build, it upgrades: it copies the database first and keeps the previous build beside the new one. If the new bot \
doesn't report in within a minute, the old one takes over again, with the database as it is by then.

Examples:
  wake install --dry-run             what would be written where
  wake install
  ~/.local/lib/reveille/before/wake install    go back to the previous build
  wake install --uninstall           the memory stays";

/// The message for a system without a session manager and cron.
const NO_STARTER: &str = "Nothing on this system can start it: neither a session manager nor cron responds. Install cron (Debian: \
                          apt-get install cron), or keep `wake` running.";
/// Time in seconds for a new bot to report in, before the previous one takes over again.
const REPORT_WITHIN_S: u64 = 60;
/// Time for the bot to end on uninstalling.
const BOT_END: Duration = Duration::from_secs(30);

/// Where to install, or whether to remove.
#[derive(Debug, clap::Args)]
pub(super) struct InstallArguments {
    /// Put the programs into DIR/bin; default: where they are if that is a bin directory, else ~/.local.
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Remove what was installed: the programs, and what starts them. The memory and the settings stay.
    #[arg(long)]
    uninstall: bool,
    /// Only show what would be done.
    #[arg(long)]
    dry_run: bool,
    /// How long the new bot may take to report in, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = REPORT_WITHIN_S, hide = true)]
    report_within: u64,
    /// What should start it; default: systemd or launchd if available, else cron.
    #[arg(long, value_enum, value_name = "WHAT")]
    with: Option<Starter>,
}

/// Installs or uninstalls.
pub(super) fn run(settings: &SettingsArguments, arguments: &InstallArguments) -> ExitCode {
    // Wrong settings must not prevent uninstalling; the trial wake reports them.
    let said = GivenSettings::gather(settings.env_file.as_deref());
    let Some(config) = said.with_valid_settings(&SettingChanges::new()).0 else {
        complain(
            "I don't know where to keep my files, because HOME isn't set. Please set WORKSPACE_DIR. Nothing was changed.",
        );
        return ExitCode::from(EXIT_CONFIG);
    };
    match run_with_config(&config, arguments) {
        Ok(code) => code,
        Err(why) => {
            complain(&format!("failed: {why}"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// Returns `true` if this system can start programs.
pub(super) fn is_possible() -> bool {
    find_starter().is_some()
}

/// Installs with known settings and default arguments.
pub(super) fn install_with_defaults(config: &Config) -> Result<ExitCode, String> {
    let arguments =
        InstallArguments { prefix: None, uninstall: false, dry_run: false, report_within: REPORT_WITHIN_S, with: None };
    run_with_config(config, &arguments)
}

fn run_with_config(config: &Config, arguments: &InstallArguments) -> Result<ExitCode, String> {
    let home = config.home.clone().ok_or("HOME isn't set; nothing was changed")?;
    let own = process::own_program().and_then(|own| own.canonicalize()).map_err(|error| error.to_string())?;
    let from = own.parent().unwrap_or(Path::new("/")).to_owned();
    let bin = match (&arguments.prefix, Versions::for_programs(&from).and_then(|versions| versions.bin())) {
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
    if let Some(path) = to.find_unwritable_path() {
        return Err(format!(
            "{:?} can't be used in a systemd unit or a crontab line; nothing was changed",
            path.display()
        ));
    }
    if arguments.uninstall {
        uninstall_programs(config, &to, RunMode::from_flag(arguments.dry_run))
    } else {
        install_programs(config, &to, &from, arguments)
    }
}

fn install_programs(
    config: &Config,
    to: &Installation,
    from: &Path,
    arguments: &InstallArguments,
) -> Result<ExitCode, String> {
    let starter = arguments.with.or_else(find_starter).ok_or(NO_STARTER)?;
    let crontab = match starter {
        Starter::Cron => read_crontab()?.ok_or("there is no crontab command; Debian's package is called cron")?,
        _ => String::new(),
    };
    let steps = install::install_steps(to, from, starter, &crontab, user_id())?;
    if arguments.dry_run {
        print(&render_steps(&steps));
        return Ok(ExitCode::SUCCESS);
    }
    let versions = Versions::for_installation(to);
    let has_wrong_settings = match Config::load(config.named_env_file.as_deref()) {
        // With these settings neither the new bot nor the previous one would start, so falling back would not help.
        Err(error)
            if steps
                .iter()
                .any(|step| matches!(step, InstallStep::Link { path, .. } if *path == versions.previous_link())) =>
        {
            return Err(format!("{error}\nNothing was changed: the current programs stay."));
        }
        loaded => loaded.is_err(),
    };
    let (present, left) = (install::find_linked_build(to), versions.find_trial_build());
    if let Some(name) = &left {
        complain(&format!(
            "  The installation of {name} was interrupted before it had reported in; this one repairs that."
        ));
    }
    let mut trial = Trial::new(config, to, starter, Duration::from_secs(arguments.report_within));
    let is_new = || install::find_linked_build(to) != present || left.is_some();
    let tried = perform_steps(&steps).and_then(|()| {
        if starter == Starter::Cron && self::read_crontab()?.is_none_or(|now| now != install::add_our_lines(&now, to)) {
            return Err("the crontab was written but doesn't contain our lines; check it with `crontab -l`".to_owned());
        }
        if starter == Starter::Cron && to.with_bot {
            if is_new() {
                trial.end_present_bot()?;
            }
            trial.start_bot()?;
        }
        if to.with_bot && is_new() && !has_wrong_settings {
            trial.check_report()?;
        }
        trial.check()
    });
    match (tried, versions.previous_build().filter(|_| is_new())) {
        (Ok(code), _) => {
            if let Some(name) = versions.find_trial_build().filter(|_| code == ExitCode::SUCCESS) {
                perform_steps(&[InstallStep::Write { path: versions.mark(&name), text: String::new() }])?;
                versions.prune().ok();
            }
            print_hints(to, starter);
            Ok(code)
        }
        (Err(why), Some(before)) => Err(format!("{why}\n{}", trial.roll_back(&versions, &before))),
        (Err(why), None) => Err(why),
    }
}

/// Performs steps, and prints each change.
fn perform_steps(steps: &[InstallStep]) -> Result<(), String> {
    for step in steps {
        if perform_step(step).map_err(|error| format!("{error}. The steps before it are done; run it again."))? {
            complain(&format!("  {step}"));
        }
    }
    Ok(())
}

fn render_steps(steps: &[InstallStep]) -> String {
    if steps.is_empty() {
        return "Nothing to do.\n".to_owned();
    }
    let lines: String = steps.iter().map(|step| format!("{step}\n")).collect();
    format!("{lines}Nothing was changed: --dry-run.\n")
}

fn uninstall_programs(config: &Config, to: &Installation, mode: RunMode) -> Result<ExitCode, String> {
    let steps = install::uninstall_steps(to, read_crontab()?.as_deref(), user_id());
    if mode.is_dry() {
        print(&render_steps(&steps));
        return Ok(ExitCode::SUCCESS);
    }
    perform_steps(&steps)?;
    // systemd and launchd end the programs they started; cron doesn't.
    let is_crons = steps.iter().any(|step| matches!(step, InstallStep::Crontab { .. }));
    if is_crons && !trial::end_bot(config, BOT_END) {
        complain("  The bot is still finishing its work and will end then.");
    }
    let done = if steps.is_empty() { "Nothing was installed." } else { "It no longer starts on its own." };
    complain(&format!("{done} The memory and the settings stay in {}.", to.workspace.display()));
    Ok(ExitCode::SUCCESS)
}

/// Finds the best starter of this system.
fn find_starter() -> Option<Starter> {
    if cfg!(target_os = "macos") {
        return Some(Starter::Launchd);
    }
    if succeeds(&["systemctl", "--user", "show-environment"]) {
        return Some(Starter::Systemd);
    }
    read_crontab().ok().flatten().map(|_| Starter::Cron)
}

fn succeeds(words: &[&str]) -> bool {
    let (program, args) = words.split_first().map_or(("", &[][..]), |(program, args)| (*program, args));
    process::run(&Spec::new(program).args(args)).is_ok_and(|output| output.status.success())
}

/// Reads the person's crontab. Fails rather than risk overwriting an unreadable one. `None` if there is no `crontab`
/// command.
fn read_crontab() -> Result<Option<String>, String> {
    if process::find_program(Path::new("crontab")).is_none() {
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
    succeeds(&[&["systemctl", "--user"], words].concat())
}

/// Prints the place of the logs and the command to uninstall.
fn print_hints(to: &Installation, starter: Starter) {
    let besides = match starter {
        Starter::Systemd => "warnings are also in the journal",
        Starter::Launchd => "errors before logging starts are in *.err.log there",
        Starter::Cron => "cron mails you failures",
    };
    complain(&format!(
        "  Logs               {} logs -f   ({}; {besides})",
        to.bin.join("wake").display(),
        to.logs().display()
    ));
    if starter == Starter::Systemd && !is_lingering() {
        complain("  While logged out   loginctl enable-linger   (otherwise it sleeps until you log in)");
    }
    complain(&format!("  To remove it       {} install --uninstall", to.bin.join("wake").display()));
}

fn is_lingering() -> bool {
    let asked = Spec::new("loginctl").args(["show-user", &user_id().to_string(), "--property=Linger", "--value"]);
    process::run(&asked).is_ok_and(|output| output.stdout.starts_with(b"yes"))
}
