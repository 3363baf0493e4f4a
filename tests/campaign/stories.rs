//! Layer 8: tests of the suite that each prove a promise of docs/SECURITY.md or docs/RELIABILITY.md. The suite runs them anyway; here
//! each is also run against the broken variants that name it.

use std::path::Path;

use super::variants;

/// The number of such tests.
pub(crate) fn count() -> u64 {
    variants::stories().len() as u64
}

/// The result of a test.
pub(crate) enum Ran {
    Passed,
    Failed,
}

/// Runs one of these tests in this campaign's build.
pub(crate) fn trial(id: u64) -> Result<(), String> {
    let stories = variants::stories();
    let test = usize::try_from(id).ok().and_then(|at| stories.get(at)).ok_or("there is no such story")?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    // `<target>/<profile>/deps/campaign-…`
    let target = program.ancestors().nth(3).ok_or("the campaign wasn't built by cargo")?;
    match run(test, Path::new(env!("CARGO_MANIFEST_DIR")), target)? {
        Ran::Passed => Ok(()),
        Ran::Failed => Err(format!("{test} failed")),
    }
}

/// Runs a test of the workspace at `sources`. Its name is a path that begins with a crate (`reveille…` is a library, any other name a test
/// program).
///
/// # Errors
/// The test can't be run.
pub(crate) fn run(test: &str, sources: &Path, target: &Path) -> Result<Ran, String> {
    let (place, name) = test.split_once("::").ok_or("a test is named by its path")?;
    // The application is built too, so that the libraries have the features it needs.
    let package = place.replace('_', "-");
    let place = match place.starts_with(env!("CARGO_PKG_NAME")) {
        true => vec!["--lib", "--package", env!("CARGO_PKG_NAME"), "--package", &package],
        false => vec!["--test", place],
    };
    let ran = variants::command("cargo")
        .args(["test", "--quiet", "--locked", "--offline", "--target-dir"])
        .arg(target)
        .args(place)
        .args(["--", "--exact", name])
        .current_dir(sources)
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout);
    match (ran.status.success(), said.contains("1 passed")) {
        (true, true) => Ok(Ran::Passed),
        (true, false) => Err(format!("{test} isn't there")),
        (false, _) if said.contains("1 failed") => Ok(Ran::Failed),
        (false, _) => Err(format!("{test} couldn't be run: {}", String::from_utf8_lossy(&ran.stderr))),
    }
}
