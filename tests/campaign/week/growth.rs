//! Checks that growth matches the messages: the workspace on the disk, an idle wake's memory and time, the bot's open files.

use std::{
    fs, io,
    process::{ExitCode, Stdio},
    thread,
    time::Duration,
};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike as _,
};

use super::world::Life;
use crate::world::files;

/// The argument for running another program and printing its memory and time.
pub(crate) const FLAG: &str = "--measure";
/// Wakes after which nothing may be due any more.
const LOOKS: usize = 3;
/// Measurements of an idle wake; the least counts, since the machine is busy with other work.
const TIMES: usize = 5;
/// Bytes of disk that one message may take: itself, its wake's journal, its commit, and its index entries.
const BYTES_PER_MESSAGE: u64 = 128 << 10;
/// The copy an upgrade makes.
const COPY: &str = "messages.db.before-upgrade";
/// The allowed growth of an idle wake's memory and time, as a factor, with an allowance for noise.
const RSS_FACTOR: f64 = 1.25;
const CPU_FACTOR: f64 = 2.0;
const CPU_NOISE_US: u64 = 20_000;
/// Files a bot may have open only at times.
const FILES_NOISE: usize = 3;
/// The number of counts of open files, and the interval between them.
const FILES_LOOKS: usize = 20;
const FILES_LOOK_EVERY: Duration = Duration::from_millis(20);

/// The sizes on one evening.
#[derive(Debug, Clone)]
pub(super) struct Size {
    messages: u64,
    disk_bytes: u64,
    idle_rss_bytes: u64,
    idle_cpu_us: u64,
    bot_files: usize,
}

impl Life<'_> {
    /// Measures the current sizes.
    pub(super) fn measure(&mut self) -> Result<(), String> {
        self.open();
        let bot = self.running_bot().ok_or("no bot runs")?;
        let bot_files = open_files(bot.pid).map_err(|error| error.to_string())?;
        self.close()?;
        // The evening's leftovers are pushed first.
        let looks: Vec<_> = (0..LOOKS).map(|_| self.run_cron_wake().json()).collect();
        if looks.last().is_none_or(|look| look["outcome"] != "idle") {
            return Err(format!("something is due in the evening: {looks:#?}"));
        }
        let wake = self.wake().display().to_string();
        let me = std::env::current_exe().map_err(|error| error.to_string())?;
        let taken: Vec<(u64, u64)> = (0..TIMES)
            .map(|_| {
                let said = self.env.run(&me, &[FLAG, &wake, "--once", "--no-console"]).ok().stdout;
                let (rss, cpu) = said.trim().split_once(' ').unwrap();
                (rss.parse().unwrap(), cpu.parse().unwrap())
            })
            .collect();
        let workspace = self.env.workspace();
        let bytes = |path: &std::path::PathBuf| fs::metadata(path).map_or(0, |found| found.len());
        self.sizes.push(Size {
            messages: self.env.query::<i64>("SELECT count(*) FROM incoming_messages").unsigned_abs(),
            // An upgrade leaves one copy of the database, independent of the number of upgrades.
            disk_bytes: files(&workspace).iter().filter(|path| !path.ends_with(COPY)).map(bytes).sum(),
            idle_rss_bytes: taken.iter().map(|(rss, _)| *rss).min().unwrap_or(0),
            idle_cpu_us: taken.iter().map(|(_, cpu)| *cpu).min().unwrap_or(0),
            bot_files,
        });
        Ok(())
    }
}

/// The minimum of a program's open files over several counts, since some are only open at times.
fn open_files(pid: u32) -> io::Result<usize> {
    let mut least = usize::MAX;
    for _ in 0..FILES_LOOKS {
        least = least.min(fs::read_dir(format!("/proc/{pid}/fd"))?.count());
        thread::sleep(FILES_LOOK_EVERY);
    }
    Ok(least)
}

/// Compares the last measured evening with the first.
pub(super) fn check(sizes: &[Size]) -> Result<(), String> {
    let [first, .., last] = sizes else { return Err("nothing was measured".to_owned()) };
    let said = last.messages.saturating_sub(first.messages);
    let grew = [
        ("the disk", last.disk_bytes > first.disk_bytes + said * BYTES_PER_MESSAGE),
        ("an idle wake's memory", last.idle_rss_bytes as f64 > first.idle_rss_bytes as f64 * RSS_FACTOR),
        ("an idle wake's time", last.idle_cpu_us as f64 > first.idle_cpu_us as f64 * CPU_FACTOR + CPU_NOISE_US as f64),
        ("the bot's open files", last.bot_files > first.bot_files + FILES_NOISE),
    ];
    match grew.iter().find(|(_, has_grown)| *has_grown) {
        Some((what, _)) => Err(format!("{what} has grown: {sizes:#?}")),
        None => Ok(()),
    }
}

/// Runs a program and prints its peak memory in bytes and its time in microseconds.
pub(crate) fn run(command: &[String]) -> ExitCode {
    let Some((program, args)) = command.split_first() else { return ExitCode::from(2) };
    #[expect(clippy::disallowed_methods, reason = "it must be a child of this small process alone")]
    let status = std::process::Command::new(program).args(args).stdout(Stdio::null()).status();
    match (status, getrusage(UsageWho::RUSAGE_CHILDREN)) {
        (Ok(status), Ok(usage)) if status.success() => {
            let cpu = usage.user_time() + usage.system_time();
            crate::print(&format!("{} {}\n", usage.max_rss() * 1_024, cpu.num_microseconds()));
            ExitCode::SUCCESS
        }
        _ => ExitCode::FAILURE,
    }
}
