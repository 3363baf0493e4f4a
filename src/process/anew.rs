//! Starting our own program anew, in our place.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use super::become_program;

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

/// Turns this process into what its own program is now, with the same arguments and environment. Returns only if that failed.
pub fn start_anew() -> io::Error {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match own_program() {
        Ok(program) => become_program(program.as_os_str(), &args, &[]),
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
}
