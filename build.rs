//! How the programs are linked.

use std::process::Command;

/// The first glibc whose loader reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

/// The commit that is built, as the scripts say it: git is asked nothing here, so that a commit alone makes nothing be built anew,
/// and a tarball builds as a clone does.
const COMMIT: &str = "REVEILLE_COMMIT";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/index/log.c");
    println!("cargo:rerun-if-env-changed={COMMIT}");
    println!("cargo:rustc-env=REVEILLE_VERSION={}", version());
    cc::Build::new()
        .file("src/index/log.c")
        .opt_level(2)
        .flag("-fno-builtin")
        .cargo_metadata(false)
        .compile("reveille_log");
    // Whole: what asks for it may stand before it on the linker's line.
    println!("cargo:rustc-link-search=native={}", out_dir());
    println!("cargo:rustc-link-lib=static:+whole-archive=reveille_log");
    // Tables of pointers are made valid at each start. Packed, the list of them is a fiftieth: a megabyte less to read and to
    // keep in memory. A program that was linked so doesn't start beside an older loader.
    if is_built_here() && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version, with the commit where it is told.
#[expect(clippy::disallowed_methods, reason = "by its environment cargo tells a build script what is built")]
fn version() -> String {
    let said = |name: &str| std::env::var(name).unwrap_or_default();
    let (version, commit) = (said("CARGO_PKG_VERSION"), said(COMMIT));
    let is_plain = (7..=40).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_plain { format!("{version} ({commit})") } else { version }
}

/// Whether the programs are for this very system, and linked against glibc.
#[expect(clippy::disallowed_methods, reason = "by its environment cargo tells a build script what is built")]
fn is_built_here() -> bool {
    let said = |name: &str| std::env::var(name).ok();
    said("HOST") == said("TARGET") && said("CARGO_CFG_TARGET_ENV").as_deref() == Some("gnu")
}

/// Where cargo wants what is built.
#[expect(clippy::disallowed_methods, reason = "by its environment cargo tells a build script what is built")]
fn out_dir() -> String {
    std::env::var("OUT_DIR").unwrap_or_default()
}

/// This system's version of it.
#[expect(clippy::disallowed_methods, reason = "a build script has nothing of the product's")]
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
