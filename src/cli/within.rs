//! `wake` as a helper inside a sandbox, without settings: the launcher that applies the sandbox rules a second time,
//! the forwarder to the proxy, and the launcher of an assistant's box.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use reveille_base::process;
use reveille_sandbox::confined;

use super::complain;

/// A shell's exit code for a program that can't be run.
const CANNOT_RUN: u8 = 126;
/// The box's warning on kernels older than Linux 6.12.
const OLD_KERNEL: &str =
    "this kernel can't keep an assistant from abstract Unix sockets of this machine; Linux 6.12 and newer can";

#[derive(Debug, Parser)]
#[command(name = "wake")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sets the rules of the sandbox a second time and becomes the program.
    Confined {
        /// The rules by which the sandbox was built.
        #[arg(long)]
        rules: String,
        /// The program and its arguments.
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Keeps a fleet's assistant from the sockets of the machine that have no path, and becomes the program.
    Boxed {
        /// The program and its arguments.
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Forwards what comes to the socket on standard input.
    Forward {
        /// The proxy's socket.
        #[arg(long)]
        to: PathBuf,
    },
}

/// Runs a sandbox helper. If confinement fails, exits as if the program couldn't be run. `None` for other arguments.
pub(super) fn main() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    ["confined", "boxed", "forward"].iter().any(|ours| first == *ours).then(|| run(Arguments::parse().command))
}

fn run(command: Command) -> ExitCode {
    let why = match command {
        Command::Confined { rules, command } => {
            let ran = confined::LauncherRules::parse(&rules).and_then(|rules| confined::run(&rules, &command));
            ran.map_or_else(|why| why, |never| match never {})
        }
        Command::Boxed { command } => match confined::block_abstract_sockets() {
            Ok(is_kept_out) => {
                if !is_kept_out {
                    complain(OLD_KERNEL);
                }
                let [program, args @ ..] = &*command else { return ExitCode::from(CANNOT_RUN) };
                let error = process::become_program(program, args, &[]);
                format!("{} couldn't be started: {error}", program.to_string_lossy())
            }
            Err(why) => why,
        },
        Command::Forward { to } => match confined::forward_connections(&to) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => error.to_string(),
        },
    };
    complain(&format!("sandbox: {why}\nThe program was not run."));
    ExitCode::from(CANNOT_RUN)
}
