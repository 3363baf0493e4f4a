//! Long outputs: the mind is told their beginning and end, and the whole stays in a file that it can read on.

use std::{fs, io::Write as _, path::Path};

/// Told of an output at most, in bytes; half of it from the beginning, half from the end.
pub const TOLD_BYTES_MAX: usize = 16 * 1024;
/// Kept of an output at most, in bytes.
pub const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Where they are kept, below the scratch directory.
const FOLDER: &str = "outputs";
/// Outputs that are kept at most; the oldest go.
const KEPT_MAX: usize = 200;

/// `text` if it is short; else its ends, with the name of the file below `scratch` in which all of it stands. Where that can't be
/// written it says so.
pub fn told(scratch: &Path, name: &str, text: &str) -> String {
    if text.len() <= TOLD_BYTES_MAX {
        return text.to_owned();
    }
    let begin = text.get(..floor(text, TOLD_BYTES_MAX / 2)).unwrap_or_default();
    let end = text.get(ceil(text, text.len() - TOLD_BYTES_MAX / 2)..).unwrap_or_default();
    let left_out = text.len() - begin.len() - end.len();
    let whole = match keep(scratch, name, text) {
        Ok(path) => format!("all {} bytes stand in {path}; read on there", text.len()),
        Err(error) => format!("it could not be kept whole: {error}"),
    };
    format!("{begin}\n[… {left_out} bytes are left out here; {whole} …]\n{end}")
}

/// Writes it into a new file; gives its path below `scratch`.
fn keep(scratch: &Path, name: &str, text: &str) -> std::io::Result<String> {
    let folder = scratch.join(FOLDER);
    fs::create_dir_all(&folder)?;
    forget_oldest(&folder)?;
    for count in 1.. {
        let file = format!("{name}-{count}.txt");
        match fs::File::create_new(folder.join(&file)) {
            Ok(mut open) => {
                open.write_all(text.as_bytes())?;
                return Ok(format!("{FOLDER}/{file}"));
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("there are too many of them"))
}

fn forget_oldest(folder: &Path) -> std::io::Result<()> {
    let mut files: Vec<_> = fs::read_dir(folder)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
    files.sort();
    let too_many = files.len().saturating_sub(KEPT_MAX - 1);
    for (_, path) in files.into_iter().take(too_many) {
        fs::remove_file(path).ok();
    }
    Ok(())
}

/// The last character boundary up to `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first character boundary from `at` on.
fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_is_told_by_its_ends_and_kept_whole() {
        let dir = tempfile::tempdir().unwrap();
        let long: String = (0..20_000).map(|n| format!("línea {n}\n")).collect();
        let said = told(dir.path(), "bash", &long);
        assert!(said.len() < TOLD_BYTES_MAX + 300, "{}", said.len());
        assert!(said.starts_with("línea 0\n") && said.ends_with("línea 19999\n"));
        assert!(said.contains("outputs/bash-1.txt"));
        assert_eq!(fs::read_to_string(dir.path().join("outputs/bash-1.txt")).unwrap(), long);
        assert!(told(dir.path(), "bash", &long).contains("outputs/bash-2.txt"), "none is overwritten");
        assert_eq!(told(dir.path(), "bash", "short"), "short");
    }

    #[test]
    fn only_so_many_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        fs::create_dir_all(&folder).unwrap();
        for n in 0..KEPT_MAX + 20 {
            fs::write(folder.join(format!("old-{n}")), "").unwrap();
        }
        told(dir.path(), "bash", &"x".repeat(TOLD_BYTES_MAX + 1));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), KEPT_MAX);
    }
}
