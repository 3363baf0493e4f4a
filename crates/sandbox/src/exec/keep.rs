//! Outputs that are too long for the model. The model gets the beginning; the whole is kept in a readable file of the
//! cycle's scratch folder.
//!
//! Programs in the sandbox can write there too, so links are never followed: directory and file are opened by handles,
//! and every file is new.

use std::{
    io::{self, Write as _},
    path::Path,
};

use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{AtFlags, CWD, Dir, Mode, OFlags, mkdirat, openat, unlinkat},
    io::Errno,
};

use reveille_base::{file::create_private_at, words::first_bytes};

use super::folders::CycleFolder;

/// Maximum bytes of one output shown to the model. Below the limit of any tool result, to leave room for a few words.
pub const MAX_TOLD_BYTES: usize = 16 * 1024;
/// Maximum bytes of one output kept in a file.
const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of kept outputs; the oldest are removed.
const MAX_KEPT: usize = 100;
/// Maximum number of attempts to find a free file number.
const MAX_TRIES: u32 = 16;
/// Name of the outputs folder.
const FOLDER: &str = "outputs";

/// See [`super::Exec::keep_rest`].
pub(super) fn keep_rest(folder: &CycleFolder, name: &str, output: String) -> String {
    if output.len() <= MAX_TOLD_BYTES {
        return output;
    }
    match folder.make() {
        Ok(path) => cut_and_save(&path, name, output),
        // If writing fails, the message reports it.
        Err(_) => cut_and_save(&folder.path(), name, output),
    }
}

/// Returns the beginning of a long output with a note. The whole is saved in `scratch`.
fn cut_and_save(scratch: &Path, name: &str, output: String) -> String {
    if output.len() <= MAX_TOLD_BYTES {
        return output;
    }
    let (lines, bytes) = (output.lines().count(), output.len());
    let told = cut_beginning(&output);
    // A cut line is read again from its start.
    let next_line = told.matches('\n').count() + 1;
    let rest = match save_output(scratch, name, &output) {
        Ok(file) => {
            let path = scratch.join(FOLDER).join(file);
            let saved = if bytes > MAX_KEPT_BYTES {
                format!("Its first {MAX_KEPT_BYTES} bytes are")
            } else {
                "All of it is".to_owned()
            };
            format!("{saved} in {}; read on there from line {next_line} of {lines}.", path.display())
        }
        Err(error) => format!("The rest could not be kept: {error}."),
    };
    format!("{}\n(Cut here: {} of {bytes} bytes. {rest})", told.trim_end_matches('\n'), told.len())
}

/// Returns as many whole lines as fit, or the beginning of a longer line.
fn cut_beginning(output: &str) -> &str {
    let most = first_bytes(output, MAX_TOLD_BYTES);
    match most.rfind('\n') {
        Some(end) if end > MAX_TOLD_BYTES / 2 => most.split_at(end + 1).0,
        _ => most,
    }
}

