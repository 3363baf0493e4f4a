//! Replacing this process by the current build of its program.

use std::{
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// The suffix that Linux adds to the path of a replaced or removed program.
const DELETED: &str = " (deleted)";

/// The path from which our program was started. A newer build, or no file, may be there now.
///
/// # Errors
/// Returns the system's error if the path is unknown.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe().map(|path| without_mark(&path))
}

fn without_mark(path: &Path) -> PathBuf {
    let shown = path.to_string_lossy();
    match shown.strip_suffix(DELETED) {
        Some(bare) if !path.exists() => PathBuf::from(bare),
        _ => path.to_owned(),
    }
}

/// The folder that holds several builds of ours; the link to the current build lies next to it.
pub const VERSIONS: &str = "versions";
/// The name of that link.
pub const CURRENT: &str = "current";

/// Like [`own_program`], but follows the link to the current build if there are several.
///
/// # Errors
/// Returns the system's error if the path is unknown.
pub fn called_program() -> io::Result<PathBuf> {
    own_program().map(|own| find_current_link(&own).filter(|called| called.is_file()).unwrap_or(own))
}

fn find_current_link(own: &Path) -> Option<PathBuf> {
    let versions = own.parent()?.parent().filter(|dir| dir.ends_with(VERSIONS))?;
    Some(versions.with_file_name(CURRENT).join(own.file_name()?))
}

/// The name under which this process was started, which selects the function of a multi-call program.
pub fn called_name() -> Option<String> {
    let called = std::env::args_os().next()?;
    Path::new(&called).file_name()?.to_str().map(str::to_owned)
}

/// The program that a new start of this process would run: our own name next to [`called_program`].
///
/// # Errors
/// Returns the system's error if the path is unknown.
pub fn starting_program() -> io::Result<PathBuf> {
    let program = called_program()?;
    let named = called_name().map(|name| program.with_file_name(name)).filter(|named| named.is_file());
    Ok(named.unwrap_or(program))
}

/// Replaces this process by the current build, with the same name, arguments and environment. Returns only on failure.
#[expect(clippy::disallowed_methods, reason = "a child of the one home of Command::new")]
pub fn start_anew() -> io::Error {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    match starting_program() {
        Ok(program) => Command::new(program).arg0(name).args(args).exec(),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_replaced_is_found_where_it_was() {
        assert_eq!(without_mark(Path::new("/nowhere/bot (deleted)")), Path::new("/nowhere/bot"));
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("bot (deleted)");
        std::fs::write(&odd, "").unwrap();
        assert_eq!(without_mark(&odd), odd, "somebody calls it so");
    }

    #[test]
    fn a_program_among_versions_is_called_by_the_link_beside_them() {
        let called = find_current_link(Path::new("/p/lib/reveille/versions/1.0-abc/bot"));
        assert_eq!(called.unwrap(), Path::new("/p/lib/reveille/current/bot"));
        assert_eq!(find_current_link(Path::new("/home/ann/.local/bin/bot")), None);
    }
}
