//! One small C function, in place of the maths library.

#[expect(clippy::disallowed_methods, reason = "by its environment cargo tells a build script where to write")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/log.c");
    cc::Build::new().file("src/log.c").opt_level(2).flag("-fno-builtin").cargo_metadata(false).compile("reveille_log");
    // Whole: what asks for it may stand before it on the linker's line.
    println!("cargo:rustc-link-search=native={}", std::env::var("OUT_DIR").unwrap_or_default());
    println!("cargo:rustc-link-lib=static:+whole-archive=reveille_log");
}
