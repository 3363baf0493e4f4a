//! `wake logs`: prints the newest lines of all logs, and follows them.

use std::{process::ExitCode, thread, time::Duration};

use reveille_base::logs::{Follower, LOGGED, LogFilter, LoggedLine, read_newest};
use reveille_config::{Config, LogFormat};

use super::{EXIT_USAGE, complain, out, parse_since, print};

pub(super) const HELP: &str = "\
The files are logs/wake.log, logs/bot.log and so on in the workspace: five files of 10 MB per program. REVEILLE_LOG and RUST_LOG \
set how much is logged, LOG_FORMAT the form. At level info, they hold no text of messages, though an error may quote what a server \
said. Secrets are always masked.
`wake log` and `wake show` show what the assistant did.

Examples:
  wake logs
  wake logs -f
  wake logs --since 2h --grep warn
  wake logs --program bot -n 200";

/// How often to check for new lines.
const LOOK_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(super) struct LogsArguments {
    /// Follow the logs until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    /// Maximum number of lines to begin with.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    lines: usize,
    /// Only lines since then: today, yesterday, a day such as 2026-11-20, or how long ago (90min, 12h, 7d).
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only lines with this text, in upper or lower case.
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Only lines of one program: wake, bot, health, page or transcriber.
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
}

/// Prints lines, and follows the logs if asked to.
pub(super) fn run(config: &Config, arguments: &LogsArguments) -> ExitCode {
    if let Some(program) = arguments.program.as_deref().filter(|name| !LOGGED.contains(name)) {
        complain(&format!("There is no log of {program:?}. Choose one of {}.", LOGGED.join(", ")));
        return ExitCode::from(EXIT_USAGE);
    }
    let since = match parse_since(config, arguments.since.as_deref()) {
        Ok(since) => since,
        Err(code) => return code,
    };
    let filter = LogFilter { program: arguments.program.clone(), since, grep: arguments.grep.clone() };
    let dir = config.logs_dir();
    // The follower starts before the files are read, so a line may be shown twice but is never missed.
    let follower = arguments.follow.then(|| Follower::new(&dir, filter.clone(), config.clock().now()));
    let lines = read_newest(&dir, &filter, arguments.lines);
    if lines.is_empty() && follower.is_none() {
        complain(&match config.log_format {
            LogFormat::Off => "There are no logs: LOG_FORMAT is off.".to_owned(),
            _ => format!("No such line in {}.", dir.display()),
        });
    }
    print_lines(&lines);
    let Some(mut follower) = follower else { return ExitCode::SUCCESS };
    while !out::has_failed() {
        print_lines(&follower.poll());
        thread::sleep(LOOK_EVERY);
    }
    ExitCode::SUCCESS
}

fn print_lines(lines: &[LoggedLine]) {
    if !lines.is_empty() {
        print(&lines.iter().map(|line| format!("{}\n", line.text)).collect::<String>());
    }
}
