//! How the programs are linked.

use std::{path::Path, process::Command};

/// The first glibc whose loader reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

/// Which functions stand side by side in a release; see `scripts/order-code`.
const ORDER: &str = "link/order.ld";

/// Linkers that don't read such a script.
const WITHOUT_SCRIPTS: [&str; 3] = ["gold", "mold", "wild"];

/// The commit that is built, as the scripts say it: git is asked nothing here, so that a commit alone makes nothing be built anew,
/// and a tarball builds as a clone does.
const COMMIT: &str = "REVEILLE_COMMIT";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={COMMIT}");
    println!("cargo:rustc-env=REVEILLE_VERSION={}", version());
    // Tables of pointers are made valid at each start. Packed, the list of them is a fiftieth: a megabyte less to read and to
    // keep in memory. A program that was linked so doesn't start beside an older loader.
    if is_built_here() && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // A copy of the sources alone has none.
    if Path::new(ORDER).exists() && is_built_here() && reads_order() {
        println!("cargo:rerun-if-changed={ORDER}");
        println!("cargo:rustc-link-arg-bins=-T");
        println!("cargo:rustc-link-arg-bins={}/{ORDER}", said("CARGO_MANIFEST_DIR"));
    }
}

/// What cargo tells of the build.
#[expect(clippy::disallowed_methods, reason = "by its environment cargo tells a build script what is built")]
fn said(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Whether an optimised build is made, by a linker that reads the script: LLD, which is Rust's own, or GNU's.
fn reads_order() -> bool {
    let of_linker = ["RUSTC_LINKER", "CARGO_ENCODED_RUSTFLAGS", "LD_PRELOAD"].map(said).concat();
    said("PROFILE") == "release" && !WITHOUT_SCRIPTS.iter().any(|name| of_linker.contains(name))
}

/// The version, with the commit where it is told.
fn version() -> String {
    let (version, commit) = (said("CARGO_PKG_VERSION"), said(COMMIT));
    let is_plain = (7..=40).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_plain { format!("{version} ({commit})") } else { version }
}

/// Whether the programs are for this very system, and linked against glibc.
fn is_built_here() -> bool {
    said("HOST") == said("TARGET") && said("CARGO_CFG_TARGET_ENV") == "gnu"
}

/// This system's version of it.
#[expect(clippy::disallowed_methods, reason = "a build script has nothing of the product's")]
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
