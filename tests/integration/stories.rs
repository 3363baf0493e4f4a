//! Stories say what happens, and ask for it by name: statements of SQL stand in `support` alone, and so do looks at standard error.

use std::{fs, path::Path};

use proc_macro2::{TokenStream, TokenTree};

/// Files that arrange by SQL what only they need, each in functions that say what it is.
const ARRANGING: &[(&str, &str)] = &[
    ("backup.rs", "what was half done when a backup was made"),
    ("bundle.rs", "secrets wherever words come to stand"),
    ("capabilities/plants.rs", "a word in every table"),
    ("damage.rs", "rows that no program writes"),
    ("fleet.rs", "the fleet's own list, and what a role may not do"),
    ("shared_faults.rs", "a server's administrator, while the server is harmed"),
    ("shared_store.rs", "a server's administrator, who makes roles"),
];

/// The stories' source by its path.
fn stories() -> Vec<(String, TokenStream)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration");
    let mut stories = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.extend((!path.ends_with("support")).then_some(path));
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                stories.push((name, fs::read_to_string(&path).unwrap().parse().unwrap()));
            }
        }
    }
    stories
}

/// The tokens as text, those in groups, too.
fn tokens(stream: TokenStream, found: &mut Vec<String>) {
    for token in stream {
        match token {
            TokenTree::Group(group) => tokens(group.stream(), found),
            token => found.push(token.to_string()),
        }
    }
}

fn is_statement(literal: &str) -> bool {
    let words: Vec<&str> = literal.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let has = |first: &str, second: &str| words.windows(2).any(|pair| pair == [first, second]);
    let is_update = words.windows(3).any(|three| three[0] == "UPDATE" && three[2] == "SET");
    let is_definition = ["CREATE", "ALTER", "DROP"]
        .iter()
        .any(|verb| ["TABLE", "TRIGGER", "SCHEMA", "INDEX", "ROLE"].iter().any(|thing| has(verb, thing)));
    words.iter().any(|word| ["SELECT", "PRAGMA", "VACUUM"].contains(word))
        || has("INSERT", "INTO")
        || has("DELETE", "FROM")
        || is_update
        || is_definition
}

#[test]
fn stories_ask_the_database_and_standard_error_by_name() {
    let (mut with_sql, mut with_stderr) = (Vec::new(), Vec::new());
    let stories = stories();
    assert!(stories.len() > 90, "{} stories were found", stories.len());
    for (name, stream) in stories.into_iter().filter(|(name, _)| name != "stories.rs") {
        let mut found = Vec::new();
        tokens(stream, &mut found);
        if found.iter().any(|token| token.contains('"') && is_statement(token)) {
            with_sql.push(name.clone());
        }
        if found.windows(3).any(|three| three == ["stderr", ".", "contains"]) {
            with_stderr.push(name);
        }
    }
    let known = |name: &String| ARRANGING.iter().any(|(known, _)| known == name);
    let new: Vec<_> = with_sql.iter().filter(|name| !known(name)).collect();
    assert!(new.is_empty(), "these ask or arrange by SQL: name it in support/database: {new:?}");
    // The list only gets shorter.
    let gone: Vec<_> = ARRANGING.iter().filter(|(name, _)| !with_sql.iter().any(|with| with == name)).collect();
    assert!(gone.is_empty() && ARRANGING.len() <= 7, "these have no SQL by now, take them off the list: {gone:?}");
    assert!(
        with_stderr.is_empty(),
        "these look at standard error: `Ran` has `assert_tells` and its like: {with_stderr:?}"
    );
}
