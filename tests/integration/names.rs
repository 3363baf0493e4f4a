//! One name for one thing: a type's name stands once in the source, but for what is listed here; the list only gets shorter.

use std::{collections::BTreeMap, fs, path::Path};

/// Names that stand twice, with what justifies it.
const TWICE: &[(&str, &str)] = &[("Transcriber", "one of the two is built, by the feature `voice`")];

fn visible_types() -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut folders = ["src", "crates"].map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.extend((!path.ends_with("tests")).then_some(path));
                continue;
            }
            if path.extension().is_none_or(|ending| ending != "rs") || path.ends_with("tests.rs") {
                continue;
            }
            let source = fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for line in code.lines().map(str::trim).filter(|line| line.starts_with("pub")) {
                let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
                let Some(_) = words.find(|word| ["struct", "enum", "trait", "type", "fn", "mod", "use"].contains(word))
                else {
                    continue;
                };
                let is_type = [" struct ", " enum ", " trait ", " type "].iter().any(|kind| line.contains(kind));
                if let (true, Some(name)) = (is_type, words.next()) {
                    found.entry(name.to_owned()).or_default().push(path.display().to_string());
                }
            }
        }
    }
    found
}

#[test]
fn a_type_has_a_name_of_its_own() {
    let types = visible_types();
    assert!(types.len() > 400, "{} types were found", types.len());
    let twice: BTreeMap<&String, &Vec<String>> = types.iter().filter(|(_, places)| places.len() > 1).collect();
    let known: Vec<&str> = TWICE.iter().map(|(name, _)| *name).collect();
    let new: BTreeMap<_, _> = twice.iter().filter(|(name, _)| !known.contains(&name.as_str())).collect();
    assert!(new.is_empty(), "these names stand twice: {new:#?}");
    // The list only gets shorter.
    let gone: Vec<_> = known.iter().filter(|name| !twice.keys().any(|twice| twice == *name)).collect();
    assert!(gone.is_empty() && known.len() <= 1, "these stand once by now, take them off the list: {gone:?}");
}
