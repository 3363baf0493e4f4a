//! Runs `wake` under another name. All that this project does is in that one program, so that it is built and kept in memory once; what it
//! does depends on the name that it is called by.

use std::{
    env::{args_os, current_exe},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode},
};

/// The exit code where `wake` isn't there: what a shell says of a program that it can't find.
const NOT_FOUND: u8 = 127;

/// Becomes the `wake` that stands beside this program, called `name`, with the same arguments. Returns only if it couldn't be started.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "it has nothing of the library, so that it needn't be linked"
)]
pub(crate) fn run_wake_as(name: &str) -> ExitCode {
    // A link may lead here: `wake` is where the file is.
    let own = current_exe().and_then(|own| own.canonicalize().or(Ok(own)));
    let wake = own.map_or_else(|_| PathBuf::from("wake"), |own| own.with_file_name("wake"));
    let error = Command::new(&wake).arg0(name).args(args_os().skip(1)).exec();
    eprintln!("{name}: {} can't be started: {error}. It belongs beside `{name}`; nothing was done.", wake.display());
    ExitCode::from(NOT_FOUND)
}
