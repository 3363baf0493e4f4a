//! Starting a desktop program that outlives us, such as a viewer for a page or a document.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use super::{ProcessError, Spec, list_inherited_variables};

/// Starts a program in its own process group, without input and with its output dropped. Secrets are hidden as for every child, but
/// the time-out and the output limit don't apply. The caller polls the child for as long as needed.
#[expect(clippy::disallowed_methods, reason = "a child of the one home of Command::new")]
pub fn start_detached(spec: &Spec) -> Result<Child, ProcessError> {
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .env_clear()
        .envs(list_inherited_variables(&spec.without))
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    if let Some(dir) = &spec.dir {
        command.current_dir(dir);
    }
    command.spawn().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => ProcessError::NotFound { program: spec.name() },
        _ => ProcessError::Start { program: spec.name(), source },
    })
}