/// Writes an output into a new file and returns its name.
fn save_output(scratch: &Path, name: &str, output: &str) -> io::Result<String> {
    std::fs::create_dir_all(scratch)?;
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let scratch = openat(CWD, scratch, folder, Mode::empty())?;
    match mkdirat(&scratch, FOLDER, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let folder = openat(&scratch, FOLDER, folder, Mode::empty())?;
    let kept = list_kept_outputs(folder.as_fd())?;
    remove_oldest(folder.as_fd(), &kept);

    let newest = kept.last().map_or(0, |(number, _)| *number);
    for number in (newest..).skip(1).take(MAX_TRIES as usize) {
        let name = format!("{number:04}-{name}.txt");
        let mut file = match create_private_at(&folder, &name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        let most = first_bytes(output, MAX_KEPT_BYTES);
        if let Err(error) = file.write_all(most.as_bytes()) {
            // A partial file could pass for a whole output.
            let _ = unlinkat(&folder, &name, AtFlags::empty());
            return Err(error);
        }
        return Ok(name);
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Lists the kept outputs by number. Files with other names are ignored.
fn list_kept_outputs(folder: BorrowedFd<'_>) -> io::Result<Vec<(u32, String)>> {
    let mut kept = Vec::new();
    for entry in Dir::read_from(folder)? {
        let Ok(name) = entry?.file_name().to_str().map(str::to_owned) else { continue };
        let number = name.split_once('-').and_then(|(number, _)| number.parse().ok());
        // Huge numbers are ignored, so that higher ones stay available.
        kept.extend(number.filter(|number| *number < u32::MAX / 2).map(|number| (number, name)));
    }
    kept.sort();
    Ok(kept)
}

/// Removes the oldest outputs to make room for one more.
fn remove_oldest(folder: BorrowedFd<'_>, kept: &[(u32, String)]) {
    for (_, name) in kept.iter().take((kept.len() + 1).saturating_sub(MAX_KEPT)) {
        // A failed removal is harmless.
        let _ = unlinkat(folder, name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn lines(count: usize) -> String {
        (1..=count).map(|line| format!("this is line {line} of the output\n")).collect()
    }

    #[test]
    fn what_is_short_is_told_whole_and_nothing_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join("scratch");
        assert_eq!(cut_and_save(&scratch, "shell", lines(10)), lines(10));
        assert!(!scratch.exists());
    }

    #[test]
    fn what_is_long_is_told_in_whole_lines_and_kept_whole() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join("scratch");
        let output = lines(10_000);
        for number in ["0001", "0002"] {
            let told = cut_and_save(&scratch, "shell", output.clone());
            let path = scratch.join(format!("outputs/{number}-shell.txt"));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), output);
            let (shown, note) = told.split_once("\n(Cut here: ").unwrap();
            assert!(output.starts_with(&format!("{shown}\n")) && told.len() < MAX_TOLD_BYTES + 1_000);
            let next = shown.lines().count() + 1;
            assert!(
                note.contains(&format!("in {}; read on there from line {next} of 10000.", path.display())),
                "{note}"
            );
        }
    }

    #[test]
    fn one_endless_line_is_cut_between_characters() {
        let dir = tempfile::tempdir().unwrap();
        let told = cut_and_save(dir.path(), "shell", "ä".repeat(MAX_KEPT_BYTES));
        assert!(told.starts_with("ää") && told.contains("Its first") && told.contains("from line 1 of 1."), "{told}");
        let kept = std::fs::read_to_string(dir.path().join("outputs/0001-shell.txt")).unwrap();
        assert!(kept.len() <= MAX_KEPT_BYTES && kept.len() > MAX_KEPT_BYTES - 4);
    }

    #[test]
    fn the_oldest_give_way_and_what_is_not_ours_stays() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = dir.path().join("outputs");
        std::fs::create_dir(&outputs).unwrap();
        for theirs in ["notes.txt", "4294967295-shell.txt", "x-1"] {
            std::fs::write(outputs.join(theirs), "theirs").unwrap();
        }
        for _ in 0..MAX_KEPT + 5 {
            cut_and_save(dir.path(), "shell", lines(1_000));
        }
        let names: Vec<_> = std::fs::read_dir(&outputs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), MAX_KEPT + 3);
        assert!(!outputs.join("0005-shell.txt").exists() && outputs.join("0006-shell.txt").exists());
        assert!(outputs.join("0105-shell.txt").exists());
    }

    #[test]
    fn a_link_that_a_program_made_is_not_followed() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), dir.path().join("outputs")).unwrap();
        let told = cut_and_save(dir.path(), "shell", lines(10_000));
        assert!(told.contains("The rest could not be kept"), "{told}");
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);

        // A link in a file's place is skipped.
        std::fs::remove_file(dir.path().join("outputs")).unwrap();
        std::fs::create_dir(dir.path().join("outputs")).unwrap();
        let victim = elsewhere.path().join("victim");
        std::fs::write(&victim, "theirs").unwrap();
        symlink(&victim, dir.path().join("outputs/0001-shell.txt")).unwrap();
        assert!(cut_and_save(dir.path(), "shell", lines(10_000)).contains("outputs/0002-shell.txt"));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "theirs");
    }
}
