//! Measures the peak memory of a program that lives for milliseconds.
//!
//! The system counts it for children that were waited for, and a child starts with its parent's memory. The benchmark therefore starts
//! a small copy of itself, which starts the program and reads the count.

use std::process::{ExitCode, Stdio};

use nix::sys::resource::{UsageWho, getrusage};

use super::support::env::TestEnv;

/// The argument that asks for such a copy; the program and its arguments follow.
pub(crate) const FLAG: &str = "--peak-rss-of";

/// The unit of `ru_maxrss`, in bytes.
const UNIT_BYTES: i64 = if cfg!(target_os = "macos") { 1 } else { 1024 };

/// The peak resident memory of a run in this world, in MB: the program's or its largest child's.
pub(crate) fn peak_mb(env: &TestEnv, program: &str, args: &[&str]) -> f64 {
    let me = std::env::current_exe().unwrap();
    let args: Vec<&str> = [FLAG, program].into_iter().chain(args.iter().copied()).collect();
    let ran = env.run(me, &args).ok();
    ran.stdout.trim().parse::<f64>().unwrap() / 1e6
}

/// The copy's task: runs the program, prints the bytes, and fails if the program fails.
pub(crate) fn run(command: &[String]) -> ExitCode {
    let Some((program, args)) = command.split_first() else {
        return ExitCode::from(2);
    };
    #[expect(clippy::disallowed_methods, reason = "it must be a child of this small process alone")]
    let status = std::process::Command::new(program).args(args).stdout(Stdio::null()).status();
    match (status, getrusage(UsageWho::RUSAGE_CHILDREN)) {
        (Ok(status), Ok(usage)) if status.success() => {
            super::print(&format!("{}\n", usage.max_rss() * UNIT_BYTES));
            ExitCode::SUCCESS
        }
        _ => ExitCode::FAILURE,
    }
}
