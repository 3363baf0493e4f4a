//! Checks the tables of channels and of chat commands in docs/CAPABILITIES.md against the product.

use std::collections::BTreeSet;

use reveille_channels::telegram::Command;

use super::table::{agree, read};
use crate::support::env::TestEnv;

/// Commands that the library clap adds.
const CLAPS: [&str; 1] = ["help"];

#[test]
fn each_command_of_wake_and_each_feature_is_in_the_table() {
    let help = TestEnv::new().wake(&["--help"]).ok().stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: BTreeSet<String> = commands.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    let commands: BTreeSet<String> = commands.into_iter().filter(|name| !CLAPS.contains(&name.as_str())).collect();
    let manifest = include_str!("../../../Cargo.toml");
    let default = manifest.lines().find_map(|line| line.strip_prefix("default = ")).unwrap();
    let features: BTreeSet<String> = default.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let rows = read("Ways in and out");
    let named = |column: &str| -> BTreeSet<String> { rows.iter().flat_map(|row| row.named(column)).collect() };
    let mut differences = Vec::new();
    for (column, product) in [("`wake …`", commands), ("feature", features)] {
        let table = named(column);
        differences.extend(product.difference(&table).map(|name| format!("{name} isn't in the column {column}")));
        differences.extend(table.difference(&product).map(|name| format!("{name} of {column} isn't in the product")));
    }
    agree(&differences);
}

#[test]
fn each_channel_names_tests_that_exist() {
    let here = include_str!("../main.rs");
    for row in read("Ways in and out") {
        let stories = row.named("stories");
        assert!(!stories.is_empty(), "{} names no stories", row.name);
        for story in stories {
            assert!(here.contains(&format!("mod {story};")), "there are no stories {story}, which {} names", row.name);
        }
    }
}

#[test]
fn each_command_of_the_bot_has_a_row_with_the_right_permissions() {
    let rows = read("Commands of a chat");
    let table: Vec<&str> = rows.iter().map(|row| row.name.trim_start_matches('/')).collect();
    let product: Vec<&str> = Command::ALL.iter().map(|command| command.name()).collect();
    let mut differences = Vec::new();
    differences.extend(product.iter().filter(|name| !table.contains(name)).map(|name| format!("/{name} has no row")));
    differences.extend(table.iter().filter(|name| !product.contains(name)).map(|name| format!("/{name} is none")));
    for (command, row) in Command::ALL
        .iter()
        .filter_map(|command| Some((command, rows.iter().find(|row| row.name == format!("/{}", command.name()))?)))
    {
        let guest = if command.is_owners() { "no" } else { "yes" };
        for (column, cell) in [("owner", "yes"), ("guest", guest)] {
            if row.cell(column) != cell {
                differences.push(format!("/{}: {column} is {cell:?}, not {:?}", command.name(), row.cell(column)));
            }
        }
    }
    agree(&differences);
}
