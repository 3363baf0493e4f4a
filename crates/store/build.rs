//! Builds one small C function that replaces the maths library.

#[expect(clippy::disallowed_methods, reason = "by its environment cargo tells a build script where to write")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/log.c");
    cc::Build::new().file("src/log.c").opt_level(2).flag("-fno-builtin").cargo_metadata(false).compile("reveille_log");
    // Links the whole archive, since its users may come earlier on the linker's command line.
    println!("cargo:rustc-link-search=native={}", std::env::var("OUT_DIR").unwrap_or_default());
    println!("cargo:rustc-link-lib=static:+whole-archive=reveille_log");
}
