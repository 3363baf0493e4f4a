//! Third-party programs that the tests talk to, if `scripts/peers` has fetched them.

use std::path::{Path, PathBuf};

/// Returns the directory of the programs if it has `program`. Otherwise prints that `test` isn't run. `scripts/test` fetches the programs
/// first and sets `REVEILLE_TEST_PEERS` to their directory; the test then fails instead.
#[track_caller]
pub(crate) fn find(test: &str, program: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "what the machine has is no setting of the product")]
    let promised = std::env::var_os("REVEILLE_TEST_PEERS").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let target = Path::new(env!("CARGO_BIN_EXE_wake")).ancestors().nth(2).unwrap();
    let dir = promised.clone().unwrap_or_else(|| target.join("peers"));
    let is_there = dir.join("ready").exists() && dir.join(program).exists();
    assert!(is_there || promised.is_none(), "{program} is not in {}, which REVEILLE_TEST_PEERS names", dir.display());
    if !is_there {
        println!("NOT RUN: {test}: scripts/peers has not fetched {program}.");
    }
    is_there.then_some(dir)
}
