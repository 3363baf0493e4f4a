//! Words of SQLite's that no statement of the store may use.

use std::path::PathBuf;

/// The tests run some statements on SQLite alone, so that they wouldn't notice these words.
#[test]
fn statements_use_no_words_of_sqlite_alone() {
    const SQLITES_OWN: [&str; 8] =
        ["iif(", "group_concat(", "json_group_array(", "typeof(", " char(", "AS INTEGER)", " IS ?", " IS NOT ?"];
    // Databases of older versions are files, and so are those with unreadable rows.
    const FILES_ALONE: [&str; 3] = ["schema.rs", "odd_rows.rs", "dialect.rs"];
    let (mut folders, mut found, mut count) =
        (vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !FILES_ALONE.contains(&name.as_str()) {
                count += 1;
                let text = std::fs::read_to_string(&path).unwrap();
                found.extend(SQLITES_OWN.iter().filter(|word| text.contains(**word)).map(|word| (name.clone(), *word)));
            }
        }
    }
    assert!(count > 60 && found.is_empty(), "{count}: {found:?}");
}
