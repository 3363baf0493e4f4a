//! Checks of third-party crates: each direct dependency has its reason in a comment, all come from the registry, and `deny.toml` allows
//! their licences. Known vulnerabilities aren't checked here, since their list needs the network: `cargo deny check` does that.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use serde_json::Value;

use super::support::env::ProgramOutput;

fn project(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

#[test]
fn each_third_party_crate_has_its_reason() {
    let manifest = project("Cargo.toml");
    let (_, list) = manifest.split_once("[workspace.dependencies]\n").unwrap();
    let list = list.split("\n[").next().unwrap();
    let (mut count, mut has_reason, mut without) = (0, false, Vec::new());
    for line in list.lines() {
        if let Some((name, _)) = line.split_once(" = ").filter(|_| !line.starts_with(['#', ' ', ']'])) {
            count += 1;
            if !has_reason && !name.starts_with("reveille-") {
                without.push(name);
            }
        }
        has_reason = line.starts_with("# ");
    }
    assert!(count > 50 && without.is_empty(), "of {count}, these have no comment above them: {without:?}");
    // No crate names a version of its own.
    for folder in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates")).unwrap() {
        let path = folder.unwrap().path().join("Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let chosen = manifest.get(kind).and_then(toml::Value::as_table).into_iter().flatten();
            for (name, how) in chosen {
                assert!(how.get("workspace").is_some(), "{}: {name} isn't the workspace's", path.display());
            }
        }
    }
}

#[test]
fn each_third_party_crate_has_an_allowed_licence_and_comes_from_the_registry() {
    let deny: toml::Table = project("deny.toml").parse().unwrap();
    let allowed: BTreeSet<&str> =
        deny["licenses"]["allow"].as_array().unwrap().iter().map(|licence| licence.as_str().unwrap()).collect();
    #[expect(clippy::disallowed_methods, reason = "cargo, which runs this test")]
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", &host()])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    ProgramOutput::of(&output).ok();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 200, "{}", packages.len());
    let mut odd = Vec::new();
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none").replace('/', " OR ");
        let is_ours = package["source"].is_null();
        let is_registry = package["source"] == "registry+https://github.com/rust-lang/crates.io-index";
        let is_allowed = is_satisfied(&licence, &allowed);
        if !is_allowed || !(is_ours || is_registry) {
            odd.push(format!("{} {} ({licence}, {})", package["name"], package["version"], package["source"]));
        }
    }
    assert!(odd.is_empty(), "{odd:#?}");
}

/// The target that this machine builds for.
fn host() -> String {
    #[expect(clippy::disallowed_methods, reason = "the compiler that built this test")]
    let said = Command::new("rustc").arg("-vV").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    said.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// Returns whether these licences satisfy a licence expression (SPDX).
fn is_satisfied(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let expression = expression.trim();
    if let Some(alternatives) = split_outside_parentheses(expression, " OR ") {
        return alternatives.iter().any(|one| is_satisfied(one, allowed));
    }
    if let Some(parts) = split_outside_parentheses(expression, " AND ") {
        return parts.iter().all(|one| is_satisfied(one, allowed));
    }
    match expression.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => is_satisfied(inner, allowed),
        None => allowed.contains(expression),
    }
}

/// Splits a text at a word outside parentheses; `None` if it doesn't occur there.
fn split_outside_parentheses(text: &str, word: &str) -> Option<Vec<String>> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.split(word) {
        // If a parenthesis is still open, the word was inside it.
        match pieces.last_mut().filter(|last| last.matches('(').count() > last.matches(')').count()) {
            Some(open) => open.push_str(&format!("{word}{piece}")),
            None => pieces.push(piece.to_owned()),
        }
    }
    (pieces.len() > 1).then_some(pieces)
}

#[test]
fn licence_expressions_are_parsed() {
    let allowed = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]);
    for (expression, is_allowed) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT OR GPL-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND ISC", true),
        ("GPL-3.0 OR Apache-2.0 WITH LLVM-exception", true),
        ("none", false),
    ] {
        assert_eq!(is_satisfied(expression, &allowed), is_allowed, "{expression}");
    }
}
