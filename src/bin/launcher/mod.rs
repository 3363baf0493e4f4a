//! Runs `wake` under another name. The whole project is that one program, so it is built and loaded once. The called
//! name selects its behaviour.

use std::{
    env::{args_os, current_exe},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode},
};

/// The exit code if `wake` is missing, as shells use for a missing program.
const NOT_FOUND: u8 = 127;

/// Becomes the `wake` beside this program, called `name`, with the same arguments. Returns only if it can't be started.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "it doesn't link the library, which has the allowed functions"
)]
pub(crate) fn run_wake_as(name: &str) -> ExitCode {
    // This program may be called through a link, while `wake` is next to the file itself.
    let own = current_exe().and_then(|own| own.canonicalize().or(Ok(own)));
    let wake = own.map_or_else(|_| PathBuf::from("wake"), |own| own.with_file_name("wake"));
    let error = Command::new(&wake).arg0(name).args(args_os().skip(1)).exec();
    eprintln!(
        "{name}: {} can't be started: {error}. It must be in the same folder as `{name}`; nothing was done.",
        wake.display()
    );
    ExitCode::from(NOT_FOUND)
}
