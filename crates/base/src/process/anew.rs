//! Starting our own program anew, in our place.

use std::{
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// What Linux adds to the path of a program whose file was replaced or removed since.
const DELETED: &str = " (deleted)";

/// Where our program stood when it was started: what stands there now may be a newer one, or nothing.
///
/// # Errors
/// When the system doesn't tell.
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

/// The folder where builds of ours stand beside each other, and beside it the link to the one that is called.
pub const VERSIONS: &str = "versions";
/// That link.
pub const CURRENT: &str = "current";

/// As [`own_program`]; where builds stand beside each other, the one that is called now.
///
/// # Errors
/// When the system doesn't tell.
pub fn called_program() -> io::Result<PathBuf> {
    own_program().map(|own| as_called(&own).filter(|called| called.is_file()).unwrap_or(own))
}

fn as_called(own: &Path) -> Option<PathBuf> {
    let versions = own.parent()?.parent().filter(|dir| dir.ends_with(VERSIONS))?;
    Some(versions.with_file_name(CURRENT).join(own.file_name()?))
}

/// The name that this process was called by: of a program that does several things, the one that is meant.
pub fn called_name() -> Option<String> {
    let called = std::env::args_os().next()?;
    Path::new(&called).file_name()?.to_str().map(str::to_owned)
}

/// The program that this process would be started by now: the one of its name that stands beside [`called_program`].
///
/// # Errors
/// When the system doesn't tell.
pub fn starting_program() -> io::Result<PathBuf> {
    let program = called_program()?;
    let named = called_name().map(|name| program.with_file_name(name)).filter(|named| named.is_file());
    Ok(named.unwrap_or(program))
}

/// Turns this process into what its own program is now, with the same name, arguments and environment. Returns only if that failed.
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
        let called = as_called(Path::new("/p/lib/reveille/versions/1.0-abc/bot"));
        assert_eq!(called.unwrap(), Path::new("/p/lib/reveille/current/bot"));
        assert_eq!(as_called(Path::new("/home/ann/.local/bin/bot")), None);
    }
}
